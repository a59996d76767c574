use std::borrow::Cow;

use proptest::collection::btree_map;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::protocol::tags::{
    AskTimeout, Invoke, Otherwise, Question, ResultStatus, Stack, Tag, TagContent, When,
};
use crate::time::{Span, Timestamp};

fn write(tag: TagContent<'_>) -> Result<String, Unwritable> {
    let name = tag.name();
    let (mut attributes, body) = parts(tag);
    attributes.retain(|(_, value)| value.is_some());
    let attributes = attributes
        .iter()
        .map(|(name, value)| (name.as_ref(), value.as_deref().unwrap_or_default()))
        .collect();
    TagText { name, attributes, body: &body }.write()
}

type Attributes<'a> = Vec<(Cow<'a, str>, Option<Cow<'a, str>>)>;

/// Returns the attributes and the body of a tag.
fn parts(tag: TagContent<'_>) -> (Attributes<'_>, Cow<'_, str>) {
    let named = |name: &'static str, value| (Cow::Borrowed(name), value);
    match tag {
        Tag::Goto { target, input } => (vec![named("input", input)], target),
        Tag::Reset { target, input, cd, stack } => {
            let stack = (stack == Stack::Clear).then_some(Cow::Borrowed("clear"));
            (vec![named("input", input), named("cd", cd), named("stack", stack)], target)
        }
        Tag::Call(invoke) | Tag::Function(invoke) => {
            let Invoke { target, return_to, input, model } = invoke;
            let (to, input) = (named("return", Some(return_to)), named("input", input));
            (vec![to, input, named("model", model)], target)
        }
        Tag::Fork { target, next, cd, input, attributes } => {
            let own = [named("next", next), named("cd", cd), named("input", input)];
            let more = attributes.into_iter().map(|(name, value)| (name, Some(value)));
            (own.into_iter().chain(more).collect(), target)
        }
        Tag::Later { tag, when } => {
            let (mut attributes, body) = parts(*tag);
            attributes.push(match when {
                When::After(span) => named("after", Some(span.to_string().into())),
                When::At(at) => named("at", Some(at.to_string().into())),
            });
            (attributes, body)
        }
        Tag::Gather { target, need, timeout, then } => {
            let timeout = timeout.map(|span| span.to_string().into());
            let wait = named("wait", Some(need.to_string().into()));
            (vec![wait, named("timeout", timeout), named("then", then)], target)
        }
        Tag::Ask(Question { next, text, options, timeout }) => {
            let options = (!options.is_empty()).then(|| options.join("|").into());
            let (after, then, default) = match timeout {
                None => (None, None, None),
                Some(AskTimeout { after, otherwise: Otherwise::Then(then) }) => {
                    (Some(after), Some(then), None)
                }
                Some(AskTimeout { after, otherwise: Otherwise::Default(answer) }) => {
                    (Some(after), None, Some(answer))
                }
            };
            let after = after.map(|span| span.to_string().into());
            let attributes = vec![
                named("next", Some(next)),
                named("options", options),
                named("timeout", after),
                named("then", then),
                named("default", default),
            ];
            (attributes, text)
        }
        Tag::Answered { .. } => unreachable!("it is never written"),
        Tag::Result { payload, status } => {
            let status = (status != ResultStatus::Ok).then_some(Cow::Borrowed(status.as_str()));
            (vec![named("status", status)], payload)
        }
    }
}

/// A name as the protocol reads it: trimmed and not empty.
fn word() -> impl Strategy<Value = Cow<'static, str>> {
    any::<String>().prop_filter_map("an empty name", |text| {
        let text = text.trim();
        (!text.is_empty()).then(|| Cow::Owned(text.to_owned()))
    })
}

fn target() -> impl Strategy<Value = Cow<'static, str>> {
    word().prop_filter("not a target", |text| !text.contains(['<', '\n']))
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    let pieces =
        ["<", ">", "&", "\"", "'", "&lt;", "<result>", "</goto>", "`", "\n", "\0", "é", "x "];
    let markup = proptest::collection::vec(prop::sample::select(pieces.to_vec()), 0..12);
    prop_oneof![any::<String>(), markup.prop_map(|pieces| pieces.concat())].prop_map(Cow::Owned)
}

fn invoke() -> impl Strategy<Value = Invoke<Cow<'static, str>, Cow<'static, str>>> {
    (target(), word(), option::of(text()), option::of(word()))
        .prop_map(|(target, return_to, input, model)| Invoke { target, return_to, input, model })
}

fn later() -> impl Strategy<Value = TagContent<'static>> {
    let when = prop_oneof![
        (1_000..When::LONGEST.0).prop_map(|millis| When::After(Span(millis))),
        (0..4_000_000_000_000_u64).prop_map(|millis| When::At(Timestamp(millis))),
    ];
    let goto =
        (target(), option::of(text())).prop_map(|(target, input)| Tag::Goto { target, input });
    let reset = (target(), option::of(word())).prop_map(|(target, cd)| Tag::Reset {
        target,
        input: None,
        cd,
        stack: Stack::Keep,
    });
    let tag = prop_oneof![goto, reset];
    (tag, when).prop_map(|(tag, when)| Tag::Later { tag: Box::new(tag), when })
}

fn tag() -> impl Strategy<Value = TagContent<'static>> {
    // No attribute of `fork`, and not reserved.
    let variable = "x[a-zA-Z0-9_-]{0,6}".prop_map(Cow::Owned);
    let stack = prop_oneof![Just(Stack::Keep), Just(Stack::Clear)];
    let fork = (
        target(),
        option::of(word()),
        option::of(word()),
        option::of(text()),
        btree_map(variable, text(), 0..4),
    );
    prop_oneof![
        (target(), option::of(text())).prop_map(|(target, input)| Tag::Goto { target, input }),
        (target(), option::of(text()), option::of(word()), stack)
            .prop_map(|(target, input, cd, stack)| Tag::Reset { target, input, cd, stack }),
        later(),
        invoke().prop_map(Tag::Call),
        invoke().prop_map(Tag::Function),
        fork.prop_map(|(target, next, cd, input, attributes)| {
            let attributes = attributes.into_iter().collect();
            Tag::Fork { target, next, cd, input, attributes }
        }),
        (text(), option::of(Just(()))).prop_map(|(payload, failed)| {
            let status = failed.map_or(ResultStatus::Ok, |()| ResultStatus::Failed);
            Tag::Result { payload, status }
        }),
    ]
}

proptest! {
    #[test]
    fn written_tag_is_read_as_exactly_that_tag(tag in tag()) {
        let own_tag = |text: &str| text.contains("<result") || text.contains("</result");
        match write(tag.clone()) {
            Ok(text) => {
                let around = format!("before\n{text}\nafter");
                let found: Vec<_> = scan(&around, Source::Script).collect();
                prop_assert_eq!(found.len(), 1, "{}", around);
                let read = found.into_iter().next().unwrap().tag.unwrap();
                prop_assert_eq!(read.unknown, Vec::<&str>::new());
                prop_assert_eq!(read.kind, tag);
            }
            Err(problem) => {
                let Tag::Result { payload, .. } = &tag else {
                    return Err(TestCaseError::fail(format!("{problem}: {tag:?}")));
                };
                prop_assert!(own_tag(payload), "{:?} can be written", payload);
            }
        }
    }
}

#[test]
fn refused_tag_names_its_problem() {
    let refused = |name, attributes: &[(&str, &str)], body| {
        let written = TagText { name, attributes: attributes.to_vec(), body }.write();
        written.unwrap_or_else(|error| error.to_string())
    };
    let refused = [
        refused(TagName::Goto, &[("return", "A")], "B"),
        refused(TagName::Call, &[], "B"),
        refused(TagName::Fork, &[("next", "A"), ("wait", "x")], "B"),
        refused(TagName::Fork, &[("next", "A"), ("a b", "x")], "B"),
        refused(TagName::Reset, &[("stack", "keep")], "B"),
        refused(TagName::Goto, &[], ""),
        refused(TagName::Goto, &[], "a<b"),
        refused(TagName::Goto, &[], "A</goto><goto>B"),
        refused(TagName::Result, &[], "a</result>b"),
        refused(TagName::Result, &[], "a <result>"),
    ];
    insta::assert_snapshot!(refused.join("\n"), @r#"
    <goto> has no attribute `return`
    <call>: attribute `return` is missing
    <fork>: `wait` belongs on the goto beside the forks: <goto wait="all">STATE</goto>
    <fork>: attribute `a` has no value
    <reset>: `stack` can only be "clear"
    <goto>: it names no state
    <goto>: there is no `</goto>` right after the name of a state
    <goto>: `A</goto><goto>B` is not the name of a state
    the text of <result> cannot contain `<result` or `</result>`
    the text of <result> cannot contain `<result` or `</result>`
    "#);
}
