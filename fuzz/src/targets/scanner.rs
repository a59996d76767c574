//! The tags of a message: their spans are inside the text, and reading twice gives the same tags. A
//! second reader, written from the specification alone, finds the same tags.

use std::convert::Infallible;

use raymond_core::protocol::{Source, TagName, TagReading, scan};
use raymond_core::value::Hash;
use raymond_testkit::reference::{self, Tag};

use crate::Target;

/// The tag scanner.
pub const TARGET: Target =
    Target { name: "scanner", inputs: 6_000, words: &WORDS, memory: Target::MEMORY, check };

/// The names of all tags, after the pieces.
const WORDS: [&str; PIECES.len() + TagName::ALL.len()] = {
    let mut words = [""; PIECES.len() + TagName::ALL.len()];
    let (pieces, names) = words.split_at_mut(PIECES.len());
    pieces.copy_from_slice(&PIECES);
    let mut tag = 0;
    while tag < names.len() {
        names[tag] = TagName::ALL[tag].as_str();
        tag += 1;
    }
    words
};

/// Pieces of tags that begin, end or confuse the reading of one.
const PIECES: [&str; 40] = [
    "<",
    "</",
    ">",
    "<goto>",
    "</goto>",
    "<reset>",
    "</reset>",
    "<call return=\"R\">",
    "</call>",
    "<function",
    "</function >",
    "<fork next='N'>",
    "</fork>",
    "<fork",
    "<result>",
    "</result>",
    "<result",
    "</result",
    "<goto/>",
    "<goto input=\"",
    " return = ",
    "next=",
    " stack=\"clear\"",
    " cd='d'",
    " model=\"m\"",
    " item=\"&lt;\"",
    "&quot;",
    "&apos;",
    "A",
    ".md",
    "`",
    "``",
    "```",
    "~~~",
    "\n\n",
    "\n```\n",
    "\u{a0}",
    "\u{1f980}",
    "<GOTO>",
    "< goto>",
];

/// Longest text in bytes for the second reader, which is slow: it reads again from every opening.
const COMPARED: usize = 2 << 10;

fn check(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    for source in [Source::Message, Source::Script, Source::Iteration] {
        check_spans(text, source);
        let read = read(text, source);
        assert!(read.tags.len() <= TagReading::MOST_TAGS, "more tags are kept than may be");
        assert!(read.malformed.len() <= TagReading::MOST_MALFORMED, "too many faults are kept");
        assert!(source != Source::Script || !read.untagged.in_code, "a script has no code");
        if text.len() <= COMPARED {
            check_against_the_reference(text, source, read);
        }
    }
}

fn check_spans(text: &str, source: Source) {
    let found: Vec<_> = scan(text, source).collect();
    assert_eq!(scan(text, source).collect::<Vec<_>>(), found, "reading again finds something else");
    let mut last = None;
    for found in &found {
        let tag = text.get(found.span.clone()).expect("a tag stands inside the text");
        assert!(tag.starts_with(&format!("<{}", found.name)), "{tag:?} is no {}", found.name);
        assert!(source.knows(found.name), "{} means nothing in {source:?}", found.name);
        assert!(last < Some(found.span.start), "tags are told out of order");
        last = Some(found.span.start);
    }
}

fn read(text: &str, source: Source) -> TagReading {
    let Ok(read) =
        TagReading::of(text, source, &mut |bytes: &[u8]| Ok::<_, Infallible>(Hash::of(bytes)));
    read
}

fn check_against_the_reference(text: &str, source: Source, read: TagReading) {
    let expected = reference::read(text, source).settled();
    let tags: Vec<Tag> = read.tags.iter().filter_map(Tag::plain).collect();
    assert_eq!(tags, expected.tags, "{source:?}: {text:?}");
    // Core keeps a bounded number of faults; the reference counts all of them.
    let malformed = expected.malformed.min(TagReading::MOST_MALFORMED);
    assert_eq!(read.malformed.len(), malformed, "{text:?}");
    let in_code = expected.in_code && tags.is_empty() && malformed == 0;
    assert_eq!(read.untagged.in_code, in_code, "{text:?}");
    assert_eq!(named(read.unknown_attributes), named(expected.unknown_attributes), "{text:?}");
}

/// Returns each unknown attribute once, sorted, because their order is not promised. Core decides
/// how many it names, and how long the names may be.
fn named(mut unknown: Vec<(TagName, String)>) -> Vec<(TagName, String)> {
    unknown.retain(|(_, name)| name.len() < 40);
    unknown.sort();
    unknown.dedup();
    if unknown.len() >= TagReading::MOST_UNKNOWN { Vec::new() } else { unknown }
}
