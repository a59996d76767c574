//! The asynchronous loop around the driver: outcomes, requests, signals and time become inputs.
//!
//! The runner decides nothing. It collects everything that has happened, passes it to the driver in
//! one batch, and writes the result into the state file. However it ends, it first ends every
//! process that it started. The decisions are in `raymond_core::decide`; [`crate::driver`] commits
//! them; [`effect_runner`] starts the work that they ask for.

mod active_runs;
mod edits;
mod effect_runner;
mod exec_step;
mod run_directory;
mod script_files;
mod script_neighbours;
mod shutdown;
mod signals;
pub(crate) mod turn;
mod turn_context;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raymond_backends::process::{self, Grace};
use raymond_core::decide::Refusal;
use raymond_core::run::stop::{StopMode, StopOrigin};
use raymond_core::run::{Input, Run, RunContext};
use raymond_core::time::Timestamp;
use raymond_core::view::{self, Status};
use raymond_store::blobs;
use raymond_store::journal::Presence;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

pub use signals::{Signal, Signals};

use crate::backends::Backends;
use crate::clock::{self, RunClock};
use crate::driver::{Driver, DriverError, Head};
use crate::feed::{FeedItem, NoteKind, RunWatcher};
use crate::owned::{OwnError, OwnedRun};
use active_runs::ActiveRun;
use effect_runner::{EffectRunner, TurnProgress, TurnReport, WatchedRun};
use run_directory::{RunDirectory, SharedJournal, WrittenState, request_key};
use turn_context::TurnContext;

/// How often the runner reads the inbox and writes a stale state file. A wake-up signal makes
/// requests faster than this; one second is the delay if that signal is lost.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// Why the runner stopped before the run had ended.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Blobs(#[from] blobs::Error),
    /// The directory of the run vanished and could not be restored.
    #[error(transparent)]
    RunDirectory(#[from] OwnError),
    /// The core refused to start or resume the run.
    #[error(transparent)]
    Refused(Refusal),
    #[error("could not listen for signals")]
    Signals(#[source] std::io::Error),
}

/// The result of driving a run.
#[derive(Debug)]
pub struct DriveOutcome {
    pub head: Head,
    pub status: Status,
    /// The signal that ended the drive, if a signal did.
    pub signal: Option<Signal>,
}

/// Drives a run until it has ended, beginning with `inputs`.
pub async fn drive(
    owned: OwnedRun,
    backends: Backends,
    inputs: Vec<Input>,
    watch: &mut (dyn RunWatcher + Send),
) -> Result<DriveOutcome, RunnerError> {
    drive_until_cancelled(owned, backends, inputs, watch, &CancellationToken::new()).await
}

/// Drives a run until it has ended, and stops it when the caller cancels.
pub async fn drive_until_cancelled(
    owned: OwnedRun,
    backends: Backends,
    inputs: Vec<Input>,
    watch: &mut (dyn RunWatcher + Send),
    cancel: &CancellationToken,
) -> Result<DriveOutcome, RunnerError> {
    // Before the first process starts: from here on no signal except SIGKILL ends this process
    // without ending the processes of the run.
    let mut signals = Signals::listen().map_err(RunnerError::Signals)?;
    // Without a subreaper, a daemon that detached itself outlives the run. Nothing else is lost, so
    // a kernel that refuses does not stop the run.
    process::become_subreaper().ok();
    let active_run = ActiveRun::register().await;
    let mut runner = Runner::new(owned, backends, &inputs, watch);
    let done = runner.run_until_done(inputs, &mut signals, cancel).await;
    runner.shut_down(done, &active_run).await
}

struct Runner<'w> {
    driver: Driver<SharedJournal, EffectRunner<'w>>,
    reports: UnboundedReceiver<TurnReport>,
    progress_reports: UnboundedReceiver<TurnProgress>,
    directory: RunDirectory,
    clock: RunClock,
    signal: Option<Signal>,
    shutdown: Shutdown,
    /// The last reported mistake in the edited states of an unpinned run: each is reported once.
    reported_mistake: Option<String>,
    /// The backends that edited states may name.
    backends: Backends,
}

/// How the processes of a run are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shutdown {
    /// Each process gets time to end by itself.
    Graceful,
    /// The user sent a second signal.
    Immediate,
}

impl<'w> Runner<'w> {
    fn new(
        owned: OwnedRun,
        backends: Backends,
        inputs: &[Input],
        watch: &'w mut (dyn RunWatcher + Send),
    ) -> Self {
        let OwnedRun {
            project,
            paths,
            lock,
            journal,
            blobs,
            head,
            definition,
            origin,
            schemas,
            ..
        } = owned;
        let run = run_after_start(&head, inputs);
        let (journal, backends_for_edits) = (SharedJournal::new(journal), backends.clone());
        let context = TurnContext {
            run: RunContext::of(&run),
            schemas,
            origin,
            blobs: Arc::clone(&blobs),
            backends,
            grace: Grace::default(),
            transcripts: paths.transcripts.clone(),
            homes: paths.homes.clone(),
            private: paths.definition.clone(),
            handed: paths.handed.clone(),
            prompts: paths.prompts.clone(),
            warned: Mutex::default(),
        };
        let (report, reports) = unbounded_channel();
        let (progress, progress_reports) = unbounded_channel();
        let watch = WatchedRun { watcher: watch, journal: journal.clone() };
        let effects = EffectRunner::new(Arc::new(context), report, progress, watch);
        let driver = Driver::new(head, definition, journal.clone(), effects);
        let directory = RunDirectory {
            project,
            paths,
            journal,
            blobs,
            origin,
            lock,
            written_state: WrittenState::default(),
            snapshot_seq: driver.seq(),
            ignored: BTreeSet::new(),
        };
        Self {
            driver,
            reports,
            progress_reports,
            directory,
            clock: RunClock::default(),
            signal: None,
            shutdown: Shutdown::Graceful,
            reported_mistake: None,
            backends: backends_for_edits,
        }
    }

    async fn run_until_done(
        &mut self,
        inputs: Vec<Input>,
        signals: &mut Signals,
        cancel: &CancellationToken,
    ) -> Result<(), RunnerError> {
        let mut is_cancelled = false;
        self.begin(inputs)?;
        // After the first batch, because it records which turns of an earlier owner still run.
        self.driver.with_world(EffectRunner::adopt);
        // `Delay`: after a machine slept for an hour, one tick is enough, not 3600.
        let mut ticks = tokio::time::interval(TICK_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks.tick().await;
        while !self.driver.world().finished {
            let wait = self.until_due();
            let inputs = tokio::select! {
                Some(report) = self.reports.recv() => self.gather(report)?,
                Some(TurnProgress { turn, sign }) = self.progress_reports.recv() => {
                    let (at, progress) = (clock::now(), &sign);
                    self.driver.world().watch.take(FeedItem::Progress { turn: &turn, at, progress });
                    continue;
                }
                signal = signals.next() => match self.handle_signal(signal) {
                    Some(inputs) => inputs,
                    None => return Ok(()),
                },
                () = cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    vec![stop_now(StopOrigin::Caller)]
                }
                // A large decision is split over several records, so that signals and outcomes are
                // not kept waiting behind it.
                () = tokio::task::yield_now(), if self.driver.has_more() => vec![Input::Due],
                _ = ticks.tick() => self.tick()?,
                () = sleep_until_due(wait) => vec![Input::Due],
            };
            self.handle(inputs)?;
        }
        Ok(())
    }

    /// Handles the first inputs. If the core refuses to start or resume the run, it is not driven.
    fn begin(&mut self, inputs: Vec<Input>) -> Result<(), RunnerError> {
        let starts = |input: &Input| matches!(input, Input::Start(_) | Input::Resume(_));
        let decisive = inputs.iter().position(starts);
        let mut verdicts = self.handle(inputs)?;
        match decisive.map(|place| verdicts.swap_remove(place)) {
            Some(Err(refusal)) => Err(RunnerError::Refused(refusal)),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Collects a report and all others that have arrived meanwhile, to commit them together.
    fn gather(&mut self, first: TurnReport) -> Result<Vec<Input>, RunnerError> {
        let mut inputs = Vec::new();
        // One record and one sync for all of them, instead of one for each.
        let mut lost = None;
        let mut next = Some(first);
        while let Some(report) = next {
            self.driver.world().remove_turn(&report);
            match report.into_input() {
                Ok(input) => inputs.push(input),
                Err(error) => lost = Some(error),
            }
            next = self.reports.try_recv().ok();
        }
        match lost {
            None => Ok(inputs),
            Some(error) => {
                // The other turns have ended and may have cost money: record them before giving up.
                self.handle(inputs)?;
                Err(error.into())
            }
        }
    }

    /// Returns the inputs for a signal, or `None` if the runner must end at once.
    fn handle_signal(&mut self, signal: Signal) -> Option<Vec<Input>> {
        if signal == Signal::Wake {
            return Some(self.requests());
        }
        // The first signal asks politely. A user who sends another one does not want to wait.
        if self.signal.is_some() {
            self.shutdown = Shutdown::Immediate;
            return None;
        }
        self.signal = Some(signal);
        Some(vec![stop_now(StopOrigin::Signal)])
    }

    /// Does the work of every second: requests, a vanished directory, a stale state file.
    fn tick(&mut self) -> Result<Vec<Input>, RunnerError> {
        // As a subreaper this process inherits orphans, and must collect their exit codes.
        process::reap_orphans();
        self.restore_directory()?;
        let status = self.status();
        self.directory.write_stale_state(self.driver.head(), status);
        self.directory.save_snapshot(self.driver.head());
        let mut inputs = self.requests();
        inputs.push(Input::Due);
        Ok(inputs)
    }

    /// Restores the directory of the run if another program deleted it while the run was active.
    fn restore_directory(&mut self) -> Result<(), RunnerError> {
        let restored = self.directory.restore(self.driver.head(), self.driver.definition())?;
        if restored == Presence::Restored {
            self.note(NoteKind::DirectoryRestored);
            self.write_state();
        }
        Ok(())
    }

    fn handle(&mut self, inputs: Vec<Input>) -> Result<Vec<Result<(), Refusal>>, RunnerError> {
        if !self.directory.lock.is_in_place().unwrap_or(false) {
            // Without the lock file another process could become the owner. Two owners must never
            // record, so the lock is taken again before the next record.
            self.restore_directory()?;
        }
        // A request stays in the inbox until its record is durable. If this process dies in
        // between, the next owner drops the file, and a process that still waits for its answer
        // asks again.
        let keys: Vec<String> = inputs.iter().filter_map(request_key).collect();
        self.adopt_edits()?;
        let now = self.now();
        let verdicts = self.driver.handle(now, inputs)?;
        for key in keys {
            self.directory.remove_request(&key);
        }
        let status = self.status();
        self.directory.update_state_file(self.driver.head(), status);
        Ok(verdicts)
    }

    fn now(&mut self) -> Timestamp {
        self.clock.now(self.driver.run())
    }

    /// Returns how long to wait for the next retry or timeout of the run. At most one tick: the
    /// timers of tokio stop while a machine sleeps, but the times in the journal do not.
    fn until_due(&mut self) -> Option<Duration> {
        let due = self.driver.run().next_due()?;
        let wait = Duration::from_millis(due.0.saturating_sub(self.now().0));
        Some(wait.min(TICK_INTERVAL))
    }

    fn requests(&mut self) -> Vec<Input> {
        let requests = self.directory.requests();
        for note in requests.notes {
            self.note(note);
        }
        requests.inputs
    }

    fn note(&mut self, note: NoteKind) {
        self.driver.world().watch.take(FeedItem::Note(note));
    }

    fn status(&self) -> Status {
        view::status(self.driver.run(), view::OwnerState::Alive)
    }

    fn write_state(&mut self) {
        let status = self.status();
        self.directory.write_state(self.driver.head(), status);
    }
}

/// Returns the run with its start applied. The driver applies it later, but turns need the id, the
/// scope and the settings of a new run now.
fn run_after_start(head: &Head, inputs: &[Input]) -> Run {
    let mut run = head.run.clone();
    if let Some(Input::Start(start)) = inputs.first() {
        raymond_core::run::apply(&mut run, &raymond_core::run::Event::RunStarted(start.clone()));
    }
    run
}

/// Returns a request to end the run now. Its key is new, so that no earlier request hides it.
fn stop_now(by: StopOrigin) -> Input {
    Input::Stop { mode: StopMode::Now, by, key: clock::nonce().to_string() }
}

/// Sleeps for this time, or forever if there is none.
async fn sleep_until_due(wait: Option<Duration>) {
    match wait {
        None => std::future::pending().await,
        Some(wait) => tokio::time::sleep(wait).await,
    }
}

#[cfg(test)]
mod tests;
