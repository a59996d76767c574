//! Core's scanner and the naive reader find the same tags in any text.

use std::convert::Infallible;

use proptest::prelude::*;
use proptest::sample::select;
use raymond_core::protocol::{TagName, TagReading as CoreReading};
use raymond_core::value::Hash;

use super::super::{Reading, Source, Tag, read};

const PIECES: [&str; 71] = [
    "<goto>",
    "<goto>A</goto>",
    "</goto>",
    "<goto/>",
    "<goto",
    "<reset",
    "</reset>",
    "<call",
    "</call>",
    "<function",
    "</function>",
    "<fork",
    "<fork>W</fork>",
    "</fork>",
    "<result>",
    "</result>",
    "<result",
    "</result ",
    "<result>r</result>",
    "<ask next='N'>Why?</ask>",
    "<ask",
    "</ask>",
    "<GOTO>",
    "< goto>",
    "<gotofoo>",
    "<",
    ">",
    "/",
    "=",
    "\"",
    "'",
    " ",
    "  ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\n \n",
    "`",
    "``",
    "```",
    "````",
    "\n```\n",
    "\n~~~\n",
    "~~~",
    "A",
    "B.md",
    "input",
    "return",
    " next=\"N\"",
    " return='R'",
    " return=\"\"",
    " cd=\"d\"",
    " cd=\" d \"",
    " stack=\"clear\"",
    " stack='x'",
    " model=\"m\"",
    " wait=\"1\"",
    " then=\"N\"",
    " timeout=\"2s\"",
    " options=\"a|B\"",
    " default='b'",
    " x=\"a > b\"",
    " x='<goto>A</goto>'",
    " input=\"&lt;&amp;lt;\"",
    " bare",
    " un=quoted",
    "&lt;",
    "\u{e9}",
    "\u{2028}",
    "\0",
];

fn random_text() -> impl Strategy<Value = String> {
    prop::collection::vec(select(&PIECES[..]), 0..24).prop_map(|pieces| pieces.concat())
}

/// Reads a text with core, and converts the result to the reference's types.
fn core(text: &str, source: Source) -> Reading {
    let mut store = |bytes: &[u8]| Ok::<_, Infallible>(Hash::of(bytes));
    let Ok(reading) = CoreReading::of(text, source, &mut store);
    let mut unknown_attributes = reading.unknown_attributes;
    unknown_attributes.sort();
    let is_part = |tag| matches!(tag, TagName::Fork | TagName::Goto);
    let parts = reading.malformed.iter().filter(|malformed| is_part(malformed.tag));
    let asks = reading.malformed.iter().filter(|malformed| malformed.tag == TagName::Ask);
    Reading {
        tags: reading.tags.iter().filter_map(Tag::plain).collect(),
        malformed: reading.malformed.len(),
        malformed_parts: parts.count(),
        malformed_asks: asks.count(),
        in_code: reading.untagged.in_code,
        unknown_attributes,
    }
}

/// Reads a text with the reference, without the details that core drops.
fn naive(text: &str, source: Source) -> Reading {
    let mut reading = read(text, source).settled();
    reading.malformed = reading.malformed.min(CoreReading::MOST_MALFORMED);
    // Core only remembers code in a text without any tag that counts.
    reading.in_code &= reading.tags.is_empty() && reading.malformed == 0;
    let mut named: Vec<(TagName, String)> = Vec::new();
    for unknown in reading.unknown_attributes {
        if !named.contains(&unknown) {
            named.push(unknown);
        }
    }
    // The order of unknown attributes is not specified.
    named.sort();
    Reading { unknown_attributes: named, ..reading }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_read_the_same_tags(text in random_text()) {
        for source in [Source::Message, Source::Script, Source::Iteration] {
            prop_assert_eq!(core(&text, source), naive(&text, source), "{:?}", source);
        }
    }
}
