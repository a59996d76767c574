//! The system calls that tests can name: calls that change files or other processes.
//!
//! A crash between two other calls leaves the same state on the disk as a crash at one of these, so
//! no other call needs a name. Paths outside `.raymond/` are left out for the same reason.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use nix::libc;
use nix::unistd::Pid;

/// A system call, and the side of it at which a process has stopped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The operation, such as `fdatasync`.
    pub verb: &'static str,
    /// The file inside `.raymond/`, such as `runs/r/journal.jsonl`; empty for calls about
    /// processes.
    pub path: String,
    pub edge: Edge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// The call has not happened yet.
    Before,
    /// The call has happened.
    After,
}

impl Display for Edge {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.edge, self.verb)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, " {}", self.path) }
    }
}

/// The object of a call.
enum Target {
    /// An open file, in the first argument.
    OpenFile,
    /// The path in this argument.
    Path(usize),
    /// A file that may be created: the path is in argument 1, the flags are in argument 2.
    Create,
    Process,
    /// A new process; new threads are skipped.
    Clone(Flags),
}

/// The location of a clone's flags.
enum Flags {
    Argument,
    /// In the first word of the memory at argument 0.
    Memory,
}

/// Names and objects of the calls by number. Other architectures lack some of the numbers.
const CALLS: &[(libc::c_long, &str, Target)] = &[
    (libc::SYS_write, "write", Target::OpenFile),
    (libc::SYS_pwrite64, "write", Target::OpenFile),
    (libc::SYS_writev, "write", Target::OpenFile),
    (libc::SYS_ftruncate, "truncate", Target::OpenFile),
    (libc::SYS_fallocate, "allocate", Target::OpenFile),
    (libc::SYS_fdatasync, "fdatasync", Target::OpenFile),
    (libc::SYS_fsync, "fsync", Target::OpenFile),
    (libc::SYS_flock, "flock", Target::OpenFile),
    (libc::SYS_openat, "create", Target::Create),
    (libc::SYS_mkdirat, "mkdir", Target::Path(1)),
    (libc::SYS_unlinkat, "remove", Target::Path(1)),
    (libc::SYS_renameat, "rename", Target::Path(3)),
    (libc::SYS_renameat2, "rename", Target::Path(3)),
    (libc::SYS_clone, "spawn", Target::Clone(Flags::Argument)),
    (libc::SYS_clone3, "spawn", Target::Clone(Flags::Memory)),
    (libc::SYS_kill, "kill", Target::Process),
    (libc::SYS_pidfd_send_signal, "kill", Target::Process),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir", Target::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "remove", Target::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "remove", Target::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename", Target::Path(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_vfork, "spawn", Target::Process),
];

/// Returns the call that a stopped process is about to make, if the table contains it.
pub(super) fn current_call(pid: Pid) -> Option<Call> {
    // This file has the same form on every architecture; registers do not.
    let line = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let mut words = line.split_ascii_whitespace();
    let number: libc::c_long = words.next()?.parse().ok()?;
    let (_, verb, target) = CALLS.iter().find(|(known, ..)| *known == number)?;
    let arguments: Vec<u64> = words
        .filter_map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok())
        .collect();
    let path = match target {
        Target::Clone(flags) if is_thread(pid, flags, *arguments.first()?)? => return None,
        Target::Clone(_) | Target::Process => {
            return Some(Call { verb, path: String::new(), edge: Edge::Before });
        }
        Target::OpenFile => fs::read_link(format!("/proc/{pid}/fd/{}", arguments.first()?)).ok()?,
        Target::Path(index) => read_text(pid, *arguments.get(*index)?)?.into(),
        Target::Create if *arguments.get(2)? & u64::from(libc::O_CREAT.cast_unsigned()) == 0 => {
            return None;
        }
        Target::Create => read_text(pid, *arguments.get(1)?)?.into(),
    };
    path_in_project(&path).map(|path| Call { verb, path, edge: Edge::Before })
}

/// Returns whether a clone creates a thread.
fn is_thread(pid: Pid, flags: &Flags, argument: u64) -> Option<bool> {
    let flags = match flags {
        Flags::Argument => argument,
        Flags::Memory => {
            let mut bytes = [0; 8];
            let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
            memory.read_exact_at(&mut bytes, argument).ok()?;
            u64::from_ne_bytes(bytes)
        }
    };
    Some(flags & u64::from(libc::CLONE_THREAD.cast_unsigned()) != 0)
}

/// Reads a text at an address of another process.
fn read_text(pid: Pid, address: u64) -> Option<String> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    // Longer than the paths of the tests. A longer path has no end here and is skipped.
    let mut bytes = [0; 512];
    let read = memory.read_at(&mut bytes, address).ok()?;
    let end = bytes[..read].iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

/// Returns the path inside `.raymond/`, with random parts replaced by `*`; `None` for other paths,
/// because a run depends on no other file.
fn path_in_project(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    let (_, inside) = path.split_once("/.raymond")?;
    let parts = inside.split('/').filter(|part| !part.is_empty()).map(|part| {
        let digits = part.bytes().filter(u8::is_ascii_hexdigit).count();
        // Hashes and random ids, which differ in every run. Shorter names, such as those of runs
        // and files, have few hexadecimal digits or fewer than 16 characters.
        if part.len() >= 16 && digits * 4 >= part.len() * 3 { "*" } else { part }
    });
    let parts: Vec<&str> = parts.collect();
    Some(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}
