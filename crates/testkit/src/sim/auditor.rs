//! Watches every record and every effect, and knows what must never happen.
//!
//! It keeps books of its own, from events alone, and compares them with what the run says of
//! itself. It shares no code with the fold that it checks.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::budget::{Charge, Micros};
use raymond_core::ids::{AgentId, SessionId, TurnId};
use raymond_core::machine::{Frame, Session, SessionPlan};
use raymond_core::run::event::StackChange;
use raymond_core::run::{Effect, Event, Record, Run, Settings};
use raymond_core::view::{Owner, status, way_out};

/// Something that must never happen, happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);

macro_rules! must {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(Violation(format!($($message)*)));
        }
    };
}

/// Books on one run.
#[derive(Debug, Clone, Default)]
pub struct Auditor {
    settings: Settings,
    seq: u64,
    names: BTreeSet<AgentId>,
    live: BTreeMap<AgentId, Books>,
    failed: BTreeSet<AgentId>,
    /// Turns with an outcome that ended them.
    settled: BTreeSet<TurnId>,
    /// The last attempt at each turn.
    attempts: BTreeMap<TurnId, u32>,
    /// Turns whose session is gone, so that the next attempt opens one.
    lost: BTreeSet<TurnId>,
    /// Turns in flight, with their shares.
    flight: BTreeMap<TurnId, (u32, Option<Micros>)>,
    spent: Micros,
    /// Books on failed agents.
    parked: BTreeMap<AgentId, Books>,
    stopped: bool,
}

/// Books on one agent.
#[derive(Debug, Clone, Default)]
struct Books {
    stack: Vec<Frame>,
    session: Session,
    cwd: String,
    visit: u32,
    reminders: u32,
    forks: u32,
    /// Whether a settled turn, or a kept transition, pays for the next move.
    may_move: bool,
}

impl Auditor {
    /// Checks a durable record against the books, and the run against both.
    pub fn record(&mut self, run: &Run, record: &Record) -> Result<(), Violation> {
        must!(record.seq == self.seq + 1, "record {} follows {}", record.seq, self.seq);
        self.seq = record.seq;
        for step in &record.steps {
            for event in &step.events {
                self.event(event)?;
            }
        }
        self.compare(run)
    }

    /// Checks an effect: what it starts must be in flight, and not settled.
    pub fn effect(&self, effect: &Effect) -> Result<(), Violation> {
        let (turn, attempt) = match effect {
            Effect::Prompt(prompt) => (&prompt.turn, prompt.attempt),
            Effect::Script(script) => (&script.turn, script.attempt),
            Effect::Cancel { .. } | Effect::Finish => return Ok(()),
        };
        must!(!self.settled.contains(turn), "settled turn {turn} is run again");
        let known = self.flight.get(turn).is_some_and(|(current, _)| *current == attempt);
        must!(known, "attempt {attempt} of {turn} is run, and no durable record starts it");
        Ok(())
    }

    fn compare(&self, run: &Run) -> Result<(), Violation> {
        let reserved = self.flight.values().filter_map(|(_, share)| *share);
        let reserved = reserved.fold(Micros::ZERO, Micros::plus);
        must!(run.spent == self.spent, "spent {} instead of {}", run.spent, self.spent);
        must!(
            run.desk.reserved == reserved,
            "reserved {} instead of {reserved}",
            run.desk.reserved
        );
        must!(
            run.live as usize == self.live.len(),
            "{} live agents instead of {}",
            run.live,
            self.live.len()
        );
        must!(run.failed == self.failed, "failed agents differ: {:?}", run.failed);
        must!(
            run.desk.in_flight.len() == self.flight.len(),
            "{} turns in flight instead of {}",
            run.desk.in_flight.len(),
            self.flight.len()
        );
        must!(
            self.flight.len() <= self.settings.max_parallel as usize,
            "{} turns at a time",
            self.flight.len()
        );
        for (id, books) in &self.live {
            let agent = run.agents.get(id).ok_or_else(|| Violation(format!("{id} is gone")))?;
            must!(agent.stack == books.stack, "the stack of {id} differs: {:?}", agent.stack);
            must!(agent.session == books.session, "the session of {id} differs");
            must!(agent.cwd == books.cwd, "{id} works in {} instead of {}", agent.cwd, books.cwd);
            must!(agent.forks == books.forks, "{id} has forked {} times", agent.forks);
        }
        for owner in [Owner::Alive, Owner::Gone] {
            // Exhaustive by its type: a status without a way out does not compile.
            let _command = way_out(status(run, owner));
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), Violation> {
        match event {
            Event::RunStarted(start) => self.settings = start.settings.clone(),
            Event::RunResumed { settings } => {
                self.settings = (**settings).clone();
                self.stopped = false;
            }
            Event::StopRequested { .. } => self.stopped = true,
            Event::RunEnded { .. } => {
                must!(self.flight.is_empty(), "the run ended with turns in flight");
            }
            Event::TurnStarted { turn, attempt, share, plan } => {
                self.started(turn, *attempt, *share, plan)?;
            }
            Event::TurnSettled { turn, attempt, charge, session, .. } => {
                self.landed(turn, *attempt, *charge)?;
                must!(self.settled.insert(turn.clone()), "{turn} is settled twice");
                let books = self.books(&turn.agent)?;
                books.session = session.clone();
                books.may_move = true;
            }
            Event::TurnContinues { turn, attempt, charge }
            | Event::TurnFailed { turn, attempt, charge, .. }
            | Event::TurnInterrupted { turn, attempt, charge, .. } => {
                self.landed(turn, *attempt, *charge)?;
            }
            Event::SessionLost { turn, .. } => {
                self.lost.insert(turn.clone());
            }
            Event::CostAdjusted { spent, .. } => {
                must!(*spent >= self.spent, "spent went down");
                self.spent = *spent;
            }
            other => self.machine_event(other)?,
        }
        Ok(())
    }

    fn machine_event(&mut self, event: &Event) -> Result<(), Violation> {
        match event {
            Event::AgentSpawned { agent, cwd, .. } => {
                must!(self.names.insert(agent.clone()), "the name {agent} is used twice");
                let books = Books { cwd: cwd.clone(), may_move: true, ..Books::default() };
                self.live.insert(agent.clone(), books);
                let workers =
                    self.live.len() - usize::from(self.live.contains_key(&AgentId::main()));
                must!(
                    workers <= self.settings.max_agents as usize || *agent == AgentId::main(),
                    "{workers} live workers"
                );
            }
            Event::VisitEntered { agent, visit, .. } => {
                let books = self.books(agent)?;
                must!(*visit == books.visit + 1, "{agent} enters visit {visit}");
                must!(books.may_move, "{agent} moves without a settled turn");
                (books.visit, books.reminders, books.may_move) = (*visit, 0, false);
            }
            Event::Reminded { agent, .. } => {
                let limit = self.settings.reminders;
                let books = self.books(agent)?;
                books.reminders += 1;
                books.may_move = false;
                must!(books.reminders <= limit, "{agent} is reminded {} times", books.reminders);
            }
            Event::Moved { agent, stack, session, cwd, forks, .. } => {
                let books = self.books(agent)?;
                must!(*forks >= books.forks, "the fork counter of {agent} went down");
                books.forks = *forks;
                books.session = session.clone();
                if let Some(cwd) = cwd {
                    books.cwd.clone_from(cwd);
                }
                restack(agent, books, stack)?;
            }
            Event::AgentEnded { agent, .. } => {
                let books = self.books(agent)?;
                must!(books.stack.is_empty(), "{agent} ended with returns pending");
                must!(books.may_move, "{agent} ended without a settled turn");
                self.live.remove(agent);
            }
            Event::AgentFailed { agent, .. } => {
                let books = self.live.remove(agent);
                let books = books.ok_or_else(|| Violation(format!("{agent} fails, not live")))?;
                self.failed.insert(agent.clone());
                self.parked.insert(agent.clone(), books);
            }
            Event::AgentRevived { agent } => {
                must!(self.failed.remove(agent), "{agent} is revived and had not failed");
                let mut books = self.parked.remove(agent).unwrap_or_default();
                books.reminders = 0;
                books.may_move = true;
                self.live.insert(agent.clone(), books);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Auditor {
    fn books(&mut self, agent: &AgentId) -> Result<&mut Books, Violation> {
        self.live.get_mut(agent).ok_or_else(|| Violation(format!("{agent} is not live")))
    }

    fn started(
        &mut self,
        turn: &TurnId,
        attempt: u32,
        share: Option<Micros>,
        plan: &SessionPlan,
    ) -> Result<(), Violation> {
        must!(!self.stopped, "{turn} starts although the run was asked to end");
        must!(!self.settled.contains(turn), "settled turn {turn} starts again");
        must!(!self.flight.keys().any(|other| other.agent == turn.agent), "two turns of {turn}");
        let last = self.attempts.insert(turn.clone(), attempt).unwrap_or(0);
        must!(attempt == last + 1, "attempt {attempt} of {turn} follows {last}");
        let opens = matches!(plan, SessionPlan::Fresh(_) | SessionPlan::Branch { .. });
        let may_open = attempt == 1 || self.lost.remove(turn);
        must!(may_open || !opens, "attempt {attempt} of {turn} does not go on in its session");
        if let (Some(cap), Some(share)) = (self.settings.budget, share) {
            let reserved = self.flight.values().filter_map(|(_, share)| *share);
            let taken = reserved.fold(self.spent, Micros::plus);
            must!(taken.plus(share) <= cap, "{turn} gets {share} with {taken} of {cap} taken");
            must!(share > Micros::ZERO, "{turn} gets nothing");
        }
        let capless = share.is_none() && *plan != SessionPlan::Carry;
        must!(!(capless && self.settings.budget.is_some()), "{turn} is paid and has no share");
        let books = self.books(&turn.agent)?;
        must!(turn.visit == books.visit, "{turn} does not belong to visit {}", books.visit);
        if let Some(written) = plan.session() {
            not_a_callers(turn, written, &books.stack)?;
        }
        self.flight.insert(turn.clone(), (attempt, share));
        Ok(())
    }

    fn landed(&mut self, turn: &TurnId, attempt: u32, charge: Charge) -> Result<(), Violation> {
        let flown = self.flight.remove(turn);
        must!(
            flown.is_some_and(|(current, _)| current == attempt),
            "an outcome of attempt {attempt} of {turn}, which is not in flight, was taken"
        );
        self.spent = self.spent.plus(charge.amount);
        Ok(())
    }
}

/// A callee never writes into a session that one of its callers goes back to.
fn not_a_callers(turn: &TurnId, written: &SessionId, stack: &[Frame]) -> Result<(), Violation> {
    let theirs = |frame: &Frame| match &frame.session {
        Session::At(id) => id == written,
        Session::Fresh | Session::BranchOf(_) => false,
    };
    must!(!stack.iter().any(theirs), "{turn} writes into the session of its caller");
    Ok(())
}

fn restack(agent: &AgentId, books: &mut Books, change: &StackChange) -> Result<(), Violation> {
    match change {
        StackChange::Keep => {}
        StackChange::Push(frame) => books.stack.push(frame.clone()),
        StackChange::Pop => must!(books.stack.pop().is_some(), "{agent} pops an empty stack"),
        StackChange::Clear => books.stack.clear(),
    }
    Ok(())
}
