//! Timers: everything that happens at a time and not because of an outcome.
//!
//! All waits of a run are in one ordered set, so that the next wake-up is its first entry and
//! `decide` fires what is due in one loop. A new kind of wait is a variant of [`Timer`] and an arm
//! of that loop. The set only says when: a turn, a hold or a question keeps its own state.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, BackendName, TurnId};
use crate::time::Timestamp;

/// What happens when a timer fires.
// Timers of one moment fire in the order of the variants: a backend is released before its turns
// are queued again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// The usage limit of a backend ends.
    Hold(BackendName),
    /// The turn of an agent is tried again.
    Retry(AgentId),
    /// A question expires without an answer.
    AskExpires(TurnId),
    /// The wait of a parked agent is over.
    Wake(AgentId),
}

/// The timers of a run, ordered by their time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timers {
    due: BTreeSet<(Timestamp, Timer)>,
}

impl Timers {
    pub fn set(&mut self, at: Timestamp, timer: Timer) {
        // Several timers may share a moment, so the timer is part of the key.
        self.due.insert((at, timer));
    }

    /// Removes a timer. The caller knows its time, so that no search is needed.
    pub fn cancel(&mut self, at: Timestamp, timer: Timer) {
        self.due.remove(&(at, timer));
    }

    /// Returns the time of the next wake-up.
    pub fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns the timers that are due at `now`, the oldest first.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = &Timer> {
        self.due.iter().take_while(move |(at, _)| *at <= now).map(|(_, timer)| timer)
    }

    /// Returns the retries with their times, the next one first.
    pub fn retries(&self) -> impl Iterator<Item = (Timestamp, &AgentId)> {
        self.due.iter().filter_map(|(at, timer)| match timer {
            Timer::Retry(agent) => Some((*at, agent)),
            Timer::Hold(_) | Timer::AskExpires(_) | Timer::Wake(_) => None,
        })
    }

    /// Returns the end of the usage limit that ends first.
    pub fn next_release(&self) -> Option<Timestamp> {
        self.due.iter().find(|(_, timer)| matches!(timer, Timer::Hold(_))).map(|(at, _)| *at)
    }

    /// Returns the parked agents with the ends of their waits, the next one first.
    pub fn wakes(&self) -> impl Iterator<Item = (Timestamp, &AgentId)> {
        self.due.iter().filter_map(|(at, timer)| match timer {
            Timer::Wake(agent) => Some((*at, agent)),
            Timer::Hold(_) | Timer::AskExpires(_) | Timer::Retry(_) => None,
        })
    }

    pub fn has_retry(&self) -> bool {
        self.retries().next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_by_time_and_then_by_kind() {
        let mut timers = Timers::default();
        let ask = Timer::AskExpires("main.1.1".parse().unwrap());
        let (retry, hold) = (Timer::Retry("main".into()), Timer::Hold(BackendName::new("claude")));
        timers.set(Timestamp(2), retry.clone());
        timers.set(Timestamp(2), hold.clone());
        timers.set(Timestamp(1), ask.clone());
        timers.set(Timestamp(3), Timer::Retry("main_1".into()));
        assert_eq!(timers.next(), Some(Timestamp(1)));
        assert_eq!(timers.due(Timestamp(2)).collect::<Vec<_>>(), [&ask, &hold, &retry]);
        timers.cancel(Timestamp(1), ask);
        assert_eq!(
            (timers.next(), timers.next_release()),
            (Some(Timestamp(2)), Some(Timestamp(2)))
        );
        assert_eq!(timers.retries().count(), 2);
    }
}
