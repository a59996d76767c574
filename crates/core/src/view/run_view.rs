//! The present of a run for people: one row for each live or failed agent, with totals.
//!
//! Every screen draws a [`RunView`], and every line of a log comes from the [`ViewEvent`]s that it
//! returns. Two screens therefore cannot disagree. The cost of an event does not grow with the
//! number of agents. [`super`] says how it differs from `Run` and [`Ledger`].
//!
//! It has no clock: a row says when its activity began, and the screen computes the duration.

mod branch;
mod meaning;
mod row;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::Agent;
use crate::budget::{Basis, Micros};
use crate::crayfish::call::Output;
use crate::crayfish::key::StepKey;
use crate::crayfish::state::StepEvent;
use crate::ids::{AgentId, BackendName, RunId, TurnId};
use crate::run::group::Member;
use crate::run::start::Start;
use crate::run::{Event, Group, Phase, Run, Settings};
use crate::scheduler::Hold;
use crate::time::Timestamp;

use super::attempt::Attempt;
use super::backend_labels::BackendLabels;
use super::ledger::Ledger;
use super::summary::{agent_of, charged};
use super::totals::Totals;
use super::view_event::{ProgramKind, ViewEvent};

pub use row::{AgentActivity, AgentRow, OpenQuestion, RowStatus, TurnActivity, Wait};

/// The agents of a run, with totals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunView {
    pub run: RunId,
    /// The path of its workflow.
    pub workflow: String,
    pub settings: Settings,
    pub spent: Micros,
    /// Turns whose cost is not fully known.
    pub unpriced: u64,
    /// How many visits were ever entered.
    pub visits: u64,
    /// How many agents ended with a result.
    pub ended: u64,
    /// Failed workers that their parents received in a list.
    handed_failures: u64,
    /// How many agents were ever created.
    pub born: u64,
    /// Its times, its path, its money and its denied tools.
    pub totals: Totals,
    pub course: Course,
    pub program: ProgramKind,
    agents: BTreeMap<AgentId, AgentRow>,
    holds: BTreeMap<BackendName, Hold>,
    /// Outputs of the caller that no step has taken yet, by the name they were sent under.
    offers: BTreeMap<String, Output>,
    /// Failures that were collected before the document was edited, and are reused.
    settled: BTreeSet<StepKey>,
}

/// Whether a run continues or is stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Course {
    /// It continues.
    #[default]
    Ahead,
    /// It ends on request.
    Stopping,
    Ended,
    /// Its owner died before the end. No event records that; [`RunView::without_owner`] sets it.
    Interrupted,
}

/// The number of agents by activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentCounts {
    pub running: usize,
    pub queued: usize,
    pub waiting: usize,
    /// Agents whose turn was in flight when the owner died.
    pub interrupted: usize,
    /// Agents whose turn waits for a resume.
    pub stopped: usize,
}

/// The number of workers by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerCounts {
    /// Workers that ended with a result.
    pub done: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub total: u64,
}

impl RunView {
    /// Returns the view after all events so far, without replaying them.
    pub fn of(run: &Run, ledger: &Ledger) -> Self {
        // Collected once: a search for each agent would make a screen of many agents slow.
        let asking = run.scheduler.asks.keys().map(|ask| &ask.agent).collect();
        let row = |(id, agent): (&AgentId, &Agent)| {
            let summary = ledger.agents.get(id).cloned().unwrap_or_default();
            (id.clone(), AgentRow::of(agent, summary, run, &asking))
        };
        Self {
            run: run.id.clone(),
            workflow: run.workflow.clone(),
            settings: run.settings.clone(),
            spent: run.spent,
            unpriced: run.unpriced,
            visits: run.visits,
            ended: run.ended.len() as u64,
            handed_failures: run.handed_failures.len() as u64,
            born: run.born,
            totals: ledger.totals.clone(),
            course: match run.phase {
                Phase::Unborn | Phase::Open => Course::Ahead,
                Phase::Stopping(_) => Course::Stopping,
                Phase::Ended(_) => Course::Ended,
            },
            program: ProgramKind::of(&run.program),
            agents: run.agents.iter().map(row).collect(),
            holds: run.scheduler.holds.clone(),
            offers: run.program.steps().map(|steps| steps.offers.clone()).unwrap_or_default(),
            settled: run.program.steps().map(|steps| steps.settled.clone()).unwrap_or_default(),
        }
    }

    /// Returns the view of an unfinished run whose owner died: no agent works any more.
    #[must_use]
    pub fn without_owner(self) -> Self {
        Self { course: Course::Interrupted, ..self }
    }

    /// Folds in an event, and returns its meaning if it has one for people.
    pub fn note(&mut self, at: Timestamp, event: &Event) -> Option<ViewEvent> {
        // Before the fold, which drops the context: the bill of the visit that ends, or the attempt
        // that has ended.
        let meaning = self.meaning(at, event);
        self.fold(at, event);
        meaning
    }

    /// Records progress of a turn in flight.
    pub fn see(&mut self, at: Timestamp, turn: &TurnId, what: &str) {
        let Some(row) = self.agents.get_mut(&turn.agent) else { return };
        // Late progress of a turn that has ended must not replace the new activity.
        if row.attempt.as_ref().is_some_and(|attempt| attempt.turn == *turn) {
            row.activity = AgentActivity::Working(TurnActivity::Seen(what.to_owned()));
            row.summary.since = at;
        }
    }

    /// Returns the rows of all live and failed agents.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentId, &AgentRow)> {
        self.agents.iter()
    }

    /// Returns the rows in the order of creation.
    pub fn by_age(&self) -> Vec<(&AgentId, &AgentRow)> {
        let mut agents: Vec<_> = self.agents.iter().collect();
        // The map is ordered by id.
        agents.sort_by_key(|(_, row)| row.born);
        agents
    }

    /// Returns the budget cap; `None` is unlimited.
    pub const fn cap(&self) -> Option<Micros> {
        self.settings.budget
    }

    /// Returns the attempts in flight.
    pub fn in_flight(&self) -> impl Iterator<Item = &Attempt> {
        self.agents.values().filter_map(|row| row.attempt.as_ref())
    }

    /// Returns the working agents, then the waiting ones, each by age.
    pub fn busy(&self) -> Vec<(&AgentId, &AgentRow, AgentActivity)> {
        let agents = self.agents.iter().map(|(agent, row)| (agent, row, self.activity(row)));
        let is_busy = |activity: &AgentActivity| {
            matches!(activity, AgentActivity::Working(_) | AgentActivity::Waiting(_))
        };
        let mut busy: Vec<_> = agents.filter(|(_, _, activity)| is_busy(activity)).collect();
        // By age, so that rows do not move on the screen while they are live.
        busy.sort_by_key(|(_, row, activity)| {
            (matches!(activity, AgentActivity::Waiting(_)), row.born)
        });
        busy
    }

    pub fn tally(&self) -> AgentCounts {
        let mut tally = AgentCounts::default();
        for row in self.agents.values() {
            match self.activity(row) {
                AgentActivity::Working(_) => tally.running += 1,
                AgentActivity::Waiting(_) => tally.waiting += 1,
                AgentActivity::Queued => tally.queued += 1,
                AgentActivity::Interrupted => tally.interrupted += 1,
                AgentActivity::Stopped => tally.stopped += 1,
                AgentActivity::Nothing => {}
            }
        }
        tally
    }

    /// Returns the money that turns in flight may still spend.
    pub fn reserved(&self) -> Micros {
        let shares = self.in_flight().filter_map(|attempt| attempt.share);
        shares.fold(Micros::ZERO, Micros::plus)
    }

    /// Counts the agents that others forked.
    pub fn workers(&self) -> WorkerCounts {
        let (mut failed, mut live) = (self.handed_failures, 0);
        for (_, row) in self.agents.iter().filter(|(id, _)| **id != AgentId::main()) {
            match row.status() {
                RowStatus::Failed => failed += 1,
                RowStatus::Live
                | RowStatus::Held
                | RowStatus::Parked
                | RowStatus::Joining
                | RowStatus::Asking
                | RowStatus::Cancelling => live += 1,
            }
        }
        let total = self.born.saturating_sub(1).saturating_sub(self.totals.replaced_workers);
        let cancelled = self.totals.cancelled_workers;
        let done = total.saturating_sub(failed + live + cancelled);
        WorkerCounts { done, failed, cancelled, total }
    }

    /// Returns whether texts name the backends known so far. A reader of a past run knows more:
    /// the totals of its ledger.
    pub fn naming(&self) -> BackendLabels {
        self.totals.naming()
    }

    /// Returns the activity of a row. A turn queued for a paused backend waits for more than a
    /// slot, and without an owner no turn works or is queued.
    pub fn activity(&self, row: &AgentRow) -> AgentActivity {
        match (&row.activity, row.backend()) {
            (AgentActivity::Working(_), _) if self.course == Course::Interrupted => {
                AgentActivity::Interrupted
            }
            (AgentActivity::Nothing, _) if self.has_owner() || row.status() != RowStatus::Live => {
                AgentActivity::Nothing
            }
            // A branch of steps that waits for its children has no turn.
            (AgentActivity::Nothing, _) if row.has_turn => AgentActivity::Stopped,
            (AgentActivity::Working(_) | AgentActivity::Waiting(Wait::Retry(_)), _)
                if !self.has_owner() =>
            {
                AgentActivity::Stopped
            }
            (AgentActivity::Working(TurnActivity::Prompt(_)), backend) => {
                AgentActivity::Working(TurnActivity::Prompt(self.naming().label(backend).cloned()))
            }
            (AgentActivity::Queued, Some(backend)) => match self.holds.get(backend) {
                None if !self.has_owner() => self.stopped_in_queue(),
                None => AgentActivity::Queued,
                Some(Hold::Quota { until, .. }) => {
                    AgentActivity::Waiting(Wait::Quota(backend.clone(), *until))
                }
                Some(Hold::Auth { .. }) => AgentActivity::Waiting(Wait::Login(backend.clone())),
                Some(Hold::Environment { .. }) => AgentActivity::Waiting(Wait::Environment),
            },
            (AgentActivity::Queued, None) if !self.has_owner() => AgentActivity::Stopped,
            (doing, _) => doing.clone(),
        }
    }

    const fn has_owner(&self) -> bool {
        match self.course {
            Course::Ahead | Course::Stopping => true,
            Course::Ended | Course::Interrupted => false,
        }
    }

    /// Returns the activity of a prompt in the queue of a run that has ended.
    fn stopped_in_queue(&self) -> AgentActivity {
        let is_spent = self.cap().is_some_and(|cap| self.spent >= cap);
        if is_spent { AgentActivity::Waiting(Wait::Budget) } else { AgentActivity::Stopped }
    }

    fn fold(&mut self, at: Timestamp, event: &Event) {
        if let Event::RunStarted(start) = event {
            self.begin(start);
        }
        self.note_groups(event);
        let row = agent_of(event).and_then(|agent| self.agents.get_mut(agent));
        // The totals first, because they need the place of the agent before the event.
        self.totals.note(at, event, row.as_ref().map(|row| &row.summary));
        if let Some(row) = row {
            row.note(at, event);
        }
        self.note_money(event);
        self.note_agents(at, event);
        self.note_course(event);
        if let Event::BackendHeld { backend, hold } = event {
            self.holds.insert(backend.clone(), hold.clone());
        } else if let Event::BackendReleased { backend } = event {
            self.holds.remove(backend);
        } else if let Event::Stepped { event, .. } = event {
            self.note_offers(event);
            self.note_settled(event);
        }
    }

    fn begin(&mut self, start: &Start) {
        *self = Self {
            run: start.run.clone(),
            workflow: start.workflow.clone(),
            settings: start.settings.clone(),
            program: ProgramKind::of(&start.program),
            ..Self::default()
        };
    }

    fn note_money(&mut self, event: &Event) {
        if let Some((_, charge)) = charged(event) {
            self.spent = self.spent.plus(charge.amount);
            self.unpriced += u64::from(charge.basis == Basis::Unpriced);
        } else if let Event::RunRewound { discarded, .. } = event {
            // A rewind keeps the money of the discarded records spent.
            self.spent = self.spent.plus(discarded.amount);
            self.unpriced = self.unpriced.saturating_add(discarded.unpriced);
        }
    }

    fn note_agents(&mut self, at: Timestamp, event: &Event) {
        if let Event::AgentSpawned { agent, parent, cwd, attributes } = event {
            // Counted as `apply` counts, so that a viewer who joins later gets the same order of
            // rows.
            let row = AgentRow::spawned(at, self.born, cwd, parent.as_ref());
            self.agents.insert(agent.clone(), AgentRow { attributes: attributes.clone(), ..row });
            self.born += 1;
        } else if let Event::AgentEnded { agent, .. } = event {
            self.ended += u64::from(self.agents.remove(agent).is_some());
        } else if let Event::AgentCancelled { agent, .. } = event {
            self.agents.remove(agent);
        } else if let Event::Joined { failed, .. } = event {
            for worker in failed {
                self.handed_failures += u64::from(self.agents.remove(worker).is_some());
            }
        } else if let Event::VisitEntered { .. } = event {
            self.visits += 1;
        }
    }

    /// Counts the end of a worker for which its parent waits. Called before the fold, which drops
    /// the row of the worker.
    fn note_groups(&mut self, event: &Event) {
        if let Event::AgentJoins { agent, workers, need, .. } = event {
            let attributes = |id| self.agents.get(id).map(|row| row.attributes.clone());
            let members = workers.iter().zip(0..).map(|(id, place)| {
                (id.clone(), Member { place, attributes: attributes(id).unwrap_or_default() })
            });
            let group = Group::new(*need, members.collect());
            if let Some(row) = self.agents.get_mut(agent) {
                row.group = Some(group);
            }
            return;
        }
        let Some(agent) = agent_of(event) else { return };
        let Some(row) = self.agents.get(agent) else { return };
        let (has_failed, parent) = (row.failure.is_some(), row.summary.parent.clone());
        let Some(parent) = parent.and_then(|parent| self.agents.get_mut(&parent)) else { return };
        let group = parent.group.as_mut().filter(|group| group.members.contains_key(agent));
        let Some(group) = group else { return };
        if let Event::AgentEnded { .. } = event {
            group.note_end();
        } else if let Event::AgentFailed { .. } = event {
            if !has_failed {
                group.note_failure();
            }
        } else if let Event::AgentRevived { .. } = event {
            if has_failed {
                group.note_revival();
            }
        } else if let Event::AgentCancelled { .. } = event {
            group.note_cancellation(has_failed);
        }
    }

    fn note_course(&mut self, event: &Event) {
        if let Event::RunResumed { settings } = event {
            self.settings = (**settings).clone();
            self.course = Course::Ahead;
            // Outputs of an earlier call answer no step of a later one; `apply` drops them, too.
            self.offers.clear();
        } else if let Event::RunRewound { governed: Some(settings), .. } = event {
            self.settings = (**settings).clone();
        } else if let Event::StopRequested { .. } = event {
            self.course = Course::Stopping;
        } else if let Event::RunEnded { .. } = event {
            self.course = Course::Ended;
        }
    }

    fn note_settled(&mut self, event: &StepEvent) {
        if let StepEvent::Begun { settled, .. } = event {
            self.settled.extend(settled.iter().cloned());
        } else if let StepEvent::Done { key, .. } | StepEvent::Failed { key, .. } = event {
            self.settled.remove(key);
        }
    }

    fn note_offers(&mut self, event: &StepEvent) {
        if let StepEvent::Called(call) = event {
            self.offers.clone_from(&call.outputs);
        } else if let StepEvent::OutputTaken { name } | StepEvent::OutputIgnored { name } = event {
            self.offers.remove(name);
        }
    }
}
