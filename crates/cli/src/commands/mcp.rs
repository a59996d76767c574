//! `raymond mcp`: the tool `crayfish` for MCP clients, over stdin and stdout or over HTTP.

mod records;

use std::net::SocketAddr;
use std::sync::Arc;

use raymond_core::crayfish::envelope::Reply;
use raymond_core::crayfish::error_code::ErrorCode;
use raymond_core::ids::RunId;
use raymond_engine::call::{Follower, RawRequest, Tool, Workspaces};
use raymond_engine::project::Project;
use raymond_engine::runner::{Signal, Signals};
use raymond_mcp::{Host, Server, http, stdio};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use crate::args::Mcp;
use crate::failure::Failure;
use crate::interrupts::{self, Listener};
use crate::room;

use super::crayfish;

/// What this process offers.
struct Offered {
    tool: Tool,
}

impl Host for Offered {
    fn call(&self, sent: RawRequest, follower: Follower) -> Reply {
        let runtime = match crate::runtime() {
            Ok(runtime) => runtime,
            Err(failure) => {
                return Reply::failed(ErrorCode::Internal, failure.told().0, Vec::new());
            }
        };
        runtime.block_on(self.tool.call(sent, follower))
    }

    fn project(&self, agent: Option<&str>) -> Result<Project, String> {
        let Workspaces { given, agents, here } = &self.tool.workspaces;
        let of_agent = || agent.and_then(|agent| agents.get(agent));
        // An agent that nobody knows has no runs that could be gone on with: its call says so.
        let directory = given.as_ref().or_else(of_agent).unwrap_or(here);
        Project::locate(directory).map_err(|error| error.to_string())
    }

    fn summary(&self, run: &RunId) -> String {
        self.project(None).map_or_else(|error| error, |project| records::summary(&project, run))
    }

    fn record(&self, run: &RunId) -> Result<Option<Json>, String> {
        records::record(&self.project(None)?, run)
    }
}

pub(crate) fn mcp(flags: &Mcp) -> Result<u8, Failure> {
    let host = Arc::new(Offered { tool: tool(flags)? });
    let runtime = crate::runtime()?;
    room::warm_up(&runtime);
    let code = runtime.block_on(async {
        let signals = Signals::listen().map_err(|error| {
            Failure::environment(format!("could not listen for signals: {error}"))
        })?;
        interrupts::leave_to(Listener::Owner);
        let ending = CancellationToken::new();
        let signalled = tokio::spawn(end_by_signal(signals, ending.clone()));
        match flags.http {
            None => serve_streams(host, ending).await?,
            Some(address) => serve_http(host, (address, &flags.allow_host), ending).await?,
        }
        if signalled.is_finished() {
            return Ok(signalled.await.unwrap_or(0));
        }
        signalled.abort();
        Ok(0)
    });
    // A read of stdin cannot be taken back: it is not waited for.
    runtime.shutdown_background();
    code
}

/// The tool as it is configured here. A workspace that is given must be there from the start.
fn tool(flags: &Mcp) -> Result<Tool, Failure> {
    if let Some(given) = &flags.workspace {
        given
            .read_dir()
            .map_err(|error| Failure::usage(format!("--workspace {}: {error}", given.display())))?;
    }
    crayfish::tool(flags.workspace.as_deref())
}

/// Ends the server, with the exit code of the signal.
async fn end_by_signal(mut signals: Signals, ending: CancellationToken) -> u8 {
    let code = loop {
        match signals.next().await {
            Signal::HangUp => break 129,
            Signal::Interrupt => break 130,
            Signal::Terminate => break 143,
            Signal::Wake => {}
        }
    };
    ending.cancel();
    code
}

async fn serve_streams(host: Arc<Offered>, ending: CancellationToken) -> Result<(), Failure> {
    let served = stdio::serve(host, stdio::streams(), ending).await;
    served.map_err(|error| Failure::environment(error.to_string()).code(1))
}

async fn serve_http(
    host: Arc<Offered>,
    (address, names): (SocketAddr, &[http::Authority]),
    ending: CancellationToken,
) -> Result<(), Failure> {
    let listener = http::listen(address, names).await.map_err(|error| match error {
        http::ListenError::NotHere(_) => Failure::usage(error.to_string())
            .hint("listen on 127.0.0.1, or name who may call: --allow-host HOST"),
        http::ListenError::Port(..) => Failure::environment(error.to_string()),
    })?;
    let address = listener.local_addr().unwrap_or(address);
    crate::say!("listening on http://{address}{}", http::PATH);
    let server = Server::new(host, ending.clone());
    http::serve(server.clone(), listener, names, ending).await;
    server.idle().await;
    Ok(())
}
