//! The driver: decides, commits, then acts.
//!
//! A synchronous struct without IO of its own. It takes a batch of inputs, lets the core decide and
//! apply them on the head of the run, and writes **one** record for all of them. Effects are
//! released only after that record is durable. If a commit fails, the head is ahead of the journal:
//! the driver refuses all further inputs, and the run continues only after its journal is opened
//! again.
//!
//! [`crate::runner`] collects the inputs and runs the effects; the simulator has its own [`World`].

use raymond_core::decide::{Refusal, batch, effects};
use raymond_core::run::{Effect, Input, Record, Run};
use raymond_core::time::Timestamp;
use raymond_core::value::Value;
use raymond_core::view::Ledger;
use raymond_core::workflow::Definition;

/// The journal, as the driver uses it.
pub trait Log {
    type Error: std::error::Error + 'static;

    /// Appends one line and makes it durable. After an error the line does not count.
    fn append(&mut self, body: &[u8]) -> Result<(), Self::Error>;
}

/// The outside world: runs effects, and reports records to watchers.
pub trait World {
    /// Called after a record is durable. `run` and `ledger` already contain it.
    fn committed(&mut self, run: &Run, ledger: &Ledger, record: &Record);

    /// Starts an effect. It must not block.
    fn release(&mut self, effect: Effect);
}

/// Why the driver stopped. `E` is the error of its [`Log`].
#[derive(Debug, thiserror::Error)]
pub enum DriverError<E: std::error::Error + 'static = raymond_store::journal::Error> {
    /// A record could not be made durable.
    #[error("could not record what happened")]
    Commit(#[source] E),
    /// A record could not be made durable earlier.
    #[error("could not write an earlier record; resume the run")]
    Dead,
    /// A record could not be serialised. Nothing was written.
    #[error("could not encode a record")]
    Encode(#[source] serde_json::Error),
}

/// A run in memory, at the head of its journal.
#[derive(Debug)]
pub struct Head {
    pub run: Run,
    /// The facts that the run itself no longer contains, such as results of finished agents.
    pub ledger: Ledger,
    /// The number of the last record, or 0 before the first.
    pub seq: u64,
}

/// Drives one run.
#[derive(Debug)]
pub struct Driver<L, W> {
    head: Head,
    definition: Definition,
    log: L,
    world: W,
    dead: bool,
    more: bool,
}

impl<L: Log, W: World> Driver<L, W> {
    pub fn new(head: Head, definition: Definition, log: L, world: W) -> Self {
        Self { head, definition, log, world, dead: false, more: false }
    }

    /// Returns the run. All its records are durable, unless the driver is dead.
    pub fn run(&self) -> &Run {
        &self.head.run
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Gives up the run, its definition and its journal.
    pub fn into_parts(self) -> (Head, Definition, L) {
        (self.head, self.definition, self.log)
    }

    pub fn world(&mut self) -> &mut W {
        &mut self.world
    }

    /// Calls a function with the world, the run and its definition.
    pub fn with_world<T>(&mut self, act: impl FnOnce(&mut W, &Run, &Definition) -> T) -> T {
        act(&mut self.world, &self.head.run, &self.definition)
    }

    /// Returns whether a record could not be made durable. The head may then contain events that
    /// are not in the journal.
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Returns whether the last decision was split because it was too large for one record.
    /// [`Input::Due`] continues it.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// Returns the number of the last durable record.
    pub fn seq(&self) -> u64 {
        self.head.seq
    }

    /// Handles a batch of inputs: one record, one sync, then the effects. Returns one verdict for
    /// each input, in the same order.
    pub fn handle(
        &mut self,
        at: Timestamp,
        inputs: Vec<Input>,
    ) -> Result<Vec<Result<(), Refusal>>, DriverError<L::Error>> {
        if self.dead {
            return Err(DriverError::Dead);
        }
        // `batch` changes the head before the record is durable. The flag is set first, so that an
        // early return below leaves a driver that refuses everything.
        self.dead = true;
        let decided = batch(&mut self.head.run, &self.definition, at, inputs);
        self.more = decided.more;
        // A batch that decides nothing needs no record: most ticks end here.
        if !decided.steps.is_empty() {
            let record = Record { seq: self.head.seq + 1, at, steps: decided.steps };
            let body = serde_json::to_vec(&record).map_err(DriverError::Encode)?;
            self.log.append(&body).map_err(DriverError::Commit)?;
            self.act(&record);
        }
        self.dead = false;
        Ok(decided.verdicts)
    }

    /// Uses edited states from now on. The core refuses if an agent is at a state that no longer
    /// exists.
    pub fn adopt(
        &mut self,
        at: Timestamp,
        definition: Definition,
        manifest: Value,
    ) -> Result<Result<(), Refusal>, DriverError<L::Error>> {
        // The core decides with the new definition, so it is replaced first and restored on
        // refusal.
        let earlier = std::mem::replace(&mut self.definition, definition);
        let mut verdicts = self.handle(at, vec![Input::Adopt { manifest, changed: Vec::new() }])?;
        let verdict = verdicts.pop().unwrap_or(Ok(()));
        if verdict.is_err() {
            self.definition = earlier;
        }
        Ok(verdict)
    }

    fn act(&mut self, record: &Record) {
        let Head { run, ledger, seq } = &mut self.head;
        *seq = record.seq;
        let events = || record.steps.iter().flat_map(|step| &step.events);
        for event in events() {
            ledger.note(record.at, event);
        }
        // Watchers first: a record is reported before anything that it starts.
        self.world.committed(run, ledger, record);
        for effect in effects(run, &self.definition, events()) {
            self.world.release(effect);
        }
    }
}

/// A world without effects, for callers that only record something.
#[derive(Debug, Clone, Copy)]
pub struct RecordOnly;

impl World for RecordOnly {
    fn committed(&mut self, _: &Run, _: &Ledger, _: &Record) {}

    fn release(&mut self, _: Effect) {}
}

impl Log for raymond_store::Journal {
    type Error = raymond_store::journal::Error;

    fn append(&mut self, body: &[u8]) -> Result<(), Self::Error> {
        Self::append(self, body).map(drop)
    }
}

#[cfg(test)]
mod tests;
