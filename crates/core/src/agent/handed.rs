//! The ends of workers, as the agent that waited for them receives them.

use serde::{Deserialize, Serialize};

use crate::failure::AgentFailure;
use crate::few::Few;
use crate::ids::AgentId;
use crate::value::Value;

/// A worker in the list that its parent receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedWorker {
    pub agent: AgentId,
    pub end: WorkerEnd,
    #[serde(default, skip_serializing_if = "Few::is_empty")]
    pub attributes: Few<String, Value>,
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerEnd {
    Ended(Value),
    Failed(AgentFailure),
    Cancelled,
}
