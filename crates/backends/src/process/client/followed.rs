//! A file that somebody else appends to, read from where it was left.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::{cause, open_to_read};

/// A file that is there and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read {}: {}", path.display(), cause(source))]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why it cannot be read.
    pub source: io::Error,
}

#[derive(Debug)]
pub(in super::super) struct FollowedFile {
    file: File,
    path: PathBuf,
    offset: u64,
}

impl FollowedFile {
    pub(in super::super) fn from_start(path: &Path) -> io::Result<Self> {
        Ok(Self { file: open_to_read(path)?, path: path.to_owned(), offset: 0 })
    }

    /// A file that can be opened and not be read.
    #[cfg(test)]
    pub(super) fn unreadable_directory(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        Self { file, path: path.to_owned(), offset: 0 }
    }

    /// What the file holds now is left out.
    pub(super) fn from_end(path: &Path) -> io::Result<Self> {
        let file = open_to_read(path)?;
        let offset = file.metadata()?.len();
        Ok(Self { file, path: path.to_owned(), offset })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// How long the file is. When somebody has cut it short, what is appended from now on is heard.
    pub(in super::super) fn length(&mut self) -> Result<u64, Unreadable> {
        let length = self.file.metadata().map_err(self.unreadable())?.len();
        self.offset = self.offset.min(length);
        Ok(length)
    }

    /// Reads on, but not beyond `end`; empty when there is nothing more.
    pub(in super::super) fn read<'a>(
        &mut self,
        end: u64,
        buffer: &'a mut [u8],
    ) -> Result<&'a [u8], Unreadable> {
        let ahead = end.saturating_sub(self.offset);
        let room = usize::try_from(ahead).unwrap_or(usize::MAX).min(buffer.len());
        if room == 0 {
            return Ok(&[]);
        }
        let length = loop {
            match self.file.read_at(&mut buffer[..room], self.offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(self.unreadable())?,
            }
        };
        self.offset += length as u64;
        Ok(&buffer[..length])
    }

    fn unreadable(&self) -> impl FnOnce(io::Error) -> Unreadable {
        let path = self.path.clone();
        |source| Unreadable { path, source }
    }

    /// Leaves out all but the last `length` bytes before `end`.
    pub(super) fn skip_to_last(&mut self, end: u64, length: u64) {
        self.offset = self.offset.max(end.saturating_sub(length));
    }
}
