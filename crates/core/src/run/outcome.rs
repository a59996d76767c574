//! How a turn ended: one type from the backend to the journal.
//!
//! A backend reports the raw [`Reply`] of its client. The executor reads the reply, which gives a
//! [`ReadReply`], and leaves everything else as it is. The journal leaves out the tags and the
//! value of a step, because a replay reads them again from the stored text: see
//! [`Outcome::drop_readings`].

use std::collections::BTreeMap;
use std::convert::Infallible;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::budget::Cost;
use crate::crayfish::Verdict;
use crate::crayfish::stored::ParsedJson;
use crate::failure::TurnFailure;
use crate::ids::SessionId;
use crate::protocol::TagReading;
use crate::value::Value;

use super::stop::Interruption;
use super::warning::Warning;

/// How a turn ended, as its executor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome<T = ReadReply> {
    /// The turn ended with a text.
    Finished(Box<Finished<T>>),
    /// The turn used up its budget share, and its last message is not a transition.
    Capped {
        cost: Cost,
        /// Whether the attempt wrote anything new.
        #[serde(default = "yes", skip_serializing_if = "is_true")]
        progressed: bool,
        /// Tools that the client denied, one entry per call.
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
        /// Tools that the client denied, one entry per call.
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

/// A turn that ended with a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished<T = ReadReply> {
    pub reply: T,
    pub cost: Cost,
    /// Whether the client stopped at its budget share, after the text was complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    // Such a turn is charged at least its share, although it has an answer.
    pub capped: bool,
    /// The session that the client opened, if the client could not use the chosen id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The model that answered, if the client reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tools that the client denied, one entry per call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Other warnings of the executor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// The final message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub text: String,
    /// The JSON for the requested schema, from the client or from its message. Not every client
    /// validates it, so the executor must.
    pub structured: Option<Json>,
}

/// The final message of a client, or a script's standard output, as the executor read it. Large
/// texts are references.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadReply {
    pub text: Value,
    /// The tags of the text.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reading: TagReading,
    /// The existing directories that its tags name: the name as written, and the absolute path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, String>,
    /// The end of a script's standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The verdict on the output of an agent step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The value of a step's text.
    #[serde(default, skip_serializing_if = "ParsedJson::is_empty")]
    pub read: ParsedJson,
}

// The parsed form adds nothing to the text, so it is not compared.
impl PartialEq for ReadReply {
    fn eq(&self, other: &Self) -> bool {
        let Self { text, reading, directories, stderr, verdict, read: _ } = self;
        (text, reading, directories) == (&other.text, &other.reading, &other.directories)
            && (stderr, verdict) == (&other.stderr, &other.verdict)
    }
}

impl Eq for ReadReply {}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl<T> Outcome<T> {
    pub fn cost(&self) -> Cost {
        match self {
            Self::Finished(finished) => finished.cost,
            Self::Capped { cost, .. }
            | Self::Failed { cost, .. }
            | Self::Interrupted { cost, .. } => *cost,
        }
    }

    pub fn cost_mut(&mut self) -> &mut Cost {
        match self {
            Self::Finished(finished) => &mut finished.cost,
            Self::Capped { cost, .. }
            | Self::Failed { cost, .. }
            | Self::Interrupted { cost, .. } => cost,
        }
    }

    /// Returns whether the budget share was used up.
    pub fn is_capped(&self) -> bool {
        match self {
            Self::Finished(finished) => finished.capped,
            Self::Capped { .. } => true,
            // Only a client that reports its cap is known to have spent its share.
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

    /// Replaces the reply, if there is one, and keeps the rest.
    pub fn try_map<U, E>(self, read: impl FnOnce(T) -> Result<U, E>) -> Result<Outcome<U>, E> {
        Ok(match self {
            Self::Finished(finished) => {
                let (reply, rest) = finished.split();
                Outcome::Finished(Box::new(rest.with_reply(read(reply)?)))
            }
            Self::Capped { cost, progressed, denied, session } => {
                Outcome::Capped { cost, progressed, denied, session }
            }
            Self::Failed { failure, cost, denied, session } => {
                Outcome::Failed { failure, cost, denied, session }
            }
            Self::Interrupted { by, cost, progressed, session } => {
                Outcome::Interrupted { by, cost, progressed, session }
            }
        })
    }
}

impl Outcome<Reply> {
    /// Returns the outcome with its text, in which nothing was read.
    pub fn unread(self) -> Outcome {
        match self.try_map(|reply| Ok::<_, Infallible>(Value::Inline(reply.text).into())) {
            Ok(outcome) => outcome,
            Err(never) => match never {},
        }
    }
}

impl Outcome {
    /// Drops the parts that a replay reads again from the text.
    pub fn drop_readings(&mut self) {
        match self {
            Self::Finished(finished) => {
                finished.reply.reading = TagReading::default();
                finished.reply.read = ParsedJson::default();
            }
            // A failed step has a result, too, and its text is recorded.
            Self::Failed { failure: TurnFailure::Step { result, .. }, .. } => {
                result.read = ParsedJson::default();
            }
            Self::Failed { .. } | Self::Capped { .. } | Self::Interrupted { .. } => {}
        }
    }
}

impl<T> Finished<T> {
    /// Creates an outcome with a reply and a cost, and defaults for the rest.
    pub fn new(reply: T, cost: Cost) -> Self {
        Self {
            reply,
            cost,
            capped: false,
            session: None,
            model: None,
            denied: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl<T> Finished<T> {
    /// Returns the reply, and the rest.
    pub fn split(self) -> (T, Finished<()>) {
        let Self { reply, cost, capped, session, model, denied, warnings } = self;
        (reply, Finished { reply: (), cost, capped, session, model, denied, warnings })
    }
}

impl Finished<()> {
    pub fn with_reply<T>(self, reply: T) -> Finished<T> {
        let Self { reply: (), cost, capped, session, model, denied, warnings } = self;
        Finished { reply, cost, capped, session, model, denied, warnings }
    }
}

impl Reply {
    /// Creates a reply without structured output.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), structured: None }
    }
}

impl From<Value> for ReadReply {
    /// Returns a text in which nothing was read.
    fn from(text: Value) -> Self {
        Self {
            text,
            reading: TagReading::default(),
            directories: BTreeMap::new(),
            stderr: String::new(),
            verdict: None,
            read: ParsedJson::default(),
        }
    }
}
