//! How a simulated turn goes, and who decides it.

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::time::Timestamp;
use serde_json::Value as Json;

use crate::step_trace::ProgramResult;

/// The place of a turn in the program. Interruptions do not change it, so a run that is killed and
/// resumed hears the same as one that was left alone.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The state's file name.
    pub state: &'a str,
    /// How often the agent has entered the state.
    pub count: u32,
    /// The turn of the visit.
    pub turn: u32,
    /// How many attempts at this turn came to an end of their own, and one.
    pub attempt: u32,
    /// How many attempts of this agent at this state came to an end of their own.
    pub finished: usize,
    /// The backend; none for scripts.
    pub backend: &'a str,
    /// What the turn may spend.
    pub cap: Option<Micros>,
}

impl TurnRequest<'_> {
    /// Whether an agent speaks here, and not a script.
    pub fn is_prompt(&self) -> bool {
        is_prompt(self.state)
    }
}

/// Whether the state of that file name is a prompt.
pub fn is_prompt(state: &str) -> bool {
    state.rsplit_once('.').is_some_and(|(_, extension)| extension == "md")
}

/// How a turn goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It ends with a text.
    Says(String, Cost),
    /// It ends with a text, and the client has denied a tool.
    Denied(String, Cost),
    /// It uses up its share.
    Capped(Cost),
    /// It uses up its share, and its text is complete by then.
    SaysCapped(String, Cost),
    /// It fails.
    Fails(TurnFailure, Cost),
    /// It never ends by itself.
    Hangs,
    /// The program of a step ends.
    Ran(ProgramResult),
    /// An agent step is answered, and whether with what was asked for.
    Answers(Json, Valid, Cost),
}

/// Whether an answer is what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Valid {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// Those who speak in a simulation.
pub trait ReplySource: std::fmt::Debug {
    /// What happens at a place.
    fn reply(&self, request: TurnRequest<'_>, now: Timestamp) -> Reply;

    /// What the program of a step does, in which mode, at which key and attempt, called how.
    fn exec(&self, mode: &str, key: &str, _attempt: u32, call: &Json) -> ProgramResult {
        ProgramResult::NotRun(
            serde_json::json!({ "ok": false, "mode": mode, "at": key, "call": call }),
        )
    }
}
