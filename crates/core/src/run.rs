//! The heart: a run is a fold of events.
//!
//! [`fn@batch`] takes what was observed, lets [`fn@decide`] name what follows from each input, folds it
//! with [`fn@apply`], and then [`fn@advance`]s until nothing more follows by itself. Deciding may improve
//! from release to release; `apply` parses nothing, cannot fail, and is frozen per journal format.

pub mod advance;
pub mod apply;
pub mod batch;
pub mod decide;
pub mod demand;
pub(crate) mod draft;
pub mod effect;
pub mod event;
pub mod gone;
pub mod input;
pub mod named;
pub mod permissions;
pub mod program;
pub mod record;
pub mod replay;
pub(crate) mod resume;
pub mod settings;
mod settle;
pub mod state;
pub mod stray;
#[cfg(test)]
pub(crate) mod tests;
mod trespass;

pub use advance::advance;
pub use apply::apply;
pub use batch::{Batch, batch};
pub use decide::{Refusal, check_adoption, decide};
pub use demand::Demand;
pub use effect::Effect;
pub use event::{Ending, Event};
pub use gone::{Abandoned, Attempt, Gone, Traced};
pub use input::Input;
pub use permissions::Permissions;
pub use program::{Program, Ralph};
pub use record::{Header, Record, Step};
pub use settings::Settings;
pub use state::{Phase, Run};
