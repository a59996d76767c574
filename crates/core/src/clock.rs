//! The clock of the process that owns a run.
//!
//! Waits end at a time of the wall clock, because they outlast the owner and the sleep of the
//! machine. But a user or a time server may set the wall clock back while the owner waits.
//! Therefore the owner's clock never runs slower than the machine's uptime while something waits,
//! so that no wait takes longer than planned. When nothing waits, it shows the wall clock again. A
//! wait that a later owner finds is bounded by `resume`.

use crate::time::{Span, Timestamp};

/// The clocks of the machine at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    pub wall: Timestamp,
    /// A clock that cannot be set. It may stop while the machine sleeps.
    pub uptime: Span,
}

/// The clock of an owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnerClock {
    last: Option<ClockReading>,
}

impl OwnerClock {
    /// Returns the time of the next record. `due` is when the next wait of the run ends.
    pub fn now(&mut self, machine: ClockReading, due: Option<Timestamp>) -> Timestamp {
        // Only while something waits: otherwise a clock that was once ahead could never be
        // corrected.
        let steady = self.last.filter(|_| due.is_some()).map(|last| {
            let passed = machine.uptime.0.saturating_sub(last.uptime.0);
            last.wall + Span(passed)
        });
        let now = steady.map_or(machine.wall, |steady| machine.wall.max(steady));
        self.last = Some(ClockReading { wall: now, uptime: machine.uptime });
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row: what the wall clock and the uptime show, when a wait ends, and the time that
    /// follows.
    #[track_caller]
    fn check(rows: &[(u64, u64, Option<u64>, u64)]) {
        let mut clock = OwnerClock::default();
        for (wall, uptime, due, expected) in rows {
            let machine = ClockReading { wall: Timestamp(*wall), uptime: Span(*uptime) };
            let now = clock.now(machine, due.map(Timestamp));
            assert_eq!(now, Timestamp(*expected), "wall {wall}, uptime {uptime}: {rows:?}");
        }
    }

    // proves: A21
    #[test]
    fn clock_set_back_delays_no_wait() {
        check(&[(1000, 0, Some(1500), 1000), (400, 100, Some(1500), 1100), (900, 600, None, 900)]);
        // It is set back twice.
        check(&[
            (1000, 0, Some(9000), 1000),
            (800, 50, Some(9000), 1050),
            (1, 60, Some(9000), 1060),
        ]);
    }

    #[test]
    fn clock_set_ahead_and_sleep_end_waits() {
        check(&[(1000, 0, Some(1500), 1000), (5000, 10, Some(1500), 5000)]);
        // The clock was wrong, and is corrected while another wait continues.
        check(&[
            (9000, 0, Some(9500), 9000),
            (1000, 100, Some(9500), 9100),
            (1400, 500, None, 1400),
        ]);
    }

    #[test]
    fn without_a_wait_wall_clock_counts() {
        check(&[(1000, 0, None, 1000), (400, 100, None, 400), (450, 150, Some(800), 450)]);
    }
}
