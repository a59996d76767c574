//! Facts. A run is the fold of its events, and nothing else.
//!
//! Every event says what is so from now on, with nothing left to work out: `apply` only writes it
//! down. Fields are added with a default, never changed: old journals apply for ever.

use super::warning::Warning;
use crate::scheduler::Hold;

use serde::{Deserialize, Serialize};

use crate::agent::{Frame, PendingTransition, Session, SessionPlan};
use crate::budget::{Charge, Micros};
use crate::crayfish::StepEvent;
use crate::failure::{Failure, TurnFailure};
use crate::few::Few;
use crate::ids::{AgentId, BackendName, Nonce, SessionId, StateName, TurnId};
use crate::protocol::Notice;
use crate::protocol::{Fault, TagName};
use crate::scheduler::{Lane, Prompt};
use crate::time::Timestamp;
use crate::value::Value;

use super::discarded::DiscardedCost;
use super::settings::Settings;
use crate::run::start::Start;
use crate::run::stop::{Interruption, StopMode};

/// Something that is so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The run exists.
    RunStarted(Box<Start>),
    /// The run goes on under these settings.
    RunResumed {
        /// The settings.
        settings: Box<Settings>,
    },
    /// The run uses these states from now on.
    DefinitionAdopted {
        /// The list of states.
        manifest: Value,
    },
    /// Everything after the record `kept` was cut away.
    RunRewound {
        /// The last record that stayed.
        kept: u64,
        /// Sessions of the abandoned future are never met again.
        nonce: Nonce,
        /// What it had cost.
        #[serde(default, skip_serializing_if = "DiscardedCost::is_nothing")]
        discarded: DiscardedCost,
        /// What governed it at last, if that was something else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        governed: Option<Box<Settings>>,
    },
    /// Somebody asked the run to end.
    StopRequested {
        /// How.
        mode: StopMode,
        /// Names the request.
        key: String,
    },
    /// The run has no more to do for now.
    RunEnded {
        /// How it ended.
        ending: Ending,
    },

    /// A turn waits for a slot and, if it is paid, for a share.
    TurnQueued {
        /// Which turn.
        turn: TurnId,
        /// Where it queues.
        lane: Lane,
        /// What it sends.
        prompt: Prompt,
        /// How it gets its conversation.
        plan: SessionPlan,
        /// Its place: a reminder keeps the place of the turn before it.
        order: u64,
        /// What the client is told first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<Notice>,
    },
    /// A turn that was cut off, or has to be tried again, waits anew.
    TurnRequeued {
        /// Which turn.
        turn: TurnId,
        /// Its new place.
        order: u64,
        /// What the client is told about it.
        notice: Notice,
    },
    /// A turn is in flight: its effect may be released.
    TurnStarted {
        /// Which turn.
        turn: TurnId,
        /// Which attempt, from 1.
        attempt: u32,
        /// What it may spend; none without a cap, and for scripts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<Micros>,
        /// How this attempt gets its conversation.
        plan: SessionPlan,
    },
    /// A turn ended with a text.
    TurnSettled {
        /// Which turn.
        turn: TurnId,
        /// Which attempt.
        attempt: u32,
        /// What it is charged.
        charge: Charge,
        /// The agent's conversation from now on.
        session: Session,
        /// The model that answered, where the client said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// The share of an adopted turn does not fit the cap that the run was resumed with: its client is
    /// ended, and the turn continues with a new share.
    TurnRecalled {
        /// Which turn.
        turn: TurnId,
        /// Which attempt.
        attempt: u32,
    },
    /// A turn used up its share, and needs another one.
    TurnContinues {
        /// Which turn.
        turn: TurnId,
        /// Which attempt.
        attempt: u32,
        /// What it is charged.
        charge: Charge,
        /// Attempts in a row that ended early and made no progress.
        #[serde(default, skip_serializing_if = "is_zero")]
        stalls: u32,
        /// The session, when the client could not take the one that was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    /// A turn failed.
    TurnFailed {
        /// Which turn.
        turn: TurnId,
        /// Which attempt.
        attempt: u32,
        /// What it is charged.
        charge: Charge,
        /// Why.
        failure: TurnFailure,
        /// The session, when the client could not take the one that was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    /// A turn was cut off.
    TurnInterrupted {
        /// Which turn.
        turn: TurnId,
        /// Which attempt.
        attempt: u32,
        /// What it is charged.
        charge: Charge,
        /// By whom.
        by: Interruption,
        /// Crashes of this turn in a row without progress.
        crashes: u32,
        /// The session, when the client could not take the one that was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    /// A failed turn is tried again then.
    RetryAt {
        /// Which turn.
        turn: TurnId,
        /// When.
        until: Timestamp,
        /// Which retry of the visit, from 1.
        retry: u32,
        /// How many there are, where the settings of the run do not say it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u32>,
    },
    /// No turn of this backend starts.
    BackendHeld {
        /// Which backend.
        backend: BackendName,
        /// Why, and until when.
        hold: Hold,
    },
    /// Turns of this backend start again.
    BackendReleased {
        /// Which backend.
        backend: BackendName,
    },
    /// The turn goes on in a fresh session, because the client lost the old one.
    SessionLost {
        /// Which turn.
        turn: TurnId,
        /// What was lost.
        lost: SessionId,
        /// How the turn gets its conversation from now on.
        plan: SessionPlan,
    },
    /// A turn cost something else than it was charged.
    CostAdjusted {
        /// Which turn.
        turn: TurnId,
        /// What the run has spent from now on.
        spent: Micros,
    },
    /// A person is asked.
    Asked {
        /// Names the question.
        ask: TurnId,
        /// The question.
        question: Value,
        /// When it expires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Timestamp>,
    },
    /// A person answered.
    AskAnswered {
        /// Names the question.
        ask: TurnId,
        /// The answer.
        value: Value,
        /// Who.
        by: String,
        /// Names the request.
        key: String,
    },
    /// Nobody answered in time.
    AskExpired {
        /// Names the question.
        ask: TurnId,
    },

    /// An agent exists.
    AgentSpawned {
        /// Its name.
        agent: AgentId,
        /// Who forked it; none for `main`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<AgentId>,
        /// Where it works.
        cwd: String,
        /// Its template variables.
        #[serde(default, skip_serializing_if = "Few::is_empty")]
        attributes: Few<String, Value>,
    },
    /// An agent is at a state.
    VisitEntered {
        /// Which agent.
        agent: AgentId,
        /// The state.
        state: StateName,
        /// The number of the visit, agent-wide.
        visit: u32,
        /// How often the agent has entered this state, this time included.
        count: u32,
        /// What it was handed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
    /// An agent is told what was wrong with its message.
    Reminded {
        /// Which agent.
        agent: AgentId,
        /// What was wrong.
        fault: Fault,
        /// Which reminder of the visit, from 1.
        reminder: u32,
    },
    /// An agent took a transition.
    Moved {
        /// Which agent.
        agent: AgentId,
        /// By which tag.
        tag: TagName,
        /// What becomes of its stack.
        stack: StackChange,
        /// Its conversation from now on.
        session: Session,
        /// Its working directory from now on, where it changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// The model of its calls from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The backend that the model is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_of: Option<BackendName>,
        /// How many workers it has forked so far.
        #[serde(default, skip_serializing_if = "is_zero")]
        forks: u32,
        /// The state it would have entered, had `max_visits` not led elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead_of: Option<StateName>,
    },
    /// An agent ended well.
    AgentEnded {
        /// Which agent.
        agent: AgentId,
        /// Its result.
        result: Value,
    },
    /// An agent failed.
    AgentFailed {
        /// Which agent.
        agent: AgentId,
        /// Why.
        failure: Failure,
        /// The transition that was paid for and not taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<PendingTransition>,
    },
    /// An agent's fork waits until workers end.
    AgentHeld {
        /// Which agent.
        agent: AgentId,
        /// The fork.
        kept: PendingTransition,
    },
    /// A failed agent goes on at the visit that failed, with fresh reminders and retries.
    AgentRevived {
        /// Which agent.
        agent: AgentId,
    },
    /// A strand of a document went on.
    Stepped {
        /// Which.
        agent: AgentId,
        /// What is so.
        fact: StepEvent,
    },
    /// Something is worth a look.
    Warned {
        /// Whom it concerns; none when it is the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// What.
        warning: Warning,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// All agents ended well.
    Completed,
    /// An agent failed, and none is left.
    Failed,
    /// Nothing is left to spend, and a turn needs it.
    OverBudget,
    /// Somebody stopped it; it can be resumed.
    Stopped,
    /// Somebody ended it for good.
    Cancelled,
    /// A person has to do something.
    NeedsPerson,
    /// A usage limit was reached, and the run was told not to wait.
    NoQuota,
    /// Only the caller can go on.
    NeedsCaller,
    /// The machine lacks something, such as room on the disk; a resume looks again.
    Environment,
}

/// What becomes of a return stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StackChange {
    /// Nothing.
    Keep,
    /// A frame is pushed.
    Push(Frame),
    /// The innermost frame is popped.
    Pop,
    /// All frames are dropped.
    Clear,
}
