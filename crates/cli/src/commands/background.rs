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
use raymond_engine::look::look;
use raymond_engine::project::Project;
use serde_json::json;

use crate::args::{self, Talk};
use crate::failure::Failure;

use super::{hand_over, print_json};

/// How often the journal is looked at.
const BEAT: Duration = Duration::from_millis(10);

/// Whether a run goes to the background.
#[derive(Debug, Clone)]
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
    let paths = project.paths(run);
    project.root.ensure(project.disk.as_ref())?;
    paths.ensure(project.disk.as_ref())?;
    let log = paths.directory.join("console.log");
    let (said, recorded) = (length(&log), last_record(project, run));
    let runtime = crate::runtime()?;
    let ended = runtime.block_on(async {
        let mut detached = process::detach(&background(run, &log)?).map_err(lost)?;
        until_started(project, run, recorded, &mut detached).await.map_err(lost)
    })?;
    match ended {
        None if talk.json => {
            print_json(json!({ "version": crate::json::VERSION, "run_id": run }))?;
            Ok(0)
        }
        None => {
            hand_over(&format!("{run}\n"))?;
            if !talk.quiet {
                crate::say!("{run} runs in the background; to follow it: raymond attach {run}");
            }
            Ok(0)
        }
        Some(status) => {
            let words = since(&log, said);
            crate::say!("{}", words.trim_end());
            if recorded == 0 {
                // It never was a run: nothing of it stays.
                std::fs::remove_file(&log).ok();
            }
            Ok(code(status))
        }
    }
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
        unset: Vec::new(),
        files: Files { stdout: log.to_owned(), stderr: log.to_owned() },
    })
}

/// How it ended, when it ended without a start; none once the start is recorded.
async fn until_started(
    project: &Project,
    run: &RunId,
    recorded: u64,
    detached: &mut Detached,
) -> std::io::Result<Option<ExitStatus>> {
    loop {
        let ended = tokio::select! {
            ended = detached.exited() => Some(ended?),
            () = tokio::time::sleep(BEAT) => None,
        };
        // It may have started and ended since the last look.
        if has_started(project, run, recorded) {
            return Ok(None);
        }
        if ended.is_some() {
            return Ok(ended);
        }
    }
}

/// Whether a start or a resume stands behind the record that was the last.
fn has_started(project: &Project, run: &RunId, recorded: u64) -> bool {
    let starts = |record: &Record| {
        let mut events = record.steps.iter().flat_map(|step| &step.events);
        record.seq > recorded
            && events.any(|event| matches!(event, Event::RunStarted(_) | Event::RunResumed { .. }))
    };
    look(project, run).is_ok_and(|seen| seen.records.iter().any(starts))
}

fn last_record(project: &Project, run: &RunId) -> u64 {
    look(project, run).map_or(0, |seen| seen.head.seq)
}

fn length(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |found| found.len())
}

/// What was said since.
fn since(log: &Path, start: u64) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = std::fs::File::open(log) {
        let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes));
        drop(read);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::failure::ENVIRONMENT)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err calls")]
fn lost(error: std::io::Error) -> Failure {
    Failure::environment(format!("could not start in the background: {error}"))
}
