//! The changes of gates: branches that pass, wait and leave.

use crate::crayfish::gate::{Gate, Passage};
use crate::ids::AgentId;

use super::StepsState;

impl StepsState {
    pub fn is_open(&self, gate: &Gate) -> bool {
        self.gates.get(gate).is_none_or(Passage::is_open)
    }

    /// Returns a branch that waits at an open gate and may continue: the oldest of its gate.
    pub fn next_admitted(&self) -> Option<&AgentId> {
        // Gates limit independent things, so the order between two open gates does not matter.
        let open = self.gates.values().filter(|passage| passage.is_open());
        let mut waiting = open.flat_map(|passage| &passage.waiting).map(|(_, agent)| agent);
        waiting.find(|agent| self.may_continue(agent))
    }

    /// Returns whether a branch waits at a gate, so that it cannot continue by itself.
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
        // A parked branch is tried again from its step, so it passes the gate that it waited at.
        passage.waiting.remove(&place);
        passage.inside.insert(agent.clone());
    }

    /// Removes a branch from the gate that it has passed or waits at.
    pub(super) fn leave(&mut self, number: u64, agent: &AgentId) {
        let place = (number, agent.clone());
        // An empty gate is removed, so that the state does not grow with every label and loop.
        self.gates.retain(|_, passage| {
            passage.inside.remove(agent);
            passage.waiting.remove(&place);
            !(passage.inside.is_empty() && passage.waiting.is_empty())
        });
    }
}
