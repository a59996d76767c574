//! The meaning of a run's events, with the context that a reader needs.
//!
//! [`super::RunView`] makes a [`ViewEvent`] from an event and from the state before it. A consumer
//! therefore needs no memory: [`mod@super::words`] turns it into a line, [`super::costs`] counts
//! it, and `raymond logs` finds the attempts in it.

use std::collections::BTreeSet;

use crate::agent::{CancelReason, Location};
use crate::crayfish::problem::Problem;
use crate::failure::{AgentFailure, TurnFailure};
use crate::ids::{AgentId, BackendName, SessionId};
use crate::protocol::{Fault, Need, ResultStatus};
use crate::run::event::Ending;
use crate::run::program::{AnswerSource, Ralph};
use crate::run::stop::{StopMode, StopOrigin};
use crate::run::warning::Warning;
use crate::run::{DiscardedCost, Program, WaitEnd};
use crate::scheduler::Hold;
use crate::time::{Span, Timestamp};
use crate::value::Value;

use super::attempt::Attempt;
use super::summary::{QuestionEnd, Transition, VisitCost};

/// The meaning of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewEvent {
    RunStarted {
        workflow: String,
        /// The backends that its states may use.
        backends: BTreeSet<BackendName>,
    },
    RunResumed,
    /// The run uses edited states, or an edited document, from now on.
    DefinitionAdopted,
    RunRewound {
        /// The last kept record.
        kept: u64,
        discarded: DiscardedCost,
    },
    StopRequested {
        mode: StopMode,
        by: StopOrigin,
    },
    RunEnded(Ending),
    BackendHeld {
        backend: BackendName,
        hold: Hold,
    },
    BackendReleased(BackendName),
    Warned {
        /// The agent concerned; `None` for the whole run.
        agent: Option<AgentId>,
        warning: Warning,
        /// The spent part of the cap in percent, for [`Warning::Spent`]: its record contains only
        /// the threshold.
        // Computed here, because a consumer does not know the cap.
        spent_percent: Option<u128>,
    },

    AttemptBegan {
        attempt: Attempt,
        /// The reason for the attempt.
        cause: AttemptCause,
    },
    AttemptEnded(Attempt),
    /// A caller answered instead of a turn.
    Answered {
        attempt: Attempt,
        value: Value,
    },
    /// Raymond ends the client of a turn, because its budget share exceeds the new cap.
    TurnRecalled(AgentPlace),
    RetryScheduled {
        place: AgentPlace,
        failure: Option<TurnFailure>,
        /// Which retry of the visit, from 1.
        retry: u32,
        limit: RetryLimit,
    },
    /// The turn continues in another session.
    SessionLost {
        place: AgentPlace,
        lost: SessionId,
        /// How the turn failed; `None` if a rewind discarded the session.
        failure: Option<TurnFailure>,
    },
    Asked(AgentPlace),
    AskAnswered {
        place: AgentPlace,
        by: String,
    },

    VisitEntered {
        agent: AgentId,
        /// The place before; `None` at the first visit.
        from: Option<Location>,
        /// The fork attributes of a worker at its first visit.
        item: Option<String>,
        to: Location,
        /// How often the agent has entered the state, this time included.
        count: u32,
        /// The transition that led here; `None` between two steps.
        transition: Option<Transition>,
        /// Whether the result that led here is a success.
        result: ResultStatus,
        /// The workers that it waited for.
        joined: Option<JoinCounts>,
        /// How the question that it asked was closed.
        closed: Option<QuestionEnd>,
        // The bill of the place that the agent leaves, because the new visit has cost nothing yet.
        bill: AgentCost,
    },
    Reminded {
        place: AgentPlace,
        fault: Fault,
        /// Which reminder of the visit, from 1.
        reminder: u32,
    },
    AgentEnded {
        agent: AgentId,
        result: Value,
        program: ProgramKind,
        bill: AgentCost,
    },
    AgentFailed {
        place: AgentPlace,
        failure: AgentFailure,
        /// Whether a resume decides its paid transition again.
        keeps_transition: bool,
    },
    AgentHeld(AgentPlace),
    /// Its transition waits for a time.
    AgentWaits {
        agent: AgentId,
        /// The state that it leaves then.
        at: String,
        until: Timestamp,
        /// The duration, if the tag names one.
        span: Option<Span>,
        /// The state that it enters then.
        then: String,
    },
    /// Its transition waits for workers.
    AgentJoins {
        agent: AgentId,
        /// The state that it leaves then.
        at: String,
        need: Need,
        /// The number of workers.
        workers: usize,
        /// The state that it enters then.
        then: String,
    },
    /// It asks a person.
    AgentAsks {
        agent: AgentId,
        /// The state that it leaves then.
        at: String,
        question: Value,
        options: Vec<String>,
    },
    AgentCancelled {
        agent: AgentId,
        why: CancelReason,
    },
    AgentRevived(AgentPlace),
    /// An agent step asks again, because the last output has these errors.
    OutputRefused {
        place: AgentPlace,
        errors: Vec<Problem>,
        /// The attempt that follows.
        attempt: u32,
    },
    /// A step failed, and a loop around it collects failures.
    FailureCollected {
        place: AgentPlace,
        why: Option<String>,
    },
}

/// An agent with its place and the backend of its last turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPlace {
    pub agent: AgentId,
    /// Its state or step; `None` before the first.
    pub location: Option<Location>,
    /// `None` for a script.
    pub backend: Option<BackendName>,
}

/// The workers of a wait that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinCounts {
    pub end: WaitEnd,
    /// Workers that ended with a result.
    pub ended: u32,
    pub workers: usize,
}

/// The cost of a visit that ends now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCost {
    /// `None` if no turn of the visit has ended.
    pub cost: Option<VisitCost>,
    /// The backend of the last turn; `None` for a script.
    pub backend: Option<BackendName>,
}

/// The reason for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptCause {
    /// The turn begins, or is tried again.
    Turn,
    /// The attempt before it used up its budget share.
    NewShare,
}

/// The source of a limit of retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryLimit {
    /// The step allows this many retries.
    Step(u32),
    /// The settings of the run allow this many retries.
    Settings(u32),
}

/// The kind of program that a run executes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProgramKind {
    /// States, and transitions between them.
    #[default]
    States,
    /// One prompt in a loop. It shows visits and tags like a workflow.
    Ralph(Ralph),
    /// Steps, one after the other.
    Steps(AnswerSource),
}

impl ProgramKind {
    pub(super) fn of(program: &Program) -> Self {
        match program {
            Program::States => Self::States,
            Program::Ralph(ralph) => Self::Ralph(ralph.clone()),
            Program::Steps(steps) => Self::Steps(steps.answers),
        }
    }

    /// Returns whether the caller of the run answers its agent steps, so that Raymond spends
    /// nothing.
    pub const fn is_answered_by_caller(&self) -> bool {
        matches!(self, Self::Steps(AnswerSource::Caller))
    }
}
