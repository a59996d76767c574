//! The transition protocol: how the end of a visit is read out of a text.
//!
//! [`scan`](scan::scan) finds the tags of a final message or of a script's output; [`Reading::of`]
//! turns them into values that may travel (large texts become blobs); [`reminder`](reminder::reminder)
//! words what an agent is told when its message cannot be used. Nothing here knows the run: whether a target
//! exists, or is allowed, is decided later.

pub mod allowance;
pub mod fault;
pub mod notice;
pub mod reading;
pub mod reminder;
pub mod scan;
pub mod source;
pub mod tag;

pub use allowance::{Allowance, Choice, Route, Routes};
pub use fault::Fault;
pub use notice::{Notice, notice};
pub use reading::{Malformed, Reading};
pub use reminder::reminder;
pub use scan::scan;
pub use source::Source;
pub use tag::{Stack, Tag, TagName};
