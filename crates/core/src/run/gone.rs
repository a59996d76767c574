//! What was paid for in records that are cut away: the run forgets them, and the cap must not.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::apply::apply;
use super::effect::in_flight;
use super::{Event, Record, Run};
use crate::budget::{Basis, Charge, Cost, Micros};
use crate::desk::share::charge;
use crate::desk::{Lane, Phase};
use crate::ids::{Nonce, TurnId};
use crate::machine::SessionPlan;

/// What records that are gone had cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gone {
    /// What turns were charged.
    pub amount: Micros,
    /// How many of them could not be priced. A record that cannot be read may have held one.
    pub unpriced: u64,
}

impl Gone {
    /// Whether it is worth no word.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, charge: Charge) {
        self.amount = self.amount.plus(charge.amount);
        self.unpriced += u64::from(charge.basis == Basis::Unpriced);
    }
}

/// A run as it went on in records that are cut away, as far as they can be read.
#[derive(Debug)]
pub struct Abandoned<'a> {
    kept: &'a Run,
    run: Run,
    started: Vec<(TurnId, u32)>,
    unread: u64,
    /// What of it is charged anew when the kept run goes on.
    again: Gone,
}

impl<'a> Abandoned<'a> {
    /// The run that is kept.
    pub fn new(kept: &'a Run) -> Self {
        let (run, started, again) = (kept.clone(), Vec::new(), Gone::default());
        Self { kept, run, started, unread: 0, again }
    }

    /// Goes on by a record.
    pub fn follow(&mut self, record: &Record) {
        for event in record.steps.iter().flat_map(|step| &step.events) {
            apply(&mut self.run, event);
            if let Event::TurnStarted { turn, attempt, .. } = event {
                self.started.push((turn.clone(), *attempt));
            }
            if let Event::TurnSettled { turn, attempt, charge, .. }
            | Event::TurnContinues { turn, attempt, charge, .. }
            | Event::TurnFailed { turn, attempt, charge, .. }
            | Event::TurnInterrupted { turn, attempt, charge, .. } = event
                && self.is_looked_for(turn, *attempt)
            {
                self.again.add(*charge);
            }
        }
    }

    /// Goes on past a record that cannot be read.
    pub fn miss(&mut self) {
        self.unread += 1;
    }

    /// What the processes are marked with that it may have left.
    pub fn nonces(&self) -> BTreeSet<&Nonce> {
        [&self.kept.nonce, &self.run.nonce].into()
    }

    /// The attempts that the kept run knows nothing of.
    pub fn started(&self) -> &[(TurnId, u32)] {
        &self.started
    }

    /// What it had cost.
    pub fn gone(&self) -> Gone {
        let Self { kept, run, unread, again, .. } = self;
        let mut gone = Gone {
            amount: run.spent.minus(kept.spent).minus(again.amount),
            unpriced: (run.unpriced + unread).saturating_sub(kept.unpriced + again.unpriced),
        };
        for turn in in_flight(run).filter(|turn| !self.is_looked_for(&turn.id, turn.attempt)) {
            // Nobody will see how it ends. Without a session, an earlier cut has charged it.
            let is_paid = matches!(turn.lane, Lane::Prompt(_)) && turn.current.is_some();
            if let Phase::Running { share } = turn.phase
                && is_paid
            {
                gone.add(charge(run, Cost::Unknown, share));
            }
        }
        gone
    }

    /// Whether the kept run looks what became of an attempt, and charges it then. Of one that was to open a
    /// session it knows no more than that: it will open another one.
    fn is_looked_for(&self, id: &TurnId, attempt: u32) -> bool {
        let turn = in_flight(self.kept).find(|turn| turn.id == *id && turn.attempt == attempt);
        turn.is_some_and(|turn| match turn.plan {
            SessionPlan::Fresh(_) | SessionPlan::Branch { .. } => false,
            SessionPlan::Resume(_) | SessionPlan::Continue { .. } | SessionPlan::Carry => true,
        })
    }
}
