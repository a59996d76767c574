//! The totals of a run: its times, its path, its money and its denied tools.
//!
//! One fold with two owners: [`super::Ledger`] stores the totals in snapshots, and
//! [`super::RunView`] shows them. The serde names are part of the snapshot format.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::agent::Location;
use crate::budget::{Basis, Charge, Micros};
use crate::crayfish::state::StepEvent;
use crate::failure::AgentFailure;
use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::pairs;
use crate::run::stop::StopOrigin;
use crate::run::warning::Warning;
use crate::run::{Event, Settings};
use crate::scheduler::Lane;
use crate::time::Timestamp;
use crate::value::Value;

use super::backend_labels::BackendLabels;
use super::denied::is_rule;
use super::path::RunPath;
use super::summary::{AgentSummary, charged};

/// Facts about the whole run that [`crate::run::Run`] does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    /// When the run was last started or resumed.
    #[serde(default)]
    pub driven_since: Timestamp,
    #[serde(default)]
    pub input: Option<Value>,
    /// The states or steps that `main` visited.
    #[serde(default)]
    pub path: RunPath,
    /// Turns and money by state or step.
    #[serde(with = "pairs")]
    pub spending: BTreeMap<Location, Spending>,
    /// Turns and money by backend, for every backend that was used.
    #[serde(default)]
    pub backends: BTreeMap<BackendName, Spending>,
    /// The backends that its states may use; empty in old journals.
    #[serde(default)]
    pub may_ask: BTreeSet<BackendName>,
    /// How many workers were ever spawned.
    #[serde(default)]
    workers: u64,
    /// How many of them were branches of a document that has begun again since.
    #[serde(default)]
    pub(super) replaced_workers: u64,
    /// How many workers were cancelled.
    #[serde(default)]
    pub(super) cancelled_workers: u64,
    /// Turns that were paid, however they ended.
    #[serde(default)]
    pub paid: Spending,
    pub settled: Spending,
    /// The estimated part of the money.
    #[serde(default)]
    pub estimated: Micros,
    /// The costs that replies from a file named. They count towards the cap, but they are not
    /// money.
    #[serde(default)]
    pub rehearsed: Micros,
    /// Whether replies from a file answer for all backends now.
    #[serde(default)]
    pub(super) rehearses_all: bool,
    /// Tools that clients were denied, with their counts.
    pub denied: BTreeMap<String, u32>,
    /// The states in which a rule could allow some of them.
    #[serde(default)]
    pub denied_in: BTreeSet<StateName>,
    /// The origin of the last request to end.
    #[serde(default)]
    pub stopper: Option<StopOrigin>,
    /// The iterations of a loop that ended without a result.
    #[serde(default)]
    pub exhausted: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spending {
    pub turns: u64,
    pub amount: Micros,
}

impl Spending {
    /// Adds the cost of an attempt. Several attempts are one turn.
    fn add(&mut self, turns: u64, amount: Micros) {
        self.turns += turns;
        self.amount = self.amount.plus(amount);
    }
}

impl Totals {
    /// Folds in an event. `summary` is the summary of its agent before the event.
    pub(super) fn note(&mut self, at: Timestamp, event: &Event, summary: Option<&AgentSummary>) {
        self.updated_at = at;
        if let Event::RunStarted(start) = event {
            (self.started_at, self.driven_since) = (at, at);
            self.input.clone_from(&start.input);
            self.may_ask.clone_from(&start.backends);
            self.govern(&start.settings);
        } else if let Event::RunResumed { settings } = event {
            self.driven_since = at;
            self.govern(settings);
            self.exhausted = None;
        } else if let Event::RunRewound { governed, discarded, .. } = event {
            if let Some(settings) = governed {
                self.govern(settings);
            }
            if self.rehearses_all {
                self.rehearsed = self.rehearsed.plus(discarded.amount);
            }
        } else if let Event::AgentFailed {
            failure: AgentFailure::Exhausted { iterations, .. },
            ..
        } = event
        {
            self.exhausted = Some(*iterations);
        } else if let Event::VisitEntered { agent, location, .. } = event {
            self.enter(agent, location, summary);
        } else if let Event::TurnQueued { lane: Lane::Prompt(backend), .. } = event {
            // An entry without turns: the backend was used, even if nothing is paid yet.
            self.backends.entry(backend.clone()).or_default();
        } else if let Event::AgentSpawned { parent: Some(_), .. } = event {
            self.workers += 1;
        } else if let Event::AgentCancelled { .. } = event {
            // A worker that is not known is not counted, because it has left the run already.
            self.cancelled_workers += u64::from(summary.is_some());
        } else if let Event::Stepped { event: StepEvent::Begun { parent: None, .. }, .. } = event {
            self.replaced_workers = self.workers;
        } else if let Event::StopRequested { by, .. } = event {
            self.stopper = Some(*by);
        } else if let Event::Warned { warning, .. } = event {
            self.warn(summary, warning);
        } else {
            self.count(event, summary);
        }
    }

    fn govern(&mut self, settings: &Settings) {
        self.rehearses_all = settings.rehearses(&settings.backend);
    }

    /// Enters a state or a step. A step that is repeated after a failure is not another visit.
    fn enter(&mut self, agent: &AgentId, location: &Location, summary: Option<&AgentSummary>) {
        let Some(summary) = summary else { return };
        if *agent == AgentId::main() && !summary.is_repeating(location) {
            self.path.enter(location);
        }
    }

    fn warn(&mut self, summary: Option<&AgentSummary>, warning: &Warning) {
        if let Warning::ToolDenied { tool } = warning {
            *self.denied.entry(tool.clone()).or_default() += 1;
            let state = summary.and_then(|summary| summary.location.as_ref()?.state().cloned());
            // A denial in prose has no rule, so no state could allow it.
            self.denied_in.extend(state.filter(|_| is_rule(tool)));
        } else if let Warning::Exhausted { iterations, .. } = warning {
            self.exhausted = Some(*iterations);
        }
    }

    fn count(&mut self, event: &Event, summary: Option<&AgentSummary>) {
        let Some((turn, charge)) = charged(event) else { return };
        // Only settled turns are reused by a resume; the others are repeated or continued.
        if let Event::TurnSettled { .. } = event {
            self.settled.add(1, charge.amount);
        }
        self.charge(turn, charge, summary);
    }

    fn charge(&mut self, turn: &TurnId, charge: Charge, summary: Option<&AgentSummary>) {
        let is_new = |last: Option<&TurnId>| u64::from(last != Some(turn));
        let ended = is_new(summary.and_then(|summary| summary.last_ended.as_ref()));
        let paid = is_new(summary.and_then(|summary| summary.last_paid.as_ref()));
        if charge.basis == Basis::Estimated {
            self.estimated = self.estimated.plus(charge.amount);
        }
        if charge.basis != Basis::Free {
            self.paid.add(paid, charge.amount);
        }
        // The totals above count even if the place of the turn is not known.
        let Some(summary) = summary else { return };
        if let Some(location) = &summary.location {
            self.spending.entry(location.clone()).or_default().add(ended, charge.amount);
        }
        if let Some(backend) = &summary.asked {
            if self.rehearses_all || backend.as_str() == BackendName::SCRIPTED {
                self.rehearsed = self.rehearsed.plus(charge.amount);
            }
            self.backends.entry(backend.clone()).or_default().add(ended, charge.amount);
        }
    }

    /// Returns how many turns ended, in any way. Scripts count, further attempts do not.
    pub fn turns(&self) -> u64 {
        self.spending.values().map(|spending| spending.turns).sum()
    }

    /// Returns whether texts name the backends of the run.
    pub fn naming(&self) -> BackendLabels {
        BackendLabels::among(self.known())
    }

    /// Iterates over the backends that its states may use, and those that were used.
    pub(super) fn known(&self) -> impl Iterator<Item = &BackendName> {
        self.may_ask.iter().chain(self.backends.keys())
    }

    /// Returns the most expensive state or step, and its cost.
    pub fn most_expensive(&self) -> Option<(&Location, Micros)> {
        let paid = self.spending.iter().filter(|(_, spending)| spending.amount > Micros::ZERO);
        paid.map(|(location, spending)| (location, spending.amount))
            .max_by_key(|(_, amount)| *amount)
    }
}
