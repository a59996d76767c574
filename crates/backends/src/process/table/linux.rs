//! The process table of Linux: `/proc`, and signals through pidfds.
//!
//! All reads race with the processes that they describe. Every function therefore returns a
//! snapshot, and callers compare identities before they act.

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

/// Returns all living processes except this one and kernel threads. The group matters only on
/// systems without a process table.
pub(in crate::process) fn snapshot(_group: Option<i32>) -> Vec<Entry> {
    let own = std::process::id().cast_signed();
    rows()
        .filter(|row| !matches!(row.state, State::Dead | State::Kernel))
        .map(|row| row.entry)
        .filter(|entry| entry.identity.pid != own)
        .collect()
}

/// Returns the dead children of this process whose status was not taken.
pub(in crate::process) fn dead_children() -> Vec<Identity> {
    let own = std::process::id().cast_signed();
    let dead = rows().filter(|row| row.state == State::Dead && row.entry.parent == own);
    dead.map(|row| row.entry.identity).collect()
}

/// Returns the children of this process, dead or alive, or `None` if they cannot be listed. A child
/// may be missing while another one is reaped. Adopted children belong to the first thread, and
/// only that thread reaps there.
pub(in crate::process) fn children() -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let listed = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        children.extend(listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(children)
}

/// Returns the session of this process. It is 0 if the session leader is outside this pid
/// namespace, as after entering a container.
pub(in crate::process) fn session() -> i32 {
    living(std::process::id().cast_signed()).map_or(0, |entry| entry.session)
}

/// Returns the process with this pid if it lives.
pub(in crate::process) fn living(pid: i32) -> Option<Entry> {
    row(pid).filter(|row| row.state != State::Dead).map(|row| row.entry)
}

/// Returns the process with this pid, dead or alive.
pub(in crate::process) fn identity(pid: i32) -> Option<Identity> {
    row(pid).map(|row| row.entry.identity)
}

/// Returns the pid namespace, without which a pid has no meaning: a container has its own.
pub(in crate::process) fn namespace() -> String {
    let name = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    name.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

/// Returns the id of the current boot of the machine.
pub(in crate::process) fn boot() -> &'static str {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        boot.map(|id| id.trim().to_owned()).unwrap_or_default()
    });
    &BOOT
}

/// A process whose status was not taken yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    entry: Entry,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Living,
    /// The process lives, but its program is not loaded yet.
    Loading,
    Kernel,
    Dead,
}

fn rows() -> impl Iterator<Item = Row> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|entry| row(entry.file_name().to_str()?.parse().ok()?))
}

fn row(pid: i32) -> Option<Row> {
    /// In bytes, longer than any line: a name has at most 64 bytes, a number 20.
    const LINE: usize = 2048;
    let mut line = [0; LINE];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
    parse(pid, &line[..length])
}

/// `PF_KTHREAD` in the flags of a process.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Parses the content of `/proc/PID/stat`.
fn parse(pid: i32, stat: &[u8]) -> Option<Row> {
    // The program name is in parentheses and may contain anything, even parentheses.
    let rest = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    let mut fields = [""; 24];
    let values = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    fields.iter_mut().zip(values).for_each(|(field, value)| *field = value);
    let number = |index: usize| fields[index].parse::<u64>().ok();
    let signed = |index: usize| fields[index].parse::<i32>().ok();
    // A main thread that has exited shows as a zombie although other threads keep running.
    let state = match fields[0] {
        "X" | "x" => State::Dead,
        "Z" if number(17)? <= 1 => State::Dead,
        _ if number(6)? & KERNEL_THREAD != 0 => State::Kernel,
        // The kernel sets the address of the program code last.
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

/// Returns the markers of a process of this user, if its environment is readable.
pub(in crate::process) fn marks(identity: Identity) -> MarkerList {
    let path = format!("/proc/{}", identity.pid);
    let ours = fs::metadata(&path).is_ok_and(|data| data.uid() == geteuid().as_raw());
    // Another user could set the variable for its own processes, and Raymond must never signal
    // those.
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

/// Returns the initial environment of a process.
fn environment(pid: i32) -> Vec<u8> {
    // While a process starts or becomes another program, its environment is empty or incomplete for
    // a moment. The function waits then, because the process must not be mistaken for a foreign
    // process.
    /// About two seconds of 1 ms each: on a busy machine the process may not run for that long.
    const LOOKS: u32 = 2000;
    /// Loading may begin or end between two reads, so an empty environment must be seen this often.
    const SURE: u32 = 3;
    /// In bytes, enough for most environments: a file in `/proc` does not report its length.
    const ROOM: usize = 8 * 1024;
    let (mut before, mut loaded) = (Vec::new(), 0);
    for _ in 0..LOOKS {
        let mut environment = Vec::with_capacity(ROOM);
        let file = File::open(format!("/proc/{pid}/environ"));
        let _whatever_was_read = file.and_then(|mut file| file.read_to_end(&mut environment));
        match environment.is_empty() {
            // A read that was interrupted by the loading of a new program is never the same twice.
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

/// Returns the files that a process has open, as far as they are visible.
pub(in crate::process) fn holds_open(identity: Identity) -> Vec<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", identity.pid));
    let descriptors = descriptors.into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok()).collect()
}

/// Returns a descriptor that becomes readable when the process with this pid exits.
pub(in crate::process) fn exit_descriptor(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::NONBLOCK).ok()
}

/// Makes orphaned descendants children of this process.
pub(in crate::process) fn become_subreaper() -> io::Result<()> {
    // Every value except 0 means yes.
    Ok(set_child_subreaper(Some(getpid()))?)
}

pub(in crate::process) fn is_subreaper() -> bool {
    matches!(child_subreaper(), Ok(Some(_)))
}

/// Returns the command line of a process for display.
pub(in crate::process) fn command(identity: Identity) -> String {
    let bytes = fs::read(format!("/proc/{}/cmdline", identity.pid)).unwrap_or_default();
    let words: Vec<_> = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    words.join(" ")
}

/// Signals exactly this process. If it is gone or its pid was reused, nothing happens.
pub(in crate::process) fn signal(identity: Identity, signal: Signal) {
    let Some(pid) = Pid::from_raw(identity.pid) else {
        return;
    };
    let is_same = || living(identity.pid).is_some_and(|entry| entry.identity == identity);
    match pidfd_open(pid, PidfdFlags::empty()) {
        // The descriptor is opened before the start time is compared, so both belong to one
        // process.
        Ok(descriptor) if is_same() => {
            let _gone_meanwhile = pidfd_send_signal(&descriptor, signal);
        }
        Ok(_) | Err(Errno::SRCH) => {}
        // Without pidfds (an old kernel or a sandbox), a small race between comparison and signal
        // remains.
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
    fn stat_line_allows_any_program_name() {
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
        assert_eq!(parse(7, b"7 (truncated) S 3"), None);
        assert_eq!(parse(7, b""), None);
    }
}
