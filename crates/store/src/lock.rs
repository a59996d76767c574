//! One owner per run: an advisory lock on a file that is never deleted, and who holds it inside.
//!
//! The kernel's lock decides on one host, and is free when its owner dies. The record inside tells
//! who that is; it decides across hosts, where the kernel's lock may not reach, and is cleared when
//! the lock is given back. A child holds it until its exec: an owner that dies while it starts one
//! leaves the lock taken for that moment, which a taker waits for.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::{self, Disk, During as _, Handle, Open, Trouble};

mod host;

pub use host::{Host, Life, Process, ThisHost};

/// How often a lock is tried that nobody alive is seen to hold.
const PAUSES: usize = 500;

/// The lock of a run, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: Box<dyn Handle>,
    path: PathBuf,
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The process.
    #[serde(flatten)]
    pub process: Process,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
    /// The version of the program.
    pub version: String,
}

/// What a taker says about itself.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'c> {
    /// The time, in milliseconds since 1970.
    pub since: u64,
    /// The version of the program.
    pub version: &'c str,
    /// Whom it may replace.
    pub takeover: Takeover,
}

/// Whether an owner on another host, whose life cannot be seen from here, may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// It may not.
    Never,
    /// It may: a person says that it is gone.
    OtherHost,
}

/// Why a lock cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// Somebody else holds it; who, unless it does not say so.
    #[error("{} is held by {}", path.display(), who(owner.as_deref()))]
    Held {
        /// The lock.
        path: PathBuf,
        /// Its owner.
        owner: Option<Box<Owner>>,
    },
    /// The run was removed while its lock was being taken.
    #[error("{} was removed while it was being taken", path.display())]
    Removed {
        /// Where the lock was.
        path: PathBuf,
    },
    /// Its owner was on another host and did not give it back.
    #[error("{} is held by {} on another host", path.display(), who(Some(owner)))]
    OtherHost {
        /// The lock.
        path: PathBuf,
        /// Its owner.
        owner: Box<Owner>,
    },
}

impl Lock {
    /// Takes the lock at `path`, in a directory that exists.
    pub fn take(
        disk: &dyn Disk,
        host: &dyn Host,
        path: &Path,
        claim: Claim<'_>,
    ) -> Result<Self, Error> {
        let (mut lock, owner) = Self::claim(disk, host, path, claim)?;
        record(lock.file.as_mut(), &owner).during("write the lock", path)?;
        Ok(lock)
    }

    /// Takes the lock of a run that is to be deleted, on a full disk as well. There the lock does not say who
    /// holds it, so that it is the kernel alone that keeps others away.
    pub fn take_to_delete(
        disk: &dyn Disk,
        host: &dyn Host,
        path: &Path,
        claim: Claim<'_>,
    ) -> Result<Self, Error> {
        let (mut lock, owner) = Self::claim(disk, host, path, claim)?;
        match record(lock.file.as_mut(), &owner).during("write the lock", path) {
            Err(error) if error.trouble() != Trouble::Full => Err(error.into()),
            Ok(()) | Err(_) => Ok(lock),
        }
    }

    /// Takes the kernel's lock, unless its record names an owner who may live.
    fn claim(
        disk: &dyn Disk,
        host: &dyn Host,
        path: &Path,
        claim: Claim<'_>,
    ) -> Result<(Self, Owner), Error> {
        let opened = disk.open(path, Open::Create);
        let mut file = opened.during("open the lock", path)?;
        wait_for(file.as_mut(), host, path)?;
        let me = host.me();
        if let Some(owner) = recorded(file.as_mut()).filter(|owner| owner.process != me) {
            match (host.life(&owner.process), claim.takeover) {
                (Life::Gone, _) | (Life::Elsewhere, Takeover::OtherHost) => {}
                // A kernel that forgets locks, as some network mounts do.
                (Life::Alive | Life::Suspended, _) => return Err(held(path, Some(owner))),
                (Life::Elsewhere, Takeover::Never) => {
                    return Err(Error::OtherHost { path: path.to_owned(), owner: Box::new(owner) });
                }
            }
        }
        let path = path.to_owned();
        // Whoever held it before may have set the run aside.
        if !file.is_at(&path).during("look at", &path)? {
            return Err(Error::Removed { path });
        }
        let owner = Owner { process: me, since: claim.since, version: claim.version.to_owned() };
        Ok((Self { file, path }, owner))
    }

    /// Who holds the lock at `path` as far as its record says, and whether that process lives.
    ///
    /// The kernel's lock is not touched: a look must not keep anybody from taking it.
    pub fn owner(
        disk: &dyn Disk,
        host: &dyn Host,
        path: &Path,
    ) -> Result<Option<(Owner, Life)>, Error> {
        let mut file = match disk.open(path, Open::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.during("open the lock", path)?,
        };
        Ok(recorded(file.as_mut()).map(|owner| {
            let life = host.life(&owner.process);
            (owner, life)
        }))
    }

    /// Whether the lock is still where others look for it; if not, it must be taken again.
    pub fn is_in_place(&self) -> Result<bool, Error> {
        Ok(self.file.is_at(&self.path).during("look at", &self.path)?)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Best effort: a record that stays names a process that is found gone.
        self.file.truncate(0).ok();
    }
}

/// Takes the kernel's lock. Nobody is waited for who can be named and may live: only for whoever is
/// about to write its name, and for what an owner left that died.
fn wait_for(file: &mut dyn Handle, host: &dyn Host, path: &Path) -> Result<(), Error> {
    for _ in 0..PAUSES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error).during("lock", path)?,
        }
        if let Some(owner) = recorded(file)
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

/// The owner in the record; one that cannot be read was never finished, and names nobody.
fn recorded(file: &mut dyn Handle) -> Option<Owner> {
    let bytes = disk::read_from(file, 0).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn record(file: &mut dyn Handle, owner: &Owner) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(owner)?;
    bytes.push(b'\n');
    file.truncate(0)?;
    file.write_at(0, &bytes)?;
    file.sync()
}

fn who(owner: Option<&Owner>) -> String {
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
    use crate::disk::memory::Fault;

    /// Sets the run aside while its lock is being taken.
    struct Pruner(Memory);

    impl Host for Pruner {
        fn me(&self) -> Process {
            self.0.remove(Path::new("/lock")).unwrap();
            Process { host: "here".into(), boot: "b".into(), pid: 1, started: 1 }
        }

        fn life(&self, _: &Process) -> Life {
            Life::Gone
        }

        fn pause(&self) {}
    }

    /// Every process but this one is gone, and what the last owner left is so after some pauses.
    struct Survivor(Mutex<(usize, Option<Box<dyn Handle>>)>);

    impl Host for Survivor {
        fn me(&self) -> Process {
            Process { host: "here".into(), boot: "b".into(), pid: 2, started: 1 }
        }

        fn life(&self, process: &Process) -> Life {
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
    fn a_child_of_a_dead_owner_is_waited_for_until_it_lets_go() {
        let take = |record: &[u8], pauses| {
            let memory = Memory::new(0);
            let mut child = memory.open(Path::new("/lock"), Open::Create).unwrap();
            child.try_lock().unwrap();
            child.write_at(0, record).unwrap();
            let host = Survivor(Mutex::new((pauses, Some(child))));
            let claim = Claim { since: 0, version: "1", takeover: Takeover::Never };
            Lock::take(&memory, &host, Path::new("/lock"), claim).map(drop)
        };
        let dead = br#"{"host":"here","boot":"b","pid":1,"started":1,"since":3,"version":"1"}"#;
        assert!(take(dead, PAUSES - 1).is_ok());
        assert!(take(b"", PAUSES - 1).is_ok());
        let refused = take(dead, PAUSES + 1).unwrap_err().to_string();
        assert_eq!(refused, "/lock is held by another process");
    }

    #[test]
    fn a_lock_that_was_removed_meanwhile_is_not_taken() {
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
    fn lock_of_a_run_to_delete_needs_no_room() {
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
        assert_eq!(full, "cannot write the lock /lock: the disk is full");
        let lock = take(&memory, &host, path, claim).unwrap();
        assert_eq!(owner(), None);
        let other = memory.open(path, Open::Write).unwrap();
        assert!(other.try_lock().is_err(), "the kernel keeps others away");
        drop(lock);
        memory.plan(memory.call_count() + 3, Fault::Fail(io::ErrorKind::PermissionDenied));
        take(&memory, &host, path, claim).unwrap_err();
    }

    #[test]
    fn an_error_names_the_owner() {
        let process = Process { host: "far".into(), boot: "b".into(), pid: 7, started: 1 };
        let owner = || Box::new(Owner { process: process.clone(), since: 0, version: "1".into() });
        let path = || PathBuf::from("/lock");
        let held = |owner| Error::Held { path: path(), owner }.to_string();
        assert_eq!(held(Some(owner())), "/lock is held by process 7 on far");
        assert_eq!(held(None), "/lock is held by another process");
        let far = Error::OtherHost { path: path(), owner: owner() };
        assert_eq!(far.to_string(), "/lock is held by process 7 on far on another host");
    }
}
