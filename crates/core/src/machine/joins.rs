//! Ends a wait for workers, and cancels agents.
//!
//! A wait is over when enough workers ended, when too many failed, or when its time is up. Workers
//! that are still live are then cancelled, so that none outlives the wait. When the last one has
//! left, the transition of the parent is decided again: see [`super::tags`].

use crate::agent::{Agent, AgentStatus, CancelReason, Joining};
use crate::ids::AgentId;
use crate::protocol::{Need, Tag};
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::run::{Group, Run, WaitEnd};

use super::waking;

/// Continues the waits for workers and the cancellations that need no input.
pub(crate) fn advance(mut decision: Decision<'_>) -> Option<Vec<Event>> {
    let run = decision.run;
    // The deepest first: the name of a worker follows the name of its parent.
    for agent in run.cancelling.iter().rev() {
        if !is_busy(run, agent)
            && let Some(AgentStatus::Cancelling(why)) = run.agents.get(agent).map(Agent::status)
        {
            let (agent, why) = (agent.clone(), why.clone());
            decision.push(Event::AgentCancelled { agent, why });
        }
    }
    for (parent, group) in &run.groups {
        // One at a time: the end of one wait may cancel the parent of another.
        if !decision.events.is_empty() {
            break;
        }
        let Some(AgentStatus::Joining(Joining { kept, .. })) =
            run.agents.get(parent).map(Agent::status)
        else {
            continue;
        };
        if group.over.is_none() {
            if let Some(end) = end(group, &kept.tags) {
                close(&mut decision, parent, group, end);
            }
        } else if group.left == 0 && !parent.has_descendant_in(&run.cancelling) {
            waking::wake(&mut decision, parent);
        }
    }
    (!decision.events.is_empty()).then_some(decision.events)
}

/// Returns why a wait is over; `None` while it lasts.
fn end(group: &Group, kept: &[Tag]) -> Option<WaitEnd> {
    let Group { need, left, ended, failed, .. } = *group;
    // A worker that was cancelled is neither missing nor ended.
    let counted = group.counted();
    let (is_met, is_lost) = match need {
        Need::All => (ended == counted, failed > 0),
        Need::Done => (left == 0, false),
        Need::Count(count) => {
            let count = count.min(counted);
            (ended >= count, ended + left < count)
        }
    };
    let has_then = kept.iter().any(|tag| matches!(tag, Tag::Gather { then: Some(_), .. }));
    if is_met {
        Some(WaitEnd::Met)
    } else if is_lost && has_then {
        Some(WaitEnd::Unmet)
    } else {
        None
    }
}

/// Ends a wait whose time is up.
pub(super) fn time_out(decision: &mut Decision<'_>, parent: &AgentId) {
    let run = decision.run;
    if let Some(group) = run.groups.get(parent).filter(|group| group.over.is_none()) {
        close(decision, parent, group, WaitEnd::TimedOut);
    }
}

/// Ends a wait, and cancels the workers that are still live.
fn close(decision: &mut Decision<'_>, parent: &AgentId, group: &Group, end: WaitEnd) {
    let run = decision.run;
    decision.push(Event::WaitOver { agent: parent.clone(), end });
    if group.left == 0 {
        return;
    }
    let why = match end {
        WaitEnd::Met => CancelReason::EnoughEnded,
        WaitEnd::TimedOut => CancelReason::TimedOut,
        WaitEnd::Unmet => {
            let failed = group.members.keys().find(|id| run.failed.contains(*id));
            CancelReason::Failed(failed.unwrap_or(parent).clone())
        }
    };
    for member in group.members.keys() {
        if run.agents.get(member).is_some_and(Agent::is_live) {
            cancel(decision, member, &why);
        }
    }
}

/// Returns whether an agent or one of its workers has a turn in flight.
fn is_busy(run: &Run, agent: &AgentId) -> bool {
    let in_flight = &run.scheduler.in_flight;
    in_flight.contains(agent) || agent.has_descendant_in(in_flight)
}

/// Lets a cancelled agent leave whose turn has just ended, and the cancelled agents above it that
/// waited only for this turn.
pub(crate) fn leave(decision: &mut Decision<'_>, agent: &Agent) {
    let run = decision.run;
    let mut others = run.scheduler.in_flight.clone();
    others.remove(&agent.id);
    let mut next = Some(agent);
    while let Some(Agent { id, parent, status: AgentStatus::Cancelling(why), .. }) = next {
        if others.contains(id) || id.has_descendant_in(&others) {
            break;
        }
        decision.push(Event::AgentCancelled { agent: id.clone(), why: why.clone() });
        next = parent.as_ref().and_then(|parent| run.agents.get(parent));
    }
}

/// Cancels an agent with its workers, the deepest first. A failed agent leaves at once, and so does
/// a live one if neither it nor one of its workers has a turn in flight.
pub(crate) fn cancel(decision: &mut Decision<'_>, agent: &AgentId, why: &CancelReason) {
    let run = decision.run;
    let below = agent.descendants();
    let later = run.agents.range(below.clone()..).map(|(id, _)| id);
    let workers: Vec<&AgentId> =
        later.take_while(|id| id.as_str().starts_with(below.as_str())).collect();
    for id in workers.into_iter().rev().chain([agent]) {
        if !decision.cancelled.insert(id.clone()) || run.cancelling.contains(id) {
            continue;
        }
        let (agent, why) = (id.clone(), why.clone());
        let is_live = run.agents.get(id).is_some_and(Agent::is_live);
        decision.push(if is_live && is_busy(run, id) {
            Event::AgentCancelling { agent, why }
        } else {
            Event::AgentCancelled { agent, why }
        });
    }
}
