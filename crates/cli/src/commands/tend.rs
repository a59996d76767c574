//! `raymond tend`: continues the runs of this project that wait for a time without a process.
//!
//! Each run is continued by a `raymond resume` of its own, so that everything that refuses a resume
//! refuses it here, too, and one run cannot hold up another.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use raymond_backends::process::{self, Background, OutputFiles};
use raymond_core::ids::RunId;
use raymond_core::time::{Span, Timestamp};
use raymond_core::view::{OwnerState, Status, Waiting};
use raymond_engine::clock;
use raymond_engine::project::Project;
use raymond_engine::runner::{Signal, Signals};
use raymond_store::journal::Tail;
use serde_json::json;

use crate::args::Tend;
use crate::failure::{Failure, LOCKED};
use crate::local_time::time_at;
use crate::path_text;
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
    // A command that only looks leaves no trace where there are no runs.
    if flags.once && !project.root.path().is_dir() {
        return Ok(0);
    }
    let _lock = lock(&project)?;
    let failed = |error| Failure::environment(format!("could not listen for signals: {error}"));
    crate::runtime::runtime()?.block_on(async {
        let mut signals = Signals::listen().map_err(failed)?;
        let mut tender = Tender::default();
        let mut pause = Duration::ZERO;
        loop {
            let round = async {
                tokio::time::sleep(pause).await;
                tender.round(&project, flags).await
            };
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::HangUp => return Ok(129),
                    Signal::Interrupt => return Ok(130),
                    Signal::Terminate => return Ok(143),
                    // Addressed to the owner of a run.
                    Signal::Wake => {}
                },
                next = round => {
                    pause = next?;
                    if flags.once {
                        return Ok(0);
                    }
                }
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
    let mut options = File::options();
    let options = options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(&path).map_err(failed)?;
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
    /// Runs that could not be continued, each until a time or until its journal changes.
    left_alone: BTreeMap<RunId, LeftAlone>,
    /// The last announcement of the next time.
    announced: String,
}

struct LeftAlone {
    until: Timestamp,
    stamp: Stamp,
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
    /// A person must look at it.
    Unreadable(String),
}

/// A run whose time has come.
struct Due {
    run: RunId,
    at: Timestamp,
}

/// The end of an attempt to wake a run.
enum Woken {
    Continues,
    /// Another process continues it.
    Driven,
    Failed(String),
}

/// The runs that a round found.
#[derive(Default)]
struct RunsToTend {
    due: Vec<Due>,
    driven: Vec<RunId>,
    unreadable: Vec<(RunId, String)>,
    /// The next time at which a run is due.
    next: Option<Timestamp>,
}

impl Tender {
    /// Wakes the runs that are due, and returns how long to wait before the next round.
    async fn round(&mut self, project: &Project, flags: &Tend) -> Result<Duration, Failure> {
        let now = clock::now();
        let RunsToTend { mut due, driven, unreadable, next } = self.look(project, flags, now)?;
        self.awake.retain(|run| driven.contains(run));
        // The run that has waited longest comes first, so that none waits for ever.
        due.sort_by_key(|due| due.at);
        let room = MOST_AWAKE.saturating_sub(self.awake.len());
        let rest = due.split_off(room.min(due.len()));
        let mut left: Vec<(RunId, String)> = Vec::new();
        for (run, why) in unreadable {
            self.leave_alone(project, &run, now);
            left.push((run, why));
        }
        let mut woken = Vec::new();
        for (run, end) in wake_all(project, due).await {
            match end {
                Woken::Continues => {
                    self.awake.push(run.clone());
                    woken.push(run);
                }
                Woken::Driven => {}
                Woken::Failed(why) => {
                    self.leave_alone(project, &run, now);
                    left.push((run, why));
                }
            }
        }
        let is_full = !rest.is_empty();
        if flags.once {
            let why = format!("at most {MOST_AWAKE} runs are woken at a time");
            left.extend(rest.into_iter().map(|due| (due.run, why.clone())));
        }
        report(&woken, &left, flags)?;
        if !flags.once && !flags.json && woken.is_empty() {
            let words = next_words(project, next, now);
            if self.announced != words {
                crate::say!("{words}");
                self.announced = words;
            }
        }
        // A run that was woken may park again or end at any time, and then makes room.
        let soon = (is_full || !woken.is_empty()).then_some(Duration::from_secs(1));
        let pause = next.map(|next| Duration::from_millis(next.0.saturating_sub(now.0)));
        let pause = pause.unwrap_or(LONGEST_PAUSE).min(soon.unwrap_or(LONGEST_PAUSE));
        Ok(pause.min(LONGEST_PAUSE))
    }

    /// Looks at all runs whose journals have changed, and at those that wait.
    fn look(
        &mut self,
        project: &Project,
        flags: &Tend,
        now: Timestamp,
    ) -> Result<RunsToTend, Failure> {
        let mut found = RunsToTend::default();
        for run in project.runs()? {
            let stamp = stamp(&project.paths(&run).journal);
            if let Some(left) = self.left_alone.get(&run) {
                if left.until > now && left.stamp == stamp {
                    continue;
                }
                self.left_alone.remove(&run);
            }
            if self.settled.get(&run).is_some_and(|known| *known == stamp) {
                continue;
            }
            self.settled.remove(&run);
            match need(project, &run, flags.interrupted) {
                Need::At(at) if at <= now => found.due.push(Due { run, at }),
                Need::At(at) => found.next = Some(found.next.map_or(at, |next| next.min(at))),
                Need::Driven => found.driven.push(run),
                Need::Unreadable(why) => found.unreadable.push((run, why)),
                Need::Nothing => {
                    self.settled.insert(run, stamp);
                }
            }
        }
        Ok(found)
    }

    fn leave_alone(&mut self, project: &Project, run: &RunId, now: Timestamp) {
        let stamp = stamp(&project.paths(run).journal);
        self.left_alone.insert(run.clone(), LeftAlone { until: now + PATIENCE, stamp });
    }
}

/// Wakes runs at the same time, so that a slow one does not hold up the others.
async fn wake_all(project: &Project, due: Vec<Due>) -> Vec<(RunId, Woken)> {
    let mut waking = tokio::task::JoinSet::new();
    for Due { run, .. } in due {
        let log = project.paths(&run).directory.join("tend.log");
        let directory = project.root.project().to_owned();
        waking.spawn(async move {
            let end = wake(directory, log, &run).await;
            (run, end)
        });
    }
    waking.join_all().await
}

fn stamp(journal: &Path) -> Stamp {
    let found = std::fs::metadata(journal).ok();
    let length = found.as_ref().map_or(0, std::fs::Metadata::len);
    Stamp { length, changed: found.and_then(|found| found.modified().ok()) }
}

/// Returns when a run without a process is to be continued.
fn need(project: &Project, run: &RunId, interrupted: bool) -> Need {
    let seen = match runs::examine(project, run) {
        Examined::Readable(seen) => seen,
        Examined::Unreadable(error) => return Need::Unreadable(error.to_string()),
        Examined::Damaged(_) | Examined::NeverStarted | Examined::Lost => return Need::Nothing,
    };
    match seen.status {
        Status::Waiting(_, OwnerState::Gone) if let Tail::Damaged(damaged) = &seen.journal.tail => {
            Need::Unreadable(format!("its journal is damaged: {damaged}"))
        }
        // The status names one wait, but each agent has its own.
        Status::Waiting(waiting, OwnerState::Gone) if waiting != Waiting::Caller => {
            let run = &seen.head.run;
            match run.scheduler.timers.next() {
                // The process that recorded the answer ended before it continued the run.
                _ if run.answered_agents() > 0 => Need::At(Timestamp(0)),
                Some(due) => Need::At(due),
                None => Need::Nothing,
            }
        }
        // That costs money, so only a flag allows it.
        Status::Interrupted if interrupted => Need::At(Timestamp(0)),
        // A journal does not change when the owner dies, so these runs are looked at again.
        Status::Running | Status::Waiting(_, OwnerState::Alive) | Status::Interrupted => {
            Need::Driven
        }
        // The caller of a run of the tool continues it.
        Status::Waiting(_, OwnerState::Gone)
        | Status::Completed
        | Status::Failed
        | Status::OverBudget
        | Status::Cancelled
        | Status::Stopped => Need::Nothing,
    }
}

/// Continues a run in the background.
async fn wake(directory: PathBuf, log: PathBuf, run: &RunId) -> Woken {
    std::fs::remove_file(&log).ok();
    let words = ["resume", run.as_str(), "--detach", "--no-wait", "--quiet", "--wake"];
    let started = std::env::current_exe().and_then(|program| {
        process::detach(&Background {
            program: program.into_os_string(),
            arguments: words.iter().map(Into::into).collect(),
            cwd: directory,
            stdin: Vec::new(),
            files: OutputFiles { stdout: log.clone(), stderr: log.clone() },
        })
    });
    let ended = match started {
        Ok(mut resume) => resume.exited().await,
        Err(error) => Err(error),
    };
    let status = match ended {
        Ok(status) if status.code() == Some(i32::from(LOCKED)) => return Woken::Driven,
        Ok(status) => status,
        Err(error) => return Woken::Failed(error.to_string()),
    };
    if status.success() {
        std::fs::remove_file(&log).ok();
        return Woken::Continues;
    }
    // The log stays, because it may say more than its first line.
    let said = log_since(&log, 0);
    let reason = said.lines().find_map(|line| line.strip_prefix("raymond: "));
    let reason = reason.map_or_else(|| status.to_string(), str::to_owned);
    Woken::Failed(format!("{reason} (all of it: {})", path_text::below_home(&log)))
}

fn next_words(project: &Project, next: Option<Timestamp>, now: Timestamp) -> String {
    let place = path_text::below_home(project.root.project());
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
