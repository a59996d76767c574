//! The step language: a JSON document of `exec`, `agent`, `if`, `forEach` and `while` steps.
//!
//! [`reading`] parses text strictly, [`validate`] checks the whole document, and the result is a
//! flat [`Document`]. Nothing in it is recursive, so a hundred thousand steps are cheap to walk and
//! to drop. [`state`] is the progress of a run, and [`walk`] computes what one branch does next. A
//! caller sends and receives an [`envelope`], and every failure has an [`ErrorCode`].
//!
//! A branch has the id of the agent that executes it, and a shared conversation has its session id.
//! Otherwise this module knows nothing of agents, turns and money: [`crate::steps`] turns its
//! events into events of a run. Nothing here runs a step or checks a value against a JSON Schema:
//! the engine and the schema crate do that.

pub mod ask;
pub mod call;
pub mod condition;
pub mod definition;
pub mod document;
pub mod edits;
pub mod envelope;
pub mod error_code;
pub mod explain;
pub mod gate;
pub mod key;
pub mod name;
pub mod path;
pub mod problem;
pub mod problem_code;
pub mod reading;
pub mod render;
pub mod schema;
pub mod state;
pub mod stored;
pub mod template;
pub mod validate;
pub mod variable_problem;
pub mod verdict;
pub mod walk;

pub use call::Call;
pub use condition::Condition;
pub use definition::StepsDefinition;
pub use document::{Document, Step, StepIndex, StepKind};
pub use edits::Edits;
pub use envelope::{CallReply, CallRequest};
pub use error_code::ErrorCode;
pub use key::StepKey;
pub use name::StepId;
pub use path::{Namespaces, Path};
pub use problem::Problem;
pub use problem_code::ProblemCode;
pub use state::{StepEvent, StepsState};
pub use template::Template;
pub use variable_problem::VariableProblem;
pub use verdict::Verdict;
