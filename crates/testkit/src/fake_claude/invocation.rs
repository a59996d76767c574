//! The record of every invocation, which tests read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One start of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    pub argv: Vec<String>,
    /// The prompt; `None` if the program ended before it read the prompt.
    pub stdin: Option<String>,
    pub cwd: PathBuf,
    pub environment: BTreeMap<String, String>,
    pub pid: u32,
    /// The session that it wrote to; `None` if it ended before that.
    pub session: Option<String>,
    /// The conversation that the model saw, with the prompt.
    pub history: Vec<Message>,
    /// The appended system prompt in effect.
    pub system_prompt: Option<String>,
    /// The number of runs of these directives, with this one.
    pub time: u32,
    /// The reason if it was refused before the model saw anything.
    pub refused: Option<String>,
    /// Whether another running process wrote to the same session.
    pub contended: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
}

impl Invocation {
    /// Creates the record of this process before anything else is known.
    pub(super) fn begin(words: &[String]) -> Self {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Self {
            argv: words.to_vec(),
            stdin: None,
            cwd: std::env::current_dir().unwrap_or_default(),
            environment: std::env::vars_os().map(|(k, v)| (lossy(k), lossy(v))).collect(),
            pid: std::process::id(),
            session: None,
            history: Vec::new(),
            system_prompt: None,
            time: 0,
            refused: None,
            contended: false,
        }
    }

    /// Reads all invocations of a configuration directory, in the order of their start. A last line
    /// that is still being written is skipped.
    pub fn all(config: &Path) -> Vec<Self> {
        let text = std::fs::read_to_string(file(config)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Returns the values of a flag, in order.
    pub fn values(&self, flag: &str) -> Vec<&str> {
        let mut values = Vec::new();
        let mut inside = false;
        for word in &self.argv {
            let (name, given) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (word.as_str(), None),
            };
            if name.starts_with("--") {
                inside = name == flag;
                values.extend(given.filter(|_| inside));
            } else if inside {
                values.push(name);
            }
        }
        values
    }
}

pub(super) fn file(config: &Path) -> PathBuf {
    config.join("invocations.jsonl")
}
