//! `/proc`, and signals through pidfds.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, child_subreaper, geteuid, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper,
};

use super::{Entry, Identity};
use crate::process::Marker;
use crate::process::marker::MarkerList;

/// All living processes but this one, and but the threads of the kernel. The group only matters where there is no
/// table.
pub(in crate::process) fn snapshot(_group: Option<i32>) -> Vec<Entry> {
    let own = std::process::id().cast_signed();
    rows()
        .filter(|row| !matches!(row.state, State::Dead | State::Kernel))
        .map(|row| row.entry)
        .filter(|entry| entry.identity.pid != own)
        .collect()
}

/// The children of this process that are dead and were not waited for.
pub(in crate::process) fn dead_children() -> Vec<Identity> {
    let own = std::process::id().cast_signed();
    let dead = rows().filter(|row| row.state == State::Dead && row.entry.parent == own);
    dead.map(|row| row.entry.identity).collect()
}

/// The children of this process, dead or alive, where they can be listed. While a child is being reaped another may
/// be missed; one that was adopted is a child of the first thread, and only that thread reaps there.
pub(in crate::process) fn children() -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let listed = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        children.extend(listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(children)
}

/// The session of this process: 0 when its leader lives outside this pid namespace, as in a container
/// that was entered.
pub(in crate::process) fn session() -> i32 {
    living(std::process::id().cast_signed()).map_or(0, |entry| entry.session)
}

/// The process of this number, when it lives.
pub(in crate::process) fn living(pid: i32) -> Option<Entry> {
    row(pid).filter(|row| row.state != State::Dead).map(|row| row.entry)
}

/// The process of this number, dead or alive.
pub(in crate::process) fn identity(pid: i32) -> Option<Identity> {
    row(pid).map(|row| row.entry.identity)
}

/// The namespace that numbers of processes mean something in: a container has its own.
pub(in crate::process) fn namespace() -> String {
    let name = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    name.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// The boot of the system that the numbers belong to.
pub(in crate::process) fn boot() -> &'static str {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        boot.map(|id| id.trim().to_owned()).unwrap_or_default()
    });
    &BOOT
}

/// A process that was not waited for yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    entry: Entry,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Living,
    /// It lives, and its program is not there yet.
    Loading,
    /// A thread of the kernel.
    Kernel,
    Dead,
}

fn rows() -> impl Iterator<Item = Row> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|entry| row(entry.file_name().to_str()?.parse().ok()?))
}

fn row(pid: i32) -> Option<Row> {
    /// Longer than any line: a name has at most 64 bytes, a number 20.
    const LINE: usize = 2048;
    let mut line = [0; LINE];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    parse(pid, &line[..length])
}

/// `PF_KTHREAD`, among the flags of a process.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Reads a line of `/proc/PID/stat`.
fn parse(pid: i32, stat: &[u8]) -> Option<Row> {
    // The name of the program stands in parentheses and may hold anything, parentheses too.
    let rest = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    let mut fields = [""; 24];
    let told = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    fields.iter_mut().zip(told).for_each(|(field, told)| *field = told);
    let number = |index: usize| fields[index].parse::<u64>().ok();
    let signed = |index: usize| fields[index].parse::<i32>().ok();
    // A first thread that has exited shows as a zombie although other threads go on.
    let state = match fields[0] {
        "X" | "x" => State::Dead,
        "Z" if number(17)? <= 1 => State::Dead,
        _ if number(6)? & KERNEL_THREAD != 0 => State::Kernel,
        // The address of its code is the last that is set.
        _ if number(23) == Some(0) => State::Loading,
        _ => State::Living,
    };
    let entry = Entry {
        identity: Identity { pid, start_time: number(19)? },
        parent: signed(1)?,
        group: signed(2)?,
        session: signed(3)?,
    };
    Some(Row { entry, state })
}

/// The marks of a process of this user, where its environment can be read.
pub(in crate::process) fn marks(identity: Identity) -> MarkerList {
    let path = format!("/proc/{}", identity.pid);
    let ours = fs::metadata(&path).is_ok_and(|data| data.uid() == geteuid().as_raw());
    if !ours {
        return MarkerList::default();
    }
    let environment = environment(identity.pid);
    let value = environment.split(|byte| *byte == 0).find_map(|variable| {
        let rest = variable.strip_prefix(Marker::VARIABLE.as_bytes())?;
        std::str::from_utf8(rest.strip_prefix(b"=")?).ok()
    });
    value.map_or_else(MarkerList::default, |value| MarkerList::new(value.to_owned()))
}

/// What a process was started with. One that is just being started, or that becomes another program,
/// has nothing for a moment, or shows only the beginning of what it had, and is waited for: it must not
/// be taken for one of somebody else.
fn environment(pid: i32) -> Vec<u8> {
    /// Two seconds: on a busy machine it may not get to run for long.
    const LOOKS: u32 = 2000;
    /// It may begin or end to be loaded between two looks.
    const SURE: u32 = 3;
    /// For most of them: a file of `/proc` does not say how long it is.
    const ROOM: usize = 8 * 1024;
    let (mut before, mut loaded) = (Vec::new(), 0);
    for _ in 0..LOOKS {
        let mut environment = Vec::with_capacity(ROOM);
        let file = File::open(format!("/proc/{pid}/environ"));
        let _whatever_was_read = file.and_then(|mut file| file.read_to_end(&mut environment));
        match environment.is_empty() {
            // A read that a new program cut short is not the same twice.
            false if environment == before => return environment,
            true if loaded == SURE => return environment,
            true if row(pid).is_some_and(|row| row.state == State::Loading) => {
                std::thread::sleep(Duration::from_millis(1));
                loaded = 0;
            }
            true => loaded += 1,
            false => {}
        }
        before = environment;
    }
    Vec::new()
}

/// Whether the stdout of a process is this file.
pub(in crate::process) fn writes_to(identity: Identity, file: &Metadata) -> bool {
    let stdout = fs::metadata(format!("/proc/{}/fd/1", identity.pid));
    stdout.is_ok_and(|stdout| (stdout.dev(), stdout.ino()) == (file.dev(), file.ino()))
}

/// The files that a process holds open, where that can be seen.
pub(in crate::process) fn holds_open(identity: Identity) -> Vec<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", identity.pid));
    let descriptors = descriptors.into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).collect()
}

/// A descriptor that becomes readable when the process of this number exits.
pub(in crate::process) fn exit_descriptor(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::NONBLOCK).ok()
}

/// From now on, what loses its parent below this process becomes a child of it.
pub(in crate::process) fn become_subreaper() -> io::Result<()> {
    // Any number but 0 means yes.
    Ok(set_child_subreaper(Some(getpid()))?)
}

pub(in crate::process) fn is_subreaper() -> bool {
    matches!(child_subreaper(), Ok(Some(_)))
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
        let check = |name: &str, state: &str, threads: u32, (flags, code), expected: State| {
            let stat = format!(
                "7 ({name}) {state} 3 5 4 0 -1 {flags} 1 0 0 0 0 0 0 0 20 0 {threads} 0 99 1 1 1 {code}"
            );
            let identity = Identity { pid: 7, start_time: 99 };
            let entry = Entry { identity, parent: 3, group: 5, session: 4 };
            assert_eq!(parse(7, stat.as_bytes()), Some(Row { entry, state: expected }), "{stat}");
        };
        let loaded = (4_194_560, 4096);
        check("bash", "S", 1, loaded, State::Living);
        check("a) R 1 1 (b", "R", 1, loaded, State::Living);
        check("stopped", "T", 1, loaded, State::Living);
        check("zombie", "Z", 1, loaded, State::Dead);
        check("zombie with threads", "Z", 2, loaded, State::Living);
        check("dead", "X", 1, loaded, State::Dead);
        check("just started", "R", 1, (4_194_560, 0), State::Loading);
        check("kthreadd", "S", 1, (2_129_984, 0), State::Kernel);
        assert_eq!(parse(7, b"7 (cut off) S 3"), None);
        assert_eq!(parse(7, b""), None);
    }
}
