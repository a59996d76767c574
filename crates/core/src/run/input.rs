//! Inputs: everything that a run can learn from outside, including time.
//!
//! Inputs are journalled as the causes of events, so their names are part of the journal format.
//! What can be read again from a stored text is skipped, and [`crate::decide::replay`] reads it
//! again.

use super::start::Start;
use super::stop::{Interruption, StopMode};
use crate::crayfish::Verdict;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::Cost;
use crate::crayfish::Call;
use crate::crayfish::stored::Read;
use crate::failure::TurnFailure;
use crate::ids::{Nonce, SessionId, TurnId};
use crate::protocol::Reading;
use crate::value::Value;

use super::discarded::DiscardedCost;
use super::settings::Settings;
use crate::run::warning::Warning;

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
    /// A durable wait may be over: a retry, a usage limit or a question.
    Due,
    /// A user asks the run to end.
    Stop {
        mode: StopMode,
        /// The idempotency key: a second request with the same key changes nothing.
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
    /// The run adopts edited states.
    Adopt {
        /// The list of the edited states.
        manifest: Value,
    },
}

/// The request to resume a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The settings from now on.
    pub settings: Settings,
}

/// How a turn ended, as its executor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The turn ended with a text.
    Finished(Box<Finished>),
    /// The turn used up its budget share, and its last message is not a transition.
    Capped {
        cost: Cost,
        /// Whether the attempt wrote anything new.
        #[serde(default = "yes", skip_serializing_if = "is_true")]
        progressed: bool,
        /// Tools that the client denied.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        denied: Vec<String>,
        /// The session that the client opened, if the client could not use the chosen id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    Failed {
        failure: TurnFailure,
        /// The cost, which counts although there is no result.
        cost: Cost,
        /// Tools that the client denied.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        denied: Vec<String>,
        /// The session that the client opened, if the client could not use the chosen id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    /// The turn was interrupted.
    Interrupted {
        /// The cause of the interruption.
        by: Interruption,
        /// The cost, which counts although there is no result.
        cost: Cost,
        /// Whether the attempt wrote anything new.
        progressed: bool,
        /// The session that the client opened, if the client could not use the chosen id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
}

/// The default of a field whose common value is `true`.
const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_true(value: &bool) -> bool {
    *value
}

impl Outcome {
    pub fn cost(&self) -> Cost {
        match self {
            Self::Finished(finished) => finished.cost,
            Self::Capped { cost, .. }
            | Self::Failed { cost, .. }
            | Self::Interrupted { cost, .. } => *cost,
        }
    }

    /// Returns whether the budget share was used up.
    pub fn is_capped(&self) -> bool {
        match self {
            Self::Finished(finished) => finished.capped,
            Self::Capped { .. } => true,
            Self::Failed { .. } | Self::Interrupted { .. } => false,
        }
    }

    /// The session that the client opened, if the client could not use the chosen id.
    pub fn opened(&self) -> Option<&SessionId> {
        match self {
            Self::Finished(finished) => finished.session.as_ref(),
            Self::Capped { session, .. }
            | Self::Failed { session, .. }
            | Self::Interrupted { session, .. } => session.as_ref(),
        }
    }
}

/// A turn that ended with a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// The final message, or a script's standard output.
    pub text: Value,
    /// The tags of the text. Not journalled, because a replay reads the text again.
    #[serde(skip)]
    pub reading: Reading,
    /// The existing directories that its tags name: the name as written, and the absolute path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, String>,
    pub cost: Cost,
    /// Whether the client stopped at its budget share, after the text was complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capped: bool,
    /// The session that the client opened, if the client could not use the chosen id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The model that answered, if the client reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The end of a script's standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// Tools that the client denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Other warnings of the executor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The verdict on the output of an agent step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The value of a step's text. Not journalled, because a replay reads the text again.
    #[serde(skip)]
    pub read: Read,
}

impl Finished {
    /// Creates an outcome with a text and a cost, and defaults for the rest.
    pub fn new(text: Value, cost: Cost) -> Self {
        Self {
            text,
            reading: Reading::default(),
            directories: BTreeMap::new(),
            cost,
            capped: false,
            session: None,
            model: None,
            stderr: String::new(),
            denied: Vec::new(),
            warnings: Vec::new(),
            verdict: None,
            read: Read::default(),
        }
    }
}
