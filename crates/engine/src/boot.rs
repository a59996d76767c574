//! Finds out whether the machine has restarted since a file was written.
//!
//! Clients do not sync their transcripts, so a power failure may lose the end of a transcript, or
//! all of it. The costs in the rest are then only a lower bound: see
//! `recovery::with_possible_cost`. Normally the file that names a client also names the boot in
//! which the client started. If that file is missing, Raymond uses this module: it compares the
//! time of the journal with the start of the machine.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Returns whether the file was last written before the machine started. Without `/proc` or without
/// the file the answer is no.
pub(crate) fn is_from_earlier_boot(path: &Path) -> bool {
    let written = fs::metadata(path).and_then(|file| file.modified()).ok();
    let booted = fs::read_to_string("/proc/stat").ok().and_then(|stat| boot_time(&stat));
    written.zip(booted).is_some_and(|(written, booted)| written < booted)
}

/// Reads the start time of the machine from the text of `/proc/stat`.
fn boot_time(stat: &str) -> Option<SystemTime> {
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn boot_time_is_a_line_of_seconds() {
        let found = boot_time("cpu 1 2\nbtime 1700000000\nprocesses 3\n").unwrap();
        assert_eq!(found.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(), 1_700_000_000);
        assert_eq!(boot_time("cpu 1 2\n"), None);
    }

    // proves: A6
    #[test]
    fn file_of_an_earlier_boot_is_recognised() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_from_earlier_boot(file.path()));
        File::open(file.path()).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(is_from_earlier_boot(file.path()));
        assert!(!is_from_earlier_boot(Path::new("/nonexistent/journal")));
    }
}
