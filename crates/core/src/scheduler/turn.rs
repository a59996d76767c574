//! Turns at the scheduler.

use crate::protocol::Notice;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::agent::SessionPlan;
use crate::budget::Micros;
use crate::ids::{AgentId, BackendName, SessionId, TurnId};
use crate::protocol::Fault;
use crate::scheduler::Hold;
use crate::time::Timestamp;

/// Everything that wants, has or awaits a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scheduler {
    /// The current turn of each live agent.
    pub turns: BTreeMap<AgentId, Turn>,
    /// Waiting turns by lane and place.
    #[serde(with = "pairs")]
    pub queues: BTreeMap<Lane, BTreeMap<u64, AgentId>>,
    /// The next place.
    pub next_order: u64,
    /// The turns in flight.
    pub in_flight: BTreeSet<AgentId>,
    /// How many of them are paid.
    pub paid_in_flight: u32,
    /// The shares of turns in flight.
    pub reserved: Micros,
    /// Retries that wait for their time.
    pub retries: BTreeSet<(Timestamp, AgentId)>,
    /// Backends of which no turn starts.
    pub holds: BTreeMap<BackendName, Hold>,
    /// Open questions.
    pub asks: BTreeMap<TurnId, Option<Timestamp>>,
    /// When they expire.
    pub expiries: BTreeSet<(Timestamp, TurnId)>,
}

/// One turn, from the moment it is wanted until it is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Where it queues.
    pub lane: Lane,
    /// What it sends.
    pub prompt: Prompt,
    /// How a first attempt gets its conversation.
    pub plan: SessionPlan,
    /// How the last attempt got it; none before the first.
    pub current: Option<SessionPlan>,
    /// The conversation that an attempt opened, where its client could not take the id that was
    /// chosen for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<SessionId>,
    /// Its last place in the queue.
    pub order: u64,
    /// Attempts so far.
    pub attempt: u32,
    /// What the next attempt tells the client; none at the first.
    pub notice: Option<Notice>,
    /// Attempts in a row that ended early, by a crash or a used-up share, and made no progress.
    // Golden runs have it under its first name.
    #[serde(rename = "crashes")]
    pub stalls: u32,
    /// Whether its client is being ended because its share does not fit the cap any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recalled: bool,
    /// Where it stands.
    pub phase: Phase,
}

/// Where a turn stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It waits for a slot and a share.
    Queued,
    /// It is in flight, with this share.
    Running {
        /// What it may spend.
        share: Option<Micros>,
    },
    /// It failed and is tried again then.
    Retrying {
        /// When.
        until: Timestamp,
    },
    /// It is over or was cut off, and waits for what follows.
    Idle,
}

/// Where turns queue: a lane that is blocked does not block the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Scripts cost nothing.
    Script,
    /// Turns of this backend.
    Prompt(BackendName),
}

impl Lane {
    /// Whose turns queue there; nobody answers a script.
    pub const fn backend(&self) -> Option<&BackendName> {
        match self {
            Self::Script => None,
            Self::Prompt(backend) => Some(backend),
        }
    }
}

/// What a turn sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// The body of the state.
    Body,
    /// A reminder.
    Reminder(Fault),
}

impl Scheduler {
    /// Why no turn of this lane starts; scripts always may.
    pub fn hold(&self, lane: &Lane) -> Option<&Hold> {
        match lane {
            Lane::Script => None,
            Lane::Prompt(backend) => self.holds.get(backend),
        }
    }

    /// A new turn waits, in place of whatever the agent had.
    pub(crate) fn queue(&mut self, turn: Turn) {
        self.leave(&turn.id.agent);
        self.take_place(&turn.lane.clone(), turn.order, &turn.id.agent);
        self.turns.insert(turn.id.agent.clone(), turn);
    }

    /// A known turn waits again.
    pub(crate) fn requeue(&mut self, agent: &AgentId, order: u64, notice: Notice) {
        self.leave(agent);
        let Some(turn) = self.turns.get_mut(agent) else {
            return;
        };
        turn.order = order;
        turn.notice = Some(notice);
        turn.phase = Phase::Queued;
        let lane = turn.lane.clone();
        self.take_place(&lane, order, agent);
    }

    fn take_place(&mut self, lane: &Lane, order: u64, agent: &AgentId) {
        self.queues.entry(lane.clone()).or_default().insert(order, agent.clone());
        self.next_order = self.next_order.max(order.saturating_add(1));
    }

    /// Only its own place: an order that another turn took since stays taken.
    fn leave_place(&mut self, lane: &Lane, order: u64, agent: &AgentId) {
        if let Some(queue) = self.queues.get_mut(lane) {
            if queue.get(&order) == Some(agent) {
                queue.remove(&order);
            }
            if queue.is_empty() {
                self.queues.remove(lane);
            }
        }
    }

    /// A waiting turn is in flight.
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
        turn.recalled = false;
        turn.current = Some(plan.clone());
        turn.phase = Phase::Running { share };
        self.in_flight.insert(agent.clone());
        self.paid_in_flight += u32::from(turn.lane != Lane::Script);
        self.reserved = self.reserved.plus(share.unwrap_or_default());
    }

    /// The client of a turn in flight is being ended because its share does not fit the cap any more.
    pub(crate) fn recall(&mut self, agent: &AgentId) {
        if let Some(turn) = self.turns.get_mut(agent) {
            turn.recalled = true;
        }
    }

    /// A turn is no longer in flight: its slot and its share are free.
    pub(crate) fn land(&mut self, agent: &AgentId) {
        let Some(turn) = self.turns.get_mut(agent) else {
            return;
        };
        if let Phase::Running { share } = turn.phase {
            turn.phase = Phase::Idle;
            self.in_flight.remove(agent);
            self.paid_in_flight -= u32::from(turn.lane != Lane::Script);
            self.reserved = self.reserved.minus(share.unwrap_or_default());
        }
    }

    /// A turn waits for its time.
    pub(crate) fn retry_at(&mut self, agent: &AgentId, until: Timestamp) {
        self.leave(agent);
        let Some(turn) = self.turns.get_mut(agent) else {
            return;
        };
        turn.phase = Phase::Retrying { until };
        self.retries.insert((until, agent.clone()));
    }

    /// Nobody waits for this agent's turn any more; what is known of it stays for a revival, and
    /// one in flight lands later.
    pub(crate) fn give_up(&mut self, agent: &AgentId) {
        let Some(turn) = self.turns.get_mut(agent) else {
            return;
        };
        let (lane, order) = (turn.lane.clone(), turn.order);
        match std::mem::replace(&mut turn.phase, Phase::Idle) {
            Phase::Queued => self.leave_place(&lane, order, agent),
            Phase::Retrying { until } => {
                self.retries.remove(&(until, agent.clone()));
            }
            running @ Phase::Running { .. } => turn.phase = running,
            Phase::Idle => {}
        }
    }

    /// The agent's turn is over for good.
    pub(crate) fn forget(&mut self, agent: &AgentId) {
        self.leave(agent);
        self.turns.remove(agent);
    }

    /// The turn stands nowhere, wherever it stood: every count follows.
    fn leave(&mut self, agent: &AgentId) {
        self.land(agent);
        self.give_up(agent);
    }

    /// A question is open.
    pub(crate) fn ask(&mut self, ask: &TurnId, due: Option<Timestamp>) {
        self.close(ask);
        self.asks.insert(ask.clone(), due);
        self.expiries.extend(due.map(|due| (due, ask.clone())));
    }

    /// A question is closed.
    pub(crate) fn close(&mut self, ask: &TurnId) {
        if let Some(Some(due)) = self.asks.remove(ask) {
            self.expiries.remove(&(due, ask.clone()));
        }
    }
}

impl Turn {
    /// Whether its conversation is one that it opens itself.
    pub const fn opens(&self) -> bool {
        matches!(self.plan, SessionPlan::Fresh(_))
    }

    /// How the next attempt gets its conversation: once an attempt may have opened it, the client is
    /// asked for it first.
    pub fn next_plan(&self) -> SessionPlan {
        match (&self.current, &self.opened) {
            (None, _) => self.plan.clone(),
            (Some(_), None) => self.plan.continued(),
            (Some(_), Some(opened)) => self.plan.continued_in(opened),
        }
    }
}

/// A lane is no string, so it cannot be a key in JSON: the queues travel as pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Lane;
    use crate::ids::AgentId;

    type Queues = BTreeMap<Lane, BTreeMap<u64, AgentId>>;

    pub(super) fn serialize<S: Serializer>(queues: &Queues, to: S) -> Result<S::Ok, S::Error> {
        queues.iter().collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Queues, D::Error> {
        let pairs = Vec::<(Lane, BTreeMap<u64, AgentId>)>::deserialize(from)?;
        Ok(pairs.into_iter().collect())
    }
}
