//! Runs without a journal: their nonce names the process that drives them.
//!
//! The next owner of a recorded run ends the processes that the last owner left. A run without a
//! journal has no next owner. Therefore every new stateless call looks for processes of earlier
//! calls whose driving process has died.
//!
//! This module only writes and reads the nonce and searches processes. `raymond_engine::abandoned`
//! is the other half: it chooses the name of the project, and also removes the files of killed
//! calls.

use std::collections::BTreeSet;

use raymond_core::ids::Nonce;

use super::Grace;
use super::leftovers::{self, Leftover};
use super::table::{self, Identity};

const PREFIX: &str = "unrecorded";

/// Returns a nonce for a run that this process drives without a journal. `project` identifies the
/// project in letters and digits; `random` makes the nonce unique.
pub fn unrecorded_nonce(project: &str, random: &Nonce) -> Nonce {
    // A pid alone is not enough: the kernel reuses pids, and another pid namespace has the same
    // ones.
    let pid = std::process::id().cast_signed();
    let start_time = table::identity(pid).map_or(0, |own| own.start_time);
    let namespace = table::namespace();
    Nonce::new(format!("{PREFIX}-{namespace}-{pid}-{start_time}-{project}-{random}"))
}

/// Ends the leftover processes of all stateless calls whose driving process is dead, and returns
/// them.
pub async fn end_abandoned(grace: &Grace) -> Vec<Leftover> {
    let found = leftovers_of(|driver| driver.is_dead());
    leftovers::end(&found, grace).await;
    found
}

/// Returns the leftover processes of dead stateless calls in this project.
pub fn find_abandoned(project: &str) -> Vec<Leftover> {
    leftovers_of(|driver| driver.is_dead() && driver.project == project)
}

/// Whether a nonce belongs to a dead stateless call in this project.
pub fn is_abandoned_in(project: &str, nonce: &Nonce) -> bool {
    CallProcess::of(nonce).is_some_and(|driver| driver.is_dead() && driver.project == project)
}

fn leftovers_of(is_meant: impl Fn(&CallProcess<'_>) -> bool) -> Vec<Leftover> {
    let runs: BTreeSet<Nonce> =
        leftovers::find_marked().into_iter().flat_map(|marked| marked.runs).collect();
    let meant = runs.iter().filter(|nonce| CallProcess::of(nonce).as_ref().is_some_and(&is_meant));
    meant.flat_map(leftovers::find).collect()
}

/// The process that drives a run without a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallProcess<'n> {
    process: Identity,
    project: &'n str,
}

impl<'n> CallProcess<'n> {
    fn of(nonce: &'n Nonce) -> Option<Self> {
        // Returns `None` for another pid namespace, where the pid has no meaning here.
        let mut parts = nonce.as_str().strip_prefix(PREFIX)?.strip_prefix('-')?.split('-');
        parts.next().filter(|namespace| *namespace == table::namespace())?;
        let (pid, start_time) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { process: Identity { pid, start_time }, project: parts.next()? })
    }

    fn is_dead(self) -> bool {
        table::living(self.process.pid).is_none_or(|entry| entry.identity != self.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_record_names_its_driver() {
        let nonce = unrecorded_nonce("abc", &Nonce::new("c0ffee".to_owned()));
        let own = CallProcess::of(&nonce).unwrap();
        assert_eq!((own.process.pid, own.project), (std::process::id().cast_signed(), "abc"));
        assert!(!own.is_dead() && !is_abandoned_in("abc", &nonce));
        let process = Identity { start_time: own.process.start_time + 1, ..own.process };
        assert!(CallProcess { process, ..own }.is_dead(), "another process");
        assert_eq!(CallProcess::of(&Nonce::new("c0ffee".to_owned())), None);
        let contained = nonce.as_str().replacen(&table::namespace(), "1", 1);
        assert_eq!(CallProcess::of(&Nonce::new(contained)), None, "a number of another container");
    }

    #[test]
    fn dead_driver_abandons_only_its_own_project() {
        let namespace = table::namespace();
        let check = |driver: &str, expected: bool| {
            let nonce = Nonce::new(format!("{PREFIX}-{driver}"));
            assert_eq!(is_abandoned_in("abc", &nonce), expected, "{nonce}");
        };
        check(&format!("{namespace}-2147483647-1-abc-c0ffee"), true);
        check(&format!("{namespace}-2147483647-1-other-c0ffee"), false);
        check(&format!("{namespace}-2147483647-1"), false);
        check("1-2147483647-1-abc-c0ffee", false);
    }
}
