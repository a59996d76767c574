//! What every agent client is asked, and what it may answer.
//!
//! A backend sends one prompt to its client and observes how that ends. It decides nothing: no
//! retry, no reminder, no transition. Its answer depends on the request alone, so that two turns at
//! once, or a resumed run, are answered like one turn after the other.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use raymond_core::budget::{Cost, Micros};
pub use raymond_core::capability::Capability;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::{BackendName, Nonce, SessionId, StateName, TurnId};
use raymond_core::machine::SessionPlan;
use raymond_core::run::Permissions;
use raymond_core::run::effect::Extras;
use raymond_core::run::event::Warning;
use raymond_core::time::Span;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// An agent client.
pub trait Backend: Send + Sync {
    /// How workflows and flags name it.
    fn name(&self) -> BackendName;

    /// What it can do.
    fn capabilities(&self) -> &'static [Capability];

    /// Sends the prompt and observes the turn to its end. A cancelled token ends the turn, and with
    /// it whatever was started for it; the answer then is [`Answer::Interrupted`], unless the turn
    /// was over already.
    fn answer(&self, request: Request, observer: TurnObserver) -> AnswerFuture<'_>;

    /// Looks for a turn that an earlier owner of the run started. A backend whose clients die with
    /// their owner finds nothing.
    fn attach(&self, _: &StartedTurn) -> AttachResult {
        AttachResult::Absent { cost: Cost::Unknown, progressed: false, session: None }
    }

    /// Observes a turn to its end that was found running. Whoever never finds one has nothing to do.
    fn follow(&self, _: StartedTurn, _: TurnObserver) -> AnswerFuture<'_> {
        let (cost, progressed) = (Cost::Unknown, false);
        let answer = Answer::Interrupted { cost, progressed, session: None };
        Box::pin(std::future::ready(answer))
    }
}

/// How a turn is watched and ended from outside.
#[derive(Clone)]
pub struct TurnObserver {
    /// Cancelled, the turn ends.
    pub cancel: CancellationToken,
    /// Told what is seen meanwhile.
    pub listener: Arc<dyn Fn(Progress) + Send + Sync>,
}

/// What is seen of a turn while it runs. Nothing depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The client uses a tool.
    Tool {
        /// As permissions name it: `Bash(cargo test)`.
        name: String,
    },
    /// The client writes.
    Text,
    /// The client tries a request again.
    Retries {
        /// Why.
        why: String,
    },
    /// The client has been silent this long.
    Silent(Span),
}

/// An answer that is being waited for.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// A turn that was started: enough to find it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedTurn {
    /// The nonce of the run.
    pub nonce: Nonce,
    /// Which turn.
    pub turn: TurnId,
    /// Which attempt at it, from 1.
    pub attempt: u32,
    /// How it gets its conversation.
    pub plan: SessionPlan,
    /// The file that holds what its client says.
    pub transcript: PathBuf,
    /// The longest the turn may take.
    pub timeout: Option<Span>,
    /// The longest it may be silent.
    pub idle_timeout: Option<Span>,
    /// What the turn may spend; none is no limit.
    pub cap: Option<Micros>,
    /// Where the client keeps its configuration; none is the person's own.
    pub config_home: Option<PathBuf>,
}

/// What a look for a turn found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachResult {
    /// It still runs: [`Backend::follow`] it.
    Running,
    /// It had finished, and this is its answer.
    Finished(Answer),
    /// It is gone.
    Absent {
        /// What it cost all the same.
        cost: Cost,
        /// Whether it had said anything.
        progressed: bool,
        /// The session, when it is not the one that the plan names.
        session: Option<SessionId>,
    },
    /// It is gone or runs, and its transcript cannot be read: its answer may be there.
    Unreadable {
        /// Why, as a sentence.
        why: String,
    },
}

/// One prompt to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The turn.
    pub started: StartedTurn,
    /// The state it belongs to.
    pub state: StateName,
    /// How often the agent has entered the state, this time included; of a step, which output is asked for.
    pub count: u32,
    /// What to send.
    pub prompt: String,
    /// What to say before it when an earlier attempt may have been seen.
    pub notice: Option<String>,
    /// Where the client works.
    pub cwd: PathBuf,
    /// The model; none leaves it to the client.
    pub model: Option<String>,
    /// The effort; none leaves it to the client.
    pub effort: Option<String>,
    /// What the client may do without asking.
    pub permissions: Permissions,
    /// What else the state hands to the client.
    pub extras: Extras,
    /// What the final message is to be: JSON that this schema describes.
    pub schema: Option<Value>,
    /// The environment variables that it is handed; none means all.
    pub environment: Option<Vec<String>>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// With a final message.
    Replied(Box<Reply>),
    /// Its cap is used up, and it has no final message.
    Capped {
        /// What it cost.
        cost: Cost,
        /// Whether the client had said anything.
        progressed: bool,
        /// The tools that the client denied, one entry per call.
        denied: Vec<String>,
        /// The session, when it is not the one that the plan names.
        session: Option<SessionId>,
    },
    /// It failed.
    Failed {
        /// How.
        failure: TurnFailure,
        /// What it cost all the same.
        cost: Cost,
        /// The tools that the client denied, one entry per call.
        denied: Vec<String>,
        /// The session, when it is not the one that the plan names.
        session: Option<SessionId>,
    },
    /// It was cancelled.
    Interrupted {
        /// What it cost all the same.
        cost: Cost,
        /// Whether the client had said anything.
        progressed: bool,
        /// The session, when it is not the one that the plan names.
        session: Option<SessionId>,
    },
}

/// A final message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The message.
    pub text: String,
    /// What the turn cost.
    pub cost: Cost,
    /// Whether the client stopped because the share was used up, and the message was complete by then.
    pub capped: bool,
    /// The session, when it is not the one that the plan names.
    pub session: Option<SessionId>,
    /// What was asked for with a schema, where the client or its message has JSON for it. Not every client
    /// checks its shape: whoever asked does.
    pub structured: Option<Value>,
    /// The model that answered, where the client said so.
    pub model: Option<String>,
    /// The tools that the client denied, one entry per call.
    pub denied: Vec<String>,
    /// What else is worth a look.
    pub warnings: Vec<Warning>,
}

impl TurnObserver {
    /// A watch that nobody looks at.
    pub fn silent(cancel: CancellationToken) -> Self {
        Self { cancel, listener: Arc::new(|_| {}) }
    }
}

impl fmt::Debug for TurnObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

impl Request {
    /// All that is sent: the notice, a blank line and the prompt; or the prompt alone.
    pub fn message(&self) -> String {
        match &self.notice {
            Some(notice) => format!("{notice}\n\n{}", self.prompt),
            None => self.prompt.clone(),
        }
    }
}

impl Answer {
    /// Returns what the turn cost.
    pub fn cost_mut(&mut self) -> &mut Cost {
        match self {
            Self::Replied(reply) => &mut reply.cost,
            Self::Capped { cost, .. }
            | Self::Failed { cost, .. }
            | Self::Interrupted { cost, .. } => cost,
        }
    }
}

impl Reply {
    /// A message, and nothing more to say about it.
    pub fn new(text: impl Into<String>, cost: Cost) -> Self {
        Self {
            text: text.into(),
            cost,
            capped: false,
            session: None,
            structured: None,
            model: None,
            denied: Vec::new(),
            warnings: Vec::new(),
        }
    }
}
