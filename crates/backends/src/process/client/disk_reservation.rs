//! Reserved disk space for the files that a client writes.
//!
//! A client writes its transcript itself, so Raymond does not see failed writes. Raymond therefore
//! reserves space before the client starts and keeps some space reserved ahead of the client. If
//! that fails, Raymond ends the client while its last output still fits into the reserve. Unused
//! space is released after the client has ended.
//!
//! Records of the run do not use this space; the ballast of the store is for them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfs, StatVfsMountFlags, fstatvfs};
use rustix::io::Errno;

use crate::process::files::{OutputFiles, cause, open_regular, private, remove_if_exists};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The space ahead of a transcript. A turn of an hour writes about 1 MiB, and its longest lines are
/// images of up to 2 MiB. Half of this is left at every poll, and there are five polls per second.
const TRANSCRIPT_AHEAD: u64 = 4 * MIB;

/// The space ahead of stderr, where a client writes a few lines at most.
const STDERR_AHEAD: u64 = 64 * KIB;

/// A disk with less free space counts as full, because clients write files of their own (sessions,
/// logs) for which nothing is reserved.
const SPARE: u64 = MIB;

/// The free space in bytes that a client needs to start.
pub const DISK_SPACE_NEEDED: u64 = TRANSCRIPT_AHEAD + STDERR_AHEAD + SPARE;

/// The reservations for both files of a client.
#[derive(Debug)]
pub(super) struct DiskReservations {
    stdout: DiskReservation,
    stderr: DiskReservation,
}

impl DiskReservations {
    /// Creates the reservations without reserving anything yet.
    pub(super) fn of([stdout, stderr]: [&File; 2], files: &OutputFiles) -> io::Result<Self> {
        let room = |file: &File, path: &Path, ahead| {
            Ok::<_, io::Error>(DiskReservation {
                file: file.try_clone()?,
                path: path.to_owned(),
                ahead,
                reserved: 0,
            })
        };
        Ok(Self {
            stdout: room(stdout, &files.stdout, TRANSCRIPT_AHEAD)?,
            stderr: room(stderr, &files.stderr, STDERR_AHEAD)?,
        })
    }

    /// Reserves the space that a client needs to start, with some to spare. The error is a message.
    pub(super) fn check(&mut self) -> Result<(), String> {
        self.stdout.check().and_then(|()| self.stderr.check())
    }

    /// Reserves more space if the files have grown to these lengths and little is left.
    pub(super) fn keep_ahead(&mut self, stdout: u64, stderr: u64) -> Result<(), String> {
        self.stdout.keep_ahead(stdout).and_then(|()| self.stderr.keep_ahead(stderr))
    }

    /// Makes every further reservation fail.
    #[cfg(test)]
    pub(super) fn reserve_too_much(&mut self) {
        self.stdout.ahead = i64::MAX.cast_unsigned();
    }

    /// Releases the space beyond the ends of the files. Space that cannot be released does no other
    /// harm.
    pub(super) fn release(&mut self) {
        (self.stdout.reserved, self.stderr.reserved) = (0, 0);
        release_transcript(&self.stdout.file, &self.stdout.path).ok();
        release(&self.stderr.file).ok();
    }
}

/// Reserves the space for a transcript. The error is a message.
pub(super) fn reserve_transcript(file: &File, path: &Path) -> Result<(), String> {
    let room = |file| DiskReservation {
        file,
        path: path.to_owned(),
        ahead: TRANSCRIPT_AHEAD,
        reserved: 0,
    };
    let mut room = file.try_clone().map(room).map_err(|error| cause(&error))?;
    room.check().inspect_err(|_| drop(release(file)))
}

/// Releases the space that an owner reserved for a client that has ended.
pub fn release_reserved_space(files: &OutputFiles) -> io::Result<()> {
    let opened = |path: &Path| match open_regular(OpenOptions::new().append(true), path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    };
    let transcript = opened(&files.stdout)
        .and_then(|file| file.map_or(Ok(()), |file| release_transcript(&file, &files.stdout)));
    opened(&files.stderr)?.map_or(Ok(()), |file| release(&file)).and(transcript)
}

/// Whether a transcript is unchanged since its space was reserved. Emptying a file releases the
/// space, so reserved blocks prove that the file was never written. Fewer blocks prove nothing,
/// because an empty file may have blocks for its attributes.
pub fn is_untouched(transcript: &Path) -> bool {
    /// In bytes: the unit of `blocks`, independent of the file system.
    const BLOCK: u64 = 512;
    let is_reserved = |blocks: u64| blocks.saturating_mul(BLOCK) >= TRANSCRIPT_AHEAD;
    fs::metadata(transcript).is_ok_and(|file| {
        // Both are needed: a transcript may be emptied, and its space may be released by the owner.
        file.len() == 0 && (is_reserved(file.blocks()) || untouched_mark(transcript).exists())
    })
}

/// Returns the path of the file that marks a transcript as untouched when its space was released.
fn untouched_mark(transcript: &Path) -> PathBuf {
    // The owner may be killed before it records the outcome, and the next owner must also find that
    // the turn was free.
    transcript.with_extension("untouched")
}

/// Removes the mark because a client is about to write.
pub(super) fn forget_untouched(transcript: &Path) -> io::Result<()> {
    remove_if_exists(&untouched_mark(transcript))
}

fn release_transcript(file: &File, path: &Path) -> io::Result<()> {
    if is_untouched(path) {
        private(OpenOptions::new().write(true), &untouched_mark(path))?;
    }
    release(file)
}

/// The reservation for one file.
#[derive(Debug)]
struct DiskReservation {
    file: File,
    path: PathBuf,
    ahead: u64,
    /// The end of the reserved space, as an offset in the file.
    reserved: u64,
}

impl DiskReservation {
    fn check(&mut self) -> Result<(), String> {
        let checked = self.length().and_then(|length| {
            self.reserve(length)?;
            has_free(&self.file, SPARE)
        });
        let spare = format!(" and leave {} free", size(SPARE));
        checked.map_err(|error| self.shortage_message(&spare, &error))
    }

    fn keep_ahead(&mut self, length: u64) -> Result<(), String> {
        // Reserving at half keeps the number of system calls low and still leaves room for the
        // longest line.
        if self.reserved.saturating_sub(length) >= self.ahead / 2 {
            return Ok(());
        }
        self.reserve(length).map_err(|error| self.shortage_message("", &error))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn reserve(&mut self, length: u64) -> io::Result<()> {
        allocate(&self.file, length, self.ahead)?;
        self.reserved = length.saturating_add(self.ahead);
        Ok(())
    }

    fn shortage_message(&self, spare: &str, error: &io::Error) -> String {
        format!(
            "could not reserve {} of disk space for {}{spare}: {}",
            size(self.ahead),
            self.path.display(),
            cause(error)
        )
    }
}

/// Formats a size: `4 MiB`, `64 KiB`.
fn size(bytes: u64) -> String {
    let kib = bytes / KIB;
    if kib.is_multiple_of(KIB) { format!("{} MiB", kib / KIB) } else { format!("{kib} KiB") }
}

/// Releases the space beyond the end of a file.
fn release(file: &File) -> io::Result<()> {
    // Setting the current length frees blocks beyond the end of the file.
    file.set_len(file.metadata()?.len())
}

/// Reserves space without changing the length of the file. If the file system cannot do that, a
/// check of the free space must suffice.
#[cfg(target_os = "linux")]
fn allocate(file: &File, offset: u64, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};

    loop {
        match fallocate(file, FallocateFlags::KEEP_SIZE, offset, length) {
            // A signal may interrupt a long allocation.
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return has_free(file, length),
            done => return Ok(done?),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(file: &File, _: u64, length: u64) -> io::Result<()> {
    has_free(file, length)
}

fn has_free(file: &File, wanted: u64) -> io::Result<()> {
    let disk = fstatvfs(file)?;
    // A read-only file system reports free space that cannot be used.
    if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(Errno::ROFS.into());
    }
    match free(&disk) {
        Some(free) if free < wanted => Err(Errno::NOSPC.into()),
        Some(_) | None => Ok(()),
    }
}

/// Returns the bytes that this user may still write, or `None` if the file system does not report
/// them.
fn free(disk: &StatVfs) -> Option<u64> {
    // Some space is reserved for root.
    let is_root = rustix::process::geteuid().is_root();
    let blocks = if is_root { disk.f_bfree } else { disk.f_bavail };
    (disk.f_blocks > 0).then(|| blocks.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_enough_free_space_is_full() {
        let file = tempfile::tempfile().unwrap();
        has_free(&file, 1).unwrap();
        let error = has_free(&file, u64::MAX).unwrap_err();
        assert_eq!(cause(&error), "the disk is full");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn only_fully_reserved_file_is_untouched() {
        let check = |reserved: u64, expected: bool| {
            let file = tempfile::NamedTempFile::new().unwrap();
            allocate(file.as_file(), 0, reserved).unwrap();
            assert_eq!(is_untouched(file.path()), expected, "{reserved}");
        };
        check(4 * KIB, false);
        check(TRANSCRIPT_AHEAD / 2, false);
        check(TRANSCRIPT_AHEAD, true);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn untouched_mark_survives_release_of_space() {
        let check = |reserved: u64, text: &str, expected: bool| {
            let directory = tempfile::tempdir().unwrap();
            let files = OutputFiles::for_turn(&directory.path().join("x.jsonl"));
            fs::write(&files.stdout, text).unwrap();
            let file = OpenOptions::new().append(true).open(&files.stdout).unwrap();
            allocate(&file, 0, reserved).unwrap();
            for _ in 0..2 {
                release_reserved_space(&files).unwrap();
                assert_eq!(is_untouched(&files.stdout), expected, "{reserved} {text:?}");
            }
            forget_untouched(&files.stdout).unwrap();
            assert!(!is_untouched(&files.stdout), "{reserved} {text:?}");
        };
        check(TRANSCRIPT_AHEAD, "", true);
        check(0, "", false);
        check(TRANSCRIPT_AHEAD, "x", false);
    }
}
