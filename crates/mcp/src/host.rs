//! What the server is asked for and does not know itself.

use raymond_core::crayfish::envelope::Reply;
use raymond_core::ids::RunId;
use raymond_engine::call::{Follower, RawRequest};
use raymond_engine::project::Project;
use serde_json::Value as Json;

/// Who answers. Every method may take its time: none is called where others would have to wait.
pub trait Host: Send + Sync + 'static {
    /// Answers one call of the tool, on a thread of its own.
    fn call(&self, sent: RawRequest, follower: Follower) -> Reply;

    /// Where the runs of an agent are kept; without one, those of this server.
    fn project(&self, agent: Option<&str>) -> Result<Project, String>;

    /// One line about a run of this server: where it is, and why.
    fn summary(&self, run: &RunId) -> String;

    /// All that is shown of a run of this server; none when there is no such run.
    fn record(&self, run: &RunId) -> Result<Option<Json>, String>;
}
