//! The interface to the program that runs this server.

use raymond_core::crayfish::envelope::CallReply;
use raymond_core::ids::RunId;
use raymond_engine::call::{CallChannels, RawRequest};
use raymond_engine::project::Project;
use serde_json::Value as Json;

/// Answers requests. Every method may block: the server calls none on a thread of its runtime.
pub trait ToolHost: Send + Sync + 'static {
    /// Answers one call of the tool, on its own thread.
    fn call(&self, sent: RawRequest, channels: CallChannels) -> CallReply;

    /// Returns the project with the runs of an agent, or of this server.
    fn project(&self, agent: Option<&str>) -> Result<Project, String>;

    /// Returns one line about a run of this server: its status and the cause.
    fn summary(&self, run: &RunId) -> String;

    /// Returns the record of a run of this server, or `None` if the run does not exist.
    fn record(&self, run: &RunId) -> Result<Option<Json>, String>;
}
