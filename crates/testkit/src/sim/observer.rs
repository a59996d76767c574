//! Recognises situations in records, for the coverage table.
//!
//! A situation is a condition that no single event shows, such as a turn that waits for money. The
//! observer compares the run before and after a record. It only counts: whether a record is correct
//! is the auditor's question.

use raymond_core::budget::{Basis, Charge, Cost, Micros};
use raymond_core::failure::{AgentFailure, TurnFailure};
use raymond_core::run::outcome::Outcome;
use raymond_core::run::stop::StopMode;
use raymond_core::run::{Ending, Event, Input, Phase, Record, RecordStep, Run};
use raymond_core::scheduler::Hold;
use raymond_core::scheduler::Lane;

use super::clients::Clients;
use super::coverage::{Coverage, Situation};

/// A record, and the run before and after it.
pub struct Observed<'a> {
    pub before: &'a Run,
    pub record: &'a Record,
    pub after: &'a Run,
    pub clients: &'a Clients,
}

impl Observed<'_> {
    /// Counts every situation that the record shows.
    pub fn note(&self, coverage: &mut Coverage) {
        let mut met = |situation| coverage.note_situation(situation);
        self.money(&mut met);
        for step in &self.record.steps {
            self.cause(step, &mut met);
            for event in &step.events {
                self.event(step, event, &mut met);
            }
        }
    }

    fn money(&self, met: &mut dyn FnMut(Situation)) {
        let Some(free) = self.after.unreserved() else { return };
        let scheduler = &self.after.scheduler;
        let waits = |(lane, _): (&Lane, _)| *lane != Lane::Script && scheduler.hold(lane).is_none();
        let slots = scheduler.in_flight.len() < self.after.settings.max_parallel as usize;
        // With a free slot, so that money and not parallelism is the reason for the wait.
        let short = free < Micros::LEAST_SHARE && scheduler.paid_in_flight > 0 && slots;
        if short && self.after.phase == Phase::Open && scheduler.queues.iter().any(waits) {
            met(Situation::WaitsForMoney);
            if scheduler.paid_in_flight > 1 {
                met(Situation::Race);
            }
        }
        if self.after.settings.budget.is_some_and(|cap| self.after.spent > cap) {
            met(Situation::Overshoot);
        }
    }

    fn cause(&self, step: &RecordStep, met: &mut dyn FnMut(Situation)) {
        match &step.cause {
            Input::Settled { turn, attempt, outcome } => {
                let client = self.clients.get(&(turn.clone(), *attempt));
                if client.is_some_and(|client| client.adoptions > 0) {
                    met(adopted(outcome));
                }
                if let Outcome::Failed { failure: TurnFailure::Quota { until, .. }, .. } = outcome {
                    let has_time = until.is_some();
                    met(if has_time { Situation::LimitUntil } else { Situation::LimitProbed });
                }
            }
            Input::Stop { mode, .. } => self.request(*mode, met),
            Input::Resume(_) => self.resumed(met),
            _ => {}
        }
    }

    fn request(&self, mode: StopMode, met: &mut dyn FnMut(Situation)) {
        met(match mode {
            StopMode::AfterTurn => Situation::AskedAfterTurn,
            StopMode::Now => Situation::AskedNow,
            StopMode::Cancel => Situation::AskedCancel,
        });
        match self.before.phase {
            Phase::Stopping(earlier) if earlier < mode => met(Situation::AskedHarder),
            // Only a cancellation is recorded after the end of a run.
            Phase::Ended(_) => met(Situation::CancelledAfterwards),
            Phase::Unborn | Phase::Open | Phase::Stopping(_) => {}
        }
        if self.clients.running().any(|(_, client)| client.adoptions > 0) {
            met(Situation::AskedAdopted);
        }
        if !self.before.scheduler.holds.is_empty() {
            met(Situation::AskedInHold);
        }
    }

    fn resumed(&self, met: &mut dyn FnMut(Situation)) {
        let quota = |hold: &Hold| matches!(hold, Hold::Quota { .. });
        if self.before.scheduler.holds.values().any(quota)
            && self.after.scheduler.holds.values().any(quota)
        {
            met(Situation::RestartInHold);
        }
        if self.before.phase != Phase::Ended(Ending::OverBudget) {
            return;
        }
        let mut events = self.record.steps.iter().flat_map(|step| &step.events);
        // A turn that had waited for money starts for the first time, so later attempts are not
        // meant.
        let first = |event: &Event| matches!(event, Event::TurnStarted { attempt: 1, .. });
        if self.after.phase == self.before.phase {
            met(Situation::TooLittle);
        } else if events.any(first) {
            met(Situation::MoreMoney);
        }
    }

    fn event(&self, step: &RecordStep, event: &Event, met: &mut dyn FnMut(Situation)) {
        match event {
            Event::TurnStarted { turn, share, .. } => {
                let lane = self.after.scheduler.turns.get(&turn.agent).map(|turn| &turn.lane);
                self.started(lane, *share, met);
            }
            Event::TurnContinues { charge, .. } => {
                self.charged(step, *charge, met);
                // The run before the record: the turn itself was still in flight there.
                if self.before.scheduler.paid_in_flight > 1 {
                    met(Situation::CappedInRace);
                }
                if self.after.phase == Phase::Ended(Ending::OverBudget) {
                    met(Situation::CappedForGood);
                }
            }
            Event::TurnRecalled { .. } => met(Situation::Recalled),
            Event::TurnSettled { turn, charge, .. } => {
                self.charged(step, *charge, met);
                if self.before.scheduler.turns.get(&turn.agent).is_some_and(|turn| turn.recalled) {
                    met(Situation::RecalledTooLate);
                }
            }
            Event::TurnFailed { charge, .. } | Event::TurnInterrupted { charge, .. } => {
                self.charged(step, *charge, met);
            }
            Event::BackendHeld { backend, hold } => {
                let waiting = self.after.scheduler.queues.get(&Lane::Prompt(backend.clone()));
                self.held(hold, waiting.map_or(0, std::collections::BTreeMap::len), met);
                if self.before.scheduler.holds.contains_key(backend) {
                    met(Situation::LimitAgain);
                }
            }
            Event::BackendReleased { .. } => met(match step.cause {
                Input::Resume(_) => Situation::LiftedByResume,
                _ => Situation::LiftedInTime,
            }),
            Event::AgentEnded { .. } if self.before.unreserved() == Some(Micros::ZERO) => {
                met(Situation::EndsWithoutMoney);
            }
            Event::AgentFailed { failure: AgentFailure::VisitBudget { .. }, .. } => {
                met(Situation::VisitSpent);
            }
            Event::AgentFailed { failure: AgentFailure::Crashes { .. }, .. } => {
                met(Situation::Crashes);
            }
            Event::RunEnded { ending } => self.ended(*ending, met),
            _ => {}
        }
    }

    fn started(&self, lane: Option<&Lane>, share: Option<Micros>, met: &mut dyn FnMut(Situation)) {
        let free = self.after.unreserved();
        match lane {
            Some(Lane::Script) => {
                if free == Some(Micros::ZERO) && self.after.scheduler.reserved == Micros::ZERO {
                    met(Situation::ScriptWithoutMoney);
                }
                if !self.after.scheduler.holds.is_empty() {
                    met(Situation::ScriptInHold);
                }
            }
            Some(Lane::Prompt(_)) => {
                if share.is_some_and(|share| share < Micros::LEAST_SHARE)
                    && free == Some(Micros::ZERO)
                {
                    met(Situation::LastCents);
                }
                if !self.after.scheduler.holds.is_empty() {
                    met(Situation::OtherBackend);
                }
            }
            None => {}
        }
    }

    fn charged(&self, step: &RecordStep, charge: Charge, met: &mut dyn FnMut(Situation)) {
        let Input::Settled { outcome, .. } = &step.cause else { return };
        let cost = match outcome {
            Outcome::Finished(finished) => finished.cost,
            Outcome::Capped { cost, .. }
            | Outcome::Failed { cost, .. }
            | Outcome::Interrupted { cost, .. } => *cost,
        };
        match (cost, charge.basis) {
            (_, Basis::Unpriced) => met(Situation::Unpriced),
            (Cost::Unknown | Cost::AtLeast(_) | Cost::Estimated(_), Basis::Estimated)
                if self.before.settings.strict_budget && self.before.settings.budget.is_some() =>
            {
                met(Situation::Strict);
            }
            (Cost::Unknown | Cost::AtLeast(_), Basis::Estimated) => met(Situation::Guessed),
            (_, Basis::Free | Basis::Reported | Basis::Estimated) => {}
        }
    }

    fn held(&self, hold: &Hold, waiting: usize, met: &mut dyn FnMut(Situation)) {
        let holds = || self.after.scheduler.holds.values();
        let auth = |hold: &Hold| matches!(hold, Hold::Auth { .. });
        match hold {
            Hold::Quota { .. } if waiting >= 3 => met(Situation::LimitInQueue),
            Hold::Auth { .. } if waiting >= 2 => met(Situation::LoginInQueue),
            Hold::Quota { .. } | Hold::Auth { .. } | Hold::Environment { .. } => {}
        }
        if holds().any(auth) && !holds().all(auth) {
            met(Situation::LimitAndLogin);
        }
    }

    fn ended(&self, ending: Ending, met: &mut dyn FnMut(Situation)) {
        match ending {
            Ending::OverBudget => {
                if self.after.agents.values().any(|agent| !agent.stack.is_empty()) {
                    met(Situation::OverBudgetInCall);
                }
            }
            Ending::NoQuota | Ending::Sleeping => met(Situation::NoWait),
            Ending::NeedsPerson => met(Situation::NeedsLogin),
            Ending::Environment => met(Situation::NeedsRoom),
            Ending::Completed
            | Ending::Failed
            | Ending::Stopped
            | Ending::Cancelled
            | Ending::NeedsCaller => {}
        }
    }
}

/// Returns the situation of an adopted client that has ended.
fn adopted(outcome: &Outcome) -> Situation {
    match outcome {
        Outcome::Finished(_) => Situation::AdoptedSays,
        Outcome::Capped { .. } => Situation::AdoptedCapped,
        Outcome::Interrupted { .. } => Situation::AdoptedStopped,
        Outcome::Failed { failure, .. } => match failure {
            TurnFailure::Quota { .. } => Situation::AdoptedLimited,
            TurnFailure::Timeout { .. } => Situation::AdoptedTimesOut,
            TurnFailure::Transient { .. }
            | TurnFailure::Auth { .. }
            | TurnFailure::Environment { .. }
            | TurnFailure::Task { .. }
            | TurnFailure::LostSession { .. }
            | TurnFailure::Script { .. }
            | TurnFailure::OutputTooLarge { .. }
            | TurnFailure::Step { .. }
            | TurnFailure::NotStarted { .. } => Situation::AdoptedFails,
        },
    }
}
