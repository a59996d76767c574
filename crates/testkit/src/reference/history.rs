//! What a run is expected to do: lines of text, per agent and in its own order.

use std::collections::BTreeMap;
use std::fmt;

use raymond_core::ids::{AgentId, StateName};
use raymond_core::protocol::TagName;

use super::workflow::FailureKind;

/// What every agent did. It prints agent by agent, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    /// The lines of each agent.
    pub agents: BTreeMap<AgentId, Vec<Line>>,
}

/// One line; [`super`] explains the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A visit begins.
    Enter {
        /// Which one.
        visit: VisitName,
        /// The state.
        state: StateName,
        /// How often the agent has entered it.
        count: u32,
        /// The result or input that is bound.
        input: Option<String>,
        /// Where the agent works.
        cwd: String,
        /// The model of its turns; none for a script.
        model: Option<String>,
        /// How many returns are pending.
        depth: usize,
    },
    /// A turn begins.
    Turn {
        /// Which one.
        turn: TurnName,
        /// How it gets its conversation.
        plan: Plan,
    },
    /// An attempt of a turn failed.
    Failed {
        /// Which turn.
        turn: TurnName,
        /// Which attempt, from 1.
        attempt: u32,
        /// Why.
        kind: FailureKind,
    },
    /// The agent is told what is wrong with its message.
    Remind {
        /// In which visit.
        visit: VisitName,
        /// What is wrong.
        fault: Fault,
    },
    /// A transition is taken that does not end the agent.
    Move {
        /// Which visit it ends.
        visit: VisitName,
        /// By which tag.
        tag: TagName,
        /// Where the agent goes.
        to: StateName,
        /// Where it would have gone, had `max_visits` not led elsewhere.
        instead_of: Option<StateName>,
    },
    /// A worker begins.
    Fork {
        /// Who forks.
        parent: AgentId,
        /// The worker.
        worker: AgentId,
        /// Where it starts.
        state: StateName,
        /// Where it works.
        cwd: String,
        /// Its template variables.
        attributes: BTreeMap<String, String>,
    },
    /// The agent ends well.
    End {
        /// Who.
        agent: AgentId,
        /// With what.
        payload: String,
    },
    /// The agent fails.
    Fail {
        /// Who.
        agent: AgentId,
        /// Why.
        failure: Failure,
    },
    /// The agent waits for a person to log in, or to make room.
    Wait {
        /// Who.
        agent: AgentId,
        /// For lack of what.
        kind: FailureKind,
    },
}

/// A visit: `main#3` is the third of `main`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VisitName {
    /// Whose.
    pub agent: AgentId,
    /// Which, agent-wide, from 1.
    pub number: u32,
}

/// A turn: `main#3.1` is the first of `main#3`. A session is named after the turn that opened it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnName {
    /// Of which visit.
    pub visit: VisitName,
    /// Which, from 1.
    pub number: u32,
}

/// How a turn gets its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// It opens one.
    Fresh,
    /// It goes on in this one.
    Resume(TurnName),
    /// It opens a branch of this one.
    Branch(TurnName),
    /// A script: it touches none.
    Carry,
}

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// No tag counts.
    NoTag,
    /// Several, and not one fork.
    SeveralTags,
    /// Only malformed ones.
    Malformed,
    /// A target, `return` or `next` names no state.
    Unresolved,
    /// Forks, and the `goto` beside them, name different next states.
    NextDiffers,
    /// A `cd` leads nowhere.
    NoDirectory,
    /// The policy does not allow it.
    Forbidden,
    /// A prompt would go on in a conversation of another backend.
    OtherBackend,
}

/// Why an agent failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// A turn failed, for good or once too often.
    Turn(FailureKind),
    /// It broke the protocol once too often.
    Protocol(Fault),
    /// `max_visits`, and no way on.
    Visits,
    /// A return leads to a prompt of another backend.
    OtherBackend,
    /// The visit's budget is spent, and another turn is needed.
    VisitBudget,
    /// One message asks for more workers than there may be.
    TooManyAgents,
    /// The name of a worker would be too long.
    TooDeep,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.agents.values().flatten().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enter { visit, state, count, input, cwd, model, depth } => {
                let input = input.as_deref().map_or_else(|| "-".to_owned(), quoted);
                let model = model.as_deref().unwrap_or("-");
                write!(f, "enter {visit} {state} count={count} input={input}")?;
                write!(f, " cwd={cwd} model={model} depth={depth}")
            }
            Self::Turn { turn, plan } => write!(f, "turn {turn} plan={plan}"),
            Self::Failed { turn, attempt, kind } => {
                write!(f, "failed {turn} attempt={attempt} {kind}")
            }
            Self::Remind { visit, fault } => write!(f, "remind {visit} {fault}"),
            Self::Move { visit, tag, to, instead_of } => {
                write!(f, "move {visit} {tag} {to}")?;
                instead_of.iter().try_for_each(|state| write!(f, " instead-of {state}"))
            }
            Self::Fork { parent, worker, state, cwd, attributes } => {
                write!(f, "fork {parent} -> {worker} {state} cwd={cwd}")?;
                attributes.iter().try_for_each(|(key, value)| write!(f, " {key}={}", quoted(value)))
            }
            Self::End { agent, payload } => write!(f, "end {agent} {}", quoted(payload)),
            Self::Fail { agent, failure } => write!(f, "fail {agent} {failure}"),
            Self::Wait { agent, kind } => write!(f, "wait {agent} {kind}"),
        }
    }
}

/// A text in one line: a JSON string.
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
        }
    }
}
