//! The events of a client, as its follower sees them.

use std::process::ExitStatus;
use std::time::Duration;

/// An event in the output or the life of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// A line of stdout without its newline. The last line may have had no newline.
    Line(Vec<u8>),
    /// A line that was too long to keep.
    LongLine {
        /// Its length in bytes.
        length: u64,
    },
    /// It wrote to stderr.
    Stderr,
    /// The client exceeded the size limit. Reported once.
    TooLarge {
        /// The limit in bytes, for stdout and stderr each.
        limit: u64,
    },
    /// Raymond did not run for this long and could not read, so deadlines must be moved. A
    /// suspended machine does not cause this event, because its monotonic clock stops as well.
    Suspended { gap: Duration },
    /// The client has exited and all its lines were reported. The status is known only for own
    /// children.
    Exited(Option<ExitStatus>),
    /// The deadline has passed, and everything that was written before it was reported.
    Deadline,
    /// The files cannot be read, or the disk has no space for more output. The client must be
    /// ended.
    Unreadable { why: String },
}
