//! A project, the real clients with a home of their own, and a model that does what prompts say.
//!
//! Every process of a stage has a clean environment: a private home, a dummy key, the address of
//! the model on this machine, and no proxy. A dropped stage kills its leftover processes.

use std::fs;
use std::path::{Path, PathBuf};

use raymond_core::prices::Prices;
use raymond_testkit::model::{Model, ModelSettings, RecordedRequest};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::clients;
use crate::harness::{Output, Project, Running, until};
use crate::shown;

/// The run that most tests start.
pub(crate) const RUN: &str = "r";

/// A project with everything that its runs can reach.
pub(crate) struct Stage {
    pub(crate) project: Project,
    pub(crate) model: Model,
    /// The home of everything that is started, with the configuration of the clients and the gates.
    home: TempDir,
    /// Further entries of the environment, `NAME=VALUE`.
    environment: Vec<String>,
}

impl Stage {
    /// An empty project in a repository of its own.
    pub(crate) fn new() -> Self {
        let (project, home) = (Project::of(&[]), tempfile::tempdir().unwrap());
        for directory in ["claude", "codex", "gates", "tmp"] {
            fs::create_dir(home.path().join(directory)).unwrap();
        }
        let gates = home.path().join("gates");
        let model = Model::start(ModelSettings { gates, ..ModelSettings::default() }).unwrap();
        fs::write(home.path().join("codex/config.toml"), codex_config(&model.url())).unwrap();
        let stage = Self { project, model, home, environment: Vec::new() };
        let init = stage.project.spawn("git", &["init", "--quiet", "."]);
        init.wait().mentions(0, &[]);
        stage
    }

    /// A workflow `wf` of prompts: each begins with its own name, then come the lines of its model.
    pub(crate) fn prompts(states: &[(&str, &str)]) -> Self {
        let stage = Self::new();
        for (name, lines) in states {
            stage.prompt(name, lines);
        }
        stage
    }

    /// A prompt of the workflow that begins with its name. Lines before `---` are its frontmatter.
    pub(crate) fn prompt(&self, name: &str, lines: &str) {
        let (front, lines) = match lines.split_once("---\n") {
            Some((front, lines)) => (format!("---\n{front}---\n"), lines),
            None => (String::new(), lines),
        };
        let lines: Vec<&str> = lines.lines().map(str::trim_start).collect();
        self.state(&format!("{name}.md"), &format!("{front}{name}\n{}\n", lines.join("\n")));
    }

    /// A file of the workflow.
    pub(crate) fn state(&self, file: &str, text: &str) {
        self.project.write(&format!("wf/{file}"), text);
    }

    /// Adds a variable to the environment.
    pub(crate) fn with(mut self, entry: &str) -> Self {
        self.environment.push(entry.to_owned());
        self
    }

    /// The home of everything that is started.
    pub(crate) fn home(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap()
    }

    /// Runs `raymond` with these words to its end.
    pub(crate) fn raymond(&self, words: &str) -> Output {
        self.start(words).wait()
    }

    /// Runs the workflow as [`RUN`].
    pub(crate) fn run(&self, flags: &str) -> Output {
        self.start_run(flags).wait()
    }

    /// Starts the workflow as [`RUN`].
    pub(crate) fn start_run(&self, flags: &str) -> Running {
        self.start(&format!("run wf --run-id {RUN} {flags}"))
    }

    /// Starts `raymond` with these words.
    pub(crate) fn start(&self, words: &str) -> Running {
        self.start_words(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// Starts `raymond` with words that may hold spaces.
    pub(crate) fn start_words(&self, words: &[&str]) -> Running {
        self.spawn(Path::new(env!("CARGO_BIN_EXE_raymond")), words)
    }

    /// Starts any program as `raymond` is started.
    pub(crate) fn spawn(&self, program: &Path, words: &[&str]) -> Running {
        let environment = self.environment();
        let mut all = vec!["-i"];
        all.extend(environment.iter().map(String::as_str));
        all.push(program.to_str().unwrap());
        all.extend(words);
        self.project.spawn("env", &all)
    }

    /// The environment of every process.
    pub(crate) fn environment(&self) -> Vec<String> {
        let home = self.home();
        let mut environment = vec![
            "TZ=UTC".to_owned(),
            "LANG=C.UTF-8".to_owned(),
            "PATH=/usr/local/bin:/usr/bin:/bin".to_owned(),
            format!("HOME={}", home.display()),
            format!("TMPDIR={}", home.join("tmp").display()),
            format!("RAYMOND_CLAUDE={}", clients::claude().display()),
            format!("CLAUDE_CONFIG_DIR={}", home.join("claude").display()),
            format!("RAYMOND_CODEX={}", clients::codex().display()),
            format!("CODEX_HOME={}", home.join("codex").display()),
            format!("ANTHROPIC_BASE_URL={}", self.model.url()),
            "ANTHROPIC_API_KEY=sk-not-a-key".to_owned(),
        ];
        let quiet = [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_TELEMETRY",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_AUTOUPDATER",
        ];
        environment.extend(quiet.map(|name| format!("{name}=1")));
        environment.extend(self.environment.iter().cloned());
        environment
    }

    /// Waits until the model reaches a gate (`model: wait GATE`).
    #[track_caller]
    pub(crate) fn reaches(&self, gate: &str) {
        let waiting = self.home.path().join(format!("gates/{gate}.waiting"));
        until(&format!("the model waits at {gate}"), || waiting.exists());
    }

    /// Opens a gate for all replies, now and later.
    pub(crate) fn opens(&self, gate: &str) {
        fs::write(self.home.path().join("gates").join(gate), "").unwrap();
    }

    /// Every request to the model, in order.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        let requests = self.model.requests().into_iter();
        requests.filter(|seen| seen.api.is_answered_by_model()).collect()
    }

    /// Whether the client has saved a message of this session.
    pub(crate) fn keeps(&self, session: &str) -> bool {
        self.kept(session, "")
    }

    /// Whether the client has saved a prompt of this session with these words.
    pub(crate) fn kept(&self, session: &str, words: &str) -> bool {
        let projects = fs::read_dir(self.home.path().join("claude/projects"));
        let mut files = projects.into_iter().flatten().flatten();
        files.any(|project| {
            let file = project.path().join(format!("{session}.jsonl"));
            let said = |line: &str| line.contains("\"type\":\"user\"") && line.contains(words);
            fs::read_to_string(file).is_ok_and(|text| text.lines().any(said))
        })
    }

    /// The messages of the conversation that the model received last.
    pub(crate) fn last_shown(&self) -> Option<Vec<String>> {
        let seen = self.requests().pop()?;
        Some(seen.conversation.into_iter().map(|said| said.text).collect())
    }

    /// Every turn of a sequential run; see [`shown::turn_contexts`].
    #[track_caller]
    pub(crate) fn turn_contexts(&self) -> Vec<String> {
        let started = self.events("turn_started").into_iter();
        let plans: Vec<Value> = started.map(|mut started| started["plan"].take()).collect();
        shown::turn_contexts(&plans, &self.requests())
    }

    /// Every event of the journal, in order.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let records = self.project.records(RUN);
        let steps = records.iter().flat_map(|record| record["steps"].as_array().unwrap());
        steps.flat_map(|step| step["events"].as_array().unwrap()).cloned().collect()
    }

    /// The events of the journal that have this name.
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        self.project.events(RUN, name)
    }

    /// The recorded charges by turn: micro-dollars and their basis.
    pub(crate) fn charges(&self) -> Vec<(String, u64, String)> {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let charge = |event: &Value| {
            let (_, body) = event.as_object()?.iter().next()?;
            let charge = body.get("charge")?;
            Some((word(&body["turn"]), charge["amount"].as_u64()?, word(&charge["basis"])))
        };
        self.journal().iter().filter_map(charge).collect()
    }

    /// The spent micro-dollars of the run, by `status`.
    pub(crate) fn spent(&self) -> u64 {
        let status = self.raymond(&format!("status {RUN} --json")).json();
        let dollars = status["spent_usd"].as_f64().unwrap();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a test spends little, and nothing below zero"
        )]
        let micros = (dollars * 1e6).round() as u64;
        micros
    }

    /// The list price of all replies of the model, in micro-dollars.
    pub(crate) fn billed(&self) -> u64 {
        self.model.cost(&Prices::default()).unwrap().0
    }

    /// The living processes of this stage: number and command.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let mark = format!("HOME={}", self.home().display()).into_bytes();
        let process = |entry: fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let ours = environment.split(|byte| *byte == 0).any(|entry| entry == mark);
            let words = fs::read(entry.path().join("cmdline")).ok()?;
            ours.then(|| (pid, String::from_utf8_lossy(&words).replace('\0', " ")))
        };
        fs::read_dir("/proc").unwrap().flatten().filter_map(process).collect()
    }

    /// Checks that no process of this stage runs.
    #[track_caller]
    pub(crate) fn leaves_nothing(&self) {
        assert_eq!(self.processes(), []);
    }
}

/// The configuration of Codex: the model on this machine, one retry, and no other requests.
fn codex_config(url: &str) -> String {
    format!(
        "model = \"gpt-5.5\"
model_provider = \"scripted\"

[model_providers.scripted]
name = \"scripted\"
base_url = \"{url}/v1\"
wire_api = \"responses\"
experimental_bearer_token = \"sk-not-a-key\"
request_max_retries = 0
stream_max_retries = 1

[sandbox_workspace_write]
exclude_slash_tmp = true

[analytics]
enabled = false

[features]
apps = false
plugins = false
"
    )
}

impl Drop for Stage {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                kill_process(pid, Signal::KILL).ok();
            }
        }
    }
}
