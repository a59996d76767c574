//! The status of a run, derived from its journal and its owner.
//!
//! No status is stored, so none can be stale: a killed owner could not have corrected it. The word
//! of a status is the same for all commands. The cause is in [`mod@super::why`].

use std::fmt;

use crate::run::event::Ending;
use crate::run::{Phase, Run};
use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerState {
    Alive,
    Gone,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Running,
    /// Every live agent waits, with or without a process.
    Waiting(Waiting, OwnerState),
    Completed,
    /// An agent failed, and no agent is live.
    Failed,
    OverBudget,
    /// Ended by `raymond cancel`. Only `--truncate-to` continues it.
    Cancelled,
    Stopped,
    /// Its process died.
    Interrupted,
}

/// The reason why a run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    Quota(Option<Timestamp>),
    Person,
    /// An output of the caller.
    Caller,
    Retry(Timestamp),
    /// The time at which a parked agent continues.
    Time(Timestamp),
    /// A missing resource of the machine, such as disk space.
    Environment,
}

impl Status {
    /// The words of all statuses.
    pub const WORDS: [&str; 8] = [
        Self::Running.as_str(),
        Self::Waiting(Waiting::Person, OwnerState::Gone).as_str(),
        Self::Completed.as_str(),
        Self::Failed.as_str(),
        Self::OverBudget.as_str(),
        Self::Cancelled.as_str(),
        Self::Stopped.as_str(),
        Self::Interrupted.as_str(),
    ];

    /// Returns the word for it, in all texts and in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting(..) => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::OverBudget => "over_budget",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
            Self::Interrupted => "interrupted",
        }
    }

    pub const fn is_unfinished(self) -> bool {
        !matches!(self, Self::Completed | Self::Cancelled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

pub fn status(run: &Run, owner: OwnerState) -> Status {
    match (run.phase, owner) {
        // The owner does not matter: it may live a little longer than its run.
        (Phase::Ended(ending), _) => ended(run, ending),
        (Phase::Open, _) if run.scheduler.in_flight.is_empty() => match (waiting(run), owner) {
            (Some(waiting), _) => Status::Waiting(waiting, owner),
            (None, OwnerState::Alive) => Status::Running,
            (None, OwnerState::Gone) => Status::Interrupted,
        },
        (Phase::Unborn | Phase::Open | Phase::Stopping(_), OwnerState::Alive) => Status::Running,
        (Phase::Unborn | Phase::Open | Phase::Stopping(_), OwnerState::Gone) => Status::Interrupted,
    }
}

fn ended(run: &Run, ending: Ending) -> Status {
    match ending {
        Ending::Completed => Status::Completed,
        Ending::Failed => Status::Failed,
        Ending::OverBudget => Status::OverBudget,
        Ending::Stopped => Status::Stopped,
        Ending::Cancelled => Status::Cancelled,
        // The run has ended, so no process waits with it: a call or a resume continues it.
        Ending::NeedsCaller => Status::Waiting(Waiting::Caller, OwnerState::Gone),
        Ending::NeedsPerson => Status::Waiting(Waiting::Person, OwnerState::Gone),
        Ending::Environment => Status::Waiting(Waiting::Environment, OwnerState::Gone),
        Ending::NoQuota => {
            Status::Waiting(Waiting::Quota(run.scheduler.timers.next_release()), OwnerState::Gone)
        }
        Ending::Sleeping => {
            let timers = &run.scheduler.timers;
            let wake = timers.wakes().next().map(|(until, _)| until).unwrap_or_default();
            // The run continues at the earlier one.
            let waiting = match timers.next_release().filter(|release| *release < wake) {
                Some(release) => Waiting::Quota(Some(release)),
                None => Waiting::Time(wake),
            };
            Status::Waiting(waiting, OwnerState::Gone)
        }
    }
}

/// Returns why no agent has a turn in flight; `None` if a turn is about to start.
fn waiting(run: &Run) -> Option<Waiting> {
    let timers = &run.scheduler.timers;
    if let Some((until, _)) = timers.retries().next() {
        Some(Waiting::Retry(until))
    } else if let Some(until) = timers.next_release() {
        Some(Waiting::Quota(Some(until)))
    } else if !run.scheduler.asks.is_empty() || !run.scheduler.holds.is_empty() {
        Some(Waiting::Person)
    } else {
        timers.wakes().next().map(|(until, _)| Waiting::Time(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_words_contains_every_status() {
        // The match has no `_`, so a new status is missing here until it has a place in the list.
        let place = |status: Status| match status {
            Status::Running => 0,
            Status::Waiting(..) => 1,
            Status::Completed => 2,
            Status::Failed => 3,
            Status::OverBudget => 4,
            Status::Cancelled => 5,
            Status::Stopped => 6,
            Status::Interrupted => 7,
        };
        let all = [
            Status::Running,
            Status::Waiting(Waiting::Caller, OwnerState::Alive),
            Status::Completed,
            Status::Failed,
            Status::OverBudget,
            Status::Cancelled,
            Status::Stopped,
            Status::Interrupted,
        ];
        assert_eq!(all.map(|status| Status::WORDS[place(status)]), all.map(Status::as_str));
        assert_eq!(all.map(place), std::array::from_fn(|n| n), "each place is used once");
    }
}
