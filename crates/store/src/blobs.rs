//! Large texts, each under the BLAKE3 of its content.
//!
//! A blob is durable before [`Blobs::put`] returns, so that a record may name it. It never changes;
//! the same content is stored once. Reading verifies: a blob that does not match its name is damage.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::ballast::Ballast;
use crate::disk::{self, Disk, During as _, Open, Trouble, sync_parent};
use crate::place::{self, Durability, Temporary};

/// How much of a file is copied at a time.
const CHUNK: usize = 64 * 1024;

/// The blobs of one run.
#[derive(Debug)]
pub struct Blobs {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    ballast: Option<Ballast>,
    /// Those that are known to be durable: a name that another process left may not be.
    durable: Mutex<BTreeSet<String>>,
}

/// Why a blob cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// It is not the name of a blob.
    #[error("{0:?} is not the hash of a blob")]
    BadHash(String),
    /// There is no such blob.
    #[error("blob {0} is missing")]
    Missing(String),
    /// Its content is not what was stored.
    #[error("blob {hash} is damaged: {} does not match its name", path.display())]
    Damaged {
        /// Its name.
        hash: String,
        /// Where it is.
        path: PathBuf,
    },
}

impl Blobs {
    /// The blobs in `directory`, which exists.
    pub fn new(disk: Arc<dyn Disk>, directory: PathBuf) -> Self {
        Self { disk, directory, ballast: None, durable: Mutex::new(BTreeSet::new()) }
    }

    /// Gives up this ballast when the disk is full.
    #[must_use]
    pub fn with_ballast(mut self, ballast: Ballast) -> Self {
        self.ballast = Some(ballast);
        self
    }

    /// Stores `bytes` durably and returns their hash: 64 hexadecimal digits.
    pub fn put(&self, bytes: &[u8]) -> Result<String, Error> {
        let hash = blake3::hash(bytes).to_hex().to_string();
        if self.is_stored(&hash)? {
            return Ok(hash);
        }
        self.with_room(|| {
            let path = self.path(&hash);
            place::place(self.disk.as_ref(), &path, bytes, Durability::Durable)
        })?;
        self.remember(&hash);
        Ok(hash)
    }

    /// Stores the content of the file at `path`, which stays; returns its hash and its length.
    pub fn put_file(&self, path: &Path) -> Result<(String, u64), Error> {
        let stored = self.with_room(|| self.copy(path))?;
        self.remember(&stored.0);
        Ok(stored)
    }

    /// The content of a blob, verified.
    pub fn get(&self, hash: &str) -> Result<Vec<u8>, Error> {
        check_hash(hash)?;
        let path = self.path(hash);
        let bytes =
            disk::read(self.disk.as_ref(), &path).map_err(|error| match error.trouble() {
                Trouble::Missing => Error::Missing(hash.to_owned()),
                _ => Error::Disk(error),
            })?;
        if blake3::hash(&bytes).to_hex().as_str() == hash {
            return Ok(bytes);
        }
        let hash = hash.to_owned();
        Err(Error::Damaged { hash, path })
    }

    fn path(&self, hash: &str) -> PathBuf {
        self.directory.join(hash)
    }

    fn remember(&self, hash: &str) {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        durable.insert(hash.to_owned());
    }

    fn is_known(&self, hash: &str) -> bool {
        let durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        durable.contains(hash)
    }

    /// Whether the blob is there, whole; if so it is durable. One that is damaged is stored anew.
    fn is_stored(&self, hash: &str) -> Result<bool, Error> {
        let path = self.path(hash);
        if self.is_known(hash) && disk::exists(self.disk.as_ref(), &path)? {
            return Ok(true);
        }
        match self.get(hash) {
            Ok(_) => {
                sync_parent(self.disk.as_ref(), &path)?;
                self.remember(hash);
                Ok(true)
            }
            Err(Error::Missing(_) | Error::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn copy(&self, from: &Path) -> Result<(String, u64), disk::Error> {
        let disk = self.disk.as_ref();
        let mut source = disk.open(from, Open::Read).during("open", from)?;
        let mut copy = Temporary::new(disk, &self.directory, "copy")?;
        let (mut hasher, mut length) = (blake3::Hasher::new(), 0);
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = source.read_at(length, &mut chunk).during("read", from)?;
            if count == 0 {
                break;
            }
            hasher.update(&chunk[..count]);
            copy.write(&chunk[..count])?;
            length += count as u64;
        }
        let hash = hasher.finalize().to_hex().to_string();
        copy.place(&self.path(&hash), Durability::Durable)?;
        Ok((hash, length))
    }

    /// Stores, and once more after giving up the ballast when the disk is full.
    fn with_room<T>(&self, store: impl Fn() -> Result<T, disk::Error>) -> Result<T, disk::Error> {
        // Its directory may have vanished under a living run, which puts back the rest of it.
        let store = || {
            store().or_else(|error| match error.trouble() {
                Trouble::Missing => {
                    disk::create_dirs_above(self.disk.as_ref(), &self.directory)?;
                    store()
                }
                _ => Err(error),
            })
        };
        store().or_else(|error| match (&self.ballast, error.trouble()) {
            (Some(ballast), Trouble::Full) => {
                ballast.free()?;
                store()
            }
            _ => Err(error),
        })
    }
}

fn check_hash(hash: &str) -> Result<(), Error> {
    let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if hash.len() == 64 && hash.bytes().all(digit) {
        Ok(())
    } else {
        Err(Error::BadHash(hash.to_owned()))
    }
}
