//! The driver: decides, commits, then acts.
//!
//! A synchronous struct without IO of its own. It takes what was observed, lets the core decide and
//! apply it on the head of the run, writes **one** record for all of it, and only when that record
//! is durable tells the world. When a commit fails the head is worth nothing any more: the driver
//! refuses everything, and only a reopened journal goes on.

use raymond_core::run::{Effect, Input, Record, Refusal, Run, batch, effect};
use raymond_core::time::Timestamp;
use raymond_core::value::Value;
use raymond_core::view::Ledger;
use raymond_core::workflow::Definition;

/// Where records become durable.
pub trait Log {
    /// Appends one line and makes it durable; whatever fails, the line does not count.
    fn append(&mut self, body: &[u8]) -> Result<(), raymond_store::journal::Error>;
}

/// Those who act on what is durable, and those who watch.
pub trait World {
    /// This record is durable; `run` and `ledger` hold it.
    fn committed(&mut self, run: &Run, ledger: &Ledger, record: &Record);

    /// Do this now.
    fn release(&mut self, run: &Run, definition: &Definition, effect: Effect);
}

/// Why the driver does not go on.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The record could not be made durable.
    #[error("could not record what happened")]
    Commit(#[source] raymond_store::journal::Error),
    /// A record could not be made durable earlier.
    #[error("could not write an earlier record; resume the run")]
    Dead,
    /// A record does not serialise; nothing was written.
    #[error("could not encode a record")]
    Encode(#[source] serde_json::Error),
}

/// A run in memory, at the head of its journal.
#[derive(Debug)]
pub struct Head {
    /// The run.
    pub run: Run,
    /// What it no longer holds.
    pub ledger: Ledger,
    /// The number of its last record; 0 before the first.
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
    /// A driver for the run at `head`.
    pub fn new(head: Head, definition: Definition, log: L, world: W) -> Self {
        Self { head, definition, log, world, dead: false, more: false }
    }

    /// The run, every record of it durable.
    pub fn run(&self) -> &Run {
        &self.head.run
    }

    /// The run and what it no longer holds.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The states that it uses.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The run, its definition and its journal, given up.
    pub fn into_parts(self) -> (Head, Definition, L) {
        (self.head, self.definition, self.log)
    }

    /// The world that it acts on.
    pub fn world(&mut self) -> &mut W {
        &mut self.world
    }

    /// Shows the world what it acts for.
    pub fn with_world<T>(&mut self, act: impl FnOnce(&mut W, &Run, &Definition) -> T) -> T {
        act(&mut self.world, &self.head.run, &self.definition)
    }

    /// Whether the head may say more than the journal: a record could not be made durable.
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Whether more follows by itself: [`Input::Due`] goes on with it.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// The number of the last durable record.
    pub fn seq(&self) -> u64 {
        self.head.seq
    }

    /// Takes a batch of inputs: one record, one sync, then the effects. The verdict on each input
    /// stands at its place.
    pub fn handle(
        &mut self,
        at: Timestamp,
        inputs: Vec<Input>,
    ) -> Result<Vec<Result<(), Refusal>>, DriverError> {
        if self.dead {
            return Err(DriverError::Dead);
        }
        // Until the record is durable the head is ahead of the truth.
        self.dead = true;
        let decided = batch(&mut self.head.run, &self.definition, at, inputs);
        self.more = decided.more;
        if !decided.steps.is_empty() {
            let record = Record { seq: self.head.seq + 1, at, steps: decided.steps };
            let body = serde_json::to_vec(&record).map_err(DriverError::Encode)?;
            self.log.append(&body).map_err(DriverError::Commit)?;
            self.act(&record);
        }
        self.dead = false;
        Ok(decided.verdicts)
    }

    /// Uses edited states from now on, unless an agent needs one that is gone.
    pub fn adopt(
        &mut self,
        at: Timestamp,
        definition: Definition,
        manifest: Value,
    ) -> Result<Result<(), Refusal>, DriverError> {
        let earlier = std::mem::replace(&mut self.definition, definition);
        let mut verdicts = self.handle(at, vec![Input::Adopt { manifest }])?;
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
        self.world.committed(run, ledger, record);
        for effect in effect::effects(run, &self.definition, events()) {
            self.world.release(run, &self.definition, effect);
        }
    }
}

/// A world in which nothing is started: for those who only have something to record.
#[derive(Debug, Clone, Copy)]
pub struct RecordOnly;

impl World for RecordOnly {
    fn committed(&mut self, _: &Run, _: &Ledger, _: &Record) {}

    fn release(&mut self, _: &Run, _: &Definition, _: Effect) {}
}

impl Log for raymond_store::Journal {
    fn append(&mut self, body: &[u8]) -> Result<(), raymond_store::journal::Error> {
        Self::append(self, body).map(drop)
    }
}

#[cfg(test)]
mod tests;
