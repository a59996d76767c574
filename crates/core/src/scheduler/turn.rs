//! Turns, and the queues and counters of the scheduler.
//!
//! Each agent has at most one turn. The counters (`in_flight`, `paid_in_flight`, `reserved`) are
//! kept beside the turns, so that no step has to look at every agent. Every method accepts an agent
//! without a turn, because `apply` cannot fail.

use crate::protocol::Notice;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::agent::SessionPlan;
use crate::budget::Micros;
use crate::ids::{AgentId, BackendName, SessionId, TurnAttempt, TurnId};
use crate::pairs;
use crate::protocol::Fault;
use crate::scheduler::{Hold, Timer, Timers};
use crate::time::Timestamp;

/// All turns that are queued, in flight or waiting, with the open questions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scheduler {
    /// The current turn of each agent.
    pub turns: BTreeMap<AgentId, Turn>,
    /// Queued turns by lane and place.
    #[serde(with = "pairs")]
    pub queues: BTreeMap<Lane, BTreeMap<u64, AgentId>>,
    /// The next free place at the back.
    pub next_order: u64,
    /// Agents whose turns are in flight.
    pub in_flight: BTreeSet<AgentId>,
    /// How many turns in flight are paid.
    pub paid_in_flight: u32,
    /// The sum of the shares of turns in flight.
    pub reserved: Micros,
    /// Retries, ends of usage limits and expiries of questions.
    pub timers: Timers,
    /// Backends whose turns do not start.
    pub holds: BTreeMap<BackendName, Hold>,
    /// Open questions, with their expiry.
    pub asks: BTreeMap<TurnId, Option<Timestamp>>,
}

/// One turn, from the moment it is wanted until it is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub id: TurnId,
    pub lane: Lane,
    pub prompt: Prompt,
    /// How the first attempt gets its conversation.
    pub plan: SessionPlan,
    /// How the last attempt got its conversation; `None` before the first.
    pub current: Option<SessionPlan>,
    /// The session that an attempt opened, if its client could not use the chosen id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<SessionId>,
    /// Its last place in the queue.
    pub order: u64,
    /// Attempts so far.
    pub attempt: u32,
    /// The notice for the client at the next attempt; `None` at the first.
    pub notice: Option<Notice>,
    /// Attempts in a row that ended early, by a crash or a used-up share, without progress.
    // Serialized under its first name, which the golden journals use.
    #[serde(rename = "crashes")]
    pub stalls: u32,
    /// Whether Raymond is ending its client because its share does not fit the cap any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recalled: bool,
    pub phase: TurnPhase,
}

/// A phase in the life of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnPhase {
    /// The turn waits for a slot and a share.
    Queued,
    /// The turn is in flight.
    Running {
        /// The budget share; `None` without a cap, and for scripts.
        share: Option<Micros>,
    },
    /// The turn failed and is tried again at `until`.
    Retrying { until: Timestamp },
    /// The turn has ended or was interrupted, and nothing is queued.
    Idle,
}

/// A queue of turns. A lane that is blocked does not block the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Turns of scripts, which cost nothing.
    Script,
    /// Turns of this backend.
    Prompt(BackendName),
}

impl Lane {
    /// Returns the backend of the lane; `None` for scripts.
    pub const fn backend(&self) -> Option<&BackendName> {
        match self {
            Self::Script => None,
            Self::Prompt(backend) => Some(backend),
        }
    }
}

/// The text that a turn sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// The body of the state.
    Body,
    Reminder(Fault),
}

impl Scheduler {
    /// Returns why no turn of this lane starts. Scripts are never held.
    pub fn hold(&self, lane: &Lane) -> Option<&Hold> {
        match lane {
            Lane::Script => None,
            Lane::Prompt(backend) => self.holds.get(backend),
        }
    }

    /// Queues a new turn in place of any earlier turn of its agent.
    pub(crate) fn queue(&mut self, turn: Turn) {
        // The earlier turn would keep its place, its slot or its share for ever.
        self.leave(&turn.id.agent);
        self.take_place(&turn.lane.clone(), turn.order, &turn.id.agent);
        self.turns.insert(turn.id.agent.clone(), turn);
    }

    /// Queues a known turn again.
    pub(crate) fn requeue(&mut self, agent: &AgentId, order: u64, notice: Notice) {
        self.leave(agent);
        let Some(turn) = self.turns.get_mut(agent) else {
            return;
        };
        turn.order = order;
        // An earlier attempt may have done part of the work, so the client is asked to check first.
        turn.notice = Some(notice);
        turn.phase = TurnPhase::Queued;
        let lane = turn.lane.clone();
        self.take_place(&lane, order, agent);
    }

    fn take_place(&mut self, lane: &Lane, order: u64, agent: &AgentId) {
        self.queues.entry(lane.clone()).or_default().insert(order, agent.clone());
        // A reminder takes its earlier place again, which must not move the counter back.
        self.next_order = self.next_order.max(order.saturating_add(1));
    }

    /// Leaves a place in the queue, unless another turn has taken the same order since.
    fn leave_place(&mut self, lane: &Lane, order: u64, agent: &AgentId) {
        if let Some(queue) = self.queues.get_mut(lane) {
            if queue.get(&order) == Some(agent) {
                queue.remove(&order);
            }
            // `decide::advance` takes a lane in the map as a lane with waiting turns.
            if queue.is_empty() {
                self.queues.remove(lane);
            }
        }
    }

    /// Puts a queued turn into flight.
    pub(crate) fn start(
        &mut self,
        agent: &AgentId,
        attempt: u32,
        share: Option<Micros>,
        plan: &SessionPlan,
    ) {
        self.leave(agent);
        let Some(turn) = self.turns.get_mut(agent) else {
            return;
        };
        turn.attempt = attempt;
        // The recall was about the share of the earlier attempt.
        turn.recalled = false;
        turn.current = Some(plan.clone());
        turn.phase = TurnPhase::Running { share };
        self.in_flight.insert(agent.clone());
        self.paid_in_flight += u32::from(turn.lane != Lane::Script);
        self.reserved = self.reserved.plus(share.unwrap_or_default());
    }

    /// Marks a turn in flight as recalled.
    pub(crate) fn recall(&mut self, agent: &AgentId) {
        if let Some(turn) = self.turns.get_mut(agent) {
            turn.recalled = true;
        }
    }

    /// Ends the flight of a turn and frees its slot and its share.
    pub(crate) fn land(&mut self, agent: &AgentId) {
        let Some(turn) = self.turns.get_mut(agent) else {
            return;
        };
        // Only a turn in flight has a slot and a share, so landing twice frees nothing twice.
        if let TurnPhase::Running { share } = turn.phase {
            turn.phase = TurnPhase::Idle;
            self.in_flight.remove(agent);
            self.paid_in_flight -= u32::from(turn.lane != Lane::Script);
            self.reserved = self.reserved.minus(share.unwrap_or_default());
        }
    }

    /// Lets a turn wait until `until`.
    pub(crate) fn retry_at(&mut self, agent: &AgentId, until: Timestamp) {
        self.leave(agent);
        let Some(turn) = self.turns.get_mut(agent) else {
            return;
        };
        turn.phase = TurnPhase::Retrying { until };
        self.timers.set(until, Timer::Retry(agent.clone()));
    }

    /// Takes the agent's turn out of its queue. The turn stays known for a revival, and a turn in
    /// flight lands later.
    pub(crate) fn give_up(&mut self, agent: &AgentId) {
        let Some(turn) = self.turns.get_mut(agent) else {
            return;
        };
        let (lane, order) = (turn.lane.clone(), turn.order);
        match std::mem::replace(&mut turn.phase, TurnPhase::Idle) {
            TurnPhase::Queued => self.leave_place(&lane, order, agent),
            TurnPhase::Retrying { until } => {
                self.timers.cancel(until, Timer::Retry(agent.clone()));
            }
            // The client still runs and will be paid, so slot and share stay taken until its
            // outcome.
            running @ TurnPhase::Running { .. } => turn.phase = running,
            TurnPhase::Idle => {}
        }
    }

    /// Drops the agent's turn.
    pub(crate) fn forget(&mut self, agent: &AgentId) {
        self.leave(agent);
        self.turns.remove(agent);
    }

    /// Takes the turn out of every queue and counter.
    fn leave(&mut self, agent: &AgentId) {
        // First, because `give_up` leaves a running turn in flight.
        self.land(agent);
        self.give_up(agent);
    }

    /// Holds the turns of a backend, in place of an earlier hold.
    pub(crate) fn hold_backend(&mut self, backend: &BackendName, hold: Hold) {
        // The timer of the earlier hold would release the new one too soon.
        self.release_backend(backend);
        if let Hold::Quota { until, .. } = &hold {
            self.timers.set(*until, Timer::Hold(backend.clone()));
        }
        self.holds.insert(backend.clone(), hold);
    }

    /// Lets the turns of a backend start again.
    pub(crate) fn release_backend(&mut self, backend: &BackendName) {
        if let Some(Hold::Quota { until, .. }) = self.holds.remove(backend) {
            self.timers.cancel(until, Timer::Hold(backend.clone()));
        }
    }

    /// Opens a question.
    pub(crate) fn ask(&mut self, ask: &TurnId, due: Option<Timestamp>) {
        // The timer of the same question with an earlier expiry would stay behind.
        self.close(ask);
        self.asks.insert(ask.clone(), due);
        if let Some(due) = due {
            self.timers.set(due, Timer::AskExpires(ask.clone()));
        }
    }

    /// Closes a question.
    pub(crate) fn close(&mut self, ask: &TurnId) {
        if let Some(Some(due)) = self.asks.remove(ask) {
            self.timers.cancel(due, Timer::AskExpires(ask.clone()));
        }
    }
}

impl Turn {
    /// Returns the attempt that is in flight, or was last.
    pub fn attempt_id(&self) -> TurnAttempt {
        TurnAttempt { turn: self.id.clone(), number: self.attempt }
    }

    /// Returns whether the turn opens a new conversation.
    pub const fn opens(&self) -> bool {
        matches!(self.plan, SessionPlan::Fresh(_))
    }

    /// Returns how the next attempt gets its conversation. Once an attempt may have opened a
    /// session, the client is asked to resume that session first.
    pub fn next_plan(&self) -> SessionPlan {
        match (&self.current, &self.opened) {
            (None, _) => self.plan.clone(),
            (Some(_), None) => self.plan.continued(),
            (Some(_), Some(opened)) => self.plan.continued_in(opened),
        }
    }
}
