//! Finds tags in a text, in linear time whatever the text holds, and borrows from it.
//!
//! First the tags outside code are read. Only when there is none are tags in code looked at, and of
//! those only the ones whose first and last line hold nothing else. An opening is in code when its
//! `<` is; where its close stands does not matter. Every opening that counts is either a tag or a
//! malformed one: nothing that looks like a transition goes unnoticed.

mod borrowed_tag;
mod code;
mod entity;
mod opening;
mod payload;
mod tag_problem;
#[cfg(test)]
mod tests;

use std::ops::Range;

use memchr::{memchr, memchr3, memrchr};

use super::tag::TagName;
use crate::protocol::source::Source;
use code::{Code, is_blank};
use opening::Opening;
use payload::{Counting, Payloads, close_end};

pub use borrowed_tag::{BorrowedTag, Invocation, Kind};
pub use tag_problem::TagProblem;

/// Reads the tags of `text`, in order.
pub fn scan(text: &str, source: Source) -> Scan<'_> {
    // Prose holds no mark for long: it is passed over once.
    let mark = memchr3(b'<', b'`', b'~', text.as_bytes()).unwrap_or(text.len());
    let first = opening::next(text.as_bytes(), mark, source);
    // Most of a text's cost is finding its code: it is not looked for when no tag could be in it.
    let code = match (source, first) {
        (Source::Message | Source::Iteration, Some((start, _))) => Code::of(text, mark, start),
        (Source::Message | Source::Iteration, None) | (Source::Script, _) => Code::default(),
    };
    Scan {
        text,
        source,
        code,
        payloads: Payloads::new(text.as_bytes(), source),
        at: first.map_or(text.len(), |(start, _)| start),
        counting: Counting::OutsideCode,
        found_any: false,
        in_code: false,
        line_end: None,
    }
}

/// A tag that counts, well formed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'a> {
    /// Which tag it is.
    pub name: TagName,
    /// From its `<` to the end of its close, or of its opening when there is no close.
    pub span: Range<usize>,
    /// What it says, or what is wrong with it.
    pub tag: Result<BorrowedTag<'a>, TagProblem<'a>>,
    opening_end: usize,
}

impl Found<'_> {
    /// Where reading goes on.
    fn resume(&self) -> usize {
        if self.tag.is_ok() || self.name == TagName::Result {
            self.span.end
        } else {
            self.opening_end
        }
    }
}

/// An iterator over the tags of a text.
#[derive(Debug)]
pub struct Scan<'a> {
    text: &'a str,
    source: Source,
    code: Code,
    payloads: Payloads<'a>,
    at: usize,
    counting: Counting,
    found_any: bool,
    in_code: bool,
    /// The last place that was asked for, and whether its line ends there: results may share one.
    line_end: Option<(usize, bool)>,
}

impl<'a> Iterator for Scan<'a> {
    type Item = Found<'a>;

    fn next(&mut self) -> Option<Found<'a>> {
        loop {
            let next = opening::next(self.text.as_bytes(), self.at, self.source);
            let Some((start, name)) = next else {
                self.at = self.text.len();
                if self.found_any || !self.in_code || self.counting == Counting::Everywhere {
                    return None;
                }
                self.start_again_in_code();
                continue;
            };
            if !self.may_count(start) {
                self.in_code = true;
                self.at = start + 1;
                continue;
            }
            let found = self.read(start, name);
            if self.counts(found.span.end) {
                self.at = found.resume();
                self.found_any = true;
                return Some(found);
            }
            self.in_code = true;
            self.at = found.opening_end;
        }
    }
}

impl<'a> Scan<'a> {
    /// Whether a tag stood in code and did not count; complete once the iterator has ended.
    pub fn in_code(&self) -> bool {
        self.in_code
    }

    fn start_again_in_code(&mut self) {
        self.counting = Counting::Everywhere;
        self.at = 0;
        self.in_code = false;
        self.payloads = Payloads::new(self.text.as_bytes(), self.source);
    }

    /// Whether an opening at `start` may count, by what stands before it.
    fn may_count(&self, start: usize) -> bool {
        match self.counting {
            Counting::OutsideCode => !self.code.holds(start),
            Counting::Everywhere => is_margin(self.text.as_bytes()[..start].iter().rev()),
        }
    }

    /// Whether a tag that ends at `end` counts, by what stands after it.
    fn counts(&mut self, end: usize) -> bool {
        if self.counting == Counting::OutsideCode {
            return true;
        }
        if let Some((place, known)) = self.line_end
            && place == end
        {
            return known;
        }
        let counts = is_margin(self.text.as_bytes()[end..].iter());
        self.line_end = Some((end, counts));
        counts
    }

    fn read(&mut self, start: usize, name: TagName) -> Found<'a> {
        let name_end = start + 1 + name.as_str().len();
        let opening = Opening::read(self.text, name_end);
        let opening_end = opening.as_ref().map_or(name_end, |opening| opening.end);
        let (end, tag) = match (name, opening) {
            (TagName::Result, opening) => self.read_result(opening_end, opening),
            (_, Ok(opening)) => read_transition(self.text, name, opening),
            (_, Err(problem)) => (name_end, Err(problem)),
        };
        Found { name, span: start..end, tag, opening_end }
    }

    fn read_result(
        &mut self,
        opening_end: usize,
        opening: Result<Opening<'a>, TagProblem<'a>>,
    ) -> (usize, Result<BorrowedTag<'a>, TagProblem<'a>>) {
        let Some(close) = self.payloads.close(opening_end) else {
            let problem = opening.map_or_else(
                |problem| problem,
                |opening| opening.problem.unwrap_or(TagProblem::NoClose(TagName::Result)),
            );
            return (opening_end, Err(problem));
        };
        if self.payloads.opens_again(opening_end, &close) {
            return (close.end, Err(TagProblem::OpenedTwice));
        }
        let further = self.payloads.further_close(&close, &self.code, self.counting);
        if let Some(end) = further {
            return (end, Err(TagProblem::ClosedTwice));
        }
        let payload = &self.text[opening_end..close.start];
        let tag = opening.and_then(|opening| BorrowedTag::of(TagName::Result, opening, payload));
        (close.end, tag)
    }
}

/// Reads a tag that names a state, from the end of its opening.
fn read_transition<'a>(
    text: &'a str,
    name: TagName,
    opening: Opening<'a>,
) -> (usize, Result<BorrowedTag<'a>, TagProblem<'a>>) {
    let opening_end = opening.end;
    let Some((target, end)) = target_after(text, opening_end, name) else {
        return (opening_end, Err(opening.problem.unwrap_or(TagProblem::NoClose(name))));
    };
    // Mistakes of the opening come first: they often explain the others.
    let tag = BorrowedTag::of(name, opening, target).and_then(|tag| match target {
        "" => Err(TagProblem::NoTarget),
        target if target.len() > TagProblem::LONGEST_NAME => Err(TagProblem::TooLong(None)),
        _ => Ok(tag),
    });
    (end, tag)
}

/// The trimmed target after an opening, and the end of its close. A target holds no `<`, so the
/// close is the next `<` or there is none.
fn target_after(text: &str, from: usize, name: TagName) -> Option<(&str, usize)> {
    let length = memchr(b'<', &text.as_bytes()[from..])?;
    let end = close_end(text.as_bytes(), from + length, name.as_str())?;
    let target = text[from..from + length].trim();
    let one_line = memrchr(b'\n', target.as_bytes()).is_none();
    one_line.then_some((target, end))
}

/// Whether only white space and backticks stand between here and the border of the line.
fn is_margin<'a>(mut beside: impl Iterator<Item = &'a u8>) -> bool {
    beside.find(|byte| !is_blank(**byte) && **byte != b'`').is_none_or(|byte| *byte == b'\n')
}
