//! One call of the tool `crayfish`: a request in, a reply out.
//!
//! Every door (the command line, the MCP server, the plugin of a host) hands its request to
//! [`Tool::call`], so all of them answer alike. Nothing here ends in an error: whatever goes wrong is
//! a reply with a stable code.

use std::collections::BTreeMap;
use std::path::PathBuf;

use raymond_core::crayfish::code::Code;
use raymond_core::crayfish::envelope::Reply;
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

/// The tool, for all calls of a host.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Whose workspace is which.
    pub workspaces: Workspaces,
}

/// Where the calls of a host may work.
#[derive(Debug, Clone, Default)]
pub struct Workspaces {
    /// The one that its host passes; it wins.
    pub given: Option<PathBuf>,
    /// Those of the configured agents, by `agentId`.
    pub agents: BTreeMap<String, PathBuf>,
    /// Where the host is: for everybody when no agent is configured.
    pub here: PathBuf,
}

/// How a call is going.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How many steps have begun or ended so far: it only grows.
    pub count: u64,
    /// What happened, in one line.
    pub message: String,
}

/// Who follows a call, and may give it up.
#[derive(Debug)]
pub struct Follower {
    /// Ends the running step, and the call.
    pub cancel: CancellationToken,
    /// Where progress is told; nobody needs to listen.
    pub progress: tokio::sync::mpsc::UnboundedSender<Progress>,
}

impl Tool {
    /// Answers one request.
    pub async fn call(&self, _request: Json, _follower: Follower) -> Reply {
        Reply::failed(Code::Internal, "not there yet", Vec::new())
    }
}
