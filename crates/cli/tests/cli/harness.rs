//! A project in a temporary directory, and the real binary run in it.
//!
//! Every command has a time limit and a clean environment. Paths and times are removed from
//! the output, so that tests can compare whole texts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use raymond_testkit::private_command::private_command;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The longest time that any command may take: far more than on the slowest machine, because only a
/// hanging command needs it.
const LIMIT: Duration = Duration::from_mins(10);

/// A project in a temporary directory.
pub(crate) struct Project {
    directory: TempDir,
    /// Where output goes: not into the project, which may be full or read-only.
    outputs: TempDir,
    variables: Vec<(&'static str, String)>,
}

/// The streams of a command; files replace missing ones.
struct Streams {
    stdin: Stdio,
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
}

/// The exit status and the output of a command.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// The one JSON value on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks the exit code and the whole stderr.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, stderr: &str) -> &Self {
        let lines = |text: &str| -> Vec<String> {
            text.trim().lines().map(|line| line.trim_start().to_owned()).collect()
        };
        let (found, expected) = (lines(&self.stderr), lines(stderr));
        assert_eq!((self.code(), found), (code, expected), "{self:?}");
        self
    }

    /// Checks the exit code and parts of stderr.
    #[track_caller]
    pub(crate) fn mentions(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code(), code, "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is missing in {self:?}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn prints(&self, stdout: &str) -> &Self {
        assert_eq!(self.stdout, stdout, "{self:?}");
        self
    }
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    project: PathBuf,
}

impl Project {
    /// A project with these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let project = Self {
            directory: tempfile::tempdir().unwrap(),
            outputs: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        };
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    /// Adds a variable to the environment of its commands.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Its directory, without links.
    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    /// The directory in place of the user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.outputs.path().join("home")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Runs `raymond` with these words to its end.
    pub(crate) fn raymond(&self, words: &str) -> Output {
        self.start(words).wait()
    }

    /// Starts `raymond` with these words.
    pub(crate) fn start(&self, words: &str) -> Running {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.spawn(env!("CARGO_BIN_EXE_raymond"), &words)
    }

    /// Starts `raymond` with these words and the stdout of the caller.
    pub(crate) fn start_into(&self, stdout: impl Into<Stdio>, words: &str) -> Running {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.spawn_into(Some(stdout.into()), env!("CARGO_BIN_EXE_raymond"), &words)
    }

    /// Runs `raymond` with these words and this text on its stdin.
    pub(crate) fn sends(&self, text: impl AsRef<[u8]>, words: &str) -> Output {
        self.start_sending(text, words).wait()
    }

    /// Starts `raymond` with this text on its stdin.
    pub(crate) fn start_sending(&self, text: impl AsRef<[u8]>, words: &str) -> Running {
        let streams = Streams { stdin: self.holding(text), stdout: None, stderr: None };
        let words: Vec<&str> = words.split_whitespace().collect();
        self.spawn_between(streams, env!("CARGO_BIN_EXE_raymond"), &words)
    }

    /// Starts `raymond` with this text on its stdin and the stderr of the caller.
    pub(crate) fn start_with_stderr(
        &self,
        text: impl AsRef<[u8]>,
        stderr: impl Into<Stdio>,
        words: &str,
    ) -> Running {
        let (stdin, stderr) = (self.holding(text), Some(stderr.into()));
        let words: Vec<&str> = words.split_whitespace().collect();
        let streams = Streams { stdin, stdout: None, stderr };
        self.spawn_between(streams, env!("CARGO_BIN_EXE_raymond"), &words)
    }

    /// Returns a stdin with this text.
    fn holding(&self, text: impl AsRef<[u8]>) -> Stdio {
        let number = fs::read_dir(self.outputs.path()).unwrap().count();
        let path = self.outputs.path().join(format!("{number}-stdin"));
        fs::write(&path, text).unwrap();
        File::open(path).unwrap().into()
    }

    /// Starts `raymond` with the stdin and the stdout of the caller.
    pub(crate) fn start_between(
        &self,
        stdin: impl Into<Stdio>,
        stdout: impl Into<Stdio>,
        words: &str,
    ) -> Running {
        let words: Vec<&str> = words.split_whitespace().collect();
        let streams = Streams { stdin: stdin.into(), stdout: Some(stdout.into()), stderr: None };
        self.spawn_between(streams, env!("CARGO_BIN_EXE_raymond"), &words)
    }

    /// Starts any program in the project.
    pub(crate) fn spawn(&self, program: &str, words: &[&str]) -> Running {
        self.spawn_into(None, program, words)
    }

    /// Starts any program in the project with the stdout of the caller.
    pub(crate) fn spawn_writing(
        &self,
        stdout: impl Into<Stdio>,
        program: &str,
        words: &[&str],
    ) -> Running {
        self.spawn_into(Some(stdout.into()), program, words)
    }

    fn spawn_into(&self, other: Option<Stdio>, program: &str, words: &[&str]) -> Running {
        let streams = Streams { stdin: Stdio::null(), stdout: other, stderr: None };
        self.spawn_between(streams, program, words)
    }

    fn spawn_between(
        &self,
        Streams { stdin, stdout: other, stderr: unheard }: Streams,
        program: &str,
        words: &[&str],
    ) -> Running {
        let number = fs::read_dir(self.outputs.path()).unwrap().count();
        let output = |name: &str| self.outputs.path().join(format!("{number}-{name}"));
        let (stdout, stderr) = (output("stdout"), output("stderr"));
        let (kept, said) = (File::create(&stdout).unwrap(), File::create(&stderr).unwrap());
        let child = private_command(program, &self.home())
            .args(words)
            .current_dir(self.directory.path())
            .env("TZ", "UTC")
            // No client of the user.
            .env("RAYMOND_CLAUDE", "no-such-client")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .stdout(other.unwrap_or_else(|| kept.into()))
            .stderr(unheard.unwrap_or_else(|| said.into()))
            .spawn()
            .unwrap();
        Running { child, stdout, stderr, project: self.root() }
    }

    /// The records of a run.
    pub(crate) fn records(&self, run: &str) -> Vec<Value> {
        let journal = self.read(&format!(".raymond/runs/{run}/journal.jsonl"));
        journal.lines().skip(1).filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The events of a run that have this name.
    pub(crate) fn events(&self, run: &str, name: &str) -> Vec<Value> {
        let records = self.records(run);
        let steps = records.iter().flat_map(|record| record["steps"].as_array().unwrap());
        let events = steps.flat_map(|step| step["events"].as_array().unwrap());
        events.filter_map(|event| event.get(name).cloned()).collect()
    }

    /// Creates the old directory of a run that never started.
    pub(crate) fn never_started(&self, run: &str) {
        let path = self.path(&format!(".raymond/runs/{run}"));
        fs::create_dir_all(&path).unwrap();
        let hour = Duration::from_hours(1);
        let directory = File::open(path).unwrap();
        directory.set_modified(std::time::SystemTime::now() - hour).unwrap();
    }

    /// The state file of a run.
    pub(crate) fn state(&self, run: &str) -> Value {
        serde_json::from_str(&self.read(&format!(".raymond/state/{run}.json"))).unwrap()
    }

    /// The processes that carry a marker of this run.
    pub(crate) fn processes(&self, run: &str) -> Vec<u32> {
        let journal = self.read(&format!(".raymond/runs/{run}/journal.jsonl"));
        // Before there is a journal there are no turns.
        let Some(header) = journal.lines().next() else { return Vec::new() };
        let header: Value = serde_json::from_str(header).unwrap();
        let marker = format!("RAYMOND_TURN={}/", header["nonce"].as_str().unwrap());
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let carries = |path: &Path| {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(marker.as_bytes()))
        };
        processes
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                carries(&entry.path()).then_some(pid)
            })
            .collect()
    }
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// The text on stderr so far.
    pub(crate) fn stderr_text(&self) -> String {
        self.read(&self.stderr)
    }

    /// Whether stderr contains these words so far.
    pub(crate) fn stderr_contains(&self, words: &str) -> bool {
        self.stderr_text().contains(words)
    }

    /// Whether stdout contains these words so far.
    pub(crate) fn stdout_contains(&self, words: &str) -> bool {
        self.read(&self.stdout).contains(words)
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end; a command that takes too long is killed, and fails the test.
    pub(crate) fn wait(mut self) -> Output {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                panic!("it took too long; stderr: {}", self.read(&self.stderr));
            }
            sleep(Duration::from_millis(2));
        };
        Output { status, stdout: self.read(&self.stdout), stderr: self.read(&self.stderr) }
    }

    /// Reads an output file, with fixed paths and without times and durations.
    fn read(&self, path: &Path) -> String {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let text = text.replace(self.project.to_str().unwrap(), "/project");
        let lines = text.split_inclusive('\n').filter(|line| !is_day(line));
        lines.map(without_time).map(without_span).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// `12:03:04 main  …` without the time of day.
fn without_time(line: &str) -> &str {
    if shape(line, 9) == "00:00:00 " { &line[9..] } else { line }
}

/// Whether a line is the heading of a day: `2026-11-19 UTC`.
fn is_day(line: &str) -> bool {
    shape(line, 11) == "0000-00-00 " && line.trim_end().len() == "2026-11-19 UTC".len()
}

/// The start of a line with all digits set to 0.
fn shape(line: &str, length: usize) -> String {
    line.chars().take(length).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

/// `completed in 0.4s: …` without the duration.
fn without_span(line: &str) -> String {
    let spans = ["completed in ", "failed after ", "over_budget after ", "stopped after "];
    let replaced = spans.iter().find_map(|start| {
        let (_, rest) = line.strip_prefix(start)?.split_once(':')?;
        Some(format!("{}:{rest}", start.split(' ').next()?))
    });
    replaced.unwrap_or_else(|| line.to_owned())
}

/// Repeats an attempt until one is quicker than this limit, which a defect always exceeds. A busy
/// machine may be slow several times in a row, but not always.
#[track_caller]
pub(crate) fn is_once_quicker(limit: Duration, mut attempt: impl FnMut() -> Duration) {
    const ATTEMPTS: usize = 10;
    let spans: Vec<Duration> =
        (0..ATTEMPTS).map(|_| attempt()).take_while(|s| *s >= limit).collect();
    assert!(spans.len() < ATTEMPTS, "every attempt takes {limit:?} or more: {spans:?}");
}

/// Waits until a condition is true.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        sleep(Duration::from_millis(2));
    }
}
