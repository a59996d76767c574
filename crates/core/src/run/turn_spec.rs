//! The specification of one attempt at a turn: everything that its executor needs.
//!
//! [`crate::decide::effects`] builds it once, when the effect is released, because the run changes
//! while the turn is running. The texts of a state are not rendered here: they may contain stored
//! values, which only the executor can read. Facts that all turns of a run share are in
//! [`RunContext`](super::RunContext).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::agent::{Agent, HandedWorker, Location, SessionPlan};
use crate::budget::Micros;
use crate::crayfish::render::ExecCall;
use crate::few::Few;
use crate::ids::{BackendName, StateName, TurnId};
use crate::protocol::{Notice, ResultStatus};
use crate::scheduler::{Lane, Turn, TurnPhase};
use crate::time::Span;
use crate::value::{Hash, Value};
use crate::workflow::{Frontmatter, SourceFile};

use super::permissions::Permissions;
use super::settings::{ConfigHome, Settings};

/// One attempt at a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnSpec {
    pub header: Box<TurnHeader>,
    pub work: Work,
}

/// The facts that all kinds of work have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnHeader {
    pub turn: TurnId,
    pub attempt: u32,
    pub location: Location,
    pub cwd: String,
    /// Names of the environment variables that are passed on, beside those that Raymond sets for
    /// scripts; `None` passes all.
    pub environment: Option<Vec<String>>,
    /// The workers whose ends the visit started with. Their list is its input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed: Vec<HandedWorker>,
}

/// The work of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Prompt(Box<PromptSpec>),
    Script(Box<ScriptSpec>),
    Exec(Box<ExecSpec>),
}

/// A prompt to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptSpec {
    /// The backend that answers.
    pub backend: BackendName,
    pub plan: SessionPlan,
    pub message: PromptText,
    /// A notice that precedes the prompt if the client may have seen an earlier attempt.
    pub notice: Option<Notice>,
    /// How often the agent has entered the state. For a step: the output that is asked for, from 1.
    pub count: u32,
    /// The budget share of the turn.
    pub cap: Option<Micros>,
    /// The model, or nothing to let the client choose.
    pub model: Option<String>,
    /// The effort, or nothing to let the client choose.
    pub effort: Option<String>,
    /// Actions that the client may take without asking.
    pub permissions: Permissions,
    /// Other options of the state, passed on as written.
    pub extras: Extras,
    /// Whether the client uses the user's configuration or one of its own.
    pub config_home: ConfigHome,
    pub limits: TimeLimits,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptText {
    /// The body of a state, whose variables the executor fills in.
    Body {
        body: Arc<str>,
        values: VisitValues,
    },
    Reminder(String),
    /// The request of an agent step, and the schema that the answer must match.
    Request {
        text: String,
        schema: Arc<Json>,
    },
}

/// A script to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptSpec {
    pub source: SourceFile,
    /// The hash of the source.
    pub hash: Hash,
    pub values: VisitValues,
    pub limits: TimeLimits,
}

/// The program of a step to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecSpec {
    /// The attempt without those that were interrupted: the number that the step counts, from 1.
    pub counted: u32,
    pub call: ExecCall,
}

/// The values of template variables and script variables that depend on the visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitValues {
    pub state: StateName,
    /// How often the agent has entered the state.
    pub visit: u32,
    /// The value that the visit started with.
    pub input: Option<Value>,
    /// Whether that result is a success.
    #[serde(default)]
    pub result_status: ResultStatus,
    /// Attributes of the fork that made the agent.
    pub attributes: Few<String, Value>,
}

/// The time limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeLimits {
    /// The longest duration of the turn.
    pub timeout: Option<Span>,
    /// The longest time without output.
    pub idle_timeout: Option<Span>,
}

/// Options of a state that its client receives as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extras {
    /// Additional directories that the client may use.
    pub add_dirs: Vec<String>,
    pub mcp_config: Option<String>,
    /// Text that is appended to the client's system prompt.
    pub append_system_prompt: Option<String>,
}

impl TurnSpec {
    /// Returns the prompt, if the turn asks a client.
    pub const fn prompt(&self) -> Option<&PromptSpec> {
        match &self.work {
            Work::Prompt(prompt) => Some(prompt),
            Work::Script(_) | Work::Exec(_) => None,
        }
    }
}

impl VisitValues {
    pub(crate) fn of(agent: &Agent, state: &StateName) -> Self {
        Self {
            state: state.clone(),
            visit: agent.visit_count(),
            input: agent.visit.input.clone(),
            result_status: agent.visit.result_status,
            attributes: agent.attributes.clone(),
        }
    }
}

impl TimeLimits {
    pub(crate) fn of(front: &Frontmatter, settings: &Settings) -> Self {
        Self {
            timeout: front.timeout.or(settings.timeout),
            idle_timeout: front.idle_timeout.or(settings.idle_timeout),
        }
    }
}

impl Extras {
    pub fn of(front: &Frontmatter) -> Self {
        Self {
            add_dirs: front.add_dirs.clone(),
            mcp_config: front.mcp_config.clone(),
            append_system_prompt: front.append_system_prompt.clone(),
        }
    }
}

/// The parts of a prompt that depend on the language of the run.
pub(crate) struct LanguageParts<'a> {
    pub(crate) message: PromptText,
    /// The settings of the state.
    pub(crate) front: &'a Frontmatter,
    /// [`PromptSpec::count`]
    pub(crate) count: u32,
}

impl PromptSpec {
    /// Returns a prompt with the settings of its state, its agent and the run.
    pub(crate) fn of(
        settings: &Settings,
        agent: &Agent,
        turn: &Turn,
        parts: LanguageParts<'_>,
    ) -> Option<Self> {
        let LanguageParts { message, front, count } = parts;
        let Lane::Prompt(backend) = &turn.lane else { return None };
        let TurnPhase::Running { share } = turn.phase else { return None };
        Some(Self {
            backend: backend.clone(),
            // The plan of this attempt, not of the first one, which may have opened the session.
            plan: turn.current.clone()?,
            message,
            notice: turn.notice,
            count,
            cap: share,
            // The state decides first, then the call that led here, then the run.
            model: front
                .model
                .as_ref()
                .or_else(|| agent.model_for(backend))
                .or(settings.model.as_ref())
                .cloned(),
            effort: front.effort.clone().or_else(|| settings.effort.clone()),
            // Resolved here, because the executor may be another process without the definition.
            permissions: settings.permissions.of_state(front),
            extras: Extras::of(front),
            config_home: settings.config_home,
            limits: TimeLimits::of(front, settings),
        })
    }
}
