//! Read models that every door draws: folds of the same events, for eyes instead of decisions.
//!
//! [`mod@status`] says where a run is, [`mod@next_command`] what leads out of it, [`mod@why`] says it in a sentence,
//! [`ledger`] keeps what a run no longer holds (results, money by state, the [`path`] that was taken),
//! [`costs`] counts money by whatever is asked, [`backends`] says whether they are named, [`denied`] says how to allow what was denied, [`plan`]
//! what a resume will do, [`turns`] tells one attempt from the other, [`narrate`] turns events into
//! lines, the same for a live run and for one from last week, [`live`] knows what every agent is at,
//! [`health`] judges the machine, and [`pruning`] says what may be deleted.

pub mod backend_labels;
pub mod costs;
pub mod denied;
pub mod health;
pub mod ledger;
pub mod live;
pub mod narrate;
pub mod next_command;
pub mod path;
mod place;
pub mod plan;
pub mod pruning;
pub mod status;
pub mod turns;
pub mod why;

pub use backend_labels::{BackendLabels, answering, asked};
pub use costs::Costs;
pub use denied::Denied;
pub use ledger::{Ledger, Stopper};
pub use live::Live;
pub use narrate::{Line, Narrator, Weight};
pub use next_command::{Command, States, is_final, is_of_caller, next_command};
pub use path::Path;
pub use place::place;
pub use plan::{Fate, Plan};
pub use status::{Owner, Status, Waiting, status};
pub use turns::Turns;
pub use why::{collected, why};

#[cfg(test)]
mod tests;
