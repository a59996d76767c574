//! The row of one agent: its place, its activity, its attempt in flight.
//!
//! A row is folded from the events of its agent, or made by `of` from the run and the stored
//! summary. Both ways must give the same row; `view/tests/watching.rs` compares them after every
//! record.

use std::collections::BTreeSet;

use crate::agent::{
    Agent, AgentStatus, Asking, Frame, Joining, Location, Parked, PendingTransition, Session,
};
use crate::crayfish::state::{Branch, StepEvent};
use crate::extension::Extension;
use crate::failure::AgentFailure;
use crate::few::Few;
use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::protocol::{Notice, Question};
use crate::run::apply::restack;
use crate::run::{Event, Group, Run};
use crate::scheduler::{Lane, Scheduler, TurnPhase};
use crate::time::Timestamp;
use crate::value::Value;

use crate::view::attempt::{Attempt, Sent};
use crate::view::place::of_branch;
use crate::view::summary::{AgentSummary, PendingCall, charged};
use crate::view::view_event::{AgentCost, AgentPlace};
use crate::view::words::preview;

use super::branch;

/// A live or failed agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    /// Its number in the order of creation.
    pub born: u64,
    pub cwd: String,
    /// Its place, its costs, its parent and its model.
    pub summary: AgentSummary,
    /// The number of the visit, counted over all states of the agent; 0 before the first.
    pub visit: u32,
    pub activity: AgentActivity,
    /// The attempt in flight.
    pub attempt: Option<Attempt>,
    /// The conversation that its next prompt continues.
    pub conversation: Session,
    /// Pending returns, outermost first.
    pub(super) stack: Vec<Frame>,
    /// The backend that has the conversation.
    pub(super) holder: Option<BackendName>,
    /// Whether it has a turn, which may have failed.
    pub(super) has_turn: bool,
    /// Its position in a document of steps.
    pub(super) branch: Option<Branch>,
    /// Fork attributes: which part of the work a worker has.
    pub attributes: Few<String, Value>,
    /// Reminders given since the visit began or was revived.
    pub reminders: u32,
    /// Retries made since the visit began or was revived.
    pub retries: u32,
    /// The workers that it waits for.
    pub group: Option<Group>,
    /// The open question that it asks a person.
    pub question: Option<OpenQuestion>,
    /// Whether it is being cancelled.
    pub cancelling: bool,
    /// Why it failed; `None` if it is live.
    pub failure: Option<AgentFailure>,
    /// The prompt of its turn.
    pub(super) sent: Sent,
    /// Whether its turn waits for a new budget share. Whether the turn gets one is not decided yet:
    /// the run may end first, because its budget is spent.
    pub(super) awaits_share: bool,
}

/// A question to a person that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The id of the question: the turn that asked.
    pub ask: TurnId,
    pub at: Timestamp,
    pub question: Question,
}

impl OpenQuestion {
    fn of(kept: &PendingTransition, ask: &TurnId, at: Timestamp) -> Option<Self> {
        let question = kept.question()?.clone();
        Some(Self { ask: ask.clone(), at, question })
    }

    /// Returns when it expires.
    pub fn due(&self) -> Option<Timestamp> {
        self.question.due(self.at)
    }
}

/// Whether an agent can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowStatus {
    Live,
    /// Its fork waits until workers end.
    Held,
    /// Its transition waits for a time.
    Parked,
    /// Its transition waits for workers.
    Joining,
    /// A person has to answer its question.
    Asking,
    /// Its turn is being ended, and then it leaves the run.
    Cancelling,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentActivity {
    Working(TurnActivity),
    Waiting(Wait),
    Queued,
    /// Its turn was in flight when the owner of the run died.
    Interrupted,
    /// Its turn waits for a resume, because the run has ended.
    Stopped,
    /// Its next event is about to be decided, or it failed.
    Nothing,
}

/// The known activity of a turn in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnActivity {
    Script,
    /// A client answers a prompt; its backend, if texts name backends.
    Prompt(Option<BackendName>),
    Reminder,
    /// The last progress that was seen.
    Seen(String),
}

/// The reason why an agent waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The next attempt at its turn.
    Retry(Timestamp),
    /// Other workers must end before it may fork.
    Workers,
    Answer,
    /// The time at which it enters a state.
    Time {
        until: Timestamp,
        then: String,
    },
    /// The workers that must end before it enters a state.
    Join {
        /// The end of the longest wait.
        until: Option<Timestamp>,
        then: String,
    },
    /// A higher budget.
    Budget,
    /// The usage limit of this backend.
    Quota(BackendName, Timestamp),
    /// A login to this backend.
    Login(BackendName),
    /// A missing resource of the machine, such as disk space.
    Environment,
}

impl Wait {
    fn of(parked: &Parked) -> Self {
        Self::until(parked.until, &parked.kept)
    }

    fn until(until: Timestamp, kept: &PendingTransition) -> Self {
        Self::Time { until, then: kept.target().to_owned() }
    }
}

impl AgentRow {
    /// Returns the row of a new agent.
    pub(super) fn spawned(at: Timestamp, born: u64, cwd: &str, parent: Option<&AgentId>) -> Self {
        Self {
            born,
            cwd: cwd.to_owned(),
            summary: AgentSummary::spawned(at, parent),
            visit: 0,
            activity: AgentActivity::Nothing,
            attempt: None,
            conversation: Session::Fresh,
            stack: Vec::new(),
            holder: None,
            has_turn: false,
            branch: None,
            attributes: Few::default(),
            reminders: 0,
            retries: 0,
            group: None,
            question: None,
            cancelling: false,
            failure: None,
            sent: Sent::Body,
            awaits_share: false,
        }
    }

    /// Returns the row of an agent after all events so far, without replaying them.
    pub(super) fn of(
        agent: &Agent,
        summary: AgentSummary,
        run: &Run,
        asking: &BTreeSet<&AgentId>,
    ) -> Self {
        let scheduler = &run.scheduler;
        let turn = scheduler.turns.get(&agent.id);
        let mut row = Self {
            born: agent.born,
            cwd: agent.cwd.clone(),
            summary,
            visit: agent.visit.number,
            activity: AgentActivity::Nothing,
            attempt: None,
            conversation: agent.session.clone(),
            stack: agent.stack.clone(),
            holder: agent.holder.clone(),
            has_turn: turn.is_some(),
            branch: run
                .program
                .steps()
                .and_then(|steps| steps.branches.get(&agent.id).map(branch::reduced)),
            attributes: agent.attributes.clone(),
            reminders: agent.visit.reminders,
            retries: agent.visit.retries,
            group: run.groups.get(&agent.id).cloned(),
            question: match &agent.status {
                AgentStatus::Asking(Asking { kept, ask, at, answer: None }) => {
                    OpenQuestion::of(kept, ask, *at)
                }
                AgentStatus::Live
                | AgentStatus::Held(_)
                | AgentStatus::Parked(_)
                | AgentStatus::Joining(_)
                | AgentStatus::Asking(_)
                | AgentStatus::Cancelling(_)
                | AgentStatus::Failed { .. } => None,
            },
            cancelling: matches!(agent.status, AgentStatus::Cancelling(_)),
            failure: match &agent.status {
                AgentStatus::Failed { failure, .. } => Some(failure.clone()),
                AgentStatus::Live
                | AgentStatus::Held(_)
                | AgentStatus::Parked(_)
                | AgentStatus::Joining(_)
                | AgentStatus::Asking(_)
                | AgentStatus::Cancelling(_) => None,
            },
            sent: turn.map_or(Sent::Body, |turn| Sent::of(&turn.prompt)),
            awaits_share: turn.is_some_and(|turn| {
                turn.phase == TurnPhase::Queued && turn.notice == Some(Notice::NewShare)
            }),
        };
        row.activity = row.activity_now(agent, scheduler, asking);
        if let Some(turn) = turn
            && let TurnPhase::Running { share } = turn.phase
        {
            // The run has no times, so the start of the attempt comes from the ledger.
            let started = row.summary.started;
            row.attempt = Some(Attempt { share, ..row.begin(started, &turn.id, turn.attempt) });
        }
        row
    }

    fn activity_now(
        &self,
        agent: &Agent,
        scheduler: &Scheduler,
        asking: &BTreeSet<&AgentId>,
    ) -> AgentActivity {
        let turn = scheduler.turns.get(&agent.id);
        match (&agent.status, turn.map(|turn| &turn.phase)) {
            (AgentStatus::Held(_), _) => AgentActivity::Waiting(Wait::Workers),
            (AgentStatus::Parked(parked), _) => AgentActivity::Waiting(Wait::of(parked)),
            (AgentStatus::Joining(Joining { kept, until }), _) => {
                AgentActivity::Waiting(Wait::Join { until: *until, then: kept.target().to_owned() })
            }
            (AgentStatus::Asking(Asking { answer: None, .. }), _) => {
                AgentActivity::Waiting(Wait::Answer)
            }
            (AgentStatus::Cancelling(_), Some(TurnPhase::Running { .. })) => {
                AgentActivity::Working(self.work())
            }
            (AgentStatus::Asking(_) | AgentStatus::Cancelling(_), _) => AgentActivity::Nothing,
            (AgentStatus::Live, _) if asking.contains(&agent.id) => {
                AgentActivity::Waiting(Wait::Answer)
            }
            (AgentStatus::Live, Some(TurnPhase::Queued)) => AgentActivity::Queued,
            (AgentStatus::Live, Some(TurnPhase::Running { .. })) => {
                AgentActivity::Working(self.work())
            }
            (AgentStatus::Live, Some(TurnPhase::Retrying { until })) => {
                AgentActivity::Waiting(Wait::Retry(*until))
            }
            (AgentStatus::Live, Some(TurnPhase::Idle) | None) | (AgentStatus::Failed { .. }, _) => {
                AgentActivity::Nothing
            }
        }
    }

    /// Returns its state or step and the number of visits there.
    pub fn place(&self) -> Option<(&Location, u32)> {
        self.summary.location.as_ref().map(|location| (location, self.summary.count))
    }

    /// Returns the name of its place, for texts. A branch of steps may wait at a loop, which has no
    /// visit.
    pub fn place_name(&self) -> String {
        let step = self.branch.as_ref().and_then(of_branch).map(Location::from);
        step.as_ref()
            .or(self.summary.location.as_ref())
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    /// Returns the return stack, innermost frame first, each with the call that pushed it.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (&Frame, Option<&PendingCall>)> {
        let call = |depth: usize| self.summary.calls.get(depth);
        self.stack.iter().enumerate().rev().map(move |(depth, frame)| (frame, call(depth)))
    }

    /// Returns the backend of its turn or, between two turns, of its conversation.
    pub fn answering(&self) -> Option<&BackendName> {
        match &self.summary.location {
            _ if self.has_turn => self.backend(),
            // A script carries the conversation of its agent, but no client answers it.
            Some(Location::State(state))
                if Extension::of(state.as_str()) == Some(Extension::Md) =>
            {
                self.holder.as_ref()
            }
            Some(_) | None => None,
        }
    }

    /// Returns its fork attributes as `area=parser depth=2`; `None` without attributes.
    pub fn item(&self) -> Option<String> {
        let attribute = |(name, value): (&String, &Value)| format!("{name}={}", preview(value));
        let attributes: Vec<String> = self.attributes.iter().map(attribute).collect();
        (!attributes.is_empty()).then(|| attributes.join(" "))
    }

    pub const fn status(&self) -> RowStatus {
        match (&self.failure, &self.activity) {
            (Some(_), _) => RowStatus::Failed,
            (None, _) if self.cancelling => RowStatus::Cancelling,
            (None, AgentActivity::Waiting(Wait::Join { .. })) => RowStatus::Joining,
            (None, _) if self.question.is_some() => RowStatus::Asking,
            (None, AgentActivity::Waiting(Wait::Workers)) => RowStatus::Held,
            (None, AgentActivity::Waiting(Wait::Time { .. })) => RowStatus::Parked,
            (None, _) => RowStatus::Live,
        }
    }

    /// Returns the backend of its last turn; a script has none.
    pub const fn backend(&self) -> Option<&BackendName> {
        self.summary.asked.as_ref()
    }

    pub(super) fn lane(&self) -> Lane {
        self.summary.asked.clone().map_or(Lane::Script, Lane::Prompt)
    }

    /// Returns the work of a turn that starts now.
    pub(super) fn work(&self) -> TurnActivity {
        match (self.backend(), self.sent) {
            (None, _) => TurnActivity::Script,
            (Some(_), Sent::Body) => TurnActivity::Prompt(None),
            (Some(_), Sent::Reminder) => TurnActivity::Reminder,
        }
    }

    /// Returns an attempt at its turn, without a share.
    pub(super) fn begin(&self, started: Timestamp, turn: &TurnId, number: u32) -> Attempt {
        // Only for event lists that no decision made: a turn is queued after its visit was entered.
        let unknown = || StateName::new("?").into();
        Attempt {
            turn: turn.clone(),
            number,
            location: self.summary.location.clone().unwrap_or_else(unknown),
            visit: self.summary.count,
            lane: self.lane(),
            sent: self.sent,
            started,
            share: None,
            end: None,
        }
    }

    pub(super) fn bill(&self) -> AgentCost {
        AgentCost { cost: self.summary.bill, backend: self.summary.asked.clone() }
    }

    pub(super) fn agent_place(&self, agent: &AgentId) -> AgentPlace {
        let (location, backend) = (self.summary.place(), self.summary.asked.clone());
        AgentPlace { agent: agent.clone(), location, backend }
    }

    /// Folds in an event of this agent.
    pub(super) fn note(&mut self, at: Timestamp, event: &Event) {
        if let Event::TurnStarted { turn, attempt, share, .. } = event {
            self.attempt = Some(Attempt { share: *share, ..self.begin(at, turn, *attempt) });
        }
        self.summary.note(at, event);
        self.note_visit(event);
        self.note_turn(event);
        if let Event::Stepped { event, .. } = event {
            branch::note(&mut self.branch, event);
        }
        if let Some(activity) = self.next_activity(event) {
            self.activity = activity;
        }
    }

    fn note_visit(&mut self, event: &Event) {
        if let Event::VisitEntered { visit, .. } = event {
            self.visit = *visit;
            // Reminders and retries are counted per visit.
            (self.reminders, self.retries) = (0, 0);
        } else if let Event::Reminded { reminder, .. } = event {
            self.reminders = *reminder;
        } else if let Event::RetryAt { retry, .. } = event {
            self.retries = *retry;
        } else if let Event::Moved { stack, session, cwd, .. } = event {
            restack(&mut self.stack, &mut self.holder, stack);
            // Any backend may open a fresh conversation.
            if *session == Session::Fresh {
                self.holder = None;
            }
            self.conversation = session.clone();
            self.failure = None;
            if let Some(cwd) = cwd {
                self.cwd.clone_from(cwd);
            }
        } else if let Event::AgentFailed { failure, .. } = event {
            self.failure = Some(failure.clone());
        } else if let Event::AgentHeld { .. }
        | Event::AgentWaits { .. }
        | Event::AgentJoins { .. } = event
        {
            self.failure = None;
        } else if let Event::AgentAsks { kept, ask, at, .. } = event {
            self.failure = None;
            self.question = OpenQuestion::of(kept, ask, *at);
        } else if let Event::AskAnswered { .. } | Event::AskExpired { .. } = event {
            self.question = None;
        } else if let Event::WaitOver { end, .. } = event {
            if let Some(group) = &mut self.group {
                group.over = Some(*end);
            }
            if let AgentActivity::Waiting(Wait::Join { until, .. }) = &mut self.activity {
                *until = None;
            }
        } else if let Event::Joined { .. } = event {
            self.group = None;
        } else if let Event::AgentCancelling { .. } = event {
            (self.cancelling, self.failure, self.question) = (true, None, None);
        } else if let Event::AgentRevived { .. } = event {
            // The visit continues with fresh reminders and retries, as `apply` does.
            (self.failure, self.reminders, self.retries) = (None, 0, 0);
        }
    }

    fn note_turn(&mut self, event: &Event) {
        if let Event::TurnQueued { prompt, .. } = event {
            (self.attempt, self.sent, self.awaits_share) = (None, Sent::of(prompt), false);
            self.has_turn = true;
        } else if let Event::TurnRequeued { notice, .. } = event {
            // Whether the share is granted is not decided yet: see the field.
            (self.attempt, self.awaits_share) = (None, *notice == Notice::NewShare);
        } else if let Event::TurnSettled { session, .. } = event {
            // The scheduler forgets a settled turn, and `of` reads the prompt from there.
            (self.attempt, self.sent, self.has_turn) = (None, Sent::Body, false);
            self.conversation = session.clone();
            // A script does not touch the conversation, so its backend stays.
            if let Some(backend) = &self.summary.asked {
                self.holder = Some(backend.clone());
            }
        } else if is_beginning(event) {
            (self.attempt, self.sent, self.has_turn, self.awaits_share) =
                (None, Sent::Body, false, false);
        } else if charged(event).is_some() || matches!(event, Event::RetryAt { .. }) {
            self.attempt = None;
        } else if let Event::TurnStarted { .. }
        | Event::AgentFailed { .. }
        | Event::AgentCancelling { .. } = event
        {
            self.awaits_share = false;
        }
    }

    /// Returns the activity that begins with an event.
    fn next_activity(&self, event: &Event) -> Option<AgentActivity> {
        if let Event::AgentHeld { .. } = event {
            Some(AgentActivity::Waiting(Wait::Workers))
        } else if let Event::AgentWaits { kept, until, .. } = event {
            Some(AgentActivity::Waiting(Wait::until(*until, kept)))
        } else if let Event::AgentJoins { kept, until, .. } = event {
            Some(AgentActivity::Waiting(Wait::Join {
                until: *until,
                then: kept.target().to_owned(),
            }))
        } else if let Event::Asked { .. } = event {
            Some(AgentActivity::Waiting(Wait::Answer))
        } else if let Event::RetryAt { until, .. } = event {
            Some(AgentActivity::Waiting(Wait::Retry(*until)))
        } else if let Event::TurnQueued { .. } | Event::TurnRequeued { .. } = event {
            Some(AgentActivity::Queued)
        } else if let Event::TurnStarted { .. } = event {
            Some(AgentActivity::Working(self.work()))
        } else if let Event::AgentFailed { .. }
        | Event::AgentRevived { .. }
        | Event::AskAnswered { .. }
        | Event::AskExpired { .. } = event
        {
            Some(AgentActivity::Nothing)
        } else if let Event::AgentCancelling { .. } = event {
            // It only waits until its turn or those of its workers have ended.
            let works = matches!(self.activity, AgentActivity::Working(_));
            (!works).then_some(AgentActivity::Nothing)
        } else {
            // A transition that was kept is taken now; its next visit follows.
            let is_released = matches!(event, Event::Moved { .. })
                && matches!(
                    self.activity,
                    AgentActivity::Waiting(Wait::Workers | Wait::Time { .. } | Wait::Join { .. })
                );
            let is_over = is_released || charged(event).is_some() || is_beginning(event);
            is_over.then_some(AgentActivity::Nothing)
        }
    }
}

/// Returns whether a branch begins: it has no turn then.
fn is_beginning(event: &Event) -> bool {
    matches!(event, Event::Stepped { event: StepEvent::Begun { .. }, .. })
}
