//! Runs a document in the real core, without driver and journal. Turns end in any order.
//!
//! There is no disk and no clock, so one test can run many documents. `crashes` runs the same
//! documents on a simulated machine, to test recovery.

use crate::step_trace::{QuestionSettings, call_of, question_of, trace_of};
use std::collections::BTreeSet;
use std::sync::Arc;

use raymond_core::budget::Cost;
use raymond_core::crayfish::call::{Call as CallInput, Output};
use raymond_core::crayfish::render::ExecCall;
use raymond_core::crayfish::stored::{ParsedJson, Stored};
use raymond_core::crayfish::verdict::Verdict;
use raymond_core::crayfish::{Problem, StepKey, StepsDefinition, ask};
use raymond_core::decide::batch;
use raymond_core::decide::effects;
use raymond_core::extension::Platform;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::{AgentId, BackendName, TurnId};
use raymond_core::run::input::Resume;
use raymond_core::run::outcome::{Finished, Outcome, ReadReply};
use raymond_core::run::program::AnswerSource;
use raymond_core::run::start::Start;
use raymond_core::run::turn_spec::{TurnHeader, TurnSpec, Work};
use raymond_core::run::{Effect, Ending, Event, Input, Phase, Program, Run, Settings};
use raymond_core::time::Timestamp;
use raymond_core::value::Value;
use raymond_core::workflow::definition::steps::{FILE, pinned};
use raymond_core::workflow::{Definition, EntryPoint, SourceFile};
use serde_json::{Map, Value as Json, json};

use super::random_replies::RandomReplies;
use crate::dice::Dice;
use crate::step_trace::{ProgramResult, StepTrace};
use crate::violation::Violation;

/// More events than any of these runs needs; a run that takes more does not end.
const MAX_STEPS: usize = 100_000;

/// Returns a document as a pinned file.
pub fn file(document: &Json, vars: &Map<String, Json>) -> SourceFile {
    // As the engine does: the caller's values replace the defaults of the document.
    let mut all = document["vars"].as_object().cloned().unwrap_or_default();
    all.extend(vars.clone());
    let text = pinned(document, &all).into_bytes();
    SourceFile { name: FILE.to_owned(), bytes: text.into(), executable: false }
}

pub fn definition(document: &Json, vars: &Map<String, Json>) -> Result<Definition, Violation> {
    let parsed = Definition::parse(vec![file(document, vars)], &EntryPoint::Steps, Platform::Unix);
    parsed.map(|parsed| parsed.definition).map_err(|wrong| Violation(format!("{wrong:?}")))
}

pub fn settings() -> Settings {
    Settings {
        budget: None,
        max_parallel: 3,
        backend: BackendName::new("scripted"),
        ..Settings::default()
    }
}

/// Runs a document in the core.
pub fn drive(
    definition: Definition,
    replies: RandomReplies,
    answers: AnswerSource,
    order: Dice,
) -> Result<StepTrace, Violation> {
    let mut drive = CoreDriver {
        definition,
        replies,
        dice: order,
        program: Program::steps_of(answers),
        settings: settings(),
        run: Run::default(),
        in_flight: Vec::new(),
        trace: StepTrace::default(),
    };
    drive.start()?;
    for _ in 0..MAX_STEPS {
        match drive.run.phase {
            Phase::Ended(Ending::NeedsCaller) => drive.call()?,
            Phase::Ended(_) => {
                let StepTrace { ran, asked, .. } = std::mem::take(&mut drive.trace);
                let steps = drive.steps_program()?;
                return Ok(StepTrace { ran, asked, ..trace_of(&drive.run, steps)? });
            }
            Phase::Unborn | Phase::Open | Phase::Stopping(_) => drive.settle()?,
        }
    }
    Err(Violation("the run does not end".to_owned()))
}

struct CoreDriver {
    definition: Definition,
    replies: RandomReplies,
    dice: Dice,
    program: Program,
    settings: Settings,
    run: Run,
    /// Started turns, with their predetermined outcomes.
    in_flight: Vec<(TurnId, u32, Outcome)>,
    trace: StepTrace,
}

impl CoreDriver {
    fn start(&mut self) -> Result<(), Violation> {
        let start = Start {
            run: "r".into(),
            nonce: "n".into(),
            workflow: "/flow".into(),
            scope: "/flow".into(),
            manifest: Value::from("v1"),
            cwd: "/".into(),
            input: None,
            program: self.program.clone(),
            settings: self.settings.clone(),
            backends: BTreeSet::new(),
        };
        self.feed(vec![Input::Start(Box::new(start))])
    }

    fn feed(&mut self, inputs: Vec<Input>) -> Result<(), Violation> {
        // The time never advances, because this driver tests no waits: a retry of a program is due
        // at once.
        let batch = batch(&mut self.run, &self.definition, Timestamp(0), inputs);
        if let Some(refusal) = batch.verdicts.into_iter().find_map(Result::err) {
            return Err(Violation(format!("refused: {refusal}")));
        }
        let events: Vec<Event> = batch.steps.into_iter().flat_map(|step| step.events).collect();
        for effect in effects(&self.run, &self.definition, &events) {
            self.begin(effect)?;
        }
        Ok(())
    }

    fn begin(&mut self, effect: Effect) -> Result<(), Violation> {
        match effect {
            Effect::Start(TurnSpec { header, work: Work::Exec(exec) }) => {
                let ran = self.run_program(&header, &exec.call);
                self.in_flight.push((header.turn, header.attempt, ran));
            }
            Effect::Start(TurnSpec { header, work: Work::Prompt(prompt) }) => {
                let settings = QuestionSettings::of_prompt(&prompt);
                let (text, read, verdict) =
                    self.answer_question(&header.turn.agent, Some(settings))?;
                let verdict = Some(verdict);
                let reply = ReadReply { read, verdict, ..text.into() };
                let outcome = Outcome::Finished(Box::new(Finished::new(reply, Cost::Free)));
                self.in_flight.push((header.turn, header.attempt, outcome));
            }
            Effect::Finish if self.in_flight.is_empty() => {}
            other => return Err(Violation(format!("unexpected effect {other:?}"))),
        }
        Ok(())
    }

    /// Ends one of the turns in flight.
    fn settle(&mut self) -> Result<(), Violation> {
        if self.in_flight.is_empty() {
            // Only a retry can be left, which is due at once.
            return self.feed(vec![Input::Due]);
        }
        let index = self.dice.index(self.in_flight.len());
        // A random one, because the result of a document must not depend on the order of outcomes.
        let (turn, attempt, outcome) = self.in_flight.swap_remove(index);
        self.feed(vec![Input::Settled { turn, attempt, outcome }])
    }

    /// Answers at least one of the open questions, under any of its names.
    fn call(&mut self) -> Result<(), Violation> {
        let mut call = CallInput::default();
        let asks: Vec<TurnId> = self.run.scheduler.asks.keys().cloned().collect();
        let certain = self.dice.index(asks.len().max(1));
        for (index, ask) in asks.into_iter().enumerate() {
            if index != certain && self.dice.percent(40) {
                continue;
            }
            let (value, read, verdict) = self.answer_question(&ask.agent, None)?;
            let (key, attempt) = (self.key(&ask.agent)?, self.attempt_of(&ask.agent)?);
            let output = Output { stored: Stored { value, ok: true, read }, verdict };
            // Both forms that the tool accepts: the id of a request, or a key with its attempt.
            if self.dice.percent(50) {
                call.outputs.insert(format!("{key}:{attempt}"), output);
            } else {
                call.outputs.insert(key.to_string(), output);
                call.attempts.insert(key, attempt);
            }
        }
        let resume = Resume { settings: self.settings.clone(), is_wake: false };
        // The resume comes first, as in the engine, because it opens the ended run again.
        let inputs = vec![Input::Resume(Box::new(resume)), Input::Call(Box::new(call))];
        self.feed(inputs)
    }

    fn steps_program(&self) -> Result<&StepsDefinition, Violation> {
        self.definition.steps.as_deref().ok_or_else(|| Violation("no document".to_owned()))
    }

    fn key(&self, agent: &AgentId) -> Result<StepKey, Violation> {
        let key = self.run.agents.get(agent).and_then(|agent| agent.visit.location.step().cloned());
        key.ok_or_else(|| Violation(format!("{agent} is at no step")))
    }

    fn attempt_of(&self, agent: &AgentId) -> Result<u32, Violation> {
        let key = self.key(agent)?;
        let attempts = self.run.program.steps().map(|flow| &flow.attempts);
        let attempt = attempts.and_then(|attempts| attempts.get(&key)).copied();
        attempt.ok_or_else(|| Violation(format!("{key} asks for no attempt")))
    }

    fn run_program(&mut self, header: &TurnHeader, call: &ExecCall) -> Outcome {
        let (key, attempt) = (header.location.to_string(), header.attempt);
        let (mode, call) = (call.io.mode(), call_of(call));
        self.trace.ran.insert(format!("{key} {attempt} {call}"));
        let (left, again) = match self.replies.exec(mode, &key, attempt, &call) {
            ProgramResult::Succeeded(result) => {
                let stored = Stored::inline(result, true);
                let reply = ReadReply { read: stored.read, ..stored.value.into() };
                return Outcome::Finished(Box::new(Finished::new(reply, Cost::Free)));
            }
            ProgramResult::Failed(result) => (result, true),
            ProgramResult::NotRun(result) => (result, false),
        };
        let result = Stored::inline(left, false);
        let failure = TurnFailure::Step { why: "as planned".to_owned(), result, again };
        Outcome::Failed { failure, cost: Cost::Free, denied: Vec::new(), session: None }
    }

    /// Returns the answer to a question of a step; `settings` are those of its prompt, if a backend
    /// answers.
    fn answer_question(
        &mut self,
        agent: &AgentId,
        settings: Option<QuestionSettings>,
    ) -> Result<(Value, ParsedJson, Verdict), Violation> {
        let (key, attempt) = (self.key(agent)?, self.attempt_of(agent)?);
        let flow = self.run.program.steps();
        let request = flow.and_then(|flow| self.steps_program().ok()?.request(flow, agent, &key));
        let request = request.ok_or_else(|| Violation(format!("{key} asks nothing")))?;
        let message = ask::message(&request);
        let settings = settings.unwrap_or_else(|| QuestionSettings::of_request(&request));
        let (key, question) = (key.to_string(), question_of(&message, attempt, &settings)?);
        self.trace.asked.insert(format!("{key} {attempt} {question}"));
        let (answer, valid) = self.replies.answer(&key, attempt);
        let wrong = || vec![Problem::of_value("/n", "as planned")];
        let verdict = if valid { Verdict::Valid } else { Verdict::Invalid(wrong()) };
        let json = json!({ "ok": true, "json": answer });
        Ok((json.to_string().as_str().into(), ParsedJson(Some(Arc::new(json))), verdict))
    }
}
