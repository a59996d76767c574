//! What a run is between two inputs. It holds what is live or failed, and counters for the rest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::budget::Micros;
use crate::crayfish::StepsState;
use crate::ids::{AgentId, Nonce, RunId, StateName};
use crate::scheduler::Scheduler;
use crate::time::Timestamp;
use crate::value::Value;

use super::event::Ending;
use super::settings::Settings;
use crate::run::stop::StopMode;
use crate::scheduler::Hold;

/// One execution of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Session ids and process markers are derived from it.
    pub nonce: Nonce,
    /// The workflow as it was named, absolute.
    pub workflow: String,
    /// The directory or archive that is its scope, absolute.
    pub scope: String,
    /// The list of its states.
    pub manifest: Value,
    /// What governs it.
    pub settings: Settings,
    /// Live and failed agents.
    pub agents: BTreeMap<AgentId, Agent>,
    /// How many agents there have been.
    pub born: u64,
    /// How many are live.
    pub live: u32,
    /// How many ended well.
    pub ended: u64,
    /// Those that failed.
    pub failed: BTreeSet<AgentId>,
    /// Those whose fork waits, the oldest first.
    pub held: VecDeque<AgentId>,
    /// Their turns.
    pub scheduler: Scheduler,
    /// What all turns cost.
    pub spent: Micros,
    /// What the most expensive turn cost.
    pub most_expensive: Micros,
    /// How many turns could not be priced.
    pub unpriced: u64,
    /// How many visits there have been.
    pub visits: u64,
    /// How many turns were settled.
    pub settled: u64,
    /// Where it stands.
    pub phase: Phase,
    /// Requests that were seen.
    pub keys: BTreeSet<String>,
    /// Where its steps stand, when it is one of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Box<StepsState>>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing has been recorded.
    Unborn,
    /// It goes on.
    Open,
    /// It was asked to end, and waits for turns in flight.
    Stopping(StopMode),
    /// It has no more to do.
    Ended(Ending),
}

impl Default for Run {
    fn default() -> Self {
        Self {
            id: "".into(),
            nonce: "".into(),
            workflow: String::new(),
            scope: String::new(),
            manifest: Value::Inline(String::new()),
            settings: Settings::default(),
            agents: BTreeMap::new(),
            born: 0,
            live: 0,
            ended: 0,
            failed: BTreeSet::new(),
            held: VecDeque::new(),
            scheduler: Scheduler::default(),
            spent: Micros::ZERO,
            most_expensive: Micros::ZERO,
            unpriced: 0,
            visits: 0,
            settled: 0,
            phase: Phase::Unborn,
            keys: BTreeSet::new(),
            flow: None,
        }
    }
}

impl Run {
    /// What is neither spent nor reserved; none without a cap.
    pub fn unreserved(&self) -> Option<Micros> {
        let cap = self.settings.budget?;
        Some(cap.minus(self.spent).minus(self.scheduler.reserved))
    }

    /// Where it goes on: the states of its agents, also of those that failed, and of their returns.
    pub fn places(&self) -> impl Iterator<Item = &StateName> {
        self.agents.values().flat_map(|agent| {
            let returns = agent.stack.iter().map(|frame| &frame.state);
            std::iter::once(&agent.visit.state).chain(returns)
        })
    }

    /// How many workers are live; `main` is none.
    pub fn live_workers(&self) -> u32 {
        let main = self.agents.get(&AgentId::main()).is_some_and(Agent::is_live);
        self.live.saturating_sub(u32::from(main))
    }

    /// When something durable is due: a retry, the end of a usage limit, a question.
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.phase != Phase::Open {
            return None;
        }
        let retry = self.scheduler.retries.first().map(|(until, _)| *until);
        let quota = self.scheduler.holds.values().filter_map(|hold| match hold {
            Hold::Quota { until, .. } => Some(*until),
            Hold::Auth { .. } | Hold::Environment { .. } => None,
        });
        let ask = self.scheduler.expiries.first().map(|(due, _)| *due);
        retry.into_iter().chain(quota).chain(ask).min()
    }
}
