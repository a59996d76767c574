//! A run of steps at the desk: what its strands want, and what follows when that is settled.
//!
//! A strand is an agent of the run, a step that is done is a visit of it, and its key the name of the
//! state. So everything that holds for turns holds here: the queue, slots and shares, attempts, holds.
//! One thing is decided at a time: whoever asks makes it so, and asks again.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::desk::{Lane, Notice, Prompt, Turn};
use crate::failure::{Failure, TurnFailure};
use crate::few::Few;
use crate::ids::{AgentId, SessionId, StateName, TurnId};
use crate::machine::{Agent, Session, SessionPlan};
use crate::run::draft::Draft;
use crate::run::event::Event;
use crate::run::input::{Finished, Verdict};
use crate::run::program::Answers;
use crate::value::Value;

use super::call::{Call, Offer, Output, written};
use super::code::Code;
use super::document::{self, Kind, OnError, Order, SessionMode, StepIndex};
use super::flaw::Flaw;
use super::flow::{At, Fact, Flow, MOST_KEPT, Stored, Strand};
use super::gate::Gate;
use super::key::{Iteration, Key};
use super::name::StepId;
use super::problem::{Problem, push_token};
use super::template::Unfilled;
use super::walk::{Next, Stuck};
use super::work::{Work, key_of};

/// The strand of the document itself begins.
pub(crate) fn begin(draft: &mut Draft<'_>, main: &AgentId) {
    let fact = Fact::Begun { born: Vec::new(), parent: None };
    draft.push(Event::Stepped { agent: main.clone(), fact });
}

/// What the next strand comes to; none when all of them wait.
pub(crate) fn advance(mut draft: Draft<'_>) -> Option<Vec<Event>> {
    let (work, flow) = at_hand(&draft)?;
    let agent = flow.next_ready()?;
    let agent = draft.run.agents.get(agent)?;
    if matches!(flow.strands.get(&agent.id)?.at, At::Waits { failed: 1.., .. }) {
        collapse(&mut draft, agent);
        return Some(draft.events);
    }
    match work.steps().next(flow, &agent.id)? {
        Next::Fact(Fact::Ended) => end(&mut draft, agent),
        Next::Fact(fact) => step(&mut draft, agent, fact),
        Next::Splits { of, count } => split(&mut draft, agent, &of, count),
        Next::Does { step, key } => enter(&mut draft, agent, step, key),
        Next::Fails(stuck) => fail_early(&mut draft, agent, stuck),
    }
    Some(draft.events)
}

fn at_hand<'a>(draft: &Draft<'a>) -> Option<(&'a Work, &'a Flow)> {
    Some((draft.definition.work.as_deref()?, draft.run.flow.as_deref()?))
}

fn step(draft: &mut Draft<'_>, agent: &Agent, fact: Fact) {
    step_of(draft, &agent.id, fact);
}

fn step_of(draft: &mut Draft<'_>, agent: &AgentId, fact: Fact) {
    draft.push(Event::Stepped { agent: agent.clone(), fact });
}

fn end(draft: &mut Draft<'_>, agent: &Agent) {
    step(draft, agent, Fact::Ended);
    leave(draft, agent);
}

/// The agent of a strand is not needed any more.
fn leave(draft: &mut Draft<'_>, agent: &Agent) {
    let result = Value::Inline(String::new());
    draft.push(Event::AgentEnded { agent: agent.id.clone(), result });
}

/// Each iteration is an agent of its own.
fn split(draft: &mut Draft<'_>, agent: &Agent, of: &StepId, count: u32) {
    let strand = draft.run.flow.as_ref().and_then(|flow| flow.strands.get(&agent.id));
    let Some(outside) = strand.and_then(Strand::loop_key) else { return };
    step(draft, agent, Fact::Splits);
    let target = StateName::new(of.as_str());
    let begun = draft.run.flow.as_ref().map_or(0, |flow| flow.begun);
    let begun = u32::try_from(begun).unwrap_or(u32::MAX);
    for number in 0..count {
        let child = agent.id.worker(&target, begun.saturating_add(number));
        draft.push(Event::AgentSpawned {
            agent: child.clone(),
            parent: Some(agent.id.clone()),
            cwd: agent.cwd.clone(),
            attributes: Few::default(),
        });
        let mut born = outside.iterations.clone();
        born.push(Iteration { of: of.clone(), number });
        let fact = Fact::Begun { born, parent: Some(agent.id.clone()) };
        draft.push(Event::Stepped { agent: child, fact });
    }
}

/// A step is to be done. What cannot be filled in fails before it waits for anything.
fn enter(draft: &mut Draft<'_>, agent: &Agent, index: StepIndex, key: Key) {
    let Some((work, flow)) = at_hand(draft) else { return };
    if let Err(unrendered) = work.renders(flow, &agent.id, index) {
        let code = match unrendered.cause {
            Unfilled::Unknown(_) | Unfilled::NoInput { .. } => Code::UnknownName,
            Unfilled::Overflow(_) => Code::TooLarge,
        };
        let message = unrendered.to_string();
        return fail_early(draft, agent, Stuck { code, key, message });
    }
    let gate = gate(draft, agent, index);
    if let Some((gate, most)) = gate.clone().filter(|(gate, _)| !flow.is_open(gate)) {
        return step(draft, agent, Fact::Parked { gate, most });
    }
    step(draft, agent, Fact::Entered { step: key.step.clone(), gate });
    let visit = visit(draft, agent, &key);
    let turn = TurnId { agent: agent.id.clone(), visit, turn: 1 };
    match &work.document.step(index).kind {
        Kind::Agent(asks) => {
            let attempt = written(&flow.attempts, &key).map_or(1, |(_, attempt)| attempt);
            let session = shared(work, flow, asks).map_or(Session::Fresh, Session::At);
            let errors = flow.complaints.get(&key).cloned().unwrap_or_default();
            step(draft, agent, Fact::Asks { key: key.clone(), attempt, errors });
            question(draft, agent, Question { turn, key, attempt }, &session);
        }
        Kind::Exec(_) | Kind::If(_) | Kind::ForEach(_) | Kind::While(_) => {
            queue(draft, turn, Lane::Script, SessionPlan::Carry);
        }
    }
}

/// The next visit of a strand is one of this step.
fn visit(draft: &mut Draft<'_>, agent: &Agent, key: &Key) -> u32 {
    let visit = agent.visit.number.saturating_add(1);
    draft.push(Event::VisitEntered {
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
fn gate(draft: &Draft<'_>, agent: &Agent, index: StepIndex) -> Option<(Gate, u32)> {
    let (work, flow) = at_hand(draft)?;
    match &work.document.step(index).kind {
        Kind::Agent(asks) => {
            // A caller has its own conversations.
            (draft.run.settings.program.answers() == Some(Answers::Backend)).then_some(())?;
            let label = label(work, asks, asks.session.as_ref()?)?;
            Some((Gate::of_label(&label), 1))
        }
        Kind::Exec(_) => {
            let strand = flow.strands.get(&agent.id)?;
            let most = most_parallel(work, strand)?;
            Some((Gate::of_loop(strand.parent.as_ref()?), most))
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
fn question(draft: &mut Draft<'_>, agent: &Agent, question: Question, session: &Session) {
    let Some((work, flow)) = at_hand(draft) else { return };
    let Question { turn, key, attempt } = question;
    let tries = work.tries(&key);
    if attempt > tries {
        let message = format!("`attempts` says {attempt} for {key}, which has {tries} at most");
        if let Some(known) = flow.results.get(&key) {
            // What its caller was told when that happened.
            let said = known.json().and_then(|known| known.get("message")?.as_str());
            let message = said.map_or(message, str::to_owned);
            let code = Code::AgentOutputSchemaFailed;
            return fail(draft, agent, Stuck { code, key, message }, Some(known.clone()));
        }
        let mut path = "/attempts".to_owned();
        let name = written(&flow.claims, &key).map_or_else(|| key.clone(), |(name, _)| name);
        push_token(&mut path, &name.to_string());
        let beyond = [Problem::new(path, Flaw::OutOfRange, message.as_str())];
        return exhausted(draft, agent, (key, message), &beyond);
    }
    match flow.offer(&key, attempt) {
        Some(Offer::Output(name, output)) => {
            take(draft, agent, Question { turn, key, attempt }, (name, output), &flow.offers);
        }
        Some(Offer::Stale(name)) => {
            step(draft, agent, Fact::Ignores { name });
            ask(draft, turn, &key, session);
        }
        None => ask(draft, turn, &key, session),
    }
}

/// The caller brought the output of an attempt, and perhaps that of the next one: whoever has said all
/// that before says it again.
fn take(
    draft: &mut Draft<'_>,
    agent: &Agent,
    question: Question,
    (name, output): (String, &Output),
    offers: &BTreeMap<String, Output>,
) {
    let Question { turn, key, attempt } = question;
    step(draft, agent, Fact::Takes { name });
    let errors = match fitting(draft, &output.verdict, &output.stored.value) {
        Verdict::Valid => return done(draft, agent, key, output.stored.clone()),
        Verdict::Invalid(errors) => errors,
    };
    let following = attempt.saturating_add(1);
    let request = format!("{key}:{following}");
    let has_next = at_hand(draft).is_some_and(|(work, _)| following <= work.tries(&key));
    match offers.get(&request).filter(|_| has_next) {
        Some(next) => {
            let fact = Fact::Asks { key: key.clone(), attempt: following, errors };
            step(draft, agent, fact);
            let question = Question { turn: turn.following(), key, attempt: following };
            take(draft, agent, question, (request, next), offers);
        }
        None => {
            let next = Question { turn: turn.following(), key, attempt };
            invalid(draft, agent, (next, &Session::Fresh), &errors);
        }
    }
}

/// An output that a run cannot keep is not valid: whoever answers may do so in fewer words.
fn fitting(draft: &Draft<'_>, verdict: &Verdict, output: &Value) -> Verdict {
    match verdict {
        Verdict::Valid if !is_room(draft, output) => {
            Verdict::Invalid(vec![Problem::new("", Flaw::TooLarge, no_room())])
        }
        verdict @ (Verdict::Valid | Verdict::Invalid(_)) => verdict.clone(),
    }
}

/// The conversation that a step is to go on in.
fn shared(work: &Work, flow: &Flow, asks: &document::Agent) -> Option<SessionId> {
    let session = asks.session.as_ref().filter(|session| session.reset != Some(true))?;
    flow.sessions.get(&label(work, asks, session)?).cloned()
}

/// The label of a conversation that steps share.
fn label(work: &Work, asks: &document::Agent, session: &document::Session) -> Option<String> {
    if session.mode != Some(SessionMode::Sticky) {
        return None;
    }
    let name = work.document.name.as_deref().unwrap_or("workflow");
    let assignee = asks.assignee.as_deref().unwrap_or("main");
    Some(session.label.clone().unwrap_or_else(|| format!("wf:{name}:{assignee}")))
}

/// Whoever answers the run is asked: a backend, or the caller.
fn ask(draft: &mut Draft<'_>, turn: TurnId, key: &Key, session: &Session) {
    match draft.run.settings.program.answers() {
        Some(Answers::Caller) => draft.push(Event::Asked {
            ask: turn,
            question: Value::Inline(key.to_string()),
            due: None,
        }),
        Some(Answers::Backend) | None => {
            let lane = Lane::Prompt(draft.run.settings.backend.clone());
            let plan = draft.plan(&turn, &lane, session);
            queue(draft, turn, lane, plan);
        }
    }
}

fn queue(draft: &mut Draft<'_>, turn: TurnId, lane: Lane, plan: SessionPlan) {
    let order = draft.order();
    let prompt = Prompt::Body;
    draft.push(Event::TurnQueued { turn, lane, prompt, plan, order, notice: None });
}

/// A turn ended with what its step leaves, or with an output that is not what was asked for.
pub(crate) fn finished(
    draft: &mut Draft<'_>,
    agent: &Agent,
    session: &Session,
    outcome: &Finished,
) {
    let Some(key) = key_of(agent) else { return };
    let verdict = outcome.verdict.as_ref();
    match verdict.map(|verdict| fitting(draft, verdict, &outcome.text)) {
        None | Some(Verdict::Valid) => {
            keep(draft, agent, &key, session);
            let (value, read) = (outcome.text.clone(), outcome.read.clone());
            done(draft, agent, key, Stored { value, ok: true, read });
        }
        Some(Verdict::Invalid(errors)) => {
            let attempts = draft.run.flow.as_ref().and_then(|flow| flow.attempts.get(&key));
            let attempt = attempts.copied().unwrap_or(1);
            let (visit, turn) = (agent.visit.number, agent.visit.turn.saturating_add(1));
            let turn = TurnId { agent: agent.id.clone(), visit, turn };
            invalid(draft, agent, (Question { turn, key, attempt }, session), &errors);
        }
    }
}

/// A step has left something, unless a run would keep more than it may.
fn done(draft: &mut Draft<'_>, agent: &Agent, key: Key, stored: Stored) {
    if !is_room(draft, &stored.value) {
        let stuck = Stuck { code: Code::TooLarge, key, message: no_room() };
        return fail(draft, agent, stuck, None);
    }
    step(draft, agent, Fact::Done { key, stored });
}

fn is_room(draft: &Draft<'_>, value: &Value) -> bool {
    let kept = draft.run.flow.as_ref().map_or(0, |flow| flow.kept);
    kept.saturating_add(value.len()) <= MOST_KEPT
}

fn no_room() -> String {
    format!("the results of a run would have more than {} MiB", MOST_KEPT >> 20)
}

/// A caller brings what it knows: what it was asked for is settled at once, in the order of keys.
pub(crate) fn called(mut draft: Draft<'_>, call: &Call) -> Vec<Event> {
    step_of(&mut draft, &AgentId::main(), Fact::Called(Box::new(call.clone())));
    let Some((_, flow)) = at_hand(&draft) else { return draft.events };
    let mut told = flow.clone();
    told.apply(&AgentId::main(), &Fact::Called(Box::new(call.clone())));
    let asks = draft.run.desk.asks.keys().filter_map(|ask| {
        let agent = draft.run.agents.get(&ask.agent)?;
        Some((key_of(agent)?, ask.clone(), agent))
    });
    let mut asks: Vec<(Key, TurnId, &Agent)> = asks.collect();
    asks.sort_by(|one, other| one.0.cmp(&other.0));
    for (key, ask, agent) in asks {
        let attempt = told.attempts.get(&key).copied().unwrap_or(1);
        let fact = match told.offer(&key, attempt) {
            None => continue,
            Some(Offer::Stale(name)) => {
                let fact = Fact::Ignores { name };
                step(&mut draft, agent, fact.clone());
                fact
            }
            Some(Offer::Output(name, output)) => {
                draft.push(Event::AskAnswered {
                    ask: ask.clone(),
                    value: output.stored.value.clone(),
                    by: "caller".to_owned(),
                    key: format!("{key}:{attempt}"),
                });
                let question = Question { turn: ask, key, attempt };
                take(&mut draft, agent, question, (name.clone(), output), &told.offers);
                // Those of later attempts are for this step alone.
                Fact::Takes { name }
            }
        };
        told.apply(&agent.id, &fact);
    }
    draft.events
}

fn most_parallel(work: &Work, strand: &Strand) -> Option<u32> {
    match order(work, strand)? {
        Order::Parallel { max_parallel, .. } => Some(max_parallel),
        Order::Sequential => None,
    }
}

/// A failed strand does its step again, with fresh attempts.
pub(crate) fn revive(draft: &mut Draft<'_>, agent: &Agent) {
    draft.push(Event::AgentRevived { agent: agent.id.clone() });
    step(draft, agent, Fact::Revived);
}

/// Whether a failure may be none the next time: what a document comes to by itself will be the same.
pub(crate) fn is_revived(failure: &Failure) -> bool {
    if let Failure::Step { code, .. } = failure { code == Code::ExecFailed.as_str() } else { true }
}

/// Later steps may go on in the conversation.
fn keep(draft: &mut Draft<'_>, agent: &Agent, key: &Key, session: &Session) {
    let Some((work, _)) = at_hand(draft) else { return };
    let asks = work.agent(key);
    let label = asks.and_then(|asks| label(work, asks, asks.session.as_ref()?));
    if let (Some(label), Session::At(session)) = (label, session) {
        step(draft, agent, Fact::Keeps { label, session: session.clone() });
    }
}

/// The next attempt is told what was wrong, while there is one.
fn invalid(
    draft: &mut Draft<'_>,
    agent: &Agent,
    (next, session): (Question, &Session),
    errors: &[Problem],
) {
    let Some((work, _)) = at_hand(draft) else { return };
    let Question { turn, key, attempt } = next;
    let tries = work.tries(&key);
    if attempt >= tries {
        let first = errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        let message = format!("no output of {tries} was valid{first}");
        return exhausted(draft, agent, (key, message), errors);
    }
    let attempt = attempt.saturating_add(1);
    step(draft, agent, Fact::Asks { key: key.clone(), attempt, errors: errors.to_vec() });
    ask(draft, turn, &key, session);
}

/// No attempt is left.
fn exhausted(
    draft: &mut Draft<'_>,
    agent: &Agent,
    (key, message): (Key, String),
    errors: &[Problem],
) {
    let code = Code::AgentOutputSchemaFailed;
    let told: Vec<Json> = errors.iter().map(Problem::to_json).collect();
    let left = json!({ "ok": false, "error": code.as_str(), "message": message, "errors": told });
    fail(draft, agent, Stuck { code, key, message }, Some(Stored::inline(left, false)));
}

/// A program failed: it is tried again while it may be.
pub(crate) fn failed(draft: &mut Draft<'_>, agent: &Agent, turn: &Turn, failure: &TurnFailure) {
    let Some(key) = key_of(agent) else { return };
    let Some((work, _)) = at_hand(draft) else { return };
    let (stored, is_useless) = if let TurnFailure::Step { result, again, .. } = failure {
        (Some(result.clone()), !again)
    } else {
        (None, false)
    };
    let retry = agent.visit.retries.saturating_add(1);
    if is_useless || retry >= work.tries(&key) {
        let stuck = Stuck { code: Code::ExecFailed, key, message: failure.to_string() };
        return fail(draft, agent, stuck, stored);
    }
    let (turn, until) = (turn.id.clone(), draft.at);
    let of = Some(work.tries(&key).saturating_sub(1));
    draft.push(Event::RetryAt { turn: turn.clone(), until, retry, of });
    draft.requeue(&turn, Notice::Retried);
}

/// What fails before it is begun is where its strand is, all the same.
fn fail_early(draft: &mut Draft<'_>, agent: &Agent, stuck: Stuck) {
    visit(draft, agent, &stuck.key);
    fail(draft, agent, stuck, None);
}

/// A strand cannot go on: its iteration is over, or it fails.
fn fail(draft: &mut Draft<'_>, agent: &Agent, stuck: Stuck, left: Option<Stored>) {
    let Stuck { code, key, message } = stuck;
    let reach = reach(draft, agent);
    let is_loop = draft.definition.work.as_deref().is_some_and(|work| work.is_loop(&key));
    let left = left.filter(|left| is_room(draft, &left.value));
    let stored = left.or_else(|| {
        // A loop stores nothing, unless somebody collects.
        let told = json!({ "ok": false, "error": code.as_str(), "message": message });
        (!is_loop || reach != Reach::Run).then(|| Stored::inline(told, false))
    });
    match (reach, stored) {
        (Reach::Iteration, Some(stored)) => {
            step(draft, agent, Fact::Done { key, stored });
            end(draft, agent);
        }
        (Reach::Around, stored) => {
            step(draft, agent, Fact::Fails { key, stored, contained: true });
            leave(draft, agent);
        }
        (Reach::Run | Reach::Iteration, stored) => {
            step(draft, agent, Fact::Fails { key, stored, contained: false });
            let failure = Failure::Step { code: code.as_str().to_owned(), message };
            draft.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
        }
    }
}

/// Something else than its step fails a strand: a client that cannot answer, an owner that died too
/// often.
pub(crate) fn break_off(draft: &mut Draft<'_>, agent: &Agent, failure: Failure) {
    let Some(key) = key_of(agent) else { return };
    if reach(draft, agent) != Reach::Run {
        let stuck = Stuck { code: Code::AgentFailed, key, message: failure.to_string() };
        return fail(draft, agent, stuck, None);
    }
    step(draft, agent, Fact::Fails { key, stored: None, contained: false });
    draft.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
}

/// The iterations of a strand have failed, a loop around it collects, and nothing runs any more: the
/// strand fails as the first of them did.
fn collapse(draft: &mut Draft<'_>, agent: &Agent) {
    let Some((_, flow)) = at_hand(draft) else { return };
    let parent = Some(&agent.id);
    let inner = flow.strands.iter().filter(|(_, strand)| strand.parent.as_ref() == parent);
    let mut inner: Vec<(&AgentId, &Strand)> = inner.collect();
    inner.sort_by_key(|(_, strand)| strand.number);
    let first = inner.iter().find_map(|(_, strand)| strand.failed_at().cloned());
    for (id, _) in inner {
        step_of(draft, id, Fact::Ended);
        if let Some(inner) = draft.run.agents.get(id) {
            leave(draft, inner);
        }
    }
    let Some(key) = first else { return };
    match reach(draft, agent) {
        Reach::Iteration => {
            step(draft, agent, Fact::Met { key });
            end(draft, agent);
        }
        Reach::Around | Reach::Run => {
            step(draft, agent, Fact::Fails { key, stored: None, contained: true });
            leave(draft, agent);
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

fn reach(draft: &Draft<'_>, agent: &Agent) -> Reach {
    let Some((work, flow)) = at_hand(draft) else { return Reach::Run };
    let mut reach = Reach::Iteration;
    let mut strand = flow.strands.get(&agent.id);
    while let Some(this) = strand {
        if on_error(work, this) == Some(OnError::Collect) {
            return reach;
        }
        reach = Reach::Around;
        strand = this.parent.as_ref().and_then(|parent| flow.strands.get(parent));
    }
    Reach::Run
}

/// What a failure means for the loop whose iteration a strand is.
fn on_error(work: &Work, strand: &Strand) -> Option<OnError> {
    match order(work, strand)? {
        Order::Parallel { on_error, .. } => Some(on_error),
        Order::Sequential => None,
    }
}

/// How the loop goes through its list whose iteration a strand is.
fn order(work: &Work, strand: &Strand) -> Option<Order> {
    let born = work.document.find(strand.born.last()?.of.as_str())?;
    match &work.document.step(born).kind {
        Kind::ForEach(each) => Some(each.order),
        Kind::Exec(_) | Kind::Agent(_) | Kind::If(_) | Kind::While(_) => None,
    }
}
