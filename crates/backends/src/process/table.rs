//! The process table of the operating system.
//!
//! `linux` reads `/proc`. `other` knows only what portable calls offer, so leftover processes are
//! not found there.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(super) use linux::{
    become_subreaper, boot, children, command, dead_children, exit_descriptor, holds_open,
    identity, is_subreaper, living, marks, namespace, session, signal, snapshot, writes_to,
};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{
    become_subreaper, boot, children, command, dead_children, exit_descriptor, holds_open,
    identity, is_subreaper, living, marks, namespace, session, signal, snapshot, writes_to,
};

/// A process identified beyond its pid, which the kernel may reuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub pid: i32,
    /// The start time in clock ticks since boot.
    pub start_time: u64,
}

/// A living process. Zombies count as dead, because only their number is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) identity: Identity,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
}
