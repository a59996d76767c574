//! The transition protocol: how the text of a turn is read, and what agents are reminded of.
//!
//! [`scan`](scan::scan) finds the tags of a final message or of a script's output.
//! [`TagReading::of`] turns them into values that can be journalled (large texts become blobs).
//! [`reminder`](reminder::reminder) writes the text for an agent whose message cannot be used.
//! Nothing here knows the run: whether a target exists or is allowed is decided in
//! [`crate::machine`].

pub mod allowance;
pub mod fault;
pub mod notice;
pub mod reading;
pub mod reminder;
pub mod scan;
pub mod source;
pub mod tags;
pub mod untagged;
pub mod writing;

pub use allowance::{Allowance, Choice, Route, Routes};
pub use fault::Fault;
pub use notice::{Notice, notice};
pub use reading::{Malformed, TagReading};
pub use reminder::{examples, reminder};
pub use scan::scan;
pub use source::Source;
pub use tags::{AskTimeout, Need, Otherwise, Question, ResultStatus, Stack, Tag, TagName, When};
pub use untagged::Untagged;
pub use writing::{TagText, Unwritable};
