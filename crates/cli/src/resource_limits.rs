//! Checks that this process may open files and start threads, before a command starts.
//!
//! With a small `ulimit -n` or `ulimit -u` a run would otherwise fail halfway, and tokio would
//! panic.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use raymond_backends::process::{max_parallel_programs, open_files_for};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::Failure;

/// Threads of one command: two that write, one that reads a request or checks a value, and one that
/// handles signals.
const THREADS: usize = 4;

/// Concurrent calls of a server must not take each other's open files for a limit.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Refuses to start if the limits do not allow a run with one program.
pub(crate) fn check() -> Result<(), Failure> {
    let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    files(open_files_for(1)).map_err(|error| {
        short_of("open enough files", &error, "raise the limit: ulimit -n 1024")
    })?;
    threads(THREADS).map_err(|error| no_thread(&error))
}

/// Raises the soft limit of open files for this many parallel programs, or fails.
pub(crate) fn raise_for_programs(most: u32) -> Result<(), Failure> {
    let needed = open_files_for(most);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    // A process may raise its soft limit up to the hard one without privileges.
    if setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).is_ok() {
        return Ok(());
    }
    let limit = current.unwrap_or_default();
    let why = format!("{most} parallel programs need {needed}, but the limit is {limit}");
    let hint = format!(
        "raise the limit: ulimit -n {needed}; or use --max-parallel {}",
        max_parallel_programs()
    );
    Err(Failure::environment(format!("could not open enough files: {why}")).hint(hint))
}

/// The failure of a command that cannot start a thread.
pub(crate) fn no_thread(error: &io::Error) -> Failure {
    short_of("start a thread", error, "raise the limit: ulimit -u 4096")
}

fn short_of(what: &str, error: &io::Error, hint: &str) -> Failure {
    Failure::environment(format!("could not {what}: {error}")).hint(hint)
}

/// Opens this many files for a moment.
fn files(count: u64) -> io::Result<()> {
    let stdin = io::stdin();
    let opened: io::Result<Vec<OwnedFd>> =
        (0..count).map(|_| stdin.as_fd().try_clone_to_owned()).collect();
    match opened {
        Err(error) if is_limit(&error) => Err(error),
        // Another error has nothing to do with limits.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn is_limit(error: &io::Error) -> bool {
    let limits = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| limits.contains(&code))
}

/// Starts this many threads for a moment.
fn threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = Mutex::new(Vec::with_capacity(count));
    let started = thread::scope(|scope| {
        let run = || {
            let id = std::fs::read_link("/proc/thread-self");
            threads.lock().unwrap_or_else(PoisonError::into_inner).extend(id);
            // The threads wait here, so that all of them exist at the same moment.
            drop(gate.lock());
        };
        let started =
            (0..count).try_for_each(|_| thread::Builder::new().spawn_scoped(scope, run).map(drop));
        drop(closed);
        started
    });
    // A joined thread counts towards the limit until the kernel has removed it.
    for id in threads.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let thread = Path::new("/proc").join(id);
        while thread.exists() {
            thread::yield_now();
        }
    }
    started
}

/// Starts threads for blocking work in advance, because tokio panics if it cannot start the first
/// one later.
pub(crate) fn warm_up(runtime: &tokio::runtime::Runtime) {
    // While the gate is closed, no thread is free, so each task starts a thread. If tokio cannot
    // start one, it runs the task in another thread after the gate opened.
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..THREADS {
        let gate = Arc::clone(&gate);
        drop(runtime.spawn_blocking(move || drop(gate.lock())));
    }
    drop(closed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_process_has_room() {
        assert!(check().is_ok());
        assert!(check().is_ok(), "everything is closed again");
    }
}
