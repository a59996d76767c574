//! Inputs: everything that a run can learn from outside, including time.
//!
//! An input is complete: it can be written, sent to another process and read there. Inputs are
//! journalled as the causes of events, so their names are part of the journal format. The journal
//! leaves out what can be read again from a stored text; [`crate::decide::replay`] reads it again.

use super::start::Start;
use super::stop::{StopMode, StopOrigin};
use serde::{Deserialize, Serialize};

use crate::crayfish::Call;
use crate::crayfish::name::StepId;
use crate::ids::{AgentId, Nonce, TurnId};
use crate::value::Value;

use super::discarded::DiscardedCost;
use super::outcome::Outcome;
use super::settings::Settings;

/// A request or an observation, journalled as the cause of the events that follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    Start(Box<Start>),
    /// Resume a run whose earlier owner is gone.
    Resume(Box<Resume>),
    /// A turn ended.
    Settled {
        turn: TurnId,
        /// The attempt. An outcome of any other attempt is refused.
        attempt: u32,
        outcome: Outcome,
    },
    /// A durable wait may be over: a retry, a usage limit, a question or a parked agent.
    // Also continues a decision that was too large for one record: see `decide::batch`.
    Due,
    /// A user ends all waits of parked agents for a time.
    Now,
    /// The run is asked to end.
    Stop {
        mode: StopMode,
        // Requests in an inbox may lack it, because they always come from a user.
        #[serde(default)]
        by: StopOrigin,
        /// The idempotency key: a second request with the same key changes nothing.
        key: String,
    },
    /// A user cancels one agent.
    CancelAgent {
        agent: AgentId,
        by: String,
        /// The idempotency key of the request.
        key: String,
    },
    /// A user answered a question.
    Answer {
        ask: TurnId,
        value: Value,
        by: String,
        /// The idempotency key of the request.
        key: String,
    },
    /// A call brings what the caller of a run of steps knows.
    Call(Box<Call>),
    /// The records after `kept` were discarded.
    Rewind {
        /// The last kept record.
        kept: u64,
        /// A new nonce, so that no session id of the discarded records is used again.
        nonce: Nonce,
        /// The cost of the discarded records.
        #[serde(default, skip_serializing_if = "DiscardedCost::is_nothing")]
        discarded: DiscardedCost,
        /// The turns in flight whose ends were discarded: they are done again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        again: Vec<TurnId>,
        /// The settings at the end of the discarded records, if they differ.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        governed: Option<Box<Settings>>,
    },
    /// The run adopts edited states, or an edited document.
    Adopt {
        /// The list of the edited states.
        manifest: Value,
        /// The steps of the document that were edited.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<StepId>,
    },
}

/// The request to resume a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The settings from now on.
    pub settings: Settings,
    /// Whether only the waits for a time end. No user asked for another attempt, so failed agents
    /// stay failed, and missing logins stay missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wake: bool,
}

impl Input {
    /// Drops the parts that a replay reads again from stored texts.
    pub(crate) fn drop_readings(&mut self) {
        match self {
            Self::Settled { outcome, .. } => outcome.drop_readings(),
            Self::Call(call) => call.drop_readings(),
            Self::Start(_)
            | Self::Resume(_)
            | Self::Due
            | Self::Now
            | Self::Stop { .. }
            | Self::CancelAgent { .. }
            | Self::Answer { .. }
            | Self::Rewind { .. }
            | Self::Adopt { .. } => {}
        }
    }
}
