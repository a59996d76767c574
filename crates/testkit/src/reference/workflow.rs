//! A workflow for the reference interpreter: plain data, already parsed.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::budget::Micros;
use raymond_core::ids::{AgentId, StateName};
use raymond_core::protocol::TagName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// The states of the scope, by file name.
    pub states: BTreeMap<StateName, State>,
    /// The first state of `main`; one of `states`.
    pub start: StateName,
    /// The input of `main` (`--input`).
    pub input: Option<String>,
    /// The directory of `main`: absolute, without `.` or `..`.
    pub cwd: String,
    /// The existing directories, in the same form.
    pub directories: BTreeSet<String>,
}

/// One file of the scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// A prompt with its frontmatter.
    Prompt(Box<Prompt>),
    /// A script, which has no frontmatter.
    Script,
}

/// The part of a prompt's frontmatter that decides transitions, models and costs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    pub policy: Policy,
    pub model: Option<String>,
    /// The backend of its turns; `None` means the default backend.
    pub backend: Option<String>,
    /// How often one agent may enter it.
    pub max_visits: Option<u32>,
    /// The destination once `max_visits` is reached.
    pub then: Option<String>,
    /// The cap for all turns of one visit.
    pub budget: Option<Micros>,
}

/// The three forms of a policy; a transition must pass every form that is present.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// `allowed_tags`
    pub tags: Option<Vec<TagName>>,
    /// `allowed_targets`
    pub targets: BTreeMap<TagName, Vec<Allowed>>,
    /// `allowed_transitions`
    pub transitions: Option<Vec<(TagName, Allowed)>>,
}

/// One allowed target; an absent part matches anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowed {
    pub target: Option<String>,
    /// `return` of call and function, `next` of fork.
    pub then: Option<String>,
}

/// The limits of a run. There is no cap on money, because its effect depends on timing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterpreterSettings {
    /// The default model.
    pub model: Option<String>,
    /// How many workers one message may request. The reference never makes an agent wait for a free
    /// place.
    pub max_agents: u32,
    pub reminders: u32,
    pub retries: u32,
    /// After this many attempts the reference reports that the run does not end.
    pub max_attempts: u32,
}

impl Default for InterpreterSettings {
    fn default() -> Self {
        Self { model: None, max_agents: 1_000, reminders: 3, retries: 5, max_attempts: 100_000 }
    }
}

/// One attempt of one turn, which the oracle answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<'a> {
    pub agent: &'a AgentId,
    pub state: &'a StateName,
    /// How often the agent has entered the state, with this visit.
    pub count: u32,
    /// The number of the turn in its visit, from 1.
    pub turn: u32,
    /// The number of the attempt of this turn, from 1.
    pub attempt: u32,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub cost: Micros,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The final message, or the standard output of a script.
    Text(String),
    Failure(FailureKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// A failure that a retry may fix.
    Transient,
    /// A time limit was exceeded.
    Timeout,
    /// The usage limit of a backend is reached.
    Quota,
    /// A login is missing.
    Auth,
    /// The machine lacks something, such as disk space.
    Environment,
    /// The client reports that the turn failed.
    Task,
    /// The client does not know the session.
    LostSession,
    /// A script failed.
    Script,
}

impl Answer {
    pub fn text(text: impl Into<String>) -> Self {
        Self { cost: Micros::ZERO, outcome: Outcome::Text(text.into()) }
    }

    pub fn failure(kind: FailureKind) -> Self {
        Self { cost: Micros::ZERO, outcome: Outcome::Failure(kind) }
    }

    #[must_use]
    pub fn with_cost(mut self, cost: Micros) -> Self {
        self.cost = cost;
        self
    }
}
