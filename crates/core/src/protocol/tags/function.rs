//! `<function return="STATE">STATE</function>`: start a fresh session, and return with a result.

use super::call::{RETURN, invoke, plain};
use super::{Body, Tag, TagSpec};

pub(super) const SPEC: TagSpec = TagSpec {
    body: Body::Target,
    follower: Some(RETURN),
    continues_at_target: false,
    attributes: &["return", "input", "model"],
    note: None,
    cheat_sheet: [
        "`<function return=\"R\">S</function>`",
        "a new one",
        "R, in this one, with S's result",
    ],
    read: |given, target| Ok(Tag::Function(invoke(given, target)?)),
    implicit: |target, return_to| Some(Tag::Function(plain(target, return_to?))),
};
