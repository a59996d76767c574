//! The driver of a run, its recovery, and what turns decisions into deeds.
//!
//! [`driver`] is synchronous and owns no clock, file or process; [`fold`] reads journals,
//! [`recovery`] says what became of turns in flight, [`scope`] finds the states of a workflow and
//! [`pin`] keeps them. [`launch`] and [`owned`] make a process the owner of a run, [`runner`] is the
//! small asynchronous loop around the driver, [`inspect`] is for everybody who does not own it,
//! [`request`] asks whoever does, [`replay`] decides a journal again, and [`discard`] deletes a run.

pub mod abandoned;
mod blocking;
mod boot;
pub mod call;
pub mod clock;
pub mod copied_run;
pub mod discard;
pub mod driver;
pub mod fold;
pub mod inspect;
pub mod launch;
pub mod observe;
pub mod owned;
pub mod pin;
pub mod project;
pub mod recovery;
pub mod replay;
pub mod request;
pub mod runner;
pub mod schemas;
pub mod scope;
#[cfg(test)]
mod test_runs;

pub mod git_tracked;
pub mod snapshot;
pub mod statefile;
pub mod steps;
pub mod suspension;
