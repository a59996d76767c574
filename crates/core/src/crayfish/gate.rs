//! Gates: what only so many branches may pass at a time.
//!
//! A conversation that steps share is one, and the programs of a parallel loop are one. Whoever finds
//! a gate full is parked; once somebody has left it, the oldest of those goes on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;

/// The name of a gate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gate(String);

/// Who is at a gate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Passage {
    /// How many may be inside.
    pub most: u32,
    /// Who has passed it and not left.
    pub inside: BTreeSet<AgentId>,
    /// Who waits, in the order of birth.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub waiting: BTreeSet<(u64, AgentId)>,
}

impl Gate {
    /// The conversation of this label.
    pub fn of_label(label: &str) -> Self {
        Self(format!("label {label}"))
    }

    /// The programs of the iterations that a branch waits for.
    pub fn of_loop(parent: &AgentId) -> Self {
        Self(format!("loop {parent}"))
    }
}

impl Passage {
    pub(super) fn is_open(&self) -> bool {
        self.inside.len() < self.most as usize
    }
}
