//! A thread of control: where it is, whom it returns to, what it carries.

mod session;

pub use session::{Session, SessionPlan};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::Micros;
use crate::crayfish::Key;
use crate::failure::Failure;
use crate::few::Few;
use crate::ids::{AgentId, BackendName, StateName};
use crate::protocol::Tag;
use crate::value::Value;

/// A live or failed agent. One that ended is gone from the run; its result is in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name.
    pub id: AgentId,
    /// Its place in the order of creation.
    pub born: u64,
    /// The conversation it carries.
    pub session: Session,
    /// The backend that holds it: the one whose turn opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<BackendName>,
    /// Pending returns, outermost first.
    pub stack: Vec<Frame>,
    /// Its working directory.
    pub cwd: String,
    /// The model of the innermost call or function that named one.
    pub model: Option<String>,
    /// The backend that it was named for; none as long as no prompt was entered with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_of: Option<BackendName>,
    /// Fork attributes: template variables for its whole life.
    pub attributes: Few<String, Value>,
    /// How often it entered each state.
    pub visits: BTreeMap<StateName, u32>,
    /// How many workers it has forked; never reused.
    pub forks: u32,
    /// The visit it is in.
    pub visit: Visit,
    /// Whether it can go on.
    pub status: AgentStatus,
}

/// One execution of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// The state.
    pub state: StateName,
    /// Agent-wide, from 1.
    pub number: u32,
    /// The result or input that it was entered with.
    pub input: Option<Value>,
    /// The number of the current, or last, turn; 0 before the first.
    pub turn: u32,
    /// Reminders given since the visit began or was revived.
    pub reminders: u32,
    /// Retries made since the visit began or was revived.
    pub retries: u32,
    /// What its turns cost so far.
    pub spent: Micros,
}

/// One entry of a return stack: what the caller gets back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Where it goes on.
    pub state: StateName,
    /// Its conversation.
    pub session: Session,
    /// The backend that holds it. It follows from the turns of the caller: events do not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<BackendName>,
    /// Its working directory.
    pub cwd: String,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The backend that it was named for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_of: Option<BackendName>,
}

/// Whether an agent can go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// It has a turn at the scheduler.
    Live,
    /// Its fork waits until workers end.
    Held(PendingTransition),
    /// It failed; a kept transition is decided again when it is revived.
    Failed {
        /// Why.
        failure: Failure,
        /// The transition of the paid turn, where there is one.
        kept: Option<PendingTransition>,
    },
}

/// A transition that was read but not taken: deciding it again costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingTransition {
    /// The tags, as written.
    pub tags: Vec<Tag>,
    /// The directories they name, as they were found: as written, and absolute.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, String>,
}

impl Agent {
    /// Returns the key of the step that this agent is at, in a run of steps.
    pub fn step_key(&self) -> Option<Key> {
        self.visit.state.as_str().parse().ok()
    }

    /// The model that a tag named for states of this backend: others do not know it.
    pub fn model_for(&self, backend: &BackendName) -> Option<&String> {
        self.model.as_ref().filter(|_| self.model_of.as_ref().is_none_or(|of| of == backend))
    }

    /// Whether it still takes part in the run.
    pub const fn is_live(&self) -> bool {
        match self.status {
            AgentStatus::Live | AgentStatus::Held(_) => true,
            AgentStatus::Failed { .. } => false,
        }
    }
}
