//! `<reset>STATE</reset>`: continue in a fresh session.

use super::attributes::Attributes;
use super::{Body, Stack, Tag, TagProblem, TagSpec, when};

pub(super) const SPEC: TagSpec = TagSpec {
    body: Body::Target,
    follower: None,
    continues_at_target: false,
    attributes: &["input", "cd", "stack", "after", "at"],
    note: None,
    cheat_sheet: ["`<reset>S</reset>`", "a new one", ""],
    read: |given, target| {
        let reset = Tag::Reset {
            target: target.into(),
            input: given.text("input"),
            cd: given.word("cd")?,
            stack: stack(given)?,
        };
        when::read(given, reset)
    },
    implicit: |target, _| Some(Tag::Reset { target, input: None, cd: None, stack: Stack::Keep }),
};

fn stack<'a>(given: &mut Attributes<'a>) -> Result<Stack, TagProblem<'a>> {
    match given.text("stack").as_deref() {
        None => Ok(Stack::Keep),
        Some("clear") => Ok(Stack::Clear),
        Some(_) => Err(TagProblem::Stack),
    }
}
