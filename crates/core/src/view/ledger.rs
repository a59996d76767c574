//! The stored past of a run: facts that `Run` no longer contains, such as paths, costs and denials.
//!
//! It is a fold of all events, stored in snapshots, because a snapshot replaces the events before
//! it. Its serde names are part of that format. [`super`] says how it differs from `Run` and
//! `RunView`.

use std::collections::BTreeMap;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;
use crate::run::Event;
use crate::time::Timestamp;

use super::summary::{AgentSummary, agent_of};
use super::totals::Totals;

/// A fold of all events of a run. It dereferences to its totals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    pub totals: Totals,
    /// Live and failed agents; those that ended are removed to bound memory.
    pub(super) agents: BTreeMap<AgentId, AgentSummary>,
}

impl Deref for Ledger {
    type Target = Totals;

    fn deref(&self) -> &Totals {
        &self.totals
    }
}

impl Ledger {
    pub fn note(&mut self, at: Timestamp, event: &Event) {
        let summary = agent_of(event).and_then(|agent| self.agents.get_mut(agent));
        // The totals first, because they need the place of the agent before the event.
        self.totals.note(at, event, summary.as_deref());
        if let Some(summary) = summary {
            summary.note(at, event);
        }
        if let Event::AgentSpawned { agent, parent, .. } = event {
            self.agents.insert(agent.clone(), AgentSummary::spawned(at, parent.as_ref()));
        } else if let Event::AgentEnded { agent, .. } | Event::AgentCancelled { agent, .. } = event
        {
            self.agents.remove(agent);
        } else if let Event::Joined { failed, .. } = event {
            for worker in failed {
                self.agents.remove(worker);
            }
        }
    }
}
