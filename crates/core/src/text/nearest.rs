//! Finds the name that was probably meant.
//!
//! It uses the edit distance with transpositions, ignoring case, within a narrow band: a name far
//! from every candidate gets no suggestion, and a hostile name costs no more than a long file name.

/// Longest name that is compared, in bytes: the longest file name on common file systems.
const LONGEST: usize = 255;

/// Maximum number of edits between a name and its suggestion.
const MOST_EDITS: usize = 3;

/// Returns the candidate nearest to `name`, or the first of several; `None` if all are far away.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let name = folded(name);
    // One edit per three characters: `SART` suggests `START`, `X` does not suggest `Y`.
    let mut limit = match name.len() {
        0 | 1 => 0,
        length => (length / 3).clamp(1, MOST_EDITS),
    };
    let mut best = None;
    for candidate in candidates {
        if candidate.len() > LONGEST {
            continue;
        }
        match distance(&name, &folded(candidate), limit) {
            Some(0) => return Some(candidate),
            // From now on only a nearer candidate matters.
            Some(edits) => {
                limit = edits - 1;
                best = Some(candidate);
            }
            None => {}
        }
    }
    best
}

fn folded(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// Returns the number of insertions, deletions, replacements and swaps of neighbours, if it is at
/// most `limit`.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let beyond = limit + 1;
    let mut before = vec![beyond; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).map(|edits| edits.min(beyond)).collect();
    for i in 1..=a.len() {
        let mut row = vec![beyond; b.len() + 1];
        if i <= limit {
            row[0] = i;
        }
        // Cells outside this band differ by more than `limit` in any case.
        for j in i.saturating_sub(limit).max(1)..=(i + limit).min(b.len()) {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut edits = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                edits = edits.min(before[j - 2] + 1);
            }
            row[j] = edits.min(beyond);
        }
        if row.iter().all(|edits| *edits > limit) {
            return None;
        }
        before = std::mem::replace(&mut above, row);
    }
    Some(above[b.len()]).filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_few_edits_away() {
        let names = ["START.md", "REVIEW.md", "REVISE.md", "x"];
        let check = |name: &str, expected| assert_eq!(nearest(name, names), expected, "{name}");
        check("START.md", Some("START.md"));
        check("start.MD", Some("START.md"));
        check("SATRT.md", Some("START.md"));
        check("START.m", Some("START.md"));
        check("REVEIW.md", Some("REVIEW.md"));
        check("REVIES.md", Some("REVIEW.md"));
        check("DEPLOY.md", None);
        check("y", None);
        check("X", Some("x"));
        check("", None);
    }

    #[test]
    fn edits_of_short_names_are_exact() {
        let check = |name: &str, candidate: &str, is_near: bool| {
            let expected = is_near.then_some(candidate);
            assert_eq!(nearest(name, [candidate]), expected, "{name} {candidate}");
        };
        check("XPLAN", "PLAN", true);
        check("XYPLAN", "PLAN", true);
        check("XYPLA", "PLA", false);
        check("AB", "B", true);
        check("BACD", "ABCD", true);
        check("BADC", "ABCD", false);
    }

    #[test]
    fn too_long_names_have_no_suggestion() {
        let (longest, longer) = ("x".repeat(LONGEST), "x".repeat(LONGEST + 1));
        let check = |name: &str, candidate: &str, is_near: bool| {
            assert_eq!(nearest(name, [candidate]).is_some(), is_near);
        };
        check(&longest, &longest, true);
        check(&longest, &longer, false);
        check(&longer, &longest, false);
    }

    #[test]
    fn another_case_is_nearer_than_another_letter() {
        assert_eq!(nearest("plan", ["plane", "PLAN"]), Some("PLAN"));
    }

    #[test]
    fn hostile_names_cost_little() {
        let names: Vec<String> = (0..10_000).map(|n| format!("{n:0>250}")).collect();
        let names = || names.iter().map(String::as_str);
        assert_eq!(nearest(&"x".repeat(4096), names()), None);
        assert_eq!(nearest(&format!("x{:0>249}", 77), names()), Some(&*format!("{:0>250}", 77)));
    }
}
