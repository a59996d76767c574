//! Flags of the server for MCP clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Where steps work, whatever a request says [default: that of its `agentId`, or here]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Serve streamable HTTP at this address, at /mcp, instead of stdin and stdout
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) http: Option<SocketAddr>,
    /// A name under which other machines may call; with it any address can be listened on
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(crate) allow_host: Vec<String>,
}
