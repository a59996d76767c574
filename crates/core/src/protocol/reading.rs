//! A reading: the tags of a text, reduced to what a decision needs.
//!
//! A reading has a bounded size for any text: it keeps the first tags, counts the rest, and passes
//! long values to a store. One rule needs all tags at once and is therefore applied here: `next`
//! may be missing on `fork` only if there is exactly one `goto` beside the forks, and no other tag.

use super::source::Source;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::scan::{FoundTag, scan};
use super::tags::{BorrowedTag, Tag, TagContent, TagName, TagProblem};
use super::untagged::Untagged;
use crate::text::excerpt;
use crate::value::Hash;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TagReading {
    /// Well-formed tags in order, at most [`TagReading::MOST_TAGS`].
    pub tags: Vec<Tag>,
    /// The number of further well-formed tags.
    pub omitted: usize,
    /// Malformed tags in order, at most [`TagReading::MOST_MALFORMED`].
    pub malformed: Vec<Malformed>,
    /// The facts about a text without any tag that counts.
    pub untagged: Untagged,
    /// Unknown attributes, which lead to warnings. Each is listed once, at most
    /// [`TagReading::MOST_UNKNOWN`] of them.
    pub unknown_attributes: Vec<(TagName, String)>,
}

impl TagReading {
    /// Tags that are kept. No fork has more; further tags are only counted.
    pub const MOST_TAGS: usize = 20_000;
    /// Malformed tags that are explained.
    pub const MOST_MALFORMED: usize = 20;
    /// Unknown attributes that are listed.
    pub const MOST_UNKNOWN: usize = 20;
    /// Characters of an unknown attribute's name that are shown.
    const SHOWN_NAME: usize = 40;

    /// Reads the tags of `text`. Values that are too large for the journal go through `store`.
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
        let is_untagged = collected.tags.is_empty() && collected.malformed.is_empty();
        let reading = collected.keep(store)?;
        let untagged = is_untagged.then(|| Untagged::of(text, found.in_code()));
        Ok(Self { untagged: untagged.unwrap_or_default(), ..reading })
    }
}

/// The bounded result of a scan, still borrowed from the text.
#[derive(Default)]
struct Collected<'a> {
    tags: Vec<(usize, BorrowedTag<'a>)>,
    malformed: Vec<(usize, TagName, TagProblem<'a>)>,
    omitted: usize,
    /// Forks without `next` among the omitted tags.
    omitted_without_next: usize,
    gotos: usize,
    /// Tags that are neither `goto` nor `fork`.
    others: usize,
    unknown: Vec<(TagName, &'a str)>,
}

impl<'a> Collected<'a> {
    fn add(&mut self, found: FoundTag<'a>) {
        let place = found.span.start;
        match found.tag {
            Err(problem) if self.malformed.len() < TagReading::MOST_MALFORMED => {
                self.malformed.push((place, found.name, problem));
            }
            // Not counted: a decision only asks whether there is one, and a reminder explains
            // fewer.
            Err(_) => {}
            Ok(tag) => {
                // Counted for omitted tags too: with a second `goto`, kept or not, the forks have
                // no common next state.
                self.gotos += usize::from(found.name == TagName::Goto);
                self.others += usize::from(![TagName::Goto, TagName::Fork].contains(&found.name));
                if self.tags.len() < TagReading::MOST_TAGS {
                    self.add_unknown(found.name, &tag);
                    self.tags.push((place, tag));
                } else {
                    self.omitted += 1;
                    self.omitted_without_next += usize::from(lacks_next(&tag));
                }
            }
        }
    }

    fn add_unknown(&mut self, name: TagName, tag: &BorrowedTag<'a>) {
        for attribute in &tag.unknown {
            let full = self.unknown.len() >= TagReading::MOST_UNKNOWN;
            if full || self.unknown.contains(&(name, attribute)) {
                continue;
            }
            self.unknown.push((name, attribute));
        }
    }

    /// Rejects forks without `next`, because no single `goto` says where the parent continues.
    fn refuse_forks_without_next(&mut self) {
        let lacking = self.tags.iter().filter(|(_, tag)| lacks_next(tag));
        // If the `goto` is malformed, its problem is the cause and comes first.
        let is_consequence = self.malformed.iter().any(|(_, tag, _)| *tag == TagName::Goto);
        let place = |place: usize| if is_consequence { usize::MAX } else { place };
        let refused =
            lacking.map(|(at, _)| (place(*at), TagName::Fork, TagProblem::Missing("next")));
        // Later ones could not survive the truncation below, and there may be thousands.
        self.malformed.extend(refused.take(TagReading::MOST_MALFORMED));
        self.tags.retain(|(_, tag)| !lacks_next(tag));
        // In the order of the text, because a reminder explains only the first few.
        self.malformed.sort_by_key(|(place, ..)| *place);
        self.malformed.truncate(TagReading::MOST_MALFORMED);
        // Omitted forks without `next` are malformed too, so they are not tags any more.
        self.omitted -= self.omitted_without_next;
    }

    fn keep<E>(self, store: &mut dyn FnMut(&[u8]) -> Result<Hash, E>) -> Result<TagReading, E> {
        let tags = self.tags.into_iter().map(|(_, tag)| tag.kind.keep(store));
        let malformed = self
            .malformed
            .into_iter()
            .map(|(_, tag, problem)| Malformed { tag, why: problem.to_string() });
        let unknown = self.unknown.into_iter();
        Ok(TagReading {
            tags: tags.collect::<Result<_, E>>()?,
            omitted: self.omitted,
            malformed: malformed.collect(),
            untagged: Untagged::default(),
            unknown_attributes: unknown
                .map(|(tag, name)| (tag, excerpt(name, TagReading::SHOWN_NAME).into_owned()))
                .collect(),
        })
    }
}

fn lacks_next(tag: &BorrowedTag<'_>) -> bool {
    matches!(tag.kind, TagContent::Fork { next: None, .. })
}

/// A malformed tag, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Malformed {
    /// The tag that it would have been.
    pub tag: TagName,
    /// The reason, in words for the author of the message.
    pub why: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed <{}>: {}", self.tag, self.why)
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::ResultStatus;
    use std::convert::Infallible;

    use super::*;
    use crate::few::Few;
    use crate::protocol::tags::Invoke;
    use crate::value::{BlobRef, INLINE_MAX, Value};

    fn read(text: &str) -> TagReading {
        let mut store = |bytes: &[u8]| Ok::<Hash, Infallible>(Hash::of(bytes));
        let Ok(reading) = TagReading::of(text, Source::Message, &mut store);
        reading
    }

    fn goto(target: &str) -> Tag {
        Tag::Goto { target: target.to_owned(), input: None }
    }

    fn fork(target: &str, next: Option<&str>) -> Tag {
        Tag::Fork {
            target: target.to_owned(),
            next: next.map(str::to_owned),
            cd: None,
            input: None,
            attributes: Few::default(),
        }
    }

    fn malformed(tag: TagName, why: &str) -> Malformed {
        let why = why.to_owned();
        Malformed { tag, why }
    }

    #[track_caller]
    fn check(text: &str, expected: &TagReading) {
        assert_eq!(&read(text), expected, "in {text:?}");
    }

    #[test]
    fn tags_keep_all_their_attributes() {
        let untagged = Untagged { last_line: "nothing".to_owned(), ..Untagged::default() };
        check("nothing", &TagReading { untagged, ..TagReading::default() });
        let text = r#"
            <reset input="i" cd="d" stack="clear">A</reset>
            <function return="R" input="i" model="m">B</function>
            <fork next="N" cd="d" input="i" item="x">C</fork>
            <result> ok </result>"#;
        let input = Some(Value::from("i"));
        let tags = vec![
            Tag::Reset {
                target: "A".to_owned(),
                input: input.clone(),
                cd: Some("d".to_owned()),
                stack: crate::protocol::Stack::Clear,
            },
            Tag::Function(Invoke {
                target: "B".to_owned(),
                return_to: "R".to_owned(),
                input: input.clone(),
                model: Some("m".to_owned()),
            }),
            Tag::Fork {
                target: "C".to_owned(),
                next: Some("N".to_owned()),
                cd: Some("d".to_owned()),
                input,
                attributes: Few::from([("item".to_owned(), Value::from("x"))]),
            },
            Tag::Result { payload: Value::from(" ok "), status: ResultStatus::Ok },
        ];
        let directories: Vec<Option<&str>> = tags.iter().map(Tag::cd).collect();
        assert_eq!(directories, [Some("d"), None, Some("d"), None]);
        let expected = TagReading { tags, ..TagReading::default() };
        check(text, &expected);
    }

    #[test]
    fn valid_tag_counts_beside_malformed_tags() {
        let expected = TagReading {
            tags: vec![goto("A")],
            malformed: vec![malformed(TagName::Call, "attribute `return` is missing")],
            unknown_attributes: vec![(TagName::Goto, "cd".to_owned())],
            ..TagReading::default()
        };
        check("<call>B</call> <goto cd='x'>A</goto> and `<goto>C</goto>`", &expected);
    }

    #[test]
    fn next_may_be_missing_beside_exactly_one_goto() {
        let forks = "<fork>A</fork><fork next='N'>B</fork>";
        let one = TagReading {
            tags: vec![fork("A", None), fork("B", Some("N")), goto("N")],
            ..TagReading::default()
        };
        check(&format!("{forks}<goto>N</goto>"), &one);
        let none = TagReading {
            tags: vec![fork("B", Some("N"))],
            malformed: vec![malformed(TagName::Fork, "attribute `next` is missing")],
            ..TagReading::default()
        };
        check(forks, &none);
        let malformed_goto = read(&format!("{forks}<goto></goto>"));
        assert_eq!(malformed_goto.tags, none.tags);
        for (other, tag) in [
            ("<goto>N</goto>", goto("N")),
            (
                "<result>x</result>",
                Tag::Result { payload: Value::from("x"), status: ResultStatus::Ok },
            ),
            (
                "<result status=\"failed\">x</result>",
                Tag::Result { payload: Value::from("x"), status: ResultStatus::Failed },
            ),
        ] {
            let tags = vec![fork("B", Some("N")), goto("N"), tag];
            let several = TagReading { tags, ..none.clone() };
            check(&format!("{forks}<goto>N</goto>{other}"), &several);
        }
    }

    #[test]
    fn malformed_tags_are_ordered_by_cause_and_text() {
        let check = |text: &str, expected: &[Malformed]| assert_eq!(read(text).malformed, expected);
        let next = malformed(TagName::Fork, "attribute `next` is missing");
        let empty = malformed(TagName::Goto, "it ends with `/>` and names nothing");
        let nameless = malformed(TagName::Goto, "it names no state");
        check(
            "<call/><fork>A</fork><result/>",
            &[
                malformed(TagName::Call, "it ends with `/>` and names nothing"),
                next.clone(),
                malformed(TagName::Result, "it ends with `/>` and names nothing"),
            ],
        );
        // A `goto` that could be read would have named the next state.
        check("<goto/><fork>A</fork><goto></goto>", &[empty, nameless, next]);
    }

    #[test]
    fn large_texts_are_stored() {
        let small = "s".repeat(INLINE_MAX);
        let large = "l".repeat(INLINE_MAX + 1);
        let blob =
            Value::Blob(BlobRef { hash: Hash::of(large.as_bytes()), length: large.len() as u64 });
        let mut stored = Vec::new();
        let mut store = |bytes: &[u8]| {
            stored.push(bytes.len());
            Ok::<Hash, Infallible>(Hash::of(bytes))
        };
        let text = format!(
            "<goto input='{large}'>A</goto><fork next='N' x='{large}' y='{small}'>B</fork>\
             <result>{large}</result>"
        );
        let Ok(reading) = TagReading::of(&text, Source::Script, &mut store);
        let expected = vec![
            Tag::Goto { target: "A".to_owned(), input: Some(blob.clone()) },
            Tag::Fork {
                target: "B".to_owned(),
                next: Some("N".to_owned()),
                cd: None,
                input: None,
                attributes: Few::from([
                    ("x".to_owned(), blob.clone()),
                    ("y".to_owned(), Value::Inline(small)),
                ]),
            },
            Tag::Result { payload: blob, status: ResultStatus::Ok },
        ];
        assert_eq!(reading.tags, expected);
        assert_eq!(stored, vec![INLINE_MAX + 1; 3]);
    }

    #[test]
    fn a_store_that_fails_fails_the_reading() {
        let text = format!("<result>{}</result>", "x".repeat(INLINE_MAX + 1));
        let failed = TagReading::of(&text, Source::Script, &mut |_| Err("disk full"));
        assert_eq!(failed, Err("disk full"));
    }

    // proves: S25
    #[test]
    fn a_reading_is_bounded() {
        let text = "<goto>A</goto>".repeat(TagReading::MOST_TAGS + 3);
        let reading = read(&text);
        assert_eq!(reading.tags.len(), TagReading::MOST_TAGS);
        assert_eq!(reading.omitted, 3);

        let text = "<fork next='N'>A</fork>".repeat(TagReading::MOST_TAGS)
            + "<fork>A</fork><reset>B</reset>";
        let reading = read(&text);
        assert_eq!(reading.tags.len(), TagReading::MOST_TAGS);
        assert_eq!(reading.omitted, 1, "the fork without next is malformed");

        let text = "<goto/>".repeat(30) + &"<fork>A</fork>".repeat(30);
        assert_eq!(read(&text).malformed.len(), TagReading::MOST_MALFORMED);
        let text = "<goto/>".repeat(30) + "<goto>A</goto>";
        assert_eq!(read(&text).malformed.len(), TagReading::MOST_MALFORMED);

        let names: Vec<String> = (10..60).map(|n| format!("a{n}='' ")).collect();
        let tag = format!("<goto {}>A</goto>", names.concat());
        let unknown = read(&tag.repeat(2)).unknown_attributes;
        let expected: Vec<(TagName, String)> =
            (10..30).map(|n| (TagName::Goto, format!("a{n}"))).collect();
        assert_eq!(unknown, expected);
    }
}
