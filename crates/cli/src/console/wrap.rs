//! Breaks lines at blanks, where a terminal would break them in the middle of a word.
//!
//! What goes on stands below what it continues. A command is not broken, however long it is: whoever
//! copies it wants all of it, and a terminal knows that a line which it broke itself is one.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A blank at which nothing is broken. What is shown holds no control characters of its own.
const GLUE: char = '\u{1}';
/// With less room than this behind the indent, there is hardly any indent.
const LEAST: usize = 20;
const HARDLY_ANY: usize = 2;

/// Where a text is to stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineLayout {
    /// The columns that there are.
    pub(crate) edge: usize,
    /// The columns that are taken on the first line.
    pub(crate) taken: usize,
    /// Where further lines begin.
    pub(crate) indent: usize,
}

/// The text, never to be broken.
pub(crate) fn whole(text: &str) -> String {
    text.replace(' ', GLUE.encode_utf8(&mut [0; 4]))
}

/// The text in lines that have room.
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
    /// How much of the current line is taken.
    column: usize,
}

impl Page {
    fn new(LineLayout { edge, taken, indent }: LineLayout) -> Self {
        let indent = if edge < indent + LEAST { HARDLY_ANY } else { indent };
        Self { text: String::new(), edge, indent, column: taken }
    }

    fn next_line(&mut self) {
        self.text.push('\n');
        self.text.push_str(&" ".repeat(self.indent));
        self.column = self.indent;
    }

    /// A word, on the next line when this one has no room for it.
    fn word(&mut self, blanks: usize, word: &str) {
        let shown = word.replace(GLUE, " ");
        let width = shown.width();
        if self.column + blanks + width <= self.edge {
            self.text.push_str(&" ".repeat(blanks));
            self.column += blanks;
        } else if self.column > self.indent {
            self.next_line();
        }
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
    fn lines_are_broken_at_blanks_and_go_on_below_their_text() {
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
    fn where_there_is_hardly_any_room_there_is_hardly_any_indent() {
        let room = LineLayout { edge: 24, taken: 0, indent: 10 };
        assert_eq!(wrapped("one two three four five six", room), "one two three four five\n  six");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_nothing_but_blanks_is_lost(
            text in "([a-z検]{0,30}[ \n]{0,2}){0,12}",
            edge in 24_usize..60,
        ) {
            let lines = wrapped(&text, LineLayout { edge, taken: 0, indent: 4 });
            prop_assert!(lines.lines().all(|line| line.width() <= edge), "{}", lines);
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&lines), letters(&text));
        }

        #[test]
        fn without_an_edge_a_line_stays_as_it_is(text in "[a-z ]{0,80}[a-z]") {
            let room = LineLayout { edge: usize::MAX, taken: 0, indent: 4 };
            prop_assert_eq!(wrapped(&text, room), text);
        }
    }
}
