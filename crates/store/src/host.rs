//! Identifies processes, and finds out whether one still lives.
//!
//! A process is identified by its pid, its start time and its boot, because a pid may be used again
//! for another process. On Linux these come from `/proc`. On other systems start time and boot are
//! unknown, so every pid that is in use counts as alive.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A unique process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub host: String,
    /// The id of the host's boot, or empty if unknown.
    pub boot: String,
    pub pid: u32,
    /// The start time in clock ticks since the boot (field 22 of its `stat`), or 0 if unknown.
    pub started: u64,
}

/// Whether a process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Alive,
    /// It lives, but does nothing until the user continues it: after Ctrl-Z, SIGSTOP or in a
    /// debugger.
    Suspended,
    Gone,
    /// It is on another host, where this process cannot see it.
    Elsewhere,
}

/// The processes of a machine.
pub trait Host: Send + Sync {
    /// Returns the calling process.
    fn me(&self) -> ProcessIdentity;
    /// Returns whether `process` lives.
    fn life(&self, process: &ProcessIdentity) -> Life;
    /// Waits for a moment, so that other processes can continue.
    fn pause(&self);
}

/// The host that this program runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisHost;

impl Life {
    /// Returns whether the process is known to live, suspended or not.
    pub const fn is_here(self) -> bool {
        matches!(self, Self::Alive | Self::Suspended)
    }
}

impl Host for ThisHost {
    fn me(&self) -> ProcessIdentity {
        let pid = std::process::id();
        ProcessIdentity {
            host: platform::host(),
            boot: platform::boot(),
            pid,
            started: platform::started(pid).unwrap_or_default(),
        }
    }

    fn life(&self, process: &ProcessIdentity) -> Life {
        let boot = platform::boot();
        let same_boot = process.boot == boot;
        // Containers on one machine have different host names, but share the kernel and its locks.
        let same_machine = process.host == platform::host() || (same_boot && !boot.is_empty());
        if !same_machine {
            Life::Elsewhere
        // Another boot means another process table, so a process of an earlier boot is dead.
        } else if same_boot && platform::started(process.pid) == Some(process.started) {
            if platform::is_suspended(process.pid) { Life::Suspended } else { Life::Alive }
        } else {
            Life::Gone
        }
    }

    fn pause(&self) {
        // 10 ms: a child holds the lock only until its `exec`, which takes a few milliseconds.
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(unix)]
mod platform {
    #[cfg(target_os = "linux")]
    use std::{fs, thread, time::Duration};

    pub(super) fn host() -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    #[cfg(target_os = "linux")]
    pub(super) fn boot() -> String {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        boot.map(|id| id.trim().to_owned()).unwrap_or_default()
    }

    /// Returns the start time of a process, or `None` if it is dead.
    #[cfg(target_os = "linux")]
    pub(super) fn started(pid: u32) -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = fields(&stat)?;
        let state = fields.next()?;
        // A zombie still has an entry, but it holds no lock and does nothing.
        let dead = matches!(state, "Z" | "X" | "x");
        // Field 22. The state was field 3, so 18 fields are skipped.
        fields.nth(18).filter(|_| !dead)?.parse().ok()
    }

    /// Returns whether a signal or a debugger has stopped this process.
    #[cfg(target_os = "linux")]
    pub(super) fn is_suspended(pid: u32) -> bool {
        // A process under `strace` is in the state `t` for a moment at each of its system calls.
        // Within 50 ms at least one of these looks finds it running.
        const LOOKS: u32 = 5;
        for _ in 0..LOOKS {
            match state(pid) {
                Some('T') => return true,
                Some('t') => thread::sleep(Duration::from_millis(10)),
                Some(_) | None => return false,
            }
        }
        true
    }

    #[cfg(target_os = "linux")]
    fn state(pid: u32) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        fields(&stat)?.next()?.chars().next()
    }

    /// Returns the fields of `/proc/PID/stat` from the third on: the state, the parent, and so on.
    #[cfg(target_os = "linux")]
    fn fields(stat: &str) -> Option<std::str::SplitAsciiWhitespace<'_>> {
        // The second field is the name in parentheses, which may contain anything.
        Some(stat.rsplit_once(')')?.1.split_ascii_whitespace())
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn boot() -> String {
        String::new()
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn started(pid: u32) -> Option<u64> {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
        match rustix::process::test_kill_process(pid) {
            // All other errors, such as a missing permission, mean that the process exists.
            Err(rustix::io::Errno::SRCH) => None,
            Ok(()) | Err(_) => Some(0),
        }
    }

    /// Returns false, because only `/proc` shows whether a process is suspended.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_suspended(_: u32) -> bool {
        false
    }
}

#[cfg(not(unix))]
mod platform {
    pub(super) fn host() -> String {
        std::env::var("COMPUTERNAME").unwrap_or_default()
    }

    pub(super) fn boot() -> String {
        String::new()
    }

    pub(super) fn started(_: u32) -> Option<u64> {
        None
    }

    pub(super) fn is_suspended(_: u32) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn host_and_boot_come_from_the_kernel() {
        let named = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap();
            text.trim().to_owned()
        };
        let me = ThisHost.me();
        assert_eq!((me.host, me.boot), (named("hostname"), named("random/boot_id")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn suspended_process_lives_until_it_is_killed() {
        use rustix::process::{Pid, Signal, kill_process};

        #[expect(clippy::disallowed_methods, reason = "a process to suspend")]
        let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let started = platform::started(child.id()).unwrap();
        let process = ProcessIdentity { pid: child.id(), started, ..ThisHost.me() };
        let becomes = |expected| {
            while ThisHost.life(&process) != expected {
                ThisHost.pause();
            }
        };
        for (signal, expected) in [
            (Signal::STOP, Life::Suspended),
            (Signal::CONT, Life::Alive),
            (Signal::STOP, Life::Suspended),
            (Signal::KILL, Life::Gone),
        ] {
            kill_process(pid, signal).unwrap();
            becomes(expected);
        }
        child.wait().unwrap();
    }

    // proves: S14
    #[test]
    fn process_is_its_pid_start_time_and_boot() {
        let me = ThisHost.me();
        let check = |change: fn(&mut ProcessIdentity), expected| {
            let mut process = me.clone();
            change(&mut process);
            assert_eq!(ThisHost.life(&process), expected, "{process:?}");
        };
        check(|_| {}, Life::Alive);
        check(|process| process.started += 1, Life::Gone);
        check(|process| process.pid = u32::MAX, Life::Gone);
        check(|process| process.boot = "earlier".into(), Life::Gone);
        check(|process| process.host = "a-container".into(), Life::Alive);
        check(
            |process| {
                process.host = "elsewhere".into();
                process.boot = "other".into();
            },
            Life::Elsewhere,
        );
    }
}
