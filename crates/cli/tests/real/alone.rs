//! A real client behind the contract of backends, without a run around it.
//!
//! A backend passes the environment of its own process to its client. In a test that is the
//! environment of the user. So a wrapper replaces it by the environment of the stage, and keeps
//! only the variables that the backend sets.

use std::cell::Cell;
use std::fs::{self, Permissions as Mode};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raymond_backends::conformance::{Harness, Situation};
use raymond_backends::contract::{Answer, Backend, PromptRequest, StartedTurn, TurnObserver};
use raymond_backends::headless::ClientSettings;
use raymond_backends::{claude, codex};
use raymond_core::agent::SessionPlan;
use raymond_core::ids::{Nonce, SessionId, StateName, TurnId};
use raymond_core::run::Permissions;
use raymond_core::run::turn_spec::Extras;
use tokio_util::sync::CancellationToken;

use crate::clients;
use crate::codex::contract as codex_contract;
use crate::contract;
use crate::stage::Stage;

/// The variables that a backend sets for its clients.
const SET: [&str; 2] = ["RAYMOND_TURN", "CLAUDE_CODE_MAX_RETRIES"];

/// A backend, and the stage of its client.
pub(crate) struct Alone {
    pub(crate) stage: Stage,
    pub(crate) backend: Arc<dyn Backend>,
    /// The prompt that leads the model to each situation.
    prompts: fn(Situation) -> &'static str,
    /// The directory of the client's files; `None` if the backend does not read it.
    config_home: Option<PathBuf>,
    asked: Cell<u32>,
}

impl Alone {
    pub(crate) fn claude() -> Self {
        let stage = Stage::new();
        let backend = claude::client(ClientSettings::of(wrapped(&stage, &clients::claude())));
        Self { stage, backend, prompts: contract::prompts, config_home: None, asked: Cell::new(0) }
    }

    pub(crate) fn codex() -> Self {
        let stage = Stage::new();
        let backend = codex::client(ClientSettings::of(wrapped(&stage, &clients::codex())));
        let config_home = Some(stage.home().join("codex"));
        let prompts = codex_contract::prompts;
        Self { stage, backend, prompts, config_home, asked: Cell::new(0) }
    }

    /// A request for one turn in a fresh conversation.
    pub(crate) fn asking(&self, prompt: &str) -> PromptRequest {
        self.asked.set(self.asked.get() + 1);
        let number = self.asked.get();
        PromptRequest {
            started: StartedTurn {
                nonce: Nonce::new(format!("alone{}", std::process::id())),
                turn: format!("main.{number}.1").parse::<TurnId>().unwrap(),
                attempt: 1,
                plan: SessionPlan::Fresh(session(number)),
                transcript: self.stage.home().join(format!("transcripts/{number}.jsonl")),
                timeout: None,
                idle_timeout: None,
                cap: None,
                config_home: self.config_home.clone(),
            },
            location: StateName::new("START.md").into(),
            count: 1,
            prompt: prompt.to_owned(),
            notice: None,
            cwd: self.stage.project.root(),
            model: None,
            effort: None,
            permissions: Permissions::default(),
            extras: Extras::default(),
            schema: None,
            environment: None,
        }
    }

    pub(crate) fn ask(&self, request: PromptRequest) -> Answer {
        finished(self.backend.answer(request, TurnObserver::silent(CancellationToken::new())))
    }
}

impl Harness for Alone {
    fn backend(&self) -> &dyn Backend {
        self.backend.as_ref()
    }

    fn request(&self, situation: Situation) -> PromptRequest {
        self.asking((self.prompts)(situation))
    }

    fn shown(&self) -> Option<Vec<String>> {
        self.stage.last_shown()
    }
}

/// Runs a future to its end in a new runtime, because the model has its own runtime, which must not
/// start inside of another one.
pub(crate) fn finished<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn session(number: u32) -> SessionId {
    SessionId::new(format!("00000000-0000-4000-8000-{:012}", number + 1000))
}

/// Writes a script that starts the client with the environment of the stage.
fn wrapped(stage: &Stage, client: &Path) -> PathBuf {
    let words: Vec<String> = stage.environment().iter().map(|entry| format!("'{entry}'")).collect();
    let set = SET.map(|name| format!("${{{name}+\"{name}=${name}\"}}")).join(" ");
    let script =
        format!("#!/bin/sh\nexec env -i {} {set} '{}' \"$@\"\n", words.join(" "), client.display());
    let path = stage.home().join("wrapped");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, Mode::from_mode(0o755)).unwrap();
    path
}
