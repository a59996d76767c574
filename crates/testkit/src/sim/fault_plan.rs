//! The plan of machine faults: counts every call of disk and effects, and lets a chosen one fail.
//!
//! The numbers of calls are the coordinates of the crash sweep: the same run makes the same calls,
//! so a number names a moment exactly. At most one fault is armed at a time, and a new process
//! starts without a plan.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raymond_store::disk::memory::{DiskCall, DiskFault, Operation};

/// A call that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    Disk(RunFile, Operation),
    /// The release of an effect.
    Release,
}

/// The file of a run that a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunFile {
    Journal,
    /// A blob, finished or not.
    Blobs,
    Lock,
    /// Directories and all other files.
    Other,
}

impl RunFile {
    fn of(path: &Path) -> Self {
        let named = |name: &str| path.file_name().is_some_and(|last| last == name);
        let in_blobs = path.parent().is_some_and(|parent| parent.ends_with("blobs"));
        if named("journal.jsonl") {
            Self::Journal
        } else if named("lock") {
            Self::Lock
        } else if in_blobs {
            Self::Blobs
        } else {
            Self::Other
        }
    }
}

/// A fault of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineFault {
    /// The power fails; unsynced data may be lost.
    PowerCut,
    /// The process is killed; everything it wrote stays.
    Kill,
    ShortWrite,
    Full,
    LostSync,
}

impl MachineFault {
    pub const ALL: [Self; 5] =
        [Self::PowerCut, Self::Kill, Self::ShortWrite, Self::Full, Self::LostSync];

    /// Returns the name that the command line uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PowerCut => "power-cut",
            Self::Kill => "kill",
            Self::ShortWrite => "short-write",
            Self::Full => "full",
            Self::LostSync => "lost-sync",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Returns whether the fault can happen at this point.
    pub fn applies_to(self, point: Point) -> bool {
        match point {
            Point::Disk(_, operation) => self.disk_fault().applies_to(operation),
            Point::Release => matches!(self, Self::PowerCut | Self::Kill),
        }
    }

    const fn disk_fault(self) -> DiskFault {
        match self {
            Self::PowerCut => DiskFault::Crash,
            // The call does not happen, and no later one does: `State::killed` refuses them. A kill
            // that only failed one call would be an error that the process could handle.
            Self::Kill => DiskFault::Fail(std::io::ErrorKind::Interrupted),
            // Bytes that are written. Seven is less than any record, so the line is always torn.
            Self::ShortWrite => DiskFault::Short(7),
            Self::Full => DiskFault::Full,
            Self::LostSync => DiskFault::LostSync,
        }
    }
}

/// The call that a planned fault waits for.
#[derive(Debug, Clone, Copy)]
enum Trigger {
    /// The first suitable call from this number on.
    Call(u64),
    /// The call at this point, after this many others of its kind.
    Next(Point, u32),
}

#[derive(Debug, Default)]
struct State {
    points: Vec<Point>,
    armed: Option<(Trigger, MachineFault)>,
    paused: bool,
    /// Whether the process was killed: then every further call fails.
    killed: bool,
    fired: Option<(MachineFault, Point)>,
    counts: BTreeMap<MachineFault, u64>,
}

/// Counts calls, and lets the planned one fail. Clones share one plan.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan(Arc<Mutex<State>>);

impl FaultPlan {
    /// Plans a fault for the first suitable call, from `call` calls after now.
    pub fn arm(&self, call: u64, fault: MachineFault) {
        let mut state = self.lock();
        // Relative to now, so that a plan does not depend on the calls before it.
        let first = state.points.len() as u64 + call;
        state.armed = Some((Trigger::Call(first), fault));
    }

    /// Plans a fault for the next call at this point, after `passed` others of its kind.
    pub fn arm_at(&self, point: Point, passed: u32, fault: MachineFault) {
        self.lock().armed = Some((Trigger::Next(point, passed), fault));
    }

    pub fn disarm(&self) {
        self.lock().armed = None;
    }

    /// Clears the plan for a new process.
    pub fn restart(&self) {
        let mut state = self.lock();
        state.armed = None;
        state.killed = false;
        state.fired = None;
    }

    /// Returns the fault since the last call of this function.
    pub fn take_fired(&self) -> Option<(MachineFault, Point)> {
        self.lock().fired.take()
    }

    /// Returns the number of faults so far, by kind.
    pub fn counts(&self) -> BTreeMap<MachineFault, u64> {
        self.lock().counts.clone()
    }

    /// Runs `action` without counting its calls, and without faults.
    pub fn without_faults<T>(&self, action: impl FnOnce() -> T) -> T {
        // The earlier value is restored, so that an outer call of this function stays without
        // faults.
        let before = std::mem::replace(&mut self.lock().paused, true);
        let result = action();
        self.lock().paused = before;
        result
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> usize {
        self.lock().points.len()
    }

    /// Returns the points of all calls from number `from` on.
    pub fn points(&self, from: usize) -> Vec<Point> {
        self.lock().points[from..].to_vec()
    }

    /// Counts a call of the disk, and returns its fault.
    pub fn disk_call(&self, call: &DiskCall) -> Option<DiskFault> {
        let point = Point::Disk(RunFile::of(&call.path), call.operation);
        let mut state = self.lock();
        // Not counted as a call: a dead process makes none, and the numbers of later calls must not
        // depend on how long it takes the code to give up.
        if state.killed && !state.paused {
            return Some(MachineFault::Kill.disk_fault());
        }
        state.next(point).map(MachineFault::disk_fault)
    }

    /// Counts the release of an effect, and returns whether the machine goes down instead.
    pub fn release(&self) -> bool {
        self.lock().next(Point::Release).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a simulated run is reported with its seed; a poisoned lock would only add a
        // second one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a call, and returns its fault.
    fn next(&mut self, point: Point) -> Option<MachineFault> {
        // Checks by the simulator itself must not shift the numbers of the calls.
        if self.paused {
            return None;
        }
        let number = self.points.len() as u64;
        self.points.push(point);
        let (trigger, fault) = self.armed.as_mut()?;
        let fault = *fault;
        let due = match trigger {
            // `>=`, because the fault may not apply to exactly that call; then the next suitable
            // call gets it.
            Trigger::Call(first) => number >= *first,
            Trigger::Next(wanted, 0) => *wanted == point,
            Trigger::Next(wanted, passed) => {
                *passed -= u32::from(*wanted == point);
                false
            }
        };
        if !due || !fault.applies_to(point) {
            return None;
        }
        self.armed = None;
        self.killed = fault == MachineFault::Kill;
        self.fired = Some((fault, point));
        *self.counts.entry(fault).or_default() += 1;
        Some(fault)
    }
}
