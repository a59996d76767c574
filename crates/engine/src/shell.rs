//! The asynchronous loop around the driver: outcomes, requests, signals and time become inputs.
//!
//! It is small on purpose. It decides nothing: it gathers what has happened, hands it to the driver
//! in one batch, and mirrors the result into the state file. Whatever way it ends, it ends every
//! process that it started.

pub(crate) mod asking;
mod beside;
mod edits;
mod hands;
mod home;
mod kit;
mod pinned;
mod signals;
mod step;
mod tenants;
mod turn;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raymond_backends::contract::Progress;
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

pub use kit::Backends;
pub use signals::{Signal, Signals};
pub(crate) use turn::config_home;
pub use turn::transcript;

use crate::clock::{self, Clock};
use crate::driver::{Driver, DriverError, Head};
use crate::owned::{OwnError, Owned};
use crate::schemas::Schemas;
use hands::{Hands, Report, Seen};
use home::{Home, Mirror, Pen, request_key};
use kit::Kit;
use tenants::Tenant;

/// How often the inbox is looked at, and the state file written.
const BEAT: Duration = Duration::from_secs(1);

/// No grace at all.
const AT_ONCE: Grace = Grace {
    after_exit: Duration::ZERO,
    interrupt: Duration::ZERO,
    terminate: Duration::ZERO,
    kill: Duration::from_secs(5),
};

/// How long turns that were ended by force are listened to.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Somebody who follows a run.
pub trait Watch {
    /// This record is durable.
    fn committed(&mut self, run: &Run, ledger: &Ledger, record: &Record);

    /// This was seen of a turn while it runs.
    fn seen(&mut self, _: &TurnId, _: &Progress) {}

    /// Something else is worth a line.
    fn note(&mut self, text: &str);
}

/// Why a run is not driven any further.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// What happened could not be recorded.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A value could not be stored or read.
    #[error(transparent)]
    Blobs(#[from] blobs::Error),
    /// Its directory vanished, and could not be put back.
    #[error(transparent)]
    Home(#[from] OwnError),
    /// The run may not start, or not go on.
    #[error(transparent)]
    Refused(Refusal),
    /// Signals cannot be caught.
    #[error("could not listen for signals")]
    Signals(#[source] std::io::Error),
}

/// How a drive ended.
#[derive(Debug)]
pub struct Driven {
    /// The run at its end.
    pub head: Head,
    /// Where it is.
    pub status: Status,
    /// The signal that ended it.
    pub signal: Option<Signal>,
}

/// Drives a run until it has ended, beginning with `inputs`.
pub async fn drive(
    owned: Owned,
    backends: Backends,
    inputs: Vec<Input>,
    watch: &mut (dyn Watch + Send),
) -> Result<Driven, ShellError> {
    drive_for(owned, backends, inputs, (watch, &CancellationToken::new())).await
}

/// The same, for somebody who may give it up: the run is stopped then.
pub async fn drive_for(
    owned: Owned,
    backends: Backends,
    inputs: Vec<Input>,
    (watch, cancel): (&mut (dyn Watch + Send), &CancellationToken),
) -> Result<Driven, ShellError> {
    let mut signals = Signals::listen().map_err(ShellError::Signals)?;
    // Without it, a daemon that hides its descent outlives the run; nothing else is lost.
    process::become_subreaper().ok();
    let tenant = Tenant::moves_in().await;
    let mut shell = Shell::new(owned, backends, &inputs, watch);
    let done = shell.turn_until_done(inputs, &mut signals, cancel).await;
    shell.come_to_rest(done, &tenant).await
}

/// The schemas of a document: what is pinned names no other.
pub(crate) fn schemas_of(document: Option<&Document>) -> Schemas {
    let compiled = document.map(|document| Schemas::compile(document, &NoLibrary));
    compiled.and_then(Result::ok).unwrap_or_default()
}

struct Shell<'w> {
    driver: Driver<Pen, Hands<'w>>,
    reports: UnboundedReceiver<Report>,
    signs: UnboundedReceiver<Seen>,
    home: Home,
    clock: Clock,
    signal: Option<Signal>,
    haste: Haste,
    /// What is wrong with the edited states of an unpinned run, as it was last told.
    mistaken: Option<String>,
    /// The backends that edited states may name.
    backends: Backends,
}

/// How the processes of a run are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Haste {
    /// They are asked first.
    Patient,
    /// Somebody insisted.
    AtOnce,
}

impl<'w> Shell<'w> {
    fn new(
        owned: Owned,
        backends: Backends,
        inputs: &[Input],
        watch: &'w mut (dyn Watch + Send),
    ) -> Self {
        let Owned {
            project, paths, lock, journal, blobs, head, definition, origin, schemas, ..
        } = owned;
        let mut run = head.run.clone();
        if let Some(Input::Start(start)) = inputs.first() {
            raymond_core::run::apply(
                &mut run,
                &raymond_core::run::Event::RunStarted(start.clone()),
            );
        }
        let weighing = backends.clone();
        let kit = Kit {
            run: run.id,
            nonce: run.nonce,
            scope: run.scope,
            messages: run.settings.program.messages(),
            pinning: run.settings.definition,
            vars: run.settings.vars,
            schemas: schemas.unwrap_or_else(|| {
                Arc::new(schemas_of(definition.work.as_ref().map(|work| &work.document)))
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
        let (see, signs) = unbounded_channel();
        let hands = Hands::new(Arc::new(kit), (report, see), watch);
        let journal = Pen::new(journal);
        let driver = Driver::new(head, definition, journal.clone(), hands);
        let home = Home {
            project,
            paths,
            journal,
            blobs,
            origin,
            lock,
            mirror: Mirror::default(),
            kept: driver.seq(),
            ignored: BTreeSet::new(),
        };
        let (signal, haste) = (None, Haste::Patient);
        let clock = Clock::default();
        Self {
            driver,
            reports,
            signs,
            home,
            clock,
            signal,
            haste,
            mistaken: None,
            backends: weighing,
        }
    }

    async fn turn_until_done(
        &mut self,
        inputs: Vec<Input>,
        signals: &mut Signals,
        cancel: &CancellationToken,
    ) -> Result<(), ShellError> {
        let mut given_up = false;
        self.begin(inputs)?;
        self.driver.with_world(Hands::adopt);
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        beat.tick().await;
        while !self.driver.world().finished {
            let wait = self.until_due();
            let inputs = tokio::select! {
                Some(report) = self.reports.recv() => self.gather(report)?,
                Some((turn, sign)) = self.signs.recv() => {
                    self.driver.world().watch.seen(&turn, &sign);
                    continue;
                }
                signal = signals.next() => match self.signalled(signal) {
                    Some(inputs) => inputs,
                    None => return Ok(()),
                },
                () = cancel.cancelled(), if !given_up => {
                    given_up = true;
                    vec![Input::Stop { mode: StopMode::Now, key: format!("given-up-{}", clock::nonce()) }]
                }
                () = tokio::task::yield_now(), if self.driver.has_more() => vec![Input::Due],
                _ = beat.tick() => self.beat()?,
                () = passed(wait) => vec![Input::Due],
            };
            self.handle(inputs)?;
        }
        Ok(())
    }

    /// The first inputs: a run that may not start or go on is not driven at all.
    fn begin(&mut self, inputs: Vec<Input>) -> Result<(), ShellError> {
        let starts = |input: &Input| matches!(input, Input::Start(_) | Input::Resume(_));
        let decisive = inputs.iter().position(starts);
        let mut verdicts = self.handle(inputs)?;
        match decisive.map(|place| verdicts.swap_remove(place)) {
            Some(Err(refusal)) => Err(ShellError::Refused(refusal)),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// A report, and all others that have arrived meanwhile: they are committed together. When one
    /// of them cannot be told, the others still are.
    fn gather(&mut self, first: Report) -> Result<Vec<Input>, ShellError> {
        let mut inputs = Vec::new();
        let mut lost = None;
        let mut next = Some(first);
        while let Some(report) = next {
            self.driver.world().reported(&report);
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
    fn signalled(&mut self, signal: Signal) -> Option<Vec<Input>> {
        if signal == Signal::Poke {
            return Some(self.requests());
        }
        if self.signal.is_some() {
            self.haste = Haste::AtOnce;
            return None;
        }
        self.signal = Some(signal);
        let key = format!("signal-{}", clock::nonce());
        Some(vec![Input::Stop { mode: StopMode::Now, key }])
    }

    /// Once a second: requests, a vanished directory, a state file that is behind.
    fn beat(&mut self) -> Result<Vec<Input>, ShellError> {
        process::reap_orphans();
        self.put_back()?;
        let status = self.status();
        self.home.catch_up(self.driver.head(), status);
        self.home.keep_head(self.driver.head());
        let mut inputs = self.requests();
        inputs.push(Input::Due);
        Ok(inputs)
    }

    /// The directory may have vanished under the living run.
    fn put_back(&mut self) -> Result<(), ShellError> {
        let restored = self.home.restore(self.driver.head(), self.driver.definition())?;
        if restored == Presence::Restored {
            let note = "the directory of the run had vanished; journal, lock and states were \
                        written anew, other large values in it are gone";
            self.driver.world().watch.note(note);
            self.write_state();
        }
        Ok(())
    }

    fn handle(&mut self, inputs: Vec<Input>) -> Result<Vec<Result<(), Refusal>>, ShellError> {
        if !self.home.lock.is_in_place().unwrap_or(false) {
            // Before anything is recorded, nobody else may own the run.
            self.put_back()?;
        }
        let keys: Vec<String> = inputs.iter().filter_map(request_key).collect();
        self.adopt_edits()?;
        let now = self.now();
        let verdicts = self.driver.handle(now, inputs)?;
        for key in keys {
            self.home.answered(&key);
        }
        let status = self.status();
        self.home.mirror(self.driver.head(), status);
        Ok(verdicts)
    }

    fn now(&mut self) -> Timestamp {
        self.clock.now(self.driver.run())
    }

    /// How long to wait until something durable is due: at most a beat, because a machine that slept wakes up
    /// late.
    fn until_due(&mut self) -> Option<Duration> {
        let due = self.driver.run().next_due()?;
        let wait = Duration::from_millis(due.0.saturating_sub(self.now().0));
        Some(wait.min(BEAT))
    }

    /// The requests in the inbox.
    fn requests(&mut self) -> Vec<Input> {
        let requests = self.home.requests();
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
        self.home.write_state(self.driver.head(), status);
    }

    /// Ends whatever still runs, whether all went well or not, and gives the run back.
    async fn come_to_rest(
        mut self,
        done: Result<(), ShellError>,
        tenant: &Tenant,
    ) -> Result<Driven, ShellError> {
        let nonce = self.driver.run().nonce.clone();
        match self.haste {
            Haste::AtOnce => {
                self.end_processes(tenant, &AT_ONCE).await;
                tokio::time::timeout(LAST_WORDS, self.last_words()).await.ok();
            }
            Haste::Patient => {
                if done.is_err() {
                    // What is settled from now on must not start anything new.
                    let (mode, key) = (StopMode::Now, format!("error-{nonce}"));
                    self.handle(vec![Input::Stop { mode, key }]).ok();
                }
                self.driver.world().cancel_all();
                self.last_words().await;
                self.end_processes(tenant, &Grace::default()).await;
            }
        }
        let put_back = self.put_back();
        done?;
        put_back?;
        // Whatever became of it since it was written last, it is right in the end.
        self.write_state();
        if !self.driver.is_dead() {
            self.home.keep_head(self.driver.head());
        }
        let alive = match self.driver.run().phase {
            Phase::Ended(_) => view::Owner::Alive,
            Phase::Unborn | Phase::Open | Phase::Stopping(_) => view::Owner::Gone,
        };
        let status = view::status(self.driver.run(), alive);
        let (head, ..) = self.driver.into_parts();
        Ok(Driven { head, status, signal: self.signal })
    }

    /// Nothing outlives its run. A run that somebody else owns by now goes on: only what was started
    /// here is ended.
    async fn end_processes(&mut self, tenant: &Tenant, grace: &Grace) {
        let nonce = &self.driver.run().nonce.clone();
        if self.home.lock.is_in_place().unwrap_or(false) {
            tenant.clears_up(nonce, grace).await;
        } else {
            process::end_own(nonce, grace).await;
        }
    }

    /// Every turn has been told to end, and still says how it did. What it cost is recorded as long
    /// as anything can be: whatever fails now, the first error is the one that counts.
    async fn last_words(&mut self) {
        while self.driver.world().busy() > 0 {
            let Some(report) = self.reports.recv().await else { break };
            self.driver.world().reported(&report);
            if let Ok(input) = report.into_input() {
                self.handle(vec![input]).ok();
            }
        }
    }
}

/// Waits this long; without a time, for ever.
async fn passed(wait: Option<Duration>) {
    match wait {
        None => std::future::pending().await,
        Some(wait) => tokio::time::sleep(wait).await,
    }
}

#[cfg(test)]
mod tests;
