//! Whose files are believed: this user's, root's, and those of whoever owns the directory that
//! somebody chose to work in.
//!
//! Anybody may put a repository or a configuration into `/tmp`, above the directories of others. It
//! would choose which runs there are, and what they run. The directory itself is another matter:
//! nobody is led into it, and in a container it often belongs to a user of the host.

use std::io;
use std::path::Path;

use crate::disk::{self, Disk, During as _, Trouble};

/// The users whose files are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trusted {
    /// The owner of the directory, when that is neither this user nor root.
    host: Option<u32>,
}

impl Trusted {
    /// Those for somebody who works in `directory`.
    pub fn in_directory(disk: &dyn Disk, directory: &Path) -> Self {
        Self { host: disk.stranger(directory).unwrap_or_default() }
    }

    /// Refuses a file or a directory of anybody else. What is not there is nobody's.
    pub fn check(self, disk: &dyn Disk, path: &Path) -> Result<(), disk::Error> {
        match disk.stranger(path) {
            Ok(Some(owner)) if Some(owner) != self.host => {
                Err(disk::refused(Trouble::Foreign(owner))).during("use", path)
            }
            Ok(_) => Ok(()),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(error).during("look at", path),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
