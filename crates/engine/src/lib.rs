//! Drives runs: it commits the decisions of the core and carries them out.
//!
//! - [`prepare`] checks a workflow, [`launch`] creates a run, [`owned`] opens one, and [`recovery`]
//!   continues its turns in flight.
//! - [`runner`] is the asynchronous loop of an owner; [`driver`] inside it decides, commits, then
//!   acts.
//! - [`feed`] is the stream of items that every watcher of a run gets, live or from its files.
//! - [`inspect`], [`request`], [`replay`] and [`discard`] are for processes that do not own the
//!   run.
//! - [`scope`] loads the states of a workflow, and [`pin`] keeps them as they were at the start.
//! - [`call`] answers one call of the tool `crayfish`.
//!
//! The rules are in `raymond_core`, files in `raymond_store`, processes and clients in
//! `raymond_backends`. ARCHITECTURE.md has the whole picture.

pub mod abandoned;
mod agent_step;
pub mod backends;
mod blocking;
mod boot;
pub mod call;
pub mod clock;
pub mod copied_run;
pub mod discard;
pub mod driver;
pub mod feed;
pub mod fold;
pub mod inspect;
pub mod launch;
pub mod observe;
pub mod output;
pub mod owned;
pub mod pin;
pub mod prepare;
pub mod project;
pub mod prompts;
pub mod recovery;
pub mod replay;
pub mod request;
mod run_lock;
pub mod runner;
pub mod schemas;
pub mod scope;
#[cfg(test)]
mod test_runs;

pub mod git_tracked;
mod handed;
pub mod snapshot;
pub mod statefile;
pub mod step_results;
mod stop_key;
pub mod suspension;
pub mod turn_files;
