//! Claude Code, without a terminal: one client per prompt.
//!
//! The client writes its stream into the transcript of the turn, which is followed line by line and
//! folded into an answer. So it outlives its owner: the next one adopts it, or reads what it left. The
//! id of every session is chosen before the client starts. All that is decided here comes from typed
//! fields of the stream; nothing is tried again.

mod arguments;
mod fault;
mod line;
mod outcome;
pub mod preflight;
mod said;
mod shape;
mod spending;
mod surrogates;
mod tools;
mod trouble;
mod turn;

use std::env;
use std::ffi::OsString;
use std::sync::Arc;

use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;
use raymond_core::prices::Prices;

pub use arguments::DEFAULT_MODE;
pub(crate) use said::Recount;

use turn::{Ended, Turn};

use crate::contract::{Answer, Backend, Capability, Request, Started};
use crate::headless::{Dialect, End, Headless, Settings, Step, marker, refused};
use crate::process::{Inherit, Input, Spec};

/// How workflows and flags name it.
pub const NAME: &str = "claude";

/// What it can do.
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

/// The oldest version that will do: the first one that says what an invocation has cost.
pub const OLDEST: [u32; 3] = [2, 1, 309];

/// The Claude Code client, run like this.
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
        Turn::sparing(Some(spare(started)))
    }

    /// A client that was killed early leaves an id that is taken, and that no client knows: what comes
    /// after the first step opens another one.
    fn steps(&self, started: &Started) -> Vec<Step> {
        let spare = spare(started);
        let steps = Step::of(&started.plan).into_iter().enumerate();
        steps.map(|(n, step)| if n == 0 { step } else { step.under(spare.clone()) }).collect()
    }

    fn spec(
        &self,
        program: OsString,
        step: &Step,
        request: &Request,
        message: String,
    ) -> Result<Spec, TurnFailure> {
        // States may have been edited since the start.
        preflight::keeps_checks(&request.permissions)
            .map_err(|problem| refused(problem.to_string()))?;
        Ok(Spec {
            arguments: arguments::arguments(request, step),
            cwd: request.cwd.clone(),
            inherit: Inherit::only(request.environment.as_deref()),
            set: arguments::environment(request, |name| env::var_os(name).is_some()),
            unset: arguments::foreign(env::vars_os().map(|(name, _)| name)),
            marker: marker(&request.started),
            stdin: Input::Bytes(message.into_bytes()),
            program,
        })
    }

    fn cost(&self, turn: &Turn) -> Cost {
        turn.spending.cost(&self.prices)
    }

    fn answer(&self, turn: Turn, end: End, step: &Step) -> Answer {
        outcome::answer(turn, end, step, &self.prices)
    }

    fn is_conclusive(&self, turn: &Turn) -> bool {
        match &turn.result {
            Some(ended) => !ended.was_cut_off() || ended.lost_its_session(),
            None => turn.hearing.flooded.is_some() || turn.hearing.unread,
        }
    }

    fn place(&self, turn: &Turn, _: &[Step]) -> usize {
        let lost = turn.result.as_ref().is_some_and(Ended::lost_its_session);
        if lost { turn.lost.saturating_sub(1) } else { turn.lost }
    }
}

/// The session of a turn whose planned one is taken.
fn spare(started: &Started) -> SessionId {
    started.turn.spare_session(&started.nonce, started.attempt)
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
