//! How a client is started so that nothing of its owner is needed afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::Client;
use super::adopted::IdentityFile;
use super::exit::Exit;
use super::followed::Followed;
use crate::process::tree::Tree;
use crate::process::{Input, Spec, child, outer_markers};

/// Where the words of a client go. Its stdout is its transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Its stdout. The file with the extension `pid` beside it says which process the client is.
    pub stdout: PathBuf,
    /// Its stderr.
    pub stderr: PathBuf,
}

/// Starts a client that leads its own group. Files that exist are appended to, and what they hold is
/// not heard again. Needs a runtime with IO and time.
pub fn start_client(spec: Spec, files: &Files) -> io::Result<Client> {
    let identity_file = IdentityFile::beside(&files.stdout);
    // The one of an earlier client would be believed rather than the table searched.
    identity_file.remove()?;
    let (stdout, stderr) = (append(&files.stdout)?, append(&files.stderr)?);
    let followed = [Followed::from_end(&files.stdout)?, Followed::from_end(&files.stderr)?];
    let mut command = spec.command(outer_markers());
    command.process_group(0).stdin(input(&spec.stdin, &files.stdout)?);
    command.stdout(stdout).stderr(stderr);
    let child = child::spawn(command)?;
    let identity = child.identity();
    // Without it, the client is found by a search.
    let _full_disk = identity_file.write(identity);
    let tree = Tree::of_group(identity.pid, spec.marker);
    Ok(Client::new(Exit::OfChild(child), identity, tree, followed))
}

/// A private file to append to.
pub(in crate::process) fn append(path: &Path) -> io::Result<Stdio> {
    Ok(private(OpenOptions::new().append(true), path)?.into())
}

/// A file that nobody else can read, created where there is none.
pub(in crate::process) fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.create(true).mode(0o600).open(path)
}

/// The whole input, written before there is a client: an owner that dies cannot cut it short.
fn input(input: &Input, transcript: &Path) -> io::Result<Stdio> {
    let bytes = match input {
        Input::Null => return Ok(Stdio::null()),
        Input::Bytes(bytes) => bytes,
    };
    Ok(match in_pipe(bytes) {
        Some(pipe) => pipe.into(),
        None => in_file(bytes, transcript)?.into(),
    })
}

/// In a pipe, if one holds all of it; most do, and a file that is created and removed costs more than all the rest.
fn in_pipe(bytes: &[u8]) -> Option<PipeReader> {
    let (reader, mut writer) = io::pipe().ok()?;
    rustix::io::ioctl_fionbio(&writer, true).ok()?;
    let length = writer.write(bytes).ok()?;
    (length == bytes.len()).then_some(reader)
}

/// In a file without a name.
fn in_file(bytes: &[u8], transcript: &Path) -> io::Result<File> {
    let path = transcript.with_extension("stdin");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = private(OpenOptions::new().write(true).create_new(true), &path)?;
    let complete = file.write_all(bytes).and_then(|()| File::open(&path));
    fs::remove_file(&path)?;
    complete
}
