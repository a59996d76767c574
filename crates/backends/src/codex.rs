//! The backend for Codex: one client without a terminal per prompt.
//!
//! The client writes a stream of lines to stdout, which is the transcript. It also writes a rollout
//! file, which counts every request to the model and gives every error a type. The stream shows the
//! progress of a turn; the rollout shows its cost and the reason of a failure.
//!
//! The client chooses the ids of its threads, so the id of a conversation comes from the stream,
//! not from the plan. The client has no budget option: Raymond watches the rollout and ends the
//! turn when its budget share is used up.

mod arguments;
mod error_class;
mod line;
mod outcome;
mod preflight;
mod prior_turns;
mod rollout;
mod thread_usage;
mod transcript_parser;
mod turn;

use std::env;
use std::ffi::OsString;
use std::path::{self, PathBuf};
use std::sync::Arc;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::prices::Prices;

pub(crate) use preflight::{check_home, unsupported_options};
pub(crate) use transcript_parser::transcript_reader;

use prior_turns::PriorTurns;
use thread_usage::ThreadUsage;
use turn::CodexTurn;

use crate::contract::{Answer, Backend, Capability, PromptRequest, StartedTurn};
use crate::foreign_variables::foreign_variables;
use crate::headless::{
    ClientEnd, ClientProtocol, ClientSettings, Headless, RequestedOptions, SessionStep,
    TurnReader as _, marker, start_failure, unwritable_file,
};
use crate::process::{Inherit, ProcessStdin, Spec, write_private};

/// The name in workflows and flags.
pub const NAME: &str = "codex";

/// The oldest version that was tested with all these features.
pub(crate) const OLDEST: [u32; 3] = [0, 166, 0];

pub const CAPABILITIES: &[Capability] = &[
    Capability::Fresh,
    Capability::Resume,
    Capability::Branch,
    Capability::Schema,
    Capability::Cost,
    Capability::Cap,
    Capability::Effort,
];

/// Returns a backend for the Codex client.
pub fn client(settings: ClientSettings) -> Arc<dyn Backend> {
    Arc::new(Headless::<CodexProtocol>::new(settings))
}

#[derive(Debug, Clone)]
struct CodexProtocol {
    prices: Arc<Prices>,
}

impl ClientProtocol for CodexProtocol {
    type Turn = CodexTurn;

    const NAME: &str = NAME;
    const CAPABILITIES: &'static [Capability] = CAPABILITIES;

    fn new(prices: Arc<Prices>) -> Self {
        Self { prices }
    }

    fn begin(&self, started: &StartedTurn) -> CodexTurn {
        let prior_turns = PriorTurns::kept_in(prior_turns_file(started));
        let thread_usage = ThreadUsage::new(&home(started), Arc::clone(&self.prices), prior_turns);
        // A later owner has no request, but the file shows that JSON was requested.
        let form = if schema_file(started).exists() { turn::Form::Json } else { turn::Form::Text };
        CodexTurn::new(thread_usage, started.cap, form)
    }

    fn spec(
        &self,
        program: OsString,
        step: &SessionStep,
        request: &PromptRequest,
        message: String,
    ) -> Result<Spec, TurnFailure> {
        // Refused here, before a client is started in vain.
        if message.chars().count() > LONGEST {
            return Err(start_failure(format!(
                "the prompt exceeds the client's limit of {LONGEST} characters"
            )));
        }
        // States may have been edited since the start of the run, so the check is repeated here.
        preflight::check_options(RequestedOptions::of(request), &self.prices)
            .map_err(|problem| start_failure(problem.message()))?;
        if let Some(schema) = &request.schema {
            let file = schema_file(&request.started);
            write_private(&file, schema.to_string().as_bytes())
                .map_err(|error| unwritable_file(&file, &error))?;
        }
        let schema = request.schema.as_ref().map(|_| schema_file(&request.started));
        let home = request.started.config_home.clone();
        Ok(Spec {
            arguments: arguments::arguments(request, step, schema.as_deref()),
            cwd: request.cwd.clone(),
            inherit: Inherit::only(request.environment.as_deref()),
            set: own_home(home).map(|home| (HOME.into(), home.into())).into_iter().collect(),
            unset: foreign_variables(env::vars_os().map(|(name, _)| name)),
            marker: marker(&request.started),
            stdin: ProcessStdin::Bytes(message.into_bytes()),
            program,
        })
    }

    /// Whether the id is not a UUID. The client would take it for the name of a thread, and open a
    /// thread if there is none of that name.
    fn cannot_find_session(&self, step: &SessionStep) -> bool {
        step.required_session().is_some_and(|id| !arguments::is_uuid(id.as_str()))
    }

    fn cost(&self, turn: &CodexTurn) -> Cost {
        turn.cost()
    }

    fn answer(&self, turn: CodexTurn, end: ClientEnd, step: &SessionStep) -> Answer {
        outcome::answer(turn, end, step)
    }

    fn is_conclusive(&self, turn: &CodexTurn) -> bool {
        turn.is_complete() || turn.health.flooded.is_some()
    }

    /// Returns the step that wrote the transcript.
    fn step_index(&self, turn: &CodexTurn, steps: &[SessionStep]) -> usize {
        // A client that does not know its thread writes no line, so the thread identifies the step.
        let Some(session) = &turn.session else { return 0 };
        let resumes = |step: &SessionStep| matches!(step, SessionStep::Resume(id) if id == session);
        steps.iter().position(resumes).unwrap_or_else(|| steps.len().saturating_sub(1))
    }
}

/// The longest prompt that the client accepts, in characters.
const LONGEST: usize = 1 << 20;

const HOME: &str = "CODEX_HOME";

/// Returns the directory where the client keeps its threads.
fn home(started: &StartedTurn) -> PathBuf {
    let own = own_home(started.config_home.clone());
    own.unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".codex"))
}

/// Returns the directory that the client must use, as an absolute path, because the client works in
/// another directory than its owner.
fn own_home(config_home: Option<PathBuf>) -> Option<PathBuf> {
    let configured = || env::var_os(HOME).filter(|home| !home.is_empty()).map(PathBuf::from);
    config_home.or_else(configured).map(|home| path::absolute(&home).unwrap_or(home))
}

/// Returns the file beside the transcript that lists the earlier turns of the thread.
fn prior_turns_file(started: &StartedTurn) -> PathBuf {
    started.transcript.with_extension("past.json")
}

/// Returns the file from which the client reads the schema of its answer.
fn schema_file(started: &StartedTurn) -> PathBuf {
    started.transcript.with_extension("schema.json")
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
