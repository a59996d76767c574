//! Stores runs: journals, blobs, locks and inboxes, as bytes and files.
//!
//! All code uses the small [`disk::Disk`] trait, so the same journal code runs on real files and on
//! a simulated disk that loses everything that was not synced. This crate knows no events, reads no
//! clock and no environment variable, and prints nothing. Platform code is only in [`host`] and in
//! [`disk::RealDisk`], for file modes and owners. The meaning of records is in `raymond_core::run`.

pub mod ballast;
pub mod blobs;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod disk;
#[cfg(test)]
mod fault_tests;
pub mod host;
pub mod inbox;
pub mod journal;
pub mod lock;
pub mod project_registry;
pub mod root;
pub mod snapshot;
pub mod statefile;
pub mod trusted;

mod atomic_file;

pub use ballast::Ballast;
pub use blobs::Blobs;
pub use inbox::Inbox;
pub use journal::Journal;
pub use lock::Lock;
pub use project_registry::ProjectRegistry;
pub use root::{Root, RunPaths};
pub use trusted::TrustedUsers;
