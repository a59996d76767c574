//! Edits of the states of an unpinned run, used while it is active.
//!
//! Before each batch the runner loads the workflow again. If it changed and can be used, the change
//! is recorded and the run continues with it. If it has mistakes, the run continues with the
//! earlier states and the runner reports the mistake once. Edits before a resume are in the CLI.

use raymond_core::diagnostic::{Diagnostic, Severity};
use raymond_core::run::settings::Pinning;
use raymond_core::run::{Ending, Phase};
use raymond_core::value::Value;
use raymond_core::workflow::Reachability;

use super::{Runner, RunnerError};
use crate::feed::NoteKind;
use crate::owned::OwnError;
use crate::pin::Pin;
use crate::prepare::{PrepareError, Prepared, prepare_with};

impl Runner<'_> {
    /// Uses the states of an unpinned run as they are on disk now, if they have no mistakes.
    pub(super) fn adopt_edits(&mut self) -> Result<(), RunnerError> {
        let run = self.driver.run();
        let is_over = matches!(
            run.phase,
            Phase::Unborn | Phase::Ended(Ending::Completed | Ending::Cancelled)
        );
        if run.settings.definition == Pinning::Pinned || is_over {
            return Ok(());
        }
        let check =
            |reachable: &Reachability<'_>| self.backends.check_states(&run.settings, reachable);
        let mistake = match prepare_with(run.workflow.as_ref(), &run.program, &check) {
            Err(error) => Some(mistakes(&error)),
            Ok(prepared) => {
                // The value is a hash or the text itself, so equal values mean unchanged files.
                let manifest = Pin::of(&prepared.loaded).store(&self.directory.blobs);
                let manifest = manifest.map_err(OwnError::Pin)?;
                if manifest == run.manifest { None } else { self.adopt(prepared, manifest)? }
            }
        };
        if let Some(why) =
            mistake.as_ref().filter(|why| self.reported_mistake.as_ref() != Some(*why))
        {
            self.note(NoteKind::EditRefused { why: why.clone() });
        }
        self.reported_mistake = mistake;
        Ok(())
    }

    /// Uses these states from now on. Returns the reason if the core refuses them.
    fn adopt(
        &mut self,
        prepared: Prepared,
        manifest: Value,
    ) -> Result<Option<String>, RunnerError> {
        let earlier = self.driver.definition();
        let warnings: Vec<Diagnostic> = prepared.warnings_since(earlier).cloned().collect();
        let now = self.now();
        if let Err(refusal) = self.driver.adopt(now, prepared.definition, manifest)? {
            return Ok(Some(refusal.to_string()));
        }
        for warning in warnings {
            self.note(NoteKind::EditWarning(warning));
        }
        Ok(None)
    }
}

/// Returns all mistakes of a workflow in one line.
fn mistakes(error: &PrepareError) -> String {
    match error {
        PrepareError::Scope(error) => error.to_string(),
        PrepareError::Invalid(diagnostics) => {
            let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
            errors.map(ToString::to_string).collect::<Vec<_>>().join("; ")
        }
    }
}
