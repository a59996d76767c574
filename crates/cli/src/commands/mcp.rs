//! `raymond mcp`: serves the tool `crayfish` to MCP clients, over stdio or HTTP.

mod records;

use std::net::SocketAddr;
use std::sync::Arc;

use raymond_core::crayfish::envelope::CallReply;
use raymond_core::crayfish::error_code::ErrorCode;
use raymond_core::ids::RunId;
use raymond_engine::call::{CallChannels, RawRequest, Tool, Workspaces};
use raymond_engine::project::Project;
use raymond_engine::runner::{Signal, Signals};
use raymond_mcp::{Server, ToolHost, http, stdio};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use crate::args::Mcp;
use crate::failure::Failure;
use crate::interrupts::{self, SignalOwner};
use crate::resource_limits;

use super::crayfish;

/// The host that answers the calls of MCP clients.
struct CrayfishHost {
    tool: Tool,
}

impl ToolHost for CrayfishHost {
    fn call(&self, sent: RawRequest, channels: CallChannels) -> CallReply {
        // The runtime of the server has one thread, which serves the connection meanwhile, so each
        // call brings a runtime of its own.
        let runtime = match crate::runtime::runtime() {
            Ok(runtime) => runtime,
            Err(failure) => {
                return CallReply::failed(
                    ErrorCode::Internal,
                    failure.message_and_hint().0,
                    Vec::new(),
                );
            }
        };
        runtime.block_on(self.tool.call(sent, channels))
    }

    fn project(&self, agent: Option<&str>) -> Result<Project, String> {
        let Workspaces { given, agents, here } = &self.tool.workspaces;
        let of_agent = || agent.and_then(|agent| agents.get(agent));
        // An unknown agent cannot have runs; its call reports the problem.
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
    let host = Arc::new(CrayfishHost { tool: tool(flags)? });
    let runtime = crate::runtime::runtime()?;
    // Calls run on threads for blocking work. They start now, because tokio panics if it cannot
    // start the first one during a call.
    resource_limits::warm_up(&runtime);
    let code = runtime.block_on(async {
        let signals = Signals::listen().map_err(|error| {
            Failure::environment(format!("could not listen for signals: {error}"))
        })?;
        interrupts::hand_over_to(SignalOwner::Owner);
        let ending = CancellationToken::new();
        let signalled = tokio::spawn(end_by_signal(signals, ending.clone()));
        match flags.http {
            None => serve_streams(host, ending).await?,
            Some(address) => serve_http(host, address, &flags.allow_host, ending).await?,
        }
        // Only then did a signal end the server. Otherwise the client closed the connection, which
        // is a success.
        if signalled.is_finished() {
            return Ok(signalled.await.unwrap_or(0));
        }
        signalled.abort();
        Ok(0)
    });
    // A blocked read of stdin cannot be cancelled, so the runtime must not wait for it.
    runtime.shutdown_background();
    code
}

/// Returns the tool with the configuration of this project. A given workspace must exist already.
fn tool(flags: &Mcp) -> Result<Tool, Failure> {
    // A wrong path would otherwise fail at the first call, where only the model sees the error.
    if let Some(given) = &flags.workspace {
        given
            .read_dir()
            .map_err(|error| Failure::usage(format!("--workspace {}: {error}", given.display())))?;
    }
    crayfish::tool(flags.workspace.as_deref())
}

/// Ends the server on a signal, and returns the exit code.
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

async fn serve_streams(host: Arc<CrayfishHost>, ending: CancellationToken) -> Result<(), Failure> {
    let (reader, writer) = stdio::streams();
    let served = stdio::serve(host, reader, writer, ending).await;
    served.map_err(|error| Failure::environment(error.to_string()).code(1))
}

async fn serve_http(
    host: Arc<CrayfishHost>,
    address: SocketAddr,
    names: &[http::Authority],
    ending: CancellationToken,
) -> Result<(), Failure> {
    let listener = http::listen(address, names).await.map_err(|error| match error {
        http::ListenError::NotHere(_) => Failure::usage(error.to_string())
            .hint("listen on 127.0.0.1, or allow callers by host name: --allow-host HOST"),
        http::ListenError::Port(..) => Failure::environment(error.to_string()),
    })?;
    let address = listener.local_addr().unwrap_or(address);
    crate::say!("listening on http://{address}{}", http::PATH);
    let server = Server::new(host, ending.clone());
    http::serve(server.clone(), listener, names, ending).await;
    server.idle().await;
    Ok(())
}
