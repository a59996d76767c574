//! The registry of a user's projects: one small file for each directory that has had runs.
//!
//! It lets `raymond list --all` find the runs of all projects without searching the disk. The name
//! of a file is the hash of the path of its project, so two projects never write to the same file.
//! An entry contains a path and a time, and nothing about the runs. The registry can be deleted:
//! each run writes the entry of its project again.
//!
//! The caller chooses the directory, passes the time and decides whether to register a project at
//! all. The layout of a project is in [`crate::root`].

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, Durability};
use crate::disk::{self, Disk, DiskErrorKind, During as _, Metadata, create_dirs_above};
use crate::root::Root;

/// The directories of the registry below the state directory of the user.
const PARTS: [&str; 2] = ["raymond", "projects"];
/// The version of the format of an entry.
const VERSION: u32 = 1;
/// The hexadecimal digits of a file name: 64 bits, so that even a million projects do not collide.
const DIGITS: usize = 16;
/// The extension of an entry.
const EXTENSION: &str = ".json";
/// The largest entry, in bytes. The longest path of Linux has 4096.
const LARGEST: u64 = 16 << 10;
/// Milliseconds after which an entry is written again: one day. It is written rarely, because the
/// start of a run should need only one `stat`.
const REFRESH: u64 = 24 * 60 * 60 * 1000;
/// Milliseconds after which the entry of a missing directory is removed: 30 days. A directory may
/// be missing for a while, such as one on a removable disk.
const EXPIRY: u64 = 30 * REFRESH;

/// The registry of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRegistry {
    /// `raymond` in the state directory of the user.
    base: PathBuf,
    directory: PathBuf,
}

/// An entry as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    version: u32,
    /// The absolute path of the project.
    path: String,
    /// When a run was last started there, in milliseconds since 1970.
    seen: u64,
}

/// The content of the registry.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RegisteredProjects {
    /// The existing directories, sorted.
    pub directories: Vec<PathBuf>,
    /// The files that are not entries, each with the reason.
    pub ignored: Vec<IgnoredEntry>,
}

/// A file that is not an entry.
#[derive(Debug, PartialEq, Eq)]
pub struct IgnoredEntry {
    pub file: PathBuf,
    pub why: EntryError,
}

/// Why a file is not an entry.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("could not be read: {0}")]
    Unreadable(DiskErrorKind),
    #[error("does not contain a project")]
    Damaged,
    #[error("was written by a newer release")]
    Newer,
    /// The name of the file is not the hash of the path, so the file is a copy or was edited.
    #[error("contains the path of another project")]
    OtherPath,
}

impl ProjectRegistry {
    /// Returns the registry in the state directory of a user, such as `~/.local/state`.
    pub fn in_state_directory(directory: &Path) -> Self {
        let base = directory.join(PARTS[0]);
        Self { directory: base.join(PARTS[1]), base }
    }

    /// Returns its directory, which may not exist.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Registers a project unless that happened in the last day. `now` is in milliseconds since
    /// 1970.
    pub fn note(&self, disk: &dyn Disk, project: &str, now: u64) -> Result<(), disk::Error> {
        match disk.written_at(&self.file(project)) {
            // The clock may have been set back, so a time in the future can be old.
            Ok(Some(written)) if written.abs_diff(now) < REFRESH => Ok(()),
            Ok(_) | Err(_) => self.add(disk, project, now),
        }
    }

    /// Registers a project, and replaces a damaged entry.
    pub fn add(&self, disk: &dyn Disk, project: &str, now: u64) -> Result<(), disk::Error> {
        self.refuse_links(disk)?;
        let entry = Entry { version: VERSION, path: project.to_owned(), seen: now };
        let mut bytes = serde_json::to_vec(&entry).expect("an entry is plain data");
        bytes.push(b'\n');
        let file = self.file(project);
        // Not synced: the next run writes a lost entry again.
        match atomic_file::write(disk, &file, &bytes, Durability::Derived) {
            Err(error) if error.kind() == DiskErrorKind::Missing => {
                create_dirs_above(disk, &self.directory)?;
                atomic_file::write(disk, &file, &bytes, Durability::Derived)
            }
            written => written,
        }
    }

    /// Removes the entry of a project, and returns whether there was one.
    pub fn forget(&self, disk: &dyn Disk, project: &str) -> Result<bool, disk::Error> {
        self.refuse_links(disk)?;
        let file = self.file(project);
        match disk.remove(&file) {
            Ok(()) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(error).during("remove", &file),
        }
    }

    /// Reads all entries. Entries whose directory is missing are left out, and after 30 days
    /// removed.
    pub fn read(&self, disk: &dyn Disk, now: u64) -> Result<RegisteredProjects, disk::Error> {
        self.refuse_links(disk)?;
        let names = match disk.list(&self.directory) {
            Err(error) if is_absent(&error) => return Ok(RegisteredProjects::default()),
            names => names.during("list", &self.directory)?,
        };
        let mut found = RegisteredProjects::default();
        for name in names.iter().filter_map(|name| name.to_str()).filter(|name| is_entry(name)) {
            let file = self.directory.join(name);
            match self.entry(disk, &file) {
                Ok(entry) if is_missing(disk, entry.path.as_ref()) => {
                    if now.saturating_sub(entry.seen) > EXPIRY {
                        // Ignored: the next reader tries again.
                        disk.remove(&file).ok();
                    }
                }
                Ok(entry) => found.directories.push(entry.path.into()),
                Err(why) => found.ignored.push(IgnoredEntry { file, why }),
            }
        }
        found.directories.sort();
        Ok(found)
    }

    fn entry(&self, disk: &dyn Disk, file: &Path) -> Result<Entry, EntryError> {
        let unreadable = |error| EntryError::Unreadable(DiskErrorKind::of(&error));
        // The author of a link would choose which file Raymond reads.
        if disk.is_link(file).map_err(unreadable)? {
            return Err(EntryError::Unreadable(DiskErrorKind::Link));
        }
        match disk.metadata(file).map_err(unreadable)? {
            Metadata::File(0..=LARGEST) => {}
            Metadata::File(_) | Metadata::Directory => return Err(EntryError::Damaged),
        }
        let bytes = disk::read(disk, file).map_err(|error| unreadable(error.source))?;
        let entry: Entry = serde_json::from_slice(&bytes).map_err(|_| EntryError::Damaged)?;
        if entry.version > VERSION {
            return Err(EntryError::Newer);
        }
        if !Path::new(&entry.path).is_absolute() {
            return Err(EntryError::Damaged);
        }
        if self.file(&entry.path) != file {
            return Err(EntryError::OtherPath);
        }
        Ok(entry)
    }

    fn file(&self, project: &str) -> PathBuf {
        let hash = blake3::hash(project.as_bytes()).to_hex();
        self.directory.join(format!("{}{EXTENSION}", &hash[..DIGITS]))
    }

    /// Refuses links in place of its directories. The user chose the state directory above them,
    /// links included.
    fn refuse_links(&self, disk: &dyn Disk) -> Result<(), disk::Error> {
        for directory in [&self.base, &self.directory] {
            match disk.is_link(directory) {
                Ok(true) => {
                    return Err(disk::refused(DiskErrorKind::Link)).during("use", directory);
                }
                Err(error) if !is_absent(&error) => {
                    return Err(error).during("look at", directory);
                }
                Ok(false) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Finds the `.raymond/` of a registered directory.
///
/// A user chooses the directory of a command, but not when to read a registered one. Meanwhile
/// another user may have replaced a removed directory in `/tmp` by one of his own, which is refused
/// here.
pub fn locate_registered(disk: &dyn Disk, directory: &Path) -> Result<Root, disk::Error> {
    for above in directory.ancestors() {
        let is_open = above.parent().is_some_and(|p| disk.is_open_to_all(p).unwrap_or(true));
        let owner =
            if is_open { disk.foreign_owner(above).during("look at", above)? } else { None };
        if let Some(owner) = owner {
            return Err(disk::refused(DiskErrorKind::OtherUser(owner))).during("use", above);
        }
    }
    Root::locate(disk, directory)
}

/// Returns whether this is the name of an entry. Other files, such as unfinished ones, are ignored.
fn is_entry(name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let digits = name.strip_suffix(EXTENSION);
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.bytes().all(is_digit))
}

/// Returns whether a directory does not exist. A directory that cannot be looked at exists: its
/// reader reports the problem.
fn is_missing(disk: &dyn Disk, directory: &Path) -> bool {
    match disk.metadata(directory) {
        Ok(Metadata::Directory) => false,
        Ok(Metadata::File(_)) => true,
        Err(error) => is_absent(&error),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests;
