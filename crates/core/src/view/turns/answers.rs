//! The answers of callers: outputs of agent steps that ran no turn.
//!
//! A fold of the same events as the turns. The output comes from the call that brought it; its fate
//! comes from the events of its step.

use std::collections::BTreeMap;

use crate::budget::{Basis, Charge, Micros};
use crate::crayfish::call::Output;
use crate::crayfish::key::RequestId;
use crate::crayfish::state::StepEvent;
use crate::crayfish::verdict::Verdict;
use crate::crayfish::{Key, Problem};
use crate::ids::{AgentId, TurnId};
use crate::run::Event;
use crate::scheduler::Lane;
use crate::time::Timestamp;
use crate::value::Value;

use crate::view::turns::{Attempt, End, How, Sent};

/// The outcome of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Taken,
    Invalid(Vec<Problem>),
    Stale,
}

impl Answer {
    pub(super) fn words(&self) -> String {
        match self {
            Self::Taken => "answered by the caller".to_owned(),
            Self::Invalid(errors) => {
                let first = errors.first().map(|error| format!(": {error}")).unwrap_or_default();
                let more = match errors.len() {
                    0 | 1 => String::new(),
                    several => format!(" (and {} more)", several - 1),
                };
                format!("answered by the caller, not valid{first}{more}")
            }
            Self::Stale => "answered by the caller, for an attempt that is over".to_owned(),
        }
    }
}

/// The turn that would have asked, the key of the step, and the attempt.
type Question = (TurnId, Key, u32);

#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    /// The outputs of the last call, by the name they were sent under.
    outputs: BTreeMap<String, Output>,
    turns: BTreeMap<AgentId, TurnId>,
    asked: BTreeMap<AgentId, (Key, u32)>,
    /// Requests that were just answered; their steps may already ask for the next attempt.
    answered: BTreeMap<AgentId, Question>,
}

impl Answers {
    /// Folds in one event, and returns an answer with its text if the event is one.
    pub(super) fn note(&mut self, at: Timestamp, event: &Event) -> Option<(Attempt, Value)> {
        if let Event::VisitEntered { agent, visit, .. } = event {
            let turn = TurnId { agent: agent.clone(), visit: *visit, turn: 1 };
            self.turns.insert(agent.clone(), turn);
        } else if let Event::Asked { ask, .. } = event {
            self.turns.insert(ask.agent.clone(), ask.clone());
        } else if let Event::AskAnswered { ask, key, .. } = event {
            if let Ok(RequestId { key, attempt, .. }) = key.parse() {
                self.answered.insert(ask.agent.clone(), (ask.clone(), key, attempt));
            }
        } else if let Event::Stepped { agent, fact } = event {
            return self.step(at, agent, fact);
        }
        None
    }

    fn step(
        &mut self,
        at: Timestamp,
        agent: &AgentId,
        fact: &StepEvent,
    ) -> Option<(Attempt, Value)> {
        if let StepEvent::Called(call) = fact {
            self.outputs.clone_from(&call.outputs);
        } else if let StepEvent::Asks { key, attempt, .. } = fact {
            self.asked.insert(agent.clone(), (key.clone(), *attempt));
        } else if let StepEvent::Takes { name } = fact {
            let output = self.outputs.get(name)?.clone();
            let answer = match output.verdict {
                Verdict::Valid => Answer::Taken,
                Verdict::Invalid(errors) => Answer::Invalid(errors),
            };
            let question = self.answered.remove(agent).or_else(|| self.question(agent))?;
            return Some((attempt(at, question, answer), output.stored.value));
        } else if let StepEvent::Ignores { name } = fact {
            let output = self.outputs.get(name)?;
            let question = self.question(agent)?;
            return Some((attempt(at, question, Answer::Stale), output.stored.value.clone()));
        }
        None
    }

    fn question(&self, agent: &AgentId) -> Option<Question> {
        let (key, attempt) = self.asked.get(agent)?.clone();
        Some((self.turns.get(agent)?.clone(), key, attempt))
    }
}

fn attempt(at: Timestamp, (turn, key, number): Question, answer: Answer) -> Attempt {
    let charge = Charge { amount: Micros::ZERO, basis: Basis::Free };
    let end = Some(End { at, charge, model: None, how: How::Answered(answer) });
    let (lane, sent) = (Lane::Script, Sent::Body);
    Attempt { turn, number, location: key.into(), visit: 1, lane, sent, started: at, end }
}
