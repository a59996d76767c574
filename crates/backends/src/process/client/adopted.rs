//! Finding a client that an earlier owner started.
//!
//! A pid alone proves nothing: boot id, start time and marker must match. The identity file with
//! these values is written right after the start. If the owner died before that, the process table
//! is searched for a group leader that carries the marker and writes to the transcript.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use super::Client;
use super::disk_reservation::DiskReservations;
use super::exit::Exit;
use super::identity_file::IdentityFile;
use crate::process::Marker;
use crate::process::files::{OutputFiles, open_regular};
use crate::process::followed::{FollowedFile, UnreadableFile};
use crate::process::table::{self, Entry, Identity};
use crate::process::tree::Tree;

/// Returns the running client with this marker, if there is one. It is read from the beginning of
/// the transcript. Without a transcript no client was started; a transcript that cannot be opened
/// is an error.
pub fn adopt(marker: &Marker, files: &OutputFiles) -> Result<Option<Client>, UnreadableFile> {
    match open(files) {
        Ok((followed, reservations)) => Ok(running(marker, files, followed, reservations)),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the machine restarted since the client of this transcript started, or `None` if
/// no identity file exists.
pub fn restarted_since(transcript: &Path) -> Option<bool> {
    IdentityFile::beside(transcript).read().map(|named| named.boot != table::boot())
}

/// Whether the client of these files may have been started. Its owner creates the stderr file last
/// before the start and writes the identity file right after it. A file whose existence cannot be
/// checked may exist.
pub fn was_started(files: &OutputFiles) -> bool {
    let may_exist = |path: &Path| match fs::symlink_metadata(path) {
        Err(error) => error.kind() != io::ErrorKind::NotFound,
        Ok(_) => true,
    };
    may_exist(&files.stderr) || may_exist(IdentityFile::beside(&files.stdout).path())
}

fn open(files: &OutputFiles) -> Result<([FollowedFile; 2], DiskReservations), UnreadableFile> {
    let open_both = |path: &Path| {
        let unreadable = |source| UnreadableFile { path: path.to_owned(), source };
        // Opened for appending, too, because reserving disk space needs a writable descriptor.
        let appended = open_regular(OpenOptions::new().append(true), path);
        let opened = appended.and_then(|file| Ok((file, FollowedFile::from_start(path)?)));
        opened.map_err(unreadable)
    };
    let (stdout, followed_stdout) = open_both(&files.stdout)?;
    let (stderr, followed_stderr) = open_both(&files.stderr)?;
    let reservations = DiskReservations::of([&stdout, &stderr], files);
    let unreadable = |source| UnreadableFile { path: files.stdout.clone(), source };
    Ok(([followed_stdout, followed_stderr], reservations.map_err(unreadable)?))
}

fn running(
    marker: &Marker,
    files: &OutputFiles,
    [stdout, stderr]: [FollowedFile; 2],
    reservations: DiskReservations,
) -> Option<Client> {
    let identity = match IdentityFile::beside(&files.stdout).read() {
        // A pid from before a restart has no meaning.
        Some(named) => (named.boot == table::boot()).then_some(named.identity)?,
        None => search(marker, &stdout)?,
    };
    // The descriptor is opened before the comparison, so all values belong to one process.
    let descriptor = table::exit_descriptor(identity.pid)?;
    let entry = table::living(identity.pid).filter(|entry| entry.identity == identity)?;
    is_marked(identity, marker).then_some(())?;
    let tree = Tree::for_adopted(entry, marker.clone());
    Some(Client::new(Exit::Adopted(descriptor), identity, tree, [stdout, stderr], reservations))
}

/// Returns the oldest process that can only be the client.
fn search(marker: &Marker, transcript: &FollowedFile) -> Option<Identity> {
    // A session leader is a daemon of the client, because a process that leads a group from its
    // start cannot create a session.
    let transcript = transcript.file().metadata().ok()?;
    let is_client = |entry: &Entry| {
        let Entry { identity, group, session, .. } = *entry;
        group == identity.pid
            && session != identity.pid
            && is_marked(identity, marker)
            && table::writes_to(identity, &transcript)
    };
    let found = table::snapshot(None).into_iter().filter(is_client);
    found.map(|entry| entry.identity).min_by_key(|identity| (identity.start_time, identity.pid))
}

/// Whether this turn started the process, and not a run inside this turn.
fn is_marked(identity: Identity, marker: &Marker) -> bool {
    table::marks(identity).innermost().as_ref() == Some(marker)
}
