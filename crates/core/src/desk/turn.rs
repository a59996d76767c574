//! Turns at the desk.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::budget::Micros;
use crate::ids::{AgentId, BackendName, TurnId};
use crate::machine::SessionPlan;
use crate::protocol::Fault;
use crate::run::event::Hold;
use crate::time::Timestamp;

/// Everything that wants, has or awaits a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Desk {
    /// The current turn of each live agent.
    pub turns: BTreeMap<AgentId, Turn>,
    /// Waiting turns by lane and place.
    pub queues: BTreeMap<Lane, BTreeMap<u64, AgentId>>,
    /// The next place.
    pub next_order: u64,
    /// The turns in flight.
    pub in_flight: BTreeSet<AgentId>,
    /// How many of them are paid.
    pub paid_in_flight: u32,
    /// The shares of turns in flight.
    pub reserved: Micros,
    /// Retries that wait for their time.
    pub retries: BTreeSet<(Timestamp, AgentId)>,
    /// Backends of which no turn starts.
    pub holds: BTreeMap<BackendName, Hold>,
    /// Open questions.
    pub asks: BTreeMap<TurnId, Option<Timestamp>>,
}

/// One turn, from the moment it is wanted until it is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Where it queues.
    pub lane: Lane,
    /// What it sends.
    pub prompt: Prompt,
    /// How a first attempt gets its conversation.
    pub plan: SessionPlan,
    /// Its last place in the queue.
    pub order: u64,
    /// Attempts so far.
    pub attempt: u32,
    /// What the next attempt tells the client; none at the first.
    pub notice: Option<Notice>,
    /// Crashes in a row without progress.
    pub crashes: u32,
    /// Where it stands.
    pub phase: Phase,
}

/// Where a turn stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It waits for a slot and a share.
    Queued,
    /// It is in flight, with this share.
    Running {
        /// What it may spend.
        share: Option<Micros>,
    },
    /// It failed and is tried again then.
    Retrying {
        /// When.
        until: Timestamp,
    },
    /// It was cut off and waits for a resume, or it is over and waits for what follows.
    Idle,
}

/// Where turns queue: a lane that is blocked does not block the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Scripts cost nothing.
    Script,
    /// Turns of this backend.
    Prompt(BackendName),
}

/// What a turn sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// The body of the state.
    Body,
    /// A reminder.
    Reminder(Fault),
}

/// Why a prompt is sent again: the client is told before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The turn was cut off.
    Interrupted,
    /// The turn failed.
    Retried,
    /// The turn used up its share.
    NewShare,
    /// The agent had failed, and the run was resumed.
    Revived,
    /// The client lost the session.
    SessionLost,
}
