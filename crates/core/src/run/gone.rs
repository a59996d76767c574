//! What was paid for in records that were cut away: the run forgets them, and the cap must not.

use serde::{Deserialize, Serialize};

use super::{Event, Record};
use crate::budget::{Basis, Micros};

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

    /// Adds what a record had cost.
    pub fn note(&mut self, record: &Record) {
        for event in record.steps.iter().flat_map(|step| &step.events) {
            if let Event::TurnSettled { charge, .. }
            | Event::TurnContinues { charge, .. }
            | Event::TurnFailed { charge, .. }
            | Event::TurnInterrupted { charge, .. } = event
            {
                self.amount = self.amount.plus(charge.amount);
                self.unpriced += u64::from(charge.basis == Basis::Unpriced);
            }
            if let Event::RunRewound { gone, .. } = event {
                self.amount = self.amount.plus(gone.amount);
                self.unpriced = self.unpriced.saturating_add(gone.unpriced);
            }
        }
    }
}
