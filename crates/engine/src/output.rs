//! The output of a document that is done.
//!
//! A journal does not contain it: it is filled in again from the results of the steps, which never
//! change. `raymond_core::crayfish` has the rules.

use raymond_core::run::Run;
use raymond_store::Blobs;
use serde_json::Value as Json;

use crate::owned::OwnError;
use crate::pin::{Pin, PinError};
use crate::step_results::read_results;

/// Returns the output of a run; `None` if its document has none, or is not done.
pub fn output(run: &Run, blobs: &Blobs) -> Result<Option<Json>, OwnError> {
    // Checked first, because a document and its results may be large.
    if run.program.steps().is_none_or(|state| state.conclusion.is_none()) {
        return Ok(None);
    }
    let mut run = run.clone();
    read_results(&mut run, blobs)?;
    let definition = Pin::definition_of(&run, blobs)?;
    let steps = definition.steps.as_deref().zip(run.program.steps());
    let output = steps.and_then(|(steps, state)| steps.output(state)).transpose();
    // It was filled in once before the run completed.
    Ok(output.map_err(|why| PinError::Unreadable(format!("its output: {why}")))?)
}
