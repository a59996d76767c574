//! Reads files within a limit that counts over all files of a scope.

use std::io::{self, Read};

use super::MOST_BYTES;

/// The number of bytes that may still be read.
pub(super) struct ByteLimit(u64);

/// Why a file was not read.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The limit is reached.
    TooLarge,
    /// Reading failed.
    Failed(io::Error),
}

impl ByteLimit {
    pub(super) fn new() -> Self {
        Self(MOST_BYTES)
    }

    /// Reads to the end, and returns the bytes.
    pub(super) fn read(&mut self, source: impl Read) -> Result<Vec<u8>, Stopped> {
        let mut bytes = Vec::new();
        // One byte more than allowed shows whether the source is longer than the limit.
        let mut limited = source.take(self.0 + 1);
        limited.read_to_end(&mut bytes).map_err(Stopped::Failed)?;
        self.spend(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Reads to the end, and returns only the number of bytes.
    pub(super) fn skip(&mut self, source: impl Read) -> Result<u64, Stopped> {
        let mut limited = source.take(self.0 + 1);
        let length = io::copy(&mut limited, &mut io::sink()).map_err(Stopped::Failed)?;
        self.spend(length)?;
        Ok(length)
    }

    fn spend(&mut self, length: u64) -> Result<(), Stopped> {
        self.0 = self.0.checked_sub(length).ok_or(Stopped::TooLarge)?;
        Ok(())
    }
}
