//! Takes `ask`: its agent is parked until a person has answered.
//!
//! Everything that can be refused is refused at once, as for a wait for a time: see
//! [`super::later`]. The end of the wait is decided in [`crate::machine::asking`].

use crate::ids::{StateName, TurnId};
use crate::protocol::{AskTimeout, Otherwise, Question, Tag, TagName};
use crate::run::decision::Decision;
use crate::run::event::{Event, StackChange};
use crate::run::warning::Warning;
use crate::value::Value;

use super::{resolve_follower, resolve_then};
use crate::machine::blocked::Blocked;
use crate::machine::limits::within_limits;
use crate::machine::transition_context::TransitionContext;

pub(super) fn take(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    question: &Question,
) -> Result<(), Blocked> {
    let checked = |state: StateName| {
        context.check(decision, TagName::Ask, None, Some(&state))?;
        // Limits count when the answer leads there.
        context.check_continues(decision, TagName::Ask, &state)?;
        // The full name, for readers of a parked agent.
        Ok(state.to_string())
    };
    let next = checked(resolve_follower(decision, TagName::Ask, &question.next)?)?;
    let timeout = match &question.timeout {
        Some(AskTimeout { after, otherwise: Otherwise::Then(then) }) => {
            let then = checked(resolve_then(decision, TagName::Ask, then)?)?;
            Some(AskTimeout { after: *after, otherwise: Otherwise::Then(then) })
        }
        timeout => timeout.clone(),
    };
    let due = question.due(decision.at);
    let (agent, visit) = (context.agent.id.clone(), &context.agent.visit);
    let ask = TurnId { agent: agent.clone(), visit: visit.number, turn: visit.turn };
    let text = question.text.clone();
    let kept = context.keep(&[Tag::Ask(Question { next, timeout, ..question.clone() })]);
    decision.push(Event::AgentAsks { agent, kept, ask: ask.clone(), at: decision.at });
    decision.push(Event::Asked { ask, question: text, due });
    let prepared = decision.run.settings.answers.of(context.agent);
    if let Some(answer) = prepared.filter(|answer| question.accepted(answer).is_none()) {
        let (answer, options) = (answer.to_owned(), question.options.clone());
        decision.warn(&context.agent.id, Warning::AnswerIsNoOption { answer, options });
    }
    Ok(())
}

/// Takes the transition, because its wait is over.
pub(super) fn answered(
    decision: &mut Decision<'_>,
    context: TransitionContext<'_>,
    next: &str,
    answer: Value,
) -> Result<(), Blocked> {
    let state = resolve_follower(decision, TagName::Ask, next)?;
    context.check(decision, TagName::Ask, None, Some(&state))?;
    let to = within_limits(decision, context.agent, state).map_err(Blocked::Failed)?;
    context.check_destination(decision, TagName::Ask, &to)?;
    decision.push(context.moved(TagName::Ask, StackChange::Keep, context.session, &to));
    context.enter(decision, &to, Some(answer), context.session);
    Ok(())
}
