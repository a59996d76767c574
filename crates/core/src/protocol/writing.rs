//! Writes a tag with any texts so that it is read as exactly that tag.
//!
//! The written text is read again before it is returned. So the rules of [`scan()`] and of the
//! table of tags decide what can be written, and none of them is repeated here.

use super::scan::scan;
use super::source::Source;
use super::tags::{Body, TagName, TagProblem, encode};

/// A tag to be written. Names are as in a workflow; no text is encoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagText<'a> {
    pub name: TagName,
    pub attributes: Vec<(&'a str, &'a str)>,
    /// The target, or the payload.
    pub body: &'a str,
}

/// The reason why a tag cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// An attribute that the tag does not have.
    #[error("<{tag}> has no attribute `{attribute}`")]
    Unknown { tag: TagName, attribute: String },
    /// A payload is raw, so it cannot contain its own tag.
    #[error("the text of <{0}> cannot contain `<{0}` or `</{0}>`")]
    Payload(TagName),
    #[error("<{tag}>: {problem}")]
    Malformed { tag: TagName, problem: String },
}

impl TagText<'_> {
    /// Returns the tag as text.
    pub fn write(&self) -> Result<String, Unwritable> {
        let tag = self.name;
        let attribute = |(name, value): &(&str, &str)| format!(" {name}=\"{}\"", encode(value));
        let attributes: String = self.attributes.iter().map(attribute).collect();
        let text = format!("<{tag}{attributes}>{}</{tag}>", self.body);
        let malformed = |problem: String| Unwritable::Malformed { tag, problem };
        let is_payload = matches!(tag.spec().body, Body::Payload(_));
        let mut found = scan(&text, Source::Script);
        let (read, further) = (found.next(), found.next());
        // A target with markup ends early, or makes several tags.
        let whole = read.filter(|read| read.tag.is_err() || read.span.end == text.len());
        let unknown = match (whole.map(|read| read.tag), further) {
            (Some(Err(TagProblem::OpenedTwice(_) | TagProblem::ClosedTwice(_))), _) => {
                return Err(Unwritable::Payload(tag));
            }
            (Some(Err(problem)), _) => return Err(malformed(problem.to_string())),
            (Some(Ok(read)), None) => read.unknown.first().map(|name| (*name).to_owned()),
            _ if is_payload => return Err(Unwritable::Payload(tag)),
            _ => return Err(malformed(format!("`{}` is not the name of a state", self.body))),
        };
        match unknown {
            Some(attribute) => Err(Unwritable::Unknown { tag, attribute }),
            None => Ok(text),
        }
    }
}

#[cfg(test)]
mod tests;
