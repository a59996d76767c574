//! The file beside a transcript that identifies its client.
//!
//! The owner writes it right after the start of the client. The next owner uses it to find the
//! client again: see `adopted`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::process::files::{private, read_regular, remove_if_exists};
use crate::process::table::{self, Identity};

/// The file that identifies a client: `<pid> <start time> <boot id>`.
pub(super) struct IdentityFile(PathBuf);

pub(super) struct RecordedIdentity {
    pub(super) identity: Identity,
    /// The boot id of the machine at the start of the client.
    pub(super) boot: String,
}

impl IdentityFile {
    pub(super) fn beside(transcript: &Path) -> Self {
        Self(transcript.with_extension("pid"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        remove_if_exists(&self.0)
    }

    /// Writes the file without a sync, because no client survives a crash of the machine.
    pub(super) fn write(&self, identity: Identity) -> io::Result<()> {
        let Identity { pid, start_time } = identity;
        let mut file = private(OpenOptions::new().write(true).truncate(true), &self.0)?;
        file.write_all(format!("{pid} {start_time} {}\n", table::boot()).as_bytes())
    }

    /// Reads the file; returns `None` if it is missing or incomplete.
    pub(super) fn read(&self) -> Option<RecordedIdentity> {
        let text = String::from_utf8(read_regular(&self.0).ok()?).ok()?;
        let mut words = text.strip_suffix('\n')?.split(' ');
        let pid = words.next()?.parse().ok()?;
        let start_time = words.next()?.parse().ok()?;
        let boot = words.next()?.to_owned();
        Some(RecordedIdentity { identity: Identity { pid, start_time }, boot })
    }
}
