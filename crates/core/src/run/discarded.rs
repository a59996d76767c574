//! What records that are cut away leave behind: the run forgets them, and what they cost it must not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::{Basis, Charge, Micros};
use crate::ids::{AgentId, TurnId};

/// What records that are gone had cost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiscardedCost {
    /// What turns were charged.
    pub amount: Micros,
    /// How many of them could not be priced. A record that cannot be read may have held one.
    pub unpriced: u64,
    /// The part of the amount that counts against the budgets of visits that are kept, by agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub visits: BTreeMap<AgentId, Micros>,
}

impl DiscardedCost {
    /// Whether it is worth no word.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.amount = self.amount.plus(more.amount);
        self.unpriced = self.unpriced.saturating_add(more.unpriced);
        more.visits.iter().for_each(|(agent, amount)| self.pay(agent, *amount));
    }

    /// Counts an amount against the budget of an agent's visit.
    pub(super) fn pay(&mut self, agent: &AgentId, amount: Micros) {
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

/// One attempt at a turn.
pub type Attempt = (TurnId, u32);
