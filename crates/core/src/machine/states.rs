//! Decides what follows when a turn of a state ends with a text: a transition, a reminder or a
//! failure.
//!
//! The charge of the turn is recorded already. The tags are taken in [`super::tags`]; a turn
//! that failed or was interrupted is decided in [`crate::decide`], for all languages alike.

use crate::agent::{Agent, Session};
use crate::failure::AgentFailure;
use crate::ids::StateName;
use crate::protocol::{Fault, Tag, examples};
use crate::run::decision::{Decision, EndedTurn};
use crate::run::event::Event;
use crate::run::outcome::Finished;
use crate::scheduler::{Lane, Prompt};
use crate::workflow::{OnDenied, Policy};

use super::blocked::Blocked;
use super::transition_context::TransitionContext;
use super::{tags, transition};

pub(crate) fn finished(
    decision: &mut Decision<'_>,
    ended: &EndedTurn<'_>,
    session: &Session,
    outcome: &Finished,
) {
    let EndedTurn { turn, agent, .. } = *ended;
    let holder = match &turn.lane {
        // The run is still as before this turn, so `agent.holder` does not know who answered it.
        Lane::Prompt(backend) => Some(backend),
        Lane::Script => agent.holder.as_ref(),
    };
    let context = TransitionContext {
        agent,
        session,
        holder,
        directories: &outcome.reply.directories,
        implicit: outcome.reply.reading.tags.is_empty(),
    };
    let read = read(decision, agent, outcome);
    let tags = match read {
        Ok(tags) => tags,
        Err(Stop::Fault(fault)) => {
            return remind(decision, ended, session, fault, &outcome.reply.stderr);
        }
        Err(Stop::Failure(failure)) => return fail(decision, agent, failure),
    };
    match tags::take(decision, context, &tags) {
        Ok(()) => {}
        Err(Blocked::Fault(fault)) => {
            remind(decision, ended, session, fault, &outcome.reply.stderr);
        }
        Err(Blocked::Failed(failure)) => {
            // Kept, so that a resume with a higher limit takes the transition without another paid
            // turn.
            let (agent, kept) = (agent.id.clone(), Some(context.keep(&tags)));
            decision.push(Event::AgentFailed { agent, failure, kept });
        }
        Err(Blocked::Held) => {
            let (agent, kept) = (agent.id.clone(), context.keep(&tags));
            decision.push(Event::AgentHeld { agent, kept });
        }
    }
}

/// Fails an agent without a transition to keep.
fn fail(decision: &mut Decision<'_>, agent: &Agent, failure: AgentFailure) {
    decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
}

enum Stop {
    Fault(Fault),
    Failure(AgentFailure),
}

/// Returns the tags of the transition in the text, unless the state treats a denied tool as a
/// fault.
fn read(decision: &Decision<'_>, agent: &Agent, outcome: &Finished) -> Result<Vec<Tag>, Stop> {
    let Some(state) = decision.visited(agent) else {
        // An edited workflow may lack the state; then no policy applies.
        return transition::transition(&outcome.reply.reading, &Policy::default())
            .map_err(Stop::Fault);
    };
    // Before the tags: `remind` and `fail` apply even if the message has a valid tag.
    if !outcome.denied.is_empty() {
        let tools = outcome.denied.clone();
        match state.front.on_denied {
            OnDenied::Warn => {}
            OnDenied::Remind => return Err(Stop::Fault(Fault::Denied { tools })),
            OnDenied::Fail => return Err(Stop::Failure(AgentFailure::Denied { tools })),
        }
    }
    let (reading, policy) = (&outcome.reply.reading, &state.front.policy);
    // Scripts have no policy: they may always ask.
    let may_ask = || policy.may_ask() || decision.state_lane(&state.name) == Lane::Script;
    if !transition::has_question(reading) || may_ask() {
        return transition::transition(reading, policy).map_err(Stop::Fault);
    }
    let reading = transition::without_questions(reading).map_err(Stop::Fault)?;
    transition::transition(&reading, policy).map_err(Stop::Fault)
}

/// Queues a reminder that names the fault. Fails the agent if it has no reminders left, if its
/// visit has no budget left, or if it is a script.
fn remind(
    decision: &mut Decision<'_>,
    ended: &EndedTurn<'_>,
    session: &Session,
    fault: Fault,
    stderr: &str,
) {
    let EndedTurn { turn, agent, charge, .. } = *ended;
    // A script has no conversation in which it could be reminded.
    if turn.lane == Lane::Script || agent.visit.reminders >= decision.run.settings.reminders {
        let failure = unusable(decision, agent, fault, stderr);
        return fail(decision, agent, failure);
    }
    // The run does not contain the charge of this turn yet, so it is passed along.
    if let Some(budget) = decision.out_of_visit_budget(agent, charge.amount) {
        return fail(decision, agent, AgentFailure::VisitBudget { budget });
    }
    decision.push(Event::Reminded {
        agent: agent.id.clone(),
        fault: fault.clone(),
        reminder: agent.visit.reminders.saturating_add(1),
    });
    // Keeps `order`: the visit has waited for its place already.
    let id = turn.id.following();
    let plan = decision.plan(&id, &turn.lane, session);
    decision.push(Event::TurnQueued {
        turn: id,
        lane: turn.lane.clone(),
        prompt: Prompt::Reminder(fault),
        plan,
        order: turn.order,
        notice: None,
    });
}

/// Returns the failure of an agent that cannot be reminded of a fault.
pub(super) fn unusable(
    decision: &Decision<'_>,
    agent: &Agent,
    fault: Fault,
    stderr: &str,
) -> AgentFailure {
    // Only a user who reads the failure needs the names: a reminder lists the allowed states
    // anyway.
    let accepted = accepted(decision, agent, &fault);
    let fault = Box::new(with_states(decision, fault));
    AgentFailure::Protocol { fault, stderr: stderr.to_owned(), accepted }
}

/// Adds the names of the states to a fault about an unknown state.
fn with_states(decision: &Decision<'_>, fault: Fault) -> Fault {
    // Names; enough for most workflows, and still one paragraph of an error.
    const MOST: usize = 20;
    let Fault::Unresolved { tag, attribute, target, why } = fault else { return fault };
    let states = &decision.definition.states;
    let mut names: Vec<&str> = states.keys().take(MOST).map(StateName::as_str).collect();
    if states.len() > MOST {
        names.push("…");
    }
    let why = format!("{why} (the states are {})", names.join(", "));
    Fault::Unresolved { tag, attribute, target, why }
}

/// Returns a few tags that the agent may write, for a fault that names no alternative.
fn accepted(decision: &Decision<'_>, agent: &Agent, fault: &Fault) -> Vec<String> {
    match fault {
        Fault::NoTag(_) | Fault::Forbidden { .. } => {}
        Fault::SeveralTags { .. }
        | Fault::Malformed(_)
        | Fault::Unresolved { .. }
        | Fault::NextDiffers { .. }
        | Fault::NoDirectory { .. }
        | Fault::OtherBackend { .. }
        | Fault::NoBranch { .. }
        | Fault::Denied { .. } => return Vec::new(),
    }
    let policy = decision.visited(agent).map(|state| &state.front.policy);
    examples(&policy.cloned().unwrap_or_default().allowance(Vec::new()))
}
