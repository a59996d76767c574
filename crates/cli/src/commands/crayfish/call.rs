//! One call of the tool: a request on stdin, a reply on stdout, progress on stderr.
//!
//! Whatever goes wrong is a reply. Only a person at a terminal, who has nothing to send, is told what
//! to do instead.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use raymond_core::crayfish::envelope::Outcome;
use raymond_core::crayfish::reading::{self, Holds};
use raymond_core::crayfish::{ErrorCode, Problem, ProblemCode, Reply};
use raymond_core::run::Settings;
use raymond_engine::call::{Follower, Progress, Tool, Workspaces};
use raymond_engine::runner::Signals;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::args::Crayfish;
use crate::commands::farewell::farewell;
use crate::commands::hand_over;
use crate::console::Lines;
use crate::documents::{limited, too_large};
use crate::failure::{Failure, USAGE};
use crate::interrupts::{self, Listener};
use crate::json::{self, Layout};
use crate::words::plain;
use crate::{config, room, runs, settings};

use super::leaving::given_up;

pub(super) fn call(flags: &Crayfish) -> Result<u8, Failure> {
    if io::stdin().is_terminal() {
        let message = "crayfish reads one JSON request on stdin, and this is a terminal";
        return Err(Failure::usage(message).hint(
            "send it a request: raymond crayfish < request.json; \
             to run a document: raymond run flow.json",
        ));
    }
    let runtime = crate::runtime()?;
    let failed = |error| Failure::environment(format!("could not listen for signals: {error}"));
    let signals = runtime.block_on(async { Signals::listen() }).map_err(failed)?;
    interrupts::leave_to(Listener::Owner);
    let cancel = CancellationToken::new();
    let reply = runtime.block_on(async {
        let gave_up = cancel.clone();
        let watch = tokio::spawn(async move {
            given_up(signals).await;
            gave_up.cancel();
        });
        let reply = answer(flags, &cancel).await;
        watch.abort();
        reply
    });
    let code = if is_unread(&reply) { USAGE } else { 0 };
    let text = json::text(&reply.into_json(), Layout::OneLine) + "\n";
    farewell(&runtime, move || hand_over(&text).map(|()| code))
}

/// The request could not be read.
fn is_unread(reply: &Reply) -> bool {
    matches!(&reply.outcome, Outcome::Failed(failure) if failure.code == ErrorCode::BadRequest)
}

async fn answer(flags: &Crayfish, cancel: &CancellationToken) -> Reply {
    let request = tokio::select! {
        biased;
        () = cancel.cancelled() => return cancelled(),
        request = request() => match request {
            Ok(request) => request,
            Err(reply) => return reply,
        },
    };
    let tool = match tool(flags.workspace.as_deref()) {
        Ok(tool) => tool,
        Err(failure) => {
            return Reply::failed(ErrorCode::BadWorkspace, failure.told().0, Vec::new());
        }
    };
    let (progress, told) = mpsc::unbounded_channel();
    let follower = Follower { cancel: cancel.clone(), progress };
    let telling = tokio::spawn(tell(told, flags.quiet));
    let reply = tool.call(request, follower).await;
    telling.await.ok();
    reply
}

/// Reads the request. A thread of its own does it: nobody can end a read that waits.
async fn request() -> Result<Value, Reply> {
    let (hand_in, handed) = oneshot::channel();
    let read = move || hand_in.send(limited(io::stdin().lock())).ok();
    std::thread::Builder::new().spawn(read).map_err(|error| {
        Reply::failed(ErrorCode::Internal, room::no_thread(&error).told().0, Vec::new())
    })?;
    let bad = |message: String, errors| Reply::failed(ErrorCode::BadRequest, message, errors);
    let bytes = match handed.await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if error.to_string() == too_large() => {
            let large = Problem::new("", ProblemCode::TooLarge, error.to_string());
            return Err(bad(format!("the request cannot be read: {error}"), vec![large]));
        }
        Ok(Err(error)) => return Err(bad(format!("stdin cannot be read: {error}"), Vec::new())),
        Err(_) => return Err(bad("stdin cannot be read".to_owned(), Vec::new())),
    };
    reading::read_as(Holds::Request, &bytes).map_err(|why| {
        let message = format!("the request is not strict JSON: {why}");
        bad(message, vec![why.into()])
    })
}

fn cancelled() -> Reply {
    Reply::failed(ErrorCode::Cancelled, "given up before the request was read", Vec::new())
}

/// The tool as it is configured here.
pub(in crate::commands) fn tool(given: Option<&Path>) -> Result<Tool, Failure> {
    let here = runs::current_directory()?;
    let config = config::load(&runs::project()?)?;
    let settings = settings::govern(Settings::default(), &config)?;
    let agents = config.agents.into_iter().map(|(id, workspace)| (id, workspace.value)).collect();
    let given = given.map(|given| here.join(given));
    Ok(Tool { workspaces: Workspaces { given, agents, here }, settings })
}

/// A line for each step that begins or ends.
async fn tell(mut told: mpsc::UnboundedReceiver<Progress>, quiet: bool) {
    let lines = Lines::open();
    while let Some(Progress { message, .. }) = told.recv().await {
        if !quiet {
            lines.say(&plain(&message));
        }
    }
    lines.end();
}
