//! Makes foreign text safe for a terminal, and fits it into columns.
//!
//! Text of models, files and arguments may contain control sequences that change the terminal or
//! forge lines. Secrets are removed by `secrets`.

use std::borrow::Cow;

use raymond_core::time::Span;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::secrets::redacted;

/// Returns the text without secrets and without terminal control characters.
pub(crate) fn sanitized(text: &str) -> String {
    redacted(text).chars().map(|c| if is_terminal_control(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns a text that contains Raymond's own styles, without secrets and other control sequences.
///
/// A caller sanitizes foreign parts before it adds styles; this function also catches a part that a
/// caller forgot.
pub(crate) fn styled(text: &str) -> String {
    let text = redacted(text);
    let mut safe = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find(is_terminal_control) {
        let (before, found) = rest.split_at(at);
        safe.push_str(before);
        let style = style_at(found);
        match style {
            0 => safe.push('\u{fffd}'),
            length => safe.push_str(&found[..length]),
        }
        let first = found.chars().next().map_or(0, char::len_utf8);
        // A rejected sequence loses only its first character; the rest is then harmless text.
        rest = &found[style.max(first)..];
    }
    safe.push_str(rest);
    safe
}

/// Returns the length of the style sequence that the text starts with; zero if it starts with none.
///
/// Only weights and colours of the text count: a sequence that hides or reverses text does not.
fn style_at(text: &str) -> usize {
    // Raymond's own styles, such as `1;91`, are shorter than this; a longer sequence is foreign.
    const LONGEST: usize = 12;
    let Some(body) = text.strip_prefix("\u{1b}[") else { return 0 };
    let Some(end) = body.find('m').filter(|end| *end <= LONGEST) else { return 0 };
    let codes = &body[..end];
    if !codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') {
        return 0;
    }
    let is_ours = |code: &str| match code.parse() {
        // Reset, bold, dim, underline and foreground colours. Not 7 and 8, which reverse or hide
        // text.
        Ok(0_u8..=2 | 4 | 30..=37 | 39 | 90..=97) => true,
        _ => code.is_empty(),
    };
    if codes.split(';').all(is_ours) { text.len() - body.len() + end + 1 } else { 0 }
}

/// Whether a terminal interprets the character: control characters, and marks that change the
/// direction of text, which could reorder a line.
pub(crate) fn is_terminal_control(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Formats a duration: `0.4s`, `42s`, `4m 12s`, `2h 03m`, `3d 4h`. The shortest is `0.1s`.
pub(crate) fn elapsed(Span(milliseconds): Span) -> String {
    let seconds = milliseconds / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..10 => format!("{seconds}.{}s", milliseconds.max(100) % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m {:02}s", seconds % 60),
        3600..86_400 => format!("{hours}h {:02}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// Truncates the end of a text to this many columns.
pub(crate) fn truncate_end(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return text.into();
    }
    let kept = fitting(text.chars(), columns.saturating_sub(1));
    format!("{}…", kept.into_iter().collect::<String>()).into()
}

/// Truncates the start of a text, because names differ at their ends.
pub(crate) fn truncate_start(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return text.into();
    }
    let kept = fitting(text.chars().rev(), columns.saturating_sub(1));
    // A combining accent without its letter would attach to the ellipsis.
    let kept = kept.into_iter().rev().skip_while(|c| c.width() == Some(0));
    format!("…{}", kept.collect::<String>()).into()
}

/// Appends blanks up to this many columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// Returns the rows of a table as lines with aligned columns.
pub(crate) fn aligned<R: AsRef<[String]>>(rows: &[R]) -> impl Iterator<Item = String> {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.as_ref().get(column));
    let widths: Vec<usize> = (0..columns)
        .map(|column| cells(column).map(|cell| cell.width()).max().unwrap_or(0))
        .collect();
    rows.iter().map(move |row| {
        let cells = row.as_ref().iter().zip(&widths).map(|(cell, width)| pad(cell, *width));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    })
}

/// Returns the characters that fit into this many columns.
fn fitting(characters: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let mut room = columns;
    characters
        .map_while(|c| {
            room = room.checked_sub(c.width().unwrap_or(0))?;
            Some(c)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: S13
    #[test]
    fn control_characters_are_replaced() {
        let check = |text: &str, expected: &str| assert_eq!(sanitized(text), expected);
        check("plain ä\n\ttext", "plain ä\n\ttext");
        check("\u{1b}]0;x\u{7}y", "\u{fffd}]0;x\u{fffd}y");
        check("a\u{202e}b\u{2066}c", "a\u{fffd}b\u{fffd}c");
        check("\u{9b}2J\r", "\u{fffd}2J\u{fffd}");
    }

    // proves: S13
    #[test]
    fn only_own_styles_are_kept() {
        let check = |text: &str, expected: &str| assert_eq!(styled(text), expected);
        for kept in ["\u{1b}[32m\u{1b}[1mdone\u{1b}[0m: ä\n", "\u{1b}[1;91mx\u{1b}[m", "plain"] {
            check(kept, kept);
        }
        check("\u{1b}[8mhidden", "\u{fffd}[8mhidden");
        check("\u{1b}[7mx\u{1b}[2J\u{1b}", "\u{fffd}[7mx\u{fffd}[2J\u{fffd}");
        check("\u{1b}[38;5;0mx", "\u{fffd}[38;5;0mx");
        check("\u{1b}[+1mx", "\u{fffd}[+1mx");
        check("\u{1b}]0;m\u{7}\u{9b}1m\u{202e}", "\u{fffd}]0;m\u{fffd}\u{fffd}1m\u{fffd}");
        check("\u{1b}[1ä\u{1b}[1m", "\u{fffd}[1ä\u{1b}[1m");
    }

    #[test]
    fn span_shows_its_two_largest_units() {
        let check =
            |milliseconds, expected: &str| assert_eq!(elapsed(Span(milliseconds)), expected);
        check(0, "0.1s");
        check(449, "0.4s");
        check(9_999, "9.9s");
        check(42_000, "42s");
        check(252_000, "4m 12s");
        check(7_380_000, "2h 03m");
        check(273_600_000, "3d 4h");
    }

    #[test]
    fn long_text_is_truncated_by_columns() {
        let check = |text: &str, columns, end: &str, front: &str| {
            assert_eq!(
                (&*truncate_end(text, columns), &*truncate_start(text, columns)),
                (end, front)
            );
        };
        check("short", 5, "short", "short");
        check("longer", 5, "long…", "…nger");
        check("検査する", 8, "検査する", "検査する");
        check("検査する", 6, "検査…", "…する");
        check("検査する", 5, "検査…", "…する");
        check("検査する", 4, "検…", "…る");
        check("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…", "…e\u{301}");
        check("x", 0, "…", "…");
        assert_eq!(pad("検査", 6), "検査  ");
    }
}
