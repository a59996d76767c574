//! The replies of simulated turns, and their source.

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::time::Timestamp;
use serde_json::Value as Json;

use crate::step_trace::ProgramResult;

/// The position of a turn in a run. Interruptions do not change it, so a run that is killed and
/// resumed gets the same replies as a run without faults.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    pub agent: &'a str,
    /// The file name of the state.
    pub state: &'a str,
    /// How often the agent has entered the state.
    pub count: u32,
    /// The number of the turn in its visit.
    pub turn: u32,
    /// The number of this attempt; interrupted attempts do not count.
    pub attempt: u32,
    /// How many attempts of this agent at this state have finished.
    pub finished: usize,
    /// The backend; empty for scripts.
    pub backend: &'a str,
    /// The budget share of the turn.
    pub cap: Option<Micros>,
}

impl TurnRequest<'_> {
    pub fn is_prompt(&self) -> bool {
        is_prompt(self.state)
    }
}

/// Returns whether a state with this file name is a prompt.
pub fn is_prompt(state: &str) -> bool {
    state.rsplit_once('.').is_some_and(|(_, extension)| extension == "md")
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Says(String, Cost),
    /// A text, after the client has denied a tool.
    Denied(String, Cost),
    /// The share is used up.
    Capped(Cost),
    /// The share is used up, but the text is complete.
    SaysCapped(String, Cost),
    Fails(TurnFailure, Cost),
    /// The client never ends by itself.
    Hangs,
    /// The program of a step ends.
    Ran(ProgramResult),
    /// The answer to an agent step, and whether it matches the schema.
    Answers(Json, Valid, Cost),
}

/// Whether an answer matches the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Valid {
    Yes,
    No,
}

/// The replies of all agents and programs of a simulation.
pub trait ReplySource: std::fmt::Debug {
    fn reply(&self, request: TurnRequest<'_>, now: Timestamp) -> Reply;

    /// Returns the result of a step's program, called with `call`.
    fn exec(&self, mode: &str, key: &str, _attempt: u32, call: &Json) -> ProgramResult {
        ProgramResult::NotRun(
            serde_json::json!({ "ok": false, "mode": mode, "at": key, "call": call }),
        )
    }
}
