//! A simulated disk in memory that forgets everything that was not synced.
//!
//! Every call has a number, and a test can plan a fault for it: a crash, a short write, a full
//! disk, a lost sync. [`Memory::crash`] is a power cut: a random choice decides for each page and
//! each name that was not synced whether it survives. [`Memory::kill`] only ends a process: the
//! page cache stays. A `Memory` is the view of one process on the machine; clones are the same
//! process.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod fault;
mod handle;
mod inode;
mod port;
mod tree;

pub use fault::{DiskCall, DiskFault, Operation, splitmix};
pub use inode::PAGE;

use inode::Inode;
use tree::{Entry, Tree};

/// Returns a number below its argument.
pub type Dice = Box<dyn FnMut(u64) -> u64 + Send>;

/// Decides before every call whether it fails. It must not call the disk.
pub type Hook = Box<dyn FnMut(&DiskCall) -> Option<DiskFault> + Send>;

type InodeNumber = u64;

/// One process's view of a simulated machine and its disk.
#[derive(Clone)]
pub struct Memory {
    machine: Arc<Mutex<Machine>>,
    process: u32,
}

struct Machine {
    tree: Tree,
    inodes: BTreeMap<InodeNumber, Inode>,
    next_inode: InodeNumber,
    /// The locked inodes, each with its process and handle.
    locks: BTreeMap<InodeNumber, (u32, u64)>,
    next_handle: u64,
    /// The living processes, and the host of each.
    processes: BTreeMap<u32, String>,
    next_process: u32,
    boots: u32,
    power: Power,
    capacity: Option<u64>,
    calls: Vec<DiskCall>,
    plan: BTreeMap<u64, DiskFault>,
    hook: Option<Hook>,
    dice: Dice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    /// A planned crash has happened. [`Memory::crash`] decides what survives.
    Cut,
}

impl Memory {
    /// Returns an empty disk, and the first process on the host `localhost`. `seed` decides what
    /// survives a crash.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self::with_dice(Box::new(move |sides| splitmix(&mut state) % sides.max(1)))
    }

    /// Returns an empty disk with the random numbers of the caller.
    pub fn with_dice(dice: Dice) -> Self {
        let machine = Machine {
            tree: Tree::new(),
            inodes: BTreeMap::new(),
            next_inode: 1,
            locks: BTreeMap::new(),
            next_handle: 1,
            processes: BTreeMap::from([(1, "localhost".to_owned())]),
            next_process: 2,
            boots: 1,
            power: Power::On,
            capacity: None,
            calls: Vec::new(),
            plan: BTreeMap::new(),
            hook: None,
            dice,
        };
        Self { machine: Arc::new(Mutex::new(machine)), process: 1 }
    }

    /// Plans a fault for the call with this number, counted from 0.
    ///
    /// A fault that cannot happen to that call is ignored.
    pub fn plan(&self, call: u64, fault: DiskFault) {
        self.lock().plan.insert(call, fault);
    }

    /// Calls `hook` before every call without a planned fault.
    pub fn set_hook(&self, hook: Option<Hook>) {
        self.lock().hook = hook;
    }

    /// Limits the bytes of all files together.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity = bytes;
    }

    /// Returns the bytes of all files that have a name.
    pub fn used(&self) -> u64 {
        self.lock().used()
    }

    /// Returns all calls so far. Tests measure their coverage by the pairs of operation and fault.
    pub fn calls(&self) -> Vec<DiskCall> {
        self.lock().calls.clone()
    }

    /// Returns the number of calls so far, which is the number of the next call.
    pub fn call_count(&self) -> u64 {
        self.lock().calls.len() as u64
    }

    /// Returns whether a planned crash has happened. Every call fails until [`Self::crash`].
    pub fn is_down(&self) -> bool {
        self.lock().power == Power::Cut
    }

    /// Returns a new process on the same host.
    #[must_use]
    pub fn process(&self) -> Self {
        let host = {
            let machine = self.lock();
            let host = machine.processes.get(&self.process).cloned();
            host.unwrap_or_else(|| "localhost".to_owned())
        };
        self.process_on(&host)
    }

    /// Returns a new process on `host`, which has the same disk mounted.
    #[must_use]
    pub fn process_on(&self, host: &str) -> Self {
        let mut machine = self.lock();
        let process = machine.next_process;
        machine.next_process += 1;
        machine.processes.insert(process, host.to_owned());
        Self { machine: Arc::clone(&self.machine), process }
    }

    /// Ends this process: its locks are freed and its calls fail. Its writes stay readable.
    pub fn kill(&self) {
        let mut machine = self.lock();
        machine.processes.remove(&self.process);
        let process = self.process;
        // As the kernel does when a process ends.
        machine.locks.retain(|_, (holder, _)| *holder != process);
    }

    /// Cuts the power, decides what survives, boots again, and returns the first process. Planned
    /// faults are forgotten.
    #[must_use]
    pub fn crash(&self) -> Self {
        let mut machine = self.lock();
        let machine = &mut *machine;
        for inode in machine.inodes.values_mut() {
            inode.crash(&mut machine.dice);
        }
        machine.tree.crash(&mut machine.dice);
        // A file without a surviving name is lost, even if its content was synced.
        let named: BTreeSet<_> = machine.tree.files().collect();
        machine.inodes.retain(|number, _| named.contains(number));
        machine.locks.clear();
        machine.plan.clear();
        machine.processes.clear();
        // The number of the boot is part of every process, so earlier owners count as dead.
        machine.boots += 1;
        machine.power = Power::On;
        let process = machine.next_process;
        machine.next_process += 1;
        machine.processes.insert(process, "localhost".to_owned());
        Self { machine: Arc::clone(&self.machine), process }
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, and applies its planned fault.
    fn enter(
        &self,
        operation: Operation,
        path: &Path,
    ) -> io::Result<(MutexGuard<'_, Machine>, Option<DiskFault>)> {
        let mut machine = self.lock();
        if machine.power == Power::Cut || !machine.processes.contains_key(&self.process) {
            return Err(io::Error::other("the process is gone"));
        }
        match machine.count(operation, path) {
            Some(DiskFault::Crash) => {
                machine.power = Power::Cut;
                Err(io::Error::other("the machine crashed"))
            }
            Some(DiskFault::Fail(kind)) => Err(kind.into()),
            // Full means full from now on: later calls meet the same limit.
            Some(DiskFault::Full) => {
                machine.capacity = Some(machine.used());
                Ok((machine, None))
            }
            fault => Ok((machine, fault)),
        }
    }
}

impl Machine {
    fn count(&mut self, operation: Operation, path: &Path) -> Option<DiskFault> {
        let number = self.calls.len() as u64;
        let mut call = DiskCall { number, operation, path: path.to_owned(), fault: None };
        let planned = match (self.plan.remove(&number), &mut self.hook) {
            (Some(fault), _) => Some(fault),
            (None, Some(hook)) => hook(&call),
            (None, None) => None,
        };
        // The log contains only faults that really happened, because coverage is measured by it.
        call.fault = planned.filter(|fault| fault.applies_to(operation));
        let fault = call.fault;
        self.calls.push(call);
        fault
    }

    fn used(&self) -> u64 {
        let sizes = self.tree.files().filter_map(|n| self.inodes.get(&n));
        sizes.map(|inode| inode.content().len() as u64).sum()
    }

    fn create(&mut self, path: &Path) -> io::Result<InodeNumber> {
        let number = self.next_inode;
        self.tree.create(path, Entry::File(number))?;
        self.next_inode += 1;
        self.inodes.insert(number, Inode::default());
        Ok(number)
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory(process {})", self.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk as _, OpenMode, read_from};
    use crate::host::{Host as _, Life};

    #[test]
    fn every_process_and_boot_is_unique() {
        let first = Memory::new(0);
        let (second, far) = (first.process(), first.process_on("far"));
        let before = second.me();
        assert_eq!(first.life(&before), Life::Alive);
        let later = first.crash();
        let meanwhile = later.me();
        let last = later.crash();
        let boots = [&before, &meanwhile, &last.me()].map(|process| process.boot.clone());
        assert_eq!(boots, ["boot-1", "boot-2", "boot-3"]);
        assert_eq!([&before, &meanwhile].map(|process| last.life(process)), [Life::Gone; 2]);
        let all = [&first, &second, &far, &later, &last].map(|memory| format!("{memory:?}"));
        assert_eq!(all, [1, 2, 3, 4, 5].map(|n| format!("Memory(process {n})")));
    }

    #[test]
    fn calls_of_a_killed_process_fail() {
        let memory = Memory::new(0);
        let other = memory.process();
        let path = Path::new("/f");
        let lock = other.open(path, OpenMode::New).unwrap();
        lock.try_lock().unwrap();
        other.kill();
        assert!(other.open(path, OpenMode::Read).is_err());
        assert!(!memory.is_down());
        memory.open(path, OpenMode::Read).unwrap().try_lock().unwrap();
    }

    #[test]
    fn a_short_write_is_never_a_whole_one() {
        let check = |planned, capacity, expected: &[u8]| {
            let memory = Memory::new(0);
            memory.set_capacity(capacity);
            let mut file = memory.open(Path::new("/f"), OpenMode::New).unwrap();
            memory.plan(memory.call_count(), DiskFault::Short(planned));
            let error = file.write_at(0, b"four").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WriteZero);
            assert_eq!(read_from(file.as_mut(), 0).unwrap(), expected, "{planned}");
        };
        check(2, None, b"fo");
        check(4, None, b"fou");
        check(9, None, b"fou");
        check(2, Some(1), b"f");
    }

    #[test]
    fn lost_directory_sync_makes_no_name_durable() {
        let memory = Memory::with_dice(Box::new(|_| 0));
        memory.open(Path::new("/f"), OpenMode::New).unwrap();
        memory.plan(memory.call_count(), DiskFault::LostSync);
        assert!(memory.sync_dir(Path::new("/")).is_err());
        assert_eq!(memory.crash().list(Path::new("/")).unwrap(), [""; 0]);
    }

    #[test]
    fn planned_crash_stops_the_machine_until_boot() {
        let memory = Memory::new(0);
        memory.plan(memory.call_count(), DiskFault::Crash);
        assert!(!memory.is_down());
        assert!(memory.list(Path::new("/")).is_err());
        assert!(memory.is_down());
        assert!(memory.list(Path::new("/")).is_err());
        let booted = memory.crash();
        assert!(!booted.is_down());
        assert!(booted.list(Path::new("/")).is_ok());
        assert!(memory.list(Path::new("/")).is_err());
        let calls: Vec<_> = memory.calls().iter().map(|call| call.fault).collect();
        assert_eq!((calls, memory.call_count()), (vec![Some(DiskFault::Crash), None], 2));
    }
}
