//! The heart: a run is a fold of events.
//!
//! `step` takes one observed [`Input`], lets `decide` name what follows, folds it with
//! `apply`, and goes on until nothing more follows by itself. `decide` may improve from release
//! to release; `apply` parses nothing, cannot fail, and is frozen per journal format.

pub mod apply;
pub mod decide;
pub mod effect;
pub mod event;
pub mod input;
pub mod record;
pub mod settings;

pub use effect::Effect;
pub use event::{Ending, Event};
pub use input::Input;
pub use record::{Header, Record, Step};
pub use settings::Settings;
