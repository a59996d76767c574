//! A client that says it went on in the conversation of a caller.
//!
//! Whatever it answered there, it is not believed: the turn fails, and the next attempt is made as if
//! no session had been named. Only the callers of its own agent are looked at: a turn costs no look at
//! every agent.

use crate::agent::{Agent, Session, SessionPlan};
use crate::failure::TurnFailure;
use crate::ids::SessionId;
use crate::scheduler::Turn;

use crate::run::input::Outcome;

/// What such a turn comes to instead; none for every other one.
pub(super) fn reject(turn: &Turn, agent: &Agent, outcome: &Outcome) -> Option<Outcome> {
    let named = outcome.opened().filter(|named| belongs_to_a_caller(turn, agent, named))?;
    let why = format!("the client went on in session {named}, which belongs to a caller");
    let (failure, cost) = (TurnFailure::Task { why }, outcome.cost());
    Some(Outcome::Failed { failure, cost, denied: Vec::new(), session: None })
}

fn belongs_to_a_caller(turn: &Turn, agent: &Agent, named: &SessionId) -> bool {
    let branched = match &turn.plan {
        SessionPlan::Branch { from, .. } => Some(from),
        SessionPlan::Fresh(_)
        | SessionPlan::Resume(_)
        | SessionPlan::Continue { .. }
        | SessionPlan::Carry => None,
    };
    let kept = agent.stack.iter().filter_map(|frame| match &frame.session {
        Session::Fresh => None,
        Session::At(id) | Session::BranchOf(id) => Some(id),
    });
    kept.chain(branched).any(|id| id == named)
}
