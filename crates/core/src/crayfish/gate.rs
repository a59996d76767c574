//! Gates: limits on how many branches do something at the same time.
//!
//! A conversation that steps share has a gate, and so have the programs of a parallel loop. A
//! branch that finds its gate full is parked. When a branch leaves the gate, the oldest parked one
//! continues.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gate(String);

/// The branches at a gate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Passage {
    /// How many branches may be inside.
    pub most: u32,
    /// The branches that have passed the gate and not left it.
    pub inside: BTreeSet<AgentId>,
    /// The parked branches with their numbers, so that the oldest is first.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub waiting: BTreeSet<(u64, AgentId)>,
}

impl Gate {
    /// Returns the gate of the conversation with this label.
    pub fn of_label(label: &str) -> Self {
        // The prefix keeps a label, which authors choose, from naming the gate of a loop.
        Self(format!("label {label}"))
    }

    /// Returns the gate for programs in the iterations that a branch waits for.
    pub fn of_loop(parent: &AgentId) -> Self {
        Self(format!("loop {parent}"))
    }
}

impl Passage {
    pub(super) fn is_open(&self) -> bool {
        self.inside.len() < self.most as usize
    }
}
