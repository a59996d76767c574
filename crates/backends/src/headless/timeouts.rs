//! The timeouts of a turn: first output, idle, the whole turn, and the time after a result.
//!
//! This module reads no clock; callers pass instants. If Raymond itself was suspended for a while,
//! every timeout moves by that time, because the client is not responsible for it.

use std::time::Duration;

use raymond_core::failure::Clock;
use raymond_core::time::Span;
use tokio::time::Instant;

use super::Stage;

/// The time limits of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// From the start to the first output.
    pub first_output: Duration,
    /// Between two outputs, unless the turn has its own limit.
    pub idle: Duration,
    /// Without output until the listener is informed.
    pub silent: Duration,
    /// From the result to the exit.
    pub after_result: Duration,
    /// From the start until the next client with the same configuration may start.
    pub start: Duration,
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        Self {
            first_output: Duration::from_mins(2),
            idle: Duration::from_mins(30),
            // Long tool calls are silent for minutes; only the listener is informed then.
            silent: Duration::from_mins(10),
            after_result: Duration::from_secs(10),
            start: Duration::from_secs(5),
        }
    }
}

/// The meaning of a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The listener is informed of the silence.
    Silent(Span),
    /// The turn has its result, so the client can be ended.
    Settled,
    TimedOut(Clock, Span),
}

/// The deadlines of one turn.
#[derive(Debug)]
pub(super) struct TurnTimer {
    timeouts: ClientTimeouts,
    wall: Option<Duration>,
    started: Instant,
    last_output: Instant,
    first_output: FirstOutput,
    silence_report: SilenceReport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstOutput {
    Pending,
    Seen,
}

/// Whether the listener was informed of the current silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SilenceReport {
    Pending,
    Sent,
}

impl TurnTimer {
    /// Starts all timeouts at `now`. A turn may override the idle timeout.
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

    /// Restarts the idle timeout.
    pub(super) fn note_output(&mut self, now: Instant) {
        (self.last_output, self.first_output, self.silence_report) =
            (now, FirstOutput::Seen, SilenceReport::Pending);
    }

    /// Notes that the listener was informed of the silence.
    pub(super) fn note_silence_report(&mut self) {
        self.silence_report = SilenceReport::Sent;
    }

    /// Moves all timeouts by the time for which Raymond was suspended.
    pub(super) fn add_gap(&mut self, gap: Duration) {
        self.started += gap;
        self.last_output += gap;
    }

    /// Returns the next deadline. If several deadlines are equal, the idle timeout wins.
    pub(super) fn next(&self, stage: Stage) -> (Instant, Due) {
        let timeouts = &self.timeouts;
        let timeout = |since: Instant, after: Duration, clock| {
            (later(since, after), Due::TimedOut(clock, span(after)))
        };
        // The fold below starts with the idle timeout, so it wins when two deadlines are equal.
        let idle = timeout(self.last_output, timeouts.idle, Clock::Idle);
        let wall = self.wall.map(|wall| timeout(self.started, wall, Clock::Wall));
        let first = (self.first_output == FirstOutput::Pending)
            .then(|| timeout(self.started, timeouts.first_output, Clock::FirstOutput));
        let silent = (self.silence_report == SilenceReport::Pending).then(|| {
            (later(self.last_output, timeouts.silent), Due::Silent(span(timeouts.silent)))
        });
        // Tasks in the background keep a client alive after its result, so only `Done` starts this
        // one.
        let settled = (stage == Stage::Done)
            .then(|| (later(self.last_output, timeouts.after_result), Due::Settled));
        let others = [wall, first, silent, settled].into_iter().flatten();
        others.fold(idle, |first, other| if other.0 < first.0 { other } else { first })
    }
}

/// Adds a duration to an instant.
fn later(since: Instant, after: Duration) -> Instant {
    // An instant that cannot be represented becomes one year later, which no turn reaches.
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
