//! What follows by itself: a free slot starts a turn, room releases a held fork, and when nothing
//! can go on the run ends.

use crate::agent::{Agent, AgentStatus};
use crate::budget::Micros;
use crate::failure::Failure;
use crate::ids::AgentId;
use crate::machine::blocked::Blocked;
use crate::machine::transition;
use crate::machine::transition_context::TransitionContext;
use crate::run::share::{Share, share};
use crate::scheduler::{Lane, Turn};
use crate::steps::decide;
use crate::time::Timestamp;
use crate::workflow::Definition;

use super::settle;
use crate::run::decision::Decision;
use crate::run::event::{Ending, Event};
use crate::run::program::Answers;
use crate::run::state::{Phase, Run};
use crate::run::stop::StopMode;
use crate::scheduler::Hold;

/// The next thing that follows by itself; nothing when the run has to wait for the world.
pub fn advance(run: &Run, definition: &Definition, at: Timestamp) -> Vec<Event> {
    let idle = run.scheduler.in_flight.is_empty();
    match run.phase {
        Phase::Stopping(StopMode::Cancel) if idle => end(Ending::Cancelled),
        Phase::Stopping(StopMode::Now | StopMode::AfterTurn) if idle => end(stopped(run)),
        Phase::Unborn | Phase::Stopping(_) | Phase::Ended(_) => Vec::new(),
        Phase::Open => {
            let decision = Decision::new(run, definition, at);
            release_held(decision)
                .or_else(|| decide::advance(Decision::new(run, definition, at)))
                .or_else(|| start_next(run, definition, at))
                .or_else(|| if idle { nothing_can_go_on(run) } else { None })
                .unwrap_or_default()
        }
    }
}

/// A run whose last agent ended meanwhile has nothing left to be stopped.
fn stopped(run: &Run) -> Ending {
    match (run.live, run.failed.is_empty()) {
        (0, true) => Ending::Completed,
        (0, false) => Ending::Failed,
        _ => Ending::Stopped,
    }
}

fn end(ending: Ending) -> Vec<Event> {
    vec![Event::RunEnded { ending }]
}

/// The oldest held fork is taken as soon as there is room for it.
fn release_held(mut decision: Decision<'_>) -> Option<Vec<Event>> {
    let agent = decision.run.agents.get(decision.run.held.front()?)?;
    let AgentStatus::Held(kept) = &agent.status else {
        return None;
    };
    // Whether there is room is asked at every step: it must not cost a look at every tag.
    if !transition::may_have_room(decision.run, &kept.tags) {
        return None;
    }
    let mover = TransitionContext::of(agent, &kept.directories);
    match transition::take(&mut decision, mover, &kept.tags) {
        Ok(()) => Some(decision.events),
        Err(Blocked::Held) => None,
        Err(Blocked::Failed(failure)) => Some(fail(agent, failure)),
        Err(Blocked::Fault(fault)) => {
            Some(fail(agent, Failure::Protocol { fault, stderr: String::new() }))
        }
    }
}

/// An agent that had a transition fails with it kept.
fn fail(agent: &Agent, failure: Failure) -> Vec<Event> {
    let kept = match &agent.status {
        AgentStatus::Held(kept) => Some(kept.clone()),
        AgentStatus::Live | AgentStatus::Failed { .. } => None,
    };
    vec![Event::AgentFailed { agent: agent.id.clone(), failure, kept }]
}

/// The waiting turn that came first among those whose lane is open.
fn start_next(run: &Run, definition: &Definition, at: Timestamp) -> Option<Vec<Event>> {
    if run.scheduler.in_flight.len() >= run.settings.max_parallel.max(1) as usize {
        return None;
    }
    let decision = Decision::new(run, definition, at);
    let heads = run.scheduler.queues.iter().filter_map(|(lane, queue)| {
        let (order, agent) = queue.first_key_value()?;
        Some((*order, agent, readiness(&decision, lane, agent)))
    });
    let ready = heads.filter(|(.., readiness)| *readiness != Readiness::Blocked);
    let (_, agent, readiness) = ready.min_by_key(|(order, ..)| *order)?;
    let turn = run.scheduler.turns.get(agent)?;
    Some(match readiness {
        Readiness::Go(share) => vec![start(turn, share)],
        Readiness::VisitSpent(budget) => {
            let mut decision = Decision::new(run, definition, at);
            settle::fail(&mut decision, run.agents.get(agent)?, Failure::VisitBudget { budget });
            decision.events
        }
        Readiness::Blocked => return None,
    })
}

#[derive(PartialEq, Eq)]
enum Readiness {
    Go(Option<Micros>),
    VisitSpent(Micros),
    Blocked,
}

fn readiness(decision: &Decision<'_>, lane: &Lane, agent: &AgentId) -> Readiness {
    if *lane == Lane::Script {
        return Readiness::Go(None);
    }
    if decision.run.scheduler.hold(lane).is_some() {
        return Readiness::Blocked;
    }
    let left = decision.visit_left(agent, Micros::ZERO);
    if left == Some(Micros::ZERO) {
        return Readiness::VisitSpent(visit_budget(decision, agent));
    }
    match share(decision.run, left) {
        Share::Unlimited => Readiness::Go(None),
        Share::Of(amount) => Readiness::Go(Some(amount)),
        Share::Wait | Share::Nothing => Readiness::Blocked,
    }
}

fn visit_budget(decision: &Decision<'_>, agent: &AgentId) -> Micros {
    let agent = decision.run.agents.get(agent);
    let state = agent.and_then(|agent| decision.state(&agent.visit.state));
    state.and_then(|state| state.front.budget).unwrap_or_default()
}

fn start(turn: &Turn, share: Option<Micros>) -> Event {
    Event::TurnStarted {
        turn: turn.id.clone(),
        attempt: turn.attempt.saturating_add(1),
        share,
        plan: turn.next_plan(),
    }
}

/// Nothing is in flight and nothing can start: either time or a person has to act, or it is over.
fn nothing_can_go_on(run: &Run) -> Option<Vec<Event>> {
    let scheduler = &run.scheduler;
    let blocked = |wanted: fn(&Hold) -> bool| {
        let mut holds = scheduler.queues.keys().filter_map(|lane| scheduler.hold(lane));
        holds.any(wanted)
    };
    let quota = blocked(|hold| matches!(hold, Hold::Quota { .. }));
    let auth = blocked(|hold| matches!(hold, Hold::Auth { .. }));
    if blocked(|hold| matches!(hold, Hold::Environment { .. })) {
        return Some(end(Ending::Environment));
    }
    if wants_money(run) && run.unreserved() == Some(Micros::ZERO) {
        // Even what waits for a retry or a usage limit could not be paid for afterwards.
        return Some(end(Ending::OverBudget));
    }
    if !scheduler.retries.is_empty() || (quota && !run.settings.no_wait) {
        return None;
    }
    let waits_for_caller = run.settings.program.answers() == Some(Answers::Caller);
    Some(if waits_for_caller && run.failed.is_empty() && !scheduler.asks.is_empty() {
        end(Ending::NeedsCaller)
    } else if run.flow.is_some() && !run.failed.is_empty() {
        // Whoever waits for an iteration that failed waits for good.
        end(Ending::Failed)
    } else if auth || !scheduler.asks.is_empty() {
        end(Ending::NeedsPerson)
    } else if quota {
        end(Ending::NoQuota)
    } else if run.live as usize > run.held.len() {
        // Turns that were cut off, and nobody has asked to go on: never an end for good.
        end(Ending::Stopped)
    } else if let Some(oldest) = run.held.front().and_then(|id| run.agents.get(id)) {
        let limit = run.settings.max_agents;
        fail(oldest, Failure::HeldForGood { limit })
    } else if run.failed.is_empty() {
        end(Ending::Completed)
    } else {
        end(Ending::Failed)
    })
}

/// Whether a paid turn waits, for whatever.
fn wants_money(run: &Run) -> bool {
    let paid = |lane: &Lane| *lane != Lane::Script;
    !run.scheduler.retries.is_empty() || run.scheduler.queues.keys().any(paid)
}
