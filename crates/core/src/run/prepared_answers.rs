//! Answers that a file of replies gives instead of a person, so that a rehearsal ends by itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::ids::StateName;

/// Answers by the state that asks: its stem or its file name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PreparedAnswers(pub BTreeMap<String, StateAnswers>);

/// The answers to the questions of one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// Unambiguous without a tag: one variant is a JSON string, the other a list.
#[serde(untagged)]
pub enum StateAnswers {
    Every(String),
    /// The first is for the first visit.
    ByVisit(Vec<String>),
}

impl PreparedAnswers {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the answer to a question that an agent asks in its state.
    pub fn of(&self, agent: &Agent) -> Option<&str> {
        let state = agent.visit.location.state()?;
        self.find(state, agent.visits.get(state).copied().unwrap_or(0))
    }

    /// Returns the answer to the question of a visit, counted from 1.
    fn find(&self, state: &StateName, visit: u32) -> Option<&str> {
        let answers = self.0.get(state.as_str()).or_else(|| self.0.get(state.stem()))?;
        match answers {
            StateAnswers::Every(answer) => Some(answer),
            StateAnswers::ByVisit(answers) => {
                let index = usize::try_from(visit).ok()?.checked_sub(1)?;
                answers.get(index).map(String::as_str)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_found_by_state_and_visit() {
        let every = StateAnswers::Every("yes".into());
        let list = StateAnswers::ByVisit(vec!["a".into(), "b".into()]);
        let answers = [("A", every.clone()), ("B", list), ("B.sh", every)];
        let answers = PreparedAnswers(answers.map(|(name, of)| (name.to_owned(), of)).into());
        let check = |state: &str, visit, expected| {
            assert_eq!(answers.find(&StateName::new(state), visit), expected, "{state} {visit}");
        };
        check("A.md", 7, Some("yes"));
        check("B.md", 1, Some("a"));
        check("B.md", 2, Some("b"));
        check("B.md", 3, None);
        check("B.md", 0, None);
        check("B.sh", 3, Some("yes"));
        check("C.md", 1, None);
        let text = serde_json::to_string(&answers).unwrap();
        assert_eq!(serde_json::from_str::<PreparedAnswers>(&text).unwrap(), answers);
    }
}
