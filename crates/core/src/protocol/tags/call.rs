//! `<call return="STATE">STATE</call>`: branch the session, and return with a result.

use std::borrow::Cow;

use super::attributes::Attributes;
use super::{Body, Follower, Invoke, Tag, TagProblem, TagSpec};

pub(super) const SPEC: TagSpec = TagSpec {
    body: Body::Target,
    follower: Some(RETURN),
    continues_at_target: true,
    attributes: &["return", "input", "model"],
    note: None,
    cheat_sheet: [
        "`<call return=\"R\">S</call>`",
        "a branch of this one",
        "R, in this one, with S's result",
    ],
    read: |given, target| Ok(Tag::Call(invoke(given, target)?)),
    implicit: |target, return_to| Some(Tag::Call(plain(target, return_to?))),
};

/// The state that receives the result.
pub(super) const RETURN: Follower =
    Follower { attribute: "return", placeholder: "RETURN", advice: "return to" };

pub(super) fn invoke<'a>(
    given: &mut Attributes<'a>,
    target: &'a str,
) -> Result<Invoke<Cow<'a, str>, Cow<'a, str>>, TagProblem<'a>> {
    Ok(Invoke {
        target: target.into(),
        return_to: given.required(RETURN.attribute)?,
        input: given.text("input"),
        model: given.word("model")?,
    })
}

pub(super) fn plain(target: String, return_to: String) -> Invoke {
    Invoke { target, return_to, input: None, model: None }
}
