//! The files of a client: where they are, and how to open them without blocking.
//!
//! Another process may have replaced a file. Opening a FIFO blocks until its other end is opened,
//! and reading a device may never end. Both are refused.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::{Errno, ioctl_fionbio};

/// The output files of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFiles {
    /// The transcript. The file beside it with the extension `pid` identifies the process.
    pub stdout: PathBuf,
    pub stderr: PathBuf,
}

impl OutputFiles {
    /// Returns the files of the client that writes this transcript.
    pub fn for_turn(transcript: &Path) -> Self {
        Self { stdout: transcript.to_owned(), stderr: transcript.with_extension("stderr") }
    }
}

/// Opens a regular file; every other kind is an error.
pub(super) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.union(OFlags::NOCTTY);
    let file = match options.custom_flags(flags.bits().cast_signed()).open(path) {
        // A FIFO without a reader, or a socket.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            return Err(not_regular());
        }
        opened => opened?,
    };
    // Checked after opening: the path could be replaced between a check and the opening.
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    // The client inherits this descriptor and expects blocking writes.
    ioctl_fionbio(&file, false)?;
    Ok(file)
}

pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    open_regular(OpenOptions::new().read(true), path)
}

/// Opens a private file to append to.
pub(super) fn append(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().append(true), path)
}

/// Opens a file that only this user can read, and creates it if it is missing.
pub(super) fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_regular(options.create(true).mode(0o600), path)
}

/// Replaces the content of a file that only this user can read.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    private(OpenOptions::new().write(true).truncate(true), path)?.write_all(content)
}

/// Reads a small regular file, at most its first 16 MiB.
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    const MOST: u64 = 16 * 1024 * 1024;
    let mut bytes = Vec::new();
    open_to_read(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Removes a file if it exists.
pub(super) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Describes why a file cannot be written or read.
pub(crate) fn cause(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC) => "the disk is full".to_owned(),
        Some(Errno::DQUOT) => "the disk quota is used up".to_owned(),
        Some(Errno::ROFS) => "the file system is read-only".to_owned(),
        Some(Errno::ACCESS | Errno::PERM) => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    // proves: A32
    #[test]
    fn only_regular_files_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        mknodat(CWD, place("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
        fs::write(place("file"), "x").unwrap();
        assert_eq!(read_regular(&place("file")).unwrap(), b"x");
        for path in [place("fifo"), place("socket"), "/dev/zero".into()] {
            for options in [OpenOptions::new().read(true), OpenOptions::new().append(true)] {
                let error = open_regular(options, &path).unwrap_err();
                assert_eq!(error.to_string(), "it is not a regular file", "{}", path.display());
            }
        }
    }

    #[test]
    fn causes_are_described() {
        let check = |errno: Errno, expected: &str| assert_eq!(cause(&errno.into()), expected);
        check(Errno::NOSPC, "the disk is full");
        check(Errno::DQUOT, "the disk quota is used up");
        check(Errno::ROFS, "the file system is read-only");
        check(Errno::ACCESS, "permission denied");
        check(Errno::IO, "Input/output error (os error 5)");
    }
}
