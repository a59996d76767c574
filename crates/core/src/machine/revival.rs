//! Revives a failed agent at the visit that failed, for a resume.
//!
//! A transition that was read but could not be taken was kept, so it costs no further turn.
//! Otherwise the visit gets another turn, in the conversation of the failed one if its backend is
//! the same. Interrupted turns of live agents are continued in [`crate::decide`].

use crate::agent::{Agent, PendingTransition, Session, SessionPlan};
use crate::ids::{BackendName, TurnId};
use crate::protocol::{Fault, Notice, Tag};
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::run::warning::Warning;
use crate::scheduler::{Lane, Prompt};

use super::blocked::Blocked;
use super::transition_context::TransitionContext;
use super::{states, tags};

/// Revives a failed agent at the visit that failed. A kept transition is decided again; otherwise
/// the body is sent once more, after a notice.
pub(crate) fn revive(decision: &mut Decision<'_>, agent: &Agent, kept: Option<&PendingTransition>) {
    decision.push(Event::AgentRevived { agent: agent.id.clone() });
    let Some(kept) = kept else {
        return again(decision, agent, Prompt::Body, Some(Notice::Revived));
    };
    let context = TransitionContext::of(agent, &kept.directories);
    match tags::take(decision, context, &kept.tags) {
        Ok(()) => {}
        Err(Blocked::Fault(fault)) if is_irreplaceable(decision, agent, kept) => {
            let failure = states::unusable(decision, agent, fault, "");
            let (agent, kept) = (agent.id.clone(), Some(kept.clone()));
            decision.push(Event::AgentFailed { agent, failure, kept });
        }
        Err(Blocked::Fault(fault)) => refused(decision, agent, fault),
        Err(Blocked::Failed(failure)) => {
            // Kept again, so that the next resume need not pay for the message either.
            let (agent, kept) = (agent.id.clone(), Some(kept.clone()));
            decision.push(Event::AgentFailed { agent, failure, kept });
        }
        Err(Blocked::Held) => {
            let (agent, kept) = (agent.id.clone(), kept.clone());
            decision.push(Event::AgentHeld { agent, kept });
        }
    }
}

/// Returns whether another turn could not bring back what the transition carries: the answer of a
/// person, or for an agent that cannot be reminded the results of its workers.
pub(super) fn is_irreplaceable(
    decision: &Decision<'_>,
    agent: &Agent,
    kept: &PendingTransition,
) -> bool {
    let repeats = lane_of(decision, agent) == Lane::Script || decision.run.settings.reminders == 0;
    kept.tags.iter().any(|tag| {
        matches!(tag, Tag::Answered { .. }) || repeats && matches!(tag, Tag::Gather { .. })
    })
}

/// Handles a kept transition that the edited workflow forbids: reminds the agent if it can be
/// reminded, else repeats its visit.
fn refused(decision: &mut Decision<'_>, agent: &Agent, fault: Fault) {
    let is_script = decision.lane(&agent.visit.location) == Lane::Script;
    // No reminder can be sent, so another turn of the whole visit is the only way to get another
    // tag.
    if is_script || decision.run.settings.reminders == 0 {
        return again(decision, agent, Prompt::Body, Some(Notice::Revived));
    }
    // A revival renews the reminders of the visit, so the count starts at 1.
    decision.push(Event::Reminded { agent: agent.id.clone(), fault: fault.clone(), reminder: 1 });
    again(decision, agent, Prompt::Reminder(fault), Some(Notice::Revived));
}

/// Queues another turn of the same visit. A turn that never settled may have left a session behind,
/// which the new turn then continues.
pub(crate) fn again(
    decision: &mut Decision<'_>,
    agent: &Agent,
    prompt: Prompt,
    notice: Option<Notice>,
) {
    let turn = TurnId {
        agent: agent.id.clone(),
        visit: agent.visit.number,
        turn: agent.visit.turn.saturating_add(1),
    };
    let lane = lane_of(decision, agent);
    let plan = match (&lane, decision.run.scheduler.turns.get(&agent.id)) {
        (Lane::Script, _) => SessionPlan::Carry,
        (Lane::Prompt(backend), Some(unsettled)) if unsettled.lane != lane => {
            // The unsettled turn may have opened a conversation, but the new backend cannot
            // continue it.
            warn_backend_changed(decision, agent, &unsettled.lane, backend);
            decision.plan(&turn, &lane, &Session::Fresh)
        }
        (Lane::Prompt(_), Some(unsettled)) => unsettled.next_plan(),
        (Lane::Prompt(_), None) => decision.plan(&turn, &lane, &agent.session),
    };
    let order = decision.order();
    decision.push(Event::TurnQueued { turn, lane, prompt, plan, order, notice });
}

/// Returns the lane of the next turn of a visit: the backend that has the conversation, if there is
/// one already.
pub(crate) fn lane_of(decision: &Decision<'_>, agent: &Agent) -> Lane {
    let lane = decision.lane(&agent.visit.location);
    match (decision.run.scheduler.turns.get(&agent.id), &agent.holder) {
        // A turn that continues a conversation stays with its backend, even if the settings have
        // changed.
        (Some(turn), _) if !turn.opens() => turn.lane.clone(),
        (None, Some(holder)) if lane != Lane::Script => Lane::Prompt(holder.clone()),
        (Some(_) | None, _) => lane,
    }
}

/// Warns that the conversation with the earlier backend is not continued.
fn warn_backend_changed(decision: &mut Decision<'_>, agent: &Agent, from: &Lane, to: &BackendName) {
    let Lane::Prompt(from) = from else { return };
    let state = &agent.visit.location;
    let message = format!("{state} starts again with {to}, because {from} answered it before");
    decision.warn(&agent.id, Warning::Other { message });
}
