//! `-d`: this same program again, on its own, with its words in a file.
//!
//! The one who was called waits until the start is recorded, prints the id and leaves. The one who was
//! started makes a session of its own, so that no terminal ends it, and then does what was asked. It
//! is told by a hidden flag which run it is.

use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use raymond_backends::process::{self, Background, Detached, Files};
use raymond_core::ids::RunId;
use raymond_core::run::{Event, Record};
use raymond_core::time::Timestamp;
use raymond_core::view::Status;
use raymond_engine::inspect::inspect;
use raymond_engine::project::Project;
use raymond_engine::{clock, fold};
use raymond_store::Journal;
use raymond_store::journal::Cursor;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{self, Talk};
use crate::failure::{ENVIRONMENT, Failure};
use crate::interrupts::{self, Listener};
use crate::runs;

use super::{hand_over, print_json};

/// How often the journal is looked at.
const BEAT: Duration = Duration::from_millis(10);

/// Whether a run goes to the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// It is driven here.
    Fore,
    /// It is to be started on its own.
    Back,
    /// This is the one that was.
    Detached,
}

impl Ground {
    pub(crate) fn of(flags: &args::Ground) -> Self {
        match (&flags.detached_as, flags.detach) {
            (Some(_), _) => Self::Detached,
            (None, true) => Self::Back,
            (None, false) => Self::Fore,
        }
    }
}

/// The first act of one that was started in the background.
pub(crate) fn own_session() -> Result<(), Failure> {
    process::own_session()
        .map_err(|error| Failure::environment(format!("could not leave the terminal: {error}")))
}

/// Starts this program again for `run`, and returns once its start is recorded.
pub(crate) fn start(project: &Project, run: &RunId, talk: Talk) -> Result<u8, Failure> {
    let (paths, disk) = (project.paths(run), project.disk.as_ref());
    let is_new = !paths.exists(disk)?;
    let runtime = crate::runtime()?;
    // Whatever was started is named, even to somebody who is in a hurry.
    let mut interrupt = {
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt()).map_err(lost)?;
        drop(entered);
        interrupt
    };
    interrupts::leave_to(Listener::Starter);
    project.root.ensure(disk)?;
    paths.ensure(disk)?;
    let log = paths.directory.join("console.log");
    let said = length(&log);
    let mut eye = Eye { project, run, since: clock::now(), cursor: None };
    let (ended, interrupted) = runtime.block_on(async {
        let mut detached = process::detach(&background(run, &log)?).map_err(lost)?;
        let ended = eye.until_started(&mut detached).await.map_err(lost)?;
        let asked = tokio::time::timeout(Duration::ZERO, interrupt.recv()).await;
        Ok::<_, Failure>((ended, asked.is_ok()))
    })?;
    let Some(status) = ended else {
        tell(run, talk)?;
        if interrupted {
            crate::say!("it goes on in the background; to stop it: raymond stop {run}");
        }
        return Ok(if interrupted { Status::Stopped.exit_code() } else { 0 });
    };
    match said_since(&log, said).trim_end() {
        "" => crate::say!("raymond: {run} did not start, and nothing was said: {status}"),
        words => crate::say!("{words}"),
    }
    if is_new && !runs::is_started(project, run) {
        // It never was a run: nothing of it stays.
        paths.remove(disk).ok();
    }
    Ok(code(status))
}

fn tell(run: &RunId, talk: Talk) -> Result<(), Failure> {
    if talk.json {
        return print_json(json!({ "version": crate::json::VERSION, "run_id": run }));
    }
    hand_over(&format!("{run}\n"))?;
    if !talk.quiet {
        crate::say!("{run} runs in the background; to follow it: raymond attach {run}");
    }
    Ok(())
}

/// This program with the same words, and the flag that says which run it is.
fn background(run: &RunId, log: &Path) -> Result<Background, Failure> {
    let mut words = args::with_run(std::env::args_os()).into_iter().skip(1);
    let command = words.next().into_iter();
    let told = ["--detached-as", run.as_str()].map(OsString::from);
    Ok(Background {
        program: std::env::current_exe().map_err(lost)?.into_os_string(),
        arguments: command.chain(told).chain(words).collect(),
        cwd: std::env::current_dir().map_err(lost)?,
        files: Files { stdout: log.to_owned(), stderr: log.to_owned() },
    })
}

/// Watches a journal for a start.
struct Eye<'p> {
    project: &'p Project,
    run: &'p RunId,
    /// Earlier starts are others.
    since: Timestamp,
    cursor: Option<Cursor>,
}

impl Eye<'_> {
    /// How it ended, when it ended without a start; none once the start is recorded.
    async fn until_started(
        &mut self,
        detached: &mut Detached,
    ) -> std::io::Result<Option<ExitStatus>> {
        loop {
            let ended = tokio::select! {
                ended = detached.exited() => Some(ended?),
                () = tokio::time::sleep(BEAT) => None,
            };
            // It may have started and ended since the last look.
            if self.sees_a_start() {
                return Ok(None);
            }
            if ended.is_some() {
                return Ok(ended);
            }
        }
    }

    fn sees_a_start(&mut self) -> bool {
        let is_start =
            |event: &Event| matches!(event, Event::RunStarted(_) | Event::RunResumed { .. });
        let events =
            |record: &Record| record.steps.iter().flat_map(|step| &step.events).any(is_start);
        self.new_records().iter().any(|record| record.at >= self.since && events(record))
    }

    /// What was recorded since the last look. There may be no journal yet, and one that is cut is
    /// read anew.
    fn new_records(&mut self) -> Vec<Record> {
        let Some(mut cursor) = self.cursor.take() else {
            let Ok(seen) = inspect(self.project, self.run) else { return Vec::new() };
            self.cursor = Some(seen.journal.cursor);
            return seen.records().map_while(Result::ok).collect();
        };
        let path = self.project.paths(self.run).journal;
        let Ok(lines) = Journal::follow(self.project.disk.as_ref(), &path, &mut cursor) else {
            return Vec::new();
        };
        self.cursor = Some(cursor);
        lines.iter().filter_map(|line| fold::record(line.body, line.seq).ok()).collect()
    }
}

fn length(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |found| found.len())
}

/// What was said since.
fn said_since(log: &Path, start: u64) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = std::fs::File::open(log) {
        let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes));
        drop(read);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(ENVIRONMENT)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err calls")]
fn lost(error: std::io::Error) -> Failure {
    Failure::environment(format!("could not start in the background: {error}"))
}
