//! The calls of the kernel that are worth a name: those that change a disk or another process.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use nix::libc;
use nix::unistd::Pid;

/// A call, and on which side of it a process stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// What is done: `fdatasync`.
    pub verb: &'static str,
    /// To which file of `.raymond/`: `runs/r/journal.jsonl`; empty where it is another process.
    pub path: String,
    /// Before or after.
    pub edge: Edge,
}

/// A side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// It has not happened yet.
    Before,
    /// It has.
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

/// What a call is about.
enum Target {
    /// An open file, the first argument.
    OpenFile,
    /// The path at this argument.
    Path(usize),
    /// A file that may be made: the path is argument 1, how is argument 2.
    Create,
    /// Another process.
    Process,
    /// A new process, or a thread of this one, which is not worth a name.
    Clone(Flags),
}

/// Where the flags of a clone are.
enum Flags {
    /// In argument 0.
    Argument,
    /// In the first word of the memory that argument 0 points to.
    Memory,
}

/// What these numbers mean; the kernel of another processor may lack some.
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

/// The call that a stopped process is about to make, when it is worth a name.
pub(super) fn current_call(pid: Pid) -> Option<Call> {
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

/// Whether a clone makes a thread.
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

/// The text at an address of another process.
fn read_text(pid: Pid, address: u64) -> Option<String> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut bytes = [0; 512];
    let read = memory.read_at(&mut bytes, address).ok()?;
    let end = bytes[..read].iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

/// A path as it stands in `.raymond/`, with what differs from run to run taken out. Elsewhere nothing
/// is written that a run depends on.
fn path_in_project(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    let (_, inside) = path.split_once("/.raymond")?;
    let parts = inside.split('/').filter(|part| !part.is_empty()).map(|part| {
        let digits = part.bytes().filter(u8::is_ascii_hexdigit).count();
        if part.len() >= 16 && digits * 4 >= part.len() * 3 { "*" } else { part }
    });
    let parts: Vec<&str> = parts.collect();
    Some(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}
