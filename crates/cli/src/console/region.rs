//! Where the live rows stand: at the end of what was said, until more is said.
//!
//! A frame is one text that takes the old rows away, says what is new above them, and draws the rows
//! again. The cursor rests below the last row and is never hidden: whatever becomes of this process,
//! the terminal stays usable.

use std::fmt::Write as _;

use super::rows::Drawn;

/// A terminal that knows these marks shows a frame as a whole.
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
    /// What to write so that `said` stands above `rows`; nothing when that is so already.
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
            write!(frame, "\r\u{1b}[{up}A").ok()?;
        }
        // Where only the rows change they are written over: nothing is ever blank in between.
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

    /// Forgets the rows: somebody else has the screen.
    pub(super) fn forget(&mut self) {
        self.rows.clear();
    }

    /// How many lines the rows take now: a terminal that became narrower has wrapped them.
    fn height(&self, columns: usize) -> usize {
        self.rows.iter().map(|row| row.width().div_ceil(columns.max(1)).max(1)).sum()
    }
}
