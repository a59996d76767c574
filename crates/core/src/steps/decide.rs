//! A run of steps at the scheduler: what its branches want, and what follows when that is settled.
//!
//! A branch is an agent of the run, a step that is done is a visit of it, and its key the name of the
//! state. So everything that holds for turns holds here: the queue, slots and shares, attempts, holds.
//! One thing is decided at a time: whoever asks makes it so, and asks again.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::agent::{Agent, Session, SessionPlan};
use crate::crayfish::verdict::Verdict;
use crate::failure::{Failure, TurnFailure};
use crate::few::Few;
use crate::ids::{AgentId, SessionId, StateName, TurnId};
use crate::protocol::Notice;
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::run::input::Finished;
use crate::run::program::Answers;
use crate::scheduler::{Lane, Prompt, Turn};
use crate::value::Value;

use crate::crayfish::call::{Call, Output, written};
use crate::crayfish::document;
use crate::crayfish::document::{Kind, OnError, Order, SessionMode, StepIndex};
use crate::crayfish::error_code::ErrorCode;
use crate::crayfish::gate::Gate;
use crate::crayfish::key::{Iteration, Key};
use crate::crayfish::name::StepId;
use crate::crayfish::problem::{Problem, push_token};
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::program::StepsProgram;
use crate::crayfish::state::Offer;
use crate::crayfish::state::{Branch, MOST_KEPT, Position, StepEvent, StepsState};
use crate::crayfish::stored::Stored;
use crate::crayfish::template::Unfilled;
use crate::crayfish::walk::{Next, Stuck};

/// The branch of the document itself begins.
pub(crate) fn begin(decision: &mut Decision<'_>, main: &AgentId) {
    let fact = StepEvent::Begun { born: Vec::new(), parent: None };
    decision.push(Event::Stepped { agent: main.clone(), fact });
}

/// What the next branch comes to; none when all of them wait.
pub(crate) fn advance(mut decision: Decision<'_>) -> Option<Vec<Event>> {
    let (work, flow) = at_hand(&decision)?;
    let agent = flow.next_ready()?;
    let agent = decision.run.agents.get(agent)?;
    if matches!(flow.branches.get(&agent.id)?.at, Position::Waits { failed: 1.., .. }) {
        collapse(&mut decision, agent);
        return Some(decision.events);
    }
    match work.steps().next(flow, &agent.id)? {
        Next::StepEvent(StepEvent::Ended) => end(&mut decision, agent),
        Next::StepEvent(fact) => step(&mut decision, agent, fact),
        Next::Splits { of, count } => split(&mut decision, agent, &of, count),
        Next::Does { step, key } => enter(&mut decision, agent, step, key),
        Next::Fails(stuck) => fail_early(&mut decision, agent, stuck),
    }
    Some(decision.events)
}

fn at_hand<'a>(decision: &Decision<'a>) -> Option<(&'a StepsProgram, &'a StepsState)> {
    Some((decision.definition.work.as_deref()?, decision.run.flow.as_deref()?))
}

fn step(decision: &mut Decision<'_>, agent: &Agent, fact: StepEvent) {
    step_of(decision, &agent.id, fact);
}

fn step_of(decision: &mut Decision<'_>, agent: &AgentId, fact: StepEvent) {
    decision.push(Event::Stepped { agent: agent.clone(), fact });
}

fn end(decision: &mut Decision<'_>, agent: &Agent) {
    step(decision, agent, StepEvent::Ended);
    leave(decision, agent);
}

/// The agent of a branch is not needed any more.
fn leave(decision: &mut Decision<'_>, agent: &Agent) {
    let result = Value::Inline(String::new());
    decision.push(Event::AgentEnded { agent: agent.id.clone(), result });
}

/// Each iteration is an agent of its own.
fn split(decision: &mut Decision<'_>, agent: &Agent, of: &StepId, count: u32) {
    let branch = decision.run.flow.as_ref().and_then(|flow| flow.branches.get(&agent.id));
    let Some(outside) = branch.and_then(Branch::loop_key) else { return };
    step(decision, agent, StepEvent::Splits);
    let target = StateName::new(of.as_str());
    let begun = decision.run.flow.as_ref().map_or(0, |flow| flow.begun);
    let begun = u32::try_from(begun).unwrap_or(u32::MAX);
    for number in 0..count {
        let child = agent.id.worker(&target, begun.saturating_add(number));
        decision.push(Event::AgentSpawned {
            agent: child.clone(),
            parent: Some(agent.id.clone()),
            cwd: agent.cwd.clone(),
            attributes: Few::default(),
        });
        let mut born = outside.iterations.clone();
        born.push(Iteration { of: of.clone(), number });
        let fact = StepEvent::Begun { born, parent: Some(agent.id.clone()) };
        decision.push(Event::Stepped { agent: child, fact });
    }
}

/// A step is to be done. What cannot be filled in fails before it waits for anything.
fn enter(decision: &mut Decision<'_>, agent: &Agent, index: StepIndex, key: Key) {
    let Some((work, flow)) = at_hand(decision) else { return };
    if let Err(unrendered) = work.renders(flow, &agent.id, index) {
        let code = match unrendered.cause {
            Unfilled::Unknown(_) | Unfilled::NoInput { .. } => ErrorCode::UnknownName,
            Unfilled::Overflow(_) => ErrorCode::TooLarge,
        };
        let message = unrendered.to_string();
        return fail_early(decision, agent, Stuck { code, key, message });
    }
    let gate = gate(decision, agent, index);
    if let Some((gate, most)) = gate.clone().filter(|(gate, _)| !flow.is_open(gate)) {
        return step(decision, agent, StepEvent::Parked { gate, most });
    }
    step(decision, agent, StepEvent::Entered { step: key.step.clone(), gate });
    let visit = visit(decision, agent, &key);
    let turn = TurnId { agent: agent.id.clone(), visit, turn: 1 };
    match &work.document.step(index).kind {
        Kind::Agent(asks) => {
            let attempt = written(&flow.attempts, &key).map_or(1, |(_, attempt)| attempt);
            let session = shared(work, flow, asks).map_or(Session::Fresh, Session::At);
            let errors = flow.complaints.get(&key).cloned().unwrap_or_default();
            step(decision, agent, StepEvent::Asks { key: key.clone(), attempt, errors });
            question(decision, agent, Question { turn, key, attempt }, &session);
        }
        Kind::Exec(_) | Kind::If(_) | Kind::ForEach(_) | Kind::While(_) => {
            queue(decision, turn, Lane::Script, SessionPlan::Carry);
        }
    }
}

/// The next visit of a branch is one of this step.
fn visit(decision: &mut Decision<'_>, agent: &Agent, key: &Key) -> u32 {
    let visit = agent.visit.number.saturating_add(1);
    decision.push(Event::VisitEntered {
        agent: agent.id.clone(),
        state: StateName::new(key.to_string()),
        visit,
        count: 1,
        input: None,
    });
    visit
}

/// What a step has to pass, and how many may be inside: a conversation that is shared has one turn
/// at a time, and a parallel loop so many programs.
fn gate(decision: &Decision<'_>, agent: &Agent, index: StepIndex) -> Option<(Gate, u32)> {
    let (work, flow) = at_hand(decision)?;
    match &work.document.step(index).kind {
        Kind::Agent(asks) => {
            // A caller has its own conversations.
            (decision.run.settings.program.answers() == Some(Answers::Backend)).then_some(())?;
            let label = label(work, asks, asks.session.as_ref()?)?;
            Some((Gate::of_label(&label), 1))
        }
        Kind::Exec(_) => {
            let branch = flow.branches.get(&agent.id)?;
            let most = most_parallel(work, branch)?;
            Some((Gate::of_loop(branch.parent.as_ref()?), most))
        }
        Kind::If(_) | Kind::ForEach(_) | Kind::While(_) => None,
    }
}

/// An attempt at an agent step that somebody is asked for.
struct Question {
    turn: TurnId,
    key: Key,
    attempt: u32,
}

/// A step asks for the first time in a while: its caller may have brought the output.
fn question(decision: &mut Decision<'_>, agent: &Agent, question: Question, session: &Session) {
    let Some((work, flow)) = at_hand(decision) else { return };
    let Question { turn, key, attempt } = question;
    let tries = work.tries(&key);
    if attempt > tries {
        let message = format!("`attempts` says {attempt} for {key}, which has {tries} at most");
        if let Some(known) = flow.results.get(&key) {
            // What its caller was told when that happened.
            let said = known.json().and_then(|known| known.get("message")?.as_str());
            let message = said.map_or(message, str::to_owned);
            let code = ErrorCode::AgentOutputSchemaFailed;
            return fail(decision, agent, Stuck { code, key, message }, Some(known.clone()));
        }
        let mut path = "/attempts".to_owned();
        let name = written(&flow.claims, &key).map_or_else(|| key.clone(), |(name, _)| name);
        push_token(&mut path, &name.to_string());
        let beyond = [Problem::new(path, ProblemCode::OutOfRange, message.as_str())];
        return exhausted(decision, agent, (key, message), &beyond);
    }
    match flow.offer(&key, attempt) {
        Some(Offer::Output(name, output)) => {
            take(decision, agent, Question { turn, key, attempt }, (name, output), &flow.offers);
        }
        Some(Offer::Stale(name)) => {
            step(decision, agent, StepEvent::Ignores { name });
            ask(decision, turn, &key, session);
        }
        None => ask(decision, turn, &key, session),
    }
}

/// The caller brought the output of an attempt, and perhaps that of the next one: whoever has said all
/// that before says it again.
fn take(
    decision: &mut Decision<'_>,
    agent: &Agent,
    question: Question,
    (name, output): (String, &Output),
    offers: &BTreeMap<String, Output>,
) {
    let Question { turn, key, attempt } = question;
    step(decision, agent, StepEvent::Takes { name });
    let errors = match fitting(decision, &output.verdict, &output.stored.value) {
        Verdict::Valid => return done(decision, agent, key, output.stored.clone()),
        Verdict::Invalid(errors) => errors,
    };
    let following = attempt.saturating_add(1);
    let request = format!("{key}:{following}");
    let has_next = at_hand(decision).is_some_and(|(work, _)| following <= work.tries(&key));
    match offers.get(&request).filter(|_| has_next) {
        Some(next) => {
            let fact = StepEvent::Asks { key: key.clone(), attempt: following, errors };
            step(decision, agent, fact);
            let question = Question { turn: turn.following(), key, attempt: following };
            take(decision, agent, question, (request, next), offers);
        }
        None => {
            let next = Question { turn: turn.following(), key, attempt };
            invalid(decision, agent, (next, &Session::Fresh), &errors);
        }
    }
}

/// An output that a run cannot keep is not valid: whoever answers may do so in fewer words.
fn fitting(decision: &Decision<'_>, verdict: &Verdict, output: &Value) -> Verdict {
    match verdict {
        Verdict::Valid if !is_room(decision, output) => {
            Verdict::Invalid(vec![Problem::new("", ProblemCode::TooLarge, no_room())])
        }
        verdict @ (Verdict::Valid | Verdict::Invalid(_)) => verdict.clone(),
    }
}

/// The conversation that a step is to go on in.
fn shared(work: &StepsProgram, flow: &StepsState, asks: &document::Agent) -> Option<SessionId> {
    let session = asks.session.as_ref().filter(|session| session.reset != Some(true))?;
    flow.sessions.get(&label(work, asks, session)?).cloned()
}

/// The label of a conversation that steps share.
fn label(
    work: &StepsProgram,
    asks: &document::Agent,
    session: &document::Session,
) -> Option<String> {
    if session.mode != Some(SessionMode::Sticky) {
        return None;
    }
    let name = work.document.name.as_deref().unwrap_or("workflow");
    let assignee = asks.assignee.as_deref().unwrap_or("main");
    Some(session.label.clone().unwrap_or_else(|| format!("wf:{name}:{assignee}")))
}

/// Whoever answers the run is asked: a backend, or the caller.
fn ask(decision: &mut Decision<'_>, turn: TurnId, key: &Key, session: &Session) {
    match decision.run.settings.program.answers() {
        Some(Answers::Caller) => decision.push(Event::Asked {
            ask: turn,
            question: Value::Inline(key.to_string()),
            due: None,
        }),
        Some(Answers::Backend) | None => {
            let lane = Lane::Prompt(decision.run.settings.backend.clone());
            let plan = decision.plan(&turn, &lane, session);
            queue(decision, turn, lane, plan);
        }
    }
}

fn queue(decision: &mut Decision<'_>, turn: TurnId, lane: Lane, plan: SessionPlan) {
    let order = decision.order();
    let prompt = Prompt::Body;
    decision.push(Event::TurnQueued { turn, lane, prompt, plan, order, notice: None });
}

/// A turn ended with what its step leaves, or with an output that is not what was asked for.
pub(crate) fn finished(
    decision: &mut Decision<'_>,
    agent: &Agent,
    session: &Session,
    outcome: &Finished,
) {
    let Some(key) = agent.step_key() else { return };
    let verdict = outcome.verdict.as_ref();
    match verdict.map(|verdict| fitting(decision, verdict, &outcome.text)) {
        None | Some(Verdict::Valid) => {
            keep(decision, agent, &key, session);
            let (value, read) = (outcome.text.clone(), outcome.read.clone());
            done(decision, agent, key, Stored { value, ok: true, read });
        }
        Some(Verdict::Invalid(errors)) => {
            let attempts = decision.run.flow.as_ref().and_then(|flow| flow.attempts.get(&key));
            let attempt = attempts.copied().unwrap_or(1);
            let (visit, turn) = (agent.visit.number, agent.visit.turn.saturating_add(1));
            let turn = TurnId { agent: agent.id.clone(), visit, turn };
            invalid(decision, agent, (Question { turn, key, attempt }, session), &errors);
        }
    }
}

/// A step has left something, unless a run would keep more than it may.
fn done(decision: &mut Decision<'_>, agent: &Agent, key: Key, stored: Stored) {
    if !is_room(decision, &stored.value) {
        let stuck = Stuck { code: ErrorCode::TooLarge, key, message: no_room() };
        return fail(decision, agent, stuck, None);
    }
    step(decision, agent, StepEvent::Done { key, stored });
}

fn is_room(decision: &Decision<'_>, value: &Value) -> bool {
    let kept = decision.run.flow.as_ref().map_or(0, |flow| flow.kept);
    kept.saturating_add(value.len()) <= MOST_KEPT
}

fn no_room() -> String {
    format!("the results of a run would have more than {} MiB", MOST_KEPT >> 20)
}

/// A caller brings what it knows: what it was asked for is settled at once, in the order of keys.
pub(crate) fn called(mut decision: Decision<'_>, call: &Call) -> Vec<Event> {
    step_of(&mut decision, &AgentId::main(), StepEvent::Called(Box::new(call.clone())));
    let Some((_, flow)) = at_hand(&decision) else { return decision.events };
    let mut told = flow.clone();
    told.apply(&AgentId::main(), &StepEvent::Called(Box::new(call.clone())));
    let asks = decision.run.scheduler.asks.keys().filter_map(|ask| {
        let agent = decision.run.agents.get(&ask.agent)?;
        Some((agent.step_key()?, ask.clone(), agent))
    });
    let mut asks: Vec<(Key, TurnId, &Agent)> = asks.collect();
    asks.sort_by(|one, other| one.0.cmp(&other.0));
    for (key, ask, agent) in asks {
        let attempt = told.attempts.get(&key).copied().unwrap_or(1);
        let fact = match told.offer(&key, attempt) {
            None => continue,
            Some(Offer::Stale(name)) => {
                let fact = StepEvent::Ignores { name };
                step(&mut decision, agent, fact.clone());
                fact
            }
            Some(Offer::Output(name, output)) => {
                decision.push(Event::AskAnswered {
                    ask: ask.clone(),
                    value: output.stored.value.clone(),
                    by: "caller".to_owned(),
                    key: format!("{key}:{attempt}"),
                });
                let question = Question { turn: ask, key, attempt };
                take(&mut decision, agent, question, (name.clone(), output), &told.offers);
                // Those of later attempts are for this step alone.
                StepEvent::Takes { name }
            }
        };
        told.apply(&agent.id, &fact);
    }
    decision.events
}

fn most_parallel(work: &StepsProgram, branch: &Branch) -> Option<u32> {
    match order(work, branch)? {
        Order::Parallel { max_parallel, .. } => Some(max_parallel),
        Order::Sequential => None,
    }
}

/// A failed branch does its step again, with fresh attempts.
pub(crate) fn revive(decision: &mut Decision<'_>, agent: &Agent) {
    decision.push(Event::AgentRevived { agent: agent.id.clone() });
    step(decision, agent, StepEvent::Revived);
}

/// Whether a failure may be none the next time: what a document comes to by itself will be the same.
pub(crate) fn is_revived(failure: &Failure) -> bool {
    if let Failure::Step { code, .. } = failure {
        code == ErrorCode::ExecFailed.as_str()
    } else {
        true
    }
}

/// Later steps may go on in the conversation.
fn keep(decision: &mut Decision<'_>, agent: &Agent, key: &Key, session: &Session) {
    let Some((work, _)) = at_hand(decision) else { return };
    let asks = work.agent(key);
    let label = asks.and_then(|asks| label(work, asks, asks.session.as_ref()?));
    if let (Some(label), Session::At(session)) = (label, session) {
        step(decision, agent, StepEvent::Keeps { label, session: session.clone() });
    }
}

/// The next attempt is told what was wrong, while there is one.
fn invalid(
    decision: &mut Decision<'_>,
    agent: &Agent,
    (next, session): (Question, &Session),
    errors: &[Problem],
) {
    let Some((work, _)) = at_hand(decision) else { return };
    let Question { turn, key, attempt } = next;
    let tries = work.tries(&key);
    if attempt >= tries {
        let first = errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        let message = format!("no output of {tries} was valid{first}");
        return exhausted(decision, agent, (key, message), errors);
    }
    let attempt = attempt.saturating_add(1);
    step(decision, agent, StepEvent::Asks { key: key.clone(), attempt, errors: errors.to_vec() });
    ask(decision, turn, &key, session);
}

/// No attempt is left.
fn exhausted(
    decision: &mut Decision<'_>,
    agent: &Agent,
    (key, message): (Key, String),
    errors: &[Problem],
) {
    let code = ErrorCode::AgentOutputSchemaFailed;
    let told: Vec<Json> = errors.iter().map(Problem::to_json).collect();
    let left = json!({ "ok": false, "error": code.as_str(), "message": message, "errors": told });
    fail(decision, agent, Stuck { code, key, message }, Some(Stored::inline(left, false)));
}

/// A program failed: it is tried again while it may be.
pub(crate) fn failed(
    decision: &mut Decision<'_>,
    agent: &Agent,
    turn: &Turn,
    failure: &TurnFailure,
) {
    let Some(key) = agent.step_key() else { return };
    let Some((work, _)) = at_hand(decision) else { return };
    let (stored, is_useless) = if let TurnFailure::Step { result, again, .. } = failure {
        (Some(result.clone()), !again)
    } else {
        (None, false)
    };
    let retry = agent.visit.retries.saturating_add(1);
    if is_useless || retry >= work.tries(&key) {
        let stuck = Stuck { code: ErrorCode::ExecFailed, key, message: failure.to_string() };
        return fail(decision, agent, stuck, stored);
    }
    let (turn, until) = (turn.id.clone(), decision.at);
    let of = Some(work.tries(&key).saturating_sub(1));
    decision.push(Event::RetryAt { turn: turn.clone(), until, retry, of });
    decision.requeue(&turn, Notice::Retried);
}

/// What fails before it is begun is where its branch is, all the same.
fn fail_early(decision: &mut Decision<'_>, agent: &Agent, stuck: Stuck) {
    visit(decision, agent, &stuck.key);
    fail(decision, agent, stuck, None);
}

/// A branch cannot go on: its iteration is over, or it fails.
fn fail(decision: &mut Decision<'_>, agent: &Agent, stuck: Stuck, left: Option<Stored>) {
    let Stuck { code, key, message } = stuck;
    let reach = reach(decision, agent);
    let is_loop = decision.definition.work.as_deref().is_some_and(|work| work.is_loop(&key));
    let left = left.filter(|left| is_room(decision, &left.value));
    let stored = left.or_else(|| {
        // A loop stores nothing, unless somebody collects.
        let told = json!({ "ok": false, "error": code.as_str(), "message": message });
        (!is_loop || reach != Reach::Run).then(|| Stored::inline(told, false))
    });
    match (reach, stored) {
        (Reach::Iteration, Some(stored)) => {
            step(decision, agent, StepEvent::Done { key, stored });
            end(decision, agent);
        }
        (Reach::Around, stored) => {
            step(decision, agent, StepEvent::Fails { key, stored, contained: true });
            leave(decision, agent);
        }
        (Reach::Run | Reach::Iteration, stored) => {
            step(decision, agent, StepEvent::Fails { key, stored, contained: false });
            let failure = Failure::Step { code: code.as_str().to_owned(), message };
            decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
        }
    }
}

/// Something else than its step fails a branch: a client that cannot answer, an owner that died too
/// often.
pub(crate) fn break_off(decision: &mut Decision<'_>, agent: &Agent, failure: Failure) {
    let Some(key) = agent.step_key() else { return };
    if reach(decision, agent) != Reach::Run {
        let stuck = Stuck { code: ErrorCode::AgentFailed, key, message: failure.to_string() };
        return fail(decision, agent, stuck, None);
    }
    step(decision, agent, StepEvent::Fails { key, stored: None, contained: false });
    decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
}

/// The iterations of a branch have failed, a loop around it collects, and nothing runs any more: the
/// branch fails as the first of them did.
fn collapse(decision: &mut Decision<'_>, agent: &Agent) {
    let Some((_, flow)) = at_hand(decision) else { return };
    let parent = Some(&agent.id);
    let inner = flow.branches.iter().filter(|(_, branch)| branch.parent.as_ref() == parent);
    let mut inner: Vec<(&AgentId, &Branch)> = inner.collect();
    inner.sort_by_key(|(_, branch)| branch.number);
    let first = inner.iter().find_map(|(_, branch)| branch.failed_at().cloned());
    for (id, _) in inner {
        step_of(decision, id, StepEvent::Ended);
        if let Some(inner) = decision.run.agents.get(id) {
            leave(decision, inner);
        }
    }
    let Some(key) = first else { return };
    match reach(decision, agent) {
        Reach::Iteration => {
            step(decision, agent, StepEvent::Met { key });
            end(decision, agent);
        }
        Reach::Around | Reach::Run => {
            step(decision, agent, StepEvent::Fails { key, stored: None, contained: true });
            leave(decision, agent);
        }
    }
}

/// How far a failure reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// It ends the iteration that it happens in.
    Iteration,
    /// It ends an iteration further out.
    Around,
    /// It fails the run.
    Run,
}

fn reach(decision: &Decision<'_>, agent: &Agent) -> Reach {
    let Some((work, flow)) = at_hand(decision) else { return Reach::Run };
    let mut reach = Reach::Iteration;
    let mut branch = flow.branches.get(&agent.id);
    while let Some(this) = branch {
        if on_error(work, this) == Some(OnError::Collect) {
            return reach;
        }
        reach = Reach::Around;
        branch = this.parent.as_ref().and_then(|parent| flow.branches.get(parent));
    }
    Reach::Run
}

/// What a failure means for the loop whose iteration a branch is.
fn on_error(work: &StepsProgram, branch: &Branch) -> Option<OnError> {
    match order(work, branch)? {
        Order::Parallel { on_error, .. } => Some(on_error),
        Order::Sequential => None,
    }
}

/// How the loop goes through its list whose iteration a branch is.
fn order(work: &StepsProgram, branch: &Branch) -> Option<Order> {
    let born = work.document.find(branch.born.last()?.of.as_str())?;
    match &work.document.step(born).kind {
        Kind::ForEach(each) => Some(each.order),
        Kind::Exec(_) | Kind::Agent(_) | Kind::If(_) | Kind::While(_) => None,
    }
}
