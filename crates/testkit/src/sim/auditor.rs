//! Watches every record and every effect, and knows what must never happen.
//!
//! It keeps books of its own, from events alone, and compares them with what the run says of
//! itself. It shares no code with the fold that it checks.

/// Unless the condition holds, something happened that must never happen.
macro_rules! must {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(Violation(format!($($message)*)));
        }
    };
}

mod agents;
mod money;
mod steps;
mod waits;

use crate::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};

use raymond_core::agent::{Frame, Session, SessionPlan};
use raymond_core::budget::{Charge, Micros};
use raymond_core::ids::{AgentId, SessionId, TurnId};
use raymond_core::run::effect::PromptEffect;
use raymond_core::run::{Effect, Event, Input, Record, Run, Settings};
use raymond_core::time::Span;
use raymond_core::view::{Owner, States, next_command, status};
use raymond_core::workflow::Definition;

use super::clients::Attempt;
use agents::Books;
use money::{Landed, Money, Told};
use waits::{Moment, Waits};

/// An attempt in flight.
#[derive(Debug, Clone, Copy)]
struct Flight {
    attempt: u32,
    share: Option<Micros>,
    /// Whether it asks a model.
    paid: bool,
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
    /// Turns in flight.
    flight: BTreeMap<TurnId, Flight>,
    /// Turns in flight whose clients are being ended, because their shares do not fit the cap.
    recalled: BTreeSet<TurnId>,
    /// Attempts that were charged.
    charged: BTreeSet<Attempt>,
    money: Money,
    waits: Waits,
    /// Books on failed agents.
    parked: BTreeMap<AgentId, Books>,
    stopped: bool,
    steps: steps::Books,
}

impl Auditor {
    /// Checks a durable record against the books, and the run against both. `uptime` is that of the machine.
    pub fn record(
        &mut self,
        run: &Run,
        record: &Record,
        uptime: Span,
        truth: &BTreeMap<Attempt, Micros>,
    ) -> Result<(), Violation> {
        must!(record.seq == self.seq + 1, "record {} follows {}", record.seq, self.seq);
        self.seq = record.seq;
        let moment = Moment { at: record.at, uptime };
        for step in &record.steps {
            self.waits.resumed(moment, &step.cause);
            let before = self.money.spent;
            let told = Told::of(&step.cause);
            for event in &step.events {
                self.event(told, truth, event)?;
                self.waits.event(moment, &step.cause, event)?;
            }
            self.money.thresholds(step, before, self.settings.budget)?;
            if matches!(step.cause, Input::Resume(_)) {
                self.within_cap()?;
            }
        }
        self.money.covers_all()?;
        self.compare(run)
    }

    /// Checks an effect: what it starts must be in flight, and not settled.
    pub fn effect(&self, definition: &Definition, effect: &Effect) -> Result<(), Violation> {
        let (turn, attempt) = match effect {
            Effect::Prompt(prompt) => (&prompt.turn, prompt.attempt),
            Effect::Script(script) => (&script.turn, script.attempt),
            Effect::Step(step) => (&step.turn, step.attempt),
            Effect::Cancel { .. } | Effect::Finish => return Ok(()),
        };
        must!(!self.settled.contains(turn), "settled turn {turn} is run again");
        let known = self.flight.get(turn).filter(|flight| flight.attempt == attempt);
        let Some(Flight { share, .. }) = known else {
            let what =
                format!("attempt {attempt} of {turn} is run, and no durable record starts it");
            return Err(Violation(what));
        };
        match effect {
            Effect::Prompt(prompt) => {
                must!(prompt.cap == *share, "{turn} may spend {:?}, not {share:?}", prompt.cap);
                self.within_label(definition, prompt)?;
                self.within_visit(definition, prompt)
            }
            Effect::Step(step) => self.not_done(&step.key),
            Effect::Script(_) | Effect::Cancel { .. } | Effect::Finish => Ok(()),
        }
    }

    /// All turns of a visit, reminders and retries included, live on its budget.
    fn within_visit(
        &self,
        definition: &Definition,
        prompt: &PromptEffect,
    ) -> Result<(), Violation> {
        let budget = definition.states.get(&prompt.state).and_then(|state| state.front.budget);
        let (turn, Some(budget)) = (&prompt.turn, budget) else { return Ok(()) };
        let spent = self.live.get(&turn.agent).map_or(Micros::ZERO, |books| books.spent);
        let left = budget.minus(spent);
        let within = prompt.cap.is_some_and(|cap| cap <= left && cap > Micros::ZERO);
        must!(within, "{turn} may spend {:?}, and its visit has {left} left", prompt.cap);
        Ok(())
    }

    fn reserved(&self) -> Micros {
        let shares = self.flight.values().filter_map(|flight| flight.share);
        shares.fold(Micros::ZERO, Micros::plus)
    }

    fn compare(&self, run: &Run) -> Result<(), Violation> {
        let (spent, reserved) = (self.money.spent, self.reserved());
        must!(run.spent == spent, "spent {} instead of {spent}", run.spent);
        must!(
            run.scheduler.reserved == reserved,
            "reserved {} instead of {reserved}",
            run.scheduler.reserved
        );
        must!(
            run.live as usize == self.live.len(),
            "{} live agents instead of {}",
            run.live,
            self.live.len()
        );
        must!(run.failed == self.failed, "failed agents differ: {:?}", run.failed);
        must!(
            run.scheduler.in_flight.len() == self.flight.len(),
            "{} turns in flight instead of {}",
            run.scheduler.in_flight.len(),
            self.flight.len()
        );
        must!(
            self.flight.len() <= self.settings.max_parallel as usize,
            "{} turns at a time",
            self.flight.len()
        );
        for (id, books) in &self.live {
            let agent = run.agents.get(id).ok_or_else(|| Violation(format!("{id} is gone")))?;
            books.compare(agent)?;
        }
        for owner in [Owner::Alive, Owner::Gone] {
            // Exhaustive by its type: a status without a way out does not compile.
            let _command = next_command(run, status(run, owner), States::AsPinned);
        }
        Ok(())
    }

    fn event(
        &mut self,
        told: Option<Told<'_>>,
        truth: &BTreeMap<Attempt, Micros>,
        event: &Event,
    ) -> Result<(), Violation> {
        match event {
            Event::RunStarted(start) => self.settings = start.settings.clone(),
            Event::RunResumed { settings } => {
                self.settings = (**settings).clone();
                self.stopped = false;
                let paid = self.flight.values().filter(|flight| flight.paid);
                self.money.resumed(self.settings.budget, paid.map(|flight| flight.share));
            }
            Event::StopRequested { .. } => self.stopped = true,
            Event::RunEnded { .. } => {
                must!(self.flight.is_empty(), "the run ended with turns in flight");
                let free = truth.keys().find(|attempt| !self.charged.contains(*attempt));
                must!(free.is_none(), "the client of {free:?} was never charged");
            }
            Event::TurnStarted { turn, attempt, share, plan } => {
                self.started((turn, *attempt), *share, plan)?;
            }
            Event::TurnSettled { turn, attempt, charge, session, .. } => {
                self.landed((turn, *attempt), told, truth, *charge)?;
                must!(self.settled.insert(turn.clone()), "{turn} is settled twice");
                let books = self.books(&turn.agent)?;
                books.session = session.clone();
                books.may_move = true;
            }
            Event::TurnContinues { turn, attempt, charge, stalls, .. } => {
                self.landed((turn, *attempt), told, truth, *charge)?;
                must!(*stalls <= 5, "{turn} was capped without output {stalls} times");
            }
            Event::TurnFailed { turn, attempt, charge, .. }
            | Event::TurnInterrupted { turn, attempt, charge, .. } => {
                self.landed((turn, *attempt), told, truth, *charge)?;
            }
            Event::TurnRecalled { turn, attempt } => self.recalled(turn, *attempt)?,
            Event::SessionLost { turn, .. } => {
                self.lost.insert(turn.clone());
            }
            Event::CostAdjusted { spent, .. } => {
                must!(*spent >= self.money.spent, "spent went down");
                self.money.spent = *spent;
            }
            other => self.machine_event(other)?,
        }
        Ok(())
    }

    /// After a resume the shares of all clients that continue fit the cap, whatever it was before.
    fn within_cap(&self) -> Result<(), Violation> {
        let Some(cap) = self.settings.budget else { return Ok(()) };
        let continuing = self.flight.iter().filter(|(turn, _)| !self.recalled.contains(*turn));
        let mut taken = self.money.spent;
        for (turn, flight) in continuing.filter(|(_, flight)| flight.paid) {
            let Some(share) = flight.share else {
                return Err(Violation(format!("{turn} continues without a share under a cap")));
            };
            taken = taken.plus(share);
            must!(taken <= cap, "{turn} continues with {share}: {taken} of {cap} are taken");
        }
        Ok(())
    }

    fn recalled(&mut self, turn: &TurnId, attempt: u32) -> Result<(), Violation> {
        let is_known = self.flight.get(turn).is_some_and(|flight| flight.attempt == attempt);
        must!(is_known, "attempt {attempt} of {turn} is recalled, and is not in flight");
        self.recalled.insert(turn.clone());
        Ok(())
    }

    fn books(&mut self, agent: &AgentId) -> Result<&mut Books, Violation> {
        self.live.get_mut(agent).ok_or_else(|| Violation(format!("{agent} is not live")))
    }

    fn started(
        &mut self,
        (turn, attempt): (&TurnId, u32),
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
        if let Some(cap) = self.settings.budget.filter(|_| *plan != SessionPlan::Carry) {
            self.money.reserve(turn, (cap, share), self.reserved())?;
        }
        let books = self.books(&turn.agent)?;
        must!(turn.visit == books.visit, "{turn} does not belong to visit {}", books.visit);
        if let Some(written) = plan.session() {
            not_a_callers(turn, written, &books.stack)?;
        }
        let paid = *plan != SessionPlan::Carry;
        self.flight.insert(turn.clone(), Flight { attempt, share, paid });
        Ok(())
    }

    fn landed(
        &mut self,
        (turn, attempt): (&TurnId, u32),
        told: Option<Told<'_>>,
        truth: &BTreeMap<Attempt, Micros>,
        charge: Charge,
    ) -> Result<(), Violation> {
        self.recalled.remove(turn);
        let flown = self.flight.remove(turn).filter(|flight| flight.attempt == attempt);
        let Some(Flight { share, .. }) = flown else {
            return Err(Violation(format!(
                "an outcome of attempt {attempt} of {turn}, which is not in flight, was taken"
            )));
        };
        let truth = truth.get(&(turn.clone(), attempt)).copied().unwrap_or_default();
        let settings = &self.settings;
        self.money.charge(&Landed { turn, attempt, told, share, settings, charge, truth })?;
        self.charged.insert((turn.clone(), attempt));
        let books = self.books(&turn.agent)?;
        books.spent = books.spent.plus(charge.amount);
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
