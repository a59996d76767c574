//! Decides a journal again: today's `decide` on the recorded causes, up to the first difference.
//!
//! Each record is one batch, decided at its recorded time on the run that the earlier records make.
//! A journal leaves out what can be read again from a text (tags, the value of a step's result), so
//! this is read again first. A difference is not a fault of the journal, which still applies: it
//! shows that this version decides something else. Later records are not compared, because they
//! were decided on a different run.

mod difference;
mod reading;

use crate::value::{BlobRef, Value};
use crate::workflow::Definition;

use super::batch::batch;
use crate::run::input::Input;
use crate::run::record::Record;
use crate::run::state::Run;

pub use difference::{Decided, Difference};

/// Access to the texts and definitions that a journal only refers to.
pub trait Sources {
    type Error;

    fn text(&self, blob: &BlobRef) -> Result<String, Self::Error>;

    /// Returns the definition that was pinned as `manifest`.
    fn definition(&self, manifest: &Value) -> Result<Definition, Self::Error>;
}

/// A replay in progress, record by record.
#[derive(Debug, Default)]
pub struct Replay {
    run: Run,
    /// The definition in use, with the manifest that names it.
    definition: Option<(Value, Definition)>,
}

impl Replay {
    /// Decides the next record again. After a difference the run must not be used any more.
    pub fn record<S: Sources>(
        &mut self,
        record: &Record,
        sources: &S,
    ) -> Result<Option<Box<Difference>>, S::Error> {
        let mut causes = Vec::with_capacity(record.steps.len());
        for step in &record.steps {
            let mut cause = step.cause.clone();
            reading::complete(&self.run, &mut cause, sources)?;
            causes.push(cause);
        }
        let manifest = manifest(&self.run, &causes);
        // Parsed once for each manifest: a journal has many records and few definitions.
        if self.definition.as_ref().is_none_or(|(known, _)| known != manifest) {
            self.definition = Some((manifest.clone(), sources.definition(manifest)?));
        }
        let Some((_, definition)) = &self.definition else { return Ok(None) };
        // The decided events equal the recorded ones, or there is a difference. Either way this run
        // also has what the record only refers to, which applying the record alone would not give.
        let decided = batch(&mut self.run, definition, record.at, causes);
        Ok(difference::first(record, &decided).map(Box::new))
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    pub fn into_run(self) -> Run {
        self.run
    }
}

/// Returns the manifest that a batch is decided with: an adopted one governs its own batch already.
fn manifest<'a>(run: &'a Run, causes: &'a [Input]) -> &'a Value {
    let brings = |cause: &'a Input| match cause {
        Input::Start(start) => Some(&start.manifest),
        Input::Adopt { manifest, .. } => Some(manifest),
        Input::Resume(_)
        | Input::Settled { .. }
        | Input::Due
        | Input::Now
        | Input::Stop { .. }
        | Input::CancelAgent { .. }
        | Input::Answer { .. }
        | Input::Call(_)
        | Input::Rewind { .. } => None,
    };
    causes.iter().find_map(brings).unwrap_or(&run.manifest)
}
