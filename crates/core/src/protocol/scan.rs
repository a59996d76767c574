//! Finds the tags of a text in linear time, for any text, without copying it.
//!
//! The first pass reads tags outside code. Only if there are none, a second pass reads tags in
//! code, and only tags whose first and last line contain nothing else. An opening is in code if its
//! `<` is; the place of its close does not matter. Every opening that counts is either a tag or a
//! malformed tag, so that nothing that looks like a transition is ignored silently.

mod code;
mod opening;
mod payload;
#[cfg(test)]
mod tests;

use std::ops::Range;

use memchr::{memchr, memchr3, memrchr};

use super::tags::{Body, BorrowedTag, TagName, TagProblem};
use crate::protocol::source::Source;
use code::{Code, is_blank};
use opening::Opening;
use payload::{Counting, Payloads, close_end};

/// Reads the tags of `text`, in order.
pub fn scan(text: &str, source: Source) -> Scan<'_> {
    // Plain text has no marks for long stretches, so one fast search skips it.
    let mark = memchr3(b'<', b'`', b'~', text.as_bytes()).unwrap_or(text.len());
    let first = opening::next(text.as_bytes(), mark, source);
    // Finding code is the most expensive part, so it is skipped if no tag could be in code.
    let code = match (source, first) {
        (Source::Message | Source::Iteration, Some((start, _))) => Code::of(text, mark, start),
        (Source::Message | Source::Iteration, None) | (Source::Script, _) => Code::default(),
    };
    Scan {
        text,
        source,
        code,
        results: None,
        questions: None,
        at: first.map_or(text.len(), |(start, _)| start),
        counting: Counting::OutsideCode,
        found_any: false,
        in_code: false,
        line_end: None,
    }
}

/// A tag that counts, well formed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTag<'a> {
    pub name: TagName,
    /// From its `<` to the end of its close, or of its opening if there is no close.
    pub span: Range<usize>,
    /// The tag, or the problem that makes it malformed.
    pub tag: Result<BorrowedTag<'a>, TagProblem<'a>>,
    opening_end: usize,
}

impl FoundTag<'_> {
    /// Returns the place where the scan continues.
    fn resume(&self) -> usize {
        if self.tag.is_ok() || matches!(self.name.spec().body, Body::Payload(_)) {
            self.span.end
        } else {
            // A valid tag may follow inside a malformed one. A raw payload has no tags inside.
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
    // Made when they are needed: most texts have no question.
    results: Option<Payloads<'a>>,
    questions: Option<Payloads<'a>>,
    at: usize,
    counting: Counting,
    found_any: bool,
    in_code: bool,
    /// The last place tested by `counts`, with the answer: many results may share one line end, and
    /// testing it for each would be quadratic.
    line_end: Option<(usize, bool)>,
}

impl<'a> Iterator for Scan<'a> {
    type Item = FoundTag<'a>;

    fn next(&mut self) -> Option<FoundTag<'a>> {
        loop {
            let next = opening::next(self.text.as_bytes(), self.at, self.source);
            let Some((start, name)) = next else {
                self.at = self.text.len();
                // Any tag outside code, even a malformed one, shows where the author writes real
                // tags. So the second pass runs only without one, and no text is read more than
                // twice.
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
            // Beside other text, a tag in code is a quotation. A tag inside it may still be alone
            // on its lines.
            self.at = found.opening_end;
        }
    }
}

impl<'a> Scan<'a> {
    /// Returns whether a tag in code did not count. Complete once the iterator has ended.
    pub fn in_code(&self) -> bool {
        self.in_code
    }

    fn start_again_in_code(&mut self) {
        self.counting = Counting::Everywhere;
        self.at = 0;
        // Tags that the first pass skipped may count now, so the second pass finds out again which
        // do not.
        self.in_code = false;
        // `Payloads` answers only in the order of the text, and the scan is back at the top.
        (self.results, self.questions) = (None, None);
    }

    /// Returns whether an opening at `start` may count, judged by the text before it.
    fn may_count(&self, start: usize) -> bool {
        match self.counting {
            Counting::OutsideCode => !self.code.holds(start),
            Counting::Everywhere => is_margin(self.text.as_bytes()[..start].iter().rev()),
        }
    }

    /// Returns whether a tag that ends at `end` counts, judged by the text after it.
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

    fn read(&mut self, start: usize, name: TagName) -> FoundTag<'a> {
        let name_end = start + 1 + name.as_str().len();
        let opening = Opening::read(self.text, name_end);
        let opening_end = opening.as_ref().map_or(name_end, |opening| opening.end);
        let (end, tag) = match (name.spec().body, opening) {
            (Body::Payload(_), opening) => self.read_payload(name, opening_end, opening),
            (Body::Target, Ok(opening)) => read_target(self.text, name, opening),
            (Body::Target, Err(problem)) => (name_end, Err(problem)),
        };
        FoundTag { name, span: start..end, tag, opening_end }
    }

    fn read_payload(
        &mut self,
        name: TagName,
        opening_end: usize,
        opening: Result<Opening<'a>, TagProblem<'a>>,
    ) -> (usize, Result<BorrowedTag<'a>, TagProblem<'a>>) {
        let place = if name == TagName::Ask { &mut self.questions } else { &mut self.results };
        let make = || Payloads::new(self.text.as_bytes(), self.source, name);
        let payloads = place.get_or_insert_with(make);
        let Some(close) = payloads.close(opening_end) else {
            let problem = opening.map_or_else(
                |problem| problem,
                |opening| opening.problem.unwrap_or(TagProblem::NoClose(name)),
            );
            return (opening_end, Err(problem));
        };
        // Nothing shows which opening was meant, and a wrong payload would silently become a
        // result.
        if payloads.opens_again(opening_end, &close) {
            return (close.end, Err(TagProblem::OpenedTwice(name)));
        }
        let further = payloads.further_close(&close, &self.code, self.counting);
        if let Some(end) = further {
            return (end, Err(TagProblem::ClosedTwice(name)));
        }
        let payload = &self.text[opening_end..close.start];
        let tag = opening.and_then(|opening| opening.tag(name, payload));
        (close.end, tag)
    }
}

/// Reads a tag that names a state, from the end of its opening.
fn read_target<'a>(
    text: &'a str,
    name: TagName,
    opening: Opening<'a>,
) -> (usize, Result<BorrowedTag<'a>, TagProblem<'a>>) {
    let opening_end = opening.end;
    let Some((target, end)) = target_after(text, opening_end, name) else {
        return (opening_end, Err(opening.problem.unwrap_or(TagProblem::NoClose(name))));
    };
    // Problems of the opening come first, because they often cause the others.
    let tag = opening.tag(name, target).and_then(|tag| match target {
        "" => Err(TagProblem::NoTarget),
        target if target.len() > TagProblem::LONGEST_NAME => Err(TagProblem::TooLong(None)),
        _ => Ok(tag),
    });
    (end, tag)
}

/// Returns the trimmed target after an opening, and the end of its close.
fn target_after(text: &str, from: usize, name: TagName) -> Option<(&str, usize)> {
    // A target cannot contain `<`, so the next `<` must begin its close.
    let length = memchr(b'<', &text.as_bytes()[from..])?;
    let end = close_end(text.as_bytes(), from + length, name.as_str())?;
    let target = text[from..from + length].trim();
    // A target of several lines is prose between an unclosed tag and a later close.
    let one_line = memrchr(b'\n', target.as_bytes()).is_none();
    one_line.then_some((target, end))
}

/// Returns whether only white space and backticks are between here and the border of the line.
fn is_margin<'a>(mut beside: impl Iterator<Item = &'a u8>) -> bool {
    beside.find(|byte| !is_blank(**byte) && **byte != b'`').is_none_or(|byte| *byte == b'\n')
}
