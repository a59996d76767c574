//! Takes `reset`: a fresh conversation begins at the target.

use crate::agent::Session;
use crate::protocol::{Stack, TagName};
use crate::run::decision::Decision;
use crate::run::event::{Event, StackChange};
use crate::run::warning::Warning;
use crate::value::Value;

use super::resolve;
use crate::machine::blocked::Blocked;
use crate::machine::limits::within_limits;
use crate::machine::transition_context::TransitionContext;

/// The parts of the tag.
pub(super) struct Reset<'t> {
    pub(super) target: &'t str,
    pub(super) input: Option<Value>,
    pub(super) cd: Option<&'t str>,
    pub(super) stack: Stack,
}

pub(super) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    reset: Reset<'_>,
) -> Result<(), Blocked> {
    let Reset { target, input, cd, stack } = reset;
    let state = resolve(decision, TagName::Reset, target)?;
    let directory = context.directory(TagName::Reset, cd)?;
    context.check(decision, TagName::Reset, Some(&state), None)?;
    let to = within_limits(decision, context.agent, state).map_err(Blocked::Failed)?;
    let change = match stack {
        Stack::Keep => StackChange::Keep,
        Stack::Clear => StackChange::Clear,
    };
    let mut moved = context.moved(TagName::Reset, change, &Session::Fresh, &to);
    if let Event::Moved { cwd, model, model_of, .. } = &mut moved {
        *cwd = directory;
        if stack == Stack::Clear {
            // A model lasts until its frame returns, and `stack="clear"` drops all frames.
            (*model, *model_of) = (None, None);
        }
    }
    decision.push(moved);
    if stack == Stack::Clear && !context.agent.stack.is_empty() {
        let frames = u32::try_from(context.agent.stack.len()).unwrap_or(u32::MAX);
        decision.warn(&context.agent.id, Warning::ReturnsDropped { frames });
    }
    context.enter(decision, &to, input, &Session::Fresh);
    Ok(())
}
