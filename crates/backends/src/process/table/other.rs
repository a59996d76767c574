//! Where there is no `/proc`: a process group stands for all that is in it, and nothing that left
//! its group can be found.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::{Entry, Identity};
use crate::process::Marker;

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

pub(in crate::process) fn markers(_: Identity) -> Vec<Marker> {
    Vec::new()
}

pub(in crate::process) fn command(_: Identity) -> String {
    String::new()
}

pub(in crate::process) fn signal(identity: Identity, signal: Signal) {
    if let Some(pid) = Pid::from_raw(identity.pid) {
        let _gone_meanwhile = kill_process_group(pid, signal);
    }
}
