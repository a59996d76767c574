//! Wraps lines at blanks, where a terminal would break them in the middle of a word.
//!
//! Continued lines are indented below the text. A command is never broken, because the user copies
//! it: a terminal that breaks a line itself still copies it as one line.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Stands for a blank inside a command. Shown text contains no control characters, so it is
/// unambiguous.
const GLUE: char = '\u{1}';
/// Least columns behind the indent; with fewer, the indent shrinks to `SMALLEST_INDENT`.
const LEAST: usize = 20;
const SMALLEST_INDENT: usize = 2;

/// The columns in which a text is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineLayout {
    /// The column at which lines end.
    pub(crate) edge: usize,
    /// The columns that are used already on the first line.
    pub(crate) taken: usize,
    /// The column at which further lines start.
    pub(crate) indent: usize,
}

/// Marks a text so that `wrapped` never breaks it.
pub(crate) fn whole(text: &str) -> String {
    text.replace(' ', GLUE.encode_utf8(&mut [0; 4]))
}

pub(crate) fn wrapped(text: &str, room: LineLayout) -> String {
    let mut page = Page::new(room);
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            page.next_line();
        }
        let mut blanks = 0;
        for word in line.split(' ') {
            if !word.is_empty() {
                page.word(blanks, word);
                blanks = 0;
            }
            blanks += 1;
        }
    }
    page.text
}

struct Page {
    text: String,
    edge: usize,
    indent: usize,
    /// The columns used on the current line.
    column: usize,
}

impl Page {
    fn new(LineLayout { edge, taken, indent }: LineLayout) -> Self {
        let indent = if edge < indent + LEAST { SMALLEST_INDENT } else { indent };
        Self { text: String::new(), edge, indent, column: taken }
    }

    fn next_line(&mut self) {
        self.text.push('\n');
        self.text.push_str(&" ".repeat(self.indent));
        self.column = self.indent;
    }

    /// Adds a word, on the next line if it does not fit.
    fn word(&mut self, blanks: usize, word: &str) {
        let shown = word.replace(GLUE, " ");
        let width = shown.width();
        if self.column + blanks + width <= self.edge {
            self.text.push_str(&" ".repeat(blanks));
            self.column += blanks;
        } else if self.column > self.indent {
            self.next_line();
        }
        // A command may exceed the edge, because a broken one could not be copied.
        if self.column + width <= self.edge || word.contains(GLUE) {
            self.text.push_str(&shown);
            self.column += width;
        } else {
            shown.chars().for_each(|character| self.character(character));
        }
    }

    fn character(&mut self, character: char) {
        let width = character.width().unwrap_or(0);
        if width > 0 && self.column + width > self.edge && self.column > self.indent {
            self.next_line();
        }
        self.text.push(character);
        self.column += width;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_wrapped_at_blanks_and_indented() {
        let check = |text: &str, expected: &str| {
            let room = LineLayout { edge: 30, taken: 8, indent: 6 };
            assert_eq!(wrapped(text, room), expected);
        };
        check("", "");
        check("as much as has room on it", "as much as has room on\n      it");
        check("a  gap stays", "a  gap stays");
        check("  and so does an indent", "  and so does an\n      indent");
        check("one\ntwo", "one\n      two");
        check(
            "a word/that/is/longer/than/the/line",
            "a\n      word/that/is/longer/than\n      /the/line",
        );
        check("検査検査検査 検査検査検査", "検査検査検査\n      検査検査検査");
        check(&format!("run {}", whole("raymond resume r -d")), "run\n      raymond resume r -d");
        let command = "raymond resume r --allow 'Bash(make)'";
        check(&format!("to {} or", whole(command)), &format!("to\n      {command}\n      or"));
    }

    #[test]
    fn narrow_terminals_shrink_the_indent() {
        let room = LineLayout { edge: 24, taken: 0, indent: 10 };
        assert_eq!(wrapped("one two three four five six", room), "one two three four five\n  six");
    }

    proptest! {
        #[test]
        fn wrapping_loses_only_blanks(
            text in "([a-z検]{0,30}[ \n]{0,2}){0,12}",
            edge in 24_usize..60,
        ) {
            let lines = wrapped(&text, LineLayout { edge, taken: 0, indent: 4 });
            prop_assert!(lines.lines().all(|line| line.width() <= edge), "{}", lines);
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&lines), letters(&text));
        }

        #[test]
        fn line_without_an_edge_is_unchanged(text in "[a-z ]{0,80}[a-z]") {
            let room = LineLayout { edge: usize::MAX, taken: 0, indent: 4 };
            prop_assert_eq!(wrapped(&text, room), text);
        }
    }
}
