//! Follows a real process from call to call of the kernel, and strikes where it is told to.
//!
//! The program is the one that users have: it knows of nothing. It starts stopped, is seized with
//! `ptrace`, and stands still before and after every call by which its main thread changes a disk or
//! another process. What a moment of a clock meets by chance is met here by name: before the rename of
//! a request, after the sync of the journal.

mod syscall;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::ptrace::{self, Options};
pub use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

pub use syscall::{Call, Edge};

/// What becomes of a process that stands before or after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It goes on.
    Continue,
    /// It is killed on the spot.
    Kill,
    /// It is sent this signal, and goes on; nobody follows it any more.
    Send(Signal),
}

/// How following a process ended.
#[derive(Debug, PartialEq, Eq)]
pub enum FollowEnd {
    /// At this call.
    At(Call),
    /// It came to its end before.
    Exited,
}

/// The words that start a program stopped: it becomes itself when it is let go.
pub fn stopped_command(program: &Path) -> [String; 4] {
    let words = "kill -STOP $$; exec \"$0\" \"$@\"";
    ["sh".into(), "-c".into(), words.into(), program.display().to_string()]
}

/// Follows a child of this process, which was started [`stopped`], from the moment in which it is
/// `program`. Its end is left to whoever waits for it.
pub fn follow(
    pid: u32,
    program: &Path,
    mut at: impl FnMut(&Call) -> Action,
) -> io::Result<FollowEnd> {
    let pid = Pid::from_raw(pid.cast_signed());
    wait(pid, WaitPidFlag::WSTOPPED)?;
    ptrace::seize(pid, Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL)?;
    kill(pid, Signal::SIGCONT)?;
    let mut tracee = Tracee {
        pid,
        program: program.canonicalize()?,
        is_program: false,
        state: SyscallState::Outside,
    };
    loop {
        let signal_to_deliver = match wait(pid, WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED)? {
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Ok(FollowEnd::Exited),
            WaitStatus::PtraceSyscall(_) => {
                if let Some(call) = tracee.next_call() {
                    match at(&call) {
                        Action::Continue => {}
                        Action::Kill => {
                            kill(pid, Signal::SIGKILL)?;
                            return Ok(FollowEnd::At(call));
                        }
                        Action::Send(signal) => {
                            ptrace::detach(pid, signal)?;
                            return Ok(FollowEnd::At(call));
                        }
                    }
                }
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            _ => None,
        };
        match ptrace::syscall(pid, signal_to_deliver) {
            // Somebody killed it meanwhile.
            Ok(()) | Err(nix::Error::ESRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for news of a child. The news of its end is only looked at: it belongs to somebody else.
fn wait(pid: Pid, news: WaitPidFlag) -> io::Result<WaitStatus> {
    let seen = waitid(Id::Pid(pid), news | WaitPidFlag::WNOWAIT)?;
    if !matches!(seen, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
        waitid(Id::Pid(pid), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG)?;
    }
    Ok(seen)
}

/// Where a process stands when it goes on: stops before and after a call take turns.
enum SyscallState {
    /// In no call.
    Outside,
    /// In this one, when it is worth a name.
    Inside(Option<Call>),
}

/// A process that is followed.
struct Tracee {
    pid: Pid,
    program: PathBuf,
    is_program: bool,
    state: SyscallState,
}

impl Tracee {
    /// The call before or after which it stands.
    fn next_call(&mut self) -> Option<Call> {
        if let SyscallState::Inside(call) =
            std::mem::replace(&mut self.state, SyscallState::Outside)
        {
            return call.map(|call| Call { edge: Edge::After, ..call });
        }
        if !self.is_program {
            let running = fs::read_link(format!("/proc/{}/exe", self.pid)).ok();
            self.is_program = running.as_ref() == Some(&self.program);
        }
        let call = self.is_program.then(|| syscall::current_call(self.pid)).flatten();
        self.state = SyscallState::Inside(call.clone());
        call
    }
}
