//! Takes the tags of a transition, one file for each tag.
//!
//! Everything that can refuse a transition runs before the first event is added to the decision, so
//! that a transition is taken as a whole or not at all. The specifications of the tags are in
//! [`crate::protocol::tags`].

mod ask;
mod call;
pub(super) mod fork;
mod goto;
mod join;
mod later;
mod reset;
pub(super) mod result;

pub(crate) use fork::may_have_room;

use crate::agent::Session;
use crate::ids::StateName;
use crate::protocol::{Fault, Tag, TagName};
use crate::run::decision::Decision;

use super::blocked::Blocked;
use super::transition_context::{TransitionContext, shortened};
use join::Gather;
use reset::Reset;

/// Takes the transition, or returns why not. Adds no event unless the whole transition is taken.
pub(crate) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    tags: &[Tag],
) -> Result<(), Blocked> {
    match tags {
        [Tag::Goto { target, input }] => goto::take(decision, context, target, input.clone()),
        [Tag::Reset { target, input, cd, stack }] => {
            let (input, cd) = (input.clone(), cd.as_deref());
            reset::take(decision, context, Reset { target, input, cd, stack: *stack })
        }
        [Tag::Call(invoke)] => {
            // A callee must never write into the conversation of its caller.
            let session = context.session.branched();
            call::take(decision, context, TagName::Call, invoke, &session)
        }
        [Tag::Function(invoke)] => {
            call::take(decision, context, TagName::Function, invoke, &Session::Fresh)
        }
        [tag @ Tag::Gather { .. }] if let Some(gather) = Gather::of(tag) => {
            join::take(decision, context, gather)
        }
        [Tag::Ask(question)] => ask::take(decision, context, question),
        [Tag::Answered { next, answer }] => ask::answered(decision, context, next, answer.clone()),
        [Tag::Later { tag, when }] => later::take(decision, context, tag, *when),
        [Tag::Result { payload, status }] => result::take(decision, context, payload, *status),
        // `transition` passes several tags only if they are forks with at most one `goto`.
        tags => fork::take(decision, context, tags),
    }
}

/// Returns the state that a tag names between its opening and its close.
fn resolve(decision: &Decision<'_>, tag: TagName, target: &str) -> Result<StateName, Blocked> {
    named(decision, tag, None, target)
}

/// Returns the state that the `return` or `next` of a tag names.
fn resolve_follower(
    decision: &Decision<'_>,
    tag: TagName,
    name: &str,
) -> Result<StateName, Blocked> {
    named(decision, tag, tag.spec().follower.map(|follower| follower.attribute), name)
}

/// Returns the state that the `then` of a tag names.
fn resolve_then(decision: &Decision<'_>, tag: TagName, name: &str) -> Result<StateName, Blocked> {
    named(decision, tag, Some("then"), name)
}

fn named(
    decision: &Decision<'_>,
    tag: TagName,
    attribute: Option<&str>,
    name: &str,
) -> Result<StateName, Blocked> {
    let attribute = attribute.map(str::to_owned);
    decision.definition.resolve(name).map(|state| state.name.clone()).map_err(|why| {
        // The agent chose the name, and the fault goes into the journal.
        let (target, why) = (shortened(name), shortened(&why.to_string()));
        Blocked::Fault(Fault::Unresolved { tag, attribute, target, why })
    })
}
