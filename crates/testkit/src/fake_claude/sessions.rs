//! Conversations on disk: their messages and what they have cost.
//!
//! They lie by working directory, as the real ones do, and are found from everywhere.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::invocation::{self, Invocation, Message};

/// A configuration directory.
#[derive(Debug, Clone)]
pub(super) struct Sessions {
    pub(super) root: PathBuf,
}

/// A conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) messages: Vec<Message>,
    /// What it began with.
    pub(super) system_prompt: Option<String>,
    /// What every model has cost and used, over all invocations and what was inherited.
    pub(super) usage: BTreeMap<String, Usage>,
}

/// What a model has cost and used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: f64,
}

impl Session {
    pub(super) fn new(id: String) -> Self {
        Self { id, messages: Vec::new(), system_prompt: None, usage: BTreeMap::new() }
    }
}

impl Sessions {
    /// The directory that the environment names.
    pub(super) fn from_environment() -> Option<Self> {
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".claude"));
        let root = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(home)?;
        fs::create_dir_all(root.join("projects")).ok()?;
        Some(Self { root })
    }

    fn path(&self, id: &str) -> Option<PathBuf> {
        let projects = fs::read_dir(self.root.join("projects")).ok()?.flatten();
        let mut paths = projects.map(|project| project.path().join(format!("{id}.json")));
        paths.find(|path| path.exists())
    }

    pub(super) fn exists(&self, id: &str) -> bool {
        self.path(id).is_some()
    }

    pub(super) fn load(&self, id: &str) -> Option<Session> {
        let text = fs::read(self.path(id)?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Replaces the whole conversation: of two writers, the last one wins.
    pub(super) fn save(&self, session: &Session) -> io::Result<()> {
        let path = match self.path(&session.id) {
            Some(path) => path,
            None => {
                let cwd = std::env::current_dir()?.to_string_lossy().replace(['/', '.'], "-");
                let project = self.root.join("projects").join(cwd);
                fs::create_dir_all(&project)?;
                project.join(format!("{}.json", session.id))
            }
        };
        let draft = path.with_extension(format!("{}.draft", std::process::id()));
        fs::write(&draft, serde_json::to_vec(session)?)?;
        fs::rename(draft, path)
    }

    /// There is no conversation in it, but it exists.
    pub(super) fn empty(&self, id: &str) {
        if let Some(path) = self.path(id) {
            fs::write(path, "").ok();
        }
    }

    /// Which time this is that these lines are played, from 1.
    pub(super) fn count(&self, lines: &str) -> io::Result<u32> {
        let mut hasher = DefaultHasher::new();
        lines.hash(&mut hasher);
        let played = self.root.join("played");
        fs::create_dir_all(&played)?;
        for time in 1.. {
            let path = played.join(format!("{:016x}.{time}", hasher.finish()));
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Ok(_) => return Ok(time),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(u32::MAX)
    }

    /// Holds a session for the life of this process; none when another one holds it.
    pub(super) fn hold(&self, id: &str) -> Option<File> {
        let held = self.root.join("held");
        fs::create_dir_all(&held).ok()?;
        let file = File::create(held.join(id)).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(file)
    }

    /// Remembers an invocation, in one write.
    pub(super) fn append(&self, invocation: &Invocation) -> io::Result<()> {
        let mut line = serde_json::to_vec(invocation)?;
        line.push(b'\n');
        let path = invocation::file(&self.root);
        OpenOptions::new().append(true).create(true).open(path)?.write_all(&line)
    }
}
