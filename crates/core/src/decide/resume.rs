//! Decides what follows from a resume: interrupted turns are queued again, failed agents are
//! revived, and kept transitions are decided again.
//!
//! Turns that are still in flight were adopted by the new owner and continue untouched. Whether the
//! new settings are acceptable is checked before, in [`super::backend_change`].

use std::collections::BTreeSet;

use crate::agent::{Agent, AgentStatus, Asking};
use crate::budget::Micros;
use crate::failure::AgentFailure;
use crate::ids::{AgentId, TurnAttempt};
use crate::machine::{alarm, asking, revival, waking};
use crate::program;
use crate::protocol::Notice;
use crate::scheduler::{Lane, Prompt, Turn, TurnPhase, backoff};
use crate::time::Timestamp;
use crate::workflow::Definition;

use super::settle;
use crate::run::Group;
use crate::run::decision::Decision;
use crate::run::effect::in_flight;
use crate::run::event::Event;
use crate::run::input::Resume;
use crate::run::settings::InterruptedScripts;
use crate::run::state::{Phase, Run};
use crate::scheduler::Hold;

pub(super) fn resume(
    run: &Run,
    definition: &Definition,
    at: Timestamp,
    Resume { settings, is_wake }: &Resume,
) -> Vec<Event> {
    let is_wake = *is_wake;
    let resumed = Event::RunResumed { settings: Box::new(settings.clone()) };
    // The rest of this decision must see the new settings and the open phase.
    let mut reopened = run.clone();
    crate::run::apply(&mut reopened, &resumed);
    let mut decision = Decision::new(&reopened, definition, at);
    decision.push(resumed);
    for (backend, hold) in &run.scheduler.holds {
        match hold {
            // A hold further ahead than any limit lasts was set by a wrong clock, so it is released
            // too.
            Hold::Quota { until, .. } if at < *until && *until <= at + settle::LONGEST_HOLD => {}
            Hold::Auth { .. } if is_wake => {}
            Hold::Quota { .. } | Hold::Auth { .. } | Hold::Environment { .. } => {
                decision.push(Event::BackendReleased { backend: backend.clone() });
            }
        }
    }
    alarm::wake_due(&mut decision);
    let timed_out: BTreeSet<AgentId> = decision.events.iter().filter_map(wait_over).collect();
    waking::restart_after_clock_change(&mut decision);
    let mut agents: Vec<&Agent> = reopened.agents.values().collect();
    // `agents` is ordered by name, but the queue must be ordered by age.
    agents.sort_by_key(|agent| agent.born);
    // Counted before the loop, because the first revived agent that forks must see the room that
    // the later ones need.
    let workers = agents.iter().filter(|agent| agent.id != AgentId::main());
    // The parent of such a worker receives the failure as soon as the other workers have left.
    let is_handed = |agent: &Agent| {
        let group = group_of(run, agent);
        group.is_some_and(|(parent, group)| group.over.is_some() || timed_out.contains(parent))
    };
    let is_revived = |agent: &Agent| !is_wake && !is_handed(agent) && is_revived(run, agent);
    let revived = workers.filter(|agent| is_revived(agent)).count();
    decision.new_workers = u32::try_from(revived).unwrap_or(u32::MAX);
    for agent in agents {
        match &agent.status {
            // The end of a wait cancels it.
            _ if decision.cancelled.contains(&agent.id) => {}
            AgentStatus::Live => continue_agent(&mut decision, agent),
            AgentStatus::Asking(Asking { answer: Some(answer), .. }) => {
                asking::answered(&mut decision, &agent.id, answer.clone());
            }
            AgentStatus::Failed { kept, .. } if is_revived(agent) => {
                program::revive(&mut decision, agent, kept.as_ref());
            }
            AgentStatus::Held(_)
            | AgentStatus::Parked(_)
            | AgentStatus::Joining(_)
            | AgentStatus::Asking(_)
            | AgentStatus::Cancelling(_)
            | AgentStatus::Failed { .. } => {}
        }
    }
    recall(&mut decision);
    decision.events
}

/// Recalls the adopted turns whose shares do not fit a lowered cap. The oldest turns keep their
/// shares as long as these fit together.
fn recall(decision: &mut Decision<'_>) {
    let Some(cap) = decision.run.settings.budget else { return };
    for TurnAttempt { turn, number: attempt } in
        beyond(cap.minus(decision.run.spent), adoptable(decision.run))
    {
        decision.push(Event::TurnRecalled { turn, attempt });
    }
}

/// Returns the paid turns in flight with their shares, oldest first.
pub(crate) fn adoptable(run: &Run) -> Vec<(TurnAttempt, Option<Micros>)> {
    let mut turns: Vec<&Turn> = in_flight(run).collect();
    turns.sort_by_key(|turn| turn.order);
    let paid = turns.into_iter().filter(|turn| turn.lane != Lane::Script);
    let shared = paid.filter_map(|turn| match turn.phase {
        TurnPhase::Running { share } => Some((turn.attempt_id(), share)),
        TurnPhase::Queued | TurnPhase::Retrying { .. } | TurnPhase::Idle => None,
    });
    shared.collect()
}

/// Returns the turns whose shares do not fit into `free`. A turn without a share never fits.
pub(crate) fn beyond<T>(
    mut free: Micros,
    turns: impl IntoIterator<Item = (T, Option<Micros>)>,
) -> Vec<T> {
    let mut beyond = Vec::new();
    for (turn, share) in turns {
        match share.filter(|share| *share <= free) {
            Some(share) => free = free.minus(share),
            None => beyond.push(turn),
        }
    }
    beyond
}

/// Returns whether a resume revives a failed agent. A recovery that counts the last stall also
/// resumes, in one batch. That failure must first end the run, so that a user sees it.
fn is_revived(run: &Run, agent: &Agent) -> bool {
    match &agent.status {
        AgentStatus::Live
        | AgentStatus::Held(_)
        | AgentStatus::Parked(_)
        | AgentStatus::Joining(_)
        | AgentStatus::Asking(_)
        | AgentStatus::Cancelling(_) => false,
        AgentStatus::Failed {
            failure: AgentFailure::Crashes { .. } | AgentFailure::Stalled { .. },
            ..
        } => {
            matches!(run.phase, Phase::Ended(_))
        }
        AgentStatus::Failed { failure, .. } => program::is_revived(run, failure),
    }
}

/// Returns the group that waits for an agent, and its parent.
fn group_of<'r>(run: &'r Run, agent: &'r Agent) -> Option<(&'r AgentId, &'r Group)> {
    let parent = agent.parent.as_ref()?;
    let group = run.groups.get(parent)?;
    group.members.contains_key(&agent.id).then_some((parent, group))
}

/// Returns the parent whose wait this event ends.
fn wait_over(event: &Event) -> Option<AgentId> {
    if let Event::WaitOver { agent, .. } = event { Some(agent.clone()) } else { None }
}

/// Queues an interrupted turn again. A retry that is further ahead than any backoff is due at once,
/// because a wrong clock set it.
fn continue_agent(decision: &mut Decision<'_>, agent: &Agent) {
    let Some(turn) = decision.run.scheduler.turns.get(&agent.id) else {
        return;
    };
    if is_not_running(turn) && revival::lane_of(decision, agent) != turn.lane {
        return revival::again(decision, agent, Prompt::Body, Some(Notice::Revived));
    }
    if matches!(turn.phase, TurnPhase::Retrying { until } if until > decision.at + backoff::LONGEST)
    {
        return decision.requeue(&turn.id, Notice::Retried);
    }
    // A queued turn keeps its place, a retry its time, and a turn in flight was adopted.
    if turn.phase != TurnPhase::Idle {
        return;
    }
    let repeats = decision.run.settings.interrupted_scripts == InterruptedScripts::Rerun;
    if turn.lane == Lane::Script && !repeats {
        program::fail(decision, agent, AgentFailure::InterruptedScript);
    } else {
        decision.requeue(&turn.id, Notice::Interrupted);
    }
}

/// Returns whether a turn can change its backend. A turn in flight stays with its client, even if
/// the settings now name another backend.
const fn is_not_running(turn: &Turn) -> bool {
    match turn.phase {
        TurnPhase::Running { .. } => false,
        TurnPhase::Queued | TurnPhase::Retrying { .. } | TurnPhase::Idle => true,
    }
}
