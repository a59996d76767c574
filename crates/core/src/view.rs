//! Read models for every user interface: folds of a run's events that only display and never decide.
//!
//! - [`mod@status`], [`mod@why`], [`mod@next_command`]: the state of a run, its cause, the next command
//! - [`ledger`], [`path`], [`costs`], [`turns`]: history, visited states, money, attempts
//! - [`narrate`], [`live`]: lines for events, rows for a live screen
//! - [`plan`]: the effect of a resume
//! - [`backend_labels`], [`denied`]: backend names, denied tools

pub mod backend_labels;
pub mod costs;
pub mod denied;
pub mod ledger;
pub mod live;
pub mod narrate;
pub mod next_command;
pub mod path;
mod place;
pub mod plan;
pub mod status;
pub mod turns;
pub mod why;

pub use backend_labels::{BackendLabels, answering, asked};
pub use costs::Costs;
pub use denied::Denied;
pub use ledger::Ledger;
pub use live::Live;
pub use narrate::{Line, Narrator, Weight};
pub use next_command::{
    CallTarget, Change, NextCommand, States, is_final, is_of_caller, next_command,
};
pub use path::Path;
pub use place::place;
pub use plan::{Fate, Plan};
pub use status::{Owner, Status, Waiting, status};
pub use turns::Turns;
pub use why::{Cause, Hint, collected, why};

#[cfg(test)]
mod tests;
