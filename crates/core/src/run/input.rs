//! What happens to a run: everything that `decide` may learn.

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

/// Something that was asked for or observed. It is journalled as the cause of what follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Begin.
    Start(Box<Start>),
    /// Go on with a run that has no owner any more.
    Resume(Box<Resume>),
    /// A turn is over.
    Settled {
        /// Which turn.
        turn: TurnId,
        /// Which attempt at it; any other is refused.
        attempt: u32,
        /// How it ended.
        outcome: Outcome,
    },
    /// A durable wait may be over.
    Due,
    /// A person asks the run to end.
    Stop {
        /// How.
        mode: StopMode,
        /// Names the request: the same key again is the same request.
        key: String,
    },
    /// A question was answered.
    Answer {
        /// Which question.
        ask: TurnId,
        /// The answer.
        value: Value,
        /// Who answered.
        by: String,
        /// Names the request.
        key: String,
    },
    /// The caller of a run of steps says what it knows.
    Call(Box<Call>),
    /// Everything after a record was cut away.
    Rewind {
        /// The last record that stayed.
        kept: u64,
        /// Sessions of the abandoned future must never be met again.
        nonce: Nonce,
        /// What it had cost.
        #[serde(default, skip_serializing_if = "DiscardedCost::is_nothing")]
        discarded: DiscardedCost,
        /// The turns in flight whose ends were cut away: they are done again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        again: Vec<TurnId>,
        /// What governed it at last, if that was something else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        governed: Option<Box<Settings>>,
    },
    /// The states were edited, and the run is to use them.
    Adopt {
        /// The new list of states.
        manifest: Value,
    },
}

/// How a run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// What governs it from here on.
    pub settings: Settings,
}

/// How a turn ended, as its executor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a text.
    Finished(Box<Finished>),
    /// Its share is used up, and its last message is no transition.
    Capped {
        /// What it cost.
        cost: Cost,
        /// Whether it had written anything new since the attempt began.
        #[serde(default = "yes", skip_serializing_if = "is_true")]
        progressed: bool,
        /// The tools that the client denied.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        denied: Vec<String>,
        /// The session, when the client could not take the one that was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    /// It failed.
    Failed {
        /// How.
        failure: TurnFailure,
        /// What it cost all the same.
        cost: Cost,
        /// The tools that the client denied.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        denied: Vec<String>,
        /// The session, when the client could not take the one that was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    /// It was cut off.
    Interrupted {
        /// By whom.
        by: Interruption,
        /// What it cost all the same.
        cost: Cost,
        /// Whether it had written anything new since the attempt began.
        progressed: bool,
        /// The session, when the client could not take the one that was chosen.
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
    /// What it cost.
    pub fn cost(&self) -> Cost {
        match self {
            Self::Finished(finished) => finished.cost,
            Self::Capped { cost, .. }
            | Self::Failed { cost, .. }
            | Self::Interrupted { cost, .. } => *cost,
        }
    }

    /// Whether the share was used up.
    pub fn is_capped(&self) -> bool {
        match self {
            Self::Finished(finished) => finished.capped,
            Self::Capped { .. } => true,
            Self::Failed { .. } | Self::Interrupted { .. } => false,
        }
    }

    /// The session, when the client could not take the one that was chosen.
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
    /// What was read in it. Not journalled: whoever decides again reads the text again.
    #[serde(skip)]
    pub reading: Reading,
    /// The directories that its tags name and that exist: as written, and absolute.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, String>,
    /// What it cost.
    pub cost: Cost,
    /// Whether its client stopped because the share was used up, and the text was complete by then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capped: bool,
    /// The session, when the client could not take the one that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The model that answered, where the client said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The end of a script's standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The tools that the client denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// What else is worth a look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Whether the output of an agent step is what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What the text of a step means. Not journalled: whoever decides again reads the text again.
    #[serde(skip)]
    pub read: Read,
}

impl Finished {
    /// A text at this cost, and nothing more to say of it.
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
