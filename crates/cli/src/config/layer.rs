//! The settings of one layer (a file, the environment or the flags), and how layers combine.
//!
//! A value of a later layer replaces an earlier one; lists add up. Parsing is in `value` and
//! `keys`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use raymond_core::budget::Micros;
use raymond_core::prices::Price;
use raymond_core::run::permissions::Checks;
use raymond_core::run::settings::{ConfigHome, InterruptedScripts, OnLostSession};
use raymond_core::time::Span;

/// A value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { path: String, line: usize },
    Environment(String),
    Flag(&'static str),
}

impl Origin {
    /// Whether both values come from the same layer.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Default, Self::Default)
            | (Self::Environment(_), Self::Environment(_))
            | (Self::Flag(_), Self::Flag(_)) => true,
            (Self::File { path, .. }, Self::File { path: other, .. }) => path == other,
            (Self::Default | Self::File { .. } | Self::Environment(_) | Self::Flag(_), _) => false,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

type Slot<T> = Option<Sourced<T>>;

/// The settings of one layer, or of several combined layers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Layer {
    /// An inner `None` means no cap.
    pub(crate) budget: Slot<Option<Micros>>,
    pub(crate) strict_budget: Slot<bool>,
    pub(crate) model: Slot<String>,
    pub(crate) effort: Slot<String>,
    pub(crate) backend: Slot<String>,
    pub(crate) replies: Slot<PathBuf>,
    pub(crate) max_parallel: Slot<u32>,
    pub(crate) max_agents: Slot<u32>,
    pub(crate) reminders: Slot<u32>,
    pub(crate) retries: Slot<u32>,
    pub(crate) timeout: Slot<Span>,
    pub(crate) idle_timeout: Slot<Span>,
    pub(crate) no_wait: Slot<bool>,
    pub(crate) on_lost_session: Slot<OnLostSession>,
    pub(crate) interrupted_scripts: Slot<InterruptedScripts>,
    pub(crate) permission_mode: Slot<String>,
    pub(crate) allow: Vec<Sourced<String>>,
    pub(crate) deny: Vec<Sourced<String>>,
    /// Set only by a flag: a file of a cloned project must not disable permission checks.
    pub(crate) checks: Slot<Checks>,
    /// An inner `None` means the whole environment.
    pub(crate) environment: Slot<Option<Vec<String>>>,
    pub(crate) config_home: Slot<ConfigHome>,
    pub(crate) claude: Slot<String>,
    pub(crate) codex: Slot<String>,
    pub(crate) prices: BTreeMap<String, Sourced<Price>>,
    /// The workspaces of agents that call the tool, by agent id.
    pub(crate) agents: BTreeMap<String, Sourced<PathBuf>>,
}

impl Layer {
    /// Puts this layer over `lower`: its values win, lists add up.
    #[must_use]
    pub(crate) fn over(self, lower: Self) -> Self {
        Self {
            budget: self.budget.or(lower.budget),
            strict_budget: self.strict_budget.or(lower.strict_budget),
            model: self.model.or(lower.model),
            effort: self.effort.or(lower.effort),
            // `replies` implies the scripted backend, unless the same layer names another backend.
            backend: self.backend.or_else(|| scripted(self.replies.as_ref())).or(lower.backend),
            replies: self.replies.or(lower.replies),
            max_parallel: self.max_parallel.or(lower.max_parallel),
            max_agents: self.max_agents.or(lower.max_agents),
            reminders: self.reminders.or(lower.reminders),
            retries: self.retries.or(lower.retries),
            timeout: self.timeout.or(lower.timeout),
            idle_timeout: self.idle_timeout.or(lower.idle_timeout),
            no_wait: self.no_wait.or(lower.no_wait),
            on_lost_session: self.on_lost_session.or(lower.on_lost_session),
            interrupted_scripts: self.interrupted_scripts.or(lower.interrupted_scripts),
            permission_mode: self.permission_mode.or(lower.permission_mode),
            allow: [lower.allow, self.allow].concat(),
            deny: [lower.deny, self.deny].concat(),
            checks: self.checks.or(lower.checks),
            environment: self.environment.or(lower.environment),
            config_home: self.config_home.or(lower.config_home),
            claude: self.claude.or(lower.claude),
            codex: self.codex.or(lower.codex),
            // Later entries win in a map, so this layer comes last.
            prices: lower.prices.into_iter().chain(self.prices).collect(),
            agents: lower.agents.into_iter().chain(self.agents).collect(),
        }
    }
}

fn scripted(replies: Option<&Sourced<PathBuf>>) -> Slot<String> {
    let origin = replies?.origin.clone();
    Some(Sourced { value: "scripted".to_owned(), origin })
}
