//! Decides which events follow from an input.
//!
//! [`decide()`] is the only place where an input meets the state of a run. It changes nothing: the
//! caller records the events and folds them with [`crate::run::apply()`]. The outcome of a turn is
//! decided in `settle`, a resume in `resume`, and the events that need no input in [`advance()`].
//! Start reading at the `match` in [`decide()`], then [`batch()`].

pub mod advance;
pub mod backend_change;
pub mod batch;
mod caller_session;
pub mod effects;
pub mod refusal;
pub mod replay;
pub(crate) mod resume;
mod settle;
#[cfg(test)]
pub(crate) mod tests;

pub use advance::advance;
pub use batch::{Batch, batch};
pub use effects::{effects, turn_spec};
pub use refusal::Refusal;

use crate::agent::{AgentStatus, Asking, CancelReason, Joining, Parked, SessionPlan};
use crate::budget::{Basis, Charge, Micros};
use crate::crayfish::name::StepId;
use crate::failure::AgentFailure;
use crate::few::Few;
use crate::ids::{AgentId, Nonce, TurnAttempt, TurnId};
use crate::machine::{alarm, asking, joins, waking};
use crate::program;
use crate::protocol::{Notice, Question, Tag};
use crate::scheduler::TurnPhase;
use crate::steps;
use crate::text::excerpt;
use crate::time::Timestamp;
use crate::value::Value;
use crate::workflow::Definition;

use crate::run::decision::Decision;
use crate::run::event::{Ending, Event};
use crate::run::input::Input;
use crate::run::settings::Pinning;
use crate::run::start::Start;
use crate::run::state::{Phase, Run};
use crate::run::stop::{Interruption, StopMode, StopOrigin};
use crate::scheduler::Timer;

/// Returns the events that follow from `input`. An empty list is a valid decision.
pub fn decide(
    run: &Run,
    definition: &Definition,
    at: Timestamp,
    input: &Input,
) -> Result<Vec<Event>, Refusal> {
    match (run.phase, input) {
        (Phase::Unborn, Input::Start(start)) => Ok(begin(run, definition, at, start)),
        (Phase::Unborn, _) => Err(Refusal::NotStarted),
        (_, Input::Start(_)) => Err(Refusal::AlreadyStarted),
        // Accepted in every phase: a stopping or ended run still has to charge the turns in flight.
        (_, Input::Settled { turn, attempt, outcome }) => {
            let attempt = TurnAttempt { turn: turn.clone(), number: *attempt };
            settle::settled(run, definition, at, &attempt, outcome)
        }
        (
            Phase::Ended(ending @ (Ending::Completed | Ending::Cancelled)),
            Input::Resume(_) | Input::Adopt { .. },
        ) => Err(Refusal::Ended(ending)),
        // The request to cancel is recorded: only the turns in flight are still to be reported.
        (Phase::Stopping(StopMode::Cancel), Input::Resume(_)) => {
            Err(Refusal::Ended(Ending::Cancelled))
        }
        (_, Input::Resume(resumed)) => {
            // Only a change is checked: conversations already fit the backend they were opened
            // with.
            if resumed.settings.backend != run.settings.backend {
                backend_change::check(run, definition, &resumed.settings)?;
            }
            Ok(resume::resume(run, definition, at, resumed))
        }
        (Phase::Open, Input::Due) => Ok(due(run, definition, at)),
        (Phase::Open, Input::Now) => {
            let mut decision = Decision::new(run, definition, at);
            waking::wake_all(&mut decision);
            Ok(decision.events)
        }
        (Phase::Stopping(_) | Phase::Ended(_), Input::Due | Input::Now) => Ok(Vec::new()),
        (phase, Input::Stop { mode, by, key }) => {
            stop(run, phase, StopRequest { mode: *mode, by: *by, key })
        }
        (_, Input::CancelAgent { agent, by, key }) => {
            cancel_agent(Decision::new(run, definition, at), CancelRequest { agent, by, key })
        }
        (_, Input::Answer { ask, value, by, key }) => {
            answer(Decision::new(run, definition, at), Answer { ask, value, by, key })
        }
        (_, Input::Call(call)) => {
            Ok(steps::decide::called(Decision::new(run, definition, at), call))
        }
        (_, Input::Adopt { manifest, changed }) => {
            let decision = Decision::new(run, definition, at);
            adopt(decision, manifest, changed)
        }
        (_, Input::Rewind { kept, nonce, discarded, again, governed }) => {
            let (kept, discarded, governed) = (*kept, discarded.clone(), governed.clone());
            let rewound = Event::RunRewound { kept, nonce: nonce.clone(), discarded, governed };
            Ok(rewind(run, rewound, nonce, again))
        }
    }
}

fn begin(run: &Run, definition: &Definition, at: Timestamp, start: &Start) -> Vec<Event> {
    let main = AgentId::main();
    // The first visit depends on the settings and the nonce, which only the first event brings.
    let mut begun = run.clone();
    let started = Event::RunStarted(Box::new(start.clone()));
    crate::run::apply(&mut begun, &started);
    let mut decision = Decision::new(&begun, definition, at);
    decision.push(started);
    decision.push(Event::AgentSpawned {
        agent: main.clone(),
        parent: None,
        cwd: start.cwd.clone(),
        attributes: Few::default(),
    });
    program::begin(&mut decision, &main, start.input.clone());
    decision.events
}

/// Fires the timers that are due at `at`.
fn due(run: &Run, definition: &Definition, at: Timestamp) -> Vec<Event> {
    let mut decision = Decision::new(run, definition, at);
    for timer in run.scheduler.timers.due(at) {
        match timer {
            Timer::Hold(backend) => {
                decision.push(Event::BackendReleased { backend: backend.clone() });
            }
            // The end of another wait cancels its agent.
            Timer::Retry(agent) if decision.cancelled.contains(agent) => {}
            Timer::Retry(agent) => {
                if let Some(turn) = run.scheduler.turns.get(agent) {
                    decision.requeue(&turn.id, Notice::Retried);
                }
            }
            Timer::Wake(agent) => alarm::ring(&mut decision, agent),
            // The end of another wait cancels its agent.
            Timer::AskExpires(ask) if decision.cancelled.contains(&ask.agent) => {}
            Timer::AskExpires(ask) if asking::question(run, ask).is_some() => {
                asking::expire(&mut decision, ask);
            }
            Timer::AskExpires(ask) => {
                decision.push(Event::AskExpired { ask: ask.clone() });
                let (agent, failure) = (ask.agent.clone(), AgentFailure::Unanswered);
                decision.push(Event::AgentFailed { agent, failure, kept: None });
            }
        }
    }
    decision.events
}

#[derive(Clone, Copy)]
struct StopRequest<'a> {
    mode: StopMode,
    by: StopOrigin,
    key: &'a str,
}

fn stop(run: &Run, phase: Phase, request: StopRequest<'_>) -> Result<Vec<Event>, Refusal> {
    let StopRequest { mode, by, key } = request;
    let request = Event::StopRequested { mode, by, key: key.to_owned() };
    match phase {
        // A request stays in the inbox until its record is durable, so a crash can deliver it
        // twice. The key makes it idempotent.
        _ if run.keys.contains(key) => Ok(Vec::new()),
        // A weaker request never replaces a stronger one, but its key is recorded all the same.
        Phase::Stopping(earlier) if earlier >= mode => {
            Ok(vec![Event::StopRequested { mode: earlier, by, key: key.to_owned() }])
        }
        // An unborn run does not get here: `decide` refuses it.
        Phase::Unborn | Phase::Open | Phase::Stopping(_) => Ok(vec![request]),
        Phase::Ended(Ending::Completed | Ending::Cancelled) => Err(ended(phase)),
        Phase::Ended(_) if mode == StopMode::Cancel => {
            Ok(vec![request, Event::RunEnded { ending: Ending::Cancelled }])
        }
        // Otherwise `raymond tend` or an answer would continue the run. Its waits are kept.
        Phase::Ended(ending) if ending.is_wait() => {
            Ok(vec![request, Event::RunEnded { ending: Ending::Stopped }])
        }
        Phase::Ended(_) => Err(ended(phase)),
    }
}

#[derive(Clone, Copy)]
struct CancelRequest<'a> {
    agent: &'a AgentId,
    by: &'a str,
    key: &'a str,
}

/// Checks that a user may cancel an agent.
pub fn check_cancellation(run: &Run, agent: &AgentId) -> Result<(), Refusal> {
    match run.phase {
        Phase::Stopping(StopMode::Cancel) => Err(Refusal::Ended(Ending::Cancelled)),
        phase @ (Phase::Ended(Ending::Completed | Ending::Cancelled) | Phase::Unborn) => {
            Err(ended(phase))
        }
        _ if !run.agents.contains_key(agent) => Err(Refusal::NoSuchAgent(agent.clone())),
        _ if !program::is_cancellable(run, agent) => Err(Refusal::OnlyWorkers(agent.clone())),
        Phase::Open | Phase::Stopping(_) | Phase::Ended(_) => Ok(()),
    }
}

/// Cancels a worker, with the workers below it.
fn cancel_agent(
    mut decision: Decision<'_>,
    request: CancelRequest<'_>,
) -> Result<Vec<Event>, Refusal> {
    let CancelRequest { agent, by, key } = request;
    // A request may be delivered twice after a crash: see `stop`.
    if decision.run.keys.contains(key) {
        return Ok(Vec::new());
    }
    check_cancellation(decision.run, agent)?;
    let (by, key) = (by.to_owned(), key.to_owned());
    decision.push(Event::CancelRequested { agent: agent.clone(), by: by.clone(), key });
    joins::cancel(&mut decision, agent, &CancelReason::Requested { by });
    Ok(decision.events)
}

fn ended(phase: Phase) -> Refusal {
    match phase {
        Phase::Ended(ending) => Refusal::Ended(ending),
        Phase::Stopping(StopMode::Cancel) => Refusal::Ended(Ending::Cancelled),
        Phase::Unborn | Phase::Open | Phase::Stopping(_) => Refusal::NotStarted,
    }
}

#[derive(Clone, Copy)]
struct Answer<'a> {
    ask: &'a TurnId,
    value: &'a Value,
    by: &'a str,
    key: &'a str,
}

/// Records the answer to a question. In an open run the agent continues at once, else with the
/// resume.
fn answer(mut decision: Decision<'_>, answer: Answer<'_>) -> Result<Vec<Event>, Refusal> {
    let run = decision.run;
    let Answer { ask, value, by, key } = answer;
    // A request may be delivered twice after a crash: see `stop`.
    if run.keys.contains(key) {
        return Ok(Vec::new());
    }
    check_answer(run, ask, value, decision.at)?;
    let value = checked(asking::question(run, ask), ask, value)?;
    let (by, key) = (by.to_owned(), key.to_owned());
    decision.push(Event::AskAnswered { ask: ask.clone(), value: value.clone(), by, key });
    if run.phase == Phase::Open {
        asking::answered(&mut decision, &ask.agent, value);
    }
    Ok(decision.events)
}

/// Checks that a user may answer a question in this way.
pub fn check_answer(run: &Run, ask: &TurnId, answer: &Value, at: Timestamp) -> Result<(), Refusal> {
    match run.phase {
        phase @ (Phase::Stopping(StopMode::Cancel)
        | Phase::Ended(Ending::Completed | Ending::Cancelled)
        | Phase::Unborn) => return Err(ended(phase)),
        Phase::Open | Phase::Stopping(_) | Phase::Ended(_) => {}
    }
    let Some(due) = run.scheduler.asks.get(ask) else {
        return Err(Refusal::NoSuchQuestion(ask.clone()));
    };
    // The wait did not end in time, because no process drove the run.
    if due.is_some_and(|due| due < at) {
        return Err(Refusal::QuestionExpired(ask.agent.clone()));
    }
    checked(asking::question(run, ask), ask, answer).map(drop)
}

/// Returns the answer as it is recorded: an option as the question has it.
fn checked(question: Option<&Question>, ask: &TurnId, answer: &Value) -> Result<Value, Refusal> {
    let text = match answer {
        Value::Inline(text) => Some(text.as_str()),
        // Longer than any option.
        Value::Blob(_) => None,
    };
    let Some(question) = question else { return Ok(answer.clone()) };
    if question.options.is_empty() {
        // Often an unset variable of a shell, and an answer counts for good.
        return match text {
            Some(text) if text.trim().is_empty() => Err(Refusal::EmptyAnswer(ask.agent.clone())),
            _ => Ok(answer.clone()),
        };
    }
    let text = text.unwrap_or_default();
    match question.option(text) {
        Some(option) => Ok(Value::Inline(option.to_owned())),
        None => Err(Refusal::NotAnOption {
            agent: ask.agent.clone(),
            answer: excerpt(text, 80).into_owned(),
            options: question.options.clone(),
        }),
    }
}

/// Adopts an edited definition. `definition` is already the edited one.
fn adopt(
    mut decision: Decision<'_>,
    manifest: &Value,
    changed: &[StepId],
) -> Result<Vec<Event>, Refusal> {
    if decision.run.manifest == *manifest {
        return Ok(Vec::new());
    }
    check_adoption(decision.run, decision.definition)?;
    decision.push(Event::DefinitionAdopted { manifest: manifest.clone() });
    program::adopted(&mut decision, changed);
    Ok(decision.events)
}

/// Checks that an edited definition still has every state that an agent needs, and that each
/// conversation stays with its backend.
pub fn check_adoption(run: &Run, definition: &Definition) -> Result<(), Refusal> {
    if !program::keeps_places(run) {
        // The outcome of a turn in flight would be lost.
        let in_flight = run.scheduler.in_flight.first().cloned();
        return in_flight.map_or(Ok(()), |agent| Err(Refusal::TurnInFlight(agent)));
    }
    for agent in run.agents.values() {
        let needed =
            agent.stack.iter().map(|frame| &frame.state).chain(agent.visit.location.state());
        for state in needed {
            if !definition.states.contains_key(state) {
                let (agent, state) = (agent.id.clone(), state.clone());
                return Err(Refusal::StateGone { agent, state });
            }
        }
        let kept = match &agent.status {
            AgentStatus::Parked(Parked { kept, .. })
            | AgentStatus::Joining(Joining { kept, .. })
            | AgentStatus::Asking(Asking { kept, .. }) => kept,
            AgentStatus::Live
            | AgentStatus::Held(_)
            | AgentStatus::Cancelling(_)
            | AgentStatus::Failed { .. } => continue,
        };
        for target in kept.tags.iter().flat_map(Tag::kept_targets) {
            if definition.resolve(target).is_err() {
                let (agent, state) = (agent.id.clone(), target.into());
                return Err(Refusal::WaitGone { agent, state });
            }
        }
    }
    match run.settings.definition {
        Pinning::Pinned => backend_change::check(run, definition, &run.settings),
        // An unpinned run reads its states at every visit, so the visit under way keeps its
        // backend.
        Pinning::Unpinned => backend_change::check_returns(run, definition, &run.settings),
    }
}

/// Discards the records after a kept one. A turn that would open a session gets another session id,
/// because the discarded records may have written to the first one. A turn that was in flight all
/// the time keeps its session, as after a crash.
fn rewind(run: &Run, rewound: Event, nonce: &Nonce, again: &[TurnId]) -> Vec<Event> {
    let mut events = vec![rewound];
    for turn in run.scheduler.turns.values() {
        if matches!(turn.phase, TurnPhase::Running { .. }) {
            if !again.contains(&turn.id) {
                continue;
            }
            events.push(Event::TurnInterrupted {
                turn: turn.id.clone(),
                attempt: turn.attempt,
                // Its cost is already part of `discarded`: charging it here would count it twice.
                charge: Charge { amount: Micros::ZERO, basis: Basis::Free },
                by: Interruption::Stop,
                crashes: turn.stalls,
                session: None,
            });
        }
        let new = turn.id.session(nonce, 0);
        let (lost, plan) = match &turn.plan {
            SessionPlan::Fresh(lost) => (lost, SessionPlan::Fresh(new)),
            SessionPlan::Branch { from, to: lost } => {
                (lost, SessionPlan::Branch { from: from.clone(), to: new })
            }
            SessionPlan::Resume(_) | SessionPlan::Continue { .. } | SessionPlan::Carry => continue,
        };
        events.push(Event::SessionLost { turn: turn.id.clone(), lost: lost.clone(), plan });
    }
    events
}
