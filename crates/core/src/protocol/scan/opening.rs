//! Reads the opening of a tag: its name and its attributes, as written.
//!
//! A problem in an attribute does not stop the reading: the opening still ends at its own `>`, so
//! that a tag inside a quoted value is never read as a tag. Only an opening that cannot end (at a
//! `<`, at an unexpected quote, at the end of the text) is abandoned, and the scan continues after
//! its name. This stays linear: each byte is read for at most three openings, one that is outside
//! quotes there, one inside `"` and one inside `'`. An opening outside quotes ends at the next `<`.

use memchr::memchr;

use crate::protocol::source::Source;
use crate::protocol::tags::{BorrowedTag, TagName, TagProblem};

/// An opening that ends with `>`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opening<'a> {
    /// The place after its `>`.
    pub(super) end: usize,
    /// Names with undecoded values, sorted by name unless there is a problem.
    pub(super) attributes: Vec<(&'a str, &'a str)>,
    /// The first problem.
    pub(super) problem: Option<TagProblem<'a>>,
}

/// Bytes that are tested together: two or four vector registers on common processors.
const BLOCK: usize = 64;
/// Blocks after a `<` that are tested as a whole, because markup has many `<` and a search for each
/// would be slow.
const DENSE: usize = 16;

/// The first letters of all tags. A block of text is tested for them at once; the compiler tests a
/// letter that is here twice only once.
const FIRST_LETTERS: [u8; TagName::ALL.len()] = {
    let mut letters = [0; TagName::ALL.len()];
    let mut tag = 0;
    while tag < letters.len() {
        letters[tag] = TagName::ALL[tag].as_str().as_bytes()[0];
        tag += 1;
    }
    letters
};

/// Returns the first opening at or after `from` of a tag that counts in `source`, with its place.
pub(super) fn next(bytes: &[u8], from: usize, source: Source) -> Option<(usize, TagName)> {
    let mut found = next_of_any(bytes, from)?;
    while !source.knows(found.1) {
        found = next_of_any(bytes, found.0 + 1)?;
    }
    Some(found)
}

fn next_of_any(bytes: &[u8], from: usize) -> Option<(usize, TagName)> {
    let mut at = from;
    loop {
        at += memchr(b'<', bytes.get(at..)?)?;
        if let Some(name) = name_at(&bytes[at + 1..]) {
            return Some((at, name));
        }
        at += 1;
        for _ in 0..DENSE {
            let Some(may_open) = may_open(&bytes[at..]) else {
                break;
            };
            if may_open && let Some(found) = first_in_block(bytes, at) {
                return Some(found);
            }
            at += BLOCK;
        }
    }
}

/// Returns whether the first block contains a `<` with the first letter of a tag; `None` if no
/// whole block is left.
fn may_open(bytes: &[u8]) -> Option<bool> {
    let block: &[u8; BLOCK] = bytes.first_chunk()?;
    // The last `<` of the block needs the letter behind the block.
    let after: &[u8; BLOCK] = bytes[1..].first_chunk()?;
    // No branch for each byte, so that the compiler can use vector instructions.
    let pairs = block.iter().zip(after);
    Some(
        pairs
            .fold(false, |any, (byte, letter)| any | ((*byte == b'<') & may_begin_a_name(*letter))),
    )
}

/// Returns whether a tag begins with this letter, without a branch for each tag.
#[expect(clippy::needless_bitwise_bool, reason = "lazy operators branch")]
fn may_begin_a_name(letter: u8) -> bool {
    FIRST_LETTERS.iter().fold(false, |any, first| any | (letter == *first))
}

fn first_in_block(bytes: &[u8], at: usize) -> Option<(usize, TagName)> {
    let mut angles = (at..at + BLOCK).filter(|place| bytes[*place] == b'<');
    angles.find_map(|place| Some((place, name_at(&bytes[place + 1..])?)))
}

/// Returns whether `rest` begins with the name of a tag and a byte that ends a name.
pub(super) fn is_opening(rest: &[u8]) -> bool {
    name_at(rest).is_some()
}

/// Returns the tag whose name, with a byte that ends a name, begins `rest`.
fn name_at(rest: &[u8]) -> Option<TagName> {
    // Most texts end here: a `<` is rarely followed by one of these letters.
    if !FIRST_LETTERS.contains(rest.first()?) {
        return None;
    }
    TagName::ALL.into_iter().find(|name| {
        rest.strip_prefix(name.as_str().as_bytes())
            .and_then(<[u8]>::first)
            .is_some_and(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/'))
    })
}

impl<'a> Opening<'a> {
    /// Returns the tag of this opening, whose text is `body`. Problems of the opening come first.
    pub(super) fn tag(
        self,
        name: TagName,
        body: &'a str,
    ) -> Result<BorrowedTag<'a>, TagProblem<'a>> {
        match self.problem {
            Some(problem) => Err(problem),
            None => BorrowedTag::of(name, self.attributes, body),
        }
    }

    /// Reads an opening from the end of its name, at `from`. Fails if the opening cannot end.
    pub(super) fn read(text: &'a str, from: usize) -> Result<Self, TagProblem<'a>> {
        let mut reader = Reader { text, bytes: text.as_bytes(), at: from, attributes: Vec::new() };
        let problem = match reader.run() {
            Ok(()) => reader.repeated(),
            Err(problem) => {
                reader.at = reader.end(problem)?;
                Some(problem)
            }
        };
        Ok(Self { end: reader.at, attributes: reader.attributes, problem })
    }
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Reader<'a> {
    /// Reads up to and including the `>`, or to the first problem.
    fn run(&mut self) -> Result<(), TagProblem<'a>> {
        loop {
            let before = self.at;
            self.skip_space();
            match self.peek() {
                None | Some(b'<') => return Err(TagProblem::NoEnd),
                Some(b'"' | b'\'') => return Err(TagProblem::StrayQuote),
                Some(b'>') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'/') => {
                    let last = self.bytes.get(self.at + 1) == Some(&b'>');
                    return Err(if last { TagProblem::SelfClosing } else { TagProblem::Slash });
                }
                Some(_) => self.attribute(before < self.at)?,
            }
        }
    }

    fn attribute(&mut self, spaced: bool) -> Result<(), TagProblem<'a>> {
        let name = self.name();
        if !is_name(name) {
            return Err(TagProblem::BadName(name));
        }
        if !spaced {
            return Err(TagProblem::NoSpace(name));
        }
        self.skip_space();
        if self.peek() != Some(b'=') {
            return Err(TagProblem::Bare(name));
        }
        self.at += 1;
        self.skip_space();
        let Some(quote @ (b'"' | b'\'')) = self.peek() else {
            return Err(TagProblem::Unquoted(name));
        };
        let start = self.at + 1;
        let length = memchr(quote, &self.bytes[start..]).ok_or(TagProblem::NoEndQuote(name))?;
        if self.attributes.len() == TagProblem::MOST_ATTRIBUTES {
            return Err(TagProblem::TooMany);
        }
        self.at = start + length + 1;
        let value = &self.text[start..start + length];
        self.attributes.push((name, value));
        Ok(())
    }

    /// Reads up to white space, a quote, or a character of the grammar.
    fn name(&mut self) -> &'a str {
        let start = self.at;
        let length = self.bytes[start..].iter().position(|byte| {
            byte.is_ascii_whitespace() || matches!(byte, b'=' | b'/' | b'>' | b'<' | b'"' | b'\'')
        });
        self.at = length.map_or(self.bytes.len(), |length| start + length);
        &self.text[start..self.at]
    }

    /// Returns the end of the opening in spite of a problem. Quoted values are skipped.
    fn end(&self, problem: TagProblem<'a>) -> Result<usize, TagProblem<'a>> {
        let mut at = self.at;
        loop {
            let rest = self.bytes[at..].iter();
            let stop = rest
                .copied()
                .position(|byte| matches!(byte, b'>' | b'<' | b'"' | b'\''))
                .map(|offset| at + offset);
            let Some((stop, quote)) = stop.map(|stop| (stop, self.bytes[stop])) else {
                return Err(TagProblem::NoEnd);
            };
            match quote {
                b'>' => return Ok(stop + 1),
                b'<' => return Err(TagProblem::NoEnd),
                // An apostrophe in prose could pair with another one far away and hide the tags
                // between them.
                _ if !self.follows_equals(stop) => return Err(problem),
                _ => {}
            }
            let length = memchr(quote, &self.bytes[stop + 1..]).ok_or(problem)?;
            at = stop + 1 + length + 1;
        }
    }

    fn follows_equals(&self, place: usize) -> bool {
        let mut before = self.bytes[..place].iter().rev();
        before.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'=')
    }

    /// Sorts the attributes by name, and returns one that is repeated.
    fn repeated(&mut self) -> Option<TagProblem<'a>> {
        // Comparing every pair would take quadratic time for a hostile tag.
        self.attributes.sort_by_key(|(name, _)| *name);
        let mut pairs = self.attributes.windows(2);
        let pair = pairs.find(|pair| pair[0].0 == pair[1].0)?;
        Some(TagProblem::Repeated(pair[0].0))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }
}

fn is_name(word: &str) -> bool {
    let mut bytes = word.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && word.len() <= TagProblem::LONGEST_NAME
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [TagName; 6] = [
        TagName::Goto,
        TagName::Reset,
        TagName::Call,
        TagName::Function,
        TagName::Fork,
        TagName::Result,
    ];

    /// Blocks are tested only after a `<` that opens nothing.
    #[test]
    fn opening_is_found_at_every_place() {
        let afters = [String::new(), ".".repeat(2 * BLOCK), "<r".repeat(BLOCK)];
        for filler in [".", "<", "<r", "</p>", "<goto"] {
            for length in (0..5).chain(BLOCK - 9..BLOCK + 9) {
                let before: String = filler.chars().cycle().take(length).collect();
                for (name, after) in NAMES.iter().flat_map(|name| afters.iter().map(|a| (*name, a)))
                {
                    let text = format!("<{before}.<{name}>{after}");
                    let first = next(text.as_bytes(), 0, Source::Message);
                    assert_eq!(first, Some((length + 2, name)), "{text:?}");
                    let second = next(text.as_bytes(), length + 3, Source::Message);
                    assert_eq!(second, None, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn first_of_two_openings_is_found() {
        let text = format!("<.<goto>.<fork>{}", ".".repeat(BLOCK));
        assert_eq!(next(text.as_bytes(), 0, Source::Message), Some((2, TagName::Goto)));
        assert_eq!(next(text.as_bytes(), 3, Source::Message), Some((9, TagName::Fork)));
    }
}
