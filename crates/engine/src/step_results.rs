//! Reads the results of finished steps, which an agent step or an output may refer to.

use raymond_core::crayfish::StepKey;
use raymond_core::crayfish::reading::{self, Holds};
use raymond_core::run::Run;
use raymond_core::value::Value;
use raymond_store::{Blobs, blobs};

use crate::observe;

/// Why the result of a finished step cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    #[error(transparent)]
    Blobs(#[from] blobs::Error),
    #[error("could not read the result of {key}: {why}")]
    Unreadable { key: StepKey, why: String },
}

/// Reads the results that the run does not hold yet. It does nothing for a run of states.
pub fn read_results(run: &mut Run, blobs: &Blobs) -> Result<(), ResultsError> {
    let Some(steps) = run.program.steps_mut() else { return Ok(()) };
    let unread: Vec<(StepKey, Value)> =
        steps.unread().map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in unread {
        let text = observe::load(blobs, &value)?;
        let json = reading::read_as(Holds::Record, text.as_bytes()).map_err(|error| {
            ResultsError::Unreadable { key: key.clone(), why: error.to_string() }
        })?;
        steps.read(&key, json);
    }
    Ok(())
}
