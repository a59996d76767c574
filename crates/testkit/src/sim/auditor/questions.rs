//! The auditor's rules about questions to people: each is closed once, its agent has no turn
//! meanwhile, and it continues only when the question is closed.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::ids::{AgentId, TurnId};
use raymond_core::protocol::TagName;
use raymond_core::run::Event;
use raymond_core::time::Timestamp;

use crate::violation::Violation;

#[derive(Debug, Clone, Default)]
pub(super) struct Questions {
    /// All questions of states.
    asked: BTreeSet<TurnId>,
    /// The open questions, with the times at which they expire.
    open: BTreeMap<AgentId, OpenSince>,
    /// Agents whose question is closed, until they continue.
    closed: BTreeSet<AgentId>,
}

#[derive(Debug, Clone)]
struct OpenSince {
    ask: TurnId,
    due: Option<Timestamp>,
}

impl Questions {
    pub(super) fn event(&mut self, at: Timestamp, event: &Event) -> Result<(), Violation> {
        match event {
            Event::AgentAsks { agent, ask, .. } => {
                let open = OpenSince { ask: ask.clone(), due: None };
                must!(self.open.insert(agent.clone(), open).is_none(), "{agent} asks twice");
                self.closed.remove(agent);
                self.asked.insert(ask.clone());
            }
            Event::Asked { ask, due, .. } => {
                if let Some(open) = self.open.get_mut(&ask.agent) {
                    open.due = *due;
                }
            }
            // The caller of a document answers its questions.
            Event::AskAnswered { ask, .. } | Event::AskExpired { ask }
                if !self.asked.contains(ask) => {}
            Event::AskAnswered { ask, .. } => self.close(ask)?,
            Event::AskExpired { ask } => {
                let due = self.open.get(&ask.agent).and_then(|open| open.due);
                must!(due.is_none_or(|due| due <= at), "the question {ask} expires too early");
                self.close(ask)?;
            }
            Event::TurnStarted { turn, .. } => {
                let asks = self.open.contains_key(&turn.agent);
                must!(!asks, "{turn} starts, but its agent asks");
            }
            Event::Moved { agent, tag, .. } => {
                must!(!self.open.contains_key(agent), "{agent} continues without an answer");
                let closed = self.closed.remove(agent);
                must!(*tag != TagName::Ask || closed, "{agent} continues without a question");
            }
            Event::AgentFailed { agent, .. } => {
                must!(!self.open.contains_key(agent), "{agent} fails while it asks");
            }
            Event::AgentCancelled { agent, .. } | Event::AgentCancelling { agent, .. } => {
                self.open.remove(agent);
                self.closed.remove(agent);
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, ask: &TurnId) -> Result<(), Violation> {
        let open = self.open.remove(&ask.agent);
        let is_open = open.is_some_and(|open| open.ask == *ask);
        must!(is_open, "the question {ask} is closed, but it is not open");
        self.closed.insert(ask.agent.clone());
        Ok(())
    }
}
