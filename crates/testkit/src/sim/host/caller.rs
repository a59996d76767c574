//! A caller who answers what a run of steps asks, whenever it is called again.

use raymond_core::ids::TurnId;
use raymond_core::run::input::{Finished, Outcome, Output, Verdict};
use raymond_core::run::{Input, Run};
use raymond_core::time::Timestamp;

use super::super::clients::{Client, Remains};
use super::super::outcome::outcome;
use super::super::speech::Place;
use super::{Host, Violation};
use crate::steps::drive::question_of;
use raymond_core::budget::Cost;
use raymond_core::crayfish::work::key_of;
use raymond_core::protocol::Source;
use serde_json::Value as Json;

impl Host {
    /// The outputs for some of the questions that wait, at least one; none when the machine went down
    /// over it.
    pub(super) fn outputs(&mut self, run: &Run) -> Result<Option<Vec<Input>>, Violation> {
        let mut inputs = Vec::new();
        let asks: Vec<TurnId> = run.desk.asks.keys().cloned().collect();
        let certain = self.reality.borrow_mut().dice.index(asks.len().max(1));
        for (index, ask) in asks.into_iter().enumerate() {
            if index != certain && self.reality.borrow_mut().dice.percent(40) {
                continue;
            }
            let Some((key, attempt)) = self.asked(run, &ask)? else { continue };
            let said = {
                let reality = self.reality.borrow();
                let place = Place {
                    agent: ask.agent.as_str(),
                    state: &key,
                    count: 1,
                    turn: attempt,
                    // Whoever calls knows no trouble of clients.
                    attempt: 2,
                    heard: 0,
                    backend: "",
                    cap: None,
                };
                reality.voice.speech(place, Timestamp(0))
            };
            let (cost, progressed) = (Cost::Free, false);
            let client = Client {
                speech: said,
                cwd: String::new(),
                source: Source::Message,
                session: None,
                remains: Remains { cost, progressed },
                cancelled: false,
                adoptions: 0,
            };
            let Ok(Outcome::Finished(finished)) = outcome(&client, &self.blobs()) else {
                self.text_is_lost(&(ask, attempt));
                return Ok(None);
            };
            let Finished { text, read, verdict, .. } = *finished;
            let verdict = verdict.unwrap_or(Verdict::Valid);
            inputs.push(Input::Output(Box::new(Output { ask, attempt, text, verdict, read })));
        }
        Ok(Some(inputs))
    }

    /// The key and the attempt that a question is about.
    fn asked(&self, run: &Run, ask: &TurnId) -> Result<Option<(String, u32)>, Violation> {
        let agent = run.agents.get(&ask.agent).and_then(key_of);
        let Some((key, flow)) = agent.zip(run.flow.as_deref()) else { return Ok(None) };
        let Some(attempt) = flow.attempts.get(&key).copied() else { return Ok(None) };
        let work = self.definition(run).work.as_deref();
        let message = work.and_then(|work| work.message(flow, &ask.agent, &key, &Json::Null));
        let message = message.ok_or_else(|| Violation(format!("{ask} asks nothing")))?;
        let question = question_of(&message, attempt)?;
        self.reality.borrow_mut().asked.push(format!("{key} {attempt} {question}"));
        Ok(Some((key.to_string(), attempt)))
    }
}
