//! Which runs are deleted when somebody cleans up.

use crate::time::{Span, Timestamp};

use super::status::{Owner, Status};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Only runs that ended longer ago.
    pub older_than: Span,
    /// What becomes of those that could go on.
    pub unfinished: Unfinished,
}

/// What becomes of runs that could go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// They stay.
    Stay,
    /// They go like the others.
    Go,
}

/// What becomes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is deleted.
    Goes,
    /// It ended not long enough ago.
    Young,
    /// It could go on.
    Unfinished,
    /// Somebody drives it.
    Driven,
}

impl Rule {
    /// Without a word about it: 30 days, and only what is finished.
    pub const DEFAULT_AGE: Span = Span(30 * 86_400_000);

    /// What becomes of a run in which nothing has happened since `last`.
    pub fn fate(self, status: Status, last: Timestamp, now: Timestamp) -> Fate {
        if named(status) == Fate::Driven {
            Fate::Driven
        } else if status.is_unfinished() && self.unfinished == Unfinished::Stay {
            Fate::Unfinished
        } else if age(last, now).0 < self.older_than.0 {
            Fate::Young
        } else {
            Fate::Goes
        }
    }
}

/// What becomes of a run that a person names: it goes whatever its age is, but never while somebody
/// drives it.
pub const fn named(status: Status) -> Fate {
    match status {
        Status::Running | Status::Waiting(_, Owner::Alive) => Fate::Driven,
        Status::Waiting(_, Owner::Gone)
        | Status::Completed
        | Status::Failed
        | Status::OverBudget
        | Status::Cancelled
        | Status::Stopped
        | Status::Interrupted => Fate::Goes,
    }
}

/// How long ago that was.
pub const fn age(last: Timestamp, now: Timestamp) -> Span {
    Span(now.0.saturating_sub(last.0))
}

/// The roundest age that still takes a run of this age: `5d` for five days and three hours.
pub fn reach(age: Span) -> Span {
    const UNITS: [u64; 4] = [86_400_000, 3_600_000, 60_000, 1000];
    let unit = UNITS.into_iter().find(|unit| age.0 >= *unit).unwrap_or(1);
    Span((age.0 / unit * unit).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::status::Waiting;

    #[test]
    fn only_what_is_finished_and_old_goes_unless_more_is_asked_for() {
        const DAY: u64 = 86_400_000;
        let check = |status, days: u64, (stay, go): (Fate, Fate)| {
            let (now, last) = (Timestamp(100 * DAY), Timestamp((100 - days) * DAY));
            let rule = |unfinished| Rule { older_than: Rule::DEFAULT_AGE, unfinished };
            let fates = [Unfinished::Stay, Unfinished::Go]
                .map(|unfinished| rule(unfinished).fate(status, last, now));
            assert_eq!(fates, [stay, go], "{status:?} {days}");
        };
        for finished in [Status::Completed, Status::Cancelled] {
            check(finished, 30, (Fate::Goes, Fate::Goes));
            check(finished, 29, (Fate::Young, Fate::Young));
        }
        let asleep = Status::Waiting(Waiting::Person, Owner::Gone);
        let unfinished = [Status::Failed, Status::OverBudget, Status::Stopped, Status::Interrupted];
        for status in unfinished.into_iter().chain([asleep]) {
            check(status, 31, (Fate::Unfinished, Fate::Goes));
            check(status, 1, (Fate::Unfinished, Fate::Young));
            assert_eq!(named(status), Fate::Goes);
        }
        for driven in [Status::Running, Status::Waiting(Waiting::Person, Owner::Alive)] {
            check(driven, 90, (Fate::Driven, Fate::Driven));
            assert_eq!(named(driven), Fate::Driven);
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
        check(40, "40ms");
        check(0, "1ms");
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_old() {
        assert_eq!(age(Timestamp(5), Timestamp(3)), Span(0));
    }
}
