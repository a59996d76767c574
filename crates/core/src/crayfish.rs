//! The second language: a JSON document of `exec`, `agent`, `if`, `forEach` and `while` steps.
//!
//! Text is read strictly ([`reading`]), checked as a whole ([`validate`]) and becomes a flat
//! [`Document`]: nothing in it is recursive, so a hundred thousand steps are cheap to walk and to
//! drop. Beside it stand what its steps are written with: paths, conditions, templates and keys.
//! A caller speaks in an [`envelope`], and every failure has a [`Code`].
//! Nothing here runs a step, and nothing checks a JSON Schema: that is work of the edges.

pub mod answer;
pub mod ask;
pub mod call;
pub mod code;
pub mod condition;
pub(crate) mod conduct;
pub mod document;
pub mod envelope;
pub mod explain;
pub mod flaw;
pub mod flow;
pub mod gate;
pub mod key;
pub mod name;
pub mod path;
pub mod problem;
pub mod reading;
pub mod render;
pub mod schema;
pub mod template;
pub mod validate;
pub mod walk;
pub mod work;

pub use call::Call;
pub use code::Code;
pub use condition::Condition;
pub use document::{Document, Kind, Step, StepIndex};
pub use envelope::{Reply, Request};
pub use flaw::Flaw;
pub use flow::{Fact, Flow};
pub use key::Key;
pub use name::StepId;
pub use path::{Namespaces, Path};
pub use problem::Problem;
pub use template::Template;
pub use work::Work;
