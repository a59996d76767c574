//! A tag as it was found in a text, and its attributes.
//!
//! A message can contain thousands of tags, but few are kept. Values are copied only when a tag is
//! kept.

use std::borrow::Cow;

use super::entity::decode;
use super::{Tag, TagName, TagProblem};
use crate::text::nearest;

/// Attributes for a time, which only tags that can wait have.
const TIMES: [&str; 2] = ["after", "at"];
/// The attribute of a wait for workers, which only `goto` has.
const GATHERING: [&str; 1] = ["wait"];
/// Attributes of waits that can end without what they wait for.
const TIMEOUTS: [&str; 2] = ["timeout", "then"];
/// Attributes of a question.
const ASKING: [&str; 2] = ["options", "default"];

/// A tag that borrows from its text.
pub type TagContent<'a> = Tag<Cow<'a, str>, Cow<'a, str>>;

/// A well-formed tag as written in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BorrowedTag<'a> {
    pub kind: TagContent<'a>,
    /// Unknown attributes.
    pub unknown: Vec<&'a str>,
}

impl<'a> BorrowedTag<'a> {
    /// Checks the attributes of a tag. `body` is the trimmed target, or the raw payload.
    pub(in crate::protocol) fn of(
        name: TagName,
        attributes: Vec<(&'a str, &'a str)>,
        body: &'a str,
    ) -> Result<Self, TagProblem<'a>> {
        let mut given = Attributes(attributes);
        let kind = (name.spec().read)(&mut given, body)?;
        if let Some(name) = given.named(&TIMES) {
            return Err(TagProblem::OnlyLater(name));
        }
        if let Some(name) = given.named(&GATHERING) {
            return Err(TagProblem::OnlyGoto(name));
        }
        if let Some(name) = given.named(&TIMEOUTS) {
            return Err(TagProblem::OnlyGotoAndAsk(name));
        }
        if let Some(name) = given.named(&ASKING) {
            return Err(TagProblem::OnlyAsk(name));
        }
        if let Some(problem) = given.misspelt(name) {
            return Err(problem);
        }
        let unknown = given.0.into_iter().map(|(name, _)| name).collect();
        Ok(Self { kind, unknown })
    }
}

/// The attributes of an opening that were not used yet.
pub(super) struct Attributes<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Attributes<'a> {
    /// Takes an attribute that may be any text.
    pub(super) fn text(&mut self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).map(decode)
    }

    /// Takes an attribute as it is written.
    pub(super) fn raw(&mut self, name: &str) -> Option<&'a str> {
        let index = self.0.iter().position(|(given, _)| *given == name)?;
        let (_, raw) = self.0.remove(index);
        Some(raw)
    }

    /// Returns an attribute as it is written, and leaves it.
    pub(super) fn peek(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(given, _)| *given == name).map(|(_, raw)| *raw)
    }

    /// Takes an attribute that is a name: trimmed, not empty, and of bounded length.
    pub(super) fn word(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Cow<'a, str>>, TagProblem<'a>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let word = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        };
        if word.is_empty() {
            return Err(TagProblem::Empty(name));
        }
        // Names go into events as they are: only texts can become references to blobs.
        if word.len() > TagProblem::LONGEST_NAME {
            return Err(TagProblem::TooLong(Some(name)));
        }
        Ok(Some(word))
    }

    /// Takes an attribute that must be there.
    pub(super) fn required(&mut self, name: &'static str) -> Result<Cow<'a, str>, TagProblem<'a>> {
        self.word(name)?.ok_or(TagProblem::Missing(name))
    }

    /// Takes all other attributes.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        let rest = std::mem::take(&mut self.0).into_iter();
        rest.map(|(name, raw)| (Cow::Borrowed(name), decode(raw)))
    }

    /// Returns an attribute that was probably meant to be one of the tag. To ignore it could lose a
    /// wait or a limit.
    fn misspelt(&self, tag: TagName) -> Option<TagProblem<'a>> {
        // Bytes; two letters resemble too many other words.
        const SHORTEST: usize = 3;
        let names = self.0.iter().map(|(name, _)| *name).filter(|name| name.len() >= SHORTEST);
        names.into_iter().find_map(|name| {
            let meant = nearest(name, tag.spec().attributes.iter().copied())?;
            Some(TagProblem::Misspelt { name, meant })
        })
    }

    /// Returns the first attribute with one of these names.
    pub(super) fn named(&self, names: &[&str]) -> Option<&'a str> {
        self.0.iter().map(|(name, _)| *name).find(|name| names.contains(name))
    }
}
