//! The second language: a JSON document of `exec`, `agent`, `if`, `forEach` and `while` steps.
//!
//! Text is read strictly ([`reading`]), checked as a whole ([`validate`]) and becomes a flat
//! [`Document`]: nothing in it is recursive, so a hundred thousand steps are cheap to walk and to
//! drop. Beside it stand what its steps are written with: paths, conditions, templates and keys.
//! A caller speaks in an [`envelope`], and every failure has a [`ErrorCode`].
//! Nothing here runs a step, and nothing checks a JSON Schema: that is program of the edges.

pub mod ask;
pub mod call;
pub mod condition;
pub mod document;
pub mod envelope;
pub mod error_code;
pub mod explain;
pub mod gate;
pub mod key;
pub mod name;
pub mod path;
pub mod problem;
pub mod problem_code;
pub mod program;
pub mod reading;
pub mod render;
pub mod schema;
pub mod state;
pub mod stored;
pub mod template;
pub mod validate;
pub mod verdict;
pub mod walk;

pub use call::Call;
pub use condition::Condition;
pub use document::{Document, Kind, Step, StepIndex};
pub use envelope::{Reply, Request};
pub use error_code::ErrorCode;
pub use key::Key;
pub use name::StepId;
pub use path::{Namespaces, Path};
pub use problem::Problem;
pub use problem_code::ProblemCode;
pub use program::StepsProgram;
pub use state::{StepEvent, StepsState};
pub use template::Template;
pub use verdict::Verdict;
