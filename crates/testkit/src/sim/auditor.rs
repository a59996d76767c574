//! Checks every record and every effect against rules that must always hold.
//!
//! The auditor builds its own state from events alone, and compares it with the run. It shares no
//! code with the `apply` function that it checks.

/// Returns a violation unless the condition holds.
macro_rules! must {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(Violation(format!($($message)*)));
        }
    };
}

// The macro comes before the modules, because `macro_rules` is visible only below its definition.
mod agents;
mod joins;
mod money;
mod questions;
mod steps;
mod waits;

use crate::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};

use raymond_core::agent::{Frame, Location, Session, SessionPlan};
use raymond_core::budget::{Charge, Micros};
use raymond_core::ids::{AgentId, SessionId, TurnId};
use raymond_core::run::turn_spec::{PromptSpec, TurnHeader, TurnSpec, Work};
use raymond_core::run::{Effect, Event, Input, Record, Run, Settings};
use raymond_core::time::Span;
use raymond_core::view::{OwnerState, States, next_command, status};
use raymond_core::workflow::Definition;

use super::clients::Attempt;
use agents::TrackedAgent;
use joins::Joins;
use money::{EndedAttempt, Money, Report};
use questions::Questions;
use waits::{Moment, Waits};

#[derive(Debug, Clone, Copy)]
struct InFlight {
    attempt: u32,
    share: Option<Micros>,
    /// Whether it uses a model, and so costs money.
    paid: bool,
}

/// The facts that a charge is checked against.
#[derive(Debug, Clone, Copy)]
struct Evidence<'a> {
    report: Option<Report<'a>>,
    /// The true cost of every ended attempt.
    true_costs: &'a BTreeMap<Attempt, Micros>,
}

/// The auditor's state of one run.
#[derive(Debug, Clone, Default)]
pub struct Auditor {
    settings: Settings,
    /// Whether the program is one prompt in a loop.
    is_loop: bool,
    seq: u64,
    names: BTreeSet<AgentId>,
    live: BTreeMap<AgentId, TrackedAgent>,
    failed: BTreeSet<AgentId>,
    /// Turns that have a final outcome.
    settled: BTreeSet<TurnId>,
    /// The number of the last attempt of each turn.
    attempts: BTreeMap<TurnId, u32>,
    /// Turns that lost their session, so that the next attempt may open one.
    lost: BTreeSet<TurnId>,
    in_flight: BTreeMap<TurnId, InFlight>,
    /// Turns in flight whose clients are being ended, because their budget shares exceed a lowered
    /// cap.
    recalled: BTreeSet<TurnId>,
    charged: BTreeSet<Attempt>,
    money: Money,
    waits: Waits,
    joins: Joins,
    questions: Questions,
    /// The state of failed agents, which a resume may revive.
    parked: BTreeMap<AgentId, TrackedAgent>,
    stopped: bool,
    steps: steps::TrackedSteps,
}

impl Auditor {
    /// Checks a durable record against the auditor's state, and the run against both. `uptime` is
    /// the machine's.
    pub fn record(
        &mut self,
        run: &Run,
        record: &Record,
        uptime: Span,
        true_costs: &BTreeMap<Attempt, Micros>,
    ) -> Result<(), Violation> {
        // A record that survives a crash although its writer saw an error is audited when a
        // recovery reads it, so the numbers have no gap even after a fault.
        must!(record.seq == self.seq + 1, "record {} follows {}", record.seq, self.seq);
        self.seq = record.seq;
        let moment = Moment { at: record.at, uptime };
        for step in &record.steps {
            // Before the events: the resume itself may end a wait, and it is judged by the new
            // owner's clock.
            self.waits.resumed(moment, &step.cause);
            let before = self.money.spent;
            let evidence = Evidence { report: Report::of(&step.cause), true_costs };
            for event in &step.events {
                self.event(evidence, event)?;
                self.waits.event(moment, &step.cause, event)?;
                self.joins.event(event)?;
                self.questions.event(record.at, event)?;
            }
            self.money.thresholds(step, before, self.settings.budget)?;
            // After the events, because they recall the clients whose shares do not fit the new
            // cap.
            if matches!(step.cause, Input::Resume(_)) {
                self.within_cap()?;
            }
        }
        self.money.covers_all()?;
        self.compare(run)
    }

    /// Checks an effect: the turn that it starts must be in flight and not settled.
    pub fn effect(&self, definition: &Definition, effect: &Effect) -> Result<(), Violation> {
        check_complete(effect)?;
        let Effect::Start(TurnSpec { header, work }) = effect else { return Ok(()) };
        let (turn, attempt) = (&header.turn, header.attempt);
        // The client of a settled turn was paid, so a second client would be paid twice for one
        // turn.
        must!(!self.settled.contains(turn), "settled turn {turn} is run again");
        // Only durable records reach the auditor's state. So an effect that is released before its
        // record is synced finds no such attempt here.
        let known = self.in_flight.get(turn).filter(|flight| flight.attempt == attempt);
        let Some(InFlight { share, .. }) = known else {
            let what =
                format!("attempt {attempt} of {turn} is run, and no durable record starts it");
            return Err(Violation(what));
        };
        match (work, &header.location) {
            (Work::Prompt(prompt), _) => {
                // The client enforces this cap; the run reserves the share. If they differ, turns
                // in parallel can exceed the cap of the run together.
                must!(prompt.cap == *share, "{turn} may spend {:?}, not {share:?}", prompt.cap);
                self.within_label(definition, header, prompt)?;
                self.within_visit(definition, header, prompt)
            }
            (Work::Exec(_), Location::Step(key)) => self.not_done(key),
            (Work::Exec(_) | Work::Script(_), _) => Ok(()),
        }
    }

    /// Checks that all turns of a visit, with reminders and retries, stay within the visit's
    /// budget.
    fn within_visit(
        &self,
        definition: &Definition,
        header: &TurnHeader,
        prompt: &PromptSpec,
    ) -> Result<(), Violation> {
        let budget =
            header.location.state().and_then(|state| definition.states.get(state)?.front.budget);
        let (turn, Some(budget)) = (&header.turn, budget) else { return Ok(()) };
        let spent = self.live.get(&turn.agent).map_or(Micros::ZERO, |tracked| tracked.spent);
        let left = budget.minus(spent);
        // A cap of zero is a violation too: the client would start, make its first request and only
        // then notice that nothing is left.
        let within = prompt.cap.is_some_and(|cap| cap <= left && cap > Micros::ZERO);
        must!(within, "{turn} may spend {:?}, and its visit has {left} left", prompt.cap);
        Ok(())
    }

    fn reserved(&self) -> Micros {
        let shares = self.in_flight.values().filter_map(|flight| flight.share);
        shares.fold(Micros::ZERO, Micros::plus)
    }

    // `apply` keeps these numbers incrementally, so that no step costs O(agents). The auditor
    // counts them again from its own sets, because a forgotten update would change no other field.
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
        // The sets are compared, not their sizes: reviving the wrong agent keeps the size.
        must!(run.failed == self.failed, "failed agents differ: {:?}", run.failed);
        must!(
            run.scheduler.in_flight.len() == self.in_flight.len(),
            "{} turns in flight instead of {}",
            run.scheduler.in_flight.len(),
            self.in_flight.len()
        );
        must!(
            self.in_flight.len() <= self.settings.max_parallel as usize,
            "{} turns at a time",
            self.in_flight.len()
        );
        // The reverse holds as well: `run.live` has the size of this map.
        for (id, tracked) in &self.live {
            let agent = run.agents.get(id).ok_or_else(|| Violation(format!("{id} is gone")))?;
            tracked.compare(agent)?;
        }
        for owner in [OwnerState::Alive, OwnerState::Gone] {
            // The match in `next_command` is exhaustive, so a status without a next command does
            // not compile.
            let _command = next_command(run, status(run, owner), States::AsPinned);
        }
        Ok(())
    }

    fn event(&mut self, evidence: Evidence<'_>, event: &Event) -> Result<(), Violation> {
        match event {
            Event::RunStarted(start) => {
                self.settings = start.settings.clone();
                // In other programs a failed turn fails its agent; see `ends_an_iteration`.
                self.is_loop = start.program.ralph().is_some();
            }
            Event::RunResumed { settings } => {
                self.settings = (**settings).clone();
                self.stopped = false;
                let paid = self.in_flight.values().filter(|flight| flight.paid);
                self.money.resumed(self.settings.budget, paid.map(|flight| flight.share));
            }
            Event::StopRequested { .. } => self.stopped = true,
            Event::RunEnded { .. } => {
                // A turn in flight at the end has a client that no owner would ever end or charge.
                must!(self.in_flight.is_empty(), "the run ended with turns in flight");
                // The world notes a true cost for every client that ended, also for clients whose
                // owner died. So a key without a charge is money that the run lost in a crash.
                let free =
                    evidence.true_costs.keys().find(|attempt| !self.charged.contains(*attempt));
                must!(free.is_none(), "the client of {free:?} was never charged");
            }
            Event::TurnStarted { turn, attempt, share, plan } => {
                self.started(turn, *attempt, *share, plan)?;
            }
            Event::TurnSettled { turn, attempt, charge, session, .. } => {
                self.attempt_ended(turn, *attempt, evidence, *charge)?;
                must!(self.settled.insert(turn.clone()), "{turn} is settled twice");
                let tracked = self.tracked(&turn.agent)?;
                tracked.session = session.clone();
                tracked.may_move = true;
            }
            Event::TurnContinues { turn, attempt, charge, stalls, .. } => {
                self.attempt_ended(turn, *attempt, evidence, *charge)?;
                // Five is the documented limit. It is repeated here instead of imported, so that a
                // change of the constant in core is noticed.
                must!(*stalls <= 5, "{turn} was capped without output {stalls} times");
            }
            Event::TurnFailed { turn, attempt, charge, .. }
            | Event::TurnInterrupted { turn, attempt, charge, .. } => {
                self.attempt_ended(turn, *attempt, evidence, *charge)?;
            }
            Event::TurnRecalled { turn, attempt } => self.recalled(turn, *attempt)?,
            Event::SessionLost { turn, .. } => {
                self.lost.insert(turn.clone());
            }
            other => self.agent_event(other)?,
        }
        Ok(())
    }

    /// Checks that after a resume the shares of all continuing clients fit the new cap.
    fn within_cap(&self) -> Result<(), Violation> {
        let Some(cap) = self.settings.budget else { return Ok(()) };
        let continuing = self.in_flight.iter().filter(|(turn, _)| !self.recalled.contains(*turn));
        // Shares count in full, because a continuing client may spend all of its share under any
        // cap.
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
        let is_known = self.in_flight.get(turn).is_some_and(|flight| flight.attempt == attempt);
        must!(is_known, "attempt {attempt} of {turn} is recalled, and is not in flight");
        self.recalled.insert(turn.clone());
        Ok(())
    }

    fn tracked(&mut self, agent: &AgentId) -> Result<&mut TrackedAgent, Violation> {
        self.live.get_mut(agent).ok_or_else(|| Violation(format!("{agent} is not live")))
    }

    fn started(
        &mut self,
        turn: &TurnId,
        attempt: u32,
        share: Option<Micros>,
        plan: &SessionPlan,
    ) -> Result<(), Violation> {
        // Every mode of a stop forbids new turns, also the mode that lets turns in flight finish.
        must!(!self.stopped, "{turn} starts although the run was asked to end");
        must!(!self.settled.contains(turn), "settled turn {turn} starts again");
        // An agent has one conversation, and two clients would write into it.
        must!(!self.in_flight.keys().any(|other| other.agent == turn.agent), "two turns of {turn}");
        let last = self.attempts.insert(turn.clone(), attempt).unwrap_or(0);
        // Outcomes are matched by attempt. A repeated number would let the outcome of an
        // interrupted client count for its successor.
        must!(attempt == last + 1, "attempt {attempt} of {turn} follows {last}");
        let opens = matches!(plan, SessionPlan::Fresh(_) | SessionPlan::Branch { .. });
        // Removed, because one lost session allows one new session: a later retry continues there.
        let may_open = attempt == 1 || self.lost.remove(turn);
        must!(may_open || !opens, "attempt {attempt} of {turn} does not continue in its session");
        // Scripts and programs carry a session without using it, so this plan marks a turn that
        // costs nothing.
        if let Some(cap) = self.settings.budget.filter(|_| *plan != SessionPlan::Carry) {
            self.money.reserve(turn, cap, share, self.reserved())?;
        }
        let tracked = self.tracked(&turn.agent)?;
        must!(turn.visit == tracked.visit, "{turn} does not belong to visit {}", tracked.visit);
        if let Some(written) = plan.session() {
            not_a_callers(turn, written, &tracked.stack)?;
        }
        let paid = *plan != SessionPlan::Carry;
        self.in_flight.insert(turn.clone(), InFlight { attempt, share, paid });
        Ok(())
    }

    fn attempt_ended(
        &mut self,
        turn: &TurnId,
        attempt: u32,
        evidence: Evidence<'_>,
        charge: Charge,
    ) -> Result<(), Violation> {
        // Also for a client that finished before it was ended: its outcome counts like any other.
        self.recalled.remove(turn);
        let flown = self.in_flight.remove(turn).filter(|flight| flight.attempt == attempt);
        let Some(InFlight { share, .. }) = flown else {
            return Err(Violation(format!(
                "an outcome of attempt {attempt} of {turn}, which is not in flight, was taken"
            )));
        };
        let Evidence { report, true_costs } = evidence;
        // A client that was never started is absent from the map, and cost nothing.
        let truth = true_costs.get(&(turn.clone(), attempt)).copied().unwrap_or_default();
        let settings = &self.settings;
        self.money.charge(&EndedAttempt {
            turn,
            attempt,
            report,
            share,
            settings,
            charge,
            truth,
        })?;
        self.charged.insert((turn.clone(), attempt));
        let tracked = self.tracked(&turn.agent)?;
        tracked.spent = tracked.spent.plus(charge.amount);
        Ok(())
    }
}

/// Checks that a callee does not write into a session that one of its callers returns to.
fn not_a_callers(turn: &TurnId, written: &SessionId, stack: &[Frame]) -> Result<(), Violation> {
    let theirs = |frame: &Frame| match &frame.session {
        Session::At(id) => id == written,
        // A branch copies the conversation, so the caller's own session stays unchanged.
        Session::Fresh | Session::BranchOf(_) => false,
    };
    must!(!stack.iter().any(theirs), "{turn} writes into the session of its caller");
    Ok(())
}

/// Checks that an effect can be sent to another process.
fn check_complete(effect: &Effect) -> Result<(), Violation> {
    // The executor may be another process, so an effect must not lose a field on the way.
    let sent = serde_json::to_vec(effect).and_then(|text| serde_json::from_slice(&text));
    let sent: Effect = sent.map_err(|error| Violation(error.to_string()))?;
    must!(sent == *effect, "{effect:?} changes on the way to another process");
    Ok(())
}
