//! The boot of a machine: it takes the lock, opens or creates the journal, and continues the run.
//!
//! The steps have the order of a recovery in ARCHITECTURE.md. Each of them can meet a fault; then
//! the machine goes down again, and the next boot starts from the beginning.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use raymond_core::agent::{AgentStatus, Asking, Joining, Parked};
use raymond_core::clock::OwnerClock;
use raymond_core::decide::Refusal;
use raymond_core::ids::{RunId, StateName};
use raymond_core::protocol::Tag;
use raymond_core::run::effect::in_flight;
use raymond_core::run::record::FORMAT;
use raymond_core::run::start::Start;
use raymond_core::run::{Ending, Header, Input, Phase, Run};
use raymond_core::value::Value;
use raymond_core::workflow::Definition;
use raymond_engine::driver::{Driver, Head};
use raymond_engine::recovery;
use raymond_store::disk::{Disk, DiskErrorKind};
use raymond_store::{Journal, journal, lock};

use super::super::random_workflow::HOME;
use super::super::world::WorldPort;
use super::leftovers::{ClientSearch, Survivors};
use super::{HelpLimits, Host, WatchedLog, claim};
use crate::violation::Violation;

impl Host {
    /// Creates or continues the run.
    pub fn boot(&mut self) -> Result<(), Violation> {
        self.recovering = !self.world.borrow().acknowledged.is_empty();
        let booted = self.take_lock().and_then(|taken| if taken { self.open() } else { Ok(()) });
        self.recovering = false;
        if self.is_up() {
            // The recovery is complete: it removed the torn line, or took the record as durable.
            self.world.borrow_mut().unwritten = None;
            self.leave_when_ended();
        }
        booted
    }

    /// Releases a run that has ended.
    pub(super) fn leave_when_ended(&mut self) {
        // During a recovery an ended phase is the one that the resume is about to leave.
        if matches!(self.phase(), Phase::Ended(_)) && !self.recovering {
            self.driver = None;
            self.unlock();
        }
    }

    /// Releases the lock, which may fail, too.
    pub(super) fn unlock(&mut self) {
        self.lock = None;
        let fired = self.faults.take_fired();
        if fired.is_some() {
            self.world.borrow_mut().last_fault = fired;
            self.go_down();
        }
    }

    /// Takes the lock, and returns whether the machine is still up.
    pub(super) fn take_lock(&mut self) -> Result<bool, Violation> {
        let mut taken = claim(&self.disk, &self.paths);
        if let Err(error) = &taken
            && matches!(&**error, lock::Error::Disk(error) if error.kind() == DiskErrorKind::Missing)
            // The first boot has no directory yet.
            && self.paths.ensure(&self.disk).is_ok()
        {
            taken = claim(&self.disk, &self.paths);
        }
        match taken.map_err(|error| *error) {
            Ok(lock) => self.lock = Some(lock),
            Err(lock::Error::Disk(_)) => self.go_down(),
            // The kernel frees a lock with its process, so any refusal other than a disk error is
            // wrong here.
            Err(error) => {
                return Err(Violation(format!("cannot lock a run without an owner: {error}")));
            }
        }
        Ok(self.lock.is_some())
    }

    fn open(&mut self) -> Result<(), Violation> {
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        match Journal::open(Arc::clone(&disk), &self.paths.journal) {
            Ok(opened) => self.recover(opened),
            Err(journal::Error::Missing(_) | journal::Error::Unborn(_)) => self.begin(disk),
            Err(journal::Error::Disk(_)) => {
                self.go_down();
                Ok(())
            }
            // No simulated fault may look like damage: damage ends a run until a user rewinds it.
            Err(error) => Err(Violation(format!("the journal does not open: {error}"))),
        }
    }

    fn begin(&mut self, disk: Arc<dyn Disk>) -> Result<(), Violation> {
        // An empty journal is correct only if no record was ever acknowledged. Without this check
        // the run would silently start again.
        let lost = self.world.borrow().acknowledged.len();
        if lost > 0 {
            return Err(Violation(format!("all {lost} acknowledged records are lost")));
        }
        let header = Header { format: FORMAT, run: "sim".into(), nonce: "n0".into() };
        let header = serde_json::to_vec(&header).map_err(|error| Violation(error.to_string()))?;
        let created = self.paths.ensure(&self.disk).map_err(journal::Error::from);
        let created = created.and_then(|()| Journal::create(disk, &self.paths.journal, &header));
        match created {
            Ok(journal) => {
                self.drive(Head::empty(), journal);
                self.start()
            }
            Err(_) => {
                self.go_down();
                Ok(())
            }
        }
    }

    fn recover(&mut self, opened: journal::Opened) -> Result<(), Violation> {
        // The check makes calls that a real recovery does not make, and the sweep numbers the calls
        // of a recovery to fail each of them.
        let head = self.faults.without_faults(|| self.check_recovered(&opened))?;
        if head.seq == 0 {
            // The journal was created, but the start never became durable.
            self.drive(head, opened.journal);
            return self.start();
        }
        // A run with limited help stays ended even if its failure could be resumed.
        if self.is_over() && self.help_limits != HelpLimits::UNLIMITED {
            self.unlock();
            return Ok(());
        }
        if self.paths.sweep(&self.disk).is_err() {
            self.go_down();
            return Ok(());
        }
        // Requests to a dead owner do not concern the new one.
        self.discard_requests();
        let Some(reports) = self.reports(&head, Survivors::Adopted) else { return Ok(()) };
        let mut inputs = recovery::resume_inputs(reports, self.settings.clone());
        let Some(outputs) = self.outputs(&head.run)? else { return Ok(()) };
        inputs.extend(outputs);
        self.drive(head, opened.journal);
        // The edit comes before the resume, in its own record, because the resume already runs the
        // new states.
        self.adopt()?;
        self.handle(inputs).map(drop)
    }

    /// Returns the outcomes of turns in flight; `None` if the machine went down.
    pub(super) fn reports(&mut self, head: &Head, survivors: Survivors) -> Option<Vec<Input>> {
        let (leftovers, power_was_cut) = (self.leftovers, self.power_was_cut);
        let found = ClientSearch { leftovers, power_was_cut, survivors };
        let blobs = self.blobs();
        // Outcomes that an earlier recovery found but did not record may be lost.
        self.world.borrow_mut().found.clear();
        let mut reports = Vec::new();
        for turn in in_flight(&head.run) {
            let attempt = (turn.id.clone(), turn.attempt);
            let outcome = found.find(&mut self.world.borrow_mut(), &attempt, &blobs);
            match outcome {
                Ok(outcome) => {
                    reports.extend(outcome.map(|outcome| recovery::settled(turn, outcome)));
                }
                Err(_) => {
                    self.lose_text(&attempt);
                    return None;
                }
            }
        }
        Some(reports)
    }

    fn start(&mut self) -> Result<(), Violation> {
        let start = Start {
            run: RunId::new("sim"),
            nonce: "n0".into(),
            workflow: "/flow".into(),
            scope: "/flow".into(),
            manifest: Value::from("as written"),
            cwd: HOME.into(),
            input: None,
            program: self.program.clone(),
            settings: self.settings.clone(),
            backends: BTreeSet::new(),
        };
        self.handle(vec![Input::Start(Box::new(start))]).map(drop)
    }

    pub(super) fn drive(&mut self, head: Head, journal: Journal) {
        let world = Rc::clone(&self.world);
        let log = WatchedLog { journal, world: Rc::clone(&world) };
        let definition = self.definition(&head.run).clone();
        let port = WorldPort { world, definitions: Rc::clone(&self.definitions) };
        // A new owner knows nothing of the earlier clock: waits that it finds are bounded by the
        // resume.
        self.clock = OwnerClock::default();
        self.driver = Some(Driver::new(head, definition, log, port));
    }

    /// Edits the states while the run has no owner.
    pub fn edit(&mut self, name: &str, definition: Definition) {
        let manifest = Value::from(name);
        Rc::make_mut(&mut self.definitions).insert(manifest.clone(), definition);
        self.edit = Some(manifest);
    }

    /// Returns whether an edit gives a state in use to another backend.
    fn changes_backend(&self, edited: &Definition) -> bool {
        let run = &self.world.borrow().last;
        let earlier = self.definition(run);
        let backend = |definition: &Definition, state: &StateName| {
            definition.states.get(state).and_then(|state| state.front.backend.clone())
        };
        let mut needed = run.agents.values().flat_map(|agent| {
            agent.stack.iter().map(|frame| &frame.state).chain(agent.visit.location.state())
        });
        needed.any(|state| backend(earlier, state) != backend(edited, state))
    }

    /// Adopts the edit. It may be refused only if an agent needs a state that is removed or has
    /// another backend.
    fn adopt(&mut self) -> Result<(), Violation> {
        let Some(manifest) = self.edit.take() else { return Ok(()) };
        // Only a failed run may need the edit; any other run continues with its pinned states.
        if self.phase() != Phase::Ended(Ending::Failed) {
            return Ok(());
        }
        let definition = self.definitions[&manifest].clone();
        let needs = |run: &Run| {
            let states = run.agents.values().flat_map(|agent| {
                agent.stack.iter().map(|frame| &frame.state).chain(agent.visit.location.state())
            });
            states.filter(|state| !definition.states.contains_key(*state)).count()
        };
        let waits = |run: &Run| {
            let kept = run.agents.values().filter_map(|agent| match &agent.status {
                AgentStatus::Parked(Parked { kept, .. })
                | AgentStatus::Joining(Joining { kept, .. })
                | AgentStatus::Asking(Asking { kept, .. }) => Some(kept),
                _ => None,
            });
            let mut targets = kept.flat_map(|kept| &kept.tags).flat_map(Tag::kept_targets);
            targets.any(|target| definition.resolve(target).is_err())
        };
        let removed = needs(&self.world.borrow().last);
        let removes_target = waits(&self.world.borrow().last);
        let is_moved = self.changes_backend(&definition);
        let edited = definition.clone();
        let verdicts = self.act(|driver, now| Ok(vec![driver.adopt(now, edited, manifest)?]))?;
        match (verdicts.as_slice(), removed) {
            ([], _) | ([Err(Refusal::StateGone { .. })], 1..) => Ok(()),
            ([Ok(())], 0) if !removes_target => Ok(()),
            ([Err(Refusal::WaitGone { .. })], _) if removes_target => Ok(()),
            // An agent may still accept the new backend; the auditor checks that when its turn
            // starts.
            ([Err(Refusal::OtherBackend { .. })], 0) if is_moved => Ok(()),
            (other, removed) => {
                Err(Violation(format!("an edit that removes {removed} states in use: {other:?}")))
            }
        }
    }
}
