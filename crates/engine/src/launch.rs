//! Creates a new run.
//!
//! [`crate::prepare`] loads and checks the workflow completely before anything is created. It is
//! pinned before the run starts: later edits of the files do not change it. A crash at any moment
//! leaves either no run, or one whose creation can be repeated. Existing runs are opened in
//! [`crate::owned`].

use std::path::Path;
use std::sync::Arc;

use raymond_core::ids::{Nonce, RunId};
use raymond_core::run::record::FORMAT;
use raymond_core::run::start::Start;
use raymond_core::run::{Header, Input, Program, Settings};
use raymond_core::value::Value;
use raymond_core::view::asked;
use raymond_store::disk::Disk;
use raymond_store::lock::Takeover;
use raymond_store::{Journal, blobs, journal};

use crate::driver::Head;
use crate::fold;
use crate::observe;
use crate::owned::{OpenReport, OwnError, OwnedRun};
use crate::pin::Pin;
use crate::prepare::Prepared;
use crate::project::Project;
use crate::run_lock::take_lock;

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
    pub program: Program,
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
        // Without ballast the run still starts: a full disk is reported by the first write that
        // matters.
        ballast.fill().ok();
        // The nonce of an interrupted creation wins, because it is in the header already.
        let (journal, nonce) = create_journal(disk, &paths.journal, &launch.run, launch.nonce)?;
        let journal = journal.with_ballast(ballast);
        let blobs = project.blobs(&paths);
        let pin = Pin::of(&prepared.loaded);
        let mut put = |bytes: &[u8]| observe::BlobStore::put(&blobs, bytes);
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
            program: launch.program,
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
            schemas: Arc::default(),
            found: OpenReport::default(),
        };
        Ok((owned, Input::Start(Box::new(start))))
    }
}

/// Creates a journal that contains only its header. If an earlier creation crashed after writing
/// the header, that journal and its nonce are used.
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
