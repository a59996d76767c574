//! A file to which another process appends, read from the last position.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::files::{cause, open_to_read};

/// The error of an existing file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read {}: {}", path.display(), cause(source))]
pub struct UnreadableFile {
    pub path: PathBuf,
    pub source: io::Error,
}

#[derive(Debug)]
pub(super) struct FollowedFile {
    file: File,
    path: PathBuf,
    offset: u64,
}

impl FollowedFile {
    pub(super) fn from_start(path: &Path) -> io::Result<Self> {
        Ok(Self { file: open_to_read(path)?, path: path.to_owned(), offset: 0 })
    }

    /// Creates a file that can be opened but not read.
    #[cfg(test)]
    pub(super) fn unreadable_directory(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        Self { file, path: path.to_owned(), offset: 0 }
    }

    /// Opens the file and skips its current content.
    pub(super) fn from_end(path: &Path) -> io::Result<Self> {
        let file = open_to_read(path)?;
        let offset = file.metadata()?.len();
        Ok(Self { file, path: path.to_owned(), offset })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the length of the file. If the file was truncated, reading continues at its new end.
    pub(super) fn length(&mut self) -> Result<u64, UnreadableFile> {
        let length = self.file.metadata().map_err(self.unreadable())?.len();
        // Without this, output after a truncation would never be read.
        self.offset = self.offset.min(length);
        Ok(length)
    }

    /// Reads the next bytes, but not beyond `end`; empty if there are none.
    pub(super) fn read<'a>(
        &mut self,
        end: u64,
        buffer: &'a mut [u8],
    ) -> Result<&'a [u8], UnreadableFile> {
        let ahead = end.saturating_sub(self.offset);
        let room = usize::try_from(ahead).unwrap_or(usize::MAX).min(buffer.len());
        if room == 0 {
            return Ok(&[]);
        }
        let length = loop {
            // Reading by offset does not move a file position that another process may share.
            match self.file.read_at(&mut buffer[..room], self.offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(self.unreadable())?,
            }
        };
        self.offset += length as u64;
        Ok(&buffer[..length])
    }

    fn unreadable(&self) -> impl FnOnce(io::Error) -> UnreadableFile {
        let path = self.path.clone();
        |source| UnreadableFile { path, source }
    }

    /// Skips to the last `length` bytes before `end`.
    pub(super) fn skip_to_last(&mut self, end: u64, length: u64) {
        self.offset = self.offset.max(end.saturating_sub(length));
    }
}
