//! Costs of records that a rewind discards.
//!
//! A rewind makes the run forget these records, but the money was spent: a rewind must not renew a
//! budget. [`super::discarded_tail`] computes the costs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::{Basis, Charge, Micros};
use crate::ids::AgentId;

/// The cost of discarded records.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiscardedCost {
    /// The sum of the charges of their turns.
    pub amount: Micros,
    /// The number of turns without a price. An unreadable record counts as one, because it may have
    /// contained one.
    pub unpriced: u64,
    /// The part of `amount` that counts against the budgets of kept visits, by agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub visits: BTreeMap<AgentId, Micros>,
}

impl DiscardedCost {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.amount = self.amount.plus(more.amount);
        self.unpriced = self.unpriced.saturating_add(more.unpriced);
        more.visits.iter().for_each(|(agent, amount)| self.pay(agent, *amount));
    }

    /// Counts `amount` against the budget of the agent's visit.
    pub(super) fn pay(&mut self, agent: &AgentId, amount: Micros) {
        // An entry without money would only make the record longer.
        if amount == Micros::ZERO {
            return;
        }
        let paid = self.visits.entry(agent.clone()).or_default();
        *paid = paid.plus(amount);
    }
}

impl From<Charge> for DiscardedCost {
    fn from(charge: Charge) -> Self {
        let unpriced = u64::from(charge.basis == Basis::Unpriced);
        Self { amount: charge.amount, unpriced, visits: BTreeMap::new() }
    }
}
