//! Why a journal cannot be written or read.

use std::path::PathBuf;

use super::line::{BadBody, Damage};
use crate::disk;

/// Why a journal cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] disk::Error),
    /// There is no journal.
    #[error("there is no journal at {}", .0.display())]
    Missing(PathBuf),
    /// There is a journal already.
    #[error("there is a journal already at {}", .0.display())]
    Exists(PathBuf),
    /// Its creation never finished: nothing was ever recorded.
    #[error("the journal {} was never finished being created", .0.display())]
    Unborn(PathBuf),
    /// A record is not what was written.
    #[error("{damaged} in {}", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// What is damaged in it.
        damaged: Damaged,
    },
    /// These bytes cannot be a record.
    #[error(transparent)]
    Body(#[from] BadBody),
    /// A sync or the clean-up after a write failed: what the disk holds is unknown until the journal
    /// is opened again.
    #[error("the journal {} must be opened again after a failed write", .0.display())]
    Poisoned(PathBuf),
    /// The journal has no such good record to be cut after.
    #[error("{} cannot be cut after record {wanted}: its last good record is {last}", path.display())]
    NoSuchRecord {
        /// The journal.
        path: PathBuf,
        /// The record that was to be the last.
        wanted: u64,
        /// The last good one.
        last: u64,
    },
    /// The journal was cut behind a reader's back: it must read from the start.
    #[error("the journal {} was cut back while it was read", .0.display())]
    Rewound(PathBuf),
    /// Somebody else wrote into the journal while it was owned.
    #[error("somebody else has written into the journal {}", .0.display())]
    Touched(PathBuf),
    /// Another file stands where the journal was.
    #[error("another file stands in place of the journal {}", .0.display())]
    Replaced(PathBuf),
}

impl Error {
    /// Whether there is no journal, or none that was ever finished.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Unborn(_))
    }
}

/// Where a journal is damaged. The records before it are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "record {seq} at byte {offset} is damaged ({damage}); {} before it",
    good(*seq)
)]
pub struct Damaged {
    /// The number of the damaged record; the header has 0.
    pub seq: u64,
    /// Where it starts in the file.
    pub offset: u64,
    /// What is wrong with it.
    pub damage: Damage,
}

fn good(damaged: u64) -> String {
    match damaged.saturating_sub(1) {
        1 => "1 good record".to_owned(),
        good => format!("{good} good records"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damage_says_how_much_is_good() {
        for (seq, good) in [
            (0, "0 good records before it"),
            (1, "0 good records before it"),
            (2, "1 good record before it"),
            (3, "2 good records before it"),
        ] {
            let said = Damaged { seq, offset: 7, damage: Damage::Sum }.to_string();
            assert!(said.ends_with(good), "{said}");
        }
    }

    #[test]
    fn a_journal_is_missing_when_nothing_was_ever_recorded() {
        let path = || PathBuf::from("/j");
        assert!(Error::Missing(path()).is_missing());
        assert!(Error::Unborn(path()).is_missing());
        for other in [Error::Exists(path()), Error::Poisoned(path()), Error::Replaced(path())] {
            assert!(!other.is_missing(), "{other}");
        }
    }
}
