//! Properties of every text.

use proptest::prelude::*;

use super::*;

const NASTY: [&str; 46] = [
    "<",
    ">",
    "/",
    "\"",
    "'",
    "=",
    "`",
    "``",
    "```",
    "~~~",
    "\n",
    "\n\n",
    " ",
    "\r\n",
    "\t",
    "ä",
    "\u{a0}",
    "&lt;",
    "&",
    "<goto",
    "<goto>",
    "</goto>",
    "<reset>",
    "</reset>",
    "<call",
    "</call>",
    "return",
    "<function",
    "<fork",
    "</fork>",
    "next=\"N\"",
    "<result",
    "<result>",
    "</result>",
    "</result",
    "input=",
    "stack=\"clear\"",
    "A",
    "a='b'",
    "\0",
    "x",
    "<goto>A</goto>",
    "<result>a</result>",
    "`<goto>A</goto>`",
    "<fork next='N'>A</fork>",
    "\u{1F980}",
];

fn nasty() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&NASTY[..]), 0..40).prop_map(|parts| parts.concat())
}

fn sources() -> impl Strategy<Value = Source> {
    prop::sample::select(vec![Source::Message, Source::Script, Source::Iteration])
}

/// A tag, and the line that [`summary`] must show for it.
fn well_formed() -> impl Strategy<Value = (String, String)> {
    let name = "[A-Z]{1,8}(\\.md)?";
    let value = "[ -~äö\n]{0,12}";
    prop_oneof![
        (name, value).prop_map(|(target, input)| (
            format!("<goto input=\"{}\">{target}</goto>", escaped(&input)),
            format!("goto {target} input={input:?}"),
        )),
        (name, name, value).prop_map(|(target, return_to, input)| (
            format!(
                "<call input='{}'\n return = '{return_to}' >\n{target} </call >",
                escaped(&input)
            ),
            format!("call {target} return={return_to:?} input={input:?}"),
        )),
        (name, name, value).prop_map(|(target, next, item)| (
            format!("<fork item=\"{}\" next=\"{next}\">{target}</fork>", escaped(&item)),
            format!("fork {target} next={next:?} item:{item:?}"),
        )),
        "[ -;=-~\n]{0,40}".prop_map(|payload| (
            format!("<result>{payload}</result>"),
            format!("result {payload:?}"),
        )),
    ]
}

fn escaped(value: &str) -> String {
    let value = value.replace('&', "&amp;").replace('<', "&lt;");
    value.replace('"', "&quot;").replace('\'', "&apos;")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_text_breaks_the_scanner(text in nasty(), source in sources()) {
        let mut end = 0;
        let mut scan = scan(&text, source);
        for found in scan.by_ref() {
            let opening = format!("<{}", found.name);
            prop_assert!(text[found.span.clone()].starts_with(&opening));
            prop_assert!(source.knows(found.name));
            prop_assert!(end <= found.span.start, "{:?} is read twice", found);
            end = found.resume();
        }
        prop_assert!(source != Source::Script || !scan.in_code());
        prop_assert!(scan.next().is_none());
    }

    #[test]
    fn every_script_opening_is_in_a_tag(text in nasty()) {
        let spans: Vec<_> = scan(&text, Source::Script)
            .map(|found| found.span.start..found.resume())
            .collect();
        let mut at = 0;
        while let Some((start, _)) = opening::next(text.as_bytes(), at, Source::Message) {
            prop_assert!(spans.iter().any(|span| span.contains(&start)), "{start} in {text:?}");
            at = start + 1;
        }
    }

    #[test]
    fn well_formed_tags_are_read_as_written((tag, expected) in well_formed(), source in sources()) {
        let known = source != Source::Iteration || tag.starts_with("<result");
        prop_assert_eq!(summary(&tag, source), if known { expected } else { String::new() });
    }

    #[test]
    fn prose_around_a_tag_changes_nothing(
        (tag, expected) in well_formed(),
        before in "[ -;=-_a-}\n]{0,60}",
        after in "[ -;=-_a-}\n]{0,60}",
    ) {
        prop_assert_eq!(summary(&format!("{before}{tag}{after}"), Source::Message), expected);
    }

    #[test]
    fn prose_between_tags_keeps_their_order(
        tags in prop::collection::vec((well_formed(), "[ -;=-_a-}]{0,9}"), 0..6),
    ) {
        let parts = tags.iter().flat_map(|((tag, _), prose)| [tag.as_str(), prose]);
        let text: String = parts.collect();
        let expected: Vec<&str> = tags.iter().map(|((_, line), _)| line.as_str()).collect();
        prop_assert_eq!(summary(&text, Source::Script), expected.join("\n"));
    }
}
