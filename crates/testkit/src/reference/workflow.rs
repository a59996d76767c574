//! A workflow as the reference interpreter sees it: plain data, nothing parsed.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::budget::Micros;
use raymond_core::ids::{AgentId, StateName};
use raymond_core::protocol::TagName;

/// Everything that is fixed before a run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// The scope, by file name.
    pub states: BTreeMap<StateName, State>,
    /// Where `main` starts; one of `states`.
    pub start: StateName,
    /// What `main` starts with (`--input`).
    pub input: Option<String>,
    /// Where `main` starts: absolute, without `.` or `..`.
    pub cwd: String,
    /// The directories that exist, written in the same way.
    pub directories: BTreeSet<String>,
}

/// One file of the scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// A prompt, with what its frontmatter says.
    Prompt(Box<Prompt>),
    /// A script; it has no frontmatter.
    Script,
}

/// The frontmatter of a prompt, as far as it decides where a run goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// What it may emit.
    pub policy: Policy,
    /// The model of its turns.
    pub model: Option<String>,
    /// Who answers them; none is whoever answers prompts that say nothing.
    pub backend: Option<String>,
    /// How often one agent may enter it.
    pub max_visits: Option<u32>,
    /// Where a transition leads instead.
    pub then: Option<String>,
    /// The cap for all turns of one visit.
    pub budget: Option<Micros>,
}

/// The three forms of a policy; a transition must pass all that are there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// `allowed_tags`
    pub tags: Option<Vec<TagName>>,
    /// `allowed_targets`
    pub targets: BTreeMap<TagName, Vec<Allowed>>,
    /// `allowed_transitions`
    pub transitions: Option<Vec<(TagName, Allowed)>>,
}

/// One allowed target; what is absent may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowed {
    /// The state between the tags.
    pub target: Option<String>,
    /// `return` of call and function, `next` of fork.
    pub then: Option<String>,
}

/// The limits of a run. There is no cap on money: what a cap does depends on timing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The model of turns that nothing else decides.
    pub model: Option<String>,
    /// How many workers one message may ask for. The reference holds no agent until others end.
    pub max_agents: u32,
    /// Reminders per visit.
    pub reminders: u32,
    /// Retries per visit.
    pub retries: u32,
    /// How many attempts the whole run may make before it is taken for endless.
    pub max_attempts: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { model: None, max_agents: 1_000, reminders: 3, retries: 5, max_attempts: 100_000 }
    }
}

/// One attempt of one turn: what the oracle answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<'a> {
    /// Who asks.
    pub agent: &'a AgentId,
    /// The state it is at.
    pub state: &'a StateName,
    /// How often it has entered that state, this time included.
    pub count: u32,
    /// The number of the turn in its visit, from 1.
    pub turn: u32,
    /// The number of the attempt of this turn, from 1.
    pub attempt: u32,
}

/// What comes of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it cost, whatever came of it.
    pub cost: Micros,
    /// What came of it.
    pub outcome: Outcome,
}

/// What comes of an attempt, money aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The final message, or a script's standard output.
    Text(String),
    /// No text.
    Failure(FailureKind),
}

/// The kinds of failures of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// Worth another try.
    Transient,
    /// A clock ran out.
    Timeout,
    /// The usage limit of a backend.
    Quota,
    /// A person has to log in.
    Auth,
    /// The machine lacks something, such as room on the disk.
    Environment,
    /// The client says that the turn failed.
    Task,
    /// The client knows no such session.
    LostSession,
    /// A script ended badly.
    Script,
}

impl Answer {
    /// A text that cost nothing.
    pub fn text(text: impl Into<String>) -> Self {
        Self { cost: Micros::ZERO, outcome: Outcome::Text(text.into()) }
    }

    /// A failure that cost nothing.
    pub fn failure(kind: FailureKind) -> Self {
        Self { cost: Micros::ZERO, outcome: Outcome::Failure(kind) }
    }

    /// The same for money.
    #[must_use]
    pub fn with_cost(mut self, cost: Micros) -> Self {
        self.cost = cost;
        self
    }
}
