//! The asynchronous loop around the driver: outcomes, requests, signals and time become inputs.
//!
//! It is small on purpose. It decides nothing: it gathers what has happened, hands it to the driver
//! in one batch, and mirrors the result into the state file. Whatever way it ends, it ends every
//! process that it started.

mod active_runs;
pub(crate) mod agent_step;
mod edits;
mod effect_runner;
mod exec_step;
mod run_directory;
mod script_files;
mod script_neighbours;
mod signals;
mod turn;
mod turn_context;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raymond_backends::contract::Sign;
use raymond_backends::process::{self, Grace};
use raymond_core::crayfish::Document;
use raymond_core::ids::TurnId;
use raymond_core::run::input::StopMode;
use raymond_core::run::{Input, Phase, Record, Refusal, Run};
use raymond_core::time::Timestamp;
use raymond_core::view::{self, Ledger, Status};
use raymond_schema::NoLibrary;
use raymond_store::blobs;
use raymond_store::journal::Presence;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

pub use signals::{Signal, Signals};
pub(crate) use turn::config_home;
pub use turn::transcript;
pub use turn_context::Backends;

use crate::clock::{self, Clock};
use crate::driver::{Driver, DriverError, Head};
use crate::owned::{OwnError, OwnedRun};
use crate::schemas::Schemas;
use active_runs::ActiveRun;
use effect_runner::{EffectRunner, Seen, TurnReport};
use run_directory::{RunDirectory, SharedJournal, WrittenState, request_key};
use turn_context::TurnContext;

/// How often the inbox is looked at, and the state file written.
const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// No grace at all.
const NO_GRACE: Grace = Grace {
    after_exit: Duration::ZERO,
    interrupt: Duration::ZERO,
    terminate: Duration::ZERO,
    kill: Duration::from_secs(5),
};

/// How long turns that were ended by force are listened to.
const REPORT_WAIT: Duration = Duration::from_secs(2);

/// Somebody who follows a run.
pub trait RunWatcher {
    /// This record is durable.
    fn committed(&mut self, run: &Run, ledger: &Ledger, record: &Record);

    /// This was seen of a turn while it runs.
    fn seen(&mut self, _: &TurnId, _: &Sign) {}

    /// Something else is worth a line.
    fn note(&mut self, text: &str);
}

/// Why a run is not driven any further.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// What happened could not be recorded.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A value could not be stored or read.
    #[error(transparent)]
    Blobs(#[from] blobs::Error),
    /// Its directory vanished, and could not be put back.
    #[error(transparent)]
    RunDirectory(#[from] OwnError),
    /// The run may not start, or not go on.
    #[error(transparent)]
    Refused(Refusal),
    /// Signals cannot be caught.
    #[error("could not listen for signals")]
    Signals(#[source] std::io::Error),
}

/// How a drive ended.
#[derive(Debug)]
pub struct DriveOutcome {
    /// The run at its end.
    pub head: Head,
    /// Where it is.
    pub status: Status,
    /// The signal that ended it.
    pub signal: Option<Signal>,
}

/// Drives a run until it has ended, beginning with `inputs`.
pub async fn drive(
    owned: OwnedRun,
    backends: Backends,
    inputs: Vec<Input>,
    watch: &mut (dyn RunWatcher + Send),
) -> Result<DriveOutcome, RunnerError> {
    drive_until_cancelled(owned, backends, inputs, (watch, &CancellationToken::new())).await
}

/// The same, for somebody who may give it up: the run is stopped then.
pub async fn drive_until_cancelled(
    owned: OwnedRun,
    backends: Backends,
    inputs: Vec<Input>,
    (watch, cancel): (&mut (dyn RunWatcher + Send), &CancellationToken),
) -> Result<DriveOutcome, RunnerError> {
    let mut signals = Signals::listen().map_err(RunnerError::Signals)?;
    // Without it, a daemon that hides its descent outlives the run; nothing else is lost.
    process::become_subreaper().ok();
    let active_run = ActiveRun::register().await;
    let mut runner = Runner::new(owned, backends, &inputs, watch);
    let done = runner.run_until_done(inputs, &mut signals, cancel).await;
    runner.shut_down(done, &active_run).await
}

/// The schemas of a document: what is pinned names no other.
pub(crate) fn compile_schemas(document: Option<&Document>) -> Schemas {
    let compiled = document.map(|document| Schemas::compile(document, &NoLibrary));
    compiled.and_then(Result::ok).unwrap_or_default()
}

struct Runner<'w> {
    driver: Driver<SharedJournal, EffectRunner<'w>>,
    reports: UnboundedReceiver<TurnReport>,
    progress_reports: UnboundedReceiver<Seen>,
    directory: RunDirectory,
    clock: Clock,
    signal: Option<Signal>,
    shutdown: Shutdown,
    /// What is wrong with the edited states of an unpinned run, as it was last told.
    reported_mistake: Option<String>,
    /// The backends that edited states may name.
    backends: Backends,
}

/// How the processes of a run are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shutdown {
    /// They are asked first.
    Graceful,
    /// Somebody insisted.
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
        let mut run = head.run.clone();
        if let Some(Input::Start(start)) = inputs.first() {
            raymond_core::run::apply(
                &mut run,
                &raymond_core::run::Event::RunStarted(start.clone()),
            );
        }
        let backends_for_edits = backends.clone();
        let kit = TurnContext {
            run: run.id,
            nonce: run.nonce,
            scope: run.scope,
            messages: run.settings.program.messages(),
            pinning: run.settings.definition,
            vars: run.settings.vars,
            schemas: schemas.unwrap_or_else(|| {
                Arc::new(compile_schemas(definition.work.as_ref().map(|work| &work.document)))
            }),
            origin,
            blobs: Arc::clone(&blobs),
            backends,
            grace: Grace::default(),
            transcripts: paths.transcripts.clone(),
            homes: paths.homes.clone(),
            private: paths.definition.clone(),
            warned: Mutex::default(),
        };
        let (report, reports) = unbounded_channel();
        let (progress, progress_reports) = unbounded_channel();
        let hands = EffectRunner::new(Arc::new(kit), (report, progress), watch);
        let journal = SharedJournal::new(journal);
        let driver = Driver::new(head, definition, journal.clone(), hands);
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
        let (signal, shutdown) = (None, Shutdown::Graceful);
        let clock = Clock::default();
        Self {
            driver,
            reports,
            progress_reports,
            directory,
            clock,
            signal,
            shutdown,
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
        self.driver.with_world(EffectRunner::adopt);
        let mut ticks = tokio::time::interval(TICK_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks.tick().await;
        while !self.driver.world().finished {
            let wait = self.until_due();
            let inputs = tokio::select! {
                Some(report) = self.reports.recv() => self.gather(report)?,
                Some((turn, sign)) = self.progress_reports.recv() => {
                    self.driver.world().watch.seen(&turn, &sign);
                    continue;
                }
                signal = signals.next() => match self.handle_signal(signal) {
                    Some(inputs) => inputs,
                    None => return Ok(()),
                },
                () = cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    vec![Input::Stop { mode: StopMode::Now, key: format!("given-up-{}", clock::nonce()) }]
                }
                () = tokio::task::yield_now(), if self.driver.has_more() => vec![Input::Due],
                _ = ticks.tick() => self.tick()?,
                () = sleep_until_due(wait) => vec![Input::Due],
            };
            self.handle(inputs)?;
        }
        Ok(())
    }

    /// The first inputs: a run that may not start or go on is not driven at all.
    fn begin(&mut self, inputs: Vec<Input>) -> Result<(), RunnerError> {
        let starts = |input: &Input| matches!(input, Input::Start(_) | Input::Resume(_));
        let decisive = inputs.iter().position(starts);
        let mut verdicts = self.handle(inputs)?;
        match decisive.map(|place| verdicts.swap_remove(place)) {
            Some(Err(refusal)) => Err(RunnerError::Refused(refusal)),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// A report, and all others that have arrived meanwhile: they are committed together. When one
    /// of them cannot be told, the others still are.
    fn gather(&mut self, first: TurnReport) -> Result<Vec<Input>, RunnerError> {
        let mut inputs = Vec::new();
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
                self.handle(inputs)?;
                Err(error.into())
            }
        }
    }

    /// The inputs that a signal means; none when the run is to be left at once.
    fn handle_signal(&mut self, signal: Signal) -> Option<Vec<Input>> {
        if signal == Signal::Wake {
            return Some(self.requests());
        }
        if self.signal.is_some() {
            self.shutdown = Shutdown::Immediate;
            return None;
        }
        self.signal = Some(signal);
        let key = format!("signal-{}", clock::nonce());
        Some(vec![Input::Stop { mode: StopMode::Now, key }])
    }

    /// Once a second: requests, a vanished directory, a state file that is behind.
    fn tick(&mut self) -> Result<Vec<Input>, RunnerError> {
        process::reap_orphans();
        self.restore_directory()?;
        let status = self.status();
        self.directory.write_stale_state(self.driver.head(), status);
        self.directory.save_snapshot(self.driver.head());
        let mut inputs = self.requests();
        inputs.push(Input::Due);
        Ok(inputs)
    }

    /// The directory may have vanished under the living run.
    fn restore_directory(&mut self) -> Result<(), RunnerError> {
        let restored = self.directory.restore(self.driver.head(), self.driver.definition())?;
        if restored == Presence::Restored {
            let note = "the directory of the run had vanished; journal, lock and states were \
                        written anew, other large values in it are gone";
            self.driver.world().watch.note(note);
            self.write_state();
        }
        Ok(())
    }

    fn handle(&mut self, inputs: Vec<Input>) -> Result<Vec<Result<(), Refusal>>, RunnerError> {
        if !self.directory.lock.is_in_place().unwrap_or(false) {
            // Before anything is recorded, nobody else may own the run.
            self.restore_directory()?;
        }
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

    /// How long to wait until something durable is due: at most a tick, because a machine that slept wakes up
    /// late.
    fn until_due(&mut self) -> Option<Duration> {
        let due = self.driver.run().next_due()?;
        let wait = Duration::from_millis(due.0.saturating_sub(self.now().0));
        Some(wait.min(TICK_INTERVAL))
    }

    /// The requests in the inbox.
    fn requests(&mut self) -> Vec<Input> {
        let requests = self.directory.requests();
        for note in requests.notes {
            self.driver.world().watch.note(&note);
        }
        requests.inputs
    }

    fn status(&self) -> Status {
        view::status(self.driver.run(), view::Owner::Alive)
    }

    fn write_state(&mut self) {
        let status = self.status();
        self.directory.write_state(self.driver.head(), status);
    }

    /// Ends whatever still runs, whether all went well or not, and gives the run back.
    async fn shut_down(
        mut self,
        done: Result<(), RunnerError>,
        active_run: &ActiveRun,
    ) -> Result<DriveOutcome, RunnerError> {
        let nonce = self.driver.run().nonce.clone();
        match self.shutdown {
            Shutdown::Immediate => {
                self.end_processes(active_run, &NO_GRACE).await;
                tokio::time::timeout(REPORT_WAIT, self.collect_last_reports()).await.ok();
            }
            Shutdown::Graceful => {
                if done.is_err() {
                    // What is settled from now on must not start anything new.
                    let (mode, key) = (StopMode::Now, format!("error-{nonce}"));
                    self.handle(vec![Input::Stop { mode, key }]).ok();
                }
                self.driver.world().cancel_all();
                self.collect_last_reports().await;
                self.end_processes(active_run, &Grace::default()).await;
            }
        }
        let restore_directory = self.restore_directory();
        done?;
        restore_directory?;
        // Whatever became of it since it was written last, it is right in the end.
        self.write_state();
        if !self.driver.is_dead() {
            self.directory.save_snapshot(self.driver.head());
        }
        let alive = match self.driver.run().phase {
            Phase::Ended(_) => view::Owner::Alive,
            Phase::Unborn | Phase::Open | Phase::Stopping(_) => view::Owner::Gone,
        };
        let status = view::status(self.driver.run(), alive);
        let (head, ..) = self.driver.into_parts();
        Ok(DriveOutcome { head, status, signal: self.signal })
    }

    /// Nothing outlives its run. A run that somebody else owns by now goes on: only what was started
    /// here is ended.
    async fn end_processes(&mut self, active_run: &ActiveRun, grace: &Grace) {
        let nonce = &self.driver.run().nonce.clone();
        if self.directory.lock.is_in_place().unwrap_or(false) {
            active_run.end_processes(nonce, grace).await;
        } else {
            process::end_own(nonce, grace).await;
        }
    }

    /// Every turn has been told to end, and still says how it did. What it cost is recorded as long
    /// as anything can be: whatever fails now, the first error is the one that counts.
    async fn collect_last_reports(&mut self) {
        while self.driver.world().running_turns() > 0 {
            let Some(report) = self.reports.recv().await else { break };
            self.driver.world().remove_turn(&report);
            if let Ok(input) = report.into_input() {
                self.handle(vec![input]).ok();
            }
        }
    }
}

/// Waits this long; without a time, for ever.
async fn sleep_until_due(wait: Option<Duration>) {
    match wait {
        None => std::future::pending().await,
        Some(wait) => tokio::time::sleep(wait).await,
    }
}

#[cfg(test)]
mod tests;
