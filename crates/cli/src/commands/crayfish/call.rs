//! One call of the tool: reads a request from stdin, writes a reply to stdout and progress to
//! stderr.
//!
//! Every problem becomes a reply, because the caller is a program. The exception is a terminal on
//! stdin: then a person called, who gets a hint instead.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use raymond_core::crayfish::envelope::CallOutcome;
use raymond_core::crayfish::reading::{self, Holds};
use raymond_core::crayfish::{CallReply, ErrorCode, Problem, ProblemCode};
use raymond_core::run::Settings;
use raymond_engine::call::{CallChannels, CallProgress, Tool, Workspaces};
use raymond_engine::runner::Signals;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::args::Crayfish;
use crate::commands::finish::finish;
use crate::commands::write_stdout;
use crate::console::StderrLog;
use crate::documents::{read_limited, too_large};
use crate::failure::{Failure, USAGE};
use crate::interrupts::{self, SignalOwner};
use crate::json::{self, Layout};
use crate::sanitize::sanitized;
use crate::{config, known_projects, resource_limits, runs, settings};

use super::cancellation::cancelled_by_caller;

pub(super) fn call(flags: &Crayfish) -> Result<u8, Failure> {
    if io::stdin().is_terminal() {
        let message = "crayfish reads a JSON request from stdin, but stdin is a terminal";
        return Err(Failure::usage(message).hint(
            "send it a request: raymond crayfish < request.json; \
             to run a document: raymond run flow.json",
        ));
    }
    let runtime = crate::runtime::runtime()?;
    let failed = |error| Failure::environment(format!("could not listen for signals: {error}"));
    // Before the request is read: a caller may cancel while it still sends it.
    let signals = runtime.block_on(async { Signals::listen() }).map_err(failed)?;
    // `cancelled_by_caller` handles signals from here on.
    interrupts::hand_over_to(SignalOwner::Owner);
    let cancel = CancellationToken::new();
    let reply = runtime.block_on(async {
        let gave_up = cancel.clone();
        let watch = tokio::spawn(async move {
            cancelled_by_caller(signals).await;
            gave_up.cancel();
        });
        let reply = answer(flags, &cancel).await;
        // The reply is complete: a caller that leaves now cancels nothing.
        watch.abort();
        reply
    });
    // Failures of steps are a part of the reply, so the exit code reports only whether there was a
    // request.
    let code = if is_unread(&reply) { USAGE } else { 0 };
    let text = json::text(&reply.into_json(), Layout::OneLine) + "\n";
    // A caller that stopped reading must not keep this process, so a signal can interrupt the
    // write.
    finish(&runtime, move || write_stdout(&text).map(|()| code))
}

/// Whether the reply says that the request could not be read.
fn is_unread(reply: &CallReply) -> bool {
    matches!(&reply.outcome, CallOutcome::Failed(failure) if failure.code == ErrorCode::BadRequest)
}

async fn answer(flags: &Crayfish, cancel: &CancellationToken) -> CallReply {
    // Biased, so that a signal wins over a request that arrives at the same moment.
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
            return CallReply::failed(
                ErrorCode::BadWorkspace,
                failure.message_and_hint().0,
                Vec::new(),
            );
        }
    };
    let (progress, progress_items) = mpsc::unbounded_channel();
    let channels = CallChannels { cancel: cancel.clone(), progress };
    // Even with `--quiet`: the channel is unbounded, so its items have to be taken.
    let printing = tokio::spawn(print_progress(progress_items, flags.quiet));
    let reply = tool.call(request, channels).await;
    // Wait here, so that no progress line follows the reply.
    printing.await.ok();
    reply
}

/// Reads the request on a separate thread, because a blocked read of stdin cannot be cancelled.
async fn request() -> Result<Value, CallReply> {
    let (hand_in, handed) = oneshot::channel();
    let read = move || hand_in.send(read_limited(io::stdin().lock())).ok();
    // Not `spawn_blocking`: the end of the runtime would wait for that thread, which may be blocked
    // in the read for ever.
    std::thread::Builder::new().spawn(read).map_err(|error| {
        CallReply::failed(
            ErrorCode::Internal,
            resource_limits::no_thread(&error).message_and_hint().0,
            Vec::new(),
        )
    })?;
    let bad = |message: String, errors| CallReply::failed(ErrorCode::BadRequest, message, errors);
    // The channel closes without a value only if the thread panicked.
    let bytes = match handed.await {
        Ok(Ok(bytes)) => bytes,
        // `read_limited` can return only an `io::Error`, so its text marks the limit.
        Ok(Err(error)) if error.to_string() == too_large() => {
            let large = Problem::new("", ProblemCode::TooLarge, error.to_string());
            return Err(bad(format!("could not read the request: {error}"), vec![large]));
        }
        Ok(Err(error)) => return Err(bad(format!("could not read stdin: {error}"), Vec::new())),
        Err(_) => return Err(bad("could not read stdin".to_owned(), Vec::new())),
    };
    reading::read_as(Holds::Request, &bytes).map_err(|why| {
        let message = format!("the request is not strict JSON: {why}");
        bad(message, vec![why.into()])
    })
}

fn cancelled() -> CallReply {
    CallReply::failed(ErrorCode::Cancelled, "interrupted before the request was read", Vec::new())
}

/// Returns the tool with the configuration of this project.
pub(in crate::commands) fn tool(given: Option<&Path>) -> Result<Tool, Failure> {
    let here = runs::current_directory()?;
    let config = config::load(&runs::project()?)?;
    let settings = settings::apply_config(Settings::default(), &config)?;
    let registry = known_projects::registry_of_runs(&config);
    let agents = config.agents.into_iter().map(|(id, workspace)| (id, workspace.value)).collect();
    let given = given.map(|given| here.join(given));
    Ok(Tool { workspaces: Workspaces { given, agents, here }, settings, registry })
}

/// Prints a line for each step that starts or ends.
async fn print_progress(mut progress_items: mpsc::UnboundedReceiver<CallProgress>, quiet: bool) {
    let lines = StderrLog::open();
    while let Some(CallProgress { message, .. }) = progress_items.recv().await {
        if !quiet {
            lines.say(&sanitized(&message));
        }
    }
    lines.end();
}
