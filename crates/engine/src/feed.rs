//! One stream for every watcher of a run: durable records, progress of turns, and notes.
//!
//! The owner of a run sends its items to a [`RunWatcher`] as they happen. [`RunFollower`] reads the
//! same items from the files of a run that another process drives. A screen therefore cannot
//! distinguish the two, and shows the same. To draw the run, fold the records into a
//! [`raymond_core::view::RunView`].

mod follower;
mod note;
mod transcripts;

use std::fmt;

use raymond_backends::contract::ClientProgress;
use raymond_core::ids::TurnId;
use raymond_core::run::{Record, Run};
use raymond_core::time::Timestamp;
use raymond_store::journal::{JournalLine, Sum};

pub use follower::{Followed, POLL_INTERVAL, RunFollower};
pub use note::NoteKind;
pub use transcripts::TranscriptFollower;

#[derive(Debug, Clone)]
pub enum FeedItem<'a> {
    /// A record is durable.
    Record {
        cursor: FeedCursor,
        record: &'a Record,
        /// The run with the record applied.
        run: &'a Run,
    },
    /// A turn in flight makes progress. It is not recorded, so a later watcher may not get it.
    Progress { turn: &'a TurnId, at: Timestamp, progress: &'a ClientProgress },
    /// Anything else that the user should know.
    Note(NoteKind),
}

/// A watcher of a run, such as the console.
pub trait RunWatcher {
    fn take(&mut self, item: FeedItem<'_>);
}

/// A place in the history of a run: the number of a record, and its checksum.
///
/// The checksum is chained, so two processes with equal cursors have read the same history. After a
/// rewind the number may exist again, but with another checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedCursor {
    pub seq: u64,
    pub sum: Sum,
}

impl FeedCursor {
    pub(crate) const fn of(line: &JournalLine<'_>) -> Self {
        Self { seq: line.seq, sum: line.sum }
    }
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Eight digits are enough to notice another history, and short enough for a URL.
        write!(f, "{}-{:.8}", self.seq, self.sum.as_str())
    }
}

#[cfg(test)]
mod tests;
