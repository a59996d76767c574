//! Ends the wait for the answer of a person: with the answer, or when its time is up.
//!
//! How an agent is parked with its question is in [`super::tags`]. A question of a document is
//! answered by its caller: see [`crate::steps`].

use crate::agent::{AgentStatus, Asking, PendingTransition};
use crate::ids::{AgentId, TurnId};
use crate::protocol::{AskTimeout, Otherwise, Question, Tag};
use crate::run::Run;
use crate::run::decision::Decision;
use crate::run::event::Event;
use crate::value::Value;

use super::waking;

/// The name that answers an expired question with its default.
const TIMEOUT: &str = "timeout";

/// Returns the question of an agent that waits for this answer.
fn asking<'r>(run: &'r Run, ask: &TurnId) -> Option<(&'r Asking, &'r Question)> {
    match &run.agents.get(&ask.agent)?.status {
        AgentStatus::Asking(asking) if asking.ask == *ask => {
            Some((asking, asking.kept.question()?))
        }
        AgentStatus::Live
        | AgentStatus::Held(_)
        | AgentStatus::Parked(_)
        | AgentStatus::Joining(_)
        | AgentStatus::Asking(_)
        | AgentStatus::Cancelling(_)
        | AgentStatus::Failed { .. } => None,
    }
}

/// Returns the question that an agent asks a person.
pub(crate) fn question<'r>(run: &'r Run, ask: &TurnId) -> Option<&'r Question> {
    asking(run, ask).map(|(_, question)| question)
}

/// Lets an agent continue with the answer to its question.
pub(crate) fn answered(decision: &mut Decision<'_>, agent: &AgentId, answer: Value) {
    let Some(AgentStatus::Asking(asking)) =
        decision.run.agents.get(agent).map(|agent| &agent.status)
    else {
        return;
    };
    if let Some(question) = asking.kept.question() {
        proceed(decision, asking, &question.next, answer);
    }
}

/// Ends a question whose time is up: with its default answer, or at its other state.
pub(crate) fn expire(decision: &mut Decision<'_>, ask: &TurnId) {
    let Some((waiting, Question { next, timeout: Some(timeout), .. })) = asking(decision.run, ask)
    else {
        return;
    };
    let AskTimeout { otherwise, .. } = timeout;
    let ask = ask.clone();
    match otherwise {
        Otherwise::Default(answer) => {
            let value = Value::Inline(answer.clone());
            let key = format!("expired_{ask}");
            decision.push(Event::AskAnswered {
                ask,
                value: value.clone(),
                by: TIMEOUT.to_owned(),
                key,
            });
            proceed(decision, waiting, next, value);
        }
        Otherwise::Then(then) => {
            decision.push(Event::AskExpired { ask });
            proceed(decision, waiting, then, Value::Inline(String::new()));
        }
    }
}

/// Takes the transition of an agent whose question is closed.
fn proceed(decision: &mut Decision<'_>, asking: &Asking, next: &str, answer: Value) {
    let Some(agent) = decision.run.agents.get(&asking.ask.agent) else { return };
    let tags = vec![Tag::Answered { next: next.to_owned(), answer }];
    let kept = PendingTransition { tags, directories: asking.kept.directories.clone() };
    waking::take_kept(decision, agent, &kept);
}
