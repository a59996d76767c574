//! A simulated caller, which answers the questions of a run of steps with each call.

use raymond_core::crayfish::call::{Call, Output};
use raymond_core::crayfish::stored::Stored;
use raymond_core::crayfish::verdict::Verdict;
use raymond_core::crayfish::{StepKey, ask};
use raymond_core::ids::TurnId;
use raymond_core::protocol::Source;
use raymond_core::run::outcome::{Outcome, ReadReply};
use raymond_core::run::{Input, Run};
use raymond_core::time::Timestamp;

use super::super::client_cost::ClientCost;
use super::super::clients::Client;
use super::super::outcome::outcome;
use super::super::reply::TurnRequest;
use super::{Host, Violation};
use crate::step_trace::{QuestionSettings, question_of};

impl Host {
    /// Builds a call with outputs for at least one open question. Sometimes it repeats the output
    /// of an earlier attempt, which must change nothing. `None` if the machine went down.
    pub(super) fn outputs(&mut self, run: &Run) -> Result<Option<Vec<Input>>, Violation> {
        let mut call = Call::default();
        let asks: Vec<TurnId> = run.scheduler.asks.keys().cloned().collect();
        // Without one certain answer a call could bring nothing, and the run would never end.
        let certain = self.world.borrow_mut().dice.index(asks.len().max(1));
        for (index, ask) in asks.into_iter().enumerate() {
            let Some((key, attempt)) = asked(run, &ask) else { continue };
            // Both are drawn for every question, so that the answer to one question does not change
            // the numbers that decide the others.
            let (left_out, stale) = {
                let dice = &mut self.world.borrow_mut().dice;
                (dice.percent(40), dice.percent(30))
            };
            if index != certain && left_out {
                continue;
            }
            // Under the plain key with the earlier attempt, because a late answer arrives like
            // that: a host repeats the outputs of its earlier calls.
            if stale && attempt > 1 {
                let Some(earlier) = self.output(&ask, &key, attempt - 1) else { return Ok(None) };
                call.outputs.insert(key.to_string(), earlier);
                call.attempts.insert(key.clone(), attempt - 1);
            }
            // Only answered questions are noted, and the reference answers every question.
            self.note_question(run, &ask, &key, attempt)?;
            let Some(output) = self.output(&ask, &key, attempt) else { return Ok(None) };
            call.outputs.insert(format!("{key}:{attempt}"), output);
        }
        let nothing = call == Call::default();
        Ok(Some(if nothing { Vec::new() } else { vec![Input::Call(Box::new(call))] }))
    }

    /// Returns the caller's output; `None` if it cannot be stored.
    fn output(&mut self, ask: &TurnId, key: &StepKey, attempt: u32) -> Option<Output> {
        let request = TurnRequest {
            agent: ask.agent.as_str(),
            state: &key.to_string(),
            count: 1,
            turn: attempt,
            // Only first attempts meet failures of a client, and a caller has no client.
            attempt: 2,
            finished: 0,
            backend: "",
            cap: None,
        };
        // The time matters only for usage limits, which a caller does not meet.
        let reply = self.world.borrow().replies.reply(request, Timestamp(0));
        let client = Client {
            reply,
            cwd: String::new(),
            source: Source::Message,
            session: None,
            client_cost: ClientCost::FREE,
            progressed: false,
            cancelled: false,
            adoptions: 0,
        };
        let Ok(Outcome::Finished(finished)) = outcome(&client, &self.blobs()) else {
            // A caller's output is stored before the call is recorded, like the text of a client.
            self.lose_text(&(ask.clone(), attempt));
            return None;
        };
        let ReadReply { text: value, read, verdict, .. } = finished.reply;
        let stored = Stored { value, ok: true, read };
        Some(Output { stored, verdict: verdict.unwrap_or(Verdict::Valid) })
    }

    fn note_question(
        &self,
        run: &Run,
        question: &TurnId,
        key: &StepKey,
        attempt: u32,
    ) -> Result<(), Violation> {
        let work = self.definition(run).steps.as_deref().zip(run.program.steps());
        let request = work.and_then(|(work, flow)| work.request(flow, &question.agent, key));
        let request = request.ok_or_else(|| Violation(format!("{question} asks nothing")))?;
        let settings = QuestionSettings::of_request(&request);
        let text = question_of(&ask::message(&request), attempt, &settings)?;
        self.world.borrow_mut().asked.push(format!("{key} {attempt} {text}"));
        Ok(())
    }
}

/// Returns the key and the attempt of a question.
fn asked(run: &Run, ask: &TurnId) -> Option<(StepKey, u32)> {
    let key = run.agents.get(&ask.agent)?.visit.location.step()?.clone();
    let attempt = run.program.steps()?.attempts.get(&key).copied()?;
    Some((key, attempt))
}
