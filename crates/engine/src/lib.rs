//! The driver of a run, its recovery, and what turns decisions into deeds.
//!
//! [`driver`] is synchronous and owns no clock, file or process; [`fold`] reads journals,
//! [`recovery`] says what became of turns in flight, [`scope`] finds the states of a workflow and
//! [`pin`] keeps them. [`launch`] and [`owned`] make a process the owner of a run, [`shell`] is the
//! small asynchronous loop around the driver, [`look`] is for everybody who does not own it,
//! [`request`] asks whoever does, [`replay`] decides a journal again, and [`discard`] deletes a run.

pub mod abandoned;
mod aside;
#[cfg(test)]
mod bench;
mod boot;
pub mod call;
pub mod clock;
pub mod discard;
pub mod driver;
pub mod elsewhere;
pub mod fold;
pub mod launch;
pub mod look;
pub mod observe;
pub mod owned;
pub mod pin;
pub mod project;
pub mod recovery;
pub mod replay;
pub mod request;
pub mod schemas;
pub mod scope;
pub mod shell;
pub mod snapshot;
pub mod statefile;
pub mod steps;
pub mod suspension;
pub mod tracked;
