//! The heart: a run is a fold of events.
//!
//! [`fn@batch`] takes what was observed, lets [`fn@decide`] name what follows from each input, folds it
//! with [`fn@apply`], and then [`fn@advance`]s until nothing more follows by itself. Deciding may improve
//! from release to release; `apply` parses nothing, cannot fail, and is frozen per journal format.

pub mod advance;
pub mod apply;
pub mod backend_change;
pub mod batch;
mod caller_session;
pub mod decide;
pub(crate) mod decision;
pub mod discarded;
pub mod effect;
pub mod event;
pub mod input;
pub mod permissions;
pub mod program;
pub mod record;
pub mod replay;
pub mod requirements;
pub(crate) mod resume;
pub mod settings;
mod settle;
pub mod start_flags;
pub mod state;
#[cfg(test)]
pub(crate) mod tests;

pub use advance::advance;
pub use apply::apply;
pub use batch::{Batch, batch};
pub use decide::{Refusal, check_adoption, decide};
pub use discarded::{Attempt, DiscardedCost, DiscardedTail, TranscriptCost};
pub use effect::Effect;
pub use event::{Ending, Event};
pub use input::Input;
pub use permissions::Permissions;
pub use program::{Program, Ralph};
pub use record::{Header, Record, Step};
pub use requirements::Requirements;
pub use settings::Settings;
pub use state::{Phase, Run};
