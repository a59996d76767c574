//! A run as data: its state, the inputs it learns from, the events it consists of, and the effects
//! that events release.
//!
//! A run is a fold of its events with [`fn@apply`], which parses nothing, cannot fail, and is
//! frozen per journal format. Deciding is in [`crate::decide`] and may improve from release to
//! release. Nothing here does I/O or reads a clock. Read [`event`] first, then [`apply`](mod@apply)
//! and [`state`].

pub mod apply;
pub mod context;
pub(crate) mod decision;
pub mod discarded;
pub mod discarded_tail;
pub mod effect;
pub mod event;
pub mod group;
pub mod input;
pub mod outcome;
pub mod permissions;
pub mod prepared_answers;
pub mod program;
pub mod record;
pub mod requirements;
pub mod settings;
pub mod share;
pub mod start;
pub mod start_flags;
pub mod state;
pub mod stop;
pub mod transcript_cost;
pub mod turn_spec;
pub mod warning;

pub use apply::apply;
pub use context::RunContext;
pub use discarded::DiscardedCost;
pub use discarded_tail::DiscardedTail;
pub use effect::Effect;
pub use event::{Ending, Event};
pub use group::{Group, WaitEnd};
pub use input::Input;
pub use permissions::Permissions;
pub use program::{Program, Ralph};
pub use record::{Header, Record, RecordStep};
pub use requirements::Requirements;
pub use settings::Settings;
pub use state::{Phase, Run};
pub use transcript_cost::TranscriptCost;
pub use turn_spec::TurnSpec;
