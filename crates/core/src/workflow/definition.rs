//! The states of one scope, parsed.
//!
//! [`Definition::parse`] takes every file of the scope at once and names every mistake at once. What
//! no policy and no entry reaches cannot hurt a run: mistakes there are warnings.

use crate::extension::{Kind, Platform};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::crayfish::StepsProgram;
use crate::diagnostic::Diagnostic;
use crate::ids::StateName;
use crate::value::Hash;

use super::frontmatter::Frontmatter;

mod entry;
mod parse;
mod ralph;
mod reach;
mod reachability;
mod resolve;
pub mod steps;

pub use reachability::{Mark, Reachability};

/// A file of the scope as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name, without any folder.
    pub name: String,
    /// What it holds.
    pub bytes: Arc<[u8]>,
    /// Whether it may be executed by its own interpreter.
    pub executable: bool,
}

/// The states that a run may refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Where a run starts.
    pub entry: StateName,
    /// Every state of the scope, those that this platform cannot run included.
    pub states: BTreeMap<StateName, State>,
    /// Which of them can be run.
    pub platform: Platform,
    /// The document of a run of steps, which has no states.
    pub work: Option<Box<StepsProgram>>,
    /// Its agent steps as prompts: what is asked for them of a backend is weighed like that of states.
    pub asking: Vec<State>,
}

/// One state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Its file name.
    pub name: StateName,
    /// Prompt or script.
    pub kind: Kind,
    /// Its settings and its policy; empty for scripts.
    pub front: Arc<Frontmatter>,
    /// What a prompt sends: the text below the frontmatter. Empty for scripts.
    pub body: Arc<str>,
    /// The whole file.
    pub source: SourceFile,
    /// Of the whole file.
    pub hash: Hash,
}

/// Where a run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// At `1_START` or `START`, whichever the scope has.
    Entry,
    /// At this file, which was named by its path.
    State(String),
    /// At this prompt, which `ralph` repeats: what it says about transitions means nothing.
    Ralph(String),
    /// At the first step of the one file, which is a document.
    Steps,
}

/// A definition without errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The definition.
    pub definition: Definition,
    /// What is worth a look, sorted by file and place.
    pub warnings: Vec<Diagnostic>,
}

#[cfg(test)]
pub(super) mod fixture {
    use super::*;

    /// Files that say nothing.
    pub(crate) fn files(names: &[&str]) -> Vec<SourceFile> {
        names.iter().map(|name| file(name, "text")).collect()
    }

    /// A file of text.
    pub(crate) fn file(name: &str, text: &str) -> SourceFile {
        SourceFile { name: name.to_owned(), bytes: text.as_bytes().into(), executable: false }
    }

    /// A definition of files that say nothing.
    pub(crate) fn definition(names: &[&str], start: &Start, platform: Platform) -> Definition {
        Definition::parse(files(names), start, platform).unwrap().definition
    }
}

#[cfg(test)]
mod tests;
