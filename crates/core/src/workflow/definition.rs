//! The parsed states of one scope.
//!
//! [`Definition::parse`] takes every file of the scope and reports every mistake. A mistake in a
//! state that neither the entry nor a policy reaches cannot affect a run, so it is only a warning.

use crate::extension::{Platform, StateKind};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::crayfish::StepsDefinition;
use crate::diagnostic::Diagnostic;
use crate::ids::StateName;
use crate::value::Hash;

use super::frontmatter::Frontmatter;
use super::source_file::SourceFile;

mod entry;
mod parse;
mod ralph;
mod reach;
mod reachability;
mod resolve;
pub mod steps;

pub use reachability::{FrontmatterPart, Reachability};

/// The states that a run may refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The place where a run starts.
    pub entry: StateName,
    /// Every state of the scope, including those that this platform cannot run.
    pub states: BTreeMap<StateName, State>,
    /// The platform, which decides which states can run.
    pub platform: Platform,
    /// The document of a run of steps. Such a run has no states. The field is an
    /// `Option`, and the definition is not an enum of the two languages, because most of its users
    /// treat both alike: they pin it, load it, adopt it and check its backends. The language of a
    /// run is decided by its `Program`, not by this field.
    pub steps: Option<Box<StepsDefinition>>,
    /// The agent steps of the document as prompts, so that their backend requirements are checked
    /// like those of states.
    pub asking: Vec<State>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub name: StateName,
    pub kind: StateKind,
    /// Settings and policy; empty for scripts.
    pub front: Arc<Frontmatter>,
    /// The text below the frontmatter, which a prompt sends. Empty for scripts.
    pub body: Arc<str>,
    pub source: SourceFile,
    /// The hash of the whole file.
    pub hash: Hash,
}

/// The place where a run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryPoint {
    /// At `1_START` or `START`, whichever is in the scope.
    Entry,
    /// At this file, which the user named by its path.
    State(String),
    /// At this prompt, which `ralph` repeats. Its transitions are ignored.
    Ralph(String),
    /// At the first step of the only file, which is a document.
    Steps,
}

/// A definition without errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub definition: Definition,
    /// Warnings, sorted by file and place.
    pub warnings: Vec<Diagnostic>,
}

#[cfg(test)]
pub(super) mod fixture {
    use super::*;

    /// Returns files without frontmatter.
    pub(crate) fn files(names: &[&str]) -> Vec<SourceFile> {
        names.iter().map(|name| file(name, "text")).collect()
    }

    pub(crate) fn file(name: &str, text: &str) -> SourceFile {
        SourceFile { name: name.to_owned(), bytes: text.as_bytes().into(), executable: false }
    }

    /// Returns a definition of files without frontmatter.
    pub(crate) fn definition(names: &[&str], start: &EntryPoint, platform: Platform) -> Definition {
        Definition::parse(files(names), start, platform).unwrap().definition
    }
}

#[cfg(test)]
mod tests;
