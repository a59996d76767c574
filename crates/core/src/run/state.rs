//! The state of a run between two inputs.
//!
//! It holds agents that are live or failed. It keeps only the parent, the fork count and the result
//! of an agent that ended, so that it grows with the number of agents and not with their turns.
//! Only `apply` changes it. Its status for users is computed in [`mod@crate::view::status`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AgentStatus, Asking, EndedAgent};
use crate::budget::Micros;
use crate::failure::AgentFailure;
use crate::ids::{AgentId, Nonce, RunId, StateName};
use crate::scheduler::Scheduler;
use crate::time::Timestamp;
use crate::value::Value;

use super::event::{Ending, is_zero};
use super::group::Group;
use super::program::Program;
use super::settings::Settings;
use crate::run::stop::StopMode;

/// One execution of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    /// The seed of session ids and process markers.
    pub nonce: Nonce,
    /// The absolute path of the workflow as the user named it.
    pub workflow: String,
    /// The absolute path of the directory or archive that contains its states.
    pub scope: String,
    pub manifest: Value,
    /// The program, with the state that only its language has.
    #[serde(default, skip_serializing_if = "Program::is_states")]
    pub program: Program,
    pub settings: Settings,
    /// Live and failed agents.
    pub agents: BTreeMap<AgentId, Agent>,
    /// How many agents were ever spawned.
    pub born: u64,
    // Kept beside `agents`, so that no decision has to count them.
    pub live: u32,
    /// Agents that ended with a result.
    pub ended: BTreeMap<AgentId, EndedAgent>,
    pub failed: BTreeSet<AgentId>,
    /// Agents whose fork waits for room, oldest first.
    pub held: VecDeque<AgentId>,
    /// The workers that agents wait for, by their parents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<AgentId, Group>,
    /// Failed workers that were handed to their parents. They do not make the run `failed`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub handed_failures: BTreeMap<AgentId, AgentFailure>,
    /// Agents that are being cancelled.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cancelling: BTreeSet<AgentId>,
    /// How many agents are parked: they wait for a time or for workers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parked: u32,
    pub scheduler: Scheduler,
    /// The cost of all turns.
    pub spent: Micros,
    /// The cost of the most expensive turn, which estimates turns of unknown cost.
    pub most_expensive: Micros,
    /// How many turns have no price.
    pub unpriced: u64,
    /// How many visits were ever entered.
    pub visits: u64,
    /// How many turns were settled.
    pub settled: u64,
    pub phase: Phase,
    /// Idempotency keys of the requests that were recorded.
    // Kept for the whole run, because a request can be delivered again after any crash.
    pub keys: BTreeSet<String>,
}

/// A phase in the life of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing has been recorded.
    Unborn,
    /// Turns may start.
    Open,
    /// A stop was requested. Turns in flight may still end.
    Stopping(StopMode),
    /// No turn starts until a resume.
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
            program: Program::States,
            settings: Settings::default(),
            agents: BTreeMap::new(),
            born: 0,
            live: 0,
            ended: BTreeMap::new(),
            failed: BTreeSet::new(),
            held: VecDeque::new(),
            groups: BTreeMap::new(),
            handed_failures: BTreeMap::new(),
            cancelling: BTreeSet::new(),
            parked: 0,
            scheduler: Scheduler::default(),
            spent: Micros::ZERO,
            most_expensive: Micros::ZERO,
            unpriced: 0,
            visits: 0,
            settled: 0,
            phase: Phase::Unborn,
            keys: BTreeSet::new(),
        }
    }
}

impl Run {
    /// Returns the money that is neither spent nor reserved; `None` without a cap.
    pub fn unreserved(&self) -> Option<Micros> {
        let cap = self.settings.budget?;
        Some(cap.minus(self.spent).minus(self.scheduler.reserved))
    }

    /// Returns the states of all agents, including failed ones, and of their returns.
    pub fn places(&self) -> impl Iterator<Item = &StateName> {
        self.agents.values().flat_map(|agent| {
            let returns = agent.stack.iter().map(|frame| &frame.state);
            agent.visit.location.state().into_iter().chain(returns)
        })
    }

    /// Returns the results of the agents that ended, and the reasons of those that ended as failed
    /// on purpose.
    pub fn results(&self) -> impl Iterator<Item = (&AgentId, &Value)> {
        let ended = self.ended.iter().map(|(agent, ended)| (agent, &ended.result));
        let reason = |id| match &self.agents.get(id)?.status {
            AgentStatus::Failed { failure: AgentFailure::Declared { reason }, .. } => {
                Some((id, reason))
            }
            AgentStatus::Failed { .. }
            | AgentStatus::Live
            | AgentStatus::Held(_)
            | AgentStatus::Parked(_)
            | AgentStatus::Joining(_)
            | AgentStatus::Asking(_)
            | AgentStatus::Cancelling(_) => None,
        };
        ended.chain(self.failed.iter().filter_map(reason))
    }

    /// Returns how many agents have the answer to their question and have not continued yet.
    pub fn answered_agents(&self) -> u32 {
        let is_answered = |agent: &&Agent| {
            matches!(agent.status, AgentStatus::Asking(Asking { answer: Some(_), .. }))
        };
        u32::try_from(self.agents.values().filter(is_answered).count()).unwrap_or(u32::MAX)
    }

    /// Returns the result of `main`, or the reason for which it ended as failed.
    pub fn main_result(&self) -> Option<&Value> {
        let main = AgentId::main();
        self.results().find(|(agent, _)| **agent == main).map(|(_, result)| result)
    }

    /// Returns how many workers every agent has forked, including agents that ended. Agents without
    /// workers are left out.
    pub fn forks(&self) -> BTreeMap<&AgentId, u32> {
        let present = self.agents.iter().map(|(id, agent)| (id, agent.forks));
        let ended = self.ended.iter().map(|(id, agent)| (id, agent.forks));
        present.chain(ended).filter(|(_, forks)| *forks > 0).collect()
    }

    /// Returns the number of live workers, which excludes `main`.
    pub fn live_workers(&self) -> u32 {
        let main = self.agents.get(&AgentId::main()).is_some_and(Agent::is_live);
        self.live.saturating_sub(u32::from(main))
    }

    /// Returns the time of the next durable wait that ends: a retry, a usage limit, a question or a
    /// parked agent.
    pub fn next_due(&self) -> Option<Timestamp> {
        // A stopping or ended run waits for nothing: its timers count again after a resume.
        if self.phase != Phase::Open {
            return None;
        }
        self.scheduler.timers.next()
    }
}
