//! An open file of the simulated disk.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};

use super::fault::{DiskFault, Operation};
use super::inode::Inode;
use super::tree::Entry;
use super::{InodeNumber, Machine, Memory};
use crate::disk::{Handle, OpenMode};

#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) memory: Memory,
    pub(super) path: PathBuf,
    pub(super) inode: InodeNumber,
    pub(super) id: u64,
    pub(super) how: OpenMode,
}

impl OpenFile {
    fn writable(&self) -> io::Result<()> {
        match self.how {
            OpenMode::Read => Err(io::Error::other("the file was opened to read")),
            OpenMode::Write | OpenMode::New | OpenMode::Create => Ok(()),
        }
    }

    fn inode<'m>(&self, machine: &'m mut Machine) -> io::Result<&'m mut Inode> {
        let gone = || io::Error::other("the file did not survive a crash");
        machine.inodes.get_mut(&self.inode).ok_or_else(gone)
    }
}

/// Returns how many of `wanted` more bytes fit on the disk.
fn room(machine: &Machine, wanted: usize) -> usize {
    let left = machine.capacity.map(|c| c.saturating_sub(machine.used()));
    left.map_or(wanted, |left| wanted.min(usize::try_from(left).unwrap_or(wanted)))
}

impl Handle for OpenFile {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (mut machine, _) = self.memory.enter(Operation::Read, &self.path)?;
        let content = self.inode(&mut machine)?.content();
        let start = usize::try_from(offset).map_or(content.len(), |o| o.min(content.len()));
        let count = buffer.len().min(content.len() - start);
        buffer[..count].copy_from_slice(&content[start..start + count]);
        Ok(count)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writable()?;
        let (mut machine, fault) = self.memory.enter(Operation::Write, &self.path)?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let size = self.inode(&mut machine)?.content().len();
        // Only growth needs space: overwriting works on a full disk.
        let growth = (offset + bytes.len()).saturating_sub(size);
        let fits = bytes.len() - (growth - room(&machine, growth));
        let (count, error) = match fault {
            Some(DiskFault::Short(n)) if n < bytes.len().min(fits) => (n, io::ErrorKind::WriteZero),
            Some(DiskFault::Short(_)) => {
                (fits.min(bytes.len().saturating_sub(1)), io::ErrorKind::WriteZero)
            }
            _ => (fits, io::ErrorKind::StorageFull),
        };
        // A failed write leaves the part that fitted, as on a real disk.
        self.inode(&mut machine)?.write(offset, &bytes[..count]);
        if count == bytes.len() { Ok(()) } else { Err(error.into()) }
    }

    fn size(&self) -> io::Result<u64> {
        let (mut machine, _) = self.memory.enter(Operation::Size, &self.path)?;
        Ok(self.inode(&mut machine)?.content().len() as u64)
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.writable()?;
        let (mut machine, _) = self.memory.enter(Operation::Truncate, &self.path)?;
        let size = usize::try_from(size).map_err(io::Error::other)?;
        self.inode(&mut machine)?.truncate(size);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let (mut machine, fault) = self.memory.enter(Operation::Sync, &self.path)?;
        let machine = &mut *machine;
        let Some(inode) = machine.inodes.get_mut(&self.inode) else {
            return Err(io::Error::other("the file did not survive a crash"));
        };
        match fault {
            Some(DiskFault::LostSync) => {
                inode.lose(&mut machine.dice);
                Err(io::Error::other("the sync was lost"))
            }
            _ => {
                inode.sync();
                Ok(())
            }
        }
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let (machine, _) = self.memory.enter(Operation::IsAt, path)?;
        Ok(machine.tree.find(path) == Some(Entry::File(self.inode)))
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        let entered = self.memory.enter(Operation::Lock, &self.path);
        let (mut machine, _) = entered.map_err(TryLockError::Error)?;
        let me = (self.memory.process, self.id);
        // By handle, not by process, as `flock` does: a second handle of the same process is
        // refused.
        match *machine.locks.entry(self.inode).or_insert(me) {
            holder if holder == me => Ok(()),
            _ => Err(TryLockError::WouldBlock),
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut machine = self.memory.lock();
        let me = (self.memory.process, self.id);
        if machine.locks.get(&self.inode) == Some(&me) {
            machine.locks.remove(&self.inode);
        }
    }
}
