//! The world outside the driver: clients that go on when their owner dies, and a clock.
//!
//! It survives every crash of the simulated machine, and it remembers what was really done, so that
//! it can tell when the journal lies.

mod port;

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::budget::Micros;
use raymond_core::ids::{AgentId, BackendName, SessionId, StateName, TurnId};
use raymond_core::run::input::Outcome;
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
use crate::violation::Violation;

pub use port::WorldPort;

/// When every world begins.
pub const START_TIME: Timestamp = Timestamp(1_700_000_000_000);

/// Everything outside.
#[derive(Debug)]
pub struct SimWorld {
    /// The wall clock.
    pub now: Timestamp,
    /// A clock that nobody sets, and that stands still while the machine sleeps.
    pub uptime: Span,
    /// What it showed when the last record was written, durable or not.
    pub written: Span,
    /// What agents say.
    pub(super) replies: Box<dyn ReplySource>,
    /// Chooses delays.
    pub dice: Dice,
    /// Where things go wrong.
    pub faults: FaultPlan,
    /// What was started.
    pub clients: Clients,
    /// Clients of which their owner never knew: it died as it started them.
    pub unseen: BTreeSet<Attempt>,
    /// What attempts that are over really cost.
    pub truth: BTreeMap<Attempt, Micros>,
    /// What recoveries found of clients that were over.
    pub found: BTreeMap<Attempt, Outcome>,
    /// Effects that were released.
    pub released: BTreeSet<Attempt>,
    /// The books.
    pub auditor: Auditor,
    /// The bytes of every record that counts.
    pub acknowledged: Vec<Box<[u8]>>,
    /// Every record that counts.
    pub records: Vec<Record>,
    /// The run as it was when the last record was acknowledged.
    pub last: Run,
    /// What recoveries have read so far, and nothing else.
    pub read: Head,
    /// The attempts that it says were started.
    pub started: BTreeSet<Attempt>,
    /// The blobs that it names.
    pub blobs: BTreeSet<String>,
    /// The record that could not be written when the machine last went down.
    pub unwritten: Option<Record>,
    /// What was met.
    pub coverage: Coverage,
    /// Something that must never happen.
    pub violation: Option<Violation>,
    /// Whether the machine is down.
    pub down: bool,
    /// What went wrong last.
    pub hit: Option<(MachineFault, Point)>,
    /// What is told of it.
    pub trace: Trace,
    /// Texts that could not be stored at first, and where that went wrong.
    pub unstored: BTreeMap<TurnId, Column>,
    /// Where each agent is.
    places: BTreeMap<AgentId, StateName>,
    /// Attempts that came to an end of their own, by turn.
    attempts: BTreeMap<TurnId, u32>,
    /// And by agent and state.
    finished: BTreeMap<(AgentId, StateName), usize>,
    /// Programs of steps that were started, with what they were called with.
    pub ran: Vec<String>,
    /// Questions of agent steps that were sent.
    pub asked: Vec<String>,
    /// Conversations, and the backends whose clients opened them.
    conversations: BTreeMap<SessionId, BackendName>,
}

impl SimWorld {
    /// A world at peace.
    pub fn new(replies: Box<dyn ReplySource>, seed: u64, faults: FaultPlan) -> Self {
        Self {
            now: START_TIME,
            uptime: Span(0),
            written: Span(0),
            replies,
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
            down: false,
            hit: None,
            trace: Trace::default(),
            unstored: BTreeMap::new(),
            places: BTreeMap::new(),
            attempts: BTreeMap::new(),
            finished: BTreeMap::new(),
            ran: Vec::new(),
            asked: Vec::new(),
            conversations: BTreeMap::new(),
        }
    }

    /// A record counts from now on.
    pub fn accept(&mut self, run: &Run, record: &Record) -> Result<(), Violation> {
        let audited = self.auditor.record(run, record, self.written, &self.truth);
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
        Observed { before: last, record, after: run, clients }.note(coverage);
        self.last = run.clone();
        self.records.push(record.clone());
        audited.and_then(|()| self.check_found(record))
    }

    /// What a recovery found of a client that was over is what is recorded of it.
    fn check_found(&mut self, record: &Record) -> Result<(), Violation> {
        for step in &record.steps {
            let Input::Settled { turn, attempt, outcome } = &step.cause else { continue };
            let Some(found) = self.found.remove(&(turn.clone(), *attempt)) else { continue };
            if std::mem::discriminant(&found) != std::mem::discriminant(outcome) {
                let what = format!("{turn} had come to {found:?}, and {outcome:?} is recorded");
                return Err(Violation(what));
            }
        }
        Ok(())
    }

    /// How many turns came to an end of their own.
    pub fn finished_turns(&self) -> usize {
        self.finished.values().sum()
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::VisitEntered { agent, state, .. } => {
                self.places.insert(agent.clone(), state.clone());
            }
            Event::TurnSettled { turn, .. }
            | Event::TurnContinues { turn, .. }
            | Event::TurnFailed { turn, .. } => {
                *self.attempts.entry(turn.clone()).or_default() += 1;
                if let Some(state) = self.places.get(&turn.agent) {
                    let place = (turn.agent.clone(), state.clone());
                    *self.finished.entry(place).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn keep_violation(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict {
            self.violation.get_or_insert(violation);
        }
    }

    /// What the executor reports about an attempt that is over.
    pub fn outcome(&mut self, attempt: &Attempt, blobs: &Blobs) -> Result<Outcome, String> {
        let client = self.clients.get(attempt).ok_or("no such turn")?;
        self.truth.insert(attempt.clone(), outcome::truth(client));
        outcome::outcome(client, blobs)
    }

    /// Counts what waits while the clock jumps.
    pub fn note_jump(&mut self, jump: Jump) {
        let (retry, hold) = match jump {
            Jump::Ahead => (Situation::SleptInRetry, Situation::SleptInHold),
            Jump::Back => (Situation::BackInRetry, Situation::BackInHold),
        };
        if !self.last.scheduler.retries.is_empty() {
            self.coverage.note_situation(retry);
        }
        if !self.last.scheduler.holds.is_empty() {
            self.coverage.note_situation(hold);
        }
        if jump == Jump::Ahead && self.clients.next().is_some() {
            self.coverage.note_situation(Situation::SleptInTurn);
        }
    }

    /// Time passes.
    pub fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        self.uptime = Span(self.uptime.0.saturating_add(span.0));
    }

    /// Time passes until the wall clock shows this.
    pub fn pass_until(&mut self, to: Timestamp) {
        self.pass(Span(to.0.saturating_sub(self.now.0)));
    }

    /// The clock says something else all of a sudden.
    pub fn jump(&mut self, to: Timestamp) {
        self.clients.shift(self.now, to);
        self.now = to;
    }
}

/// Where a clock jumps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// The machine slept.
    Ahead,
    /// Somebody set the clock.
    Back,
}
