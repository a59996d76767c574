//! The contract of a disk, and of everything that uses one. Every disk passes this suite unchanged.
//!
//! The effects of a crash cannot be checked on a real disk; the simulation checks them.

use std::any::Any;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, Metadata, OpenMode};
use crate::host::Host;

mod journal;
mod parts;
mod primitives;

/// A disk to check, fresh for every check.
pub struct Fixture {
    pub disk: Arc<dyn Disk>,
    /// The calling process.
    pub host: Arc<dyn Host>,
    /// An empty directory on it.
    pub directory: PathBuf,
    /// Values that must live as long as the directory.
    pub keep: Option<Box<dyn Any>>,
}

/// Runs every check on a disk of its own.
pub fn suite(make: impl Fn() -> Fixture) {
    let parts = [primitives::CHECKS, journal::CHECKS, parts::CHECKS];
    for check in parts.concat() {
        check(&make());
    }
}

type Check = fn(&Fixture);

impl Fixture {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        let mut file = self.disk.open(&path, OpenMode::Create).expect("it opens");
        file.truncate(0).expect("it is emptied");
        file.write_at(0, bytes).expect("it is written");
        path
    }

    fn content(&self, path: &Path) -> Vec<u8> {
        crate::disk::read(self.disk.as_ref(), path).expect("it is read")
    }

    fn names(&self, directory: &Path) -> Vec<String> {
        let names = self.disk.list(directory).expect("it is listed");
        let names = names.into_iter().map(OsString::into_string);
        names.map(|name| name.expect("it is UTF-8")).collect()
    }

    fn size(&self, path: &Path) -> u64 {
        match self.disk.metadata(path).expect("it is there") {
            Metadata::File(size) => size,
            Metadata::Directory => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::disk::{Memory, RealDisk};
    use crate::host::ThisHost;

    #[test]
    fn files_conform() {
        suite(|| {
            let directory = tempfile::tempdir().unwrap();
            Fixture {
                disk: Arc::new(RealDisk),
                host: Arc::new(ThisHost),
                directory: directory.path().to_owned(),
                keep: Some(Box::new(directory)),
            }
        });
    }

    #[test]
    fn memory_conforms() {
        let made = Cell::new(0);
        suite(|| {
            made.set(made.get() + 1);
            let memory = Memory::new(1);
            Fixture {
                disk: Arc::new(memory.clone()),
                host: Arc::new(memory),
                directory: PathBuf::from("/"),
                keep: None,
            }
        });
        let checks = [primitives::CHECKS, journal::CHECKS, parts::CHECKS].concat();
        assert_eq!(made.get(), checks.len());
    }
}
