//! What an edge read in a text: the values that a decision needs, and no more.
//!
//! However many tags a text holds, a reading stays bounded: it keeps the first ones, counts the
//! rest, and hands long values to a store. The one rule here that needs all tags at once: `next` may
//! be missing on `fork` only when exactly one `goto`, and nothing else, stands beside the forks.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::excerpt::excerpt;
use super::scan::{Draft, Flaw, Found, Kind, scan};
use super::tag::{Tag, TagName};
use crate::value::Hash;

/// Where a text came from; only an agent's message can hold code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The final message of an agent.
    Message,
    /// The standard output of a script.
    Script,
}

/// The tags of one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Well-formed tags that count, in order; at most [`Reading::MOST_TAGS`].
    pub tags: Vec<Tag>,
    /// Well-formed tags beyond that number.
    pub omitted: usize,
    /// Malformed tags, in order; at most [`Reading::MOST_MALFORMED`].
    pub malformed: Vec<Malformed>,
    /// Whether a tag, well formed or not, stood in code and did not count.
    pub in_code: bool,
    /// Attributes that mean nothing on their tag: they warn. Each is named once; at most
    /// [`Reading::MOST_UNKNOWN`].
    pub unknown_attributes: Vec<(TagName, String)>,
}

impl Reading {
    /// More tags than any fork may hold are only counted.
    pub const MOST_TAGS: usize = 20_000;
    /// More malformed tags are not explained.
    pub const MOST_MALFORMED: usize = 20;
    /// More unknown attributes are not named.
    pub const MOST_UNKNOWN: usize = 20;
    /// More of an unknown attribute's name is not shown.
    const SHOWN_NAME: usize = 40;

    /// Reads the tags of `text`; values that are too large to travel go through `store`.
    pub fn of<E>(
        text: &str,
        source: Source,
        store: &mut dyn FnMut(&[u8]) -> Result<Hash, E>,
    ) -> Result<Self, E> {
        let mut collected = Collected::default();
        let mut found = scan(text, source);
        for found in found.by_ref() {
            collected.add(found);
        }
        if collected.gotos != 1 || collected.others > 0 {
            collected.refuse_forks_without_next();
        }
        collected.keep(found.in_code(), store)
    }
}

/// What a scan found, cut to what is kept, still borrowed from the text.
#[derive(Default)]
struct Collected<'a> {
    tags: Vec<(usize, Draft<'a>)>,
    malformed: Vec<(usize, TagName, Flaw<'a>)>,
    /// Tags beyond those kept.
    omitted: usize,
    /// Forks without `next` among the omitted.
    omitted_without_next: usize,
    gotos: usize,
    /// Tags that are neither `goto` nor `fork`.
    others: usize,
    unknown: Vec<(TagName, &'a str)>,
}

impl<'a> Collected<'a> {
    fn add(&mut self, found: Found<'a>) {
        let place = found.span.start;
        match found.draft {
            Err(flaw) if self.malformed.len() < Reading::MOST_MALFORMED => {
                self.malformed.push((place, found.name, flaw));
            }
            Err(_) => {}
            Ok(draft) => {
                match found.name {
                    TagName::Goto => self.gotos += 1,
                    TagName::Fork => {}
                    TagName::Reset | TagName::Call | TagName::Function | TagName::Result => {
                        self.others += 1;
                    }
                }
                if self.tags.len() < Reading::MOST_TAGS {
                    self.add_unknown(found.name, &draft);
                    self.tags.push((place, draft));
                } else {
                    self.omitted += 1;
                    self.omitted_without_next += usize::from(lacks_next(&draft));
                }
            }
        }
    }

    fn add_unknown(&mut self, tag: TagName, draft: &Draft<'a>) {
        for name in &draft.unknown {
            let full = self.unknown.len() >= Reading::MOST_UNKNOWN;
            if full || self.unknown.contains(&(tag, name)) {
                continue;
            }
            self.unknown.push((tag, name));
        }
    }

    /// Without one `goto` that says where the parent goes on, each fork has to say it.
    fn refuse_forks_without_next(&mut self) {
        let lacking = self.tags.iter().filter(|(_, draft)| lacks_next(draft));
        let refused = lacking.map(|(place, _)| (*place, TagName::Fork, Flaw::Missing("next")));
        self.malformed.extend(refused.take(Reading::MOST_MALFORMED));
        self.tags.retain(|(_, draft)| !lacks_next(draft));
        self.malformed.sort_by_key(|(place, ..)| *place);
        self.malformed.truncate(Reading::MOST_MALFORMED);
        self.omitted -= self.omitted_without_next;
    }

    fn keep<E>(
        self,
        in_code: bool,
        store: &mut dyn FnMut(&[u8]) -> Result<Hash, E>,
    ) -> Result<Reading, E> {
        let tags = self.tags.into_iter().map(|(_, draft)| draft.keep(store));
        let malformed = self.malformed.into_iter().map(|(_, tag, flaw)| Malformed {
            tag,
            why: flaw.to_string(),
        });
        let unknown = self.unknown.into_iter();
        Ok(Reading {
            tags: tags.collect::<Result<_, E>>()?,
            omitted: self.omitted,
            malformed: malformed.collect(),
            in_code,
            unknown_attributes: unknown
                .map(|(tag, name)| (tag, excerpt(name, Reading::SHOWN_NAME).into_owned()))
                .collect(),
        })
    }
}

fn lacks_next(draft: &Draft<'_>) -> bool {
    matches!(draft.kind, Kind::Fork { next: None, .. })
}

/// A tag that cannot be read, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Malformed {
    /// Which tag it would have been.
    pub tag: TagName,
    /// What is wrong with it, in words for the one who wrote it.
    pub why: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed <{}>: {}", self.tag, self.why)
    }
}
