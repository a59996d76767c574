//! What a run no longer holds, for those who ask: results, the way that was taken, who answered, and
//! where the money went.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::budget::{Basis, Charge, Micros};
use crate::crayfish::Fact;
use crate::desk::Lane;
use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::run::Event;
use crate::run::event::Warning;
use crate::time::Timestamp;
use crate::value::Value;

use super::backends::Naming;
use super::denied::is_rule;
use super::path::Path;
use super::turns::charged;

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
    current: BTreeMap<AgentId, StateName>,
    #[serde(default)]
    asked: BTreeMap<AgentId, BackendName>,
    /// The step that `main` is about to do again.
    #[serde(default)]
    revived: Option<StateName>,
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
        if let Event::RunStarted(start) = event {
            (self.started_at, self.driven_since) = (at, at);
            self.input.clone_from(&start.input);
            self.may_ask.clone_from(&start.backends);
        } else if let Event::RunResumed { .. } = event {
            self.driven_since = at;
        } else if let Event::VisitEntered { agent, state, .. } = event {
            self.current.insert(agent.clone(), state.clone());
            // A step that is done again is no further one.
            if *agent == AgentId::main() && self.revived.take().as_ref() != Some(state) {
                self.path.enter(state);
            }
        } else if let Event::Stepped { agent, fact: Fact::Revived } = event {
            if *agent == AgentId::main() {
                self.revived = self.current.get(agent).cloned();
            }
        } else if let Event::Moved { agent, forks, .. } = event
            && *forks > 0
        {
            self.forks.insert(agent.clone(), *forks);
        } else if let Event::AgentEnded { agent, result } = event {
            self.current.remove(agent);
            self.asked.remove(agent);
            self.results.insert(agent.clone(), result.clone());
        } else if let Event::TurnQueued { turn, lane, .. } = event {
            self.ask(&turn.agent, lane);
        } else if let Event::StopRequested { key, .. } = event {
            self.stopper = Some(Stopper::of(key));
        } else if let Event::Warned { warning, agent } = event {
            if let Warning::ToolDenied { tool } = warning {
                *self.denied.entry(tool.clone()).or_default() += 1;
                let state = agent.as_ref().and_then(|agent| self.current.get(agent));
                self.denied_in.extend(state.filter(|_| is_rule(tool)).cloned());
            } else if let Warning::Exhausted { iterations, .. } = warning {
                self.exhausted = Some(*iterations);
            }
        } else {
            self.count(event);
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
        match lane {
            Lane::Script => drop(self.asked.remove(agent)),
            Lane::Prompt(backend) => {
                self.backends.entry(backend.clone()).or_default();
                self.asked.insert(agent.clone(), backend.clone());
            }
        }
    }

    fn charge(&mut self, turn: &TurnId, charge: Charge) {
        if charge.basis == Basis::Estimated {
            self.estimated = self.estimated.plus(charge.amount);
        }
        if charge.basis != Basis::Free {
            self.paid.add(charge.amount);
        }
        if let Some(state) = self.current.get(&turn.agent) {
            self.states.entry(state.clone()).or_default().add(charge.amount);
        }
        if let Some(backend) = self.asked.get(&turn.agent) {
            self.backends.entry(backend.clone()).or_default().add(charge.amount);
        }
    }

    /// How many turns ended, whatever they ended with: each attempt is one, and so is a script.
    pub fn turns(&self) -> u64 {
        self.states.values().map(|spending| spending.turns).sum()
    }

    /// Whether the backends of the run are named.
    pub fn naming(&self) -> Naming {
        Naming::among(self.may_ask.iter().chain(self.backends.keys()))
    }

    /// The state that took most of the money, and how much.
    pub fn dearest(&self) -> Option<(&StateName, Micros)> {
        let paid = self.states.iter().filter(|(_, spending)| spending.amount > Micros::ZERO);
        paid.map(|(state, spending)| (state, spending.amount)).max_by_key(|(_, amount)| *amount)
    }
}
