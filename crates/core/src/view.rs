//! Read models for every user interface: folds of a run's events that only display and never
//! decide.
//!
//! Three folds of the same events have three purposes. [`crate::run::Run`] is for deciding: it has
//! only what a decision needs. [`Ledger`] is the stored past: what the run no longer contains and
//! snapshots keep. [`RunView`] is the present for people: every screen draws it. `RunView::of`
//! makes it from the other two, so that a viewer who joins later sees the same.
//!
//! - [`run_view`]: one row for each agent
//! - [`view_event`], [`attempt`]: the meaning of an event, which the fold returns
//! - [`mod@words`], [`costs`]: lines and money, made from these meanings
//! - [`ledger`], [`totals`], [`summary`], [`path`]: the stored past, for snapshots
//! - [`mod@status`], [`mod@why`], [`mod@next_command`]: the state of a run, its cause, the command
//! - [`plan`]: the effect of a resume
//! - [`backend_labels`], [`denied`]: backend names, denied tools

use crate::time::Timestamp;

pub mod attempt;
pub mod backend_labels;
pub mod costs;
pub mod denied;
pub mod ledger;
pub mod next_command;
pub mod path;
mod place;
pub mod plan;
pub mod run_view;
pub mod status;
pub mod summary;
pub mod totals;
pub mod view_event;
pub mod why;
pub mod words;

pub use backend_labels::{BackendLabels, answering, asked};
pub use costs::Costs;
pub use denied::Denied;
pub use ledger::Ledger;
pub use next_command::{
    CallTarget, Change, NextCommand, States, gave_up, is_final, is_of_caller, next_command,
};
pub use path::RunPath;
pub use place::place;
pub use plan::{Fate, Plan};
pub use run_view::RunView;
pub use status::{OwnerState, Status, Waiting, status};
pub use totals::Totals;
pub use view_event::ViewEvent;
pub use why::{Cause, Hint, awaited_failure, collected, needed_edit, why};
pub use words::{Audience, LogLine, Weight, words};

/// Formats a time for a reader. The core knows no time zone.
pub type TimeFormat = fn(Timestamp) -> String;

#[cfg(test)]
mod tests;
