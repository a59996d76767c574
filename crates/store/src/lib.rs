//! Journals, blobs, locks and inboxes of runs: bytes and files, not events.
//!
//! Everything stands on the small [`disk::Disk`] port, so the same journal code runs on real files
//! and on a simulated disk that loses what was not synced. Nothing here reads a clock, an
//! environment variable or an event; nothing prints. Platform code stands only in [`lock`], and
//! where [`disk::Files`] sets the modes of files and knows their users.

pub mod ballast;
pub mod blobs;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod disk;
#[cfg(test)]
mod faults;
pub mod inbox;
pub mod journal;
pub mod lock;
pub mod root;
pub mod snapshot;
pub mod statefile;
pub mod trusted;

mod place;

pub use ballast::Ballast;
pub use blobs::Blobs;
pub use inbox::Inbox;
pub use journal::Journal;
pub use lock::Lock;
pub use root::{Root, RunPaths};
pub use trusted::Trusted;
