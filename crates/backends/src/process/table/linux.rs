//! `/proc`, and signals through pidfds.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, geteuid, kill_process, pidfd_open, pidfd_send_signal,
};

use super::{Entry, Identity};
use crate::process::Marker;

/// All living processes but this one. The group only matters where there is no table.
pub(in crate::process) fn snapshot(_group: Option<i32>) -> Vec<Entry> {
    let own = std::process::id().cast_signed();
    let Ok(directory) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = directory.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter_map(living)
        .collect()
}

/// The session of this process: 0 when its leader lives outside this pid namespace, as in a container
/// that was entered.
pub(in crate::process) fn session() -> i32 {
    living(std::process::id().cast_signed()).map_or(0, |entry| entry.session)
}

fn living(pid: i32) -> Option<Entry> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

/// Reads a line of `/proc/PID/stat`; nothing when the process is dead.
fn parse(pid: i32, stat: &str) -> Option<Entry> {
    // The name of the program stands in parentheses and may hold anything, parentheses too.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let signed = |index: usize| fields.get(index)?.parse::<i32>().ok();
    // A first thread that has exited shows as a zombie although other threads go on.
    let dead = match *fields.first()? {
        "X" | "x" => true,
        "Z" => number(17)? <= 1,
        _ => false,
    };
    (!dead).then_some(())?;
    Some(Entry {
        identity: Identity { pid, start_time: number(19)? },
        parent: signed(1)?,
        group: signed(2)?,
        session: signed(3)?,
    })
}

/// The markers of a process of this user, where its environment can be read.
pub(in crate::process) fn markers(identity: Identity) -> Vec<Marker> {
    let path = format!("/proc/{}", identity.pid);
    let ours = fs::metadata(&path).is_ok_and(|data| data.uid() == geteuid().as_raw());
    if !ours {
        return Vec::new();
    }
    let Ok(environment) = fs::read(format!("{path}/environ")) else {
        return Vec::new();
    };
    let value = environment.split(|byte| *byte == 0).find_map(|variable| {
        let rest = variable.strip_prefix(Marker::VARIABLE.as_bytes())?;
        std::str::from_utf8(rest.strip_prefix(b"=")?).ok()
    });
    value.map_or_else(Vec::new, |list| Marker::list(list).collect())
}

/// The command line of a process, for people.
pub(in crate::process) fn command(identity: Identity) -> String {
    let bytes = fs::read(format!("/proc/{}/cmdline", identity.pid)).unwrap_or_default();
    let words: Vec<_> = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    words.join(" ")
}

/// Signals this very process; one that is gone, or whose number was given away, is left alone.
pub(in crate::process) fn signal(identity: Identity, signal: Signal) {
    let Some(pid) = Pid::from_raw(identity.pid) else {
        return;
    };
    let is_same = || living(identity.pid).is_some_and(|entry| entry.identity == identity);
    match pidfd_open(pid, PidfdFlags::empty()) {
        // The descriptor is held before the start time is compared, so both are of one process.
        Ok(descriptor) if is_same() => {
            let _gone_meanwhile = pidfd_send_signal(&descriptor, signal);
        }
        Ok(_) | Err(Errno::SRCH) => {}
        Err(_) if is_same() => {
            let _gone_meanwhile = kill_process(pid, signal);
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_program_is_called() {
        let check = |name: &str, state: &str, threads: u32, expected: Option<Entry>| {
            let stat = format!(
                "7 ({name}) {state} 3 5 4 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 {threads} 0 99 1 1"
            );
            assert_eq!(parse(7, &stat), expected, "{stat}");
        };
        let entry = Entry {
            identity: Identity { pid: 7, start_time: 99 },
            parent: 3,
            group: 5,
            session: 4,
        };
        check("bash", "S", 1, Some(entry));
        check("a) R 1 1 (b", "R", 1, Some(entry));
        check("stopped", "T", 1, Some(entry));
        check("zombie", "Z", 1, None);
        check("zombie with threads", "Z", 2, Some(entry));
        check("dead", "X", 1, None);
        assert_eq!(parse(7, "7 (cut off) S 3"), None);
        assert_eq!(parse(7, ""), None);
    }
}
