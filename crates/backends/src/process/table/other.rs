//! Systems without `/proc`: a process group stands for its members, and processes that left their
//! group cannot be found.

use std::fs::Metadata;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::{Entry, Identity};
use crate::process::marker::MarkerList;

pub(in crate::process) fn snapshot(group: Option<i32>) -> Vec<Entry> {
    let leader = group.and_then(Pid::from_raw);
    let living = leader.filter(|pid| test_kill_process_group(*pid).is_ok());
    let entry = |pid: Pid| Entry {
        identity: Identity { pid: pid.as_raw_nonzero().get(), start_time: 0 },
        parent: 0,
        group: pid.as_raw_nonzero().get(),
        session: session(),
    };
    living.map(entry).into_iter().collect()
}

pub(in crate::process) fn session() -> i32 {
    rustix::process::getsid(None).map_or(0, |pid| pid.as_raw_nonzero().get())
}

pub(in crate::process) fn living(_: i32) -> Option<Entry> {
    None
}

pub(in crate::process) fn namespace() -> String {
    String::new()
}

pub(in crate::process) fn identity(pid: i32) -> Option<Identity> {
    Some(Identity { pid, start_time: 0 })
}

pub(in crate::process) fn dead_children() -> Vec<Identity> {
    Vec::new()
}

pub(in crate::process) fn boot() -> &'static str {
    ""
}

pub(in crate::process) fn marks(_: Identity) -> MarkerList {
    MarkerList::new(String::new())
}

pub(in crate::process) fn writes_to(_: Identity, _: &Metadata) -> bool {
    false
}

pub(in crate::process) fn holds_open(_: Identity) -> Vec<PathBuf> {
    Vec::new()
}

pub(in crate::process) fn exit_descriptor(_: i32) -> Option<OwnedFd> {
    None
}

pub(in crate::process) fn children() -> Option<Vec<i32>> {
    None
}

pub(in crate::process) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

pub(in crate::process) fn is_subreaper() -> bool {
    false
}

pub(in crate::process) fn command(_: Identity) -> String {
    String::new()
}

pub(in crate::process) fn signal(identity: Identity, signal: Signal) {
    if let Some(pid) = Pid::from_raw(identity.pid) {
        let _gone_meanwhile = kill_process_group(pid, signal);
    }
}
