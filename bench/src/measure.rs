//! Measures a program: its own CPU time, the CPU time of its children, the wall time and the
//! memory.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::ClockId;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// The longest time of one program; a program that hangs longer is an error.
const LONGEST: Duration = Duration::from_mins(5);

/// How often a program is looked at: what it takes after the last look is not seen.
const OFTEN: Duration = Duration::from_micros(100);
const SELDOM: Duration = Duration::from_millis(2);

/// The measured cost of a program, in milliseconds and KiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// The CPU time of the program itself, with all its threads.
    pub(crate) own: f64,
    /// The CPU time of the program and of everything that it waited for.
    pub(crate) tree: f64,
    /// From its start to its end.
    pub(crate) wall: f64,
    /// The peak memory; 0 for a program that ended before the first look.
    pub(crate) peak: f64,
}

impl Cost {
    /// Returns the cost of one of `parts` equal parts; memory is not divided.
    pub(crate) fn each(self, parts: u32) -> Self {
        let part = |whole: f64| whole / f64::from(parts);
        Self { own: part(self.own), tree: part(self.tree), wall: part(self.wall), ..self }
    }
}

/// The resources that a process has used so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// User and system time, in milliseconds.
    pub(crate) own: f64,
    /// The most memory that it had, in KiB.
    pub(crate) peak: f64,
}

/// Returns the resources that a process has used so far. It may have ended, but not been waited
/// for.
pub(crate) fn taken(pid: u32) -> Result<Taken> {
    let clock = ClockId::pid_cpu_clock_id(nix::unistd::Pid::from_raw(i32::try_from(pid)?))?;
    // The clock of the process counts nanoseconds; `/proc` counts ticks of 10 ms, which is too
    // coarse.
    let own = Duration::from(clock.now()?).as_secs_f64() * 1e3;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    // A process that has ended but was not waited for has no memory and no such line.
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let peak = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
    Ok(Taken { own, peak })
}

/// A program that runs. One that is not waited for is killed.
pub(crate) struct Running {
    child: Child,
    begun: Instant,
    /// The CPU time of all earlier children that were waited for.
    before: f64,
}

/// The cost and the output of a program.
pub(crate) struct Came {
    pub(crate) cost: Cost,
    pub(crate) status: ExitStatus,
}

impl Running {
    /// Starts a program in a directory that is its own; what it prints is kept there.
    pub(crate) fn start(command: &mut Command, directory: &Path) -> Result<Self> {
        let printed = |name: &str| File::create(directory.join(name));
        command.current_dir(directory).stdout(printed("stdout")?).stderr(printed("stderr")?);
        // `RUSAGE_CHILDREN` only grows, so the CPU time of this child is a difference.
        let before = waited_for()?;
        let begun = Instant::now();
        let child = command.spawn().with_context(|| format!("could not start {command:?}"))?;
        Ok(Self { child, begun, before })
    }

    pub(crate) fn taken(&self) -> Result<Taken> {
        taken(self.child.id())
    }

    /// Waits until something is so.
    pub(crate) fn until(&self, what: &str, so: impl Fn() -> bool) -> Result<()> {
        while !so() {
            ensure!(self.begun.elapsed() < LONGEST, "waited in vain until {what}");
            let over = waitid(WaitId::Pid(self.pid()?), waiting() | WaitIdOptions::NOHANG)?;
            ensure!(over.is_none(), "it was over before {what}");
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    fn pid(&self) -> Result<Pid> {
        let pid = i32::try_from(self.child.id())?;
        Pid::from_raw(pid).context("no process has number 0")
    }

    /// Waits for its end.
    pub(crate) fn came(mut self) -> Result<Came> {
        let mut peak = 0.0;
        loop {
            let over = waitid(WaitId::Pid(self.pid()?), waiting() | WaitIdOptions::NOHANG)?;
            if over.is_some() {
                break;
            }
            if self.begun.elapsed() > LONGEST {
                bail!("it did not come to an end");
            }
            peak = self.taken()?.peak.max(peak);
            // The shorter it has run, the more closely it is watched.
            sleep((self.begun.elapsed() / 50).clamp(OFTEN, SELDOM));
        }
        // Before the clock of the process is read, which takes time itself.
        let wall = self.begun.elapsed().as_secs_f64() * 1e3;
        // Before `wait`: an ended process keeps its clock only until it is waited for.
        let own = self.taken()?.own;
        let status = self.child.wait()?;
        // Behind `wait`, which adds the child and everything that it waited for.
        let tree = waited_for()? - self.before;
        Ok(Came { cost: Cost { own, tree, wall, peak }, status })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

fn waiting() -> WaitIdOptions {
    // `NOWAIT` leaves an ended process as it is, so that its clock can still be read.
    WaitIdOptions::EXITED | WaitIdOptions::NOWAIT
}

/// The CPU time of all children that were waited for, and of theirs, in milliseconds.
fn waited_for() -> Result<f64> {
    Ok(milliseconds(&getrusage(UsageWho::RUSAGE_CHILDREN)?))
}

fn milliseconds(usage: &Usage) -> f64 {
    let one = |time: TimeVal| {
        Duration::from_secs(time.tv_sec().unsigned_abs()).as_secs_f64() * 1e3
            + Duration::from_micros(time.tv_usec().unsigned_abs()).as_secs_f64() * 1e3
    };
    one(usage.user_time()) + one(usage.system_time())
}

/// A program without what surrounds this one but the way to other programs.
#[expect(clippy::disallowed_methods, reason = "the benchmark is not part of the product")]
pub(crate) fn program(path: &Path, home: &Path) -> Command {
    let mut command = Command::new(path);
    // A variable such as `RAYMOND_BUDGET` of the developer would change the measured work.
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home).stdin(Stdio::null());
    command
}
