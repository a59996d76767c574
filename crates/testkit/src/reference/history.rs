//! The expected history of a run: lines of text for each agent, in the agent's own order.
//!
//! Agents run in parallel, so only the order of the lines of one agent is defined. The lines
//! contain no time, no cost and no id, because these differ between two correct runs. The simulator
//! writes the same lines from its records; a difference is then a line that a person can read.

use std::collections::BTreeMap;
use std::fmt;

use raymond_core::ids::{AgentId, StateName};
use raymond_core::protocol::TagName;

use super::workflow::FailureKind;

/// The lines of all agents. It prints agent by agent, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    pub agents: BTreeMap<AgentId, Vec<Line>>,
}

/// One line; [`super`] explains the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Enter {
        visit: VisitName,
        state: StateName,
        /// How often the agent has entered the state.
        count: u32,
        /// The bound result or input.
        input: Option<String>,
        /// Whether the input is the result of a callee that failed.
        is_failure: bool,
        cwd: String,
        /// The model of its turns; `None` for a script.
        model: Option<String>,
        /// The number of pending returns.
        depth: usize,
    },
    Turn {
        turn: TurnName,
        /// The source of its conversation.
        plan: Plan,
    },
    Failed {
        turn: TurnName,
        /// The number of the attempt, from 1.
        attempt: u32,
        kind: FailureKind,
    },
    /// The agent gets a reminder.
    Remind {
        visit: VisitName,
        fault: Fault,
    },
    /// The agent waits before it enters a state.
    Park {
        visit: VisitName,
        to: StateName,
    },
    /// A transition that does not end the agent.
    Move {
        /// The visit that it ends.
        visit: VisitName,
        tag: TagName,
        to: StateName,
        /// The state that the tag named, if `max_visits` led elsewhere.
        instead_of: Option<StateName>,
    },
    Fork {
        parent: AgentId,
        worker: AgentId,
        state: StateName,
        cwd: String,
        /// The template variables of the worker.
        attributes: BTreeMap<String, String>,
    },
    /// The agent receives the ends of its workers.
    Handed {
        agent: AgentId,
        workers: Vec<(AgentId, HandedEnd)>,
    },
    End {
        agent: AgentId,
        payload: String,
    },
    Fail {
        agent: AgentId,
        failure: Failure,
    },
    /// The agent waits for a login, or for space on the disk.
    Wait {
        agent: AgentId,
        kind: FailureKind,
    },
}

/// How a worker ended, as its parent learns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedEnd {
    Ended(String),
    Failed,
    Cancelled,
}

/// A visit: `main#3` is the third of `main`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VisitName {
    pub agent: AgentId,
    /// The number among all visits of the agent, from 1.
    pub number: u32,
}

/// A turn: `main#3.1` is the first of `main#3`. A session is named after the turn that opened it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnName {
    pub visit: VisitName,
    /// The number in the visit, from 1.
    pub number: u32,
}

/// The source of a turn's conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Opens a new one.
    Fresh,
    /// Continues this one.
    Resume(TurnName),
    /// Opens a branch of this one.
    Branch(TurnName),
    /// A script uses none.
    Carry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    NoTag,
    /// Several tags that are not forks with at most one `goto`.
    SeveralTags,
    Malformed,
    /// The target, `return` or `next` of a tag is not a state.
    Unresolved,
    NextDiffers,
    /// The directory of a `cd` does not exist.
    NoDirectory,
    Forbidden,
    /// A prompt would continue a conversation of another backend.
    OtherBackend,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// A turn failed finally, or once too often.
    Turn(FailureKind),
    /// More protocol faults than reminders.
    Protocol(Fault),
    /// `max_visits` is reached, and no `then` is free.
    Visits,
    OtherBackend,
    /// The visit's budget is spent, but the visit needs another turn.
    VisitBudget,
    /// One message asks for more workers than `max_agents`.
    TooManyAgents,
    /// A worker's name would be too long.
    TooDeep,
    /// A result says so.
    Declared,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.agents.values().flatten().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enter { visit, state, count, input, is_failure, cwd, model, depth } => {
                let input = input.as_deref().map_or_else(|| "-".to_owned(), quoted);
                let model = model.as_deref().unwrap_or("-");
                write!(f, "enter {visit} {state} count={count} input={input}")?;
                write!(f, " cwd={cwd} model={model} depth={depth}")?;
                if *is_failure { f.write_str(" of-failure") } else { Ok(()) }
            }
            Self::Turn { turn, plan } => write!(f, "turn {turn} plan={plan}"),
            Self::Failed { turn, attempt, kind } => {
                write!(f, "failed {turn} attempt={attempt} {kind}")
            }
            Self::Remind { visit, fault } => write!(f, "remind {visit} {fault}"),
            Self::Park { visit, to } => write!(f, "park {visit} {to}"),
            Self::Move { visit, tag, to, instead_of } => {
                write!(f, "move {visit} {tag} {to}")?;
                instead_of.iter().try_for_each(|state| write!(f, " instead-of {state}"))
            }
            Self::Fork { parent, worker, state, cwd, attributes } => {
                write!(f, "fork {parent} -> {worker} {state} cwd={cwd}")?;
                attributes.iter().try_for_each(|(key, value)| write!(f, " {key}={}", quoted(value)))
            }
            Self::Handed { agent, workers } => {
                write!(f, "handed {agent}")?;
                workers.iter().try_for_each(|(worker, end)| match end {
                    HandedEnd::Ended(result) => write!(f, " {worker}={}", quoted(result)),
                    HandedEnd::Failed => write!(f, " {worker} failed"),
                    HandedEnd::Cancelled => write!(f, " {worker} cancelled"),
                })
            }
            Self::End { agent, payload } => write!(f, "end {agent} {}", quoted(payload)),
            Self::Fail { agent, failure } => write!(f, "fail {agent} {failure}"),
            Self::Wait { agent, kind } => write!(f, "wait {agent} {kind}"),
        }
    }
}

/// Writes a text in one line, as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl fmt::Display for VisitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.agent, self.number)
    }
}

impl fmt::Display for TurnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.visit, self.number)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fresh => f.write_str("fresh"),
            Self::Resume(session) => write!(f, "resume({session})"),
            Self::Branch(session) => write!(f, "branch({session})"),
            Self::Carry => f.write_str("carry"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTag => "no_tag",
            Self::SeveralTags => "several_tags",
            Self::Malformed => "malformed",
            Self::Unresolved => "unresolved",
            Self::NextDiffers => "next_differs",
            Self::NoDirectory => "no_directory",
            Self::Forbidden => "forbidden",
            Self::OtherBackend => "other_backend",
        })
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transient => "transient",
            Self::Timeout => "timeout",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::Environment => "environment",
            Self::Task => "task",
            Self::LostSession => "lost_session",
            Self::Script => "script",
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(kind) => write!(f, "{kind}"),
            Self::Protocol(fault) => write!(f, "protocol {fault}"),
            Self::Visits => f.write_str("visits"),
            Self::OtherBackend => f.write_str("other_backend"),
            Self::VisitBudget => f.write_str("visit_budget"),
            Self::TooManyAgents => f.write_str("too_many_agents"),
            Self::TooDeep => f.write_str("too_deep"),
            Self::Declared => f.write_str("declared"),
        }
    }
}
