//! `raymond tend`: continues the runs of this project that wait for a time without a process.
//!
//! Each run is continued by a `raymond resume` of its own, so that everything that refuses a resume
//! refuses it here, too, and one run cannot hold up another.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use raymond_backends::process::{self, Background, Files};
use raymond_core::ids::RunId;
use raymond_core::time::{Span, Timestamp};
use raymond_core::view::{Owner, Status, Waiting};
use raymond_engine::clock;
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;
use raymond_engine::runner::{Signal, Signals};
use serde_json::json;

use crate::args::Tend;
use crate::failure::{Failure, LOCKED};
use crate::local_time::time_at;
use crate::paths;
use crate::runs::{self, Examined};

use super::background::log_since;
use super::{print_json, write_stdout};

/// The longest pause between two looks: another command may have changed a run meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Runs that may work at the same time because this command woke them.
const MOST_AWAKE: usize = 4;
/// How long a run that could not be continued is left alone.
const PATIENCE: Span = Span::minutes(60);

pub(crate) fn tend(flags: &Tend) -> Result<u8, Failure> {
    let project = runs::project()?;
    let _lock = lock(&project)?;
    let failed = |error| Failure::environment(format!("could not listen for signals: {error}"));
    crate::runtime::runtime()?.block_on(async {
        let mut signals = Signals::listen().map_err(failed)?;
        let mut tender = Tender::default();
        loop {
            let pause = tender.round(&project, flags).await?;
            if flags.once {
                return Ok(0);
            }
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::HangUp => return Ok(129),
                    Signal::Interrupt => return Ok(130),
                    Signal::Terminate => return Ok(143),
                    // Addressed to the owner of a run.
                    Signal::Wake => {}
                },
                () = tokio::time::sleep(pause) => {}
            }
        }
    })
}

/// Makes sure that only one process tends a project.
fn lock(project: &Project) -> Result<File, Failure> {
    project.root.ensure(project.disk.as_ref())?;
    let path = project.root.path().join("tend.lock");
    let failed =
        |error| Failure::environment(format!("could not lock {}: {error}", path.display()));
    let file = File::create(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::usage("another `raymond tend` is at work in this project").code(LOCKED))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The knowledge of earlier rounds.
#[derive(Default)]
struct Tender {
    /// Runs that need no further look until their journals change.
    settled: BTreeMap<RunId, Stamp>,
    /// Runs that this command has woken and that may still work.
    awake: Vec<RunId>,
    /// Runs that could not be continued, each until a time.
    left_alone: BTreeMap<RunId, Timestamp>,
    /// The last announcement of the next time.
    announced: String,
}

/// The state of a journal file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    changed: Option<SystemTime>,
}

/// The need of a run.
enum Need {
    Nothing,
    /// A process drives it.
    Driven,
    /// To be continued at this time.
    At(Timestamp),
}

/// A run whose time has come.
struct Due {
    run: RunId,
    started: Timestamp,
}

impl Tender {
    /// Wakes the runs that are due, and returns how long to wait before the next round.
    async fn round(&mut self, project: &Project, flags: &Tend) -> Result<Duration, Failure> {
        let now = clock::now();
        self.left_alone.retain(|_, until| *until > now);
        let (mut due, mut next) = (Vec::new(), None::<Timestamp>);
        let mut driven = Vec::new();
        for run in project.runs()? {
            if self.left_alone.contains_key(&run) {
                continue;
            }
            let stamp = stamp(&project.paths(&run).journal);
            if self.settled.get(&run).is_some_and(|known| *known == stamp) {
                continue;
            }
            self.settled.remove(&run);
            let Examined::Readable(seen) = runs::examine(project, &run) else { continue };
            match need(&seen, flags.interrupted) {
                Need::At(at) if at <= now => {
                    due.push(Due { started: seen.head.ledger.started_at, run });
                }
                Need::At(at) => next = Some(next.map_or(at, |next| next.min(at))),
                Need::Driven => driven.push(run),
                Need::Nothing => {
                    self.settled.insert(run, stamp);
                }
            }
        }
        self.awake.retain(|run| driven.contains(run));
        due.sort_by_key(|due| due.started);
        let room = MOST_AWAKE.saturating_sub(self.awake.len());
        let is_full = due.len() > room;
        let (mut woken, mut left) = (Vec::new(), Vec::new());
        for Due { run, .. } in due.into_iter().take(room) {
            match wake(project, &run).await {
                Ok(()) => {
                    self.awake.push(run.clone());
                    woken.push(run);
                }
                Err(why) => {
                    self.left_alone.insert(run.clone(), now + PATIENCE);
                    left.push((run, why));
                }
            }
        }
        report(&woken, &left, flags)?;
        let words = next_words(project, next, now);
        if !flags.once && !flags.json && self.announced != words {
            crate::say!("{words}");
            self.announced = words;
        }
        let pause = next.map(|next| Duration::from_millis(next.0.saturating_sub(now.0)));
        // With more work than room, a run that ends makes room at any time.
        let pause = if is_full { Some(Duration::from_secs(1)) } else { pause };
        Ok(pause.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE))
    }
}

fn stamp(journal: &Path) -> Stamp {
    let found = std::fs::metadata(journal).ok();
    let length = found.as_ref().map_or(0, std::fs::Metadata::len);
    Stamp { length, changed: found.and_then(|found| found.modified().ok()) }
}

/// Returns when a run without a process is to be continued.
fn need(seen: &Inspection, interrupted: bool) -> Need {
    match seen.status {
        Status::Waiting(
            Waiting::Time(at) | Waiting::Retry(at) | Waiting::Quota(Some(at)),
            Owner::Gone,
        ) => Need::At(at),
        // That costs money, so only a flag allows it.
        Status::Interrupted if interrupted => Need::At(Timestamp(0)),
        // A journal does not change when the owner dies, so these runs are looked at again.
        Status::Running | Status::Waiting(_, Owner::Alive) | Status::Interrupted => Need::Driven,
        Status::Waiting(
            Waiting::Quota(None) | Waiting::Person | Waiting::Caller | Waiting::Environment,
            Owner::Gone,
        )
        | Status::Completed
        | Status::Failed
        | Status::OverBudget
        | Status::Cancelled
        | Status::Stopped => Need::Nothing,
    }
}

/// Continues a run in the background, or returns why that failed.
async fn wake(project: &Project, run: &RunId) -> Result<(), String> {
    let log: PathBuf = project.paths(run).directory.join("tend.log");
    std::fs::remove_file(&log).ok();
    let words = ["resume", run.as_str(), "--detach", "--no-wait", "--quiet"];
    let started = std::env::current_exe().and_then(|program| {
        process::detach(&Background {
            program: program.into_os_string(),
            arguments: words.iter().map(Into::into).collect(),
            cwd: std::env::current_dir()?,
            stdin: Vec::new(),
            files: Files { stdout: log.clone(), stderr: log.clone() },
        })
    });
    let ended = match started {
        Ok(mut resume) => resume.exited().await,
        Err(error) => Err(error),
    };
    let status = ended.map_err(|error| error.to_string())?;
    if status.success() {
        std::fs::remove_file(&log).ok();
        return Ok(());
    }
    // The log stays, because it may say more than its first line.
    let said = log_since(&log, 0);
    let reason = said.lines().find_map(|line| line.strip_prefix("raymond: "));
    Err(reason.map_or_else(|| status.to_string(), str::to_owned))
}

fn next_words(project: &Project, next: Option<Timestamp>, now: Timestamp) -> String {
    let place = paths::below_home(project.root.project());
    let next = match next {
        Some(next) => format!("the next run is due at {}", time_at(next, now, &TimeZone::system())),
        None => "no run waits".to_owned(),
    };
    format!("tending {place}: {next}; Ctrl-C ends this")
}

fn report(woken: &[RunId], left: &[(RunId, String)], flags: &Tend) -> Result<(), Failure> {
    if flags.json {
        if flags.once || !woken.is_empty() || !left.is_empty() {
            let left: Vec<_> =
                left.iter().map(|(run, why)| json!({ "run_id": run, "why": why })).collect();
            let version = crate::json::VERSION;
            print_json(json!({ "version": version, "woken": woken, "left": left }))?;
        }
        return Ok(());
    }
    for run in woken {
        write_stdout(&format!("{run}\n"))?;
    }
    for (run, why) in left {
        crate::say!("{run}: could not continue: {why}");
    }
    Ok(())
}
