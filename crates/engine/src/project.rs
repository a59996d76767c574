//! A `.raymond/` directory and the runs in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use raymond_core::ids::RunId;
use raymond_core::workflow::nearest;
use raymond_store::disk::{self, Disk, Files};
use raymond_store::{Blobs, Root, RunPaths};

/// Where runs are kept.
#[derive(Debug, Clone)]
pub struct Project {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// Its `.raymond/`.
    pub root: Root,
}

/// Why no run is meant.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is no such run.
    #[error("there is no run {wanted:?}")]
    Unknown {
        /// What was asked for.
        wanted: String,
        /// The run whose name is nearest.
        nearest: Option<RunId>,
        /// The project, when it has no run at all.
        none_in: Option<PathBuf>,
    },
    /// Several runs start like this.
    #[error("{wanted:?} could be {} runs", .candidates.len())]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// What it could be.
        candidates: Vec<RunId>,
    },
    /// The runs could not be listed.
    #[error(transparent)]
    Disk(#[from] disk::Error),
}

impl Project {
    /// The project that `directory`, which is absolute, belongs to.
    pub fn locate(directory: &Path) -> Result<Self, disk::Error> {
        let disk: Arc<dyn Disk> = Arc::new(Files);
        let root = Root::locate(disk.as_ref(), directory)?;
        Ok(Self { disk, root })
    }

    /// Its runs, by name.
    pub fn runs(&self) -> Result<Vec<RunId>, disk::Error> {
        let names = self.root.runs(self.disk.as_ref())?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The run that a person means: its id, or a unique beginning of it.
    pub fn find(&self, wanted: &str) -> Result<RunId, FindError> {
        let runs = self.runs()?;
        if let Some(exact) = runs.iter().find(|run| run.as_str() == wanted) {
            return Ok(exact.clone());
        }
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

    /// Where a run lies.
    pub fn paths(&self, run: &RunId) -> RunPaths {
        self.root.run(run.as_str()).expect("a run id is a valid name of a directory")
    }

    /// The blobs of a run.
    pub fn blobs(&self, paths: &RunPaths) -> Blobs {
        let blobs = Blobs::new(Arc::clone(&self.disk), paths.blobs.clone());
        blobs.with_ballast(self.root.ballast(Arc::clone(&self.disk)))
    }
}
