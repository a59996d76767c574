//! The cost of an attempt, as its transcript reports it.

use super::share::{charge, charge_capped};
use super::state::Run;
use crate::budget::{Charge, Cost, Micros};

/// The cost of an attempt according to its transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptCost {
    /// The cost, as far as it is known.
    pub cost: Cost,
    /// Whether the client stopped because its share was used up.
    pub capped: bool,
}

impl TranscriptCost {
    /// Returns what two readers of one transcript know together.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { cost: self.cost.or(other.cost), capped: self.capped || other.capped }
    }

    /// Returns the least that was spent.
    pub(super) fn known(self, share: Option<Micros>) -> Micros {
        let known = self.cost.known().unwrap_or_default();
        // A client that stopped at its share has spent it, even if its messages add up to less.
        known.max(share.filter(|_| self.capped).unwrap_or_default())
    }

    /// Returns the charge for a turn with this share.
    pub(crate) fn charge(self, run: &Run, share: Option<Micros>) -> Charge {
        let rule = if self.capped { charge_capped } else { charge };
        rule(run, self.cost, share)
    }
}

impl From<Cost> for TranscriptCost {
    fn from(cost: Cost) -> Self {
        Self { cost, capped: false }
    }
}
