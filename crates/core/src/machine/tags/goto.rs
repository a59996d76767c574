//! Takes `goto`: the conversation continues at the target.

use crate::ids::StateName;
use crate::protocol::TagName;
use crate::run::decision::Decision;
use crate::run::event::{Event, StackChange};
use crate::value::Value;

use super::resolve;
use crate::machine::blocked::Blocked;
use crate::machine::limits::within_limits;
use crate::machine::transition_context::TransitionContext;

pub(super) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    target: &str,
    input: Option<Value>,
) -> Result<(), Blocked> {
    let state = resolve(decision, TagName::Goto, target)?;
    context.check(decision, TagName::Goto, Some(&state), None)?;
    enter(decision, context, state, input)
}

/// Enters a state that the policy allows. After a wait for workers, the visit starts with the list
/// of their ends.
pub(super) fn enter(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    state: StateName,
    input: Option<Value>,
) -> Result<(), Blocked> {
    let to = within_limits(decision, context.agent, state).map_err(Blocked::Failed)?;
    context.check_destination(decision, TagName::Goto, &to)?;
    decision.push(context.moved(TagName::Goto, StackChange::Keep, context.session, &to));
    context.enter(decision, &to, input, context.session);
    let agent = &context.agent.id;
    let group = decision.run.groups.get(agent).filter(|group| group.over.is_some());
    if let Some(group) = group {
        let failed = group.members.keys().filter(|id| decision.run.failed.contains(*id));
        let failed = failed.cloned().collect();
        decision.push(Event::Joined { agent: agent.clone(), failed });
    }
    Ok(())
}
