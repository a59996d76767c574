//! The opening of a tag: its name and its attributes, as written.
//!
//! A mistake in an attribute does not stop the reading: the opening still ends at its own `>`, so
//! that a tag inside a quoted value is never taken for one. Only an opening that cannot end (at a
//! `<`, at a stray quote, at the end of the text) is given up, and reading goes on after its name.
//! That stays linear: of all openings that begin before some byte and still run there, one may be
//! outside quotes, one in `"` and one in `'`, and any further one has died at the `<` of the next.

use memchr::{memchr, memchr_iter};

use super::flaw::Flaw;
use crate::protocol::tag::TagName;

/// An opening that ends with `>`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opening<'a> {
    /// Just after its `>`.
    pub(super) end: usize,
    /// Names and undecoded values, sorted by name.
    pub(super) attributes: Vec<(&'a str, &'a str)>,
    /// The first mistake in it.
    pub(super) flaw: Option<Flaw<'a>>,
}

/// The first opening at or after `from`: where it starts, and which tag it is.
pub(super) fn next(bytes: &[u8], from: usize) -> Option<(usize, TagName)> {
    memchr_iter(b'<', &bytes[from..])
        .find_map(|offset| Some((from + offset, name_at(&bytes[from + offset + 1..])?)))
}

/// Whether the name of a tag, followed by what ends a name, begins `rest`.
pub(super) fn is_opening(rest: &[u8]) -> bool {
    name_at(rest).is_some()
}

/// The tag whose name, followed by what ends a name, begins `rest`.
fn name_at(rest: &[u8]) -> Option<TagName> {
    let candidates: &[TagName] = match rest.first()? {
        b'g' => &[TagName::Goto],
        b'r' => &[TagName::Reset, TagName::Result],
        b'c' => &[TagName::Call],
        b'f' => &[TagName::Function, TagName::Fork],
        _ => return None,
    };
    candidates.iter().copied().find(|name| {
        rest.strip_prefix(name.as_str().as_bytes())
            .and_then(<[u8]>::first)
            .is_some_and(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/'))
    })
}

impl<'a> Opening<'a> {
    /// Reads on after the name of a tag, at `from`; fails when the opening cannot end.
    pub(super) fn read(text: &'a str, from: usize) -> Result<Self, Flaw<'a>> {
        let mut reader = Reader {
            text,
            bytes: text.as_bytes(),
            at: from,
            attributes: Vec::new(),
            flaw: None,
        };
        reader.run()?;
        let mut attributes = reader.attributes;
        attributes.sort_by_key(|(name, _)| *name);
        let repeated = attributes.windows(2).find(|pair| pair[0].0 == pair[1].0);
        let repeated = repeated.map(|pair| Flaw::Repeated(pair[0].0));
        Ok(Self {
            end: reader.at,
            attributes,
            flaw: reader.flaw.or(repeated),
        })
    }
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    attributes: Vec<(&'a str, &'a str)>,
    flaw: Option<Flaw<'a>>,
}

impl<'a> Reader<'a> {
    fn run(&mut self) -> Result<(), Flaw<'a>> {
        loop {
            let before = self.at;
            self.skip_space();
            match self.peek() {
                None | Some(b'<') => return Err(Flaw::NoEnd),
                Some(b'"' | b'\'') => return Err(self.flaw.unwrap_or(Flaw::StrayQuote)),
                Some(b'>') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'/') => self.slash(),
                Some(_) => self.attribute(before < self.at)?,
            }
        }
    }

    fn slash(&mut self) {
        self.at += 1;
        self.blame(if self.peek() == Some(b'>') {
            Flaw::SelfClosing
        } else {
            Flaw::Slash
        });
    }

    fn attribute(&mut self, spaced: bool) -> Result<(), Flaw<'a>> {
        let name = self.word(|byte| matches!(byte, b'=' | b'/'));
        if !is_name(name) {
            self.blame(Flaw::BadName(name));
        } else if !spaced {
            self.blame(Flaw::NoSpace(name));
        }
        let end = self.at;
        self.skip_space();
        if self.peek() != Some(b'=') {
            self.blame(Flaw::Bare(name));
            self.at = end;
            return Ok(());
        }
        self.at += 1;
        self.skip_space();
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.value(name, quote),
            Some(_) | None => {
                self.blame(Flaw::Unquoted(name));
                self.word(|_| false);
                Ok(())
            }
        }
    }

    fn value(&mut self, name: &'a str, quote: u8) -> Result<(), Flaw<'a>> {
        let start = self.at + 1;
        let length = memchr(quote, &self.bytes[start..])
            .ok_or_else(|| self.flaw.unwrap_or(Flaw::NoEndQuote(name)))?;
        self.at = start + length + 1;
        self.attributes
            .push((name, &self.text[start..start + length]));
        Ok(())
    }

    /// What stands before white space, `>`, `<`, a quote, or what `ends` names.
    fn word(&mut self, ends: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        let length = self.bytes[start..].iter().position(|byte| {
            byte.is_ascii_whitespace() || matches!(byte, b'>' | b'<' | b'"' | b'\'') || ends(*byte)
        });
        self.at = length.map_or(self.bytes.len(), |length| start + length);
        &self.text[start..self.at]
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Remembers the first mistake only: the others often follow from it.
    fn blame(&mut self, flaw: Flaw<'a>) {
        self.flaw.get_or_insert(flaw);
    }
}

fn is_name(word: &str) -> bool {
    let mut bytes = word.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && word.len() <= Flaw::LONGEST_NAME
}
