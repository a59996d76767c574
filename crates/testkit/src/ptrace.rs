//! Follows a real process from one system call to the next, and kills or signals it at a chosen
//! call.
//!
//! The traced program is the released binary, without test code. It starts stopped, is seized with
//! `ptrace`, and stops before and after every call by which its main thread changes files or other
//! processes. So tests can choose a point by name (before the rename of a request, after the sync
//! of the journal) instead of hoping for the right moment. Linux only.

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

/// The next action for a process that has stopped at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Lets it continue.
    Continue,
    /// Kills it.
    Kill,
    /// Sends this signal, and detaches from the process.
    Send(Signal),
}

/// How following a process ended.
#[derive(Debug, PartialEq, Eq)]
pub enum FollowEnd {
    /// It was killed or signalled at this call.
    At(Call),
    /// It exited before.
    Exited,
}

/// Returns a command that starts a program stopped: a shell stops itself, and executes the program
/// when it is continued.
pub fn stopped_command(program: &Path) -> [String; 4] {
    let words = "kill -STOP $$; exec \"$0\" \"$@\"";
    ["sh".into(), "-c".into(), words.into(), program.display().to_string()]
}

/// Follows a child of this process, which was started with [`stopped_command`], from the moment it
/// executes `program`. The caller still has to wait for the child's exit.
pub fn follow(
    pid: u32,
    program: &Path,
    mut at: impl FnMut(&Call) -> Action,
) -> io::Result<FollowEnd> {
    let pid = Pid::from_raw(pid.cast_signed());
    // The shell has stopped itself, so no call of the program can be missed before the seize.
    wait(pid, WaitPidFlag::WSTOPPED)?;
    // EXITKILL ends the program if the test dies; TRACESYSGOOD marks stops at system calls.
    ptrace::seize(pid, Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL)?;
    kill(pid, Signal::SIGCONT)?;
    let mut tracee = Tracee {
        pid,
        // `/proc/PID/exe` is a path without links.
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
                            // The signal is delivered with the detach, so the process gets it
                            // exactly at this call.
                            ptrace::detach(pid, signal)?;
                            return Ok(FollowEnd::At(call));
                        }
                    }
                }
                None
            }
            // A signal from elsewhere stops a traced process first. It is passed on, or it would be
            // lost.
            WaitStatus::Stopped(_, signal) => Some(signal),
            _ => None,
        };
        match ptrace::syscall(pid, signal_to_deliver) {
            // Another process killed it meanwhile.
            Ok(()) | Err(nix::Error::ESRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for a change of a child's state. An exit is left in place (`WNOWAIT`) for the caller to
/// collect.
fn wait(pid: Pid, changes: WaitPidFlag) -> io::Result<WaitStatus> {
    let status = waitid(Id::Pid(pid), changes | WaitPidFlag::WNOWAIT)?;
    if !matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
        // A stop must be consumed, or the next wait would report it again.
        waitid(Id::Pid(pid), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG)?;
    }
    Ok(status)
}

/// Whether the process is inside a call: stops at entry and exit alternate.
enum SyscallState {
    Outside,
    /// Inside this call, if the table of calls contains it.
    Inside(Option<Call>),
}

struct Tracee {
    pid: Pid,
    program: PathBuf,
    is_program: bool,
    state: SyscallState,
}

impl Tracee {
    /// Returns the call at whose entry or exit the process has stopped.
    fn next_call(&mut self) -> Option<Call> {
        if let SyscallState::Inside(call) =
            std::mem::replace(&mut self.state, SyscallState::Outside)
        {
            return call.map(|call| Call { edge: Edge::After, ..call });
        }
        if !self.is_program {
            // Until the shell executes the program, its own calls do not count.
            let running = fs::read_link(format!("/proc/{}/exe", self.pid)).ok();
            self.is_program = running.as_ref() == Some(&self.program);
        }
        let call = self.is_program.then(|| syscall::current_call(self.pid)).flatten();
        self.state = SyscallState::Inside(call.clone());
        call
    }
}
