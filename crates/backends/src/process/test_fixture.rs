//! A fixture for tests with processes.
//!
//! Children report through a FIFO that they are ready, and wait on another FIFO. When a FIFO ends,
//! all processes that had it open are dead.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use raymond_core::ids::{Nonce, TurnId};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{
    Client, FinishedProcess, Grace, Inherit, Limits, Marker, OutputFiles, ProcessStdin,
    RunningProcess, Spec, StreamEvent, leftovers, start, start_client,
};

pub(super) const LONG: Duration = Duration::from_mins(10);

pub(super) const IMPATIENT: Grace = Grace {
    after_exit: Duration::from_millis(50),
    interrupt: Duration::from_millis(50),
    terminate: Duration::from_millis(50),
    kill: LONG,
};

/// A grace so long that a test that waits for it by mistake is ended as too slow.
pub(super) const PATIENT: Grace =
    Grace { after_exit: LONG, interrupt: LONG, terminate: LONG, kill: LONG };

/// A child that reports its pid and waits for a signal. Bash handles a signal only after a `read`
/// that has just begun, so the child reads for a short time, repeatedly.
pub(super) fn trapping(traps: &str) -> String {
    format!(
        "{traps}; mkfifo mute; exec 3<> mute; echo $$ > fifo; while :; do read -t 0.1 -u 3; done"
    )
}

pub(super) struct Fixture {
    pub(super) directory: PathBuf,
    pub(super) nonce: Nonce,
    _removed_with_it: Option<TempDir>,
}

impl Fixture {
    /// Creates the FIFOs `fifo`, which the test reads, and `go`, which the test writes.
    pub(super) fn new() -> Self {
        let owned = tempfile::tempdir().unwrap();
        let directory = owned.path().to_owned();
        for name in ["fifo", "go"] {
            mknodat(CWD, directory.join(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        Self { nonce: nonce(&directory), directory, _removed_with_it: Some(owned) }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(super) fn marker(&self) -> Marker {
        let turn = "main.1.1".parse::<TurnId>().unwrap();
        Marker::new(&self.nonce, &turn, 1)
    }

    pub(super) fn files(&self) -> OutputFiles {
        OutputFiles { stdout: self.path("turn.jsonl"), stderr: self.path("turn.err") }
    }

    pub(super) fn spec(&self, bash: &str) -> Spec {
        Spec {
            program: "bash".into(),
            arguments: vec!["-c".into(), bash.into()],
            cwd: self.directory.clone(),
            inherit: Inherit::All,
            set: Vec::new(),
            unset: Vec::new(),
            marker: self.marker(),
            stdin: ProcessStdin::Null,
        }
    }

    pub(super) fn start(&self, bash: &str) -> RunningProcess {
        start(self.spec(bash)).unwrap()
    }

    pub(super) fn client(&self, bash: &str) -> Client {
        start_client(self.spec(bash), &self.files()).unwrap()
    }

    /// Returns everything that is written to the FIFO until no process has it open.
    pub(super) fn fifo(&self) -> JoinHandle<String> {
        let path = self.path("fifo");
        tokio::task::spawn_blocking(move || fs::read_to_string(path).unwrap())
    }

    /// Releases a child that waits for a line from `go`.
    pub(super) fn go(&self) -> JoinHandle<()> {
        let path = self.path("go");
        tokio::task::spawn_blocking(move || fs::write(path, "go\n").unwrap())
    }

    pub(super) fn left(&self) -> Vec<String> {
        let found = leftovers::find(&self.nonce);
        found.into_iter().map(|leftover| leftover.command).collect()
    }

    /// Runs a test of this program in its own process, with the directory in its environment.
    pub(super) async fn in_own_process(&self, module: &str, test: &str) -> FinishedProcess {
        let process = start(self.own_process(module, test)).unwrap();
        process.finish(&Limits::default(), &CancellationToken::new()).await
    }

    pub(super) fn own_process(&self, module: &str, test: &str) -> Spec {
        let (_crate_name, module) = module.split_once("::").unwrap();
        let test = format!("{module}::{test}");
        let turn = "main.1.1".parse::<TurnId>().unwrap();
        Spec {
            program: std::env::current_exe().unwrap().into(),
            arguments: ["--exact", &test, "--nocapture"].map(Into::into).to_vec(),
            set: vec![(DIRECTORY.into(), self.directory.clone().into())],
            marker: Marker::new(&format!("{}outer", self.nonce).as_str().into(), &turn, 1),
            ..self.spec("")
        }
    }

    /// Returns, in that process, the fixture of the test that started it.
    pub(super) fn from_environment() -> Option<Self> {
        let directory = PathBuf::from(std::env::var_os(DIRECTORY)?);
        Some(Self { nonce: nonce(&directory), directory, _removed_with_it: None })
    }
}

const DIRECTORY: &str = "TEST_DIRECTORY";

/// Returns a unique nonce, so that parallel tests do not find each other's processes.
fn nonce(directory: &Path) -> Nonce {
    let name = directory.file_name().unwrap().to_string_lossy();
    Nonce::new(name.replace('.', "test"))
}

/// Returns all events of a client up to its exit.
pub(super) async fn hear(client: &mut Client) -> Vec<StreamEvent> {
    let mut event = Vec::new();
    loop {
        event.push(client.next(None).await);
        if let Some(StreamEvent::Exited(_)) = event.last() {
            return event;
        }
    }
}

pub(super) fn line(text: &str) -> StreamEvent {
    StreamEvent::Line(text.as_bytes().to_vec())
}

/// Returns the first line of a FIFO, and the rest until no process has it open.
pub(super) fn first_line_and_end(fifo: &Path) -> (String, JoinHandle<String>) {
    let mut reader = BufReader::new(fs::File::open(fifo).unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let rest = tokio::task::spawn_blocking(move || {
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        rest
    });
    (line.trim().to_owned(), rest)
}

/// Returns the peak memory in KiB.
pub(crate) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}
