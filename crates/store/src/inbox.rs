//! Requests to a running run, one file each: `inbox/<key>.json`.
//!
//! Anybody may post; only the run's owner takes. A request is durable once it is posted, and stays
//! until the owner has committed it and removes it; the same key again is the same request. A file
//! that cannot be a request is moved aside and reported, and stops nobody. An empty file is a request whose
//! key says everything: it fits on a full disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::IgnoredAny;

use crate::ballast::Ballast;
use crate::disk::{self, Disk, During as _, Metadata, Trouble, sync_parent};
use crate::place::{self, Durability};

/// The largest request.
pub const MAX: u64 = 16 * 1024 * 1024;

/// The inbox of one run.
#[derive(Debug, Clone)]
pub struct Inbox {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it is known by.
    pub key: String,
    /// The JSON that was posted; nothing when the disk was full.
    pub bytes: Vec<u8>,
}

/// A file that is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    /// Its name in the inbox.
    pub name: String,
    /// What is wrong with it.
    pub why: Why,
    /// Where it was moved, unless that failed.
    pub moved: Option<PathBuf>,
}

/// What is wrong with a file in an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The name is not `<key>.json`.
    #[error("its name is not a key with .json")]
    Name,
    /// The content is not JSON.
    #[error("it is not JSON")]
    Json,
    /// It is larger than [`MAX`].
    #[error("it is too large")]
    Size,
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable,
}

/// What an inbox holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The requests, sorted by key.
    pub messages: Vec<Message>,
    /// What was moved aside.
    pub garbage: Vec<Garbage>,
}

/// Whether a request is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// It is.
    New,
    /// The same key waits in the inbox already.
    Already,
}

/// Why a request cannot be posted or taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// It cannot be a key.
    #[error("{0:?} is not a key of letters, digits, `-` and `_`")]
    BadKey(String),
}

impl Error {
    fn is_full(&self) -> bool {
        matches!(self, Self::Disk(error) if error.trouble() == Trouble::Full)
    }
}

impl Inbox {
    /// The inbox in `directory`, which exists.
    pub fn new(disk: Arc<dyn Disk>, directory: PathBuf) -> Self {
        Self { disk, directory }
    }

    /// Posts a request. The first one of a key counts.
    pub fn post(&self, key: &str, json: &[u8]) -> Result<Posted, Error> {
        let path = self.path(key)?;
        let disk = self.disk.as_ref();
        if disk::exists(disk, &path)? {
            // Whoever posted it may have died before the sync.
            sync_parent(disk, &path)?;
            return Ok(Posted::Already);
        }
        place::place(disk, &path, json, Durability::Durable)?;
        Ok(Posted::New)
    }

    /// Posts a request whose key says everything, on a full disk as well: without its content, or else at
    /// the expense of the ballast. The ballast is the last resort, because the owner needs it to record the
    /// request.
    pub fn post_anyhow(&self, key: &str, json: &[u8], ballast: &Ballast) -> Result<Posted, Error> {
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

    /// Reads every request, and moves aside what is none. Requests stay until they are removed.
    pub fn take_all(&self) -> Result<Taken, Error> {
        let mut taken = Taken::default();
        let names = match self.disk.list(&self.directory) {
            // The directory vanished; whoever owns the run restores it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(taken),
            names => names.during("list", &self.directory)?,
        };
        for name in names {
            let name = name.to_string_lossy().into_owned();
            if place::is_temporary(&name) || is_aside(&name) {
                continue;
            }
            match self.read(&name) {
                Ok(message) => taken.messages.push(message),
                Err(why) => taken.garbage.push(self.set_aside(name, why)),
            }
        }
        Ok(taken)
    }

    /// Removes a request that was dealt with. One that is gone already is fine.
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

    fn read(&self, name: &str) -> Result<Message, Why> {
        let key = name.strip_suffix(".json").filter(|key| is_key(key));
        let key = key.ok_or(Why::Name)?.to_owned();
        let path = self.directory.join(name);
        match self.disk.metadata(&path) {
            Ok(Metadata::File(size)) if size > MAX => return Err(Why::Size),
            Ok(Metadata::File(_)) => {}
            Ok(Metadata::Directory) | Err(_) => return Err(Why::Unreadable),
        }
        let bytes = disk::read(self.disk.as_ref(), &path).map_err(|_| Why::Unreadable)?;
        if bytes.is_empty() || serde_json::from_slice::<IgnoredAny>(&bytes).is_ok() {
            Ok(Message { key, bytes })
        } else {
            Err(Why::Json)
        }
    }

    fn set_aside(&self, name: String, why: Why) -> Garbage {
        let free = |path: &PathBuf| !disk::exists(self.disk.as_ref(), path).unwrap_or(true);
        let places = (1_u32..100).map(|n| self.directory.join(format!("{name}.bad-{n}")));
        let moved = places.into_iter().find(free);
        let from = self.directory.join(&name);
        let rename = |to: &PathBuf| self.disk.rename(&from, to).is_ok();
        let moved = moved.filter(rename);
        Garbage { name, why, moved }
    }
}

fn is_key(key: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !key.is_empty() && key.len() <= 200 && key.bytes().all(allowed)
}

fn is_aside(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| e.starts_with("bad-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ballast::Freed;
    use crate::disk::memory::Fault;
    use crate::disk::{Files, Memory};

    /// What the owner finds of a request, and what is left of the ballast, after `before` was done to the disk.
    fn posted(before: impl FnOnce(&Memory)) -> (Vec<u8>, Freed) {
        let memory = Memory::new(0);
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        memory.create_dir(Path::new("/inbox")).unwrap();
        let ballast = Ballast::new(Arc::clone(&disk), "/ballast".into());
        ballast.fill().unwrap();
        let inbox = Inbox::new(disk, "/inbox".into());
        before(&memory);
        assert_eq!(inbox.post_anyhow("stop-1", b"{}", &ballast).unwrap(), Posted::New);
        let taken = inbox.take_all().unwrap();
        let [message] = &taken.messages[..] else { panic!("{taken:?}") };
        assert_eq!((message.key.as_str(), taken.garbage.len()), ("stop-1", 0));
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
                let full = Fault::Fail(io::ErrorKind::StorageFull);
                memory.plan(memory.call_count() + call, full);
            }
        };
        assert_eq!(posted(refuses), (b"{}".to_vec(), Freed::Nothing));
    }

    #[test]
    fn other_troubles_of_the_disk_cost_no_ballast() {
        let memory = Memory::new(0);
        let disk: Arc<dyn Disk> = Arc::new(memory);
        let ballast = Ballast::new(Arc::clone(&disk), "/ballast".into());
        ballast.fill().unwrap();
        let inbox = Inbox::new(disk, "/missing".into());
        inbox.post_anyhow("stop-1", b"{}", &ballast).unwrap_err();
        inbox.post_anyhow("no key", b"{}", &ballast).unwrap_err();
        assert_eq!(ballast.free().unwrap(), Freed::Room);
    }

    #[test]
    fn a_request_that_is_too_large_is_not_even_read() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(MAX, 16_777_216);
        for (name, size) in [("a.json", MAX), ("b.json", MAX + 1), ("c.json", MAX + 2)] {
            let file = std::fs::File::create(directory.path().join(name)).unwrap();
            file.set_len(size).unwrap();
        }
        let inbox = Inbox::new(Arc::new(Files), directory.path().to_owned());
        let garbage = inbox.take_all().unwrap().garbage;
        let why: Vec<Why> = garbage.into_iter().map(|garbage| garbage.why).collect();
        assert_eq!(why, [Why::Json, Why::Size, Why::Size]);
    }
}
