//! A run goes on: what was cut off is continued, what failed is revived, what was kept is taken.

use crate::agent::{Agent, AgentStatus, PendingTransition, Session, SessionPlan};
use crate::budget::Micros;
use crate::failure::Failure;
use crate::ids::{AgentId, BackendName, TurnId};
use crate::machine::blocked::Blocked;
use crate::machine::transition;
use crate::machine::transition_context::TransitionContext;
use crate::protocol::Fault;
use crate::protocol::Notice;
use crate::scheduler::{Lane, Phase as TurnPhase, Prompt, Turn, backoff};
use crate::steps::decide;
use crate::time::Timestamp;
use crate::workflow::Definition;

use super::settle;
use crate::run::decision::Decision;
use crate::run::discarded::Attempt;
use crate::run::effect::in_flight;
use crate::run::event::Event;
use crate::run::settings::{InterruptedScripts, Settings};
use crate::run::state::{Phase, Run};
use crate::run::warning::Warning;
use crate::scheduler::Hold;

pub(super) fn resume(
    run: &Run,
    definition: &Definition,
    at: Timestamp,
    settings: &Settings,
) -> Vec<Event> {
    let resumed = Event::RunResumed { settings: Box::new(settings.clone()) };
    // What follows is decided under the new settings.
    let mut reopened = run.clone();
    crate::run::apply(&mut reopened, &resumed);
    let mut decision = Decision::new(&reopened, definition, at);
    decision.push(resumed);
    for (backend, hold) in &run.scheduler.holds {
        match hold {
            Hold::Quota { until, .. } if at < *until && *until <= at + settle::LONGEST_HOLD => {}
            Hold::Quota { .. } | Hold::Auth { .. } | Hold::Environment { .. } => {
                decision.push(Event::BackendReleased { backend: backend.clone() });
            }
        }
    }
    let mut agents: Vec<&Agent> = reopened.agents.values().collect();
    agents.sort_by_key(|agent| agent.born);
    // All of them take up room, whoever is first to fork again.
    let workers = agents.iter().filter(|agent| agent.id != AgentId::main());
    let revived = workers.filter(|agent| is_revived(run, agent)).count();
    decision.new_workers = u32::try_from(revived).unwrap_or(u32::MAX);
    for agent in agents {
        match &agent.status {
            AgentStatus::Live => go_on(&mut decision, agent),
            AgentStatus::Failed { .. } if run.flow.is_some() && is_revived(run, agent) => {
                decide::revive(&mut decision, agent);
            }
            AgentStatus::Failed { kept, .. } if is_revived(run, agent) => {
                revive(&mut decision, agent, kept.as_ref());
            }
            AgentStatus::Held(_) | AgentStatus::Failed { .. } => {}
        }
    }
    recall(&mut decision);
    decision.events
}

/// Recalls the adopted turns whose shares do not fit the cap any more. The oldest turns keep theirs as
/// long as all of them fit together.
fn recall(decision: &mut Decision<'_>) {
    let Some(cap) = decision.run.settings.budget else { return };
    for (turn, attempt) in beyond(cap.minus(decision.run.spent), adoptable(decision.run)) {
        decision.push(Event::TurnRecalled { turn, attempt });
    }
}

/// The paid turns in flight with their shares, the oldest first.
pub(crate) fn adoptable(run: &Run) -> Vec<(Attempt, Option<Micros>)> {
    let mut turns: Vec<&Turn> = in_flight(run).collect();
    turns.sort_by_key(|turn| turn.order);
    let paid = turns.into_iter().filter(|turn| turn.lane != Lane::Script);
    let shared = paid.filter_map(|turn| match turn.phase {
        TurnPhase::Running { share } => Some(((turn.id.clone(), turn.attempt), share)),
        TurnPhase::Queued | TurnPhase::Retrying { .. } | TurnPhase::Idle => None,
    });
    shared.collect()
}

/// The turns whose shares do not fit what is free.
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

/// Whether a failed agent gets another chance. The recovery that counts the last of too many stalls
/// resumes in the same breath: that failure has to be seen before somebody asks again.
fn is_revived(run: &Run, agent: &Agent) -> bool {
    match &agent.status {
        AgentStatus::Live | AgentStatus::Held(_) => false,
        AgentStatus::Failed {
            failure: Failure::Crashes { .. } | Failure::Stalled { .. }, ..
        } => {
            matches!(run.phase, Phase::Ended(_))
        }
        AgentStatus::Failed { failure, .. } => run.flow.is_none() || decide::is_revived(failure),
    }
}

/// A turn that was cut off waits again. A retry that is further ahead than any can be is due at once: the
/// clock that told its time was wrong.
fn go_on(decision: &mut Decision<'_>, agent: &Agent) {
    let Some(turn) = decision.run.scheduler.turns.get(&agent.id) else {
        return;
    };
    if is_at_rest(turn) && lane_of(decision, agent) != turn.lane {
        return again(decision, agent, Prompt::Body);
    }
    if matches!(turn.phase, TurnPhase::Retrying { until } if until > decision.at + backoff::LONGEST)
    {
        return decision.requeue(&turn.id, Notice::Retried);
    }
    if turn.phase != TurnPhase::Idle {
        return;
    }
    let repeats = decision.run.settings.interrupted_scripts == InterruptedScripts::Rerun;
    if turn.lane == Lane::Script && !repeats {
        settle::fail(decision, agent, Failure::InterruptedScript);
    } else {
        decision.requeue(&turn.id, Notice::Interrupted);
    }
}

/// A failed agent goes on at the visit that failed: a kept transition is decided again, otherwise
/// the body is sent once more after a notice.
fn revive(decision: &mut Decision<'_>, agent: &Agent, kept: Option<&PendingTransition>) {
    decision.push(Event::AgentRevived { agent: agent.id.clone() });
    let Some(kept) = kept else {
        return again(decision, agent, Prompt::Body);
    };
    let mover = TransitionContext::of(agent, &kept.directories);
    match transition::take(decision, mover, &kept.tags) {
        Ok(()) => {}
        Err(Blocked::Fault(fault)) => refused(decision, agent, fault),
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

/// The edited workflow no longer allows what was kept. Who may not be reminded starts again.
fn refused(decision: &mut Decision<'_>, agent: &Agent, fault: Fault) {
    let is_script = decision.lane(&agent.visit.state) == Lane::Script;
    if is_script || decision.run.settings.reminders == 0 {
        return again(decision, agent, Prompt::Body);
    }
    decision.push(Event::Reminded { agent: agent.id.clone(), fault: fault.clone(), reminder: 1 });
    again(decision, agent, Prompt::Reminder(fault));
}

/// Another turn of the same visit. A turn that never settled may have left a session behind.
fn again(decision: &mut Decision<'_>, agent: &Agent, prompt: Prompt) {
    let turn = TurnId {
        agent: agent.id.clone(),
        visit: agent.visit.number,
        turn: agent.visit.turn.saturating_add(1),
    };
    let lane = lane_of(decision, agent);
    let plan = match (&lane, decision.run.scheduler.turns.get(&agent.id)) {
        (Lane::Script, _) => SessionPlan::Carry,
        (Lane::Prompt(backend), Some(unsettled)) if unsettled.lane != lane => {
            moves_on(decision, agent, (&unsettled.lane, backend));
            decision.plan(&turn, &lane, &Session::Fresh)
        }
        (Lane::Prompt(_), Some(unsettled)) => unsettled.next_plan(),
        (Lane::Prompt(_), None) => decision.plan(&turn, &lane, &agent.session),
    };
    let order = decision.order();
    let notice = Some(Notice::Revived);
    decision.push(Event::TurnQueued { turn, lane, prompt, plan, order, notice });
}

/// Who answers the next turn of a visit: the holder of its conversation, where it has one already.
fn lane_of(decision: &Decision<'_>, agent: &Agent) -> Lane {
    let lane = decision.lane(&agent.visit.state);
    match (decision.run.scheduler.turns.get(&agent.id), &agent.holder) {
        (Some(turn), _) if !turn.opens() => turn.lane.clone(),
        (None, Some(holder)) if lane != Lane::Script => Lane::Prompt(holder.clone()),
        (Some(_) | None, _) => lane,
    }
}

/// A turn in flight goes on where it is, whatever the settings say now.
const fn is_at_rest(turn: &Turn) -> bool {
    match turn.phase {
        TurnPhase::Running { .. } => false,
        TurnPhase::Queued | TurnPhase::Retrying { .. } | TurnPhase::Idle => true,
    }
}

/// What another backend had of the task stays behind, and that is said.
fn moves_on(decision: &mut Decision<'_>, agent: &Agent, (from, to): (&Lane, &BackendName)) {
    let Lane::Prompt(from) = from else { return };
    let state = &agent.visit.state;
    let message = format!("{state} begins anew with {to}: {from} was to answer it before");
    decision.warn(&agent.id, Warning::Other { message });
}
