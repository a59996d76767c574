//! The lock of a run: an advisory lock on a file, which also contains the owner.
//!
//! On one host the kernel's lock decides, and the kernel frees it when the owner dies. Across
//! hosts, where that lock may not work, the owner that the file names decides. A process that
//! releases the lock removes its entry from the file. A child process inherits the lock until its
//! `exec`, so if an owner dies while it starts a process, the lock stays taken for a moment. A
//! taker waits for that moment.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::{self, Disk, DiskErrorKind, During as _, Handle, OpenMode};
use crate::host::{Host, Life, ProcessIdentity};

/// The most attempts at a lock that no living process is known to hold. With the pause of 10 ms in
/// [`Host::pause`] this is five seconds.
const MOST_TRIES: usize = 500;

/// The lock of a run, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: Box<dyn Handle>,
    path: PathBuf,
}

/// The holder of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    #[serde(flatten)]
    pub process: ProcessIdentity,
    /// The time at which it took the lock, in milliseconds since 1970.
    pub since: u64,
    /// The version of the program.
    pub version: String,
}

/// The data of a process that takes a lock.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'c> {
    /// The time, in milliseconds since 1970.
    pub since: u64,
    /// The version of the program.
    pub version: &'c str,
    pub takeover: Takeover,
}

/// Whether to replace an owner on another host, where this process cannot see whether it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    Never,
    /// The user has confirmed that the owner is dead.
    OtherHost,
}

/// Why a lock cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// Another process holds the lock. The owner is `None` if it has not written its name yet.
    #[error("{} is held by {}", path.display(), describe_owner(owner.as_deref()))]
    Held { path: PathBuf, owner: Option<Box<Owner>> },
    /// The run was removed while its lock was being taken.
    #[error("{} was removed while it was being taken", path.display())]
    Removed { path: PathBuf },
    /// The owner is on another host and has not released the lock.
    #[error("{} is held by {} on another host", path.display(), describe_owner(Some(owner)))]
    OtherHost { path: PathBuf, owner: Box<Owner> },
}

impl Lock {
    /// Takes the lock at `path`. The directory must exist.
    pub fn take(
        disk: &dyn Disk,
        host: &dyn Host,
        path: &Path,
        claim: Claim<'_>,
    ) -> Result<Self, Error> {
        let (mut lock, owner) = Self::claim(disk, host, path, claim)?;
        write_owner(lock.file.as_mut(), &owner).during("write the lock", path)?;
        Ok(lock)
    }

    /// Takes the lock of a run that is to be deleted, even on a full disk. The file then cannot
    /// contain the owner, so only the kernel's lock keeps other processes away.
    pub fn take_to_delete(
        disk: &dyn Disk,
        host: &dyn Host,
        path: &Path,
        claim: Claim<'_>,
    ) -> Result<Self, Error> {
        let (mut lock, owner) = Self::claim(disk, host, path, claim)?;
        // Deleting a run is how a user frees a full disk, so it must not need space itself.
        match write_owner(lock.file.as_mut(), &owner).during("write the lock", path) {
            Err(error) if error.kind() != DiskErrorKind::Full => Err(error.into()),
            Ok(()) | Err(_) => Ok(lock),
        }
    }

    /// Takes the kernel's lock, unless the file contains an owner that may live.
    fn claim(
        disk: &dyn Disk,
        host: &dyn Host,
        path: &Path,
        claim: Claim<'_>,
    ) -> Result<(Self, Owner), Error> {
        let opened = disk.open(path, OpenMode::Create);
        let mut file = opened.during("open the lock", path)?;
        // The kernel's lock first: the owner in the file is only stable while this process holds
        // the lock.
        lock_file(file.as_mut(), host, path)?;
        let me = host.me();
        // The name of this process may still be there, if clearing it failed at its last release.
        if let Some(owner) = read_owner(file.as_mut()).filter(|owner| owner.process != me) {
            match (host.life(&owner.process), claim.takeover) {
                (Life::Gone, _) | (Life::Elsewhere, Takeover::OtherHost) => {}
                // The owner lives, but its lock was free: some network mounts lose locks.
                (Life::Alive | Life::Suspended, _) => return Err(held(path, Some(owner))),
                (Life::Elsewhere, Takeover::Never) => {
                    return Err(Error::OtherHost { path: path.to_owned(), owner: Box::new(owner) });
                }
            }
        }
        let path = path.to_owned();
        // The last owner may have deleted the run while this process waited. The lock would then be
        // on a file that other processes do not see.
        if !file.is_at(&path).during("look at", &path)? {
            return Err(Error::Removed { path });
        }
        let owner = Owner { process: me, since: claim.since, version: claim.version.to_owned() };
        Ok((Self { file, path }, owner))
    }

    /// Returns the owner inside the file, and whether that process lives.
    ///
    /// The kernel's lock is not touched: a reader must not keep another process from taking it.
    pub fn owner(
        disk: &dyn Disk,
        host: &dyn Host,
        path: &Path,
    ) -> Result<Option<(Owner, Life)>, Error> {
        // Read only: a command that only shows a run must not create the file.
        let mut file = match disk.open(path, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.during("open the lock", path)?,
        };
        Ok(read_owner(file.as_mut()).map(|owner| {
            let life = host.life(&owner.process);
            (owner, life)
        }))
    }

    /// Returns whether the file of the lock still exists at its path. If not, the lock protects
    /// nothing and must be taken again.
    pub fn is_in_place(&self) -> Result<bool, Error> {
        Ok(self.file.is_at(&self.path).during("look at", &self.path)?)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Errors are ignored: an owner that stays in the file is a dead process, which is detected.
        self.file.truncate(0).ok();
    }
}

/// Takes the kernel's lock.
///
/// It never waits for a known owner that may live. It waits only for a new owner that has not
/// written its name yet, and for the children of an owner that died.
fn lock_file(file: &mut dyn Handle, host: &dyn Host, path: &Path) -> Result<(), Error> {
    for _ in 0..MOST_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error).during("lock", path)?,
        }
        // The file is read again in every round, because a new owner writes its name only after it
        // has the lock.
        if let Some(owner) = read_owner(file)
            && host.life(&owner.process) != Life::Gone
        {
            return Err(held(path, Some(owner)));
        }
        host.pause();
    }
    Err(held(path, None))
}

fn held(path: &Path, owner: Option<Owner>) -> Error {
    Error::Held { path: path.to_owned(), owner: owner.map(Box::new) }
}

/// Reads the owner in the file. An owner that cannot be read was never written completely.
fn read_owner(file: &mut dyn Handle) -> Option<Owner> {
    let bytes = disk::read_from(file, 0).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn write_owner(file: &mut dyn Handle, owner: &Owner) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(owner)?;
    bytes.push(b'\n');
    // A longer earlier owner must not leave bytes behind the new one.
    file.truncate(0)?;
    file.write_at(0, &bytes)?;
    file.sync()
}

fn describe_owner(owner: Option<&Owner>) -> String {
    owner.map_or_else(
        || "another process".to_owned(),
        |Owner { process, .. }| format!("process {} on {}", process.pid, process.host),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::disk::Memory;
    use crate::disk::memory::DiskFault;

    /// Sets the run aside while its lock is being taken.
    struct Pruner(Memory);

    impl Host for Pruner {
        fn me(&self) -> ProcessIdentity {
            self.0.remove(Path::new("/lock")).unwrap();
            ProcessIdentity { host: "here".into(), boot: "b".into(), pid: 1, started: 1 }
        }

        fn life(&self, _: &ProcessIdentity) -> Life {
            Life::Gone
        }

        fn pause(&self) {}
    }

    /// Every process but this one is gone, and what the last owner left is so after some pauses.
    struct Survivor(Mutex<(usize, Option<Box<dyn Handle>>)>);

    impl Host for Survivor {
        fn me(&self) -> ProcessIdentity {
            ProcessIdentity { host: "here".into(), boot: "b".into(), pid: 2, started: 1 }
        }

        fn life(&self, process: &ProcessIdentity) -> Life {
            if *process == self.me() { Life::Alive } else { Life::Gone }
        }

        fn pause(&self) {
            let (pauses, child) = &mut *self.0.lock().unwrap();
            *pauses -= 1;
            if *pauses == 0 {
                child.take();
            }
        }
    }

    // proves: P9
    #[test]
    fn taker_waits_for_children_of_a_dead_owner() {
        let take = |record: &[u8], pauses| {
            let memory = Memory::new(0);
            let mut child = memory.open(Path::new("/lock"), OpenMode::Create).unwrap();
            child.try_lock().unwrap();
            child.write_at(0, record).unwrap();
            let host = Survivor(Mutex::new((pauses, Some(child))));
            let claim = Claim { since: 0, version: "1", takeover: Takeover::Never };
            Lock::take(&memory, &host, Path::new("/lock"), claim).map(drop)
        };
        let dead = br#"{"host":"here","boot":"b","pid":1,"started":1,"since":3,"version":"1"}"#;
        assert!(take(dead, MOST_TRIES - 1).is_ok());
        assert!(take(b"", MOST_TRIES - 1).is_ok());
        let refused = take(dead, MOST_TRIES + 1).unwrap_err().to_string();
        assert_eq!(refused, "/lock is held by another process");
    }

    #[test]
    fn removed_lock_is_not_taken() {
        let memory = Memory::new(0);
        let claim = Claim { since: 0, version: "1", takeover: Takeover::Never };
        let taken = Lock::take(&memory, &Pruner(memory.clone()), Path::new("/lock"), claim);
        assert!(matches!(taken, Err(Error::Removed { .. })), "{taken:?}");
        assert_eq!(
            memory.metadata(Path::new("/lock")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    // proves: A42
    #[test]
    fn lock_for_deletion_needs_no_room() {
        let memory = Memory::new(0);
        let host = Survivor(Mutex::new((1, None)));
        let claim = Claim { since: 0, version: "1", takeover: Takeover::Never };
        let (path, take) = (Path::new("/lock"), Lock::take_to_delete);
        let owner = || Lock::owner(&memory, &host, path).unwrap().map(|(owner, _)| owner.process);
        let lock = take(&memory, &host, path, claim).unwrap();
        assert_eq!(owner(), Some(host.me()));
        drop(lock);
        memory.set_capacity(Some(memory.used()));
        let full = Lock::take(&memory, &host, path, claim).unwrap_err().to_string();
        assert_eq!(full, "could not write the lock /lock: the disk is full");
        let lock = take(&memory, &host, path, claim).unwrap();
        assert_eq!(owner(), None);
        let other = memory.open(path, OpenMode::Write).unwrap();
        assert!(other.try_lock().is_err(), "the kernel keeps others away");
        drop(lock);
        memory.plan(memory.call_count() + 3, DiskFault::Fail(io::ErrorKind::PermissionDenied));
        take(&memory, &host, path, claim).unwrap_err();
    }

    #[test]
    fn an_error_names_the_owner() {
        let process = ProcessIdentity { host: "far".into(), boot: "b".into(), pid: 7, started: 1 };
        let owner = || Box::new(Owner { process: process.clone(), since: 0, version: "1".into() });
        let path = || PathBuf::from("/lock");
        let held = |owner| Error::Held { path: path(), owner }.to_string();
        assert_eq!(held(Some(owner())), "/lock is held by process 7 on far");
        assert_eq!(held(None), "/lock is held by another process");
        let far = Error::OtherHost { path: path(), owner: owner() };
        assert_eq!(far.to_string(), "/lock is held by process 7 on far on another host");
    }
}
