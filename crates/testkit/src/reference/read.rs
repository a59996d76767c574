//! A naive reader of tags: the rules of "Reading tags" one after the other, without optimisation.
//!
//! The reader walks over a text at most twice. First, openings in code are text; if a tag is
//! outside code, the walk is complete. If no tag is, the reader walks again as if there were no
//! code, and a tag counts if its first and last line contain nothing else. A closing counts
//! everywhere, because a payload is raw text.

mod code;
mod opening;
mod plain;
mod walk;

use raymond_core::protocol::{Source, TagName};

use super::tags::Tag;
use walk::{FoundTag, alone_on_lines, outside_code};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Well-formed tags that count, in order.
    pub tags: Vec<Tag>,
    /// The number of malformed tags that count.
    pub malformed: usize,
    /// The number of forks and `goto`s among them.
    pub malformed_parts: usize,
    /// The number of questions among them.
    pub malformed_asks: usize,
    /// Whether a tag, well formed or not, was in code and did not count.
    pub in_code: bool,
    /// Unknown attributes of well-formed tags, in order.
    pub unknown_attributes: Vec<(TagName, String)>,
}

/// Reads the tags of a text. Forks without `next` are included: see [`Reading::settled`].
pub fn read(text: &str, source: Source) -> Reading {
    let code = match source {
        Source::Message | Source::Iteration => code::code(text),
        // The output of a script is not Markdown.
        Source::Script => vec![false; text.len()],
    };
    let (outside, in_code) = outside_code(text, source, &code);
    if !outside.is_empty() || !in_code {
        return Reading::of(outside, in_code);
    }
    let (alone, others) = alone_on_lines(text, source);
    Reading::of(alone, others)
}

impl Reading {
    fn of(found: Vec<FoundTag>, in_code: bool) -> Self {
        let mut reading = Self { in_code, ..Self::default() };
        for found in found {
            let Some((tag, unknown)) = found.tag else {
                reading.malformed += 1;
                reading.malformed_asks += usize::from(found.name == TagName::Ask);
                reading.malformed_parts +=
                    usize::from(matches!(found.name, TagName::Fork | TagName::Goto));
                continue;
            };
            let unknown = unknown.into_iter().map(|attribute| (tag.name, attribute));
            reading.unknown_attributes.extend(unknown);
            reading.tags.push(tag);
        }
        reading
    }

    /// Decides about forks without `next`: they are malformed, unless the tags are forks and one
    /// `goto` that replaces the `next`.
    #[must_use]
    pub fn settled(mut self) -> Self {
        let count = |name| self.tags.iter().filter(|tag| tag.name == name).count();
        let (forks, gotos) = (count(TagName::Fork), count(TagName::Goto));
        if gotos == 1 && forks + gotos == self.tags.len() {
            return self;
        }
        let before = self.tags.len();
        self.tags.retain(|tag| tag.name != TagName::Fork || tag.attributes.contains_key("next"));
        let removed = before - self.tags.len();
        self.malformed += removed;
        self.malformed_parts += removed;
        self
    }
}
