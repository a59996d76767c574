//! A new run: everything is checked before anything is created, and pinned before it starts.

use std::path::Path;
use std::sync::Arc;

use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::{Nonce, RunId};
use raymond_core::run::input::Start;
use raymond_core::run::record::FORMAT;
use raymond_core::run::settings::Pinning;
use raymond_core::run::{Ending, Header, Input, Phase, Program, Run, Settings, check_adoption};
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
    /// Its files as they were found.
    pub loaded: LoadedScope,
    /// What they mean.
    pub definition: Definition,
    /// What is worth a look.
    pub warnings: Vec<Diagnostic>,
}

impl Prepared {
    /// What is worth a look in files that are new, or others than they were.
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
    /// Its files cannot be loaded.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// It has mistakes; all of them are here, with the warnings.
    #[error("the workflow has mistakes")]
    Invalid(Vec<Diagnostic>),
}

/// Loads and checks the workflow at `path`, or the prompt that is to be repeated.
pub fn prepare(path: &Path, program: &Program) -> Result<Prepared, PrepareError> {
    prepare_with(path, program, &|_| Vec::new())
}

/// The same, and `further` says what else stands in the way: a person is told everything at once.
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

/// What became of the states of a run, where it matters: a failed run does not guess which are meant.
pub fn states(project: &Project, run: &Run) -> States {
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
        Ok(_) if check_adoption(run, &current.definition).is_err() => States::Unusable,
        Ok(_) => States::Edited,
        Err(_) => States::AsPinned,
    }
}

/// How a run begins.
#[derive(Debug)]
pub struct Launch {
    /// Its id, which no run has yet.
    pub run: RunId,
    /// Tells its processes from those of all others.
    pub nonce: Nonce,
    /// The workflow as it was named, absolute.
    pub workflow: String,
    /// Where `main` works.
    pub cwd: String,
    /// `--input`
    pub input: Option<String>,
    /// What governs it.
    pub settings: Settings,
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is such a run.
    #[error("there is a run {0} already")]
    Exists(RunId),
    /// Its directory cannot be owned.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// Something could not be stored.
    #[error(transparent)]
    Blobs(#[from] blobs::Error),
}

impl OwnedRun {
    /// Creates a run. Returns it with the input that starts it: nothing has happened yet.
    pub fn create(
        project: &Project,
        prepared: Prepared,
        launch: Launch,
    ) -> Result<(Self, Input), LaunchError> {
        let disk = Arc::clone(&project.disk);
        let paths = project.paths(&launch.run);
        project.root.ensure(disk.as_ref()).map_err(OwnError::Disk)?;
        paths.ensure(disk.as_ref()).map_err(OwnError::Disk)?;
        let lock = take_lock(project, &paths, Takeover::Never).map_err(OwnError::Lock)?;
        paths.sweep(disk.as_ref()).ok();
        let ballast = project.root.ballast(Arc::clone(&disk));
        // A full disk is met when something of value is to be written, not here.
        ballast.fill().ok();
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

/// A journal that holds nothing but its header. One that never got further is taken as it is.
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
            if !opened.lines.is_empty() || header.run != *run {
                return Err(LaunchError::Exists(run.clone()));
            }
            Ok((opened.journal, header.nonce))
        }
        created => Ok((created.map_err(OwnError::Journal)?, nonce)),
    }
}
