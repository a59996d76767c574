//! The contract between the engine and agent clients: requests and answers.
//!
//! A backend sends one prompt to its client and observes how the turn ends. It decides nothing: no
//! retry, no reminder, no transition. An answer depends only on its request, so parallel turns and
//! resumed runs get the same answers as turns that run one after the other. `conformance` checks
//! this.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use raymond_core::agent::{Location, SessionPlan};
use raymond_core::budget::{Cost, Micros};
pub use raymond_core::capability::Capability;
use raymond_core::ids::{BackendName, Nonce, SessionId, TurnId};
use raymond_core::run::Permissions;
use raymond_core::run::outcome::{Outcome, Reply};
use raymond_core::run::stop::Interruption;
use raymond_core::run::turn_spec::Extras;
use raymond_core::time::Span;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// An agent client.
pub trait Backend: Send + Sync {
    /// The name in workflows and flags.
    fn name(&self) -> BackendName;

    fn capabilities(&self) -> &'static [Capability];

    /// Sends the prompt and observes the turn until it ends. A cancelled token ends the turn and
    /// every process of the turn. The answer is then [`Answer::Interrupted`], unless the turn had
    /// already ended.
    fn answer(&self, request: PromptRequest, observer: TurnObserver) -> AnswerFuture<'_>;

    /// Looks for a turn that an earlier owner of the run started. The default finds nothing, which
    /// is right for clients that die with their owner.
    fn attach(&self, _: &StartedTurn) -> AttachResult {
        AttachResult::without_answer(Cost::Unknown, false, None)
    }

    /// Observes a turn that [`Backend::attach`] found running until it ends.
    fn follow(&self, _: StartedTurn, _: TurnObserver) -> AnswerFuture<'_> {
        // The default `attach` never reports a running turn, so this is not reached in practice.
        let (cost, progressed) = (Cost::Unknown, false);
        let answer =
            Answer::Interrupted { by: Interruption::Stop, cost, progressed, session: None };
        Box::pin(std::future::ready(answer))
    }
}

/// The connection of a running turn to its caller: cancellation and progress.
#[derive(Clone)]
pub struct TurnObserver {
    /// Ends the turn when it is cancelled.
    pub cancel: CancellationToken,
    /// Receives progress while the turn runs.
    pub listener: Arc<dyn Fn(ClientProgress) + Send + Sync>,
}

/// Visible progress of a running turn. No decision depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientProgress {
    /// The client uses a tool.
    Tool {
        /// The call in the form of a permission rule: `Bash(cargo test)`.
        name: String,
    },
    /// The client writes text.
    Text,
    /// The client retries a request.
    Retries { why: String },
    /// The client has written nothing for this long.
    Silent(Span),
}

/// A pending answer.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// A started turn, with everything that is needed to find it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedTurn {
    pub nonce: Nonce,
    pub turn: TurnId,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// How the turn gets its conversation.
    pub plan: SessionPlan,
    /// The file to which the client writes its stream.
    pub transcript: PathBuf,
    /// The time limit of the whole turn.
    pub timeout: Option<Span>,
    /// The time limit between two outputs.
    pub idle_timeout: Option<Span>,
    /// The budget share of the turn; `None` means no limit.
    pub cap: Option<Micros>,
    /// The client's configuration directory; `None` means the user's own.
    pub config_home: Option<PathBuf>,
}

/// The result of looking for a started turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachResult {
    /// The client still runs: call [`Backend::follow`].
    Running,
    /// The client is not running. Without an answer, the turn was interrupted by a crash.
    Ended(Answer),
    /// The transcript cannot be read, so an answer may be lost in it.
    Unreadable { why: String },
}

/// One prompt to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptRequest {
    pub started: StartedTurn,
    /// The state or step that the turn belongs to.
    pub location: Location,
    /// How often the agent has entered the state, including this time. For a step: the number of
    /// the requested output.
    pub count: u32,
    pub prompt: String,
    /// A text to send before the prompt if the model may have seen an earlier attempt.
    pub notice: Option<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The model; `None` leaves the choice to the client.
    pub model: Option<String>,
    /// The reasoning effort; `None` leaves the choice to the client.
    pub effort: Option<String>,
    /// The tools that the client may use without asking.
    pub permissions: Permissions,
    /// Further options that the state passes to the client.
    pub extras: Extras,
    /// The JSON Schema of the final message.
    pub schema: Option<Value>,
    /// The names of the environment variables that the client inherits; `None` means all.
    pub environment: Option<Vec<String>>,
}

/// How a turn ended. A final message is not read here: tags and values are read by the caller.
pub type Answer = Outcome<Reply>;

impl AttachResult {
    /// Returns the result for a client that is not running and left no answer.
    pub fn without_answer(cost: Cost, progressed: bool, session: Option<SessionId>) -> Self {
        Self::Ended(Answer::Interrupted { by: Interruption::Crash, cost, progressed, session })
    }
}

impl TurnObserver {
    /// Creates an observer that ignores all progress.
    pub fn silent(cancel: CancellationToken) -> Self {
        Self { cancel, listener: Arc::new(|_| {}) }
    }
}

impl fmt::Debug for TurnObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnObserver").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

impl PromptRequest {
    /// Returns the complete message: the notice and a blank line, if there is a notice, then the
    /// prompt.
    pub fn message(&self) -> String {
        match &self.notice {
            Some(notice) => format!("{notice}\n\n{}", self.prompt),
            None => self.prompt.clone(),
        }
    }
}
