//! Handles that only this store can have written: which run a round is of, and of which workflow.
//!
//! What is known of the run stays in its record. The key lies beside the records, so whoever may read
//! them may go on with them, and a handle of another store means nothing here.

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

/// The file of the key, beside the runs.
const KEY: &str = "mcp-key";

/// What a client is handed between two rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handle {
    /// The run.
    pub(crate) run: RunId,
    /// The sum of its workflow.
    workflow: String,
}

/// Why a handle is not taken, or none can be given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// This store has not sealed it.
    #[error("this requestState was not given out here: {0}")]
    Foreign(#[from] RequestStateError),
    /// Another workflow came with it.
    #[error(
        "this requestState is of the run {0}, which has another workflow: send that one with it"
    )]
    Workflow(RunId),
    /// Another run was named with it.
    #[error(
        "this requestState is of the run {0}, not of {1:?}: leave out `runId`, or name that one"
    )]
    Run(RunId, String),
    /// Answers came without it.
    #[error("these inputResponses need the requestState that came with their inputRequests")]
    Missing,
    /// Its run is gone.
    #[error("this requestState is stale: its run {0} is gone; call without it to begin anew")]
    Gone(RunId),
    /// The store does not work.
    #[error("could not use .raymond/mcp-key, the key of the records: {0}")]
    Key(#[from] io::Error),
    /// There is no store.
    #[error("{0}")]
    Store(String),
}

impl Handle {
    pub(crate) fn new(run: RunId, workflow: &Json) -> Self {
        Self { run, workflow: sum(workflow) }
    }

    /// As it is handed out.
    pub(crate) fn sealed(&self, project: &Project) -> Result<String, Refused> {
        project
            .root
            .ensure(project.disk.as_ref())
            .map_err(|error| Refused::Store(error.to_string()))?;
        let path = project.root.path().join(KEY);
        let key = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => new_key(&path)?,
            read => read?,
        };
        Ok(RequestStateCodec::try_new(key)?.seal_json(self)?)
    }

    /// Takes one back that came with this workflow, and perhaps with the name of a run.
    pub(crate) fn open(
        sealed: &str,
        project: &Project,
        workflow: &Json,
        named: Option<&str>,
    ) -> Result<Self, Refused> {
        let key = match fs::read(project.root.path().join(KEY)) {
            // Nothing was ever sealed here.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(RequestStateError::UnknownKeyId.into());
            }
            read => read?,
        };
        let handle: Self = RequestStateCodec::try_new(key)?.open_json(sealed)?;
        if let Some(other) = named.filter(|named| *named != handle.run.as_str()) {
            return Err(Refused::Run(handle.run, other.to_owned()));
        }
        if handle.workflow != sum(workflow) {
            return Err(Refused::Workflow(handle.run));
        }
        let runs = project.runs().map_err(|error| Refused::Store(error.to_string()))?;
        if !runs.contains(&handle.run) {
            // Otherwise it would begin again, and do all of it twice.
            return Err(Refused::Gone(handle.run));
        }
        Ok(handle)
    }
}

fn sum(workflow: &Json) -> String {
    blake3::hash(workflow.to_string().as_bytes()).to_hex().to_string()
}

/// Makes the key of a store, unless somebody else is faster.
fn new_key(path: &Path) -> io::Result<Vec<u8>> {
    let mut key = vec![0_u8; RequestStateCodec::MIN_KEY_LENGTH];
    let filled = rustix::rand::getrandom(&mut key[..], rustix::rand::GetRandomFlags::empty())?;
    if filled < key.len() {
        return Err(io::Error::other("the machine has no random numbers"));
    }
    let temporary = path.with_file_name(format!(".{KEY}-{}", clock::nonce()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let placed = file.write_all(&key).and_then(|()| file.sync_all()).and_then(|()| {
        // A link, because it never replaces: one key wins, and it is always whole.
        match fs::hard_link(&temporary, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    });
    fs::remove_file(&temporary)?;
    placed?;
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    /// A store with a run that exists.
    fn store(run: &str) -> (tempfile::TempDir, Project) {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::locate(directory.path()).unwrap();
        fs::create_dir_all(project.root.path().join("runs").join(run)).unwrap();
        (directory, project)
    }

    // proves: S43
    #[test]
    fn a_handle_is_taken_only_where_it_was_given_out_and_for_what() {
        let (_here, project) = store("one");
        let workflow = json!({ "steps": [] });
        let handle = Handle::new("one".parse().unwrap(), &workflow);
        let sealed = handle.sealed(&project).unwrap();
        let open = |sealed: &str, project: &Project, workflow: &Json, named: Option<&str>| {
            Handle::open(sealed, project, workflow, named).map_err(|refused| refused.to_string())
        };
        assert_eq!(open(&sealed, &project, &workflow, None), Ok(handle.clone()));
        assert_eq!(open(&sealed, &project, &workflow, Some("one")), Ok(handle.clone()));

        let refused = |result: Result<Handle, String>, expected: &str| {
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
        refused(open(&sealed, &project, &workflow, None), "is gone");
    }

    // proves: S43
    #[test]
    fn a_key_is_private_and_made_once() {
        let (_here, project) = store("one");
        let handle = Handle::new("one".parse().unwrap(), &json!({}));
        let (one, two) = (handle.sealed(&project).unwrap(), handle.sealed(&project).unwrap());
        assert_eq!(one, two);
        let path = project.root.path().join(KEY);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(new_key(&path).unwrap(), fs::read(&path).unwrap());
    }
}
