//! A run of steps at the desk: what its strands want, and what follows when that is settled.
//!
//! A strand is an agent of the run, a step that is done is a visit of it, and its key the name of the
//! state. So everything that holds for turns holds here: the queue, slots and shares, attempts, holds.
//! One thing is decided at a time: whoever asks makes it so, and asks again.

use std::collections::BTreeMap;

use serde_json::json;

use crate::desk::{Lane, Notice, Prompt, Turn};
use crate::failure::{Failure, TurnFailure};
use crate::ids::{AgentId, SessionId, StateName, TurnId};
use crate::machine::{Agent, Session, SessionPlan};
use crate::run::Refusal;
use crate::run::draft::Draft;
use crate::run::event::Event;
use crate::run::input::{Finished, Output, Verdict};
use crate::run::program::Answers;
use crate::value::Value;

use super::code::Code;
use super::document::{self, Kind, OnError, Order, SessionMode, StepIndex};
use super::flow::{Fact, Flow, Stored, Strand};
use super::key::{Iteration, Key};
use super::name::StepId;
use super::problem::Problem;
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
    let agent = flow.next_ready(|strand| on_error(work, strand) == Some(OnError::Collect))?;
    let agent = draft.run.agents.get(agent)?;
    match work.steps().next(flow, &agent.id)? {
        Next::Fact(Fact::Ended) => end(&mut draft, agent),
        Next::Fact(fact) => step(&mut draft, agent, fact),
        Next::Splits { of, count } => split(&mut draft, agent, &of, count),
        Next::Does { step, key } => enter(&mut draft, agent, step, key),
        Next::Fails(stuck) => fail(&mut draft, agent, stuck, None),
    }
    Some(draft.events)
}

fn at_hand<'a>(draft: &Draft<'a>) -> Option<(&'a Work, &'a Flow)> {
    Some((draft.definition.work.as_deref()?, draft.run.flow.as_deref()?))
}

fn step(draft: &mut Draft<'_>, agent: &Agent, fact: Fact) {
    draft.push(Event::Stepped { agent: agent.id.clone(), fact });
}

fn end(draft: &mut Draft<'_>, agent: &Agent) {
    step(draft, agent, Fact::Ended);
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
            attributes: BTreeMap::new(),
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
            Unfilled::Unknown(_) => Code::UnknownName,
            Unfilled::Overflow(_) => Code::TooLarge,
        };
        return fail(draft, agent, Stuck { code, key, message: unrendered.to_string() }, None);
    }
    step(draft, agent, Fact::Entered { step: key.step.clone() });
    let visit = agent.visit.number.saturating_add(1);
    draft.push(Event::VisitEntered {
        agent: agent.id.clone(),
        state: StateName::new(key.to_string()),
        visit,
        count: 1,
        input: None,
    });
    let turn = TurnId { agent: agent.id.clone(), visit, turn: 1 };
    match &work.document.step(index).kind {
        Kind::Agent(asks) => {
            let attempt = flow.attempts.get(&key).copied().unwrap_or(1);
            let session = shared(work, flow, asks).map_or(Session::Fresh, Session::At);
            step(draft, agent, Fact::Asks { key: key.clone(), attempt, errors: Vec::new() });
            ask(draft, turn, &key, &session);
        }
        Kind::Exec(_) | Kind::If(_) | Kind::ForEach(_) | Kind::While(_) => {
            queue(draft, turn, Lane::Script, SessionPlan::Carry);
        }
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
    match &outcome.verdict {
        None | Some(Verdict::Valid) => {
            keep(draft, agent, &key, session);
            let (value, read) = (outcome.text.clone(), outcome.read.clone());
            step(draft, agent, Fact::Done { key, stored: Stored { value, ok: true, read } });
        }
        Some(Verdict::Invalid(errors)) => invalid(draft, agent, (key, session), errors),
    }
}

/// The caller hands in an output.
pub(crate) fn answered(mut draft: Draft<'_>, output: &Output) -> Result<Vec<Event>, Refusal> {
    let unknown = || Refusal::NoSuchQuestion(output.ask.clone());
    let agent = draft.run.agents.get(&output.ask.agent).ok_or_else(unknown)?;
    let (_, flow) = at_hand(&draft).ok_or_else(unknown)?;
    let key = key_of(agent).filter(|_| draft.run.desk.asks.contains_key(&output.ask));
    let key = key.ok_or_else(unknown)?;
    if flow.attempts.get(&key) != Some(&output.attempt) {
        return Err(Refusal::Stale { attempt: output.attempt });
    }
    draft.push(Event::AskAnswered {
        ask: output.ask.clone(),
        value: output.text.clone(),
        by: "caller".to_owned(),
        key: format!("{key}:{}", output.attempt),
    });
    match &output.verdict {
        Verdict::Valid => {
            let (value, read) = (output.text.clone(), output.read.clone());
            step(&mut draft, agent, Fact::Done { key, stored: Stored { value, ok: true, read } });
        }
        Verdict::Invalid(errors) => invalid(&mut draft, agent, (key, &Session::Fresh), errors),
    }
    Ok(draft.events)
}

/// Whether another program of the loop whose iteration an agent is may run.
pub(crate) fn has_room(draft: &Draft<'_>, agent: &AgentId) -> bool {
    let Some((work, flow)) = at_hand(draft) else { return true };
    let Some(strand) = flow.strands.get(agent) else { return true };
    let Some(most) = most_parallel(work, strand) else { return true };
    let is_beside = |other: &&AgentId| {
        flow.strands.get(*other).is_some_and(|other| other.parent == strand.parent)
    };
    let desk = &draft.run.desk;
    let programs = desk.in_flight.iter().filter(is_beside).filter_map(|id| desk.turns.get(id));
    programs.filter(|turn| turn.lane == Lane::Script).count() < most as usize
}

fn most_parallel(work: &Work, strand: &Strand) -> Option<u32> {
    match order(work, strand)? {
        Order::Parallel { max_parallel, .. } => Some(max_parallel),
        Order::Sequential => None,
    }
}

/// A failed strand does its step again: a program gets fresh attempts, and nothing else would end
/// otherwise than it did.
pub(crate) fn revive(draft: &mut Draft<'_>, agent: &Agent) {
    draft.push(Event::AgentRevived { agent: agent.id.clone() });
    step(draft, agent, Fact::Revived);
    let turn = agent.visit.turn.saturating_add(1);
    let turn = TurnId { agent: agent.id.clone(), visit: agent.visit.number, turn };
    queue(draft, turn, Lane::Script, SessionPlan::Carry);
}

/// Whether a failure may be none the next time.
pub(crate) fn is_revived(failure: &Failure) -> bool {
    matches!(failure, Failure::Step { code, .. } if code == Code::ExecFailed.as_str())
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
    (key, session): (Key, &Session),
    errors: &[Problem],
) {
    let Some((work, flow)) = at_hand(draft) else { return };
    let (attempt, tries) = (flow.attempts.get(&key).copied().unwrap_or(1), work.tries(&key));
    if attempt >= tries {
        let first = errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        let message = format!("no output of {tries} was valid{first}");
        let stuck = Stuck { code: Code::AgentOutputSchemaFailed, key, message };
        return fail(draft, agent, stuck, None);
    }
    let attempt = attempt.saturating_add(1);
    step(draft, agent, Fact::Asks { key: key.clone(), attempt, errors: errors.to_vec() });
    let visit = agent.visit.number;
    let turn = TurnId { agent: agent.id.clone(), visit, turn: agent.visit.turn.saturating_add(1) };
    ask(draft, turn, &key, session);
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
    let until = draft.at;
    draft.push(Event::RetryAt { turn: turn.id.clone(), until, retry });
    draft.requeue(&turn.id, Notice::Retried);
}

/// A strand cannot go on: its iteration is over, or it fails.
pub(crate) fn fail(draft: &mut Draft<'_>, agent: &Agent, stuck: Stuck, left: Option<Stored>) {
    let Stuck { code, key, message } = stuck;
    let stored = left.unwrap_or_else(|| {
        Stored::inline(json!({ "ok": false, "error": code.as_str(), "message": message }), false)
    });
    let strand = draft.run.flow.as_ref().and_then(|flow| flow.strands.get(&agent.id));
    let work = draft.definition.work.as_deref();
    let collects = work.zip(strand).and_then(|(work, strand)| on_error(work, strand));
    if collects == Some(OnError::Collect) {
        step(draft, agent, Fact::Done { key, stored });
        return end(draft, agent);
    }
    step(draft, agent, Fact::Fails { key, stored: Some(stored) });
    let failure = Failure::Step { code: code.as_str().to_owned(), message };
    draft.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
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
