//! The clocks of a turn: first output, idle, the whole turn, and the grace after a result.
//!
//! Instants are given, none is asked for. When this process did not run for a while, every clock is
//! moved by that: a client is not to blame for it.

use std::time::Duration;

use raymond_core::failure::Clock;
use raymond_core::time::Span;
use tokio::time::Instant;

use super::Stage;

/// How long a client may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// Until its first output.
    pub first_output: Duration,
    /// Between two outputs, unless the turn says otherwise.
    pub idle: Duration,
    /// Between two outputs until somebody is told.
    pub silent: Duration,
    /// From its result to its exit.
    pub after_result: Duration,
    /// Until the next client of the same configuration may start.
    pub start: Duration,
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        Self {
            first_output: Duration::from_mins(2),
            idle: Duration::from_mins(30),
            silent: Duration::from_mins(10),
            after_result: Duration::from_secs(10),
            start: Duration::from_secs(5),
        }
    }
}

/// What a clock that runs out means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Somebody is told.
    Silent(Span),
    /// The turn is over, and has its result.
    Settled,
    /// The turn has taken too long.
    TimedOut(Clock, Span),
}

/// The clocks of one turn.
#[derive(Debug)]
pub(super) struct TurnTimer {
    timeouts: ClientTimeouts,
    wall: Option<Duration>,
    started: Instant,
    last_output: Instant,
    first_output: FirstOutput,
    silence_report: SilenceReport,
}

/// Whether the client has said anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstOutput {
    Pending,
    Seen,
}

/// Whether somebody was told of the present silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SilenceReport {
    Pending,
    Sent,
}

impl TurnTimer {
    /// Clocks that start now; the turn may have limits of its own.
    pub(super) fn new(
        timeouts: ClientTimeouts,
        wall: Option<Span>,
        idle: Option<Span>,
        now: Instant,
    ) -> Self {
        let idle = idle.map_or(timeouts.idle, duration);
        Self {
            timeouts: ClientTimeouts { idle, ..timeouts },
            wall: wall.map(duration),
            started: now,
            last_output: now,
            first_output: FirstOutput::Pending,
            silence_report: SilenceReport::Pending,
        }
    }

    /// The client said something.
    pub(super) fn note_output(&mut self, now: Instant) {
        (self.last_output, self.first_output, self.silence_report) =
            (now, FirstOutput::Seen, SilenceReport::Pending);
    }

    /// Somebody was told of the silence.
    pub(super) fn note_silence_report(&mut self) {
        self.silence_report = SilenceReport::Sent;
    }

    /// This process did not run for so long.
    pub(super) fn add_gap(&mut self, gap: Duration) {
        self.started += gap;
        self.last_output += gap;
    }

    /// The clock that runs out next; the idle one when another runs out with it.
    pub(super) fn next(&self, stage: Stage) -> (Instant, Due) {
        let timeouts = &self.timeouts;
        let timeout = |since: Instant, after: Duration, clock| {
            (later(since, after), Due::TimedOut(clock, span(after)))
        };
        let idle = timeout(self.last_output, timeouts.idle, Clock::Idle);
        let wall = self.wall.map(|wall| timeout(self.started, wall, Clock::Wall));
        let first = (self.first_output == FirstOutput::Pending)
            .then(|| timeout(self.started, timeouts.first_output, Clock::FirstOutput));
        let silent = (self.silence_report == SilenceReport::Pending).then(|| {
            (later(self.last_output, timeouts.silent), Due::Silent(span(timeouts.silent)))
        });
        let settled = (stage == Stage::Done)
            .then(|| (later(self.last_output, timeouts.after_result), Due::Settled));
        let others = [wall, first, silent, settled].into_iter().flatten();
        others.fold(idle, |first, other| if other.0 < first.0 { other } else { first })
    }
}

/// A moment that is too far away to be written is as good as a year from then.
fn later(since: Instant, after: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    since.checked_add(after).unwrap_or(since + YEAR)
}

fn duration(span: Span) -> Duration {
    Duration::from_millis(span.0)
}

fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
