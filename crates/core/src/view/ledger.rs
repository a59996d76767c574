//! What a run no longer holds, for those who ask: results, the way that was taken, who answered, and
//! where the money went.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::budget::{Basis, Charge, Micros};
use crate::crayfish::StepEvent;
use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::run::Event;
use crate::run::warning::Warning;
use crate::scheduler::Lane;
use crate::time::Timestamp;
use crate::value::Value;

use super::backend_labels::BackendLabels;
use super::denied::is_rule;
use super::path::Path;
use super::turns::{charged, turning};

/// A fold of everything that happened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// When the run started.
    pub started_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
    /// When it was started or resumed, the last time.
    #[serde(default)]
    pub driven_since: Timestamp,
    /// `--input`
    #[serde(default)]
    pub input: Option<Value>,
    /// The way that `main` took.
    #[serde(default)]
    pub path: Path,
    /// The result of every agent that ended.
    pub results: BTreeMap<AgentId, Value>,
    /// How many workers every agent has forked, those that ended included.
    pub forks: BTreeMap<AgentId, u32>,
    /// Turns and money by state.
    pub states: BTreeMap<StateName, Spending>,
    /// Turns and money by backend, for every backend that was asked.
    #[serde(default)]
    pub backends: BTreeMap<BackendName, Spending>,
    /// The backends that its states may ask, as far as that was written down.
    #[serde(default)]
    pub may_ask: BTreeSet<BackendName>,
    /// Turns that were paid, however they ended.
    #[serde(default)]
    pub paid: Spending,
    /// Turns that were settled, and what they cost.
    pub settled: Spending,
    /// What of the money was estimated.
    #[serde(default)]
    pub estimated: Micros,
    /// Tools that clients denied, with how often.
    pub denied: BTreeMap<String, u32>,
    /// The states that could allow some of them.
    #[serde(default)]
    pub denied_in: BTreeSet<StateName>,
    /// Who asked it to end, the last time.
    #[serde(default)]
    pub stopper: Option<Stopper>,
    /// After how many iterations a loop ended without a result.
    #[serde(default)]
    pub exhausted: Option<u32>,
    /// Live and failed agents.
    pub(super) agents: BTreeMap<AgentId, AgentSummary>,
}

/// Where an agent is, and what that has cost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct AgentSummary {
    /// Its state; none before the first.
    pub(super) state: Option<StateName>,
    /// Since when it is at what it is at.
    pub(super) since: Timestamp,
    /// Whom its last turn asked; none for a script.
    pub(super) asked: Option<BackendName>,
    /// What all its turns cost.
    pub(super) spent: Micros,
    /// What those of this visit cost, once one of them has ended.
    pub(super) bill: Option<VisitCost>,
    /// Whether it is about to do its step again.
    revived: bool,
}

/// What a visit has cost so far, and how well that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct VisitCost {
    pub(super) amount: Micros,
    pub(super) estimated: bool,
    pub(super) unpriced: bool,
}

impl VisitCost {
    pub(super) fn add(&mut self, charge: Charge) {
        self.amount = self.amount.plus(charge.amount);
        match charge.basis {
            Basis::Estimated => self.estimated = true,
            Basis::Unpriced => self.unpriced = true,
            Basis::Free | Basis::Reported => {}
        }
    }
}

/// Who asked a run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopper {
    /// A signal to its process: Ctrl-C, `kill`, a terminal that went away.
    Signal,
    /// Its own process, because it could not go on.
    Trouble,
    /// `raymond stop` or `raymond cancel`.
    Command,
    /// Whoever called it waits no longer.
    Caller,
}

impl Stopper {
    /// The one who made the request of this name.
    pub fn of(key: &str) -> Self {
        match key.split_once('-') {
            Some(("signal", _)) => Self::Signal,
            Some(("error", _)) => Self::Trouble,
            Some(("given", _)) => Self::Caller,
            Some(_) | None => Self::Command,
        }
    }
}

/// Turns, and what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spending {
    /// How many.
    pub turns: u64,
    /// How much.
    pub amount: Micros,
}

impl Spending {
    fn add(&mut self, amount: Micros) {
        self.turns += 1;
        self.amount = self.amount.plus(amount);
    }
}

impl Ledger {
    /// Folds one event in.
    pub fn note(&mut self, at: Timestamp, event: &Event) {
        self.updated_at = at;
        if let Some(station) = turning(event).and_then(|agent| self.agents.get_mut(agent)) {
            station.since = at;
        }
        if let Event::RunStarted(start) = event {
            (self.started_at, self.driven_since) = (at, at);
            self.input.clone_from(&start.input);
            self.may_ask.clone_from(&start.backends);
        } else if let Event::RunResumed { .. } = event {
            self.driven_since = at;
        } else if let Event::AgentSpawned { agent, .. } = event {
            self.agents.insert(agent.clone(), AgentSummary::default());
        } else if let Event::VisitEntered { agent, state, .. } = event {
            self.enter(agent, state);
        } else if let Event::Stepped { agent, fact: StepEvent::Revived } = event {
            if let Some(station) = self.agents.get_mut(agent) {
                station.revived = true;
            }
        } else if let Event::Moved { agent, forks, .. } = event
            && *forks > 0
        {
            self.forks.insert(agent.clone(), *forks);
        } else if let Event::AgentEnded { agent, result } = event {
            self.agents.remove(agent);
            self.results.insert(agent.clone(), result.clone());
        } else if let Event::TurnQueued { turn, lane, .. } = event {
            self.ask(&turn.agent, lane);
        } else if let Event::StopRequested { key, .. } = event {
            self.stopper = Some(Stopper::of(key));
        } else if let Event::Warned { warning, agent } = event {
            if let Warning::ToolDenied { tool } = warning {
                *self.denied.entry(tool.clone()).or_default() += 1;
                let station = agent.as_ref().and_then(|agent| self.agents.get(agent));
                let state = station.and_then(|station| station.state.clone());
                self.denied_in.extend(state.filter(|_| is_rule(tool)));
            } else if let Warning::Exhausted { iterations, .. } = warning {
                self.exhausted = Some(*iterations);
            }
        } else {
            self.count(event);
        }
    }

    /// A step that is done again is no further one.
    fn enter(&mut self, agent: &AgentId, state: &StateName) {
        let Some(station) = self.agents.get_mut(agent) else { return };
        let again = std::mem::take(&mut station.revived) && station.state.as_ref() == Some(state);
        if again {
            return;
        }
        (station.state, station.bill) = (Some(state.clone()), None);
        if *agent == AgentId::main() {
            self.path.enter(state);
        }
    }

    fn count(&mut self, event: &Event) {
        let Some((turn, charge)) = charged(event) else { return };
        if let Event::TurnSettled { .. } = event {
            self.settled.add(charge.amount);
        }
        self.charge(turn, charge);
    }

    fn ask(&mut self, agent: &AgentId, lane: &Lane) {
        if let Some(backend) = lane.backend() {
            self.backends.entry(backend.clone()).or_default();
        }
        if let Some(station) = self.agents.get_mut(agent) {
            station.asked = lane.backend().cloned();
        }
    }

    fn charge(&mut self, turn: &TurnId, charge: Charge) {
        if charge.basis == Basis::Estimated {
            self.estimated = self.estimated.plus(charge.amount);
        }
        if charge.basis != Basis::Free {
            self.paid.add(charge.amount);
        }
        let Some(station) = self.agents.get_mut(&turn.agent) else { return };
        station.spent = station.spent.plus(charge.amount);
        station.bill.get_or_insert_default().add(charge);
        if let Some(state) = &station.state {
            self.states.entry(state.clone()).or_default().add(charge.amount);
        }
        if let Some(backend) = &station.asked {
            self.backends.entry(backend.clone()).or_default().add(charge.amount);
        }
    }

    /// How many turns ended, whatever they ended with: each attempt is one, and so is a script.
    pub fn turns(&self) -> u64 {
        self.states.values().map(|spending| spending.turns).sum()
    }

    /// Whether the backends of the run are named.
    pub fn naming(&self) -> BackendLabels {
        BackendLabels::among(self.known())
    }

    /// All that its states may ask, or that were asked so far.
    pub(super) fn known(&self) -> impl Iterator<Item = &BackendName> {
        self.may_ask.iter().chain(self.backends.keys())
    }

    /// The state that took most of the money, and how much.
    pub fn most_expensive(&self) -> Option<(&StateName, Micros)> {
        let paid = self.states.iter().filter(|(_, spending)| spending.amount > Micros::ZERO);
        paid.map(|(state, spending)| (state, spending.amount)).max_by_key(|(_, amount)| *amount)
    }
}
