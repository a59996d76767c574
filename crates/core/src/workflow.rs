//! Workflows as users write them: states, frontmatter, policies and templates.
//!
//! A [`Definition`] is parsed from all files of a scope at once, and every mistake is reported.
//! Then it answers questions: which state a target names, whether a state may emit a tag, which
//! text a visit sends. Finding the files is the job of `engine::scope`. Documents of steps are in
//! [`crate::crayfish`].

pub mod definition;
pub mod environment;
pub mod frontmatter;
pub mod manifest;
pub mod name;
pub mod policy;
mod source_file;
pub mod template;
pub mod variables;

pub use definition::{Definition, EntryPoint, FrontmatterPart, Parsed, Reachability, State};
pub use frontmatter::{Frontmatter, OnDenied};
pub use manifest::Manifest;
pub use name::{Unresolved, check_name};
pub use policy::{Policy, PolicyRefusal};
pub use source_file::SourceFile;
pub use template::Bindings;
