//! Sealed handles between two rounds: the run and its workflow, authenticated by a key of this
//! store.
//!
//! All other state is in the journal of the run. The key is next to the runs, so a user who may
//! read them may continue them, and a handle of another store is invalid here.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use raymond_core::ids::RunId;
use raymond_engine::clock;
use raymond_engine::project::Project;
use rmcp::model::{RequestStateCodec, RequestStateError};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The file name of the key, next to the runs.
const KEY: &str = "mcp-key";

/// The state that a client keeps between two rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunHandle {
    pub(crate) run: RunId,
    /// The BLAKE3 hash of its workflow.
    workflow: String,
}

/// The reason why a handle is refused, or cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandleRefusal {
    /// This store has not sealed it.
    #[error("this requestState was not given out here: {0}")]
    Foreign(#[from] RequestStateError),
    #[error(
        "this requestState is of the run {0}, which has another workflow: send that one with it"
    )]
    Workflow(RunId),
    #[error(
        "this requestState is of the run {0}, not of {1:?}: leave out `runId`, or name that one"
    )]
    Run(RunId, String),
    #[error("these inputResponses need the requestState that came with their inputRequests")]
    Missing,
    /// Its run was deleted.
    #[error("this requestState is stale: its run {0} was deleted; call without it to start again")]
    Gone(RunId),
    #[error("could not use .raymond/mcp-key, the key of the records: {0}")]
    Key(#[from] io::Error),
    #[error("{0}")]
    Store(String),
}

impl RunHandle {
    pub(crate) fn new(run: RunId, workflow: &Json) -> Self {
        Self { run, workflow: sum(workflow) }
    }

    /// Returns the handle as text for the client.
    pub(crate) fn sealed(&self, project: &Project) -> Result<String, HandleRefusal> {
        project
            .root
            .ensure(project.disk.as_ref())
            .map_err(|error| HandleRefusal::Store(error.to_string()))?;
        let path = project.root.path().join(KEY);
        let key = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => new_key(&path)?,
            read => read?,
        };
        Ok(RequestStateCodec::try_new(key)?.seal_json(self)?)
    }

    /// Opens a handle that came with this workflow, and perhaps with the name of a run.
    pub(crate) fn open(
        sealed: &str,
        project: &Project,
        workflow: &Json,
        named: Option<&str>,
    ) -> Result<Self, HandleRefusal> {
        let key = match fs::read(project.root.path().join(KEY)) {
            // Without a key, this store has never sealed a handle.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(RequestStateError::UnknownKeyId.into());
            }
            read => read?,
        };
        let handle: Self = RequestStateCodec::try_new(key)?.open_json(sealed)?;
        // The seal only proves who wrote the handle. The checks below prove that it belongs to this
        // call.
        if let Some(other) = named.filter(|named| *named != handle.run.as_str()) {
            return Err(HandleRefusal::Run(handle.run, other.to_owned()));
        }
        if handle.workflow != sum(workflow) {
            return Err(HandleRefusal::Workflow(handle.run));
        }
        let runs = project.runs().map_err(|error| HandleRefusal::Store(error.to_string()))?;
        if !runs.contains(&handle.run) {
            // Otherwise the run would start again and repeat all its steps.
            return Err(HandleRefusal::Gone(handle.run));
        }
        Ok(handle)
    }
}

fn sum(workflow: &Json) -> String {
    blake3::hash(workflow.to_string().as_bytes()).to_hex().to_string()
}

/// Creates the key of a store, unless another process is faster.
fn new_key(path: &Path) -> io::Result<Vec<u8>> {
    let mut key = vec![0_u8; RequestStateCodec::MIN_KEY_LENGTH];
    let filled = rustix::rand::getrandom(&mut key[..], rustix::rand::GetRandomFlags::empty())?;
    if filled < key.len() {
        return Err(io::Error::other("the machine has no random numbers"));
    }
    let temporary = path.with_file_name(format!(".{KEY}-{}", clock::nonce()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let placed = file.write_all(&key).and_then(|()| file.sync_all()).and_then(|()| {
        // A hard link never replaces a file: one key wins, and it is always complete.
        match fs::hard_link(&temporary, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    });
    fs::remove_file(&temporary)?;
    placed?;
    // Not the own key: another process may have been faster, and all must use the same one.
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    /// Returns a store with an existing run.
    fn store(run: &str) -> (tempfile::TempDir, Project) {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::locate(directory.path()).unwrap();
        fs::create_dir_all(project.root.path().join("runs").join(run)).unwrap();
        (directory, project)
    }

    // proves: S43
    #[test]
    fn handle_is_valid_only_for_its_purpose() {
        let (_here, project) = store("one");
        let workflow = json!({ "steps": [] });
        let handle = RunHandle::new("one".parse().unwrap(), &workflow);
        let sealed = handle.sealed(&project).unwrap();
        let open = |sealed: &str, project: &Project, workflow: &Json, named: Option<&str>| {
            RunHandle::open(sealed, project, workflow, named).map_err(|refused| refused.to_string())
        };
        assert_eq!(open(&sealed, &project, &workflow, None), Ok(handle.clone()));
        assert_eq!(open(&sealed, &project, &workflow, Some("one")), Ok(handle.clone()));

        let refused = |result: Result<RunHandle, String>, expected: &str| {
            let message = result.expect_err("it is refused");
            assert!(message.contains(expected), "{message} is not about {expected:?}");
        };
        refused(open(&sealed, &project, &workflow, Some("two")), "not of \"two\"");
        refused(open(&sealed, &project, &json!({}), None), "another workflow");
        refused(open("nothing", &project, &workflow, None), "malformed");
        let mut forged = sealed.clone().into_bytes();
        forged[8] ^= 1;
        let forged = String::from_utf8(forged).unwrap();
        refused(open(&forged, &project, &workflow, None), "not given out here");

        let (_there, other) = store("one");
        refused(open(&sealed, &other, &workflow, None), "not given out here");
        handle.sealed(&other).unwrap();
        refused(open(&sealed, &other, &workflow, None), "integrity");

        fs::remove_dir(project.root.path().join("runs/one")).unwrap();
        refused(open(&sealed, &project, &workflow, None), "was deleted");
    }

    // proves: S43
    #[test]
    fn a_key_is_private_and_made_once() {
        let (_here, project) = store("one");
        let handle = RunHandle::new("one".parse().unwrap(), &json!({}));
        let (one, two) = (handle.sealed(&project).unwrap(), handle.sealed(&project).unwrap());
        assert_eq!(one, two);
        let path = project.root.path().join(KEY);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(new_key(&path).unwrap(), fs::read(&path).unwrap());
    }
}
