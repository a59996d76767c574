//! The four clocks of a turn, and when the next of them runs out.
//!
//! Time is an argument. A process that was suspended meanwhile moves all of them: the time that it
//! could not look is nobody's silence.

use std::time::Duration;

use raymond_core::failure::Clock;
use tokio::time::Instant;

use super::turn::Stage;

/// How long each clock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Until the first output.
    pub first_output: Duration,
    /// Between two outputs, for turns that say nothing else.
    pub idle: Duration,
    /// After which silence is told of.
    pub warning: Duration,
    /// After a result, until the rest of the tree is ended.
    pub grace: Duration,
    /// How long the start of one client may hold up the next.
    pub start: Duration,
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            first_output: Duration::from_mins(2),
            idle: Duration::from_mins(30),
            warning: Duration::from_mins(10),
            grace: Duration::from_secs(10),
            start: Duration::from_secs(5),
        }
    }
}

/// What it means that a clock runs out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The turn took too long.
    Clock(Clock, Duration),
    /// The client has said all that it will say.
    Grace,
    /// The silence is worth a word.
    Silence(Duration),
    /// The next client need not wait any longer.
    Started,
}

/// The clocks of one turn that runs.
#[derive(Debug)]
pub(super) struct Timer {
    clocks: Clocks,
    wall: Option<Duration>,
    begun: Instant,
    last_output: Instant,
    spoke: bool,
    silence_told: bool,
    starting: bool,
}

impl Timer {
    pub(super) fn new(clocks: Clocks, now: Instant) -> Self {
        Self {
            clocks,
            wall: None,
            begun: now,
            last_output: now,
            spoke: false,
            silence_told: false,
            starting: false,
        }
    }

    /// The same with the limits of its state.
    pub(super) fn limited(mut self, wall: Option<Duration>, idle: Option<Duration>) -> Self {
        self.wall = wall;
        self.clocks.idle = idle.unwrap_or(self.clocks.idle);
        self
    }

    /// A client is started: another one may wait for that.
    pub(super) fn starts(&mut self, now: Instant) {
        self.last_output = now;
        self.spoke = false;
        self.starting = true;
    }

    /// The client wrote something.
    pub(super) fn spoke(&mut self, now: Instant) {
        self.last_output = now;
        self.spoke = true;
        self.silence_told = false;
        self.starting = false;
    }

    /// Its start holds up nobody any more.
    pub(super) fn started(&mut self) {
        self.starting = false;
    }

    /// Its silence was told of.
    pub(super) fn told(&mut self) {
        self.silence_told = true;
    }

    /// Nobody could look for so long.
    pub(super) fn woke(&mut self, gap: Duration) {
        self.begun += gap;
        self.last_output += gap;
    }

    /// When the next clock runs out, and what that means.
    pub(super) fn next(&self, stage: Stage) -> Option<(Instant, Due)> {
        let Clocks { first_output, idle, warning, grace, start } = self.clocks;
        let after =
            |since: Instant, span: Duration, due: Due| Some((since.checked_add(span)?, due));
        let wall =
            self.wall.and_then(|wall| after(self.begun, wall, Due::Clock(Clock::Wall, wall)));
        let quiet = match stage {
            Stage::Done => after(self.last_output, grace, Due::Grace),
            Stage::Working if !self.spoke => {
                let first = first_output.min(idle);
                after(self.last_output, first, Due::Clock(Clock::FirstOutput, first))
            }
            Stage::Working | Stage::Background => {
                after(self.last_output, idle, Due::Clock(Clock::Idle, idle))
            }
        };
        let is_silent = self.spoke && !self.silence_told && stage != Stage::Done;
        let silence =
            is_silent.then(|| after(self.last_output, warning, Due::Silence(warning))).flatten();
        let started = self.starting.then(|| after(self.last_output, start, Due::Started)).flatten();
        [wall, quiet, silence, started].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const CLOCKS: Clocks =
        Clocks { first_output: s(120), idle: s(1800), warning: s(600), grace: s(10), start: s(5) };

    /// The seconds from `begun` until something is due.
    fn due(timer: &Timer, stage: Stage, begun: Instant) -> Option<(u64, Due)> {
        timer.next(stage).map(|(at, due)| ((at - begun).as_secs(), due))
    }

    #[test]
    fn each_clock_runs_out_in_its_turn() {
        let begun = Instant::now();
        let mut timer = Timer::new(CLOCKS, begun);
        let first = Due::Clock(Clock::FirstOutput, s(120));
        assert_eq!(due(&timer, Stage::Working, begun), Some((120, first)));
        timer.starts(begun);
        assert_eq!(due(&timer, Stage::Working, begun), Some((5, Due::Started)));
        timer.started();
        assert_eq!(due(&timer, Stage::Working, begun), Some((120, first)));
        timer.spoke(begun + s(1));
        assert_eq!(due(&timer, Stage::Working, begun), Some((601, Due::Silence(s(600)))));
        timer.told();
        let idle = Due::Clock(Clock::Idle, s(1800));
        assert_eq!(due(&timer, Stage::Working, begun), Some((1801, idle)));
        assert_eq!(due(&timer, Stage::Background, begun), Some((1801, idle)));
        assert_eq!(due(&timer, Stage::Done, begun), Some((11, Due::Grace)));
        timer.spoke(begun + s(5));
        assert_eq!(due(&timer, Stage::Done, begun), Some((15, Due::Grace)));
        assert_eq!(due(&timer, Stage::Working, begun), Some((605, Due::Silence(s(600)))));
    }

    #[test]
    fn a_state_may_set_its_own_limits() {
        let begun = Instant::now();
        let mut timer = Timer::new(CLOCKS, begun).limited(Some(s(60)), Some(s(30)));
        let first = Due::Clock(Clock::FirstOutput, s(30));
        assert_eq!(due(&timer, Stage::Working, begun), Some((30, first)));
        timer.spoke(begun + s(20));
        let idle = Due::Clock(Clock::Idle, s(30));
        assert_eq!(due(&timer, Stage::Working, begun), Some((50, idle)));
        timer.spoke(begun + s(40));
        let wall = Due::Clock(Clock::Wall, s(60));
        assert_eq!(due(&timer, Stage::Working, begun), Some((60, wall)));
    }

    #[test]
    fn time_that_nobody_could_look_is_not_counted() {
        let begun = Instant::now();
        let mut timer = Timer::new(CLOCKS, begun).limited(Some(s(3000)), None);
        timer.spoke(begun);
        timer.told();
        timer.woke(s(1000));
        let idle = Due::Clock(Clock::Idle, s(1800));
        assert_eq!(due(&timer, Stage::Working, begun), Some((2800, idle)));
        timer.spoke(begun + s(3900));
        let wall = Due::Clock(Clock::Wall, s(3000));
        assert_eq!(due(&timer, Stage::Working, begun), Some((4000, wall)));
    }
}
