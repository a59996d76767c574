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
/// The name that answers from a file of replies.
const REPLIES: &str = "replies";

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
    let Some((waiting, Question { timeout: Some(timeout), .. })) = asking(decision.run, ask) else {
        return;
    };
    let AskTimeout { otherwise, .. } = timeout;
    let ask = ask.clone();
    match otherwise {
        Otherwise::Default(answer) => {
            let key = format!("expired_{ask}");
            answer_without_person(decision, waiting, answer.clone(), TIMEOUT, key);
        }
        Otherwise::Then(then) => {
            decision.push(Event::AskExpired { ask });
            proceed(decision, waiting, then, Value::Inline(String::new()));
        }
    }
}

/// Answers a question for which the replies have an answer.
pub(crate) fn advance(mut decision: Decision<'_>) -> Option<Vec<Event>> {
    let run = decision.run;
    if run.settings.answers.is_empty() {
        return None;
    }
    let (waiting, answer) = run.scheduler.asks.keys().find_map(|ask| {
        let (waiting, question) = asking(run, ask)?;
        let answer = run.settings.answers.of(run.agents.get(&ask.agent)?)?;
        Some((waiting, question.accepted(answer)?.to_owned()))
    })?;
    let key = format!("{REPLIES}_{}", waiting.ask);
    answer_without_person(&mut decision, waiting, answer, REPLIES, key);
    Some(decision.events)
}

/// Records an answer that no person gave, and takes the transition.
fn answer_without_person(
    decision: &mut Decision<'_>,
    waiting: &Asking,
    answer: String,
    by: &str,
    key: String,
) {
    let Some(question) = waiting.kept.question() else { return };
    let (ask, value) = (waiting.ask.clone(), Value::Inline(answer));
    decision.push(Event::AskAnswered { ask, value: value.clone(), by: by.to_owned(), key });
    proceed(decision, waiting, &question.next, value);
}

/// Takes the transition of an agent whose question is closed.
fn proceed(decision: &mut Decision<'_>, asking: &Asking, next: &str, answer: Value) {
    let Some(agent) = decision.run.agents.get(&asking.ask.agent) else { return };
    let tags = vec![Tag::Answered { next: next.to_owned(), answer }];
    let kept = PendingTransition { tags, directories: asking.kept.directories.clone() };
    waking::take_kept(decision, agent, &kept);
}
