//! The driver of a run, its recovery, and what turns decisions into deeds.
//!
//! [`driver`] is synchronous and owns no clock, file or process; [`fold`] reads journals,
//! [`recovery`] says what became of turns in flight. Everything asynchronous is in `shell`.

pub mod driver;
pub mod fold;
pub mod recovery;
