//! A project: a `.raymond/` directory and the runs in it.
//!
//! The rules for finding that directory and for trusting it are in `raymond_store::root`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use raymond_core::ids::RunId;
use raymond_core::text::nearest;
use raymond_store::disk::{self, Disk, RealDisk};
use raymond_store::{Blobs, Root, RunPaths, project_registry};

/// The place where runs are stored.
#[derive(Debug, Clone)]
pub struct Project {
    pub disk: Arc<dyn Disk>,
    /// The `.raymond/` directory.
    pub root: Root,
}

/// Why a name does not lead to a run.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("there is no run {wanted:?}")]
    Unknown {
        wanted: String,
        /// The run with the most similar name.
        nearest: Option<RunId>,
        /// The directory of the project, if it has no run at all.
        none_in: Option<PathBuf>,
    },
    /// Several runs begin with this text.
    #[error("{wanted:?} could be {} runs", .candidates.len())]
    Ambiguous { wanted: String, candidates: Vec<RunId> },
    #[error(transparent)]
    Disk(#[from] disk::Error),
}

impl Project {
    /// Returns the project of a directory, which must be an absolute path.
    pub fn locate(directory: &Path) -> Result<Self, disk::Error> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let root = Root::locate(disk.as_ref(), directory)?;
        Ok(Self { disk, root })
    }

    /// Returns the project of a directory from the user's registry of projects.
    pub fn locate_registered(directory: &Path) -> Result<Self, disk::Error> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let root = project_registry::locate_registered(disk.as_ref(), directory)?;
        Ok(Self { disk, root })
    }

    /// Lists the runs by name.
    pub fn runs(&self) -> Result<Vec<RunId>, disk::Error> {
        let names = self.root.runs(self.disk.as_ref())?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// Finds a run by its id or by a unique beginning of the id.
    pub fn find(&self, wanted: &str) -> Result<RunId, FindError> {
        let runs = self.runs()?;
        if let Some(exact) = runs.iter().find(|run| run.as_str() == wanted) {
            return Ok(exact.clone());
        }
        // An empty text would be the beginning of every run.
        let begins = |run: &&RunId| !wanted.is_empty() && run.as_str().starts_with(wanted);
        let candidates: Vec<RunId> = runs.iter().filter(begins).cloned().collect();
        let wanted = wanted.to_owned();
        match <[RunId; 1]>::try_from(candidates) {
            Ok([run]) => Ok(run),
            Err(candidates) if candidates.is_empty() => {
                let nearest = nearest(&wanted, runs.iter().map(RunId::as_str)).map(RunId::new);
                let none_in = runs.is_empty().then(|| self.root.project().to_owned());
                Err(FindError::Unknown { wanted, nearest, none_in })
            }
            Err(candidates) => Err(FindError::Ambiguous { wanted, candidates }),
        }
    }

    pub fn paths(&self, run: &RunId) -> RunPaths {
        self.root.run(run.as_str()).expect("a run id is a valid name of a directory")
    }

    pub fn blobs(&self, paths: &RunPaths) -> Blobs {
        let blobs = Blobs::new(Arc::clone(&self.disk), paths.blobs.clone());
        blobs.with_ballast(self.root.ballast(Arc::clone(&self.disk)))
    }
}
