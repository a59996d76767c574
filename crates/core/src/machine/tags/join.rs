//! Takes a `goto` with `wait`: beside forks its agent is parked until the workers have ended, and
//! then it enters the state with the list of their ends.
//!
//! Everything that can be refused is refused at once, as for a wait for a time: see
//! [`super::later`]. When a wait is over is decided in [`crate::machine::joins`].

use crate::agent::{Agent, PendingTransition};
use crate::ids::{AgentId, StateName};
use crate::protocol::{Need, Tag, TagName};
use crate::run::WaitEnd;
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::time::{Span, Timestamp};

use super::{goto, resolve, resolve_then};
use crate::machine::blocked::Blocked;
use crate::machine::transition_context::TransitionContext;

/// The parts of the tag.
#[derive(Clone, Copy)]
pub(super) struct Gather<'t> {
    pub(super) target: &'t str,
    pub(super) need: Need,
    pub(super) timeout: Option<Span>,
    pub(super) then: Option<&'t str>,
}

/// A wait for workers that are about to be spawned.
pub(super) struct Join {
    kept: PendingTransition,
    need: Need,
    until: Option<Timestamp>,
}

impl<'t> Gather<'t> {
    pub(super) fn of(tag: &'t Tag) -> Option<Self> {
        let Tag::Gather { target, need, timeout, then } = tag else { return None };
        Some(Self { target, need: *need, timeout: *timeout, then: then.as_deref() })
    }
}

/// Takes the transition, because its wait is over.
pub(super) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    gather: Gather<'_>,
) -> Result<(), Blocked> {
    let group = decision.run.groups.get(&context.agent.id);
    let state = match (group.and_then(|group| group.over), gather.then) {
        (Some(WaitEnd::Unmet | WaitEnd::TimedOut), Some(then)) => {
            resolve_then(decision, TagName::Goto, then)?
        }
        (_, _) => resolve(decision, TagName::Goto, gather.target)?,
    };
    context.check_gather(decision, &state, gather.need)?;
    goto::enter(decision, context, state, None)
}

/// Checks a transition as if it were taken now, and returns its wait.
pub(super) fn wait(
    decision: &Decision<'_>,
    context: TransitionContext<'_>,
    gather: Gather<'_>,
) -> Result<Join, Blocked> {
    let Gather { target, need, timeout, then } = gather;
    let checked = |state: StateName| {
        context.check_gather(decision, &state, need)?;
        // Limits count when the transition is taken.
        context.check_continues(decision, TagName::Goto, &state)?;
        // The full name, for readers of a parked agent.
        Ok(state.to_string())
    };
    let target = checked(resolve(decision, TagName::Goto, target)?)?;
    let then =
        then.map(|then| checked(resolve_then(decision, TagName::Goto, then)?)).transpose()?;
    let until = timeout.map(|timeout| decision.at + timeout);
    let kept = context.keep(&[Tag::Gather { target, need, timeout, then }]);
    Ok(Join { kept, need, until })
}

/// Parks the agent. The workers are spawned by the events before.
pub(super) fn park(
    decision: &mut Decision<'_>,
    agent: &Agent,
    join: Join,
    forks: u32,
    workers: Vec<AgentId>,
) {
    let Join { kept, need, until } = join;
    let agent = agent.id.clone();
    decision.push(Event::AgentJoins { agent, kept, workers, need, until, forks });
}
