//! Starting a client so that it needs nothing from its owner afterwards.
//!
//! All files exist and the whole stdin is written before the client starts. The order of these
//! steps matters for recovery; see `adopted`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, Write as _};
use std::path::Path;
use std::process::Stdio;

use rustix::io::Errno;

use super::Client;
use super::disk_reservation::{DiskReservations, forget_untouched, reserve_transcript};
use super::exit::Exit;
use super::identity_file::IdentityFile;
use crate::process::files::{OutputFiles, append, cause, private, remove_if_exists};
use crate::process::followed::FollowedFile;
use crate::process::tree::Tree;
use crate::process::{ProcessStdin, Spec, child, outer_markers};

/// The reason for which a client was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The machine lacks something that every client needs: disk space, or a free process.
    #[error("{0}")]
    Environment(String),
    /// The program cannot be run.
    #[error(transparent)]
    Program(io::Error),
}

/// Starts a client that leads its own group. Existing files are appended to, and their old content
/// is not read again. Without disk space for its files no client is started. Needs a runtime with
/// IO and time.
pub fn start_client(spec: Spec, files: &OutputFiles) -> Result<Client, StartError> {
    let prepared = Prepared::new(&spec.stdin, files)?;
    let mut command = spec.command(outer_markers());
    command.process_group(0).stdin(prepared.stdin);
    command.stdout(prepared.stdout).stderr(prepared.stderr);
    let child = child::spawn(command).map_err(not_spawned)?;
    let identity = child.identity();
    // Without the identity file, a later owner finds the client by a search.
    let _full_disk = prepared.identity_file.write(identity);
    let tree = Tree::for_group(identity.pid, spec.marker);
    Ok(Client::new(Exit::Child(child), identity, tree, prepared.followed, prepared.reservations))
}

struct Prepared {
    identity_file: IdentityFile,
    stdin: Stdio,
    stdout: File,
    stderr: File,
    followed: [FollowedFile; 2],
    reservations: DiskReservations,
}

impl Prepared {
    fn new(stdin: &ProcessStdin, files: &OutputFiles) -> Result<Self, StartError> {
        let OutputFiles { stdout, stderr } = files;
        let identity_file = IdentityFile::beside(stdout);
        // The identity file of an earlier client would be trusted, and the process table not
        // searched.
        identity_file.remove().map_err(unwritable(stdout))?;
        forget_untouched(stdout).map_err(unwritable(stdout))?;
        let out = append(stdout).map_err(unwritable(stdout))?;
        // The stderr file proves that the space of the transcript was reserved: see `is_untouched`.
        reserve_transcript(&out, stdout).map_err(StartError::Environment)?;
        let err = append(stderr).map_err(unwritable(stderr))?;
        // After a power failure, empty files prove that a client was started.
        sync_directory_of(stdout).map_err(unwritable(stdout))?;
        let reservations = DiskReservations::of([&out, &err], files).map_err(unwritable(stdout))?;
        let mut prepared = Self {
            identity_file,
            stdin: Stdio::null(),
            stdout: out,
            stderr: err,
            followed: [
                FollowedFile::from_end(stdout).map_err(unwritable(stdout))?,
                FollowedFile::from_end(stderr).map_err(unwritable(stderr))?,
            ],
            reservations,
        };
        let checked = prepared.reservations.check().map_err(StartError::Environment);
        let input = checked.and_then(|()| input(stdin, stdout).map_err(unwritable(stdout)));
        prepared.stdin = input.inspect_err(|_| prepared.reservations.release())?;
        Ok(prepared)
    }
}

fn sync_directory_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn unwritable(path: &Path) -> impl Fn(io::Error) -> StartError + '_ {
    move |error| {
        let why = format!("could not write {}: {}", path.display(), cause(&error));
        StartError::Environment(why)
    }
}

/// Returns the error of a failed spawn.
fn not_spawned(error: io::Error) -> StartError {
    // Limits of the machine or of the user would affect every other turn, too.
    const LIMITS: [Errno; 6] =
        [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::NOSPC, Errno::IO];
    let limit = error.raw_os_error().map(Errno::from_raw_os_error);
    if limit.is_some_and(|limit| LIMITS.contains(&limit)) {
        return StartError::Environment(format!("could not start a client: {}", cause(&error)));
    }
    StartError::Program(error)
}

/// Writes the whole stdin before the client starts, so that the death of the owner cannot truncate
/// it.
fn input(input: &ProcessStdin, transcript: &Path) -> io::Result<Stdio> {
    let bytes = match input {
        ProcessStdin::Null => return Ok(Stdio::null()),
        ProcessStdin::Bytes(bytes) => bytes,
    };
    Ok(match stdin_pipe(bytes) {
        Some(pipe) => pipe.into(),
        None => stdin_file(bytes, transcript)?.into(),
    })
}

/// Puts the input into a pipe if it fits.
fn stdin_pipe(bytes: &[u8]) -> Option<PipeReader> {
    // Most prompts fit, and creating and removing a file is far more expensive.
    let (reader, mut writer) = io::pipe().ok()?;
    rustix::io::ioctl_fionbio(&writer, true).ok()?;
    let length = writer.write(bytes).ok()?;
    (length == bytes.len()).then_some(reader)
}

/// Puts the input into a file without a name.
fn stdin_file(bytes: &[u8], transcript: &Path) -> io::Result<File> {
    let path = transcript.with_extension("stdin");
    remove_if_exists(&path)?;
    let mut file = private(OpenOptions::new().write(true).create_new(true), &path)?;
    let complete = file.write_all(bytes).and_then(|()| File::open(&path));
    fs::remove_file(&path)?;
    complete
}
