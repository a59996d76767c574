//! Failures of turns and of agents.
//!
//! The kind of a turn's failure decides what follows (retry, hold, or failure of the agent) in
//! `decide::settle`. No wording of a client decides. Names are part of the journal format.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::Micros;
use crate::crayfish::stored::Stored;
use crate::crayfish::{ErrorCode, VariableProblem};
use crate::ids::{AgentId, BackendName, SessionId, StateName};
use crate::protocol::{Fault, TagName};
use crate::text::{CommandPhrase, counted, excerpt, joined_lines};
use crate::time::{Span, Timestamp};
use crate::value::Value;

/// The failure of a turn, as its executor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFailure {
    /// A failure that a retry may fix: network, overload, a client that died without a result.
    Transient { why: String },
    /// A time limit was reached. Agents are retried, scripts fail.
    Timeout { clock: Clock, after: Span },
    /// A usage limit of the backend was reached.
    Quota {
        /// The end of the limit, if the backend reported it.
        until: Option<Timestamp>,
        why: String,
    },
    /// A user has to log in.
    Auth { why: String },
    /// The client reports that the turn failed.
    Task { why: String },
    /// The client does not have the session.
    LostSession {
        /// The session that was asked for.
        session: SessionId,
    },
    /// A script failed.
    Script {
        /// `exit status 1`, `signal 9`.
        status: String,
        /// The end of its standard error.
        stderr: String,
        /// The first tag in its output, which does not count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<TagName>,
    },
    /// The output was larger than the limit.
    OutputTooLarge {
        /// The limit in bytes.
        limit: u64,
        /// The beginning of the output.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        head: String,
        /// The end of the part that was kept.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
    },
    /// The machine lacks something that every turn needs, such as space on the disk. Nothing is
    /// tried again until a user resumes the run.
    Environment { why: String },
    /// The turn could not be started: the client or the directory does not exist.
    NotStarted { why: String },
    /// The program of a step failed.
    Step {
        /// The reason.
        why: String,
        /// The result, which is kept although the step failed.
        result: Stored,
        /// Whether a retry may help.
        again: bool,
    },
}

/// The time limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Until the first output.
    FirstOutput,
    /// Between two outputs.
    Idle,
    /// The whole turn.
    Wall,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentFailure {
    /// Its turn failed permanently, or too often.
    Turn(TurnFailure),
    /// It broke the protocol too often.
    Protocol {
        /// The last fault. Boxed, because failures are often the error of a result.
        fault: Box<Fault>,
        /// The end of a script's standard error.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
        /// A few of the tags that would be accepted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accepted: Vec<String>,
    },
    /// `max_visits` is reached, and no `then` leads on.
    Visits {
        /// The state that the agent could not enter.
        state: StateName,
        /// Its limit.
        limit: u32,
    },
    /// A return, or the `then` of a state, leads to a state whose backend does not have the
    /// conversation.
    OtherBackend {
        /// The state that the agent could not enter.
        state: StateName,
        /// The backend that answers the state.
        answers: BackendName,
        /// The backend that has the conversation.
        holds: BackendName,
        /// The state whose `then` leads there, because its `max_visits` is reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead_of: Option<StateName>,
    },
    /// The budget of the visit is used up, and another turn is needed.
    VisitBudget { budget: Micros },
    /// One message asks for more workers than `max_agents` of the settings allows.
    TooManyAgents {
        /// The number of workers that it asks for.
        asked: usize,
        /// `max_agents` of the settings.
        limit: u32,
    },
    /// Only held agents are left, so that none can end and make room.
    HeldForGood {
        /// `max_agents` of the settings.
        limit: u32,
    },
    /// A worker's name would be longer than [`AgentId::MAX`].
    TooDeep {
        /// The agent that forked.
        parent: AgentId,
    },
    /// Crashes interrupted the turn too often without progress.
    Crashes { count: u32 },
    /// The turn used up its budget share too often without output.
    Stalled { count: u32 },
    /// A script was interrupted, and the run does not repeat such scripts.
    InterruptedScript,
    /// The client was denied a tool, and the state has `on_denied: fail`.
    Denied { tools: Vec<String> },
    /// A question was not answered in time.
    Unanswered,
    /// The agent ended as failed on purpose.
    Declared {
        /// The payload of its result.
        reason: Value,
    },
    /// A loop reached its last iteration without success.
    Exhausted {
        iterations: u32,
        /// The command that never passed, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<String>,
    },
    /// A step of a document failed.
    Step {
        code: ErrorCode,
        message: String,
        /// The variable of the run that is the cause, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variable: Option<VariableProblem>,
    },
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FirstOutput => "no first output",
            Self::Idle => "no output",
            Self::Wall => "not done",
        })
    }
}

impl fmt::Display for TurnFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transient { why } => write!(f, "transient failure: {why}"),
            Self::Timeout { clock, after } => write!(f, "timed out: {clock} after {after}"),
            Self::Quota { why, .. } => write!(f, "usage limit: {why}"),
            Self::Auth { why } => write!(f, "not logged in: {why}"),
            Self::Task { why } => write!(f, "the client reports failure: {why}"),
            Self::LostSession { session } => write!(f, "the client knows no session {session}"),
            Self::Script { status, stderr, tag } => {
                write!(f, "script: {status}")?;
                if let Some(tag) = tag {
                    write!(f, ", so its <{tag}> does not count")?;
                }
                if stderr.is_empty() {
                    return Ok(());
                }
                // Log lines and `why` show a failure in one line.
                write!(f, ": {}", joined_lines(stderr))
            }
            Self::OutputTooLarge { limit, .. } => {
                write!(f, "output too large: more than {} MiB", limit / (1024 * 1024))
            }
            Self::NotStarted { why } => write!(f, "could not start: {why}"),
            Self::Environment { why } | Self::Step { why, .. } => f.write_str(why),
        }
    }
}

impl fmt::Display for AgentFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(failure) => write!(f, "{failure}"),
            Self::Protocol { fault, stderr, accepted } => {
                write!(f, "{fault}")?;
                if let Some(instead) = fault.instead() {
                    write!(f, ": {instead}")?;
                }
                if !accepted.is_empty() {
                    write!(f, "; write {}", accepted.join(" or "))?;
                }
                if stderr.is_empty() {
                    Ok(())
                } else {
                    write!(f, "; stderr: {}", joined_lines(stderr))
                }
            }
            Self::Visits { state, limit } => {
                let visits = counted(*limit, "visit");
                write!(f, "{state} reached its limit of {visits} and has no `then`")
            }
            Self::OtherBackend { state, answers, holds, instead_of } => {
                match instead_of {
                    Some(limited) => {
                        write!(f, "{limited} reached its visit limit, but its `then`, {state}, ")?;
                    }
                    None => write!(f, "{state} ")?,
                }
                write!(f, "is answered by {answers}, and the conversation belongs to {holds}")
            }
            Self::VisitBudget { budget } => write!(f, "the visit's budget of {budget} is spent"),
            Self::TooManyAgents { asked, limit } => {
                write!(
                    f,
                    "one message asks for {asked} workers, and the limit is {}",
                    counted(*limit, "agent")
                )
            }
            Self::HeldForGood { limit } => {
                let agents = counted(*limit, "agent");
                write!(f, "cannot fork: the limit is {agents} and no running agent can finish")
            }
            Self::TooDeep { parent } => write!(f, "the name of a worker of {parent} is too long"),
            Self::Crashes { count } => {
                write!(f, "the turn was interrupted {count} times in a row without any progress")
            }
            Self::Stalled { count } => write!(
                f,
                "the turn used up its budget share {count} times in a row without any output"
            ),
            Self::InterruptedScript => write!(f, "the script was interrupted and is not repeated"),
            Self::Denied { tools } => write!(f, "the client denied {}", tools.join(", ")),
            Self::Unanswered => write!(f, "the question was not answered in time"),
            Self::Declared { reason } => declared(f, reason),
            Self::Exhausted { iterations, until } => exhausted(f, *iterations, until.as_deref()),
            Self::Step { code, message, .. } => write!(f, "{code}: {message}"),
        }
    }
}

fn exhausted(f: &mut fmt::Formatter<'_>, iterations: u32, until: Option<&str>) -> fmt::Result {
    let count = counted(iterations, "iteration");
    match until {
        None => write!(f, "{count} without a result"),
        Some(command) => write!(f, "{count}, and {} never passed", CommandPhrase(command)),
    }
}

fn declared(f: &mut fmt::Formatter<'_>, reason: &Value) -> fmt::Result {
    // Characters; a reason is usually a sentence, and the logs have all of it.
    const SHOWN: usize = 300;
    match reason {
        Value::Inline(text) if text.trim().is_empty() => f.write_str("it gave no reason"),
        Value::Inline(text) => f.write_str(&excerpt(&joined_lines(text.trim()), SHOWN)),
        Value::Blob(blob) => write!(f, "its reason has {} bytes", blob.length),
    }
}
