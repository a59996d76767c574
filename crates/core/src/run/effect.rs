//! What the world is asked to do, once the record that says so is durable.

use crate::budget::Micros;
use crate::desk::{Notice, Prompt};
use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::machine::SessionPlan;
use crate::time::Span;

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send a prompt to a client.
    Prompt(Box<PromptEffect>),
    /// Run a script.
    Script(Box<ScriptEffect>),
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
    /// How often the agent has entered the state.
    pub count: u32,
    /// What it may spend.
    pub cap: Option<Micros>,
    /// Where the client works.
    pub cwd: String,
    /// The model, where anything decides it.
    pub model: Option<String>,
    /// The effort, where anything decides it.
    pub effort: Option<String>,
    /// The longest it may take.
    pub timeout: Option<Span>,
    /// The longest it may be silent.
    pub idle_timeout: Option<Span>,
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
    /// The longest it may take.
    pub timeout: Option<Span>,
    /// The longest it may be silent.
    pub idle_timeout: Option<Span>,
}

impl Effect {
    /// Whose turn it concerns.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Prompt(prompt) => Some(&prompt.turn.agent),
            Self::Script(script) => Some(&script.turn.agent),
            Self::Cancel { turn, .. } => Some(&turn.agent),
            Self::Finish => None,
        }
    }
}
