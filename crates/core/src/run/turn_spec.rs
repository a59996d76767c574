//! The specification of one attempt at a turn: everything that its executor needs.
//!
//! It is built once, when the effect is released, because the run changes while the turn is
//! running. The texts of a state are not rendered here: they may contain stored values, which only
//! the executor can read. Facts that all turns of a run share are in
//! [`RunContext`](super::RunContext).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::agent::{Agent, Location, SessionPlan};
use crate::budget::Micros;
use crate::crayfish::ask;
use crate::crayfish::render::ExecCall;
use crate::few::Few;
use crate::ids::{BackendName, StateName, TurnId};
use crate::protocol::Notice;
use crate::protocol::reminder::reminder;
use crate::scheduler::{Lane, Phase, Prompt, Turn};
use crate::time::Span;
use crate::value::{Hash, Value};
use crate::workflow::{Definition, Frontmatter, SourceFile, State};

use super::permissions::Permissions;
use super::settings::{ConfigHome, Settings};
use super::state::Run;

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
    pub message: Message,
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

/// The text of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
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
    /// Returns the specification of a turn in flight.
    pub fn of(run: &Run, definition: &Definition, turn: &Turn) -> Option<Self> {
        let agent = run.agents.get(&turn.id.agent)?;
        // A later event of the same batch may have ended the turn.
        let Phase::Running { share } = turn.phase else { return None };
        let work = match (&turn.lane, &agent.visit.location) {
            (Lane::Script, Location::Step(_)) => {
                Work::Exec(Box::new(ExecSpec::of(run, definition, agent)?))
            }
            (Lane::Script, Location::State(name)) => {
                let state = definition.states.get(name)?;
                Work::Script(Box::new(ScriptSpec::of(run, agent, state)))
            }
            (Lane::Prompt(backend), _) => {
                let prompt = PromptBuilder { run, definition, agent, turn, backend };
                Work::Prompt(Box::new(prompt.build(share)?))
            }
        };
        let header = TurnHeader {
            turn: turn.id.clone(),
            attempt: turn.attempt,
            location: agent.visit.location.clone(),
            cwd: agent.cwd.clone(),
            environment: run.settings.environment.clone(),
        };
        Some(Self { header: Box::new(header), work })
    }

    /// Returns the prompt, if the turn asks a client.
    pub const fn prompt(&self) -> Option<&PromptSpec> {
        match &self.work {
            Work::Prompt(prompt) => Some(prompt),
            Work::Script(_) | Work::Exec(_) => None,
        }
    }
}

impl ScriptSpec {
    fn of(run: &Run, agent: &Agent, state: &State) -> Self {
        Self {
            // The executor keeps the pinned copy in a folder that is named after the hash.
            source: state.source.clone(),
            hash: state.hash.clone(),
            values: VisitValues::of(agent, &state.name),
            limits: TimeLimits::of(&state.front, &run.settings),
        }
    }
}

impl ExecSpec {
    fn of(run: &Run, definition: &Definition, agent: &Agent) -> Option<Self> {
        let (steps, state) = (definition.steps.as_deref()?, run.program.steps()?);
        let call = steps.call(state, &agent.id, agent.visit.location.step()?)?;
        Some(Self { counted: agent.visit.retries.saturating_add(1), call })
    }
}

impl VisitValues {
    fn of(agent: &Agent, state: &StateName) -> Self {
        Self {
            state: state.clone(),
            visit: agent.visit_count(),
            input: agent.visit.input.clone(),
            attributes: agent.attributes.clone(),
        }
    }
}

impl TimeLimits {
    fn of(front: &Frontmatter, settings: &Settings) -> Self {
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

/// Builds the specification of a prompt.
struct PromptBuilder<'a> {
    run: &'a Run,
    definition: &'a Definition,
    agent: &'a Agent,
    turn: &'a Turn,
    backend: &'a BackendName,
}

impl PromptBuilder<'_> {
    fn build(&self, share: Option<Micros>) -> Option<PromptSpec> {
        let Self { run, agent, turn, backend, .. } = self;
        let settings = &run.settings;
        // A step has no frontmatter: only the settings of the run apply to it.
        let (none, state) = (Frontmatter::default(), self.state());
        let front = state.map_or(&none, |state| &state.front);
        Some(PromptSpec {
            backend: (*backend).clone(),
            // The plan of this attempt, not of the first one, which may have opened the session.
            plan: turn.current.clone()?,
            message: match state {
                Some(state) => self.message(state),
                None => self.request()?,
            },
            notice: turn.notice,
            count: self.asked_output().unwrap_or_else(|| agent.visit_count()),
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

    fn state(&self) -> Option<&State> {
        self.definition.states.get(self.agent.visit.location.state()?)
    }

    fn message(&self, state: &State) -> Message {
        match &self.turn.prompt {
            Prompt::Body => Message::Body {
                body: Arc::clone(&state.body),
                values: VisitValues::of(self.agent, &state.name),
            },
            Prompt::Reminder(fault) => {
                let states = &self.definition.states;
                // A reminder must not offer a state that would fail at once.
                let runnable = states.values().filter(|state| self.definition.can_run(state));
                let names = runnable.map(|state| state.name.to_string()).collect();
                Message::Reminder(reminder(fault, &state.front.policy.allowance(names)))
            }
        }
    }

    fn request(&self) -> Option<Message> {
        let (steps, state) = (self.definition.steps.as_deref()?, self.run.program.steps()?);
        let key = self.agent.visit.location.step()?;
        let request = steps.request(state, &self.agent.id, key)?;
        Some(Message::Request { text: ask::message(&request), schema: request.schema })
    }

    /// Returns the number of the output that an agent step is asked for.
    fn asked_output(&self) -> Option<u32> {
        let key = self.agent.visit.location.step()?;
        self.run.program.steps()?.attempts.get(key).copied()
    }
}
