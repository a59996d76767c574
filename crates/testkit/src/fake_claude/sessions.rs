//! Conversations on disk, with their messages and costs.
//!
//! Files are grouped by working directory, as in the real program, but any directory can find them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::invocation::{self, Invocation, Message};

#[derive(Debug, Clone)]
pub(super) struct Sessions {
    pub(super) root: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) messages: Vec<Message>,
    /// The system prompt of the first invocation.
    pub(super) system_prompt: Option<String>,
    /// Cost and tokens by model, over all invocations and the sessions that it branched from.
    pub(super) usage: BTreeMap<String, Usage>,
}

/// Cost and tokens of one model.
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
    /// Opens the configuration directory that the environment names.
    pub(super) fn from_environment() -> Option<Self> {
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".claude"));
        let root = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(home)?;
        fs::create_dir_all(root.join("projects")).ok()?;
        Some(Self { root })
    }

    fn path(&self, id: &str) -> Option<PathBuf> {
        let projects = fs::read_dir(self.root.join("projects")).ok()?.flatten();
        let mut paths = projects.map(|project| project.path().join(format!("{id}.json")));
        // In all projects, because Raymond resumes conversations from other directories.
        paths.find(|path| path.exists())
    }

    pub(super) fn exists(&self, id: &str) -> bool {
        self.path(id).is_some()
    }

    pub(super) fn load(&self, id: &str) -> Option<Session> {
        let text = fs::read(self.path(id)?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Replaces the whole conversation. If two processes write, the last one wins, as in the real
    /// program.
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
        // A rename replaces the file at once, so that a client that is killed here leaves a whole
        // session. The pid keeps two writers apart.
        let draft = path.with_extension(format!("{}.draft", std::process::id()));
        fs::write(&draft, serde_json::to_vec(session)?)?;
        fs::rename(draft, path)
    }

    /// Empties a session's file, so that the id is in use but has no conversation.
    pub(super) fn empty(&self, id: &str) {
        if let Some(path) = self.path(id) {
            fs::write(path, "").ok();
        }
    }

    /// Counts a run of these lines, and returns its number, from 1.
    pub(super) fn count(&self, lines: &str) -> io::Result<u32> {
        let mut hasher = DefaultHasher::new();
        lines.hash(&mut hasher);
        let played = self.root.join("played");
        fs::create_dir_all(&played)?;
        for time in 1.. {
            let path = played.join(format!("{:016x}.{time}", hasher.finish()));
            // `create_new` is atomic, so that clients in parallel get different numbers.
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Ok(_) => return Ok(time),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(u32::MAX)
    }

    /// Locks a session for the life of this process; `None` if another process has the lock.
    pub(super) fn hold(&self, id: &str) -> Option<File> {
        let held = self.root.join("held");
        fs::create_dir_all(&held).ok()?;
        let file = File::create(held.join(id)).ok()?;
        // The kernel frees the lock when the process dies, even by SIGKILL. So a contended session
        // means that two clients really ran at once.
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(file)
    }

    /// Appends an invocation to the record, in one write.
    pub(super) fn append(&self, invocation: &Invocation) -> io::Result<()> {
        let mut line = serde_json::to_vec(invocation)?;
        line.push(b'\n');
        let path = invocation::file(&self.root);
        OpenOptions::new().append(true).create(true).open(path)?.write_all(&line)
    }
}
