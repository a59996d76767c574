//! Takes `result`: the caller continues with the payload, or the agent ends.
//!
//! The frame restores the conversation, the directory and the model of the caller, because the
//! callee may have changed all of them.

use crate::protocol::TagName;
use crate::run::decision::Decision;
use crate::run::event::{Event, StackChange};
use crate::value::Value;

use crate::machine::blocked::Blocked;
use crate::machine::limits::within_limits;
use crate::machine::transition_context::TransitionContext;

pub(super) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    payload: &Value,
) -> Result<(), Blocked> {
    context.check(decision, TagName::Result, None, None)?;
    let agent = context.agent;
    let Some(frame) = agent.stack.last() else {
        decision.push(Event::AgentEnded { agent: agent.id.clone(), result: payload.clone() });
        return Ok(());
    };
    let to = within_limits(decision, agent, frame.state.clone()).map_err(Blocked::Failed)?;
    // Only an edited workflow or a `then` leads here, so no other tag of the agent would help: the
    // agent fails instead of being reminded.
    to.check_session(decision, &frame.session, frame.holder.as_ref()).map_err(Blocked::Failed)?;
    let mut moved = context.moved(TagName::Result, StackChange::Pop, &frame.session, &to);
    if let Event::Moved { cwd, model, model_of, .. } = &mut moved {
        *cwd = Some(frame.cwd.clone());
        model.clone_from(&frame.model);
        *model_of = to.model_of(frame.model.as_ref(), frame.model_of.as_ref());
    }
    decision.push(moved);
    context.enter(decision, &to, Some(payload.clone()), &frame.session);
    Ok(())
}
