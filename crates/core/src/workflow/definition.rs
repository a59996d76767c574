//! The states of one scope, parsed.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::StateName;
use crate::value::Hash;

use super::frontmatter::Frontmatter;

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

/// Which scripts can be run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// `.md` and `.sh`
    Unix,
    /// `.md`, `.bat` and `.ps1`
    Windows,
}

/// The states that a run may refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Where a run starts.
    pub entry: StateName,
    /// Every state of the scope, those that this platform cannot run included.
    pub states: BTreeMap<StateName, State>,
    /// Which of them can be run.
    pub platform: Platform,
}

/// One state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Its file name.
    pub name: StateName,
    /// Prompt or script.
    pub kind: Kind,
    /// Its settings and its policy; empty for scripts.
    pub front: Frontmatter,
    /// What a prompt sends: the text below the frontmatter. Empty for scripts.
    pub body: Arc<str>,
    /// The whole file.
    pub source: SourceFile,
    /// Of the whole file.
    pub hash: Hash,
}

/// What a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text for an agent.
    Prompt,
    /// A program.
    Script,
}
