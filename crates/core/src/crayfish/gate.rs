//! Gates: what only so many branches may pass at a time.
//!
//! A conversation that steps share is one, and the programs of a parallel loop are one. Whoever finds
//! a gate full is parked; once somebody has left it, the oldest of those goes on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;

use super::state::StepsState;

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
    fn is_open(&self) -> bool {
        self.inside.len() < self.most as usize
    }
}

impl StepsState {
    /// Whether a branch may pass.
    pub fn is_open(&self, gate: &Gate) -> bool {
        self.gates.get(gate).is_none_or(Passage::is_open)
    }

    /// The oldest branch that waits at a gate which is open again, and may go on.
    pub fn next_admitted(&self) -> Option<&AgentId> {
        let open = self.gates.values().filter(|passage| passage.is_open());
        let mut waiting = open.flat_map(|passage| &passage.waiting).map(|(_, agent)| agent);
        waiting.find(|agent| self.may_go_on(agent))
    }

    /// Where a branch is parked, it has nothing to do by itself.
    pub(super) fn is_parked(&self, place: &(u64, AgentId)) -> bool {
        self.gates.values().any(|passage| passage.waiting.contains(place))
    }

    pub(super) fn park(&mut self, agent: &AgentId, gate: &Gate, most: u32) {
        let Some(branch) = self.branches.get(agent) else { return };
        let place = (branch.number, agent.clone());
        let passage = self.gates.entry(gate.clone()).or_default();
        passage.most = most;
        passage.waiting.insert(place);
    }

    pub(super) fn pass(&mut self, agent: &AgentId, gate: &Gate, most: u32) {
        let Some(branch) = self.branches.get(agent) else { return };
        let place = (branch.number, agent.clone());
        let passage = self.gates.entry(gate.clone()).or_default();
        passage.most = most;
        passage.waiting.remove(&place);
        passage.inside.insert(agent.clone());
    }

    /// A branch leaves the gate it has passed, or waits at.
    pub(super) fn leave(&mut self, number: u64, agent: &AgentId) {
        let place = (number, agent.clone());
        self.gates.retain(|_, passage| {
            passage.inside.remove(agent);
            passage.waiting.remove(&place);
            !(passage.inside.is_empty() && passage.waiting.is_empty())
        });
    }
}
