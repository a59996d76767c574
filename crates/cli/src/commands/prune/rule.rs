//! The rule that decides which runs `raymond prune` deletes.

use raymond_core::time::{Span, Timestamp};
use raymond_core::view::{OwnerState, Status};

/// The options of `prune`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// The age from which a run is deleted.
    pub(super) older_than: Span,
    pub(super) unfinished: UnfinishedRun,
}

/// The treatment of runs that could continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnfinishedRun {
    Stay,
    /// They are deleted like the others.
    Go,
}

/// The decision about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PruneFate {
    Goes,
    /// It is not old enough.
    Young,
    /// It could continue.
    Unfinished,
    /// A process drives it.
    Driven,
}

impl Rule {
    /// The default age: 30 days.
    pub(super) const DEFAULT_AGE: Span = Span(30 * 86_400_000);

    /// Decides about a run whose last event was at `last`.
    pub(super) fn fate(self, status: Status, last: Timestamp, now: Timestamp) -> PruneFate {
        if named(status) == PruneFate::Driven {
            PruneFate::Driven
        } else if status.is_unfinished() && self.unfinished == UnfinishedRun::Stay {
            PruneFate::Unfinished
        } else if age(last, now).0 < self.older_than.0 {
            PruneFate::Young
        } else {
            PruneFate::Goes
        }
    }
}

/// Decides about a run that the user named: its age does not matter, but a driven run always stays.
pub(super) const fn named(status: Status) -> PruneFate {
    match status {
        Status::Running | Status::Waiting(_, OwnerState::Alive) => PruneFate::Driven,
        Status::Waiting(_, OwnerState::Gone)
        | Status::Completed
        | Status::Failed
        | Status::OverBudget
        | Status::Cancelled
        | Status::Stopped
        | Status::Interrupted => PruneFate::Goes,
    }
}

// Saturating, because a clock that was set back must not make a run look old.
pub(super) const fn age(last: Timestamp, now: Timestamp) -> Span {
    Span(now.0.saturating_sub(last.0))
}

/// Returns the roundest age that still includes a run of this age: `5d` for five days and three
/// hours.
pub(super) fn reach(age: Span) -> Span {
    // A day, an hour, a minute and a second, in milliseconds.
    const UNITS: [u64; 4] = [86_400_000, 3_600_000, 60_000, 1000];
    let unit = UNITS.into_iter().find(|unit| age.0 >= *unit).unwrap_or(1000);
    // Rounded down, so that `--older-than` with this age includes the run.
    Span(age.0 / unit * unit)
}

#[cfg(test)]
mod tests {
    use raymond_core::view::Waiting;

    use super::*;

    #[test]
    fn only_old_finished_runs_are_pruned_by_default() {
        const DAY: u64 = 86_400_000;
        let check = |status, days: u64, (stay, go): (PruneFate, PruneFate)| {
            let (now, last) = (Timestamp(100 * DAY), Timestamp((100 - days) * DAY));
            let rule = |unfinished| Rule { older_than: Rule::DEFAULT_AGE, unfinished };
            let fates = [UnfinishedRun::Stay, UnfinishedRun::Go]
                .map(|unfinished| rule(unfinished).fate(status, last, now));
            assert_eq!(fates, [stay, go], "{status:?} {days}");
        };
        for finished in [Status::Completed, Status::Cancelled] {
            check(finished, 30, (PruneFate::Goes, PruneFate::Goes));
            check(finished, 29, (PruneFate::Young, PruneFate::Young));
        }
        let asleep = Status::Waiting(Waiting::Person, OwnerState::Gone);
        let unfinished = [Status::Failed, Status::OverBudget, Status::Stopped, Status::Interrupted];
        for status in unfinished.into_iter().chain([asleep]) {
            check(status, 31, (PruneFate::Unfinished, PruneFate::Goes));
            check(status, 1, (PruneFate::Unfinished, PruneFate::Young));
            assert_eq!(named(status), PruneFate::Goes);
        }
        for driven in [Status::Running, Status::Waiting(Waiting::Person, OwnerState::Alive)] {
            check(driven, 90, (PruneFate::Driven, PruneFate::Driven));
            assert_eq!(named(driven), PruneFate::Driven);
        }
    }

    #[test]
    fn the_age_that_is_offered_takes_the_run() {
        let check = |millis, expected: &str| {
            assert_eq!(reach(Span(millis)).to_string(), expected);
            assert!(reach(Span(millis)).0 <= millis.max(1));
        };
        check(5 * 86_400_000 + 11_000_000, "5d");
        check(7_300_000, "2h");
        check(61_000, "1m");
        check(1_999, "1s");
        check(40, "0d");
        check(0, "0d");
    }

    #[test]
    fn clock_set_back_makes_nothing_old() {
        assert_eq!(age(Timestamp(5), Timestamp(3)), Span(0));
    }
}
