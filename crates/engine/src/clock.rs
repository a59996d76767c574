//! The wall clock and the random numbers of the real machine.
//!
//! No other module asks for the time or for randomness. The core gets both inside inputs, so that a
//! journal can be decided again with the same result.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use raymond_core::clock::{ClockReading, OwnerClock};
use raymond_core::ids::Nonce;
use raymond_core::run::Run;
use raymond_core::time::{Span, Timestamp};

/// Returns the current time.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The clock of a process that drives a run: see [`OwnerClock`].
#[derive(Debug)]
pub(crate) struct RunClock {
    owner: OwnerClock,
    wall: fn() -> Timestamp,
    started: Instant,
}

impl Default for RunClock {
    fn default() -> Self {
        Self { owner: OwnerClock::default(), wall: now, started: Instant::now() }
    }
}

impl RunClock {
    /// Returns the time for this run. While the run waits for a time, the clock does not go
    /// backwards: see [`OwnerClock`].
    pub(crate) fn now(&mut self, run: &Run) -> Timestamp {
        let uptime = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let machine = ClockReading { wall: (self.wall)(), uptime: Span(uptime) };
        self.owner.now(machine, run.next_due())
    }
}

/// Returns sixteen random bytes, in hexadecimal.
pub fn nonce() -> Nonce {
    let mut bytes = [0_u8; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    // `getrandom` waits until the kernel has enough entropy. It fails only if the system call is
    // forbidden; a nonce must then still differ between runs, but it need not be secret.
    let filled = rustix::rand::getrandom(&mut bytes[..], flags).unwrap_or(0);
    if filled < bytes.len() {
        let seed = format!("{:?} {}", SystemTime::now(), std::process::id());
        bytes.copy_from_slice(&blake3::hash(seed.as_bytes()).as_bytes()[..16]);
    }
    Nonce::new(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use raymond_core::run::Phase;
    use raymond_core::scheduler::Timer;

    use super::*;

    #[test]
    fn waiting_owner_ignores_a_clock_set_back() {
        static WALL: AtomicU64 = AtomicU64::new(5000);
        let wall = || Timestamp(WALL.load(Ordering::Relaxed));
        let mut clock = RunClock { wall, ..RunClock::default() };
        let mut run = Run { phase: Phase::Open, ..Run::default() };
        let retry = Timer::Retry("main".into());
        run.scheduler.timers.set(Timestamp(9000), retry.clone());
        assert_eq!(clock.now(&run), Timestamp(5000));
        WALL.store(10, Ordering::Relaxed);
        assert!(clock.now(&run) >= Timestamp(5000));
        run.scheduler.timers.cancel(Timestamp(9000), retry);
        assert_eq!(clock.now(&run), Timestamp(10));
    }
}
