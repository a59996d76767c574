//! Takes `goto`: the conversation continues at the target.

use crate::protocol::TagName;
use crate::run::decision::Decision;
use crate::run::event::StackChange;
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
    let to = within_limits(decision, context.agent, state).map_err(Blocked::Failed)?;
    context.check_destination(decision, TagName::Goto, &to)?;
    decision.push(context.moved(TagName::Goto, StackChange::Keep, context.session, &to));
    context.enter(decision, &to, input, context.session);
    Ok(())
}
