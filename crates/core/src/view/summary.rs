//! The facts about one live or failed agent that [`crate::run::Run`] does not contain.
//!
//! One fold with two owners: [`super::Ledger`] stores the summaries in snapshots, and the rows of
//! [`super::RunView`] contain them. A viewer who joins later therefore knows the same as a viewer
//! who has seen every event. The serde names are part of the snapshot format.

use serde::{Deserialize, Serialize};

use crate::agent::Location;
use crate::budget::{Basis, Charge, Micros};
use crate::crayfish::key::{RequestId, StepKey};
use crate::crayfish::state::StepEvent;
use crate::failure::TurnFailure;
use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::protocol::TagName;
use crate::run::Event;
use crate::run::event::StackChange;
use crate::time::Timestamp;
use crate::value::Value;

/// The place, the costs and the recent past of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentSummary {
    /// The agent that forked it; `None` for `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// Its state or step; `None` before the first.
    pub location: Option<Location>,
    /// How often it has entered its state, this visit included.
    #[serde(default)]
    pub count: u32,
    /// The calls that it has not returned from, outermost first, one for each frame of its stack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<PendingCall>,
    /// When its current activity began.
    pub since: Timestamp,
    /// When its last attempt started.
    #[serde(default)]
    pub(super) started: Timestamp,
    /// The backend of its last turn; `None` for a script.
    pub(super) asked: Option<BackendName>,
    /// The model of its last finished turn, if the client reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub spent: Micros,
    /// The cost of this visit's finished turns.
    pub bill: Option<VisitCost>,
    /// The transition that leads to its next visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) transition: Option<Transition>,
    /// The turn of its last ended attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_ended: Option<TurnId>,
    /// The turn of its last paid attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_paid: Option<TurnId>,
    /// How its turn failed, until an event shows the consequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn_failure: Option<TurnFailure>,
    /// The step at which its branch failed. It may be a loop, which has no visit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed_step: Option<StepKey>,
    /// The last question of this visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<TurnId>,
    /// The attempt that its agent step asked for last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) requested: Option<StepAttempt>,
    /// The question that was just answered; its step may already ask for the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answered: Option<AnsweredQuestion>,
    /// The attempt that was last requested with errors, so that they are shown once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<StepAttempt>,
    /// How its last question was closed, until the next visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) closed: Option<QuestionEnd>,
    /// Whether it is about to repeat its failed step.
    revived: bool,
}

/// How the question of a state was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionEnd {
    Answered {
        by: String,
        answer: Value,
    },
    /// No answer came in time.
    Expired,
}

/// The cost of a visit so far, and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VisitCost {
    pub amount: Micros,
    pub estimated: bool,
    pub unpriced: bool,
}

/// A transition between two states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    pub tag: TagName,
    /// The state whose visit limit led elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<StateName>,
    /// Whether the text had no tag, and the only allowed transition was taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
}

/// A call or function that an agent has not returned from.
// The frame on the stack says where the agent continues, but not who pushed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The state that made the call.
    pub by: Option<Location>,
    /// The visit of that state.
    pub visit: u32,
    pub tag: TagName,
    pub at: Timestamp,
}

/// An attempt at an agent step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StepAttempt {
    pub(super) key: StepKey,
    pub(super) number: u32,
}

/// A question of an agent step, and the attempt that asked it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AnsweredQuestion {
    pub(super) turn: TurnId,
    pub(super) attempt: StepAttempt,
}

impl VisitCost {
    fn add(&mut self, charge: Charge) {
        self.amount = self.amount.plus(charge.amount);
        match charge.basis {
            Basis::Estimated => self.estimated = true,
            Basis::Unpriced => self.unpriced = true,
            Basis::Free | Basis::Reported => {}
        }
    }
}

impl AgentSummary {
    /// Returns the summary of a new agent.
    pub(super) fn spawned(at: Timestamp, parent: Option<&AgentId>) -> Self {
        // Every visit of a step is the first, and so is the visit that the agent is about to enter.
        Self { parent: parent.cloned(), since: at, count: 1, ..Self::default() }
    }

    /// Returns the name of its place: the step that failed, or its state or step.
    pub(super) fn place(&self) -> Option<Location> {
        self.failed_step.clone().map(Location::from).or_else(|| self.location.clone())
    }

    /// Returns whether the agent enters its step once more, after a failure: only a state has
    /// several visits.
    pub(super) fn is_at_step(&self, location: &Location) -> bool {
        matches!(location, Location::Step(_)) && self.place().as_ref() == Some(location)
    }

    /// Returns whether a resume enters the failed step again, with the same key.
    pub(super) fn is_repeating(&self, location: &Location) -> bool {
        self.revived && self.location.as_ref() == Some(location)
    }

    /// Folds in an event of this agent.
    pub(super) fn note(&mut self, at: Timestamp, event: &Event) {
        if is_change(event) {
            self.since = at;
        }
        if let Some((turn, charge)) = charged(event) {
            self.last_ended = Some(turn.clone());
            if charge.basis != Basis::Free {
                self.last_paid = Some(turn.clone());
            }
            self.spent = self.spent.plus(charge.amount);
            // Also for a free turn: `None` means that no turn of the visit has ended.
            self.bill.get_or_insert_default().add(charge);
        }
        if let Event::VisitEntered { location, count, .. } = event {
            self.enter(location, *count);
        } else if let Event::Moved { tag, stack, instead_of, implicit, .. } = event {
            self.restack(at, *tag, stack);
            let (instead_of, implicit) = (instead_of.clone(), *implicit);
            self.transition = Some(Transition { tag: *tag, instead_of, implicit });
        } else if let Event::TurnQueued { lane, .. } = event {
            self.asked = lane.backend().cloned();
        } else if let Event::TurnStarted { .. } = event {
            self.started = at;
        } else if let Event::TurnSettled { model, .. } = event {
            // The turn has succeeded in the end: its earlier failure is not worth a line.
            (self.turn_failure, self.model) = (None, model.clone());
        } else if let Event::TurnFailed { failure, .. } = event {
            self.turn_failure = Some(failure.clone());
        } else if let Event::RetryAt { .. }
        | Event::SessionLost { .. }
        // These events show the failure of the turn themselves.
        | Event::AgentFailed { .. } = event
        {
            self.turn_failure = None;
        } else if let Event::Asked { ask, .. } = event {
            self.question = Some(ask.clone());
        } else if let Event::AskAnswered { ask, key, by, value } = event {
            self.closed = Some(QuestionEnd::Answered { by: by.clone(), answer: value.clone() });
            self.note_answer(ask, key);
        } else if let Event::AskExpired { .. } = event {
            self.closed = Some(QuestionEnd::Expired);
        } else if let Event::Stepped { event, .. } = event {
            self.note_step(event);
        }
    }

    /// Changes the calls as `apply` changes the frames.
    fn restack(&mut self, at: Timestamp, tag: TagName, stack: &StackChange) {
        match stack {
            StackChange::Keep => {}
            StackChange::Push(_) => {
                let by = self.location.clone();
                self.calls.push(PendingCall { by, visit: self.count, tag, at });
            }
            StackChange::Pop => drop(self.calls.pop()),
            StackChange::Clear => self.calls.clear(),
        }
    }

    fn enter(&mut self, location: &Location, count: u32) {
        // A step that is repeated after its failure keeps its bill: the visit continues.
        if !self.is_at_step(location) {
            (self.bill, self.transition, self.turn_failure) = (None, None, None);
        }
        (self.location, self.count) = (Some(location.clone()), count);
        (self.failed_step, self.question, self.revived) = (None, None, false);
        self.closed = None;
    }

    fn note_answer(&mut self, ask: &TurnId, key: &str) {
        // `steps::decide::called` makes this key; other answers have keys of other forms.
        if let Ok(RequestId { key, attempt, .. }) = key.parse() {
            let attempt = StepAttempt { key, number: attempt };
            self.answered = Some(AnsweredQuestion { turn: ask.clone(), attempt });
        }
    }

    fn note_step(&mut self, event: &StepEvent) {
        if let StepEvent::Asked { key, attempt, errors, .. } = event {
            let attempt = StepAttempt { key: key.clone(), number: *attempt };
            if !errors.is_empty() {
                self.refused = Some(attempt.clone());
            }
            self.requested = Some(attempt);
        } else if let StepEvent::OutputTaken { .. } = event {
            self.answered = None;
        } else if let StepEvent::Done { stored, .. } = event {
            // The errors belong to an attempt; the next execution of the step starts without them.
            self.refused = None;
            if !stored.ok {
                self.turn_failure = None;
            }
        } else if let StepEvent::Failed { key, .. } = event {
            self.failed_step = Some(key.clone());
        } else if let StepEvent::Revived = event {
            self.revived = true;
        }
    }
}

/// Returns the agent that an event is about; `None` if it is about the run, and for a new agent.
pub(super) fn agent_of(event: &Event) -> Option<&AgentId> {
    match event {
        Event::TurnQueued { turn, .. }
        | Event::TurnRequeued { turn, .. }
        | Event::TurnStarted { turn, .. }
        | Event::TurnSettled { turn, .. }
        | Event::TurnRecalled { turn, .. }
        | Event::TurnContinues { turn, .. }
        | Event::TurnFailed { turn, .. }
        | Event::TurnInterrupted { turn, .. }
        | Event::RetryAt { turn, .. }
        | Event::SessionLost { turn, .. } => Some(&turn.agent),
        Event::Asked { ask, .. } | Event::AskAnswered { ask, .. } | Event::AskExpired { ask } => {
            Some(&ask.agent)
        }
        Event::VisitEntered { agent, .. }
        | Event::Reminded { agent, .. }
        | Event::Moved { agent, .. }
        | Event::AgentEnded { agent, .. }
        | Event::AgentFailed { agent, .. }
        | Event::AgentHeld { agent, .. }
        | Event::AgentWaits { agent, .. }
        | Event::AgentJoins { agent, .. }
        | Event::AgentAsks { agent, .. }
        | Event::WaitOver { agent, .. }
        | Event::Joined { agent, .. }
        | Event::CancelRequested { agent, .. }
        | Event::AgentCancelling { agent, .. }
        | Event::AgentCancelled { agent, .. }
        | Event::AgentRevived { agent }
        | Event::Stepped { agent, .. } => Some(agent),
        Event::Warned { agent, .. } => agent.as_ref(),
        Event::RunStarted(_)
        | Event::RunResumed { .. }
        | Event::DefinitionAdopted { .. }
        | Event::RunRewound { .. }
        | Event::StopRequested { .. }
        | Event::RunEnded { .. }
        | Event::BackendHeld { .. }
        | Event::BackendReleased { .. }
        | Event::AgentSpawned { .. } => None,
    }
}

/// Returns whether the activity of its agent changes with this event.
fn is_change(event: &Event) -> bool {
    charged(event).is_some()
        || matches!(
            event,
            Event::AgentHeld { .. }
                | Event::AgentWaits { .. }
                | Event::AgentJoins { .. }
                | Event::AgentCancelling { .. }
                | Event::AgentFailed { .. }
                | Event::AgentRevived { .. }
                | Event::Asked { .. }
                | Event::AskAnswered { .. }
                | Event::AskExpired { .. }
                | Event::TurnQueued { .. }
                | Event::TurnRequeued { .. }
                | Event::TurnStarted { .. }
                | Event::RetryAt { .. }
        )
}

/// Returns the turn that ended with this event, in any way, and its charge. Counts of turns use
/// this: an interrupted turn that was repeated has run twice.
pub(super) fn charged(event: &Event) -> Option<(&TurnId, Charge)> {
    if let Event::TurnSettled { turn, charge, .. }
    | Event::TurnContinues { turn, charge, .. }
    | Event::TurnFailed { turn, charge, .. }
    | Event::TurnInterrupted { turn, charge, .. } = event
    {
        return Some((turn, *charge));
    }
    None
}
