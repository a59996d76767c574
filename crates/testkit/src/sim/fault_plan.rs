//! Where the machine goes wrong: one counter over every call of every port.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raymond_store::disk::memory::{Call, Fault, Operation};

/// A place at which something can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// A call of the disk.
    Disk(RunFile, Operation),
    /// An effect is released.
    Release,
}

/// The part of a run's directory that a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunFile {
    /// The journal.
    Journal,
    /// A blob, or one in the making.
    Blobs,
    /// The lock.
    Lock,
    /// Directories, and what is kept beside the journal.
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

/// What is planned to go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineFault {
    /// The power is cut.
    PowerCut,
    /// The process is killed; what it wrote stays.
    Kill,
    /// A write is cut short.
    ShortWrite,
    /// The disk is full.
    Full,
    /// A sync fails.
    LostSync,
}

impl MachineFault {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::PowerCut, Self::Kill, Self::ShortWrite, Self::Full, Self::LostSync];

    /// The word for it on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PowerCut => "power-cut",
            Self::Kill => "kill",
            Self::ShortWrite => "short-write",
            Self::Full => "full",
            Self::LostSync => "lost-sync",
        }
    }

    /// The trouble of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Whether it can happen there.
    pub fn applies_to(self, point: Point) -> bool {
        match point {
            Point::Disk(_, operation) => self.disk_fault().applies_to(operation),
            Point::Release => matches!(self, Self::PowerCut | Self::Kill),
        }
    }

    const fn disk_fault(self) -> Fault {
        match self {
            Self::PowerCut => Fault::Crash,
            Self::Kill => Fault::Fail(std::io::ErrorKind::Interrupted),
            Self::ShortWrite => Fault::Short(7),
            Self::Full => Fault::Full,
            Self::LostSync => Fault::LostSync,
        }
    }
}

/// Where a trouble waits.
#[derive(Debug, Clone, Copy)]
enum Trigger {
    /// At the first call from this number on that can go wrong.
    Call(u64),
    /// At a call of this kind, when so many of them were let pass.
    Next(Point, u32),
}

#[derive(Debug, Default)]
struct State {
    points: Vec<Point>,
    armed: Option<(Trigger, MachineFault)>,
    paused: bool,
    /// The process was killed: none of its calls does anything any more.
    killed: bool,
    fired: Option<(MachineFault, Point)>,
    counts: BTreeMap<MachineFault, u64>,
}

/// Counts calls, and makes the planned one go wrong.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan(Arc<Mutex<State>>);

impl FaultPlan {
    /// The first call from number `call` on, counted from now, that can go wrong this way does.
    pub fn arm(&self, call: u64, fault: MachineFault) {
        let mut state = self.lock();
        let first = state.points.len() as u64 + call;
        state.armed = Some((Trigger::Call(first), fault));
    }

    /// The next call at this point goes wrong, after `passed` others of its kind.
    pub fn arm_at(&self, point: Point, passed: u32, fault: MachineFault) {
        self.lock().armed = Some((Trigger::Next(point, passed), fault));
    }

    /// Nothing goes wrong any more.
    pub fn disarm(&self) {
        self.lock().armed = None;
    }

    /// Another process takes over, and nothing is planned for it.
    pub fn restart(&self) {
        let mut state = self.lock();
        state.armed = None;
        state.killed = false;
        state.fired = None;
    }

    /// What went wrong since the last question.
    pub fn take_fired(&self) -> Option<(MachineFault, Point)> {
        self.lock().fired.take()
    }

    /// How often anything went wrong so far.
    pub fn counts(&self) -> BTreeMap<MachineFault, u64> {
        self.lock().counts.clone()
    }

    /// Looks at the disk without counting, and without any trouble.
    pub fn without_faults<T>(&self, look: impl FnOnce() -> T) -> T {
        let before = std::mem::replace(&mut self.lock().paused, true);
        let seen = look();
        self.lock().paused = before;
        seen
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.lock().points.len()
    }

    /// What they were, from number `from` on.
    pub fn points(&self, from: usize) -> Vec<Point> {
        self.lock().points[from..].to_vec()
    }

    /// A call of the disk is about to happen.
    pub fn disk_call(&self, call: &Call) -> Option<Fault> {
        let point = Point::Disk(RunFile::of(&call.path), call.operation);
        let mut state = self.lock();
        if state.killed && !state.paused {
            return Some(MachineFault::Kill.disk_fault());
        }
        state.next(point).map(MachineFault::disk_fault)
    }

    /// An effect is about to be released; whether the machine goes down instead.
    pub fn release(&self) -> bool {
        self.lock().next(Point::Release).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a call; the trouble that happens to it.
    fn next(&mut self, point: Point) -> Option<MachineFault> {
        if self.paused {
            return None;
        }
        let number = self.points.len() as u64;
        self.points.push(point);
        let (trigger, fault) = self.armed.as_mut()?;
        let fault = *fault;
        let due = match trigger {
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
