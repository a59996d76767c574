//! A simulated machine: it boots, drives a run, fails as planned, and boots again.
//!
//! The driver, the journal, the lock, the inbox and the blobs are the real ones, on a simulated
//! disk. The host replaces the engine's asynchronous loop and its search for clients. A fault takes
//! the machine or its process down. [`SimWorld`] stays, because clients survive, and so must the
//! memory of what really happened.
//!
//! `boot` starts or resumes a run, `leftovers` looks for clients, `recovered` and `replayed` check
//! the journal, `ticking` lets time pass.

mod boot;
mod caller;
mod leftovers;
mod recovered;
mod replayed;
mod requests;
mod ticking;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use raymond_core::agent::AgentStatus;
use raymond_core::clock::OwnerClock;
use raymond_core::decide::Refusal;
use raymond_core::run::stop::{StopMode, StopOrigin};
use raymond_core::run::{Ending, Event, Input, Phase, Program, Run, Settings};
use raymond_core::time::Timestamp;
use raymond_core::value::Value;
use raymond_core::workflow::Definition;
use raymond_engine::driver::{Driver, DriverError, Log};
use raymond_store::disk::Memory;
use raymond_store::lock::{self, Claim, Takeover};
use raymond_store::{Blobs, Journal, Lock, Root, RunPaths, journal};

pub use ticking::Ticked;

use super::coverage::Column;
use super::definitions::definition_of;
use super::fault_plan::{FaultPlan, MachineFault, Point};
use super::history::{History, history};
use super::reply::ReplySource;
use super::world::{SimWorld, WorldPort};
use crate::step_trace::StepTrace;
use crate::step_trace::trace_of;
use crate::violation::Violation;

type Verdicts = Vec<Result<(), Refusal>>;

pub struct Host {
    seeds: Seeds,
    disk: Memory,
    paths: RunPaths,
    pub faults: FaultPlan,
    /// Everything outside the machine.
    pub world: Rc<RefCell<SimWorld>>,
    /// Every definition that the run may use, by its manifest.
    definitions: Rc<BTreeMap<Value, Definition>>,
    /// An edit of the states, which the next resume of a failed run adopts.
    edit: Option<Value>,
    /// The program that the run starts with.
    pub program: Program,
    /// The settings of the next start or resume.
    pub settings: Settings,
    /// The state in which a crash leaves clients and their turns.
    pub leftovers: Leftovers,
    driver: Option<Driver<WatchedLog, WorldPort>>,
    clock: OwnerClock,
    lock: Option<Lock>,
    recovering: bool,
    power_was_cut: bool,
    /// How often the machine or its process went down.
    pub downs: u32,
    pub help_limits: HelpLimits,
}

/// How often a run that needs help gets it. The counts come from the journal, because a new owner
/// remembers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelpLimits {
    /// How often a failed run is resumed.
    pub failures: usize,
    /// How often the user logs in or frees disk space.
    pub logins: usize,
}

impl HelpLimits {
    pub const UNLIMITED: Self = Self { failures: usize::MAX, logins: usize::MAX };
    pub const NONE: Self = Self { failures: 0, logins: 0 };
}

#[derive(Debug, Clone, Copy)]
pub struct Seeds {
    /// Seed of everything outside the machine.
    pub world: u64,
    /// Seed of the data loss on its disk.
    pub disk: u64,
}

/// The state in which a new owner finds turns that were in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    Any,
    /// Every turn has made progress, so that crashes alone fail no agent.
    Progress,
    /// No turn has made progress, and no client outlives its owner.
    Nothing,
}

/// A journal that reports which record was being written when a fault happened.
struct WatchedLog {
    journal: Journal,
    world: Rc<RefCell<SimWorld>>,
}

impl Log for WatchedLog {
    type Error = journal::Error;

    fn append(&mut self, body: &[u8]) -> Result<(), journal::Error> {
        let appended = self.journal.append(body);
        let world = &mut *self.world.borrow_mut();
        // Also after a failed write: the record may be durable nevertheless, and a later recovery
        // then audits it with the time of its write.
        world.written = world.uptime;
        let fired = world.faults.take_fired();
        // A kill during the sync returns an error, but a full write may have reached the disk. So
        // the record is kept for the coverage of the recovery that follows.
        if fired.is_some() || appended.is_err() {
            let record = serde_json::from_slice(body).ok();
            let column = fired.and_then(|(fault, point)| Column::of(fault, point));
            if let (Some(record), Some(column)) = (&record, column) {
                world.coverage.note(record, column);
            }
            world.unwritten = record.filter(|_| appended.is_err());
            world.last_fault = fired;
        }
        // From here on the record must survive everything, because the driver acts on it.
        if appended.is_ok() {
            world.acknowledged.push(body.into());
        }
        appended.map(drop)
    }
}

impl Host {
    /// Creates a machine that will run `definition`.
    pub fn new(
        seeds: Seeds,
        definition: Definition,
        replies: Box<dyn ReplySource>,
        settings: Settings,
    ) -> Result<Self, Violation> {
        let faults = FaultPlan::default();
        // Any constant works. It separates the numbers of the disk from those of the world, which
        // often have the same seed.
        let disk = Memory::new(seeds.disk ^ 0xd15c);
        let hooked = faults.clone();
        disk.set_hook(Some(Box::new(move |call| hooked.disk_call(call))));
        let paths = Root::in_directory(Path::new("/")).run("sim");
        Ok(Self {
            seeds,
            disk,
            paths: paths.map_err(|bad| Violation(bad.to_string()))?,
            world: Rc::new(RefCell::new(SimWorld::new(replies, seeds.world, faults.clone()))),
            faults,
            definitions: Rc::new(BTreeMap::from([(Value::from("as written"), definition)])),
            edit: None,
            program: Program::States,
            settings,
            leftovers: Leftovers::Any,
            driver: None,
            clock: OwnerClock::default(),
            lock: None,
            recovering: false,
            power_was_cut: false,
            downs: 0,
            help_limits: HelpLimits::UNLIMITED,
        })
    }

    /// Returns the phase after the last acknowledged record.
    pub fn phase(&self) -> Phase {
        self.world.borrow().last.phase
    }

    /// Every definition that the run may use, by its manifest.
    pub fn definitions(&self) -> &BTreeMap<Value, Definition> {
        &self.definitions
    }

    pub fn is_up(&self) -> bool {
        self.driver.is_some()
    }

    /// Returns whether the run has finally ended, according to its journal.
    pub fn is_over(&self) -> bool {
        let world = self.world.borrow();
        let Phase::Ended(ending) = world.last.phase else { return false };
        let events = world.records.iter().flat_map(|record| &record.steps);
        let events = events.flat_map(|step| &step.events);
        let same = |event: &&Event| matches!(event, Event::RunEnded { ending: e } if *e == ending);
        match ending {
            Ending::Completed | Ending::Cancelled => true,
            Ending::Failed => events.filter(same).count() > self.help_limits.failures,
            // A person answers every question.
            Ending::NeedsPerson if asks(&world.last) => false,
            Ending::NeedsPerson | Ending::Environment => {
                events.filter(same).count() > self.help_limits.logins
            }
            Ending::OverBudget
            | Ending::Stopped
            | Ending::NoQuota
            | Ending::NeedsCaller
            | Ending::Sleeping => false,
        }
    }

    /// Returns the trace of a run of steps.
    pub fn step_trace(&self) -> Result<StepTrace, Violation> {
        let world = self.world.borrow();
        let mut run = world.last.clone();
        self.faults.without_faults(|| recovered::read_results(&mut run, &self.blobs()))?;
        let (ran, asked) = (world.ran.iter().cloned(), world.asked.iter().cloned());
        let steps = self.definition(&run).steps.as_deref();
        let steps = steps.ok_or_else(|| Violation("no document".to_owned()))?;
        Ok(StepTrace { ran: ran.collect(), asked: asked.collect(), ..trace_of(&run, steps)? })
    }

    pub fn history(&self) -> History {
        let world = self.world.borrow();
        let blobs = self.blobs();
        let read = |value: &Value| match value {
            Value::Inline(text) => text.clone(),
            Value::Blob(blob) => {
                let bytes = self.faults.without_faults(|| blobs.get(blob.hash.as_str()));
                bytes.map_or_else(
                    |error| error.to_string(),
                    |bytes| String::from_utf8_lossy(&bytes).into_owned(),
                )
            }
        };
        history(&world.records, self.definition(&world.last), &read)
    }

    fn definition(&self, run: &Run) -> &Definition {
        definition_of(&self.definitions, run)
    }

    /// Passes inputs to the driver. A fault takes the machine down.
    pub fn handle(&mut self, inputs: Vec<Input>) -> Result<Verdicts, Violation> {
        self.act(|driver, now| driver.handle(now, inputs))
    }

    fn act(
        &mut self,
        act: impl FnOnce(&mut Driver<WatchedLog, WorldPort>, Timestamp) -> Result<Verdicts, DriverError>,
    ) -> Result<Verdicts, Violation> {
        // The clock of the owner, not of the world: the wall clock may have been set back.
        let now = self.owner_time();
        let Some(driver) = &mut self.driver else { return Ok(Vec::new()) };
        let handled = act(driver, now);
        // First: a violation during a fault must not look like the fault.
        if let Some(violation) = self.world.borrow_mut().violation.take() {
            return Err(violation);
        }
        match handled {
            Ok(verdicts) if !self.world.borrow().is_down => {
                self.leave_when_ended();
                Ok(verdicts)
            }
            // The driver does not notice a fault during the release of effects, so it may return
            // `Ok`. The process died before it could report the verdicts.
            Ok(_) | Err(_) => {
                self.go_down();
                Ok(Vec::new())
            }
        }
    }

    /// Takes the machine or its process down, and decides what stays on the disk.
    pub fn go_down(&mut self) {
        self.go_down_by(None);
    }

    /// Kills the process between two actions.
    pub fn kill(&mut self) {
        self.go_down_by(Some(MachineFault::Kill));
    }

    fn go_down_by(&mut self, cause: Option<MachineFault>) {
        self.driver = None;
        self.lock = None;
        self.downs += 1;
        let world = &mut *self.world.borrow_mut();
        let fired = self.faults.take_fired().or_else(|| world.last_fault.take());
        note_coverage(world, fired, self.recovering);
        world.trace.note(|| match fired {
            Some((fault, point)) => format!("{} at {point:?}", fault.name()),
            None => "the process is gone".to_owned(),
        });
        world.is_down = false;
        self.faults.restart();
        // A full disk stays full until this point; the user frees space before the next start.
        self.disk.set_capacity(None);
        let cut = match fired.map(|(fault, _)| fault).or(cause) {
            Some(MachineFault::PowerCut) => true,
            Some(MachineFault::Kill) => false,
            // After these faults the owner gives up; in half of the cases the power fails as well.
            Some(MachineFault::ShortWrite | MachineFault::Full | MachineFault::LostSync) | None => {
                world.dice.percent(50)
            }
        };
        // After a power failure the disk refuses every call until `crash`, whichever fault was
        // noted.
        self.power_was_cut = cut || self.disk.is_down();
        self.disk = if self.power_was_cut {
            self.disk.crash()
        } else {
            self.disk.kill();
            self.disk.process()
        };
    }

    /// Checks that another process cannot take the lock.
    pub fn try_second_owner(&self) -> Result<(), Violation> {
        // Without an owner another process may take the lock, and the check would prove nothing.
        if self.lock.is_none() {
            return Ok(());
        }
        let intruder = self.disk.process();
        let taken = self.faults.without_faults(|| claim(&intruder, &self.paths));
        intruder.kill();
        // The error must name the owner, because the message for the user does.
        match taken.map_err(|error| *error) {
            Err(lock::Error::Held { owner: Some(_), .. }) => Ok(()),
            Ok(_) => Err(Violation("a second owner was admitted".to_owned())),
            Err(other) => Err(Violation(format!("a second owner gets another error: {other}"))),
        }
    }

    pub fn stop(&mut self, mode: StopMode, key: &str) -> Result<(), Violation> {
        self.handle(vec![Input::Stop { mode, by: StopOrigin::Command, key: key.to_owned() }])
            .map(drop)
    }

    fn blobs(&self) -> Blobs {
        Blobs::new(Arc::new(self.disk.clone()), self.paths.blobs.clone())
    }
}

fn claim(disk: &Memory, paths: &RunPaths) -> Result<Lock, Box<lock::Error>> {
    let claim = Claim { since: 0, version: "sim", takeover: Takeover::Never };
    Lock::take(disk, disk, &paths.lock, claim).map_err(Box::new)
}

/// Counts the record that was lost, or nearly lost, when the machine went down.
fn note_coverage(world: &mut SimWorld, fired: Option<(MachineFault, Point)>, recovering: bool) {
    let Some((fault, point)) = fired else { return };
    let SimWorld { coverage, records, unwritten, .. } = world;
    let last = records.last();
    // At a release the record is already durable, so it is the last one. Records that failed
    // earlier are noted by `WatchedLog`.
    if let (Point::Release, Some(record)) = (point, last)
        && let Some(column) = Column::of(fault, point)
    {
        coverage.note(record, column);
    }
    if recovering && let Some(column) = Column::for_recovery(point) {
        // A recovery fails either after the last durable record or on a torn one; which of both it
        // is depends on what the power failure left.
        for record in last.into_iter().chain(unwritten.as_ref()) {
            coverage.note(record, column);
        }
    }
}

/// Returns whether an agent waits for an answer, or for the resume after it.
fn asks(run: &Run) -> bool {
    run.agents.values().any(|agent| matches!(agent.status, AgentStatus::Asking(_)))
}
