//! Random texts built from pieces of tags.

use proptest::prelude::*;
use proptest::sample::select;
use raymond_core::protocol::TagName;

use super::super::{Source, read};
use super::reading::show;

const PIECES: [&str; 30] = [
    "<result>",
    "</result>",
    "<result",
    "</result ",
    "<",
    ">",
    "/",
    "=",
    "\"",
    "'",
    " ",
    "\n",
    "\n\n",
    "\r\n",
    "`",
    "``",
    "```",
    "~~~",
    "A",
    "B.md",
    "input",
    "return",
    " next=\"N\"",
    " return='R'",
    " cd=\"d\"",
    " stack=\"clear\"",
    "&lt;",
    "&amp;",
    "\u{e9}",
    "\u{2028}",
];

fn random_text() -> impl Strategy<Value = String> {
    let names = TagName::ALL.iter().flat_map(|tag| [format!("<{tag}"), format!("</{tag}>")]);
    let pieces: Vec<String> = PIECES.into_iter().map(str::to_owned).chain(names).collect();
    prop::collection::vec(select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    // proves: S21
    #[test]
    fn no_text_breaks_the_reader(text in random_text()) {
        let script = read(&text, Source::Script);
        prop_assert!(!script.in_code);
        let message = read(&text, Source::Message).settled();
        for tag in script.tags.iter().chain(&message.tags) {
            prop_assert!(tag.name == TagName::Result || tag.body.trim() == tag.body);
            prop_assert!(text.contains(&tag.body));
        }
    }

    #[test]
    fn text_without_code_reads_like_a_script(text in random_text()) {
        let text = text.replace(['`', '~'], "");
        prop_assert_eq!(read(&text, Source::Message), read(&text, Source::Script));
    }

    #[test]
    fn fenced_tags_do_not_count_beside_others(text in random_text()) {
        let text = text.replace(['`', '~'], "");
        let fenced = read(&format!("```\n{text}\n```\n<goto>A</goto>"), Source::Message);
        let expected = if fenced.in_code { "goto \"A\"; in_code" } else { "goto \"A\"" };
        prop_assert_eq!(show(&fenced), expected);
    }
}
