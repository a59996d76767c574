//! What is remembered of every invocation, for tests to read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One start of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// The arguments.
    pub argv: Vec<String>,
    /// The prompt; none when it was never read.
    pub stdin: Option<String>,
    /// Where it ran.
    pub cwd: PathBuf,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// Its process.
    pub pid: u32,
    /// The session that it wrote to; none when it did not come that far.
    pub session: Option<String>,
    /// What the model saw, the prompt included.
    pub history: Vec<Message>,
    /// What was appended to the system prompt in force.
    pub system_prompt: Option<String>,
    /// How often these directives have been played, this time included.
    pub time: u32,
    /// Why it was refused before the model saw anything.
    pub refused: Option<String>,
    /// Whether another living process wrote to the same session.
    pub contended: bool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Whose.
    pub role: Role,
    /// What was said.
    pub text: String,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The caller.
    User,
    /// The model.
    Assistant,
}

impl Invocation {
    /// The record of this process, before anything is known.
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

    /// All invocations that a configuration directory remembers, in the order of their start. A
    /// last line that is being written is not one yet.
    pub fn all(config: &Path) -> Vec<Self> {
        let text = std::fs::read_to_string(file(config)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The values of a flag, in order.
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

/// Where invocations are remembered.
pub(super) fn file(config: &Path) -> PathBuf {
    config.join("invocations.jsonl")
}
