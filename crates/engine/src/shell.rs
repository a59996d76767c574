//! The asynchronous loop around the driver: outcomes, requests, signals and time become inputs.
//!
//! It is small on purpose. It decides nothing: it gathers what has happened, hands it to the driver
//! in one batch, and mirrors the result into the state file. Whatever way it ends, it ends every
//! process that it started.

mod hands;
mod kit;
mod pinned;
mod signals;
mod turn;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use raymond_backends::process::Grace;
use raymond_core::run::input::StopMode;
use raymond_core::run::{Input, Phase, Record, Run};
use raymond_core::view::{self, Ledger, Status};
use raymond_store::journal::Presence;
use raymond_store::{Inbox, blobs, statefile};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub use kit::Backends;
pub use signals::Signal;

use crate::clock;
use crate::driver::{Driver, DriverError, Head, Log};
use crate::owned::{Owned, end_leftovers};
use crate::pin::Pin;
use hands::{Hands, Report};
use kit::Kit;
use signals::Signals;

/// How often the inbox is looked at, and the state file written.
const BEAT: Duration = Duration::from_secs(1);

/// No grace at all.
const AT_ONCE: Grace = Grace {
    after_exit: Duration::ZERO,
    interrupt: Duration::ZERO,
    terminate: Duration::ZERO,
    kill: Duration::from_secs(5),
};

/// Somebody who follows a run.
pub trait Watch {
    /// This record is durable.
    fn committed(&mut self, run: &Run, ledger: &Ledger, record: &Record);

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
    watch: &mut dyn Watch,
) -> Result<Driven, ShellError> {
    let mut signals = Signals::listen().map_err(ShellError::Signals)?;
    let mut shell = Shell::new(owned, backends, &inputs, watch);
    let done = shell.turn_until_done(inputs, &mut signals).await;
    shell.come_to_rest(done).await
}

struct Shell<'w> {
    driver: Driver<Pen, Hands<'w>>,
    reports: UnboundedReceiver<Report>,
    inbox: Inbox,
    owned: Rest,
    mirror: Mirror,
    signal: Option<Signal>,
    haste: Haste,
    garbage: BTreeSet<String>,
}

/// The journal, shared with the beat that looks whether it is still where it belongs.
type Pen = Arc<Mutex<raymond_store::Journal>>;

impl Log for Pen {
    fn append(&mut self, body: &[u8]) -> Result<(), raymond_store::journal::Error> {
        let mut journal = self.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Log::append(&mut *journal, body)
    }
}

/// What of an owned run the driver does not need.
struct Rest {
    project: crate::project::Project,
    paths: raymond_store::RunPaths,
    journal: Pen,
    blobs: Arc<raymond_store::Blobs>,
    /// Given back last.
    _lock: raymond_store::Lock,
}

/// How the processes of a run are ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Haste {
    /// They are asked first.
    Patient,
    /// Somebody insisted.
    AtOnce,
}

/// When the state file was written, and what it said.
#[derive(Default)]
struct Mirror {
    written: Option<(Instant, Status)>,
    stale: bool,
}

impl<'w> Shell<'w> {
    fn new(owned: Owned, backends: Backends, inputs: &[Input], watch: &'w mut dyn Watch) -> Self {
        let Owned { project, paths, lock, journal, blobs, head, definition, origin, .. } = owned;
        let mut run = head.run.clone();
        if let Some(Input::Start(start)) = inputs.first() {
            raymond_core::run::apply(
                &mut run,
                &raymond_core::run::Event::RunStarted(start.clone()),
            );
        }
        let nonce = inputs.iter().find_map(|input| match input {
            Input::Rewind { nonce, .. } => Some(nonce.clone()),
            _ => None,
        });
        let kit = Kit {
            run: run.id,
            nonce: nonce.unwrap_or(run.nonce),
            scope: run.scope,
            vars: run.settings.vars,
            origin,
            blobs: Arc::clone(&blobs),
            backends,
            grace: Grace::default(),
            private: paths.definition.clone(),
            warned: Mutex::default(),
        };
        let (sender, reports) = unbounded_channel();
        let hands = Hands::new(Arc::new(kit), sender, watch);
        let journal = Arc::new(Mutex::new(journal));
        let inbox = Inbox::new(Arc::clone(&project.disk), paths.inbox.clone());
        Self {
            driver: Driver::new(head, definition, Arc::clone(&journal), hands),
            reports,
            inbox,
            owned: Rest { project, paths, journal, blobs, _lock: lock },
            mirror: Mirror::default(),
            signal: None,
            haste: Haste::Patient,
            garbage: BTreeSet::new(),
        }
    }

    async fn turn_until_done(
        &mut self,
        inputs: Vec<Input>,
        signals: &mut Signals,
    ) -> Result<(), ShellError> {
        self.handle(inputs)?;
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        beat.tick().await;
        while !self.driver.world().finished {
            let inputs = tokio::select! {
                Some(report) = self.reports.recv() => self.gather(report)?,
                signal = signals.next() => match self.signalled(signal) {
                    Some(inputs) => inputs,
                    None => return Ok(()),
                },
                _ = beat.tick() => self.beat(),
                () = until_due(self.driver.run()) => vec![Input::Due],
            };
            self.handle(inputs)?;
        }
        Ok(())
    }

    /// A report, and all others that have arrived meanwhile: they are committed together.
    fn gather(&mut self, first: Report) -> Result<Vec<Input>, ShellError> {
        let mut inputs = vec![first?];
        while let Ok(report) = self.reports.try_recv() {
            inputs.push(report?);
        }
        for input in &inputs {
            self.driver.world().reported(input);
        }
        Ok(inputs)
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

    /// Once a second: requests, a vanished directory, edited states, a state file that is behind.
    fn beat(&mut self) -> Vec<Input> {
        self.restore();
        self.adopt_edits();
        if self.mirror.stale {
            self.write_state();
        }
        let mut inputs = self.requests();
        inputs.push(Input::Due);
        inputs
    }

    fn handle(&mut self, inputs: Vec<Input>) -> Result<(), ShellError> {
        let keys: Vec<String> = inputs.iter().filter_map(request_key).collect();
        self.adopt_edits();
        self.driver.handle(clock::now(), inputs)?;
        for key in keys {
            // Committed, or refused: either way it has been answered.
            self.inbox.remove(&key).ok();
        }
        self.mirror();
        Ok(())
    }

    /// The requests in the inbox.
    fn requests(&mut self) -> Vec<Input> {
        let Ok(taken) = self.inbox.take_all() else { return Vec::new() };
        for garbage in taken.garbage {
            if self.garbage.insert(garbage.name.clone()) {
                let note = format!("ignored {} in the inbox: {}", garbage.name, garbage.why);
                self.driver.world().watch.note(&note);
            }
        }
        let request = |message: raymond_store::inbox::Message| {
            serde_json::from_slice(&message.bytes).ok().filter(|input| {
                matches!(input, Input::Stop { .. } | Input::Answer { .. })
                    && request_key(input).as_deref() == Some(message.key.as_str())
            })
        };
        taken.messages.into_iter().filter_map(request).collect()
    }

    /// An unpinned run uses its states as they are.
    fn adopt_edits(&mut self) {
        use raymond_core::run::settings::Pinning;
        let run = self.driver.run();
        if run.settings.definition == Pinning::Pinned || run.phase != Phase::Open {
            return;
        }
        let Ok(prepared) = crate::launch::prepare(run.workflow.as_ref()) else { return };
        let Ok(manifest) = Pin::of(&prepared.loaded).store(&self.owned.blobs) else { return };
        if manifest != run.manifest {
            let adopted = self.driver.adopt(clock::now(), prepared.definition, manifest);
            if let Ok(Err(refusal)) = adopted {
                self.driver.world().watch.note(&refusal.to_string());
            }
        }
    }

    /// Writes the state file when the status changed, and otherwise at most once a second.
    fn mirror(&mut self) {
        let status = self.status();
        let due =
            self.mirror.written.is_none_or(|(at, said)| said != status || at.elapsed() >= BEAT);
        if due {
            self.write_state();
        } else {
            self.mirror.stale = true;
        }
    }

    fn status(&self) -> Status {
        view::status(self.driver.run(), view::Owner::Alive)
    }

    fn write_state(&mut self) {
        let status = self.status();
        let state = crate::statefile::render(self.driver.run(), self.driver.ledger(), status);
        let written = serde_json::to_vec_pretty(&state).map(|json| {
            statefile::replace(self.owned.project.disk.as_ref(), &self.owned.paths.state, &json)
        });
        // It is derived: one that could not be written now is written a second later.
        let failed = !matches!(written, Ok(Ok(())));
        self.mirror = Mirror { written: Some((Instant::now(), status)), stale: failed };
    }

    /// The directory may have vanished under a living run: what can be rewritten is.
    fn restore(&mut self) {
        let restored = {
            let mut journal =
                self.owned.journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            journal.restore()
        };
        if matches!(restored, Ok(Presence::Restored)) {
            let disk = Arc::clone(&self.owned.project.disk);
            self.owned.project.root.ensure(disk.as_ref()).ok();
            self.owned.paths.ensure(disk.as_ref()).ok();
            let note = "the directory of the run had vanished; its journal was written anew";
            self.driver.world().watch.note(note);
            self.write_state();
        }
    }

    /// Ends whatever still runs, whether all went well or not, and gives the run back.
    async fn come_to_rest(mut self, done: Result<(), ShellError>) -> Result<Driven, ShellError> {
        let nonce = self.driver.run().nonce.clone();
        if self.haste == Haste::AtOnce {
            end_leftovers(&nonce, &AT_ONCE).await;
        } else {
            self.driver.world().cancel_all();
            while self.driver.world().busy() > 0 {
                match self.reports.recv().await {
                    Some(Ok(input)) => self.driver.world().reported(&input),
                    Some(Err(_)) | None => break,
                }
            }
            end_leftovers(&nonce, &Grace::default()).await;
        }
        done?;
        self.write_state();
        let alive = match self.driver.run().phase {
            Phase::Ended(_) => view::Owner::Alive,
            Phase::Unborn | Phase::Open | Phase::Stopping(_) => view::Owner::Gone,
        };
        let status = view::status(self.driver.run(), alive);
        let (head, ..) = self.driver.into_parts();
        Ok(Driven { head, status, signal: self.signal })
    }
}

/// The key of a request that came through the inbox.
fn request_key(input: &Input) -> Option<String> {
    match input {
        Input::Stop { key, .. } | Input::Answer { key, .. } => Some(key.clone()),
        _ => None,
    }
}

/// Waits until something durable is due, by the wall clock: a machine that slept wakes up late.
async fn until_due(run: &Run) {
    match run.next_due() {
        None => std::future::pending().await,
        Some(due) => {
            let wait = due.0.saturating_sub(clock::now().0);
            tokio::time::sleep(Duration::from_millis(wait).min(BEAT)).await;
        }
    }
}
