//! Loads and checks a workflow completely, before a run uses it.
//!
//! The user sees all mistakes at once. Nothing is created here: [`crate::launch`] creates the run.
//! The files of a workflow are found in [`crate::scope`]; documents of steps are checked in
//! [`steps`].

pub mod steps;

use std::path::Path;

use raymond_core::decide::check_adoption;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::run::settings::Pinning;
use raymond_core::run::{Ending, Phase, Program, Run};
use raymond_core::view::States;
use raymond_core::workflow::{Definition, Reachability};

use crate::pin::{PLATFORM, Pin};
use crate::project::Project;
use crate::scope::{self, LoadedScope, ScopeError};

/// A workflow that can be run.
#[derive(Debug)]
pub struct Prepared {
    pub loaded: LoadedScope,
    pub definition: Definition,
    pub warnings: Vec<Diagnostic>,
}

impl Prepared {
    /// Returns the warnings about files that are new or changed.
    pub fn warnings_since(&self, earlier: &Definition) -> impl Iterator<Item = &Diagnostic> {
        let changes = self.definition.manifest().changes_since(&earlier.manifest());
        let is_new = move |file: &String| {
            changes.changed.iter().chain(&changes.added).any(|name| name.as_str() == file)
        };
        self.warnings.iter().filter(move |found| found.file.as_ref().is_some_and(&is_new))
    }
}

/// Why a workflow cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The workflow has mistakes. All of them are listed, with the warnings.
    #[error("the workflow has mistakes")]
    Invalid(Vec<Diagnostic>),
}

/// Loads and checks the workflow at `path`, or the prompt that `ralph` repeats.
pub fn prepare(path: &Path, program: &Program) -> Result<Prepared, PrepareError> {
    prepare_with(path, program, &|_| Vec::new())
}

/// Loads and checks a workflow with additional checks, so that the user sees all mistakes at once.
pub fn prepare_with(
    path: &Path,
    program: &Program,
    further: &dyn Fn(&Reachability<'_>) -> Vec<Diagnostic>,
) -> Result<Prepared, PrepareError> {
    let loaded = match program {
        Program::Steps(_) => return steps::load(path),
        Program::States => scope::load(path)?,
        Program::Ralph(ralph) => scope::load_prompt(path, ralph)?,
    };
    let mut warnings = loaded.warnings.clone();
    match Definition::parse_with(loaded.files.clone(), &loaded.start, PLATFORM, further) {
        Ok(parsed) => {
            warnings.extend(parsed.warnings);
            Ok(Prepared { loaded, definition: parsed.definition, warnings })
        }
        Err(mistakes) => {
            warnings.extend(mistakes);
            Err(PrepareError::Invalid(warnings))
        }
    }
}

/// Compares the pinned states of a failed run with the files. The user must choose between the two
/// before a resume; for all other runs the pinned states count.
pub fn states(project: &Project, run: &Run) -> States {
    // Parsing the workflow costs time, and only the hints for a failed run need it.
    if run.settings.definition == Pinning::Unpinned || run.phase != Phase::Ended(Ending::Failed) {
        return States::AsPinned;
    }
    let Ok(current) = prepare(run.workflow.as_ref(), &run.program) else {
        return States::Unusable;
    };
    let blobs = project.blobs(&project.paths(&run.id));
    match Pin::definition_of(run, &blobs) {
        Ok(pinned) if current.definition.manifest() == pinned.manifest() => States::AsPinned,
        // Edited, but an agent is at a state that no longer exists.
        Ok(_) if check_adoption(run, &current.definition).is_err() => States::Unusable,
        Ok(_) => States::Edited,
        Err(_) => States::AsPinned,
    }
}
