//! `--detach`: starts this program again as a background process.
//!
//! The calling process waits until the start is recorded, prints the id and exits. The new process
//! starts its own session, so that closing the terminal does not end it, and writes its output to
//! `console.log`. A hidden flag names the run.

use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use raymond_backends::process::{self, Background, Detached, OutputFiles};
use raymond_core::ids::RunId;
use raymond_core::run::{Event, Record};
use raymond_core::time::Timestamp;
use raymond_core::view::Status;
use raymond_engine::inspect::{inspect, owner};
use raymond_engine::project::Project;
use raymond_engine::{clock, fold};
use raymond_store::Journal;
use raymond_store::journal::Cursor;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{BackgroundFlags, OutputFlags};
use crate::command_line;
use crate::exit_code;
use crate::failure::{ENVIRONMENT, Failure, LOCKED, USAGE};
use crate::interrupts::{self, SignalOwner};
use crate::runs;

use super::{print_json, write_stdout};

/// Pause between two reads of the journal: a user waits for the id, so it is short.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The way in which a run is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DriveMode {
    /// This process drives the run.
    Foreground,
    /// This process starts a background process.
    StartBackground,
    /// This process is the background process.
    Detached,
}

impl DriveMode {
    pub(crate) fn of(flags: &BackgroundFlags) -> Self {
        match (&flags.detached_as, flags.detach) {
            (Some(_), _) => Self::Detached,
            (None, true) => Self::StartBackground,
            (None, false) => Self::Foreground,
        }
    }
}

/// Leaves the session of the terminal, so that Ctrl-C and a closed terminal do not reach this
/// process.
pub(crate) fn own_session() -> Result<(), Failure> {
    process::own_session()
        .map_err(|error| Failure::environment(format!("could not leave the terminal: {error}")))
}

/// Starts this program again for `run`, and returns once the start is recorded.
///
/// `stdin` is what the new process reads from its standard input.
pub(crate) fn start(
    project: &Project,
    run: &RunId,
    output: OutputFlags,
    stdin: Vec<u8>,
) -> Result<u8, Failure> {
    let (paths, disk) = (project.paths(run), project.disk.as_ref());
    // Decides below whether a failed start may remove the directory: the directory of an older run
    // must stay.
    let is_new = !paths.exists(disk)?;
    let runtime = crate::runtime::runtime()?;
    // A Ctrl-C during the start must not hide the id of a run that has already started.
    let mut interrupt = {
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt()).map_err(start_failure)?;
        drop(entered);
        interrupt
    };
    // Behind the registration of the handler, so that no Ctrl-C falls between the two.
    interrupts::hand_over_to(SignalOwner::Starter);
    project.root.ensure(disk)?;
    // The background process writes `console.log` from its first moment, so the directory must
    // exist before it starts.
    paths.ensure(disk)?;
    let log = paths.directory.join("console.log");
    // `console.log` may contain output of earlier starts, which must not be printed again.
    let log_length = length(&log);
    // The time is read before the process starts: its first record must not look older.
    let mut watcher =
        StartWatcher { project, run, since: clock::now(), cursor: None, started: false };
    let (ended, interrupted) = runtime.block_on(async {
        let mut detached =
            process::detach(&background(run, &log, stdin)?).map_err(start_failure)?;
        let ended = watcher.until_started(&mut detached).await.map_err(start_failure)?;
        // Only polls: a Ctrl-C that arrived during the start is already queued.
        let asked = tokio::time::timeout(Duration::ZERO, interrupt.recv()).await;
        Ok::<_, Failure>((ended, asked.is_ok()))
    })?;
    // `None` means that the start is recorded. From here on the run belongs to the background
    // process.
    let Some(status) = ended else {
        print_id(run, output)?;
        if interrupted {
            crate::say!("the run continues in the background; to stop it: raymond stop {run}");
        }
        return Ok(if interrupted { exit_code::of_run(Status::Stopped) } else { 0 });
    };
    match log_since(&log, log_length).trim_end() {
        "" => crate::say!("raymond: {run} did not start and printed nothing: {status}"),
        words => crate::say!("{words}"),
    }
    // The process may have been killed just after its first record, so the journal decides.
    if is_new && !runs::is_started(project, run) {
        // The run never started, so its directory is removed.
        // Ignored: `doctor --fix` removes the directory of a run that never started.
        paths.remove(disk).ok();
    }
    Ok(code(status))
}

fn print_id(run: &RunId, output: OutputFlags) -> Result<(), Failure> {
    if output.json {
        return print_json(json!({ "version": crate::json::VERSION, "run_id": run }));
    }
    write_stdout(&format!("{run}\n"))?;
    if !output.quiet {
        crate::say!("{run} runs in the background; to follow it: raymond attach {run}");
    }
    Ok(())
}

/// Returns this command line with the hidden flag that names the run.
fn background(run: &RunId, log: &Path, stdin: Vec<u8>) -> Result<Background, Failure> {
    // The hidden flag goes directly behind the command, before positional arguments and a possible
    // `--`.
    // `with_run` inserts the command of the short form, so the first word is always a command.
    let mut words = command_line::with_run(std::env::args_os()).into_iter().skip(1);
    let command = words.next().into_iter();
    let run_flag = ["--detached-as", run.as_str()].map(OsString::from);
    Ok(Background {
        // Not the first argument: a name would be searched on `PATH`, where another release may be.
        program: std::env::current_exe().map_err(start_failure)?.into_os_string(),
        arguments: command.chain(run_flag).chain(words).collect(),
        cwd: std::env::current_dir().map_err(start_failure)?,
        stdin,
        files: OutputFiles { stdout: log.to_owned(), stderr: log.to_owned() },
    })
}

/// A watcher of the journal for the start of a run.
struct StartWatcher<'p> {
    project: &'p Project,
    run: &'p RunId,
    /// Ignores records of earlier starts.
    since: Timestamp,
    cursor: Option<Cursor>,
    /// Whether the start is recorded, perhaps by another process.
    started: bool,
}

impl StartWatcher<'_> {
    /// Waits for the start; returns the exit status if the process ended without one.
    async fn until_started(
        &mut self,
        detached: &mut Detached,
    ) -> std::io::Result<Option<ExitStatus>> {
        loop {
            let ended = tokio::select! {
                ended = detached.exited() => Some(ended?),
                () = tokio::time::sleep(POLL_INTERVAL) => None,
            };
            // The process may have started the run and ended since the last read, so the journal
            // decides.
            self.started |= self.sees_start();
            match ended {
                // Another process started the run at the same time.
                Some(status) if is_refusal(status) => return Ok(Some(status)),
                Some(status) => return Ok((!self.started).then_some(status)),
                None if self.started && self.is_owner(detached) => return Ok(None),
                None => {}
            }
        }
    }

    fn is_owner(&self, detached: &Detached) -> bool {
        let owner = owner(self.project, self.run).ok().flatten();
        owner.is_some_and(|owner| u32::try_from(detached.id()) == Ok(owner.process.pid))
    }

    fn sees_start(&mut self) -> bool {
        let is_start =
            |event: &Event| matches!(event, Event::RunStarted(_) | Event::RunResumed { .. });
        let events =
            |record: &Record| record.steps.iter().flat_map(|step| &step.events).any(is_start);
        // An earlier start of the same run may be in the journal, too: only a record since this
        // start counts.
        self.new_records().iter().any(|record| record.at >= self.since && events(record))
    }

    /// Returns the records since the last read. The journal may not exist yet. After a rewind the
    /// cursor is invalid, and the journal is read from the start.
    fn new_records(&mut self) -> Vec<Record> {
        let Some(mut cursor) = self.cursor.take() else {
            let Ok(seen) = inspect(self.project, self.run) else { return Vec::new() };
            self.cursor = Some(seen.journal.cursor);
            return seen.records().map_while(Result::ok).collect();
        };
        let path = self.project.paths(self.run).journal;
        // On an error the cursor stays `None`, so the next call reads the journal from the start.
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

/// Returns the output since `start`. A partly read log is better than none: these words only
/// explain a failed start.
pub(super) fn log_since(log: &Path, start: u64) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = std::fs::File::open(log) {
        let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes));
        drop(read);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns whether the process was refused, so that it started nothing.
fn is_refusal(status: ExitStatus) -> bool {
    [USAGE, LOCKED].contains(&code(status))
}

fn code(status: ExitStatus) -> u8 {
    // A process that a signal killed has no exit code.
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(ENVIRONMENT)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err calls")]
fn start_failure(error: std::io::Error) -> Failure {
    Failure::environment(format!("could not start in the background: {error}"))
}
