//! Requests to the owner of a run, one file each: `inbox/<key>.json`.
//!
//! Every process may post, but only the owner of the run reads. A posted request is durable, and
//! stays until the owner has recorded it and removes it. The same key is the same request. A file
//! that is not a request is renamed and reported. An empty file is a request whose key contains
//! everything, because that fits on a full disk. The meaning of requests is in
//! `raymond_engine::request`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::IgnoredAny;

use crate::atomic_file::{self, Durability};
use crate::ballast::Ballast;
use crate::disk::{self, Disk, DiskErrorKind, During as _, Metadata, sync_parent};

/// The largest request in bytes. Stop requests have about 100; the limit keeps a hostile file from
/// filling the memory of the owner.
pub const MAX_REQUEST_BYTES: u64 = 16 * 1024 * 1024;

/// The inbox of one run.
#[derive(Debug, Clone)]
pub struct Inbox {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxMessage {
    pub key: String,
    /// The JSON of the request, or nothing if the disk was full.
    pub bytes: Vec<u8>,
}

/// A file that is not a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidFile {
    /// The name in the inbox.
    pub name: String,
    pub why: InvalidReason,
    /// The new path, unless renaming failed.
    pub moved: Option<PathBuf>,
}

/// Why a file in an inbox is not a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReason {
    /// The name is not `<key>.json`.
    #[error("its name is not a key with .json")]
    Name,
    /// The content is not JSON.
    #[error("it is not JSON")]
    Json,
    /// The file is larger than [`MAX_REQUEST_BYTES`].
    #[error("it is too large")]
    Size,
    #[error("it cannot be read")]
    Unreadable,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InboxContent {
    /// The requests, sorted by key.
    pub messages: Vec<InboxMessage>,
    /// The files that are not requests.
    pub invalid: Vec<InvalidFile>,
}

/// Whether a request is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    New,
    /// The inbox already contains the same key.
    Already,
}

/// Why a request cannot be posted or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Disk(#[from] disk::Error),
    #[error("{0:?} is not a key of letters, digits, `-` and `_`")]
    BadKey(String),
}

impl Error {
    fn is_full(&self) -> bool {
        matches!(self, Self::Disk(error) if error.kind() == DiskErrorKind::Full)
    }
}

impl Inbox {
    /// Returns the inbox in `directory`, which must exist.
    pub fn new(disk: Arc<dyn Disk>, directory: PathBuf) -> Self {
        Self { disk, directory }
    }

    /// Posts a request. If the key exists, the first request counts.
    pub fn post(&self, key: &str, json: &[u8]) -> Result<Posted, Error> {
        let path = self.path(key)?;
        let disk = self.disk.as_ref();
        if disk::exists(disk, &path)? {
            // The process that posted it may have died before the sync.
            sync_parent(disk, &path)?;
            return Ok(Posted::Already);
        }
        atomic_file::write(disk, &path, json, Durability::Durable)?;
        Ok(Posted::New)
    }

    /// Posts a request whose key contains everything, even on a full disk: first as an empty file,
    /// then by freeing the ballast. The ballast is the last resort, because the owner needs it to
    /// record the request.
    pub fn post_despite_full_disk(
        &self,
        key: &str,
        json: &[u8],
        ballast: &Ballast,
    ) -> Result<Posted, Error> {
        let posted = match self.post(key, json) {
            Err(error) if error.is_full() => self.post(key, b""),
            posted => posted,
        };
        match posted {
            Err(error) if error.is_full() => {
                ballast.free()?;
                self.post(key, json)
            }
            posted => posted,
        }
    }

    /// Reads all requests, and renames files that are not requests. Requests stay until they are
    /// removed.
    pub fn take_all(&self) -> Result<InboxContent, Error> {
        let mut taken = InboxContent::default();
        let names = match self.disk.list(&self.directory) {
            // The directory was deleted. The owner of the run restores it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(taken),
            names => names.during("list", &self.directory)?,
        };
        for name in names {
            let name = name.to_string_lossy().into_owned();
            // Unfinished files belong to a process that is posting now. Renamed files were
            // reported.
            if atomic_file::is_temporary(&name) || is_set_aside(&name) {
                continue;
            }
            match self.read(&name) {
                Ok(message) => taken.messages.push(message),
                Err(why) => taken.invalid.push(self.set_aside(name, why)),
            }
        }
        Ok(taken)
    }

    /// Removes an answered request. A missing request is not an error.
    pub fn remove(&self, key: &str) -> Result<(), Error> {
        let path = self.path(key)?;
        match self.disk.remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => Ok(removed.during("remove", &path)?),
        }
    }

    fn path(&self, key: &str) -> Result<PathBuf, Error> {
        if is_key(key) {
            Ok(self.directory.join(format!("{key}.json")))
        } else {
            Err(Error::BadKey(key.to_owned()))
        }
    }

    fn read(&self, name: &str) -> Result<InboxMessage, InvalidReason> {
        let key = name.strip_suffix(".json").filter(|key| is_key(key));
        let key = key.ok_or(InvalidReason::Name)?.to_owned();
        let path = self.directory.join(name);
        match self.disk.metadata(&path) {
            // Checked before reading, because any process of this user can put a huge file here.
            Ok(Metadata::File(size)) if size > MAX_REQUEST_BYTES => {
                return Err(InvalidReason::Size);
            }
            Ok(Metadata::File(_)) => {}
            Ok(Metadata::Directory) | Err(_) => return Err(InvalidReason::Unreadable),
        }
        let bytes = disk::read(self.disk.as_ref(), &path).map_err(|_| InvalidReason::Unreadable)?;
        if bytes.is_empty() || serde_json::from_slice::<IgnoredAny>(&bytes).is_ok() {
            Ok(InboxMessage { key, bytes })
        } else {
            Err(InvalidReason::Json)
        }
    }

    fn set_aside(&self, name: String, why: InvalidReason) -> InvalidFile {
        let free = |path: &PathBuf| !disk::exists(self.disk.as_ref(), path).unwrap_or(true);
        // After 99 bad files of one name the next one stays in place, and is only reported.
        let places = (1_u32..100).map(|n| self.directory.join(format!("{name}.bad-{n}")));
        let moved = places.into_iter().find(free);
        let from = self.directory.join(&name);
        let rename = |to: &PathBuf| self.disk.rename(&from, to).is_ok();
        let moved = moved.filter(rename);
        InvalidFile { name, why, moved }
    }
}

fn is_key(key: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    // 200 bytes leave room for the temporary name, which contains the key: file systems allow 255.
    !key.is_empty() && key.len() <= 200 && key.bytes().all(allowed)
}

fn is_set_aside(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| e.starts_with("bad-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ballast::Freed;
    use crate::disk::memory::DiskFault;
    use crate::disk::{Memory, RealDisk};

    /// Posts a request after `before` has changed the disk. Returns the bytes that the owner reads,
    /// and whether the ballast still existed.
    fn posted(before: impl FnOnce(&Memory)) -> (Vec<u8>, Freed) {
        let memory = Memory::new(0);
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        memory.create_dir(Path::new("/inbox")).unwrap();
        let ballast = Ballast::new(Arc::clone(&disk), "/ballast".into());
        ballast.fill().unwrap();
        let inbox = Inbox::new(disk, "/inbox".into());
        before(&memory);
        assert_eq!(inbox.post_despite_full_disk("stop-1", b"{}", &ballast).unwrap(), Posted::New);
        let taken = inbox.take_all().unwrap();
        let [message] = &taken.messages[..] else { panic!("{taken:?}") };
        assert_eq!((message.key.as_str(), taken.invalid.len()), ("stop-1", 0));
        (message.bytes.clone(), ballast.free().unwrap())
    }

    #[test]
    fn request_fits_on_a_full_disk() {
        assert_eq!(posted(|_| {}), (b"{}".to_vec(), Freed::Room));
        let fills = |memory: &Memory| memory.set_capacity(Some(memory.used()));
        assert_eq!(posted(fills), (Vec::new(), Freed::Room));
        // The disk has no room for another file: it is looked for, and cannot be created, twice.
        let refuses = |memory: &Memory| {
            for call in [1, 3] {
                let full = DiskFault::Fail(io::ErrorKind::StorageFull);
                memory.plan(memory.call_count() + call, full);
            }
        };
        assert_eq!(posted(refuses), (b"{}".to_vec(), Freed::Nothing));
    }

    #[test]
    fn other_disk_errors_free_no_ballast() {
        let memory = Memory::new(0);
        let disk: Arc<dyn Disk> = Arc::new(memory);
        let ballast = Ballast::new(Arc::clone(&disk), "/ballast".into());
        ballast.fill().unwrap();
        let inbox = Inbox::new(disk, "/missing".into());
        inbox.post_despite_full_disk("stop-1", b"{}", &ballast).unwrap_err();
        inbox.post_despite_full_disk("no key", b"{}", &ballast).unwrap_err();
        assert_eq!(ballast.free().unwrap(), Freed::Room);
    }

    #[test]
    fn too_large_request_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(MAX_REQUEST_BYTES, 16_777_216);
        for (name, size) in [
            ("a.json", MAX_REQUEST_BYTES),
            ("b.json", MAX_REQUEST_BYTES + 1),
            ("c.json", MAX_REQUEST_BYTES + 2),
        ] {
            let file = std::fs::File::create(directory.path().join(name)).unwrap();
            file.set_len(size).unwrap();
        }
        let inbox = Inbox::new(Arc::new(RealDisk), directory.path().to_owned());
        let invalid = inbox.take_all().unwrap().invalid;
        let why: Vec<InvalidReason> = invalid.into_iter().map(|invalid| invalid.why).collect();
        assert_eq!(why, [InvalidReason::Json, InvalidReason::Size, InvalidReason::Size]);
    }
}
