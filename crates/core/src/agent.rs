//! Agents: one thread of control each, with its state, its return stack and its conversation.
//!
//! This is data; transitions are decided in [`crate::machine`]. An agent that ended becomes an
//! [`EndedAgent`], which has only what others may still ask for.

mod cancelling;
mod handed;
mod location;
mod session;

pub use cancelling::CancelReason;
pub use handed::{HandedWorker, WorkerEnd};
pub use location::Location;
pub use session::{Session, SessionPlan};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::Micros;
use crate::failure::AgentFailure;
use crate::few::Few;
use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::protocol::{Question, ResultStatus, Tag};

use crate::time::{Span, Timestamp};
use crate::value::Value;

/// A live or failed agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// The name, unique in the run.
    pub id: AgentId,
    /// The agent that forked it; `None` for `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The position in the order of creation.
    pub born: u64,
    /// The conversation that its next prompt continues.
    pub session: Session,
    /// The backend that has the conversation: the one whose turn opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<BackendName>,
    /// Pending returns, outermost first.
    pub stack: Vec<Frame>,
    pub cwd: String,
    /// The model that the innermost call or function named.
    pub model: Option<String>,
    /// The backend that `model` is meant for; `None` until a prompt is entered with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_of: Option<BackendName>,
    /// Fork attributes, which are template variables as long as the agent lives.
    pub attributes: Few<String, Value>,
    /// How often the agent entered each state; empty in a run of steps, where every visit is the
    /// first.
    pub visits: BTreeMap<StateName, u32>,
    /// How many workers the agent has forked. Numbers are never reused, because worker names
    /// contain them.
    pub forks: u32,
    pub visit: Visit,
    /// Whether the agent can continue.
    pub status: AgentStatus,
}

/// An agent that ended with a result. It is small, because a run keeps one for every worker that
/// it ever had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedAgent {
    /// The agent that forked it; `None` for `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// How many workers it forked.
    // For `fork_counters` of the state file, which lists ended agents too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forks: u32,
    /// The result. A large one is a reference to a blob.
    pub result: Value,
}

/// One execution of a state or a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    pub location: Location,
    /// The number of the visit, from 1, counted over all states of the agent.
    pub number: u32,
    /// The result or input that the visit started with.
    pub input: Option<Value>,
    /// Whether that result is a success.
    #[serde(default, skip_serializing_if = "ResultStatus::is_ok")]
    pub result_status: ResultStatus,
    /// The workers whose ends the visit started with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed: Vec<HandedWorker>,
    /// The number of the current, or last, turn; 0 before the first.
    pub turn: u32,
    /// Reminders given since the visit began or was revived.
    pub reminders: u32,
    /// Retries made since the visit began or was revived.
    pub retries: u32,
    /// The cost of its turns so far.
    pub spent: Micros,
}

/// One entry of a return stack: what the caller gets back after the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The state in which the caller continues.
    pub state: StateName,
    /// The conversation of the caller.
    pub session: Session,
    /// The backend that has the conversation. `apply` fills it in; events do not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<BackendName>,
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The backend that `model` is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_of: Option<BackendName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// The agent has a turn at the scheduler.
    Live,
    /// The agent's fork waits until workers end.
    Held(PendingTransition),
    /// The agent is parked: its transition waits until something happens.
    Parked(Parked),
    /// The agent is parked: its transition waits for workers.
    Joining(Joining),
    /// The agent is parked: it waits for the answer of a person.
    Asking(Asking),
    /// The agent is cancelled, and its turn in flight is being ended.
    Cancelling(CancelReason),
    /// The agent failed. A kept transition is decided again when the agent is revived.
    Failed {
        failure: AgentFailure,
        /// The transition of the last paid turn, if there is one.
        kept: Option<PendingTransition>,
    },
}

/// The wait of a parked agent. Meanwhile the agent has no turn, no slot and no budget share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// The transition, which is decided again when the wait is over.
    pub kept: PendingTransition,
    /// The time at which the wait is over.
    pub until: Timestamp,
    /// The duration of a wait that was not given as a time.
    // With it a resume notices that the clock was set back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// The wait of an agent for its workers. The workers are in [`crate::run::Run::groups`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joining {
    /// The transition, which is decided again when the wait is over.
    pub kept: PendingTransition,
    /// The end of the longest wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The wait of an agent for the answer to its question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asking {
    /// The question, whose transition is decided again with the answer.
    pub kept: PendingTransition,
    /// The id of the question: the turn that asked.
    pub ask: TurnId,
    /// The time of the question.
    pub at: Timestamp,
    /// The answer, if it came while the run had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

impl Asking {
    /// Returns when the question expires.
    pub fn due(&self) -> Option<Timestamp> {
        self.kept.question()?.due(self.at)
    }
}

/// A transition that was read but not taken. Deciding it again costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingTransition {
    /// The tags, as written.
    pub tags: Vec<Tag>,
    /// The existing directories that the tags name: the name as written, and the absolute path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, String>,
}

impl PendingTransition {
    /// Returns the question, if it waits for an answer.
    pub fn question(&self) -> Option<&Question> {
        self.tags.iter().find_map(|tag| if let Tag::Ask(asked) = tag { Some(asked) } else { None })
    }

    /// Returns the state that it enters; of several workers, the state of the first.
    pub fn target(&self) -> &str {
        self.tags.iter().find_map(|tag| tag.kept_targets().next()).unwrap_or_default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Agent {
    /// Returns how often the agent has entered the state that it is in, this visit included.
    pub fn visit_count(&self) -> u32 {
        let count = self.visit.location.state().and_then(|state| self.visits.get(state));
        // Steps are not counted: each execution of a step has a key of its own, so it is the first.
        count.copied().unwrap_or(1)
    }

    /// Returns the model that a tag named, if it is meant for this backend: other backends do not
    /// know its name.
    pub fn model_for(&self, backend: &BackendName) -> Option<&String> {
        // Without `model_of`, no prompt has been entered with the model yet, so it is meant for
        // this one.
        self.model.as_ref().filter(|_| self.model_of.as_ref().is_none_or(|of| of == backend))
    }

    pub(crate) const fn status(&self) -> &AgentStatus {
        &self.status
    }

    /// Returns whether the agent still takes part in the run; a held or parked agent does.
    pub const fn is_live(&self) -> bool {
        match self.status {
            AgentStatus::Live
            | AgentStatus::Held(_)
            | AgentStatus::Parked(_)
            | AgentStatus::Joining(_)
            | AgentStatus::Asking(_)
            | AgentStatus::Cancelling(_) => true,
            AgentStatus::Failed { .. } => false,
        }
    }
}
