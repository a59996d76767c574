//! Ends the wait of a parked agent: its transition is decided again, as if the agent had written it
//! now.
//!
//! Meanwhile its limits may be used up, and an edit may have removed its target. How an agent is
//! parked is in [`super::tags`].

use crate::agent::{Agent, AgentStatus, Joining, Parked, PendingTransition};
use crate::ids::AgentId;
use crate::protocol::Fault;
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::run::warning::Warning;
use crate::scheduler::{Lane, Prompt};

use super::blocked::Blocked;
use super::transition_context::TransitionContext;
use super::{revival, states, tags};

/// Ends all waits for a time.
pub(crate) fn wake_all(decision: &mut Decision<'_>) {
    let run = decision.run;
    for (_, agent) in run.scheduler.timers.wakes() {
        if run.agents.get(agent).is_some_and(|agent| matches!(agent.status, AgentStatus::Parked(_)))
        {
            wake(decision, agent);
        }
    }
}

/// Takes the transition of a parked agent.
pub(crate) fn wake(decision: &mut Decision<'_>, agent: &AgentId) {
    let run = decision.run;
    let Some(agent) = run.agents.get(agent) else { return };
    let kept = match &agent.status {
        AgentStatus::Parked(Parked { kept, .. }) | AgentStatus::Joining(Joining { kept, .. }) => {
            kept
        }
        AgentStatus::Live
        | AgentStatus::Held(_)
        | AgentStatus::Asking(_)
        | AgentStatus::Cancelling(_)
        | AgentStatus::Failed { .. } => return,
    };
    take_kept(decision, agent, kept);
}

/// Takes a transition that was kept until now.
pub(super) fn take_kept(decision: &mut Decision<'_>, agent: &Agent, kept: &PendingTransition) {
    let context = TransitionContext::of(agent, &kept.directories);
    match tags::take(decision, context, &kept.tags) {
        Ok(()) => {}
        Err(Blocked::Fault(fault)) => refused(decision, agent, kept, fault),
        Err(Blocked::Failed(failure)) => {
            let (agent, kept) = (agent.id.clone(), Some(kept.clone()));
            decision.push(Event::AgentFailed { agent, failure, kept });
        }
        Err(Blocked::Held) => {
            let (agent, kept) = (agent.id.clone(), kept.clone());
            decision.push(Event::AgentHeld { agent, kept });
        }
    }
}

/// Reminds the agent of a prompt, or fails a script, whose transition is no longer possible.
fn refused(decision: &mut Decision<'_>, agent: &Agent, kept: &PendingTransition, fault: Fault) {
    let is_script = revival::lane_of(decision, agent) == Lane::Script;
    if is_script
        || agent.visit.reminders >= decision.run.settings.reminders
        || revival::is_irreplaceable(decision, agent, kept)
    {
        // Kept, because another edit may bring the target back.
        let (failure, kept) = (states::unusable(decision, agent, fault, ""), Some(kept.clone()));
        decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept });
        return;
    }
    let reminder = agent.visit.reminders.saturating_add(1);
    decision.push(Event::Reminded { agent: agent.id.clone(), fault: fault.clone(), reminder });
    revival::again(decision, agent, Prompt::Reminder(fault), None);
}

/// Starts waits again if more than their whole duration is left, because the clock was set back
/// meanwhile. A time that a tag names is taken literally.
pub(crate) fn restart_after_clock_change(decision: &mut Decision<'_>) {
    let run = decision.run;
    for (until, id) in run.scheduler.timers.wakes() {
        let Some(agent) = run.agents.get(id) else { continue };
        let AgentStatus::Parked(Parked { kept, span: Some(span), .. }) = &agent.status else {
            continue;
        };
        let again = decision.at + *span;
        if until > again {
            decision.push(Event::AgentWaits {
                agent: id.clone(),
                kept: kept.clone(),
                until: again,
                span: Some(*span),
                forks: agent.forks,
            });
            decision.warn(id, Warning::ClockSetBack { until: again });
        }
    }
}
