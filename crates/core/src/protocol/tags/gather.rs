//! `wait`: a `goto` beside forks that is taken when their workers have ended.

use super::attributes::Attributes;
use super::need::Need;
use super::{Tag, TagContent, TagProblem, When, when};

/// Returns the tag with its attributes `wait`, `timeout` and `then`.
pub(super) fn read<'a>(
    given: &mut Attributes<'a>,
    tag: TagContent<'a>,
) -> Result<TagContent<'a>, TagProblem<'a>> {
    let Some(wait) = given.raw("wait") else {
        return match given.named(&["timeout", "then"]) {
            Some(name) => Err(TagProblem::NeedsWait(name)),
            None => Ok(tag),
        };
    };
    let need = Need::parse(wait.trim()).ok_or(TagProblem::BadWait(wait))?;
    let timeout = given.raw("timeout").map(when::timeout).transpose()?;
    let then = given.word("then")?;
    if timeout.is_some() && then.is_none() {
        return Err(TagProblem::TimeoutNeedsThen);
    }
    match tag {
        Tag::Goto { input: Some(_), .. } => Err(TagProblem::WaitAndInput),
        Tag::Goto { target, input: None } => Ok(Tag::Gather { target, need, timeout, then }),
        Tag::Later { when: When::After(_), .. } => Err(TagProblem::WaitAnd("after")),
        Tag::Later { when: When::At(_), .. } => Err(TagProblem::WaitAnd("at")),
        tag @ (Tag::Reset { .. }
        | Tag::Call(_)
        | Tag::Function(_)
        | Tag::Fork { .. }
        | Tag::Ask(_)
        | Tag::Result { .. }
        | Tag::Gather { .. }
        | Tag::Answered { .. }) => Ok(tag),
    }
}
