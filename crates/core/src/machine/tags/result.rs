//! Takes `result`: the caller continues with the payload and its status, or the agent ends or
//! fails.
//!
//! The frame restores the conversation, the directory and the model of the caller, because the
//! callee may have changed all of them.

use crate::failure::AgentFailure;
use crate::ids::AgentId;
use crate::protocol::{ResultStatus, TagName};
use crate::run::decision::{Decision, VisitEntry};
use crate::run::event::{Event, StackChange};
use crate::value::Value;

use crate::machine::blocked::Blocked;
use crate::machine::limits::within_limits;
use crate::machine::transition_context::TransitionContext;

pub(super) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    payload: &Value,
    status: ResultStatus,
) -> Result<(), Blocked> {
    context.check(decision, TagName::Result, None, None)?;
    let agent = context.agent;
    let Some(frame) = agent.stack.last() else {
        decision.push(end(&agent.id, payload.clone(), status));
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
    decision.enter(VisitEntry {
        agent: &agent.id,
        state: &to.state,
        visit: agent.visit.number.saturating_add(1),
        count: to.count,
        input: Some(payload.clone()),
        result_status: status,
        session: &frame.session,
    });
    Ok(())
}

/// Returns the end of an agent without a caller.
pub(crate) fn end(agent: &AgentId, payload: Value, status: ResultStatus) -> Event {
    let agent = agent.clone();
    match status {
        ResultStatus::Ok => Event::AgentEnded { agent, result: payload },
        ResultStatus::Failed => {
            // Nothing is kept: a resume repeats the visit, so that the agent decides again.
            let failure = AgentFailure::Declared { reason: payload };
            Event::AgentFailed { agent, failure, kept: None }
        }
    }
}
