//! The driver of a run, its recovery, and what turns decisions into deeds.
//!
//! [`driver`] is synchronous and owns no clock, file or process; [`fold`] reads journals,
//! [`recovery`] says what became of turns in flight, [`scope`] finds the states of a workflow.

pub mod driver;
pub mod fold;
pub mod recovery;
pub mod scope;
