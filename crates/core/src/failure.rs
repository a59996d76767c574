//! Why a turn, or an agent, failed. Each kind has its own policy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::Micros;
use crate::crayfish::stored::Stored;
use crate::ids::{AgentId, BackendName, SessionId, StateName};
use crate::protocol::Fault;
use crate::text::counted;
use crate::time::{Span, Timestamp};

/// What an edge saw go wrong in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFailure {
    /// Worth another try: network, overload, a client that died without a result.
    Transient {
        /// What happened.
        why: String,
    },
    /// One of the clocks ran out. Agents are retried, scripts fail.
    Timeout {
        /// Which clock.
        clock: Clock,
        /// Its length.
        after: Span,
    },
    /// The usage limit of a backend.
    Quota {
        /// When it is lifted, where the backend said so.
        until: Option<Timestamp>,
        /// What the backend said.
        why: String,
    },
    /// A person has to log in.
    Auth {
        /// What to do.
        why: String,
    },
    /// The client says that the turn failed.
    Task {
        /// What it said.
        why: String,
    },
    /// The client knows no such session.
    LostSession {
        /// The session that was asked for.
        session: SessionId,
    },
    /// A script ended badly.
    Script {
        /// `exit status 1`, `signal 9`.
        status: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// More output than is kept.
    OutputTooLarge {
        /// The limit in bytes.
        limit: u64,
        /// How it began.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        head: String,
        /// The last of what was kept.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
    },
    /// The machine lacks something that every turn needs, such as room on the disk. Nothing is tried
    /// again until somebody resumes the run.
    Environment {
        /// What is missing.
        why: String,
    },
    /// The turn could not be started: no such client, no such directory.
    NotStarted {
        /// Why.
        why: String,
    },
    /// The program of a step did not do what the step says.
    Step {
        /// What it did.
        why: String,
        /// What it left all the same.
        result: Stored,
        /// Whether another try may help.
        again: bool,
    },
}

/// The clocks of a turn.
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

/// Why an agent failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Its turn failed, for good or once too often.
    Turn(TurnFailure),
    /// It broke the protocol more often than it may.
    Protocol {
        /// The last fault.
        fault: Fault,
        /// The end of a script's standard error.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
    },
    /// `max_visits` is reached, and there is no way on.
    Visits {
        /// The state that would have been entered.
        state: StateName,
        /// Its limit.
        limit: u32,
    },
    /// A return, or the `then` of a state, leads to a state whose backend does not hold the conversation.
    OtherBackend {
        /// The state that would have been entered.
        state: StateName,
        /// The backend that answers it.
        answers: BackendName,
        /// The backend that holds the conversation.
        holds: BackendName,
        /// The state whose `then` leads there, once it has had its visits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead_of: Option<StateName>,
    },
    /// The budget of the visit is spent, and another turn is needed.
    VisitBudget {
        /// The limit.
        budget: Micros,
    },
    /// One message asks for more workers than the run may have.
    TooManyAgents {
        /// How many it asks for.
        asked: usize,
        /// `--max-agents`
        limit: u32,
    },
    /// Only held agents are left: nobody will end and make room.
    HeldForGood {
        /// `--max-agents`
        limit: u32,
    },
    /// A worker's name would be longer than [`AgentId::MAX`].
    TooDeep {
        /// The agent that forked.
        parent: AgentId,
    },
    /// The turn was interrupted by crashes again and again without any progress.
    Crashes {
        /// How often.
        count: u32,
    },
    /// The turn used up its budget share again and again without any output.
    Stalled {
        /// How often.
        count: u32,
    },
    /// A script was interrupted, and the run does not repeat such scripts.
    InterruptedScript,
    /// The client was denied a tool, and the state says `on_denied: fail`.
    Denied {
        /// The tools.
        tools: Vec<String>,
    },
    /// A question was not answered in time.
    Unanswered,
    /// A step of a document failed.
    Step {
        /// The stable code.
        code: String,
        /// What happened.
        message: String,
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
            Self::Script { status, stderr } if stderr.is_empty() => write!(f, "script: {status}"),
            Self::Script { status, stderr } => {
                write!(f, "script: {status}: {}", one_line(stderr))
            }
            Self::OutputTooLarge { limit, .. } => {
                write!(f, "output too large: more than {} MiB", limit / (1024 * 1024))
            }
            Self::NotStarted { why } => write!(f, "could not start: {why}"),
            Self::Environment { why } | Self::Step { why, .. } => f.write_str(why),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(failure) => write!(f, "{failure}"),
            Self::Protocol { fault, stderr } => {
                write!(f, "{fault}")?;
                if let Some(instead) = fault.instead() {
                    write!(f, ": {instead}")?;
                }
                if stderr.is_empty() { Ok(()) } else { write!(f, "; stderr: {}", one_line(stderr)) }
            }
            Self::Visits { state, limit } => {
                let visits = counted(*limit, "visit");
                write!(f, "{state} has had its {visits}, and there is no way on")
            }
            Self::OtherBackend { state, answers, holds, instead_of } => {
                match instead_of {
                    Some(limited) => {
                        write!(f, "{limited} has had its visits, and its `then`, {state}, ")?;
                    }
                    None => write!(f, "{state} ")?,
                }
                write!(f, "is answered by {answers}, and {holds} holds the conversation")
            }
            Self::VisitBudget { budget } => write!(f, "the visit's budget of {budget} is spent"),
            Self::TooManyAgents { asked, limit } => {
                write!(f, "one message asks for {asked} workers, and --max-agents is {limit}")
            }
            Self::HeldForGood { limit } => {
                write!(f, "its fork found no room: --max-agents is {limit}, and nobody will end")
            }
            Self::TooDeep { parent } => write!(f, "the name of a worker of {parent} is too long"),
            Self::Crashes { count } => {
                write!(f, "the turn was cut off {count} times in a row without any progress")
            }
            Self::Stalled { count } => write!(
                f,
                "the turn used up its budget share {count} times in a row without any output"
            ),
            Self::InterruptedScript => write!(f, "the script was cut off, and is not repeated"),
            Self::Denied { tools } => write!(f, "the client denied {}", tools.join(", ")),
            Self::Unanswered => write!(f, "the question was not answered in time"),
            Self::Step { code, message } => write!(f, "{code}: {message}"),
        }
    }
}

/// A text of several lines, for a place that has one.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" / ")
}
