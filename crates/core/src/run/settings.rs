//! Settings of a run: its limits, and the defaults of its turns.
//!
//! They are part of the journal. Where each value comes from (flag, variable or file) is decided in
//! the `cli` crate.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::budget::Micros;
use crate::extension::StateKind;
use crate::ids::{BackendName, StateName};
use crate::prices::{Price, Prices};
use crate::scheduler::Lane;
use crate::time::Span;
use crate::workflow::{Definition, Frontmatter, State};

use super::permissions::Permissions;
use super::prepared_answers::PreparedAnswers;
use super::start_flags::StartFlags;

/// The settings of a run. They change only when it starts, is resumed or is rewound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The budget of the run; `None` means no cap.
    pub budget: Option<Micros>,
    /// Charge a turn's full share when its cost is unknown.
    #[serde(default)]
    pub strict_budget: bool,
    /// The maximum number of turns in flight, at least 1.
    pub max_parallel: u32,
    /// The maximum number of live workers, at least 1.
    pub max_agents: u32,
    /// The maximum number of reminders per visit.
    pub reminders: u32,
    /// The maximum number of retries per visit.
    pub retries: u32,
    /// The default backend.
    pub backend: BackendName,
    /// Backends that cannot branch a conversation, so that their states cannot use `call`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub no_branch: BTreeSet<BackendName>,
    /// The absolute path of the file with the replies of the scripted backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies: Option<String>,
    /// The answers in that file to questions for a person.
    #[serde(default, skip_serializing_if = "PreparedAnswers::is_empty")]
    pub answers: PreparedAnswers,
    /// The backend that the scripted backend replaces; `None` if no backend is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed_backend: Option<BackendName>,
    /// The default model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The default effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Actions that clients may take without asking.
    #[serde(default, skip_serializing_if = "is_default")]
    pub permissions: Permissions,
    /// Whether agents share the client configuration of the user.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config_home: ConfigHome,
    /// Names of the environment variables that processes receive; `None` passes all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Vec<String>>,
    /// The default time limit of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// The default limit of the time without output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Span>,
    /// End the run instead of waiting when a usage limit is reached.
    #[serde(default)]
    pub no_wait: bool,
    /// What to do when the client has lost a session.
    #[serde(default)]
    pub on_lost_session: OnLostSession,
    /// What to do with an interrupted script.
    #[serde(default)]
    pub interrupted_scripts: InterruptedScripts,
    /// Whether the run uses its states as they were at the start.
    pub definition: Pinning,
    /// `--var`: template variables of every agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// The maximum number of iterations of a loop, at least 1.
    #[serde(default = "usual_iterations", skip_serializing_if = "is_usual_iterations")]
    pub max_iterations: u32,
    /// Flags of the start, needed to start the run again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start_flags: StartFlags,
    /// The versions of the clients, if they report one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clients: BTreeMap<BackendName, String>,
    /// The user's own prices when the run began. An agent can edit the configuration, so the
    /// configuration must not reprice a run. None in journals that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<BTreeMap<String, Price>>,
}

/// What to do when the client has lost a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLostSession {
    #[default]
    Fail,
    /// The turn starts in a fresh session, and the journal records the lost one.
    Fresh,
}

/// Whether agents share the client configuration of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigHome {
    /// All agents use the configuration of the user.
    #[default]
    Shared,
    /// Each agent has a configuration in the directory of the run.
    PerAgent,
}

/// What to do with an interrupted script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptedScripts {
    #[default]
    Rerun,
    Fail,
}

/// Whether the run uses its states as they were at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pinning {
    #[default]
    Pinned,
    /// The run reads its states at every visit.
    Unpinned,
}

impl Settings {
    /// Default of [`Self::backend`]. `raymond_backends::registry` has the row of this client.
    pub const DEFAULT_BACKEND: &str = "claude";
    /// Default of [`Self::max_iterations`] (docs/ralph.md).
    pub const USUAL_ITERATIONS: u32 = 50;

    /// Returns the backend that answers the prompts of a state.
    pub fn backend_of<'a>(&'a self, front: &'a Frontmatter) -> &'a BackendName {
        front.backend.as_ref().unwrap_or(&self.backend)
    }

    /// Returns the backend of a state, looking behind the scripted backend.
    pub fn real_backend_of<'a>(&'a self, front: &'a Frontmatter) -> &'a BackendName {
        self.real_backend(self.backend_of(front))
    }

    /// Returns the backend that `backend` replaces, or `backend` itself. A run with scripted
    /// replies may continue with the real backend later, so rules about conversations compare the
    /// real ones.
    pub fn real_backend<'a>(&'a self, backend: &'a BackendName) -> &'a BackendName {
        self.replayed_backend.as_ref().filter(|_| *backend == self.backend).unwrap_or(backend)
    }

    /// Returns whether replies from a file answer the turns of a backend, so that they cost no
    /// money.
    pub fn rehearses(&self, backend: &BackendName) -> bool {
        let scripted = BackendName::SCRIPTED;
        // With replies as the default backend, they answer for all other backends, too.
        backend.as_str() == scripted || self.replies.is_some() && self.backend.as_str() == scripted
    }

    /// Returns the list prices, overridden by the prices of the run.
    pub fn price_list(&self) -> Prices {
        Prices::default().with(self.prices.clone().unwrap_or_default())
    }

    /// Returns the lane in which the turns of a state queue.
    pub(crate) fn state_lane(&self, definition: &Definition, state: &StateName) -> Lane {
        match definition.states.get(state) {
            Some(State { kind: StateKind::Script, .. }) => Lane::Script,
            Some(State { kind: StateKind::Prompt, front, .. }) => {
                Lane::Prompt(self.backend_of(front).clone())
            }
            // Not reachable: adopting a definition is refused while an agent needs a removed state.
            None => Lane::Prompt(self.backend.clone()),
        }
    }
}

const fn usual_iterations() -> u32 {
    Settings::USUAL_ITERATIONS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_usual_iterations(count: &u32) -> bool {
    *count == Settings::USUAL_ITERATIONS
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // docs/configuration.md lists these defaults.
            budget: Some(Micros::DEFAULT_CAP),
            strict_budget: false,
            max_parallel: 4,
            max_agents: 1_000,
            reminders: 3,
            retries: 5,
            backend: BackendName::new(Self::DEFAULT_BACKEND),
            no_branch: BTreeSet::new(),
            replies: None,
            answers: PreparedAnswers::default(),
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
            max_iterations: Self::USUAL_ITERATIONS,
            start_flags: StartFlags::default(),
            clients: BTreeMap::new(),
            prices: None,
        }
    }
}
