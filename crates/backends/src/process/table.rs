//! The process table of the system, as far as it can be read here.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(super) use linux::{
    become_subreaper, boot, children, command, dead_children, holds_open, identity, is_subreaper,
    living, marks, namespace, observer, session, signal, snapshot, writes_to,
};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{
    become_subreaper, boot, children, command, dead_children, holds_open, identity, is_subreaper,
    living, marks, namespace, observer, session, signal, snapshot, writes_to,
};

/// A process, and no other that gets the same number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it started, in ticks since the system did.
    pub start_time: u64,
}

/// One living process. Zombies count as dead: nothing is left of them but a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) identity: Identity,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
}
