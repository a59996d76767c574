//! What the world is asked to do, once the record that says so is durable.

use crate::agent::{Agent, SessionPlan};
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

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send a prompt to a client.
    Prompt(Box<PromptEffect>),
    /// Run a script.
    Script(Box<ScriptEffect>),
    /// Run the program of a step.
    Step(Box<StepEffect>),
    /// End a turn in flight; its outcome still arrives.
    Cancel {
        /// Which turn.
        turn: TurnId,
        /// Which attempt.
        attempt: u32,
    },
    /// The run has ended; the owner may go.
    Finish,
}

/// A prompt to send. Texts are rendered where it is sent, from the run and its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptEffect {
    /// Which turn.
    pub turn: TurnId,
    /// Which attempt.
    pub attempt: u32,
    /// The state it belongs to.
    pub state: StateName,
    /// Who answers.
    pub backend: BackendName,
    /// How it gets its conversation.
    pub plan: SessionPlan,
    /// What it sends.
    pub prompt: Prompt,
    /// What precedes it when an earlier attempt may have been seen.
    pub notice: Option<Notice>,
    /// How often the agent has entered the state; of a step, the output that is asked for, from 1.
    pub count: u32,
    /// What it may spend.
    pub cap: Option<Micros>,
    /// Where the client works.
    pub cwd: String,
    /// The model, where anything decides it.
    pub model: Option<String>,
    /// The effort, where anything decides it.
    pub effort: Option<String>,
    /// What the client may do without asking.
    pub permissions: Permissions,
    /// What else the state hands to the client.
    pub extras: Extras,
    /// Whose configuration the client uses.
    pub config_home: ConfigHome,
    /// The environment variables that it is handed; none means all.
    pub environment: Option<Vec<String>>,
    /// The longest it may take.
    pub timeout: Option<Span>,
    /// The longest it may be silent.
    pub idle_timeout: Option<Span>,
}

/// What a state hands to its client as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extras {
    /// Directories that the client may use.
    pub add_dirs: Vec<String>,
    /// Its MCP configuration.
    pub mcp_config: Option<String>,
    /// Appended to its system prompt.
    pub append_system_prompt: Option<String>,
}

impl Extras {
    /// What the head of a state says.
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
    /// Which turn.
    pub turn: TurnId,
    /// Which attempt.
    pub attempt: u32,
    /// The script.
    pub state: StateName,
    /// Where it works.
    pub cwd: String,
    /// The environment variables that it is handed beside its own; none means all.
    pub environment: Option<Vec<String>>,
    /// The longest it may take.
    pub timeout: Option<Span>,
    /// The longest it may be silent.
    pub idle_timeout: Option<Span>,
}

/// The program of a step to run. What it is written with is filled in where it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEffect {
    /// Which turn.
    pub turn: TurnId,
    /// Which attempt.
    pub attempt: u32,
    /// The same without attempts that were cut off: the one that its step counts, from 1.
    pub counted: u32,
    /// The step.
    pub key: Key,
    /// Where it works.
    pub cwd: String,
    /// The environment variables that it is handed beside its own; none means all.
    pub environment: Option<Vec<String>>,
}

/// Which of the outputs that a step may have is asked for.
fn asked(run: &Run, agent: &Agent) -> Option<u32> {
    run.flow.as_ref()?.attempts.get(&agent.step_key()?).copied()
}

/// What the world is asked to do because of `events`, which `run` already holds.
pub fn effects<'e>(
    run: &Run,
    definition: &Definition,
    events: impl IntoIterator<Item = &'e Event>,
) -> Vec<Effect> {
    let mut effects = Vec::new();
    for event in events {
        if let Event::TurnStarted { turn, attempt, .. } = event {
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

/// The turns that were started and are not settled: what a recovery has to look for.
pub fn in_flight(run: &Run) -> impl Iterator<Item = &Turn> {
    run.scheduler.in_flight.iter().filter_map(|agent| run.scheduler.turns.get(agent))
}

/// What a turn in flight is.
pub fn of_turn(run: &Run, definition: &Definition, turn: &Turn) -> Option<Effect> {
    let agent = run.agents.get(&turn.id.agent)?;
    let state = agent.visit.state.clone();
    let Phase::Running { share } = turn.phase else {
        return None;
    };
    let steps = Frontmatter::default();
    let front = match &definition.work {
        Some(_) => &steps,
        None => definition.states.get(&state).map(|state| &state.front)?,
    };
    let settings = &run.settings;
    let timeout = front.timeout.or(settings.timeout);
    let idle_timeout = front.idle_timeout.or(settings.idle_timeout);
    let (id, attempt, cwd) = (turn.id.clone(), turn.attempt, agent.cwd.clone());
    Some(match &turn.lane {
        Lane::Script if definition.work.is_some() => Effect::Step(Box::new(StepEffect {
            turn: id,
            attempt,
            counted: agent.visit.retries.saturating_add(1),
            key: agent.step_key()?,
            cwd,
            environment: settings.environment.clone(),
        })),
        Lane::Script => Effect::Script(Box::new(ScriptEffect {
            turn: id,
            attempt,
            state,
            cwd,
            environment: settings.environment.clone(),
            timeout,
            idle_timeout,
        })),
        Lane::Prompt(backend) => Effect::Prompt(Box::new(PromptEffect {
            turn: id,
            attempt,
            count: asked(run, agent).or_else(|| agent.visits.get(&state).copied()).unwrap_or(1),
            state,
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
