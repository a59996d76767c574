//! A journal decided again: today's `decide` on the recorded causes, up to the first difference.
//!
//! Each record is one batch, decided at its time on the run that the records before it make. What a
//! journal leaves out (the tags of a text, what the result of a step says) is read again. A
//! difference is no fault of the journal, which applies as it stands: it says that today something
//! else would be decided. Nothing behind it is looked at, because it was decided on another ground.

mod difference;
mod reading;

use crate::value::{BlobRef, Value};
use crate::workflow::Definition;

use super::batch::batch;
use crate::run::input::Input;
use crate::run::record::Record;
use crate::run::state::Run;

pub use difference::{Decided, Difference};

/// What a journal names and does not hold.
pub trait Sources {
    /// Why it cannot be had.
    type Error;

    /// The text of a blob.
    fn text(&self, blob: &BlobRef) -> Result<String, Self::Error>;

    /// The definition that was pinned as `manifest`.
    fn definition(&self, manifest: &Value) -> Result<Definition, Self::Error>;
}

/// A journal that is being decided again, record by record.
#[derive(Debug, Default)]
pub struct Replay {
    run: Run,
    /// The definition in use, and what names it.
    definition: Option<(Value, Definition)>,
}

impl Replay {
    /// Decides the next record again. After a difference the run is worth nothing any more.
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
        if self.definition.as_ref().is_none_or(|(known, _)| known != manifest) {
            self.definition = Some((manifest.clone(), sources.definition(manifest)?));
        }
        let Some((_, definition)) = &self.definition else { return Ok(None) };
        // What is decided is what was recorded, or else there is a difference: either way this is the
        // run that the record makes, and it has read what the record only names.
        let decided = batch(&mut self.run, definition, record.at, causes);
        Ok(difference::first(record, &decided).map(Box::new))
    }

    /// The run that the records so far make.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The same, given up.
    pub fn into_run(self) -> Run {
        self.run
    }
}

/// The definition that a batch is decided with: whoever adopts one decides with that one.
fn manifest<'a>(run: &'a Run, causes: &'a [Input]) -> &'a Value {
    let brings = |cause: &'a Input| match cause {
        Input::Start(start) => Some(&start.manifest),
        Input::Adopt { manifest } => Some(manifest),
        Input::Resume(_)
        | Input::Settled { .. }
        | Input::Due
        | Input::Stop { .. }
        | Input::Answer { .. }
        | Input::Call(_)
        | Input::Rewind { .. } => None,
    };
    causes.iter().find_map(brings).unwrap_or(&run.manifest)
}
