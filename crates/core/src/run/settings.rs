//! What governs a run: its limits, and the defaults of its turns.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::budget::Micros;
use crate::extension::Kind;
use crate::ids::{BackendName, StateName};
use crate::prices::{Price, Prices};
use crate::scheduler::Lane;
use crate::time::Span;
use crate::workflow::{Definition, Frontmatter, State};

use super::permissions::Permissions;
use super::program::Program;
use super::start_flags::StartFlags;

/// The settings of a run, fixed when it starts and whenever it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The cap; none means no cap.
    pub budget: Option<Micros>,
    /// Charge the whole share when a turn does not say what it cost.
    #[serde(default)]
    pub strict_budget: bool,
    /// How many turns at a time; at least 1.
    pub max_parallel: u32,
    /// How many live workers; at least 1.
    pub max_agents: u32,
    /// Reminders per visit.
    pub reminders: u32,
    /// Retries per visit.
    pub retries: u32,
    /// The backend of states that name none.
    pub backend: BackendName,
    /// Backends that cannot branch a conversation: there is no `call` in theirs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub no_branch: BTreeSet<BackendName>,
    /// The file with the replies of the scripted backend, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies: Option<String>,
    /// The backend in whose place the scripted one plays; none when nothing is played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed_backend: Option<BackendName>,
    /// The model of turns that nothing else decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The effort of states that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// What clients may do without asking.
    #[serde(default, skip_serializing_if = "is_default")]
    pub permissions: Permissions,
    /// Whether agents share the configuration of their client.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config_home: ConfigHome,
    /// The environment variables that processes are handed; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Vec<String>>,
    /// The longest a turn may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The longest a turn may be silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Span>,
    /// End instead of waiting when a usage limit is reached.
    #[serde(default)]
    pub no_wait: bool,
    /// What a lost session means.
    #[serde(default)]
    pub on_lost_session: OnLostSession,
    /// What an interrupted script means.
    #[serde(default)]
    pub interrupted_scripts: InterruptedScripts,
    /// Whether states are used as they were at the start.
    pub definition: Pinning,
    /// `--var`: template variables of every agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// What it executes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub program: Program,
    /// What was named when it began, and is needed to begin anew.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start_flags: StartFlags,
    /// The versions of the clients, where they say one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clients: BTreeMap<BackendName, String>,
    /// The user's own prices when the run began. An agent can edit the configuration, so the
    /// configuration must not reprice a run. None in journals that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<BTreeMap<String, Price>>,
}

/// What a lost session means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLostSession {
    /// The agent fails.
    #[default]
    Fail,
    /// The turn starts in a fresh session, and says so.
    Fresh,
}

/// Whether agents share the configuration of their client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigHome {
    /// They use the person's own.
    #[default]
    Shared,
    /// Each has one of its own, below the directory of the run.
    PerAgent,
}

/// What an interrupted script means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptedScripts {
    /// It runs again.
    #[default]
    Rerun,
    /// The agent fails.
    Fail,
}

/// Whether states are used as they were at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pinning {
    /// As they were.
    #[default]
    Pinned,
    /// As they are.
    Unpinned,
}

impl Settings {
    /// The backend that answers the prompts of a state.
    pub fn backend_of<'a>(&'a self, front: &'a Frontmatter) -> &'a BackendName {
        front.backend.as_ref().unwrap_or(&self.backend)
    }

    /// The backend that would answer the prompts of a state, were nothing played.
    pub fn real_backend_of<'a>(&'a self, front: &'a Frontmatter) -> &'a BackendName {
        self.real_backend(self.backend_of(front))
    }

    /// The backend in whose place one answers: what is played today is asked of it tomorrow.
    pub fn real_backend<'a>(&'a self, backend: &'a BackendName) -> &'a BackendName {
        self.replayed_backend.as_ref().filter(|_| *backend == self.backend).unwrap_or(backend)
    }

    /// The list prices, with the run's own prices over them.
    pub fn price_list(&self) -> Prices {
        Prices::default().with(self.prices.clone().unwrap_or_default())
    }

    /// Where the turns of a state queue.
    pub(crate) fn lane(&self, definition: &Definition, state: &StateName) -> Lane {
        if let Some(work) = &definition.work {
            let asks = state.as_str().parse().is_ok_and(|key| work.agent(&key).is_some());
            return if asks { Lane::Prompt(self.backend.clone()) } else { Lane::Script };
        }
        match definition.states.get(state) {
            Some(State { kind: Kind::Script, .. }) => Lane::Script,
            Some(State { kind: Kind::Prompt, front, .. }) => {
                Lane::Prompt(self.backend_of(front).clone())
            }
            // Adopting a definition is refused while a live agent needs a state that is gone.
            None => Lane::Prompt(BackendName::new("none")),
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            budget: Some(Micros::DEFAULT_CAP),
            strict_budget: false,
            max_parallel: 4,
            max_agents: 1_000,
            reminders: 3,
            retries: 5,
            backend: BackendName::new("claude"),
            no_branch: BTreeSet::new(),
            replies: None,
            replayed_backend: None,
            model: None,
            effort: None,
            permissions: Permissions::default(),
            config_home: ConfigHome::Shared,
            environment: None,
            timeout: None,
            idle_timeout: None,
            no_wait: false,
            on_lost_session: OnLostSession::Fail,
            interrupted_scripts: InterruptedScripts::Rerun,
            definition: Pinning::Pinned,
            vars: BTreeMap::new(),
            program: Program::States,
            start_flags: StartFlags::default(),
            clients: BTreeMap::new(),
            prices: None,
        }
    }
}
