//! `<goto>STATE</goto>`: continue in the same session.

use super::{Body, Tag, TagSpec, gather, when};

pub(super) const SPEC: TagSpec = TagSpec {
    body: Body::Target,
    follower: None,
    continues_at_target: true,
    attributes: &["input", "after", "at", "wait", "timeout", "then"],
    note: None,
    cheat_sheet: [
        "`<goto>S</goto>`",
        "this one continues",
        "`after=\"5m\"` waits first; beside forks, `wait=\"all\"` waits for their workers",
    ],
    read: |given, target| {
        let goto = Tag::Goto { target: target.into(), input: given.text("input") };
        let tag = when::read(given, goto)?;
        gather::read(given, tag)
    },
    implicit: |target, _| Some(Tag::Goto { target, input: None }),
};
