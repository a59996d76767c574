//! The decisions of a run of steps: the wishes of its branches, and the effects of their turns.
//!
//! A branch is an agent of the run, a running step is a visit, and its key is its location. So the
//! rules for turns apply here, too: queue, slots, budget shares, attempts, holds. One small batch
//! of events is decided at a time: [`crate::decide`] applies it and asks again. The interpreter
//! that finds the next step is [`crate::crayfish::walk`].

mod edited;
mod failures;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::agent::{Agent, Session, SessionPlan};
use crate::crayfish::verdict::Verdict;
use crate::few::Few;
use crate::ids::{AgentId, SessionId, StateName, TurnId};
use crate::protocol::ResultStatus;
use crate::run::decision::Decision;
use crate::run::event::{Ending, Event};
use crate::run::outcome::Finished;
use crate::run::program::AnswerSource;
use crate::run::state::Run;
use crate::scheduler::{Lane, Prompt};
use crate::text::push_pointer_token;
use crate::value::Value;

use crate::crayfish::call::{Call, Output, written};
use crate::crayfish::definition::StepsDefinition;
use crate::crayfish::document;
use crate::crayfish::document::{Order, SessionMode, StepIndex, StepKind};
use crate::crayfish::error_code::ErrorCode;
use crate::crayfish::gate::Gate;
use crate::crayfish::key::{Iteration, StepKey};
use crate::crayfish::name::StepId;
use crate::crayfish::problem::Problem;
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::state::Offer;
use crate::crayfish::state::{Branch, MOST_KEPT, Position, StepEvent, StepsState};
use crate::crayfish::stored::Stored;
use crate::crayfish::template::Unfilled;
use crate::crayfish::variable_problem::VariableProblem;
use crate::crayfish::walk::{Next, Stuck};

pub(crate) use edited::begin_again;
pub(crate) use failures::{break_off, failed, is_revived};
use failures::{collapse, exhausted, fail, fail_again, fail_early, fail_output, invalid};

/// Creates the branch of the document itself.
pub(crate) fn begin(decision: &mut Decision<'_>, main: &AgentId) {
    step_of(decision, main, beginning(Vec::new(), None));
}

/// Returns the event that creates a branch of a document that was not edited.
fn beginning(born: Vec<Iteration>, parent: Option<AgentId>) -> StepEvent {
    StepEvent::Begun { born, parent, settled: Vec::new(), edited: Vec::new(), repeated: Vec::new() }
}

/// Decides what the next branch does; `None` if all of them wait.
pub(crate) fn advance(mut decision: Decision<'_>) -> Option<Vec<Event>> {
    let (steps, state) = program_and_state(&decision)?;
    let agent = state.next_ready()?;
    let agent = decision.run.agents.get(agent)?;
    // A waiting branch is ready only if its iterations have ended, or failed for a loop that
    // collects: the latter is not known to the interpreter.
    if matches!(state.branches.get(&agent.id)?.at, Position::Waits { failed: 1.., .. }) {
        collapse(&mut decision, agent);
        return Some(decision.events);
    }
    // One decision for each call: the next one must see the events of this one.
    match steps.interpreter().next(state, &agent.id)? {
        Next::StepEvent(StepEvent::Ended) => end(&mut decision, agent),
        Next::StepEvent(event) => step(&mut decision, agent, event),
        Next::Splits { of, count } => split(&mut decision, agent, &of, count),
        Next::Does { key, .. } if state.settled.contains(&key) => {
            fail_again(&mut decision, agent, key);
        }
        Next::Does { step, key } => enter(&mut decision, agent, step, key),
        Next::Fails(stuck) => fail_early(&mut decision, agent, stuck),
    }
    Some(decision.events)
}

/// Returns how a run ends in which nothing can start: it failed, or its caller has to answer.
pub(crate) fn ending(run: &Run, answers: AnswerSource) -> Option<Ending> {
    // One failure is enough: a branch that waits for a failed iteration would wait for ever.
    if !run.failed.is_empty() {
        return Some(Ending::Failed);
    }
    match answers {
        AnswerSource::Caller if !run.scheduler.asks.is_empty() => Some(Ending::NeedsCaller),
        AnswerSource::Caller | AnswerSource::Backend => None,
    }
}

fn program_and_state<'a>(decision: &Decision<'a>) -> Option<(&'a StepsDefinition, &'a StepsState)> {
    Some((decision.definition.steps.as_deref()?, decision.run.program.steps()?))
}

fn step(decision: &mut Decision<'_>, agent: &Agent, event: StepEvent) {
    step_of(decision, &agent.id, event);
}

fn step_of(decision: &mut Decision<'_>, agent: &AgentId, event: StepEvent) {
    decision.push(Event::Stepped { agent: agent.clone(), event });
}

fn end(decision: &mut Decision<'_>, agent: &Agent) {
    match output(decision, agent) {
        Some(Err(why)) => return fail_output(decision, agent, &why),
        Some(Ok(_)) => step(decision, agent, StepEvent::Concluded),
        None => {}
    }
    step(decision, agent, StepEvent::Ended);
    leave(decision, agent);
}

/// Returns the output of the document, if its own branch ends. It is not kept: a reader fills it in
/// again from the results.
fn output(decision: &Decision<'_>, agent: &Agent) -> Option<Result<Json, Unfilled>> {
    let (steps, state) = program_and_state(decision)?;
    let branch = state.branches.get(&agent.id).filter(|branch| branch.parent.is_none())?;
    steps.output_at(state, branch)
}

/// Ends the agent of a branch that is not needed any more.
fn leave(decision: &mut Decision<'_>, agent: &Agent) {
    // A branch has no result of its own: results belong to steps.
    let result = Value::Inline(String::new());
    decision.push(Event::AgentEnded { agent: agent.id.clone(), result });
}

/// Creates an agent for each iteration of a parallel loop.
fn split(decision: &mut Decision<'_>, agent: &Agent, of: &StepId, count: u32) {
    let branch = decision.run.program.steps().and_then(|state| state.branches.get(&agent.id));
    let Some(outside) = branch.and_then(Branch::loop_key) else { return };
    step(decision, agent, StepEvent::LoopSplit);
    let target = StateName::new(of.as_str());
    // The number of all branches so far keeps the ids unique when a loop runs several times.
    let begun = decision.run.program.steps().map_or(0, |state| state.begun);
    let begun = u32::try_from(begun).unwrap_or(u32::MAX);
    for number in 0..count {
        let child = agent.id.worker(&target, begun.saturating_add(number));
        decision.push(Event::AgentSpawned {
            agent: child.clone(),
            parent: Some(agent.id.clone()),
            cwd: agent.cwd.clone(),
            attributes: Few::default(),
        });
        // The prefix of all keys of the iteration, so that its results have unique names.
        let mut born = outside.iterations.clone();
        born.push(Iteration { of: of.clone(), number });
        step_of(decision, &child, beginning(born, Some(agent.id.clone())));
    }
}

/// Starts a step. A step that cannot be rendered fails here, before it waits for a gate or a slot.
fn enter(decision: &mut Decision<'_>, agent: &Agent, index: StepIndex, key: StepKey) {
    let Some((steps, state)) = program_and_state(decision) else { return };
    if let Err(unrendered) = steps.render(state, &agent.id, index) {
        let code = match &unrendered.cause {
            Unfilled::Unknown(_) | Unfilled::NoInput { .. } => ErrorCode::UnknownName,
            Unfilled::Overflow(_) => ErrorCode::TooLarge,
        };
        let variable = match &unrendered.cause {
            Unfilled::Unknown(path) => VariableProblem::missing(path),
            Unfilled::NoInput { .. } | Unfilled::Overflow(_) => None,
        };
        let stuck = Stuck { variable, ..Stuck::new(code, key, unrendered.to_string()) };
        return fail_early(decision, agent, stuck);
    }
    // After the check above, because a step that cannot run must not occupy a gate.
    let gate = gate(decision, agent, index);
    if let Some((gate, limit)) = gate.clone().filter(|(gate, _)| !state.is_open(gate)) {
        return step(decision, agent, StepEvent::Parked { gate, limit });
    }
    step(decision, agent, StepEvent::Entered { step: key.step.clone(), gate });
    let visit = visit(decision, agent, &key);
    let turn = TurnId { agent: agent.id.clone(), visit, turn: 1 };
    match &steps.document.step(index).kind {
        StepKind::Agent(asks) => {
            let session = shared(steps, state, asks).map_or(Session::Fresh, Session::At);
            let NextAttempt { attempt, limit, errors } = next_attempt(decision, steps, state, &key);
            step(decision, agent, StepEvent::Asked { key: key.clone(), attempt, errors, limit });
            let limit = limit.unwrap_or_else(|| steps.last_attempt(state, &key));
            question(decision, agent, Question { turn, key, attempt, limit }, &session);
        }
        // The interpreter names only exec and agent steps as steps that have to run.
        StepKind::Exec(_) | StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_) => {
            queue(decision, turn, Lane::Script, SessionPlan::Carry);
        }
    }
}

/// The attempt that an agent step asks for when its branch enters it.
struct NextAttempt {
    attempt: u32,
    /// The last attempt, if the step gets more of them.
    limit: Option<u32>,
    errors: Vec<Problem>,
}

/// Returns the attempt to ask for. A step whose attempts were used up is entered again only by a
/// resume, which gives it as many attempts as it had.
fn next_attempt(
    decision: &Decision<'_>,
    steps: &StepsDefinition,
    state: &StepsState,
    key: &StepKey,
) -> NextAttempt {
    // A caller without a journal says itself which attempt comes next.
    let attempt = written(&state.attempts, key).map_or(1, |(_, attempt)| attempt);
    let errors = || state.complaints.get(key).cloned().unwrap_or_default();
    let used_up = (!decision.run.program.is_answered_by_caller())
        .then(|| errors_of_last_attempt(state, key))
        .flatten()
        // Without a limit of its own, the step has not asked since that failure.
        .filter(|_| state.limits.get(key).is_none_or(|limit| attempt >= *limit));
    match used_up {
        None => NextAttempt { attempt, limit: None, errors: errors() },
        // The numbers continue upward, so that every request id stays unique.
        Some(errors) => NextAttempt {
            attempt: attempt.saturating_add(1),
            limit: Some(attempt.saturating_add(steps.tries(key))),
            errors,
        },
    }
}

/// Returns the errors of the last answer to a step that has failed because no answer was valid.
fn errors_of_last_attempt(state: &StepsState, key: &StepKey) -> Option<Vec<Problem>> {
    let result = state.results.get(key).filter(|stored| !stored.ok)?.json()?;
    let code = result.get("error")?.as_str()?;
    let errors = || serde_json::from_value(result.get("errors")?.clone()).ok();
    let is_edited = state.edited.contains(key);
    (code == ErrorCode::AgentOutputSchemaFailed.as_str())
        .then(|| errors().filter(|_| !is_edited).unwrap_or_default())
}

/// Enters the next visit of a branch, for this step.
fn visit(decision: &mut Decision<'_>, agent: &Agent, key: &StepKey) -> u32 {
    let visit = agent.visit.number.saturating_add(1);
    decision.push(Event::VisitEntered {
        agent: agent.id.clone(),
        // The count stays 1, because a key names one execution of a step.
        location: key.clone().into(),
        visit,
        count: 1,
        input: None,
        result_status: ResultStatus::Ok,
    });
    visit
}

/// Returns the gate of a step and how many branches may be inside: one turn at a time in a shared
/// conversation, and `maxParallel` programs in a parallel loop.
fn gate(decision: &Decision<'_>, agent: &Agent, index: StepIndex) -> Option<(Gate, u32)> {
    let (steps, state) = program_and_state(decision)?;
    match &steps.document.step(index).kind {
        StepKind::Agent(asks) => {
            // A caller manages its own conversations.
            (!decision.run.program.is_answered_by_caller()).then_some(())?;
            let label = label(steps, asks, asks.session.as_ref()?)?;
            Some((Gate::of_label(&label), 1))
        }
        StepKind::Exec(_) => {
            let branch = state.branches.get(&agent.id)?;
            // Only the loop that the branch is an iteration of limits it, not the loops further
            // out.
            let most = most_parallel(steps, branch)?;
            Some((Gate::of_loop(branch.parent.as_ref()?), most))
        }
        StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_) => None,
    }
}

/// An attempt at an agent step.
struct Question {
    turn: TurnId,
    key: StepKey,
    attempt: u32,
    /// The last attempt that the step has.
    limit: u32,
}

/// Asks for an attempt, unless the caller has already sent its output.
fn question(decision: &mut Decision<'_>, agent: &Agent, question: Question, session: &Session) {
    let Some((_, state)) = program_and_state(decision) else { return };
    let Question { turn, key, attempt, limit } = question;
    // The attempts are used up: by the echo of a caller, or by an earlier failure.
    if attempt > limit {
        let message = format!("`attempts` says {attempt} for {key}, which has {limit} at most");
        if let Some(known) = state.results.get(&key) {
            // Repeat the message that the caller received when the step failed.
            let reported = known.json().and_then(|known| known.get("message")?.as_str());
            let message = reported.map_or(message, str::to_owned);
            let code = ErrorCode::AgentOutputSchemaFailed;
            return fail(decision, agent, Stuck::new(code, key, message), Some(known.clone()));
        }
        let mut path = "/attempts".to_owned();
        let name = written(&state.claims, &key).map_or_else(|| key.clone(), |(name, _)| name);
        push_pointer_token(&mut path, &name.to_string());
        let beyond = [Problem::new(path, ProblemCode::OutOfRange, message.as_str())];
        return exhausted(decision, agent, key, message, &beyond);
    }
    match state.offer(&key, attempt) {
        Some(Offer::Output(name, output)) => {
            let question = Question { turn, key, attempt, limit };
            take(decision, agent, question, SentOutput { name, output }, &state.offers);
        }
        Some(Offer::Stale(name)) => {
            step(decision, agent, StepEvent::OutputIgnored { name });
            ask(decision, turn, &key, session);
        }
        None => ask(decision, turn, &key, session),
    }
}

/// An output that the caller sent, under the name that it used.
struct SentOutput<'a> {
    name: String,
    output: &'a Output,
}

/// Takes the caller's output for an attempt, and for the following attempts if it sent those too: a
/// caller without a journal repeats everything that it has sent before.
fn take(
    decision: &mut Decision<'_>,
    agent: &Agent,
    question: Question,
    sent: SentOutput<'_>,
    offers: &BTreeMap<String, Output>,
) {
    let Question { turn, key, attempt, limit } = question;
    let SentOutput { name, output } = sent;
    step(decision, agent, StepEvent::OutputTaken { name });
    let errors = match fitting(decision, &output.verdict, &output.stored.value) {
        Verdict::Valid => return done(decision, agent, key, output.stored.clone()),
        Verdict::Invalid(errors) => errors,
    };
    let following = attempt.saturating_add(1);
    let request = format!("{key}:{following}");
    match offers.get(&request).filter(|_| following <= limit) {
        Some(next) => {
            let event =
                StepEvent::Asked { key: key.clone(), attempt: following, errors, limit: None };
            step(decision, agent, event);
            let question = Question { turn: turn.following(), key, attempt: following, limit };
            let sent = SentOutput { name: request, output: next };
            // At most five calls deep, because a step has at most five attempts (`Cap::MOST`).
            take(decision, agent, question, sent, offers);
        }
        None => {
            let next = Question { turn: turn.following(), key, attempt, limit };
            // The session is not used: a caller manages its own conversations.
            invalid(decision, agent, next, &Session::Fresh, &errors);
        }
    }
}

/// Returns the verdict, or an invalid one if the run has no room for the output: a shorter answer
/// may still be valid.
fn fitting(decision: &Decision<'_>, verdict: &Verdict, output: &Value) -> Verdict {
    match verdict {
        Verdict::Valid if !is_room(decision, output) => {
            Verdict::Invalid(vec![Problem::new("", ProblemCode::TooLarge, no_room())])
        }
        verdict @ (Verdict::Valid | Verdict::Invalid(_)) => verdict.clone(),
    }
}

/// Returns the conversation that a step continues.
fn shared(
    steps: &StepsDefinition,
    state: &StepsState,
    asks: &document::AgentStep,
) -> Option<SessionId> {
    let session = asks.session.as_ref().filter(|session| session.reset != Some(true))?;
    state.sessions.get(&label(steps, asks, session)?).cloned()
}

/// Returns the label of a conversation that steps share.
fn label(
    steps: &StepsDefinition,
    asks: &document::AgentStep,
    session: &document::SessionChoice,
) -> Option<String> {
    if session.mode != Some(SessionMode::Sticky) {
        return None;
    }
    // Without a label, the steps of one workflow and one assignee share a conversation.
    let name = steps.document.name.as_deref().unwrap_or("workflow");
    let assignee = asks.assignee.as_deref().unwrap_or("main");
    Some(session.label.clone().unwrap_or_else(|| format!("wf:{name}:{assignee}")))
}

/// Asks for an answer: a backend, or the caller of the run.
fn ask(decision: &mut Decision<'_>, turn: TurnId, key: &StepKey, session: &Session) {
    if decision.run.program.is_answered_by_caller() {
        let question = Value::Inline(key.to_string());
        // The question never expires: a caller may take as long as it likes.
        return decision.push(Event::Asked { ask: turn, question, due: None });
    }
    // A step has no frontmatter, so one backend answers all agent steps of a run.
    let lane = Lane::Prompt(decision.run.settings.backend.clone());
    let plan = decision.plan(&turn, &lane, session);
    queue(decision, turn, lane, plan);
}

fn queue(decision: &mut Decision<'_>, turn: TurnId, lane: Lane, plan: SessionPlan) {
    let order = decision.order();
    let prompt = Prompt::Body;
    decision.push(Event::TurnQueued { turn, lane, prompt, plan, order, notice: None });
}

/// Handles the end of a turn: its result, or an invalid output.
pub(crate) fn finished(
    decision: &mut Decision<'_>,
    agent: &Agent,
    session: &Session,
    outcome: &Finished,
) {
    let Some(key) = agent.visit.location.step().cloned() else { return };
    let verdict = outcome.reply.verdict.as_ref();
    match verdict.map(|verdict| fitting(decision, verdict, &outcome.reply.text)) {
        // A program has no verdict; only agent steps have one.
        None | Some(Verdict::Valid) => {
            keep(decision, agent, &key, session);
            let (value, read) = (outcome.reply.text.clone(), outcome.reply.read.clone());
            done(decision, agent, key, Stored { value, ok: true, read });
        }
        Some(Verdict::Invalid(errors)) => {
            let attempts = decision.run.program.steps().and_then(|state| state.attempts.get(&key));
            let attempt = attempts.copied().unwrap_or(1);
            let limit = last_attempt(decision, &key);
            let (visit, turn) = (agent.visit.number, agent.visit.turn.saturating_add(1));
            let turn = TurnId { agent: agent.id.clone(), visit, turn };
            invalid(decision, agent, Question { turn, key, attempt, limit }, session, &errors);
        }
    }
}

fn last_attempt(decision: &Decision<'_>, key: &StepKey) -> u32 {
    program_and_state(decision).map_or(1, |(steps, state)| steps.last_attempt(state, key))
}

/// Stores the result of a step, or fails it if the results would exceed the limit.
fn done(decision: &mut Decision<'_>, agent: &Agent, key: StepKey, stored: Stored) {
    if !is_room(decision, &stored.value) {
        let stuck = Stuck::new(ErrorCode::TooLarge, key, no_room());
        return fail(decision, agent, stuck, None);
    }
    step(decision, agent, StepEvent::Done { key, stored });
}

fn is_room(decision: &Decision<'_>, value: &Value) -> bool {
    let kept = decision.run.program.steps().map_or(0, |state| state.kept);
    // A result that this one would replace is counted, too, so this is never too generous.
    kept.saturating_add(value.len()) <= MOST_KEPT
}

fn no_room() -> String {
    format!("the results of a run would have more than {} MiB", MOST_KEPT >> 20)
}

/// Handles a call: its outputs answer open requests at once, in the order of keys.
pub(crate) fn called(mut decision: Decision<'_>, call: &Call) -> Vec<Event> {
    step_of(&mut decision, &AgentId::main(), StepEvent::Called(Box::new(call.clone())));
    let Some((_, state)) = program_and_state(&decision) else { return decision.events };
    // The events of this decision are not applied yet, so work on a copy that has the call.
    let mut with_call = state.clone();
    with_call.apply(&AgentId::main(), &StepEvent::Called(Box::new(call.clone())));
    let asks = decision.run.scheduler.asks.keys().filter_map(|ask| {
        let agent = decision.run.agents.get(&ask.agent)?;
        Some((agent.visit.location.step()?.clone(), ask.clone(), agent))
    });
    let mut asks: Vec<(StepKey, TurnId, &Agent)> = asks.collect();
    // An output under the id of a step in a loop answers the first waiting iteration.
    asks.sort_by(|one, other| one.0.cmp(&other.0));
    for (key, ask, agent) in asks {
        let attempt = with_call.attempts.get(&key).copied().unwrap_or(1);
        let event = match with_call.offer(&key, attempt) {
            None => continue,
            Some(Offer::Stale(name)) => {
                let event = StepEvent::OutputIgnored { name };
                step(&mut decision, agent, event.clone());
                event
            }
            Some(Offer::Output(name, output)) => {
                decision.push(Event::AskAnswered {
                    ask: ask.clone(),
                    value: output.stored.value.clone(),
                    by: "caller".to_owned(),
                    // Views read the step and the attempt from this text
                    // (`AgentSummary::note_answer`).
                    key: format!("{key}:{attempt}"),
                });
                let limit = last_attempt(&decision, &key);
                let question = Question { turn: ask, key, attempt, limit };
                let sent = SentOutput { name: name.clone(), output };
                take(&mut decision, agent, question, sent, &with_call.offers);
                // Outputs for later attempts belong to this step alone.
                StepEvent::OutputTaken { name }
            }
        };
        with_call.apply(&agent.id, &event);
    }
    decision.events
}

fn most_parallel(steps: &StepsDefinition, branch: &Branch) -> Option<u32> {
    match order(steps, branch)? {
        Order::Parallel { max_parallel, .. } => Some(max_parallel),
        Order::Sequential => None,
    }
}

/// Repeats the step of a failed branch, with fresh attempts.
pub(crate) fn revive(decision: &mut Decision<'_>, agent: &Agent) {
    decision.push(Event::AgentRevived { agent: agent.id.clone() });
    // No turn is queued here: the branch is now before its step, and the interpreter enters it.
    step(decision, agent, StepEvent::Revived);
}

/// Records the conversation, so that later steps with the same label continue it.
fn keep(decision: &mut Decision<'_>, agent: &Agent, key: &StepKey, session: &Session) {
    let Some((steps, _)) = program_and_state(decision) else { return };
    let asks = steps.agent(key);
    let label = asks.and_then(|asks| label(steps, asks, asks.session.as_ref()?));
    if let (Some(label), Session::At(session)) = (label, session) {
        step(decision, agent, StepEvent::ConversationKept { label, session: session.clone() });
    }
}

/// Returns the order of the loop that a branch is an iteration of.
fn order(steps: &StepsDefinition, branch: &Branch) -> Option<Order> {
    let born = steps.document.find(branch.born.last()?.of.as_str())?;
    match &steps.document.step(born).kind {
        StepKind::ForEach(each) => Some(each.order),
        StepKind::Exec(_) | StepKind::Agent(_) | StepKind::If(_) | StepKind::While(_) => None,
    }
}
