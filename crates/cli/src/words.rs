//! Words as they are shown: safe to show, in the room that there is.

use std::borrow::Cow;

use raymond_core::time::Span;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::secrets::redacted;

/// The text without secrets, and without what a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    redacted(text).chars().map(|c| if is_obeyed(c) { '\u{fffd}' } else { c }).collect()
}

/// Whether a terminal would obey it: control characters, and marks that turn the direction of
/// writing.
pub(crate) fn is_obeyed(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How long something took: `0.4s`, `42s`, `4m 12s`, `2h 03m`, `3d 4h`. Nothing takes no time.
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

/// The text in at most so many columns of a terminal; the end of a longer one is cut off.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return text.into();
    }
    let kept = taken(text.chars(), columns.saturating_sub(1));
    format!("{}…", kept.into_iter().collect::<String>()).into()
}

/// The same, but it is the beginning that is cut off: what tells names apart is their end.
pub(crate) fn cut_front(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return text.into();
    }
    let kept = taken(text.chars().rev(), columns.saturating_sub(1));
    // An accent without its letter would stand on the mark of the cut.
    let kept = kept.into_iter().rev().skip_while(|c| c.width() == Some(0));
    format!("…{}", kept.collect::<String>()).into()
}

/// The text, and blanks up to so many columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// The characters that have room in so many columns.
fn taken(characters: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
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

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let check = |text: &str, expected: &str| assert_eq!(plain(text), expected);
        check("plain ä\n\ttext", "plain ä\n\ttext");
        check("\u{1b}]0;x\u{7}y", "\u{fffd}]0;x\u{fffd}y");
        check("a\u{202e}b\u{2066}c", "a\u{fffd}b\u{fffd}c");
        check("\u{9b}2J\r", "\u{fffd}2J\u{fffd}");
    }

    #[test]
    fn a_span_is_told_in_its_two_largest_units() {
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
    fn what_is_too_long_is_cut_by_columns_not_by_characters() {
        let check = |text: &str, columns, end: &str, front: &str| {
            assert_eq!((&*cut(text, columns), &*cut_front(text, columns)), (end, front));
        };
        check("short", 5, "short", "short");
        check("longer", 5, "long…", "…nger");
        check("検査する", 8, "検査する", "検査する");
        check("検査する", 6, "検査…", "…する");
        check("検査する", 5, "検査…", "…する");
        check("検査する", 4, "検…", "…る");
        check("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…", "…e\u{301}");
        check("x", 0, "…", "…");
        assert_eq!(padded("検査", 6), "検査  ");
    }
}
