//! The live rows on the screen: below the last line, until new lines push them down.
//!
//! A frame is one text that removes the old rows, prints the new lines, and draws the rows again.
//! The cursor rests below the last row and is never hidden, so the terminal stays usable even if
//! this process is killed.

use std::fmt::Write as _;

use super::rows::Drawn;

/// Marks of synchronized output: a terminal that knows them shows a frame as a whole; others ignore
/// them.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const CLEAR_BELOW: &str = "\u{1b}[J";
const CLEAR_RIGHT: &str = "\u{1b}[K";

/// The rows that are on the screen.
#[derive(Debug, Default)]
pub(super) struct Region {
    rows: Vec<Drawn>,
    columns: usize,
}

impl Region {
    /// Returns the text that prints `said` above `rows`; `None` if the screen shows that already.
    pub(super) fn frame(
        &mut self,
        said: &[String],
        rows: Vec<Drawn>,
        columns: usize,
    ) -> Option<String> {
        if said.is_empty() && rows == self.rows && columns == self.columns {
            return None;
        }
        let mut frame = BEGIN.to_owned();
        if let up @ 1.. = self.height(columns) {
            // The cursor is below the last row. Counting up from there also works after the screen
            // has scrolled.
            write!(frame, "\r\u{1b}[{up}A").ok()?;
        }
        // If only the rows change, they are overwritten in place. Clearing first would flicker.
        if !said.is_empty() || columns != self.columns {
            frame.push_str(CLEAR_BELOW);
        }
        for line in said {
            write!(frame, "{}\r\n", line.replace('\n', "\r\n")).ok()?;
        }
        for row in &rows {
            write!(frame, "{}{CLEAR_RIGHT}\r\n", row.styled()).ok()?;
        }
        frame.push_str(CLEAR_BELOW);
        frame.push_str(END);
        (self.rows, self.columns) = (rows, columns);
        Some(frame)
    }

    /// Forgets the rows, because another program has written to the screen.
    pub(super) fn forget(&mut self) {
        self.rows.clear();
    }

    /// Returns the lines that the rows take now: a terminal that became narrower has wrapped them.
    fn height(&self, columns: usize) -> usize {
        self.rows.iter().map(|row| row.width().div_ceil(columns.max(1)).max(1)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use anstyle::Style;

    use super::*;

    /// Returns the screen of a terminal after these frames, and the row of its cursor.
    fn shown(frames: &[Option<String>]) -> (Vec<String>, u16) {
        let (rows, columns) = (8, 20);
        let size = |n| NonZero::new(n).unwrap();
        let mut terminal = vt100::Parser::new(size(rows), size(columns), 0);
        for frame in frames.iter().flatten() {
            terminal.process(frame.as_bytes());
        }
        let screen = terminal.screen();
        let lines: Vec<String> =
            screen.rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
        let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        assert!(!screen.hide_cursor());
        (lines[..end].to_vec(), screen.cursor_position().0)
    }

    fn rows(texts: &[&str]) -> Vec<Drawn> {
        texts.iter().map(|text| Drawn::plain(Style::new(), (*text).to_owned())).collect()
    }

    fn said(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn lines_are_above_the_rows() {
        let mut region = Region::default();
        let mut frames = vec![region.frame(&said(&["one"]), rows(&["a", "b"]), 20)];
        assert_eq!(shown(&frames), (said(&["one", "a", "b"]), 3));
        frames.push(region.frame(&said(&["two", "three\nmore"]), rows(&["c"]), 20));
        assert_eq!(shown(&frames), (said(&["one", "two", "three", "more", "c"]), 5));
        frames.push(region.frame(&[], rows(&["longer", "d", "e"]), 20));
        frames.push(region.frame(&[], rows(&["short"]), 20));
        assert_eq!(shown(&frames).0[4..], ["short"]);
        frames.push(region.frame(&said(&["end"]), Vec::new(), 20));
        assert_eq!(shown(&frames), (said(&["one", "two", "three", "more", "end"]), 5));
    }

    #[test]
    fn full_width_line_keeps_its_last_character() {
        let mut region = Region::default();
        let wide = "x".repeat(20);
        let frames = [
            region.frame(&said(&[&wide]), rows(&["a"]), 20),
            region.frame(&said(&[&wide]), rows(&["a"]), 20),
        ];
        assert_eq!(shown(&frames).0, [&wide, &wide, "a"]);
    }

    #[test]
    fn nothing_is_written_when_nothing_changed() {
        let mut region = Region::default();
        assert!(region.frame(&[], rows(&["a"]), 20).is_some());
        assert_eq!(region.frame(&[], rows(&["a"]), 20), None);
        assert!(region.frame(&[], rows(&["a"]), 19).is_some());
        assert!(region.frame(&said(&["x"]), rows(&["a"]), 19).is_some());
    }

    #[test]
    fn wrapped_rows_are_removed_completely() {
        let check = |columns: usize, up: usize| {
            let mut region = Region::default();
            region.frame(&[], rows(&["0123456789", "検査検査", ""]), 20);
            let frame = region.frame(&[], rows(&["a"]), columns).unwrap();
            assert!(frame.contains(&format!("\u{1b}[{up}A\u{1b}[J")), "{frame:?}");
        };
        check(10, 3);
        check(9, 4);
        check(5, 5);
        check(4, 6);
        check(100, 3);
    }

    #[test]
    fn overwritten_rows_are_left_alone() {
        let mut region = Region::default();
        region.frame(&[], rows(&["a", "b"]), 20);
        region.forget();
        let frame = region.frame(&said(&["x"]), Vec::new(), 20).unwrap();
        assert_eq!(frame, format!("{BEGIN}{CLEAR_BELOW}x\r\n{CLEAR_BELOW}{END}"));
    }
}
