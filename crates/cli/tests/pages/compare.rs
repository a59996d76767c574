//! Compares the output with the page.
//!
//! `…` in a line matches any text, and a line of only `…` matches any lines. A time of day, the
//! day of a heading and the duration of a run match every other.

const ANYTHING: &str = "…";

/// Whether the lines of a page match the printed ones.
pub(crate) fn matches(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == ANYTHING => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed
            .split_first()
            .is_some_and(|(line, lines)| line_matches(first, line) && matches(rest, lines)),
    }
}

/// Returns the printed lines, with the line of the page wherever it matches.
pub(crate) fn in_words_of(shown: &[String], printed: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut shown, mut printed) = (shown, printed);
    while let Some((at, line)) = first_kept(shown, printed) {
        fill(&mut lines, &shown[..at], &printed[..line]);
        lines.push(shown[at].clone());
        (shown, printed) = (&shown[at + 1..], &printed[line + 1..]);
    }
    fill(&mut lines, shown, printed);
    lines
}

/// The positions of the first printed line that the page matches, in both.
fn first_kept(shown: &[String], printed: &[String]) -> Option<(usize, usize)> {
    let matching = |line: &String| {
        let said = |pattern: &String| pattern.trim() != ANYTHING && line_matches(pattern, line);
        shown.iter().position(said)
    };
    printed.iter().enumerate().find_map(|(line, text)| Some((matching(text)?, line)))
}

/// Adds lines that differ, but keeps the omissions of the page.
fn fill(lines: &mut Vec<String>, shown: &[String], printed: &[String]) {
    match shown.iter().position(|line| line.trim() == ANYTHING) {
        Some(before) => {
            lines.extend(printed.iter().take(before).cloned());
            lines.push(ANYTHING.to_owned());
        }
        None => lines.extend_from_slice(printed),
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let (pattern, line) = (without_times(pattern), without_times(line));
    let mut pieces = pattern.split(ANYTHING);
    let Some(mut rest) = line.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = "";
    let mut open = false;
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
        (last, open) = (piece, true);
    }
    rest.is_empty() || (open && (last.is_empty() || line.ends_with(last)))
}

/// Sets every time of day to midnight, and every duration to zero.
fn without_times(line: &str) -> String {
    let mut text: Vec<char> = line.chars().collect();
    let is_time = |window: &[char]| {
        window.iter().enumerate().all(|(at, c)| match at {
            2 | 5 => *c == ':',
            _ => c.is_ascii_digit(),
        })
    };
    for at in 0..text.len().saturating_sub(7) {
        if is_time(&text[at..at + 8]) {
            text.splice(at..at + 8, "00:00:00".chars());
        }
    }
    without_id(without_span(without_date(text.into_iter().collect())))
}

/// Sets the date of a heading such as `2026-11-19 UTC` to zero.
fn without_date(line: String) -> String {
    let shape: String =
        line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).take(11).collect();
    let is_heading = shape == "0000-00-00 " && line.split(' ').count() == 2;
    if is_heading { "0000-00-00 UTC".to_owned() } else { line }
}

/// Replaces run ids such as `review-20260131-0af3c9`.
fn without_id(line: String) -> String {
    let ends = |at: usize| {
        let (day, rest) = line.get(at..)?.split_at_checked(8)?;
        let dice = rest.strip_prefix('-')?.get(..6)?;
        let named = day.bytes().all(|c| c.is_ascii_digit())
            && dice.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        named.then_some(at + 15)
    };
    match line.match_indices('-').find_map(|(at, _)| Some((at + 1, ends(at + 1)?))) {
        Some((start, end)) => {
            format!("{}ID{}", &line[..start], without_id(line[end..].to_owned()))
        }
        None => line,
    }
}

/// Removes the duration in `completed in 0.4s: …`.
fn without_span(line: String) -> String {
    for start in ["completed in ", "failed after ", "over_budget after ", "stopped after "] {
        if let Some(at) = line.find(start).map(|at| at + start.len())
            && let Some(end) = line[at..].find(':').map(|end| at + end)
        {
            return format!("{}0s{}", &line[..at], &line[end..]);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn placeholders_match_only_themselves() {
        let check = |shown: &str, printed: &str, expected: bool| {
            let found = matches(&lines(shown), &lines(printed));
            assert_eq!(found, expected, "{shown:?} for {printed:?}");
        };
        check("", "", true);
        check("a", "a", true);
        check("a", "a\nb", false);
        check("a…c", "abbbc", true);
        check("a…c", "abbb", false);
        check("run-…: ok", "run-20260101-abc: ok", true);
        check("a…a…", "a b", false);
        check("…\nb", "a\na\nb", true);
        check("a\n…", "a", true);
        check("a\n…\nc", "a\nb", false);
        check("12:03:04 main  x", "23:59:59 main  x", true);
        check("12:03 main", "23:59 main", false);
        check(
            "a-20260131-0af3c9: see b-20260131-0af3c9",
            "a-20261231-ffffff: see b-20261231-ffffff",
            true,
        );
        check("a-20260131-0af3c9", "b-20260131-0af3c9", false);
        check("completed in 0.4s: x", "completed in 2m 03s: x", true);
        check("completed in 0.4s: x", "completed in 0.4s: y", false);
        check("completed in 0.4s: x", "failed after 0.4s: x", false);
    }

    #[test]
    fn update_keeps_placeholders() {
        let found = in_words_of(&lines("id …\nold\nend"), &lines("id 7\nnew\nend"));
        assert_eq!(found, lines("id …\nnew\nend"));
        let found = in_words_of(&lines("a\nold\n…\nend"), &lines("a\nnew\nx\ny\nend"));
        assert_eq!(found, lines("a\nnew\n…\nend"));
    }
}
