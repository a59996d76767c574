//! `<fork next="STATE">STATE</fork>`: spawn a worker.
//!
//! `next` may be missing only if a `goto` beside the forks names the state, so it is not required
//! here: see [`crate::protocol::reading`].

use super::{Body, Follower, Tag, TagProblem, TagSpec};
use crate::few::Few;

/// Attribute names that a later release may give a meaning. They are refused now, because a
/// workflow that used them as template variables would change its meaning then.
const RESERVED: [&str; 7] =
    ["wait_timeout", "model", "backend", "budget", "worktree", "branch", "name"];

pub(super) const SPEC: TagSpec = TagSpec {
    body: Body::Target,
    follower: Some(NEXT),
    continues_at_target: false,
    attributes: &["next", "cd", "input"],
    note: Some("Several <fork> tags are allowed together if all have the same next."),
    cheat_sheet: [
        "`<fork next=\"N\" k=\"v\">S</fork>`",
        "a new one, of a worker that has `{{k}}`",
        "meanwhile N, in this one",
    ],
    read: |given, target| {
        if let Some(name) = given.named(&RESERVED) {
            return Err(TagProblem::Reserved(name));
        }
        if let Some(name) = given.named(&["wait", "timeout"]) {
            return Err(TagProblem::OnFork(name));
        }
        if let Some(name) = given.named(&["after"]) {
            return Err(TagProblem::OnlyLater(name));
        }
        Ok(Tag::Fork {
            target: target.into(),
            next: given.word(NEXT.attribute)?,
            cd: given.word("cd")?,
            input: given.text("input"),
            attributes: given.rest().collect(),
        })
    },
    implicit: |target, next| {
        let (next, attributes) = (Some(next?), Few::default());
        Some(Tag::Fork { target, next, cd: None, input: None, attributes })
    },
};

/// The state in which the parent continues.
const NEXT: Follower = Follower { attribute: "next", placeholder: "NEXT", advice: "continue at" };
