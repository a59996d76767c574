//! The state file: a mirror of a run for people and tools, replaced as a whole.
//!
//! It is derived from the journal and never read back, so nothing is synced: a reader always sees a
//! complete file, and a power cut may cost the latest one.

use std::path::Path;

use crate::disk::{self, Disk};
use crate::place::{self, Durability};

/// Replaces the state file at `path`, in a directory that exists.
pub fn replace(disk: &dyn Disk, path: &Path, json: &[u8]) -> Result<(), disk::Error> {
    place::place(disk, path, json, Durability::Derived)
}
