//! The backend for Claude Code: one client without a terminal per prompt.
//!
//! `headless` runs the client; this module defines its protocol. Raymond chooses every session id
//! before the client starts. Decisions come from typed fields of the stream, never from exit codes.
//! Only an unknown session is recognized by its text. Nothing here retries.
//!
//! Start with `turn`, which folds the lines, and `outcome`, which turns the result into an answer.

mod api_error;
mod arguments;
mod error_class;
mod final_texts;
mod line;
mod lone_surrogates;
mod outcome;
mod preflight;
mod spending;
mod tools;
mod transcript_parser;
mod turn;
mod wire;

use std::env;
use std::ffi::OsString;
use std::sync::Arc;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;
use raymond_core::prices::Prices;

pub use arguments::DEFAULT_MODE;
pub(crate) use preflight::{check_skipping, unsupported_options};
pub(crate) use transcript_parser::transcript_reader;

use turn::{ClaudeTurn, RoundResult};

use crate::contract::{Answer, Backend, Capability, PromptRequest, StartedTurn};
use crate::foreign_variables::foreign_variables;
use crate::headless::{
    ClientEnd, ClientProtocol, ClientSettings, Headless, SessionStep, marker, start_failure,
};
use crate::process::{Inherit, ProcessStdin, Spec};

/// The name in workflows and flags.
pub const NAME: &str = "claude";

pub const CAPABILITIES: &[Capability] = &[
    Capability::Fresh,
    Capability::Resume,
    Capability::Branch,
    Capability::ChosenIds,
    Capability::Schema,
    Capability::Cost,
    Capability::Cap,
    Capability::Effort,
    Capability::Permissions,
];

/// The oldest supported version: the first one that reports the cost of an invocation.
pub(crate) const OLDEST: [u32; 3] = [2, 1, 309];

/// Returns a backend for the Claude Code client.
pub fn client(settings: ClientSettings) -> Arc<dyn Backend> {
    Arc::new(Headless::<ClaudeProtocol>::new(settings))
}

/// The protocol of Claude Code.
#[derive(Debug, Clone)]
struct ClaudeProtocol {
    prices: Arc<Prices>,
}

impl ClientProtocol for ClaudeProtocol {
    type Turn = ClaudeTurn;

    const NAME: &str = NAME;
    const CAPABILITIES: &'static [Capability] = CAPABILITIES;

    fn new(prices: Arc<Prices>) -> Self {
        Self { prices }
    }

    fn begin(&self, started: &StartedTurn) -> ClaudeTurn {
        ClaudeTurn::with_spare_session(Some(spare_session(started)))
    }

    /// Returns the steps of the plan.
    fn steps(&self, started: &StartedTurn) -> Vec<SessionStep> {
        // A client that was killed early leaves a session id that is taken but unknown to every
        // client, so all steps after the first open a spare session.
        let spare = spare_session(started);
        let steps = SessionStep::of(&started.plan).into_iter().enumerate();
        steps
            .map(|(n, step)| if n == 0 { step } else { step.with_session(spare.clone()) })
            .collect()
    }

    fn spec(
        &self,
        program: OsString,
        step: &SessionStep,
        request: &PromptRequest,
        message: String,
    ) -> Result<Spec, TurnFailure> {
        // States may have been edited since the start of the run, so the check is repeated here.
        preflight::keeps_checks(&request.permissions)
            .map_err(|problem| start_failure(problem.to_string()))?;
        Ok(Spec {
            arguments: arguments::arguments(request, step),
            cwd: request.cwd.clone(),
            inherit: Inherit::only(request.environment.as_deref()),
            set: arguments::environment(request, |name| env::var_os(name).is_some()),
            unset: foreign_variables(env::vars_os().map(|(name, _)| name)),
            marker: marker(&request.started),
            stdin: ProcessStdin::Bytes(message.into_bytes()),
            program,
        })
    }

    fn cost(&self, turn: &ClaudeTurn) -> Cost {
        turn.spending.cost(&self.prices)
    }

    fn answer(&self, turn: ClaudeTurn, end: ClientEnd, step: &SessionStep) -> Answer {
        outcome::answer(turn, end, step, &self.prices)
    }

    // An interrupted round is not conclusive, because the next client continues it. A lost session
    // is conclusive, because the next step of the plan follows.
    fn is_conclusive(&self, turn: &ClaudeTurn) -> bool {
        match &turn.result {
            Some(ended) => !ended.was_interrupted() || ended.has_lost_session(),
            None => turn.health.flooded.is_some() || turn.health.unread,
        }
    }

    fn step_index(&self, turn: &ClaudeTurn, _: &[SessionStep]) -> usize {
        let lost = turn.result.as_ref().is_some_and(RoundResult::has_lost_session);
        if lost { turn.lost.saturating_sub(1) } else { turn.lost }
    }
}

/// Returns the session id for a turn whose planned id is taken.
fn spare_session(started: &StartedTurn) -> SessionId {
    started.turn.spare_session(&started.nonce, started.attempt)
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
