//! Gates: what only so many strands may pass at a time.
//!
//! A conversation that steps share is one, and the programs of a parallel loop are one. Whoever finds
//! a gate full is parked; whoever leaves it lets the oldest of those try again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;

use super::flow::Flow;

/// The name of a gate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gate(String);

/// Who is at a gate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Passage {
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

    /// The programs of the iterations that a strand waits for.
    pub fn of_loop(parent: &AgentId) -> Self {
        Self(format!("loop {parent}"))
    }
}

impl Flow {
    /// Whether a strand may pass, where no more than `most` may be inside.
    pub fn is_open(&self, gate: &Gate, most: usize) -> bool {
        self.gates.get(gate).is_none_or(|passage| passage.inside.len() < most)
    }

    /// Where a strand is parked, it has nothing to do.
    pub(super) fn is_parked(&self, place: &(u64, AgentId)) -> bool {
        self.gates.values().any(|passage| passage.waiting.contains(place))
    }

    pub(super) fn park(&mut self, agent: &AgentId, gate: &Gate) {
        let Some(strand) = self.strands.get(agent) else { return };
        let place = (strand.number, agent.clone());
        self.gates.entry(gate.clone()).or_default().waiting.insert(place);
    }

    pub(super) fn pass(&mut self, agent: &AgentId, gate: Option<&Gate>) {
        if let Some(gate) = gate {
            self.gates.entry(gate.clone()).or_default().inside.insert(agent.clone());
        }
    }

    /// A strand that has ended waits nowhere.
    pub(super) fn unpark(&mut self, place: &(u64, AgentId)) {
        for passage in self.gates.values_mut() {
            passage.waiting.remove(place);
        }
    }

    /// A strand leaves the gate it has passed, and the oldest that waits there may try.
    pub(super) fn leave(&mut self, agent: &AgentId) {
        let mut next = None;
        self.gates.retain(|_, passage| {
            if passage.inside.remove(agent) {
                next = passage.waiting.pop_first();
            }
            !(passage.inside.is_empty() && passage.waiting.is_empty())
        });
        self.ready.extend(next);
    }
}
