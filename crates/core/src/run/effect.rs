//! Effects: the work that the engine does once the record that causes it is durable.
//!
//! An effect names a turn and its parameters, but no rendered text: prompts and scripts are
//! rendered from the run and its definition where they are sent. Effects are not journalled. After
//! a crash they are derived again from the turns in flight.

use crate::agent::{Agent, Location, SessionPlan};
use crate::budget::Micros;
use crate::crayfish::Key;
use crate::ids::{BackendName, StateName, TurnId};
use crate::protocol::Notice;
use crate::scheduler::{Lane, Phase, Prompt, Turn};
use crate::time::Span;
use crate::workflow::{Definition, Frontmatter};

use super::event::Event;
use super::permissions::Permissions;
use super::settings::ConfigHome;
use super::state::Run;
use crate::run::stop::StopMode;

/// One piece of work for the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Prompt(Box<PromptEffect>),
    Script(Box<ScriptEffect>),
    Step(Box<StepEffect>),
    /// End a turn in flight. Its outcome still arrives as an input.
    Cancel {
        turn: TurnId,
        attempt: u32,
    },
    /// The run has ended, so its owner may exit.
    Finish,
}

/// A prompt to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptEffect {
    pub turn: TurnId,
    pub attempt: u32,
    pub location: Location,
    /// The backend that answers.
    pub backend: BackendName,
    pub plan: SessionPlan,
    pub prompt: Prompt,
    /// A notice that precedes the prompt if the client may have seen an earlier attempt.
    pub notice: Option<Notice>,
    /// How often the agent has entered the state. For a step: the output that is asked for, from 1.
    pub count: u32,
    /// The budget share of the turn.
    pub cap: Option<Micros>,
    pub cwd: String,
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
    /// Names of the environment variables that are passed on; `None` passes all.
    pub environment: Option<Vec<String>>,
    /// The longest duration of the turn.
    pub timeout: Option<Span>,
    /// The longest time without output.
    pub idle_timeout: Option<Span>,
}

/// Options of a state that its client receives as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extras {
    /// Additional directories that the client may use.
    pub add_dirs: Vec<String>,
    pub mcp_config: Option<String>,
    /// Text that is appended to the client's system prompt.
    pub append_system_prompt: Option<String>,
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

/// A script to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptEffect {
    pub turn: TurnId,
    pub attempt: u32,
    pub state: StateName,
    pub cwd: String,
    /// Names of the environment variables that are passed on beside Raymond's own; `None` passes
    /// all.
    pub environment: Option<Vec<String>>,
    /// The longest duration of the turn.
    pub timeout: Option<Span>,
    /// The longest time without output.
    pub idle_timeout: Option<Span>,
}

/// The program of a step to run. Its templates are filled in where it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEffect {
    pub turn: TurnId,
    pub attempt: u32,
    /// The attempt without those that were interrupted: the number that the step counts, from 1.
    pub counted: u32,
    pub key: Key,
    pub cwd: String,
    /// Names of the environment variables that are passed on beside Raymond's own; `None` passes
    /// all.
    pub environment: Option<Vec<String>>,
}

/// Returns the number of the output that an agent step is asked for.
fn asked(run: &Run, agent: &Agent) -> Option<u32> {
    run.program.steps()?.attempts.get(agent.visit.location.step()?).copied()
}

/// Returns the effects of `events`, which `run` already includes.
pub fn effects<'e>(
    run: &Run,
    definition: &Definition,
    events: impl IntoIterator<Item = &'e Event>,
) -> Vec<Effect> {
    let mut effects = Vec::new();
    for event in events {
        if let Event::TurnStarted { turn, attempt, .. } = event {
            // The turn may have been replaced by a later event of the same batch.
            let current = run.scheduler.turns.get(&turn.agent);
            let current =
                current.filter(|current| current.id == *turn && current.attempt == *attempt);
            effects.extend(current.and_then(|turn| of_turn(run, definition, turn)));
        } else if let Event::StopRequested { mode, .. } = event
            && *mode != StopMode::AfterTurn
        {
            effects.extend(
                in_flight(run)
                    .map(|turn| Effect::Cancel { turn: turn.id.clone(), attempt: turn.attempt }),
            );
        } else if let Event::TurnRecalled { turn, attempt } = event {
            effects.push(Effect::Cancel { turn: turn.clone(), attempt: *attempt });
        } else if let Event::RunEnded { .. } = event {
            effects.push(Effect::Finish);
        }
    }
    effects
}

/// Returns the turns that were started and not settled, which a recovery has to look for.
pub fn in_flight(run: &Run) -> impl Iterator<Item = &Turn> {
    run.scheduler.in_flight.iter().filter_map(|agent| run.scheduler.turns.get(agent))
}

/// Returns the effect of a turn in flight.
pub fn of_turn(run: &Run, definition: &Definition, turn: &Turn) -> Option<Effect> {
    let agent = run.agents.get(&turn.id.agent)?;
    let Phase::Running { share } = turn.phase else {
        return None;
    };
    // A step has no frontmatter: only the settings of the run apply to it.
    let steps = Frontmatter::default();
    let front = match &agent.visit.location {
        Location::State(state) => definition.states.get(state).map(|state| &*state.front)?,
        Location::Step(_) => &steps,
    };
    let settings = &run.settings;
    let timeout = front.timeout.or(settings.timeout);
    let idle_timeout = front.idle_timeout.or(settings.idle_timeout);
    let (id, attempt, cwd) = (turn.id.clone(), turn.attempt, agent.cwd.clone());
    Some(match (&turn.lane, &agent.visit.location) {
        (Lane::Script, Location::Step(key)) => Effect::Step(Box::new(StepEffect {
            turn: id,
            attempt,
            counted: agent.visit.retries.saturating_add(1),
            key: key.clone(),
            cwd,
            environment: settings.environment.clone(),
        })),
        (Lane::Script, Location::State(state)) => Effect::Script(Box::new(ScriptEffect {
            turn: id,
            attempt,
            state: state.clone(),
            cwd,
            environment: settings.environment.clone(),
            timeout,
            idle_timeout,
        })),
        (Lane::Prompt(backend), location) => Effect::Prompt(Box::new(PromptEffect {
            turn: id,
            attempt,
            count: asked(run, agent).unwrap_or_else(|| agent.visit_count()),
            location: location.clone(),
            backend: backend.clone(),
            plan: turn.current.clone()?,
            prompt: turn.prompt.clone(),
            notice: turn.notice,
            cap: share,
            cwd,
            model: front
                .model
                .as_ref()
                .or_else(|| agent.model_for(backend))
                .or(settings.model.as_ref())
                .cloned(),
            effort: front.effort.clone().or_else(|| settings.effort.clone()),
            permissions: settings.permissions.of_state(front),
            extras: Extras::of(front),
            config_home: settings.config_home,
            environment: settings.environment.clone(),
            timeout,
            idle_timeout,
        })),
    })
}
