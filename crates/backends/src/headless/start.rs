//! Starting one client.
//!
//! A program that cannot be started fails its turn as `NotStarted`. Missing disk space would fail
//! every turn, so it is reported as `Environment`. In both cases no client runs and nothing is
//! spent.

use std::env;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use raymond_core::failure::TurnFailure;

use super::{ClientProtocol, Headless, SessionStep, TurnReader as _, program, turn_files};
use crate::contract::PromptRequest;
use crate::process::{Client, StartError, cause, start_client};

impl<D: ClientProtocol> Headless<D> {
    /// Starts the client for this step.
    pub(crate) fn start(
        &self,
        step: &SessionStep,
        request: &PromptRequest,
        message: String,
        turn: &mut D::Turn,
    ) -> Result<Client, TurnFailure> {
        let started = &request.started;
        let transcripts = started.transcript.parent();
        // Created again before every start, because the user may have removed them during the run.
        for place in started.config_home.as_deref().into_iter().chain(transcripts) {
            create_private_directory(place).map_err(|error| unwritable_file(place, &error))?;
        }
        turn.before_start(step, request)?;
        // Looked up at every start: the client may have been updated since the last turn.
        let program = program::find(&self.command, env::var_os("PATH").as_deref());
        let program =
            program.map_err(|problem| start_failure(problem.to_string()))?.into_os_string();
        let spec = self.protocol.spec(program.clone(), step, request, message)?;
        start_client(spec, &turn_files(started)).map_err(|error| match error {
            StartError::Environment(why) => TurnFailure::Environment { why },
            StartError::Program(error) => start_failure(spawn_error_message(&program, &error)),
        })
    }
}

/// Returns the failure for a file or directory that cannot be written.
pub(crate) fn unwritable_file(path: &Path, error: &io::Error) -> TurnFailure {
    let why = format!("could not write {}: {}", path.display(), cause(error));
    TurnFailure::Environment { why }
}

/// Returns the failure of a client that cannot be started for a reason other than the machine.
pub(crate) fn start_failure(why: String) -> TurnFailure {
    TurnFailure::NotStarted { why }
}

fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn spawn_error_message(program: &OsStr, error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::ArgumentListTooLong => " (its arguments or its environment are too large)",
        _ => "",
    };
    format!("cannot run {}: {error}{hint}", program.display())
}
