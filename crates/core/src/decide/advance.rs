//! Decides what follows without any input: a free slot starts a turn, free room releases a held
//! fork, and a run in which no agent can continue ends.
//!
//! [`super::batch()`] calls [`advance()`] after the inputs of a batch, until nothing more follows.
//! Each call returns one small decision, so that the next one sees its effect on the run.

use crate::agent::{Agent, AgentStatus};
use crate::budget::Micros;
use crate::failure::AgentFailure;
use crate::ids::AgentId;
use crate::machine::asking;
use crate::machine::blocked::Blocked;
use crate::machine::joins;
use crate::machine::tags;
use crate::machine::transition_context::TransitionContext;
use crate::program;
use crate::run::share::{Share, share};
use crate::scheduler::{Lane, Turn};
use crate::time::Timestamp;
use crate::workflow::Definition;

use crate::run::decision::Decision;
use crate::run::event::{Ending, Event};
use crate::run::state::{Phase, Run};
use crate::run::stop::StopMode;
use crate::scheduler::Hold;

/// Returns the next events that follow without an input, or nothing if the run has to wait.
pub fn advance(run: &Run, definition: &Definition, at: Timestamp) -> Vec<Event> {
    // A run ends only after its last turn in flight is charged, however it was stopped.
    let idle = run.scheduler.in_flight.is_empty();
    match run.phase {
        Phase::Stopping(StopMode::Cancel) if idle => end(Ending::Cancelled),
        Phase::Stopping(StopMode::Now | StopMode::AfterTurn) if idle => end(stopped(run)),
        Phase::Unborn | Phase::Stopping(_) | Phase::Ended(_) => Vec::new(),
        Phase::Open => {
            let decision = Decision::new(run, definition, at);
            joins::advance(Decision::new(run, definition, at))
                .or_else(|| asking::advance(Decision::new(run, definition, at)))
                .or_else(|| release_held(decision))
                .or_else(|| program::advance(Decision::new(run, definition, at)))
                .or_else(|| start_next(run, definition, at))
                .or_else(|| if idle { end_without_progress(run) } else { None })
                .unwrap_or_default()
        }
    }
}

/// Returns how a stopped run ended. If its last agent ended before the stop took effect, the run is
/// complete or failed, because a resume would find no work.
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

/// Takes the transition of the oldest held fork if there is room for its workers.
fn release_held(mut decision: Decision<'_>) -> Option<Vec<Event>> {
    let agent = decision.run.agents.get(decision.run.held.front()?)?;
    let AgentStatus::Held(kept) = &agent.status else {
        return None;
    };
    // A cheap test first: this runs at every step, and a fork can have thousands of tags.
    if !tags::may_have_room(decision.run, &kept.tags) {
        return None;
    }
    let context = TransitionContext::of(agent, &kept.directories);
    match tags::take(&mut decision, context, &kept.tags) {
        Ok(()) => Some(decision.events),
        Err(Blocked::Held) => None,
        Err(Blocked::Failed(failure)) => Some(fail(agent, failure)),
        Err(Blocked::Fault(fault)) => Some(fail(
            agent,
            AgentFailure::Protocol {
                fault: Box::new(fault),
                stderr: String::new(),
                accepted: Vec::new(),
            },
        )),
    }
}

/// Fails an agent and keeps its pending transition, so that a resume need not pay for it again.
fn fail(agent: &Agent, failure: AgentFailure) -> Vec<Event> {
    let kept = match &agent.status {
        AgentStatus::Held(kept) => Some(kept.clone()),
        AgentStatus::Live
        | AgentStatus::Parked(_)
        | AgentStatus::Joining(_)
        | AgentStatus::Asking(_)
        | AgentStatus::Cancelling(_)
        | AgentStatus::Failed { .. } => None,
    };
    vec![Event::AgentFailed { agent: agent.id.clone(), failure, kept }]
}

/// Starts the oldest waiting turn whose lane can run a turn now.
fn start_next(run: &Run, definition: &Definition, at: Timestamp) -> Option<Vec<Event>> {
    if run.scheduler.in_flight.len() >= run.settings.max_parallel.max(1) as usize {
        return None;
    }
    let decision = Decision::new(run, definition, at);
    // Only the head of each lane is tested: there are as many lanes as backends, but any number of
    // turns.
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
            program::fail(
                &mut decision,
                run.agents.get(agent)?,
                AgentFailure::VisitBudget { budget },
            );
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
        // Scripts cost nothing and are never held.
        return Readiness::Go(None);
    }
    if decision.run.scheduler.hold(lane).is_some() {
        return Readiness::Blocked;
    }
    let left = decision.visit_left(agent, Micros::ZERO);
    // Checked before the budget of the run: a visit without money must fail now, not wait for a
    // share that it could not use.
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
    agent.and_then(|agent| decision.visit_budget(agent)).unwrap_or_default()
}

fn start(turn: &Turn, share: Option<Micros>) -> Event {
    Event::TurnStarted {
        turn: turn.id.clone(),
        attempt: turn.attempt.saturating_add(1),
        share,
        plan: turn.next_plan(),
    }
}

/// Ends the run, or fails a held fork, when nothing is in flight and nothing can start. Returns
/// nothing if a wait, a retry or a usage limit still has to pass.
fn end_without_progress(run: &Run) -> Option<Vec<Event>> {
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
    let sleeps = scheduler.timers.wakes().next().is_some();
    let expires = scheduler.asks.values().any(Option::is_some);
    let continues_by_itself = sleeps || expires;
    // A script behind a wait needs no money. Without one, this is checked before other waits,
    // because a retry could not be paid for afterwards either.
    if !continues_by_itself && has_waiting_paid_turn(run) && run.unreserved() == Some(Micros::ZERO)
    {
        return Some(end(Ending::OverBudget));
    }
    if scheduler.timers.has_retry() || ((quota || continues_by_itself) && !run.settings.no_wait) {
        return None;
    }
    // The order of the branches is their precedence.
    Some(if let Some(ending) = program::ending(run) {
        end(ending)
    } else if auth || !scheduler.asks.is_empty() {
        end(Ending::NeedsPerson)
    } else if sleeps {
        end(Ending::Sleeping)
    } else if quota {
        end(Ending::NoQuota)
    } else if run.live.saturating_sub(run.parked) as usize > run.held.len() {
        // Interrupted turns that no resume has queued again. The run is stopped and not failed,
        // because a resume can continue these turns.
        end(Ending::Stopped)
    } else if let Some(oldest) = run.held.front().and_then(|id| run.agents.get(id)) {
        let limit = run.settings.max_agents;
        // Only the oldest: its failure may make room for the next fork.
        fail(oldest, AgentFailure::HeldForGood { limit })
    } else if run.failed.is_empty() {
        end(Ending::Completed)
    } else {
        end(Ending::Failed)
    })
}

/// Returns whether any paid turn is queued or waits for a retry.
fn has_waiting_paid_turn(run: &Run) -> bool {
    let paid = |lane: &Lane| *lane != Lane::Script;
    // Only prompts wait for a retry: a failed program of a step is repeated at once.
    run.scheduler.timers.has_retry() || run.scheduler.queues.keys().any(paid)
}
