//! Creates a new run.
//!
//! The workflow is loaded and checked completely before anything is created, and pinned before the run
//! starts: later edits of the files do not change it. A crash at any moment leaves either no run, or one
//! whose creation can be repeated. Existing runs are opened in [`crate::owned`].

use std::path::Path;
use std::sync::Arc;

use raymond_core::decide::check_adoption;
use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::{Nonce, RunId};
use raymond_core::run::record::FORMAT;
use raymond_core::run::settings::Pinning;
use raymond_core::run::start::Start;
use raymond_core::run::{Ending, Header, Input, Phase, Program, Run, Settings};
use raymond_core::value::Value;
use raymond_core::view::{States, asked};
use raymond_core::workflow::{Definition, Reachability};
use raymond_store::disk::Disk;
use raymond_store::lock::Takeover;
use raymond_store::{Journal, blobs, journal};

use crate::driver::Head;
use crate::fold;
use crate::observe;
use crate::owned::{OpenReport, OwnError, OwnedRun, take_lock};
use crate::pin::{PLATFORM, Pin};
use crate::project::Project;
use crate::scope::{self, LoadedScope, ScopeError};
use crate::steps;

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
        Program::Crayfish { .. } => return steps::load(path),
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
    let Ok(current) = prepare(run.workflow.as_ref(), &run.settings.program) else {
        return States::Unusable;
    };
    let blobs = project.blobs(&project.paths(&run.id));
    let pinned = Pin::load(&run.manifest, &blobs).and_then(|pin| pin.definition());
    match pinned {
        Ok(pinned) if current.definition.manifest() == pinned.manifest() => States::AsPinned,
        // Edited, but an agent is at a state that no longer exists.
        Ok(_) if check_adoption(run, &current.definition).is_err() => States::Unusable,
        Ok(_) => States::Edited,
        Err(_) => States::AsPinned,
    }
}

/// The parameters of a new run.
#[derive(Debug)]
pub struct Launch {
    /// An id that no run has yet.
    pub run: RunId,
    /// Marks the processes of this run.
    pub nonce: Nonce,
    /// The absolute path of the workflow.
    pub workflow: String,
    /// The working directory of the agent `main`.
    pub cwd: String,
    /// `--input`
    pub input: Option<String>,
    pub settings: Settings,
}

/// Why a run cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("there is a run {0} already")]
    Exists(RunId),
    #[error(transparent)]
    Own(#[from] OwnError),
    #[error(transparent)]
    Blobs(#[from] blobs::Error),
}

impl OwnedRun {
    /// Creates a run, and returns it with the input that starts it. The journal contains only its
    /// header until the caller handles that input.
    pub fn create(
        project: &Project,
        prepared: Prepared,
        launch: Launch,
    ) -> Result<(Self, Input), LaunchError> {
        let disk = Arc::clone(&project.disk);
        let paths = project.paths(&launch.run);
        project.root.ensure(disk.as_ref()).map_err(OwnError::Disk)?;
        paths.ensure(disk.as_ref()).map_err(OwnError::Disk)?;
        // The lock before the journal: two processes may try to create the same run.
        let lock = take_lock(project, &paths, Takeover::Never).map_err(OwnError::Lock)?;
        paths.sweep(disk.as_ref()).ok();
        let ballast = project.root.ballast(Arc::clone(&disk));
        // Without ballast the run still starts: a full disk is reported by the first write that matters.
        ballast.fill().ok();
        // The nonce of an interrupted creation wins, because it is in the header already.
        let (journal, nonce) = create_journal(disk, &paths.journal, &launch.run, launch.nonce)?;
        let journal = journal.with_ballast(ballast);
        let blobs = project.blobs(&paths);
        let pin = Pin::of(&prepared.loaded);
        let mut put = |bytes: &[u8]| observe::put(&blobs, bytes);
        let input = launch.input.map(|text| Value::keep(&text, &mut put)).transpose()?;
        let start = Start {
            run: launch.run,
            nonce,
            workflow: launch.workflow,
            scope: prepared.loaded.scope.display().to_string(),
            manifest: pin.store(&blobs).map_err(OwnError::Pin)?,
            cwd: launch.cwd,
            input,
            backends: asked(&launch.settings, &prepared.definition),
            settings: launch.settings,
        };
        let owned = Self {
            project: project.clone(),
            paths,
            lock,
            journal,
            blobs: Arc::new(blobs),
            head: Head::empty(),
            definition: prepared.definition,
            origin: prepared.loaded.origin,
            schemas: None,
            found: OpenReport::default(),
        };
        Ok((owned, Input::Start(Box::new(start))))
    }
}

/// Creates a journal that contains only its header. If an earlier creation crashed after writing the
/// header, that journal and its nonce are used.
fn create_journal(
    disk: Arc<dyn Disk>,
    path: &Path,
    run: &RunId,
    nonce: Nonce,
) -> Result<(Journal, Nonce), LaunchError> {
    let header = Header { format: FORMAT, run: run.clone(), nonce: nonce.clone() };
    let bytes = serde_json::to_vec(&header).expect("a header is plain data");
    match Journal::create(Arc::clone(&disk), path, &bytes) {
        Err(journal::Error::Exists(_)) => {
            let opened = Journal::open(disk, path).map_err(OwnError::Journal)?;
            let header = fold::header(&opened.header).map_err(OwnError::Fold)?;
            // A journal with records is a run that exists.
            if !opened.lines.is_empty() || header.run != *run {
                return Err(LaunchError::Exists(run.clone()));
            }
            Ok((opened.journal, header.nonce))
        }
        created => Ok((created.map_err(OwnError::Journal)?, nonce)),
    }
}
