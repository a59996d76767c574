//! Finds code in a message: fences and backtick spans.
//!
//! A fence is a line that starts, after any indentation, with three or more backticks or tildes. It
//! ends at a line that contains only the same mark, at least as often, or at the end of the text.
//! As in `CommonMark`, a backtick fence has no further backtick on its line (that would be a span).
//! A span runs from a row of backticks to the next row of the same length, unless a blank line or a
//! fence comes first. The rest of Markdown (lists, quotes, escapes) is not recognized.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2, memrchr_iter};

/// The code of a text, from some place on, as ordered ranges of bytes that do not touch.
#[derive(Debug, Default)]
pub(super) struct Code {
    regions: Vec<Range<usize>>,
}

impl Code {
    /// Finds the code of `text`. No mark is before `first`, and code that ends before `from` is
    /// left out.
    pub(super) fn of(text: &str, first: usize, from: usize) -> Self {
        let mut finder = Finder::new(text.as_bytes(), from);
        finder.run(first);
        Self { regions: finder.regions }
    }

    /// Returns whether the byte at `place` is code.
    pub(super) fn holds(&self, place: usize) -> bool {
        let next = self.regions.partition_point(|region| region.end <= place);
        self.regions.get(next).is_some_and(|region| region.start <= place)
    }
}

/// A row of backticks that opens a span if another row of its length follows.
struct Row {
    start: usize,
    length: usize,
    /// The number of regions before it.
    before: usize,
}

struct Finder<'a> {
    bytes: &'a [u8],
    /// Code that ends before this place is not needed.
    from: usize,
    /// The start of the paragraph that contains `from`. Earlier spans end before it.
    paragraph: usize,
    /// The code found so far. Spans after an open row are valid only as long as no row closes it.
    regions: Vec<Range<usize>>,
    /// The open rows of the current paragraph, all of different lengths.
    open: Vec<Row>,
    /// Whether a row of this length is open, so that no search through `open` is needed.
    is_open: Vec<bool>,
    /// The end of the last row of backticks.
    last_row: usize,
}

impl<'a> Finder<'a> {
    fn new(bytes: &'a [u8], from: usize) -> Self {
        let paragraph = paragraph(bytes, from);
        let (regions, open, is_open) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, from, paragraph, regions, open, is_open, last_row: 0 }
    }

    fn run(&mut self, first: usize) {
        let mut at = first;
        while let Some(offset) = memchr2(b'`', b'~', &self.bytes[at..]) {
            let start = at + offset;
            let end = self.row_end(start);
            at = end;
            if self.opens_fence(start, end) {
                // A span cannot cross a fence, so no later row may close a row before it.
                self.end_paragraph();
                at = self.fence_end(start, end);
                self.keep(start..at);
            } else if self.bytes[start] == b'`' && start >= self.paragraph {
                self.add_row(start, end);
            }
        }
    }

    fn row_end(&self, start: usize) -> usize {
        let mark = self.bytes[start];
        let others = self.bytes[start..].iter().position(|byte| *byte != mark);
        others.map_or(self.bytes.len(), |length| start + length)
    }

    fn opens_fence(&self, start: usize, end: usize) -> bool {
        end - start >= 3
            && self.starts_line(start)
            && (self.bytes[start] == b'~'
                || memchr2(b'`', b'\n', &self.bytes[end..])
                    .is_none_or(|offset| self.bytes[end + offset] == b'\n'))
    }

    fn fence_end(&self, start: usize, end: usize) -> usize {
        let mut at = end;
        while let Some(offset) = memchr(self.bytes[start], &self.bytes[at..]) {
            let row = at + offset;
            at = self.row_end(row);
            if at - row >= end - start && self.starts_line(row) && self.ends_line(at) {
                return at;
            }
        }
        self.bytes.len()
    }

    fn starts_line(&self, place: usize) -> bool {
        let before = self.bytes[..place].iter().rev();
        let other = before.copied().find(|byte| !is_blank(*byte));
        other.is_none_or(|byte| byte == b'\n')
    }

    fn ends_line(&self, place: usize) -> bool {
        let after = self.bytes[place..].iter();
        let other = after.copied().find(|byte| !is_blank(*byte));
        other.is_none_or(|byte| byte == b'\n')
    }

    fn add_row(&mut self, start: usize, end: usize) {
        // Only rows open or close spans, so blank lines are searched for between rows and not in
        // every line.
        if !self.open.is_empty() && has_blank_line(&self.bytes[self.last_row..start]) {
            self.end_paragraph();
        }
        self.last_row = end;
        let length = end - start;
        if self.is_open.get(length) == Some(&true) {
            self.close_span(length, end);
            return;
        }
        // The list is as long as the longest row, so no text can make it longer than itself.
        if self.is_open.len() <= length {
            self.is_open.resize(length + 1, false);
        }
        self.is_open[length] = true;
        self.open.push(Row { start, length, before: self.regions.len() });
    }

    /// Ends the span of the open row of this length. Rows and spans inside it are part of its code.
    fn close_span(&mut self, length: usize, end: usize) {
        // Every row is popped once, so nested rows of many lengths cost linear time together.
        while let Some(row) = self.open.pop() {
            self.is_open[row.length] = false;
            if row.length == length {
                self.regions.truncate(row.before);
                self.keep(row.start..end);
                return;
            }
        }
    }

    fn keep(&mut self, region: Range<usize>) {
        if region.end > self.from {
            self.regions.push(region);
        }
    }

    fn end_paragraph(&mut self) {
        for row in self.open.drain(..) {
            self.is_open[row.length] = false;
        }
    }
}

/// Returns whether a byte is white space that does not end a line.
pub(super) const fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() && byte != b'\n'
}

/// Returns the start of the paragraph of a place: the end of the last blank line before it.
fn paragraph(bytes: &[u8], place: usize) -> usize {
    let ends_blank_line = |newline: &usize| {
        let mut line = bytes[..*newline].iter().rev();
        line.find(|byte| !is_blank(**byte)) == Some(&b'\n')
    };
    memrchr_iter(b'\n', &bytes[..place]).find(ends_blank_line).unwrap_or(0)
}

fn has_blank_line(bytes: &[u8]) -> bool {
    // Most spans are short, and even a search through nothing costs its setup.
    bytes.len() > 1
        && memchr_iter(b'\n', bytes).any(|newline| {
            let mut line = bytes[newline + 1..].iter();
            line.find(|byte| !is_blank(**byte)) == Some(&b'\n')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let code = Code::of(text, 0, 0);
        let found: Vec<&str> = code.regions.iter().map(|r| &text[r.clone()]).collect();
        assert_eq!(found, expected, "code of {text:?}");
        let first = text.find(['`', '~']).unwrap_or(text.len());
        for from in 0..=text.len() {
            let later = Code::of(text, first, from);
            let holds = |code: &Code| -> Vec<bool> {
                (from..text.len()).map(|place| code.holds(place)).collect()
            };
            assert_eq!(holds(&later), holds(&code), "code of {text:?} from {from} on");
        }
    }

    #[test]
    fn fences_end_at_the_same_mark() {
        check("a\n```\nx\n```\nb", &["```\nx\n```"]);
        check("~~~\nx\n~~~", &["~~~\nx\n~~~"]);
        check("```rust\nx\n```", &["```rust\nx\n```"]);
        check("```\r\nx\r\n```\r\ny", &["```\r\nx\r\n```"]);
        check("```\nx\n~~~\n```\ny", &["```\nx\n~~~\n```"]);
        check("````\n```\n````\ny", &["````\n```\n````"]);
        check("```\nx\n`````\ny", &["```\nx\n`````"]);
        check("```\nx\n``` no\n```\ny", &["```\nx\n``` no\n```"]);
        check("```\nx ```\n```\ny", &["```\nx ```\n```"]);
        check("~~~ a ~ `b`\nx\n~~~\ny", &["~~~ a ~ `b`\nx\n~~~"]);
    }

    #[test]
    fn fences_may_be_indented_by_anything() {
        check("  \t       ```\nx\n \t```  \ny", &["```\nx\n \t```"]);
        check("- ```\nx ```\ny", &["```\nx ```"]);
    }

    #[test]
    fn an_unclosed_fence_runs_to_the_end() {
        check("a\n```\nb\n\nc `d", &["```\nb\n\nc `d"]);
        check("~~~~\nb\n~~~\n", &["~~~~\nb\n~~~\n"]);
        check("a\n```", &["```"]);
    }

    #[test]
    fn short_or_inner_tildes_are_text() {
        check("~~\nx\n~~", &[]);
        check("a ~~~\nx\n", &[]);
    }

    #[test]
    fn spans_end_at_a_row_of_equal_length() {
        check("a `b` c ``d`` e", &["`b`", "``d``"]);
        check("`a ``b`` c` d", &["`a ``b`` c`"]);
        check("``a ` b`` c", &["``a ` b``"]);
        check("a ` b", &[]);
        check("`a\nb` c", &["`a\nb`"]);
        check("`a` ` `b` c", &["`a`", "` `"]);
        check("```a``` b", &["```a```"]);
        check("``` a `` b ``` c", &["``` a `` b ```"]);
        check("``a `b` `c` d``", &["``a `b` `c` d``"]);
        check("``a `b` ```c` `d` ```", &["`b`", "```c` `d` ```"]);
        check("`a` ``b `c` ```d `e``", &["`a`", "``b `c` ```d `e``"]);
    }

    #[test]
    fn spans_end_at_blank_lines_and_fences() {
        check("`a\n\nb` c", &[]);
        check("`a\n \t\r\nb` c", &[]);
        check("`a\r\n\r\nb` `c`", &["` `"]);
        check("`a\n```\nb\n```\nc` d", &["```\nb\n```"]);
        check("`a\n\n`b` c", &["`b`"]);
    }

    #[test]
    fn rows_of_earlier_paragraphs_are_skipped() {
        let text = "``` ``\n \n` a <goto>";
        let mut finder = Finder::new(text.as_bytes(), text.len());
        finder.run(0);
        assert_eq!(finder.is_open, [false, true], "no longer row was looked at");
    }

    #[test]
    fn places_in_a_region_are_code() {
        let text = "a `b` c `d` `e` f";
        let code = Code::of(text, 0, 0);
        let held: Vec<usize> = (0..text.len() + 2).filter(|place| code.holds(*place)).collect();
        assert_eq!(held, [2, 3, 4, 8, 9, 10, 12, 13, 14], "{text:?}");
        assert!(!Code::default().holds(0));
        assert_eq!(Code::of(text, 0, 11).regions.len(), 1, "earlier regions are left out");
    }
}
