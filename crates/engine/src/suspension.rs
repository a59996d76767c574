//! Notices that the owner of a run is suspended while another process waits for the run.
//!
//! A suspended owner (Ctrl-Z, SIGSTOP, a debugger) answers nothing and records nothing, but holds
//! the run. The waiting process reports this instead of appearing to hang. An owner that is
//! suspended only for a moment, as between Ctrl-Z and `bg`, is not reported.

use std::time::{Duration, Instant};

use raymond_store::host::Life;

/// How long an owner must be suspended before it is reported. `bg` after Ctrl-Z takes less than
/// that.
const SURE: Duration = Duration::from_secs(1);

/// The state of the owner over several looks.
#[derive(Debug, Default)]
pub struct Suspension {
    since: Option<Instant>,
    is_reported: bool,
}

impl Suspension {
    /// Takes the result of one look. Returns true once for each time that the owner is suspended
    /// for long.
    pub fn is_news(&mut self, life: Life, now: Instant) -> bool {
        if life != Life::Suspended {
            *self = Self::default();
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let is_sure = now.saturating_duration_since(since) >= SURE;
        is_sure && !std::mem::replace(&mut self.is_reported, is_sure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspended_owner_is_reported_once_per_suspension() {
        let start = Instant::now();
        let check = |looks: &[(u64, Life)], expected: &[u64]| {
            let mut suspension = Suspension::default();
            let reported = looks.iter().filter(|(millis, life)| {
                suspension.is_news(*life, start + Duration::from_millis(*millis))
            });
            let reported: Vec<u64> = reported.map(|(millis, _)| *millis).collect();
            assert_eq!(reported, expected, "{looks:?}");
        };
        let (alive, held) = (Life::Alive, Life::Suspended);
        check(&[(0, alive), (5000, alive)], &[]);
        check(&[(0, held), (999, held), (1000, held), (1050, held), (9000, held)], &[1000]);
        // Ctrl-Z and `bg`.
        check(&[(0, held), (500, alive), (1000, held), (1500, held)], &[]);
        check(&[(0, held), (1000, held), (1500, alive), (2000, held), (3000, held)], &[1000, 3000]);
        check(&[(0, Life::Elsewhere), (5000, Life::Elsewhere)], &[]);
    }
}
