//! Requests to a running run, one file each: `inbox/<key>.json`.
//!
//! Anybody may post; only the run's owner takes. A request is durable once it is posted, and stays
//! until the owner has committed it and removes it; the same key again is the same request. A file
//! that cannot be a request is moved aside and reported, and stops nobody.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::IgnoredAny;

use crate::disk::{self, Disk, During as _, Metadata, sync_parent};
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
    /// The JSON that was posted.
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
        match serde_json::from_slice::<IgnoredAny>(&bytes) {
            Ok(_) => Ok(Message { key, bytes }),
            Err(_) => Err(Why::Json),
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
    use crate::disk::Files;

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
