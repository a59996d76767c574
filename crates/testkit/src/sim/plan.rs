//! Where the machine goes wrong: one counter over every call of every port.

use std::sync::{Arc, Mutex, PoisonError};

use raymond_store::disk::memory::{Call, Fault, Operation};

/// A place at which something can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// A call of the disk.
    Disk(Operation),
    /// An effect is released.
    Release,
}

/// What is planned to go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
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

impl Trouble {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::PowerCut, Self::Kill, Self::ShortWrite, Self::Full, Self::LostSync];

    fn fault(self, operation: Operation) -> Option<Fault> {
        let fault = match self {
            Self::PowerCut | Self::Kill => Fault::Crash,
            Self::ShortWrite => Fault::Short(7),
            Self::Full => Fault::Full,
            Self::LostSync => Fault::LostSync,
        };
        fault.applies_to(operation).then_some(fault)
    }
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    armed: Option<(u64, Trouble)>,
    paused: bool,
    fired: Option<(Trouble, Point)>,
}

/// Counts calls, and makes the planned one go wrong.
#[derive(Debug, Clone, Default)]
pub struct Plan(Arc<Mutex<State>>);

impl Plan {
    /// The first call from number `call` on, counted from now, that can go wrong this way does.
    pub fn arm(&self, call: u64, trouble: Trouble) {
        let mut state = self.lock();
        state.armed = Some((state.calls + call, trouble));
        state.fired = None;
    }

    /// Nothing goes wrong any more.
    pub fn disarm(&self) {
        self.lock().armed = None;
    }

    /// What went wrong since the last question.
    pub fn fired(&self) -> Option<(Trouble, Point)> {
        self.lock().fired.take()
    }

    /// Looks at the disk without counting, and without any trouble.
    pub fn aside<T>(&self, look: impl FnOnce() -> T) -> T {
        self.lock().paused = true;
        let seen = look();
        self.lock().paused = false;
        seen
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// A call of the disk is about to happen.
    pub fn disk_call(&self, call: &Call) -> Option<Fault> {
        let mut state = self.lock();
        let trouble = state.next()?;
        let fault = trouble.fault(call.operation)?;
        state.fire(trouble, Point::Disk(call.operation));
        Some(fault)
    }

    /// An effect is about to be released; whether the machine goes down instead.
    pub fn release(&self) -> bool {
        let mut state = self.lock();
        match state.next() {
            Some(trouble @ (Trouble::PowerCut | Trouble::Kill)) => {
                state.fire(trouble, Point::Release);
                true
            }
            Some(Trouble::ShortWrite | Trouble::Full | Trouble::LostSync) | None => false,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a call; the trouble that is due by now.
    fn next(&mut self) -> Option<Trouble> {
        if self.paused {
            return None;
        }
        let number = self.calls;
        self.calls += 1;
        let (at, trouble) = self.armed?;
        (number >= at).then_some(trouble)
    }

    fn fire(&mut self, trouble: Trouble, point: Point) {
        self.armed = None;
        self.fired = Some((trouble, point));
    }
}
