//! The world outside the driver: a clock, and clients that outlive their owner.
//!
//! It survives every crash of the simulated machine, and remembers what really happened. So it
//! notices if the journal is wrong. The driver reaches it through [`WorldPort`].

mod port;

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::agent::Location;
use raymond_core::budget::Micros;
use raymond_core::ids::{AgentId, BackendName, SessionId, TurnId};
use raymond_core::run::outcome::Outcome;
use raymond_core::run::{Event, Input, Record, Run};
use raymond_core::time::{Span, Timestamp};
use raymond_engine::driver::Head;
use raymond_store::Blobs;

use crate::dice::Dice;

use super::auditor::Auditor;
use super::clients::{Attempt, Clients};
use super::coverage::{Column, Coverage, Situation};
use super::fault_plan::{FaultPlan, MachineFault, Point};
use super::observer::Observed;
use super::outcome;
use super::reply::ReplySource;
use super::trace::Trace;
use super::views::Views;
use crate::violation::Violation;

pub use port::WorldPort;

/// The wall clock time at which every simulation starts, in Unix milliseconds (November 2023). Any
/// fixed value works.
pub const START_TIME: Timestamp = Timestamp(1_700_000_000_000);

#[derive(Debug)]
pub struct SimWorld {
    pub now: Timestamp,
    /// The monotonic clock, which stops while the machine sleeps.
    pub uptime: Span,
    /// The monotonic time of the last write of a record, durable or not.
    pub written: Span,
    pub(super) replies: Box<dyn ReplySource>,
    /// Decides delays and other chances.
    pub dice: Dice,
    pub faults: FaultPlan,
    pub clients: Clients,
    /// Clients whose owner died while it started them.
    pub unseen: BTreeSet<Attempt>,
    /// The true costs of ended attempts.
    pub truth: BTreeMap<Attempt, Micros>,
    /// The outcomes of ended clients that recoveries found, until they are recorded.
    pub found: BTreeMap<Attempt, Outcome>,
    /// The attempts whose effects were released.
    pub released: BTreeSet<Attempt>,
    pub auditor: Auditor,
    /// The bytes of every acknowledged record.
    pub acknowledged: Vec<Box<[u8]>>,
    /// Every acknowledged record.
    pub records: Vec<Record>,
    /// The run after the last acknowledged record.
    pub last: Run,
    /// The run that recoveries have read from the journal.
    pub read: Head,
    /// The attempts that those records start.
    pub started: BTreeSet<Attempt>,
    /// The blobs that those records name.
    pub blobs: BTreeSet<String>,
    /// The record that could not be written when the machine last went down.
    pub unwritten: Option<Record>,
    pub coverage: Coverage,
    pub violation: Option<Violation>,
    pub is_down: bool,
    /// The last fault, and its point.
    pub last_fault: Option<(MachineFault, Point)>,
    pub trace: Trace,
    views: Views,
    /// Texts that could not be stored at first, with the column of the fault.
    pub unstored: BTreeMap<TurnId, Column>,
    /// The state of each agent.
    locations: BTreeMap<AgentId, Location>,
    /// The number of finished attempts of each turn.
    attempts: BTreeMap<TurnId, u32>,
    /// The number of finished attempts by agent and state.
    finished: BTreeMap<(AgentId, Location), usize>,
    /// The started programs of steps, with their calls.
    pub ran: Vec<String>,
    /// The questions of agent steps.
    pub asked: Vec<String>,
    /// The backends that opened the conversations.
    conversations: BTreeMap<SessionId, BackendName>,
}

impl SimWorld {
    pub fn new(replies: Box<dyn ReplySource>, seed: u64, faults: FaultPlan) -> Self {
        Self {
            now: START_TIME,
            uptime: Span(0),
            written: Span(0),
            replies,
            // The scenario has the same seed. Without the constant, both would throw the same
            // numbers and their choices would depend on each other.
            dice: Dice::new(seed ^ 0xc10c),
            faults,
            clients: Clients::default(),
            unseen: BTreeSet::new(),
            truth: BTreeMap::new(),
            found: BTreeMap::new(),
            released: BTreeSet::new(),
            auditor: Auditor::default(),
            acknowledged: Vec::new(),
            records: Vec::new(),
            last: Run::default(),
            read: Head::empty(),
            started: BTreeSet::new(),
            blobs: BTreeSet::new(),
            unwritten: None,
            coverage: Coverage::default(),
            violation: None,
            is_down: false,
            last_fault: None,
            trace: Trace::default(),
            views: Views::default(),
            unstored: BTreeMap::new(),
            locations: BTreeMap::new(),
            attempts: BTreeMap::new(),
            finished: BTreeMap::new(),
            ran: Vec::new(),
            asked: Vec::new(),
            conversations: BTreeMap::new(),
        }
    }

    /// Audits and counts an acknowledged record.
    pub fn accept(&mut self, run: &Run, record: &Record) -> Result<(), Violation> {
        // A violation is returned at the end, so that the trace still contains its record.
        let audited = self.auditor.record(run, record, self.written, &self.truth);
        // Not lazily: the views must contain every record.
        let viewed = self.views.record(run, record);
        let audited = audited.and(viewed);
        self.coverage.note(record, Column::Seen);
        self.trace.record(record);
        for step in &record.steps {
            if let Input::Settled { turn, .. } = &step.cause
                && let Some(column) = self.unstored.remove(turn)
            {
                self.coverage.note_step(step, column);
            }
            for event in &step.events {
                self.follow(event);
            }
        }
        let Self { last, clients, coverage, .. } = self;
        // Before `last` is replaced: situations compare the run before and after the record.
        Observed { before: last, record, after: run, clients }.note(coverage);
        self.last = run.clone();
        self.records.push(record.clone());
        audited.and_then(|()| self.check_found(record))
    }

    /// Checks that the outcome found by a recovery is the one that is recorded.
    fn check_found(&mut self, record: &Record) -> Result<(), Violation> {
        for step in &record.steps {
            let Input::Settled { turn, attempt, outcome } = &step.cause else { continue };
            let Some(found) = self.found.remove(&(turn.clone(), *attempt)) else { continue };
            // Only the kind: the journal leaves out parts of an outcome that a replay reads again.
            if std::mem::discriminant(&found) != std::mem::discriminant(outcome) {
                let what = format!("{turn} had come to {found:?}, and {outcome:?} is recorded");
                return Err(Violation(what));
            }
        }
        Ok(())
    }

    /// Returns the number of finished attempts.
    pub fn finished_turns(&self) -> usize {
        self.finished.values().sum()
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::VisitEntered { agent, location, .. } => {
                self.locations.insert(agent.clone(), location.clone());
            }
            Event::TurnSettled { turn, .. }
            | Event::TurnContinues { turn, .. }
            | Event::TurnFailed { turn, .. } => {
                // Interrupted attempts are not counted. So the attempt after a crash gets the reply
                // that the interrupted attempt would have given.
                *self.attempts.entry(turn.clone()).or_default() += 1;
                if let Some(location) = self.locations.get(&turn.agent) {
                    let place = (turn.agent.clone(), location.clone());
                    *self.finished.entry(place).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn keep_violation(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict {
            // The first violation is the cause; later ones are often its consequences.
            self.violation.get_or_insert(violation);
        }
    }

    /// Returns the executor's report about an ended attempt.
    pub fn outcome(&mut self, attempt: &Attempt, blobs: &Blobs) -> Result<Outcome, String> {
        let client = self.clients.get(attempt).ok_or("no such turn")?;
        // Before the text is stored, because the money is spent even if the outcome is lost.
        self.truth.insert(attempt.clone(), outcome::truth(client));
        outcome::outcome(client, blobs)
    }

    /// Counts the waits during which the clock jumps.
    pub fn note_jump(&mut self, jump: Jump) {
        let (retry, hold) = match jump {
            Jump::Ahead => (Situation::SleptInRetry, Situation::SleptInHold),
            Jump::Back => (Situation::BackInRetry, Situation::BackInHold),
        };
        if self.last.scheduler.timers.has_retry() {
            self.coverage.note_situation(retry);
        }
        if !self.last.scheduler.holds.is_empty() {
            self.coverage.note_situation(hold);
        }
        if jump == Jump::Ahead && self.clients.next().is_some() {
            self.coverage.note_situation(Situation::SleptInTurn);
        }
    }

    pub fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        self.uptime = Span(self.uptime.0.saturating_add(span.0));
    }

    /// Lets time pass until the wall clock shows `to`.
    pub fn pass_until(&mut self, to: Timestamp) {
        self.pass(Span(to.0.saturating_sub(self.now.0)));
    }

    /// Sets the wall clock.
    pub fn jump(&mut self, to: Timestamp) {
        // Clients measure the time that they need, not the wall clock.
        self.clients.shift(self.now, to);
        self.now = to;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// The machine slept.
    Ahead,
    /// The clock was set back.
    Back,
}
