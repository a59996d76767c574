//! Runs numbered pieces of work on all cores, and collects their failures.

use std::ops::Range;
use std::panic::{UnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use raymond_testkit::violation::Violation;

use crate::print_line;

/// The command stops after this many failures; more would not help to find the bug.
const MAX_FAILURES: u64 = 10;

/// Counts failures, and prints the command that reproduces each one.
#[derive(Default)]
pub(crate) struct Failures(AtomicU64);

impl Failures {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn report(&self, command: &str, why: &str) {
        self.0.fetch_add(1, Ordering::Relaxed);
        print_line(&format!("simulate {command}: {why}"));
    }

    pub(crate) fn watch<T>(
        &self,
        command: &str,
        run: impl FnOnce() -> Result<T, Violation> + UnwindSafe,
    ) -> Option<T> {
        // A panic must not hide the seed that caused it.
        match catch_unwind(run) {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(violation)) => self.report(command, &violation.to_string()),
            Err(_) => self.report(command, "it panicked"),
        }
        None
    }
}

/// Runs `work` once for each number of the range, until too many pieces have failed.
///
/// Returns one result per core; the caller adds them up.
pub(crate) fn run_on_all_cores<T: Default + Send>(
    range: Range<u64>,
    failures: &Failures,
    work: impl Fn(&mut T, u64) + Sync,
) -> Vec<T> {
    let next = AtomicU64::new(range.start);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let one_core = || {
        let mut found = T::default();
        while failures.count() < MAX_FAILURES {
            // One by one, because runs differ much in length: fixed ranges would leave cores idle.
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= range.end {
                break;
            }
            work(&mut found, piece);
        }
        found
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(one_core)).collect();
        workers.into_iter().map(|one| one.join().expect("panics are caught")).collect()
    })
}
