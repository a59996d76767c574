//! Codex, without a terminal: one client per prompt.
//!
//! The client writes two things: a stream of lines to stdout, which is the transcript, and a rollout file
//! of its own, where every request to the model is counted and every error has a type. The stream says
//! how a turn goes, the rollout what it costs and why it failed. The client chooses the ids of its
//! threads, so the id of a conversation is what the stream says, not what was planned. It knows no cap:
//! a turn is watched through its rollout, and ended when its share is used up.

mod arguments;
mod books;
mod fault;
mod line;
mod outcome;
mod past;
pub mod preflight;
mod rollout;
mod said;
mod turn;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{self, PathBuf};
use std::sync::Arc;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::prices::Prices;

pub(crate) use said::Recount;

use books::Books;
use past::Past;
use turn::Turn;

use crate::contract::{Answer, Backend, Capability, Request, Started};
use crate::headless::{
    Dialect, End, Fold as _, Headless, Settings, Step, marker, refused, unwritable,
};
use crate::process::{Inherit, Input, Spec};

/// How workflows and flags name it.
pub const NAME: &str = "codex";

/// The oldest client that is known to do all this.
pub const OLDEST: [u32; 3] = [0, 166, 0];

/// What it can do.
pub const CAPABILITIES: &[Capability] = &[
    Capability::Fresh,
    Capability::Resume,
    Capability::Branch,
    Capability::Schema,
    Capability::Cost,
    Capability::Cap,
    Capability::Effort,
];

/// The Codex client, run like this.
pub fn client(settings: Settings) -> Arc<dyn Backend> {
    Arc::new(Headless::<Speech>::new(settings))
}

/// How the client is started and understood.
#[derive(Debug, Clone)]
struct Speech {
    prices: Arc<Prices>,
}

impl Dialect for Speech {
    type Turn = Turn;

    const NAME: &str = NAME;
    const CAPABILITIES: &'static [Capability] = CAPABILITIES;

    fn new(prices: Arc<Prices>) -> Self {
        Self { prices }
    }

    fn begin(&self, started: &Started) -> Turn {
        let past = Past::kept_in(past_file(started));
        let books = Books::new(&home(started), Arc::clone(&self.prices), past);
        let form = if schema_file(started).exists() { turn::Form::Json } else { turn::Form::Text };
        Turn::new(books, started.cap, form)
    }

    fn spec(
        &self,
        program: OsString,
        step: &Step,
        request: &Request,
        message: String,
    ) -> Result<Spec, TurnFailure> {
        if message.chars().count() > LONGEST {
            return Err(refused(format!(
                "the prompt has more than the {LONGEST} characters that the client takes"
            )));
        }
        // States may have been edited since the start.
        let wish = preflight::Wish::of(request);
        wish.check(&self.prices).map_err(|problem| refused(problem.told()))?;
        if let Some(schema) = &request.schema {
            let file = schema_file(&request.started);
            fs::write(&file, schema.to_string()).map_err(|error| unwritable(&file, &error))?;
        }
        let schema = request.schema.as_ref().map(|_| schema_file(&request.started));
        let home = request.started.config_home.clone();
        Ok(Spec {
            arguments: arguments::arguments(request, step, schema.as_deref()),
            cwd: request.cwd.clone(),
            inherit: Inherit::only(request.environment.as_deref()),
            set: own_home(home).map(|home| (HOME.into(), home.into())).into_iter().collect(),
            unset: arguments::foreign(env::vars_os().map(|(name, _)| name)),
            marker: marker(&request.started),
            stdin: Input::Bytes(message.into_bytes()),
            program,
        })
    }

    /// The client takes what is no UUID for the name of a thread, and opens one where there is none.
    fn cannot_know(&self, step: &Step) -> bool {
        step.needs().is_some_and(|id| !arguments::is_uuid(id.as_str()))
    }

    fn cost(&self, turn: &Turn) -> Cost {
        turn.cost()
    }

    fn answer(&self, turn: Turn, end: End, step: &Step) -> Answer {
        outcome::answer(turn, end, step)
    }

    fn is_conclusive(&self, turn: &Turn) -> bool {
        turn.is_complete() || turn.hearing.flooded.is_some()
    }

    /// A client that does not know its thread writes no line: the one that wrote is known by its thread.
    fn place(&self, turn: &Turn, steps: &[Step]) -> usize {
        let Some(session) = &turn.session else { return 0 };
        let resumes = |step: &Step| matches!(step, Step::Resume(id) if id == session);
        steps.iter().position(resumes).unwrap_or_else(|| steps.len().saturating_sub(1))
    }
}

/// The longest prompt that the client takes, in characters.
const LONGEST: usize = 1 << 20;

const HOME: &str = "CODEX_HOME";

/// Where the client keeps its threads.
fn home(started: &Started) -> PathBuf {
    let own = own_home(started.config_home.clone());
    own.unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".codex"))
}

/// Where the client is told to keep them, so that it does not look elsewhere than its owner: it works in
/// another directory.
fn own_home(config_home: Option<PathBuf>) -> Option<PathBuf> {
    let told = || env::var_os(HOME).filter(|home| !home.is_empty()).map(PathBuf::from);
    config_home.or_else(told).map(|home| path::absolute(&home).unwrap_or(home))
}

/// The turns that the thread had before are kept beside the transcript.
fn past_file(started: &Started) -> PathBuf {
    started.transcript.with_extension("past.json")
}

/// The client reads the schema of its answer from a file.
fn schema_file(started: &Started) -> PathBuf {
    started.transcript.with_extension("schema.json")
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
