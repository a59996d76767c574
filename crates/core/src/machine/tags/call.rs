//! Takes `call` and `function`: the callee gets a branch of the conversation, or a fresh one, and
//! the caller waits for its result.

use crate::agent::{Frame, Session};
use crate::protocol::TagName;
use crate::protocol::tags::Invoke;
use crate::run::decision::Decision;
use crate::run::event::{Event, StackChange};

use super::{resolve, resolve_follower};
use crate::machine::blocked::Blocked;
use crate::machine::limits::within_limits;
use crate::machine::transition_context::TransitionContext;

pub(super) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    tag: TagName,
    invoke: &Invoke,
    session: &Session,
) -> Result<(), Blocked> {
    let state = resolve(decision, tag, &invoke.target)?;
    let return_to = resolve_follower(decision, tag, &invoke.return_to)?;
    context.check(decision, tag, Some(&state), Some(&return_to))?;
    let to = within_limits(decision, context.agent, state).map_err(Blocked::Failed)?;
    if *session != Session::Fresh {
        context.check_branch(decision)?;
        context.check_destination(decision, tag, &to)?;
    }
    // Checked before the call, because a failure at the return would waste the callee's turns.
    context.check_continues(decision, tag, &return_to)?;
    // `holder` is filled in by `apply`, which knows the backend of the agent's conversation.
    let frame = Frame {
        state: return_to,
        session: context.session.clone(),
        holder: None,
        cwd: context.agent.cwd.clone(),
        model: context.agent.model.clone(),
        model_of: context.agent.model_of.clone(),
    };
    let mut moved = context.moved(tag, StackChange::Push(frame), session, &to);
    if let (Event::Moved { model, model_of, .. }, Some(named)) = (&mut moved, &invoke.model) {
        // A model name means something to one backend only. If the target is a script, the backend
        // of the next prompt decides.
        (*model, *model_of) = (Some(named.clone()), to.answers.clone());
    }
    decision.push(moved);
    context.enter(decision, &to, invoke.input.clone(), session);
    Ok(())
}
