//! Workflows as written: states, their frontmatter, their policies, their templates.
//!
//! A [`Definition`] is parsed from the files of a scope, all at once and with every mistake named;
//! who found the files, and where, is not known here. Afterwards it answers questions: what does
//! this target resolve to, may this state emit that tag, what text does this visit send.

pub mod definition;
pub mod environment;
pub mod frontmatter;
pub mod manifest;
pub mod name;
pub mod policy;
pub mod template;

pub use definition::{Definition, Mark, Parsed, Reachability, SourceFile, Start, State};
pub use frontmatter::{Frontmatter, OnDenied};
pub use manifest::Manifest;
pub use name::{Unresolved, check_name};
pub use policy::{Policy, Refused};
pub use template::Bindings;
