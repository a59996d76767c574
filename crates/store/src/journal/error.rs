//! The errors of journals.

use std::path::PathBuf;

use super::line::{BadBody, Damage};
use crate::disk;

/// Why a journal cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Disk(#[from] disk::Error),
    #[error("there is no journal at {}", .0.display())]
    Missing(PathBuf),
    #[error("there is a journal already at {}", .0.display())]
    Exists(PathBuf),
    /// The creation of the journal was interrupted. Nothing was ever recorded.
    #[error("the creation of the journal {} was interrupted", .0.display())]
    Unborn(PathBuf),
    /// A record differs from what was written.
    #[error("{damaged} in {}", path.display())]
    Damaged { path: PathBuf, damaged: Damaged },
    /// These bytes cannot be a record.
    #[error(transparent)]
    Body(#[from] BadBody),
    /// A sync failed, or a failed write could not be undone. The content of the disk is unknown
    /// until the journal is opened again.
    #[error("the journal {} must be opened again after a failed write", .0.display())]
    Poisoned(PathBuf),
    /// The journal has no such good record to rewind to.
    #[error("could not rewind {} to record {wanted}: its last good record is {last}", path.display())]
    NoSuchRecord {
        /// The journal.
        path: PathBuf,
        /// The requested last record.
        wanted: u64,
        /// The last good record.
        last: u64,
    },
    /// The journal was rewound while a process followed it. The reader must start again.
    #[error("the journal {} was rewound while it was read", .0.display())]
    Rewound(PathBuf),
    /// Another process wrote to the journal although this one owns it.
    #[error("another process has written to the journal {}", .0.display())]
    ChangedByOther(PathBuf),
    /// Another file is at the path of the journal.
    #[error("another file has replaced the journal {}", .0.display())]
    Replaced(PathBuf),
}

impl Error {
    /// Returns whether there is no journal, or only one whose creation was interrupted.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_) | Self::Unborn(_))
    }
}

/// The first damaged record of a journal. The records before it are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "record {seq} at byte {offset} is damaged ({damage}); {} before it",
    good(*seq)
)]
pub struct Damaged {
    /// The number of the damaged record. The header has 0.
    pub seq: u64,
    /// The offset of the record in the file.
    pub offset: u64,
    pub damage: Damage,
}

fn good(damaged: u64) -> String {
    // The header is line 0 and not a record, so a damaged header has no good records before it
    // either.
    match damaged.saturating_sub(1) {
        1 => "1 good record".to_owned(),
        good => format!("{good} good records"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_reports_the_number_of_good_records() {
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
    fn journal_without_a_header_is_missing() {
        let path = || PathBuf::from("/j");
        assert!(Error::Missing(path()).is_missing());
        assert!(Error::Unborn(path()).is_missing());
        for other in [Error::Exists(path()), Error::Poisoned(path()), Error::Replaced(path())] {
            assert!(!other.is_missing(), "{other}");
        }
    }
}
