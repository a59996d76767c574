//! Rejects a turn whose client wrote into the conversation of a caller.
//!
//! Raymond does not use the answer of such a turn: the turn fails, and the next attempt runs as if
//! the client had named no session. Only the callers of the turn's own agent are compared, because
//! a turn must not cost a look at every agent.

use crate::agent::{Agent, Session, SessionPlan};
use crate::failure::TurnFailure;
use crate::ids::SessionId;
use crate::scheduler::Turn;

use crate::run::outcome::Outcome;

/// Returns the failure that replaces the outcome of such a turn, or nothing for any other turn.
pub(super) fn reject(turn: &Turn, agent: &Agent, outcome: &Outcome) -> Option<Outcome> {
    let named = outcome.opened().filter(|named| belongs_to_a_caller(turn, agent, named))?;
    let why = format!("the client continued in session {named}, which belongs to a caller");
    // The session is left out, so that no later attempt continues in it.
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
    // Frames hold the sessions in which the callers continue after a return.
    let kept = agent.stack.iter().filter_map(|frame| match &frame.session {
        Session::Fresh => None,
        Session::At(id) | Session::BranchOf(id) => Some(id),
    });
    kept.chain(branched).any(|id| id == named)
}
