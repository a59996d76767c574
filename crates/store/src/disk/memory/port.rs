//! The interfaces of the simulated machine: a disk, and a host with processes.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::Memory;
use super::fault::{DiskFault, Operation};
use super::handle::OpenFile;
use super::tree::Entry;
use crate::disk::{Disk, Handle, Metadata, OpenMode};
use crate::host::{Host, Life, ProcessIdentity};

impl Disk for Memory {
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn Handle>> {
        let (mut machine, _) = self.enter(Operation::Open, path)?;
        let inode = match (machine.tree.find(path), how) {
            (Some(Entry::Directory), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(Entry::File(_)), OpenMode::New) => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            (Some(Entry::File(number)), OpenMode::Read | OpenMode::Write | OpenMode::Create) => {
                number
            }
            (None, OpenMode::New | OpenMode::Create) => machine.create(path)?,
            (None, OpenMode::Read | OpenMode::Write) => return Err(io::ErrorKind::NotFound.into()),
        };
        let id = machine.next_handle;
        machine.next_handle += 1;
        drop(machine);
        Ok(Box::new(OpenFile { memory: self.clone(), path: path.to_owned(), inode, id, how }))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let (machine, _) = self.enter(Operation::Metadata, path)?;
        match machine.tree.find(path) {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(Entry::Directory) => Ok(Metadata::Directory),
            Some(Entry::File(number)) => {
                let size = machine.inodes.get(&number).map_or(0, |i| i.content().len());
                Ok(Metadata::File(size as u64))
            }
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let (machine, _) = self.enter(Operation::List, directory)?;
        machine.tree.list(directory)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Operation::CreateDir, path)?;
        machine.tree.create(path, Entry::Directory)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let (mut machine, fault) = self.enter(Operation::SyncDir, directory)?;
        match fault {
            // Nothing became durable, but the names may still survive a crash.
            Some(DiskFault::LostSync) => Err(io::Error::other("the sync was lost")),
            _ => machine.tree.sync(directory),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Operation::Rename, from)?;
        machine.tree.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let (mut machine, _) = self.enter(Operation::Remove, path)?;
        machine.tree.remove(path)
    }
}

impl Host for Memory {
    fn me(&self) -> ProcessIdentity {
        let machine = self.lock();
        ProcessIdentity {
            host: machine.processes.get(&self.process).cloned().unwrap_or_default(),
            boot: format!("boot-{}", machine.boots),
            pid: self.process,
            started: u64::from(self.process),
        }
    }

    fn life(&self, process: &ProcessIdentity) -> Life {
        let me = self.me();
        if process.host != me.host {
            return Life::Elsewhere;
        }
        let lives = self.lock().processes.contains_key(&process.pid);
        if lives && process.boot == me.boot { Life::Alive } else { Life::Gone }
    }

    fn pause(&self) {}
}
