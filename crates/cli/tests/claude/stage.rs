//! A project with the fake `claude`, and the recorded invocations of that client.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use raymond_testkit::fake_claude::{Invocation, Role};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Output, Project, Running, until};

/// A project, the configuration of its client, and the programs that it can find.
pub(crate) struct Stage {
    pub(crate) project: Project,
    config: TempDir,
    programs: TempDir,
    /// Further entries of the environment, `NAME=VALUE`.
    environment: Vec<String>,
}

impl Stage {
    /// A project with these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let stage = Self::without_client(files);
        symlink(client(), stage.programs.path().join("claude")).unwrap();
        stage
    }

    /// A project on a machine without a client.
    pub(crate) fn without_client(files: &[(&str, &str)]) -> Self {
        Self {
            project: Project::of(files),
            config: tempfile::tempdir().unwrap(),
            programs: tempfile::tempdir().unwrap(),
            environment: Vec::new(),
        }
    }

    /// A workflow `wf` of prompts: each begins with its own name, then come the lines of its model.
    pub(crate) fn prompts(states: &[(&str, &str)]) -> Self {
        let stage = Self::of(&[]);
        for (name, lines) in states {
            stage.project.write(&format!("wf/{name}.md"), prompt(name, lines));
        }
        stage
    }

    pub(crate) fn with(mut self, entry: &str) -> Self {
        self.environment.push(entry.to_owned());
        self
    }

    /// Writes the configuration of the user, and returns its directory.
    pub(crate) fn configure(&self, text: &str) -> PathBuf {
        let directory = self.programs.path().join(".config/raymond");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("config.toml"), text).unwrap();
        directory
    }

    /// Runs `raymond` with these words to its end.
    pub(crate) fn raymond(&self, words: &str) -> Output {
        self.start(words).wait()
    }

    /// Runs the workflow `wf` as the run `r`.
    pub(crate) fn run(&self, flags: &str) -> Output {
        self.raymond(&format!("run wf --run-id r {flags}"))
    }

    /// Starts the workflow `wf` as the run `r`.
    pub(crate) fn start_run(&self, flags: &str) -> Running {
        self.start(&format!("run wf --run-id r {flags}"))
    }

    /// Starts `raymond` with these words.
    pub(crate) fn start(&self, words: &str) -> Running {
        self.start_words(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// Starts `raymond` with words that may hold spaces.
    pub(crate) fn start_words(&self, words: &[&str]) -> Running {
        self.start_program(&[&[env!("CARGO_BIN_EXE_raymond")], words].concat())
    }

    /// Starts any program with the directory and the environment of `raymond`.
    pub(crate) fn start_program(&self, words: &[&str]) -> Running {
        let path = format!("PATH={}:/usr/local/bin:/usr/bin:/bin", self.programs.path().display());
        let home = format!("HOME={}", self.programs.path().display());
        let config = format!("CLAUDE_CONFIG_DIR={}", self.config.path().display());
        let mut all = vec!["-i", "TZ=UTC", &path, &home, &config];
        all.extend(self.environment.iter().map(String::as_str));
        all.extend(words);
        self.project.spawn("env", &all)
    }

    /// Replaces the temporary directories in a text by fixed names.
    pub(crate) fn hidden(&self, text: &str) -> String {
        let project = self.project.root();
        let places = [
            (project.as_path(), "/project"),
            (self.config.path(), "/config"),
            (self.programs.path(), "/programs"),
        ];
        places.iter().fold(text.to_owned(), |text, (place, name)| {
            text.replace(place.to_str().unwrap(), name)
        })
    }

    /// Waits until a client reaches a gate (`fake: wait GATE`).
    #[track_caller]
    pub(crate) fn reaches(&self, gate: &str) {
        let waiting = self.config.path().join(format!("{gate}.waiting"));
        until(&format!("a client waits at {gate}"), || waiting.exists());
    }

    /// Opens a gate for all clients, now and later.
    pub(crate) fn opens(&self, gate: &str) {
        fs::write(self.config.path().join(gate), "").unwrap();
    }

    /// Every start of the client, in order.
    pub(crate) fn invocations(&self) -> Vec<Invocation> {
        Invocation::all(self.config.path())
    }

    /// Every prompt that a client sent to the model, in order.
    pub(crate) fn prompts_sent(&self) -> Vec<String> {
        self.invocations().into_iter().filter_map(|invocation| invocation.stdin).collect()
    }

    /// The conversation of every invocation as one line; see [`turn_context`].
    #[track_caller]
    pub(crate) fn turn_contexts(&self) -> Vec<String> {
        let invocations = self.invocations();
        for invocation in &invocations {
            assert!(!invocation.contended, "two clients wrote to one session: {invocation:?}");
        }
        let mut letters = Letters::default();
        invocations.iter().map(|invocation| turn_context(invocation, &mut letters)).collect()
    }

    /// The recorded charges by turn: micro-dollars and their basis.
    pub(crate) fn charges(&self) -> Vec<(String, u64, String)> {
        let mut charges = Vec::new();
        for event in self.all_events() {
            let Some((_, body)) = event.as_object().and_then(|event| event.iter().next()) else {
                continue;
            };
            if let Some(charge) = body.get("charge") {
                let turn = body["turn"].as_str().unwrap().to_owned();
                let basis = charge["basis"].as_str().unwrap().to_owned();
                charges.push((turn, charge["amount"].as_u64().unwrap(), basis));
            }
        }
        charges
    }

    /// How turns failed, in order: `transient`, `quota`, …
    pub(crate) fn failures(&self) -> Vec<String> {
        let failed = self.project.events("r", "turn_failed");
        let kind = |event: &Value| match &event["failure"] {
            Value::String(kind) => kind.clone(),
            failure => failure.as_object().unwrap().keys().next().unwrap().clone(),
        };
        failed.iter().map(kind).collect()
    }

    /// The recorded warnings, in order.
    pub(crate) fn warnings(&self) -> Vec<Value> {
        let warned = self.project.events("r", "warned");
        warned.into_iter().map(|mut event| event["warning"].take()).collect()
    }

    fn all_events(&self) -> Vec<Value> {
        let records = self.project.records("r");
        let steps = records.iter().flat_map(|record| record["steps"].as_array().unwrap());
        steps.flat_map(|step| step["events"].as_array().unwrap()).cloned().collect()
    }

    /// Checks that no process of the run is left: no client, and no hidden child of one.
    #[track_caller]
    pub(crate) fn leaves_nothing(&self) {
        assert_eq!(self.project.processes("r"), [0; 0], "processes with the marker of the run");
        let clients = self.invocations().into_iter().map(|invocation| invocation.pid);
        let living: Vec<u32> =
            clients.chain(self.offspring()).filter(|pid| self.is_ours(*pid)).collect();
        assert_eq!(living, [0; 0], "clients, and what they started");
    }

    /// The processes that clients left behind, dead or alive.
    pub(crate) fn offspring(&self) -> Vec<u32> {
        let signed = fs::read_dir(self.config.path().join("offspring"));
        let files = signed.into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_to_string(file.path()).ok()?.parse().ok()).collect()
    }

    /// Whether this process is a client of this stage, or was started by one.
    pub(crate) fn is_ours(&self, pid: u32) -> bool {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        let config = self.config.path().to_str().unwrap();
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        words.contains(config) || (words.contains("claude") && environment.contains(config))
    }
}

/// A prompt that begins with its name.
pub(crate) fn prompt(name: &str, lines: &str) -> String {
    let (front, lines) = match lines.split_once("---\n") {
        Some((front, lines)) if !front.is_empty() => (format!("---\n{front}---\n"), lines),
        _ => (String::new(), lines),
    };
    let lines: Vec<&str> = lines.lines().map(str::trim_start).collect();
    format!("{front}{name}\n{}\n", lines.join("\n"))
}

/// The fake client.
pub(crate) fn client() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_raymond")).with_file_name("fake-claude");
    assert!(
        path.exists(),
        "{} is missing; `cargo build -p raymond-testkit --bin fake-claude` builds it",
        path.display()
    );
    path
}

/// Sessions by the order in which they were first named: A, B, C …
#[derive(Default)]
pub(crate) struct Letters(BTreeMap<String, char>);

impl Letters {
    fn of(&mut self, session: &str) -> char {
        let next = char::from(b'A' + u8::try_from(self.0.len()).unwrap());
        *self.0.entry(session.to_owned()).or_insert(next)
    }
}

/// Returns `new A | START`, `resume A | START, <goto>END</goto>, END` or `branch A to B | …`: the
/// session by the arguments, and the conversation: the first line of every prompt (`again X` after
/// a notice), and every message of the model.
fn turn_context(invocation: &Invocation, letters: &mut Letters) -> String {
    let one = |flag: &str| invocation.values(flag).first().map(|id| (*id).to_owned());
    let forks = invocation.argv.iter().any(|word| word == "--fork-session");
    let session = match (one("--resume"), one("--session-id"), forks) {
        (None, Some(new), false) => format!("new {}", letters.of(&new)),
        (Some(old), None, false) => format!("resume {}", letters.of(&old)),
        (Some(old), Some(new), true) => {
            format!("branch {} to {}", letters.of(&old), letters.of(&new))
        }
        other => panic!("no such plan: {other:?}"),
    };
    if invocation.refused.is_some() {
        return format!("{session} | refused");
    }
    let said = invocation.history.iter().map(|message| match message.role {
        Role::User => label(&message.text),
        Role::Assistant => message.text.clone(),
    });
    format!("{session} | {}", said.collect::<Vec<_>>().join(", "))
}

fn label(prompt: &str) -> String {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match prompt.split_once("\n\n") {
        Some((notice, body)) if notice.ends_with("then continue.") => {
            format!("again {}", first(body))
        }
        _ => first(prompt),
    }
}
