//! Blobs: large texts, stored under the BLAKE3 hash of their content.
//!
//! A blob is durable before [`Blobs::put`] returns, so that a record may refer to it. A blob never
//! changes, and the same content is stored once. Reading verifies the hash: a blob that does not
//! match its name is damaged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::atomic_file::{self, Durability, Temporary};
use crate::ballast::Ballast;
use crate::disk::{self, Disk, DiskErrorKind, During as _, OpenMode, sync_parent};

/// The bytes that are copied at a time.
const COPY_BYTES: usize = 64 * 1024;

/// The blobs of one run.
#[derive(Debug)]
pub struct Blobs {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    ballast: Option<Ballast>,
    /// The blobs that are known to be durable. A file that another process wrote may not be synced.
    durable: Mutex<BTreeSet<String>>,
}

/// Why a blob cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Disk(#[from] disk::Error),
    #[error("{0:?} is not the hash of a blob")]
    BadHash(String),
    #[error("blob {0} is missing")]
    Missing(String),
    /// The content differs from what was stored.
    #[error("blob {hash} is damaged: {} does not match its name", path.display())]
    Damaged { hash: String, path: PathBuf },
}

impl Blobs {
    /// Returns the blobs in `directory`, which must exist.
    pub fn new(disk: Arc<dyn Disk>, directory: PathBuf) -> Self {
        Self { disk, directory, ballast: None, durable: Mutex::new(BTreeSet::new()) }
    }

    /// Frees this ballast when the disk is full.
    #[must_use]
    pub fn with_ballast(mut self, ballast: Ballast) -> Self {
        self.ballast = Some(ballast);
        self
    }

    /// Stores `bytes` durably, and returns their hash as 64 hexadecimal digits.
    pub fn put(&self, bytes: &[u8]) -> Result<String, Error> {
        let hash = blake3::hash(bytes).to_hex().to_string();
        if self.is_stored(&hash)? {
            return Ok(hash);
        }
        self.with_room(|| {
            let path = self.path(&hash);
            atomic_file::write(self.disk.as_ref(), &path, bytes, Durability::Durable)
        })?;
        self.remember(&hash);
        Ok(hash)
    }

    /// Stores a copy of the file at `path`, and returns its hash and its length.
    pub fn put_file(&self, path: &Path) -> Result<(String, u64), Error> {
        let stored = self.with_room(|| self.copy(path))?;
        self.remember(&stored.0);
        Ok(stored)
    }

    /// Reads and verifies a blob.
    pub fn get(&self, hash: &str) -> Result<Vec<u8>, Error> {
        check_hash(hash)?;
        let path = self.path(hash);
        let bytes = disk::read(self.disk.as_ref(), &path).map_err(|error| match error.kind() {
            DiskErrorKind::Missing => Error::Missing(hash.to_owned()),
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

    /// Returns whether the blob exists undamaged, and makes it durable. A damaged blob is stored
    /// again.
    fn is_stored(&self, hash: &str) -> Result<bool, Error> {
        let path = self.path(hash);
        // The file is looked for even if it is known: another program may have deleted the
        // directory.
        if self.is_known(hash) && disk::exists(self.disk.as_ref(), &path)? {
            return Ok(true);
        }
        match self.get(hash) {
            Ok(_) => {
                // Another process may have died between the rename and this sync.
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
        let mut source = disk.open(from, OpenMode::Read).during("open", from)?;
        // The hash, and so the name, is known only after the last byte.
        let mut copy = Temporary::new(disk, &self.directory, "copy")?;
        let (mut hasher, mut length) = (blake3::Hasher::new(), 0);
        let mut chunk = vec![0; COPY_BYTES];
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
        copy.persist(&self.path(&hash), Durability::Durable)?;
        Ok((hash, length))
    }

    /// Stores a blob. On a full disk it frees the ballast and tries once more.
    fn with_room<T>(&self, store: impl Fn() -> Result<T, disk::Error>) -> Result<T, disk::Error> {
        // The directory may have been deleted while the run is active. The owner restores the rest
        // of it at its next tick.
        let store = || {
            store().or_else(|error| match error.kind() {
                DiskErrorKind::Missing => {
                    disk::create_dirs_above(self.disk.as_ref(), &self.directory)?;
                    store()
                }
                _ => Err(error),
            })
        };
        store().or_else(|error| match (&self.ballast, error.kind()) {
            (Some(ballast), DiskErrorKind::Full) => {
                ballast.free()?;
                store()
            }
            _ => Err(error),
        })
    }
}

fn check_hash(hash: &str) -> Result<(), Error> {
    // A hash comes from a record and becomes a file name: nothing else may reach the path.
    let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if hash.len() == 64 && hash.bytes().all(digit) {
        Ok(())
    } else {
        Err(Error::BadHash(hash.to_owned()))
    }
}
