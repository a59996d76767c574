//! Events: the facts that a run consists of.
//!
//! Every event states a result, with nothing left to compute, so that `apply` only stores it.
//! Fields are added with a default and never changed, because old journals must apply for ever.
//! Names of variants and fields are the journal format: see docs/journal.md.

use std::ops::Not;

use super::warning::Warning;
use crate::scheduler::Hold;

use serde::{Deserialize, Serialize};

use crate::agent::{CancelReason, Frame, Location, PendingTransition, Session, SessionPlan};
use crate::budget::{Charge, Micros};
use crate::crayfish::StepEvent;
use crate::failure::{AgentFailure, TurnFailure};
use crate::few::Few;
use crate::ids::{AgentId, BackendName, Nonce, SessionId, StateName, TurnId};
use crate::protocol::Notice;
use crate::protocol::{Fault, Need, ResultStatus, TagName};
use crate::scheduler::{Lane, Prompt};
use crate::time::{Span, Timestamp};
use crate::value::Value;

use super::discarded::DiscardedCost;
use super::group::WaitEnd;
use super::settings::Settings;
use crate::run::start::Start;
use crate::run::stop::{Interruption, StopMode, StopOrigin};

/// A fact about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The run exists.
    // Boxed, because most events of a record are small.
    RunStarted(Box<Start>),
    /// The run continues with these settings.
    RunResumed {
        settings: Box<Settings>,
    },
    /// The run uses other states from now on.
    DefinitionAdopted {
        /// The list of states.
        manifest: Value,
    },
    /// The records after `kept` were discarded.
    RunRewound {
        /// The last kept record.
        kept: u64,
        /// A new nonce, so that no session id of the discarded records is used again.
        nonce: Nonce,
        /// The cost of the discarded records.
        #[serde(default, skip_serializing_if = "DiscardedCost::is_nothing")]
        discarded: DiscardedCost,
        /// The settings at the end of the discarded records, if they differ.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        governed: Option<Box<Settings>>,
    },
    /// The run was asked to end.
    StopRequested {
        mode: StopMode,
        #[serde(default)]
        by: StopOrigin,
        /// The idempotency key of the request.
        key: String,
    },
    /// The run has ended. Some endings allow a resume.
    RunEnded {
        ending: Ending,
    },

    /// A turn waits for a slot and, if it is paid, for a budget share.
    TurnQueued {
        turn: TurnId,
        lane: Lane,
        prompt: Prompt,
        plan: SessionPlan,
        /// Its place in the queue. A reminder keeps the place of the turn before it.
        // Recorded and not counted by `apply`, so that every release gives the queue the same
        // order.
        order: u64,
        /// A notice that precedes the prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<Notice>,
    },
    /// An interrupted or failed turn waits again.
    TurnRequeued {
        turn: TurnId,
        /// Its new place in the queue.
        order: u64,
        /// The notice that precedes the prompt.
        notice: Notice,
    },
    /// A turn is in flight, so its effect may be released.
    TurnStarted {
        turn: TurnId,
        /// Which attempt, from 1.
        attempt: u32,
        /// Its budget share; `None` without a cap, and for scripts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        // Reserved until the turn ends, so that turns in parallel cannot exceed the cap together.
        share: Option<Micros>,
        /// How this attempt gets its conversation.
        // Recorded before the client starts, so that a recovery knows which session it may have
        // opened.
        plan: SessionPlan,
    },
    /// A turn ended with a text.
    TurnSettled {
        turn: TurnId,
        attempt: u32,
        charge: Charge,
        /// The agent's conversation from now on.
        session: Session,
        /// The model that answered, if the client reported it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// The share of an adopted turn does not fit the new cap, so Raymond ends its client. The turn
    /// then continues with a new share.
    TurnRecalled {
        turn: TurnId,
        attempt: u32,
    },
    /// A turn used up its budget share and needs another one.
    TurnContinues {
        turn: TurnId,
        attempt: u32,
        charge: Charge,
        /// Attempts in a row that ended early without progress.
        #[serde(default, skip_serializing_if = "is_zero")]
        stalls: u32,
        /// The session that the client opened, if the client could not use the chosen id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    TurnFailed {
        turn: TurnId,
        attempt: u32,
        charge: Charge,
        failure: TurnFailure,
        /// The session that the client opened, if the client could not use the chosen id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    /// A turn was interrupted.
    TurnInterrupted {
        turn: TurnId,
        attempt: u32,
        charge: Charge,
        /// The cause of the interruption.
        by: Interruption,
        /// Crashes of this turn in a row without progress.
        crashes: u32,
        /// The session that the client opened, if the client could not use the chosen id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    /// A failed turn is tried again at `until`.
    RetryAt {
        turn: TurnId,
        until: Timestamp,
        /// Which retry of the visit, from 1.
        retry: u32,
        /// The number of retries, if the step and not the settings decide it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u32>,
    },
    /// No turn of this backend starts from now on.
    BackendHeld {
        backend: BackendName,
        /// The reason, and the end if it is known.
        hold: Hold,
    },
    /// Turns of this backend start again.
    BackendReleased {
        backend: BackendName,
    },
    /// The turn continues in another session, because the client lost the first one or a rewind
    /// discarded it.
    SessionLost {
        turn: TurnId,
        lost: SessionId,
        /// How the turn gets its conversation from now on.
        plan: SessionPlan,
    },
    /// A question to the user is open.
    Asked {
        /// The id of the question.
        ask: TurnId,
        question: Value,
        /// When it expires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Timestamp>,
    },
    /// A user answered a question.
    AskAnswered {
        /// The id of the question.
        ask: TurnId,
        value: Value,
        by: String,
        /// The idempotency key of the request.
        key: String,
    },
    /// A question expired without an answer.
    AskExpired {
        /// The id of the question.
        ask: TurnId,
    },

    AgentSpawned {
        agent: AgentId,
        /// The agent that forked it; `None` for `main`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<AgentId>,
        cwd: String,
        /// Its template variables.
        #[serde(default, skip_serializing_if = "Few::is_empty")]
        attributes: Few<String, Value>,
    },
    /// An agent entered a state or a step.
    VisitEntered {
        agent: AgentId,
        location: Location,
        /// The number of the visit, counted over all states of the agent.
        visit: u32,
        /// How often the agent has entered this state, this time included.
        // Recorded, because the rule for what counts as a visit belongs to the decision.
        count: u32,
        /// The input or result that the visit starts with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// Whether the result that the visit starts with is a success.
        #[serde(default, skip_serializing_if = "ResultStatus::is_ok")]
        result_status: ResultStatus,
    },
    /// Raymond reminds an agent of a fault in its message.
    Reminded {
        agent: AgentId,
        fault: Fault,
        /// Which reminder of the visit, from 1.
        reminder: u32,
    },
    /// An agent took a transition.
    Moved {
        agent: AgentId,
        /// The tag that caused the transition.
        tag: TagName,
        /// The change of its return stack.
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
        /// Whether the text had no tag, and the only allowed transition was taken.
        #[serde(default, skip_serializing_if = "Not::not")]
        implicit: bool,
    },
    AgentEnded {
        agent: AgentId,
        result: Value,
    },
    AgentFailed {
        agent: AgentId,
        failure: AgentFailure,
        /// The transition that was paid for but not taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<PendingTransition>,
    },
    /// An agent's fork waits until workers end.
    AgentHeld {
        agent: AgentId,
        // Its turn was paid, so the transition must survive a crash and a resume.
        kept: PendingTransition,
    },
    /// An agent is parked: its transition waits for a time.
    AgentWaits {
        agent: AgentId,
        // Its turn was paid, so the transition must survive a crash and a resume.
        kept: PendingTransition,
        until: Timestamp,
        /// The duration, if the transition names one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        span: Option<Span>,
        /// How many workers it has forked so far.
        #[serde(default, skip_serializing_if = "is_zero")]
        forks: u32,
    },
    /// An agent is parked: its transition waits for workers.
    AgentJoins {
        agent: AgentId,
        // Its turn was paid, so the transition must survive a crash and a resume.
        kept: PendingTransition,
        /// The workers, in the order of their tags.
        workers: Vec<AgentId>,
        need: Need,
        /// The end of the longest wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// How many workers it has forked so far.
        forks: u32,
    },
    /// An agent is parked: it waits for the answer of a person. The question follows.
    AgentAsks {
        agent: AgentId,
        // Its turn was paid, so the transition must survive a crash and a resume.
        kept: PendingTransition,
        /// The id of the question.
        ask: TurnId,
        at: Timestamp,
    },
    /// A wait for workers is over. Workers that are still live are cancelled.
    WaitOver {
        agent: AgentId,
        end: WaitEnd,
    },
    /// An agent receives the list of its workers in the visit that it has just entered.
    Joined {
        agent: AgentId,
        /// The workers that failed. They leave the run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<AgentId>,
    },
    /// A user asked for the cancellation of an agent.
    CancelRequested {
        agent: AgentId,
        by: String,
        /// The idempotency key of the request.
        key: String,
    },
    /// The turn of an agent that is cancelled is being ended.
    AgentCancelling {
        agent: AgentId,
        why: CancelReason,
    },
    /// An agent left the run without a result.
    AgentCancelled {
        agent: AgentId,
        why: CancelReason,
    },
    /// A failed agent continues at the visit that failed, with its reminders and retries reset.
    AgentRevived {
        agent: AgentId,
    },
    /// A branch of a document made a step.
    Stepped {
        agent: AgentId,
        event: StepEvent,
    },
    /// A warning, which changes nothing.
    Warned {
        /// The agent concerned; `None` for the whole run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        warning: Warning,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(super) fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// All agents ended with a result.
    Completed,
    /// At least one agent failed, and no agent is left.
    Failed,
    /// The budget is used up, and a turn needs more.
    OverBudget,
    /// A user stopped it. It can be resumed.
    Stopped,
    /// A user cancelled it. It cannot be resumed.
    Cancelled,
    /// A user has to act, for example log in or answer a question.
    NeedsPerson,
    /// A usage limit was reached, and `--no-wait` forbids waiting.
    NoQuota,
    /// The run waits for answers of its caller.
    NeedsCaller,
    /// The machine lacks something, such as space on the disk. A resume tries again.
    Environment,
    /// Agents wait for a time, and `--no-wait` forbids waiting.
    Sleeping,
}

impl Ending {
    /// Returns whether a run that ended in this way waits and can be stopped. Only its caller
    /// continues a run that waits for it, so such a run cannot be stopped.
    pub const fn is_wait(self) -> bool {
        match self {
            Self::NeedsPerson | Self::NoQuota | Self::Environment | Self::Sleeping => true,
            Self::Completed
            | Self::Failed
            | Self::OverBudget
            | Self::Stopped
            | Self::Cancelled
            | Self::NeedsCaller => false,
        }
    }
}

/// The change of a return stack in one transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StackChange {
    Keep,
    Push(Frame),
    Pop,
    Clear,
}
