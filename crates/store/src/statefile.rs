//! Writes the state file: the state of a run for people and tools.
//!
//! The file is derived from the journal, and Raymond never reads it, so nothing is synced. A reader
//! always sees a complete file; a power cut may lose the latest one. The content comes from
//! `raymond_engine::statefile`, because this crate does not know what a run is.

use std::path::Path;

use crate::atomic_file::{self, Durability};
use crate::disk::{self, Disk};

/// Replaces the state file at `path`, in a directory that exists.
pub fn replace(disk: &dyn Disk, path: &Path, json: &[u8]) -> Result<(), disk::Error> {
    atomic_file::write(disk, path, json, Durability::Derived)
}
