//! A harness for tests: a small workflow, its run, and methods that answer for its agents.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::agent::Agent;
use crate::budget::{Cost, Micros};
use crate::decide::batch;
use crate::decide::effects;
use crate::decide::replay::{Replay, Sources};
use crate::extension::Platform;
use crate::failure::TurnFailure;
use crate::ids::{AgentId, TurnId};
use crate::protocol::{Source, TagReading};
use crate::run::effect::Effect;
use crate::run::input::Resume;
use crate::run::outcome::{Finished, Outcome, ReadReply};
use crate::run::start::Start;
use crate::run::stop::{Interruption, StopMode, StopOrigin};
use crate::run::turn_spec::{PromptSpec, TurnSpec, Work};
use crate::run::{Event, Input, Program, Record, Run, Settings};
use crate::scheduler::{Lane, TurnPhase};
use crate::time::{Span, Timestamp};
use crate::value::{BlobRef, Hash, Value};
use crate::view::asked;
use crate::workflow::{Definition, EntryPoint, SourceFile};

use super::show::Names;

/// The cost of a prompt, unless a test sets another.
pub(crate) const USUAL: Cost = Cost::Reported(Micros(100_000));

/// A run under test.
pub(crate) struct Play {
    pub(crate) run: Run,
    pub(crate) definition: Definition,
    pub(crate) program: Program,
    pub(crate) settings: Settings,
    /// Everything that happened.
    pub(crate) story: Vec<Event>,
    /// The events of the last input.
    pub(crate) last: Vec<Event>,
    pub(crate) at: Timestamp,
    cost: Cost,
    names: Names,
    stops: u32,
    edits: u32,
    /// Everything that happened, as it would be journalled.
    pub(crate) records: Vec<Record>,
    /// A replay that decides every record again; `None` once a test has changed the run by hand.
    replay: Option<Replay>,
}

/// The sources of the replay: one definition at a time, and empty large texts.
impl Sources for Play {
    type Error = Infallible;

    fn text(&self, _: &BlobRef) -> Result<String, Infallible> {
        Ok(String::new())
    }

    fn definition(&self, _: &Value) -> Result<Definition, Infallible> {
        Ok(self.definition.clone())
    }
}

/// Returns a definition of files that starts at the first of them.
pub(crate) fn workflow(files: &[(&str, &str)]) -> Definition {
    let file = |&(name, text): &(&str, &str)| SourceFile {
        name: name.to_owned(),
        bytes: text.as_bytes().into(),
        executable: false,
    };
    let start = EntryPoint::State(files[0].0.to_owned());
    let parsed = Definition::parse(files.iter().map(file).collect(), &start, Platform::Unix);
    parsed.unwrap().definition
}

/// Returns prompts without frontmatter.
pub(crate) fn prompts(names: &[&str]) -> Definition {
    workflow(&names.iter().map(|name| (*name, "text")).collect::<Vec<_>>())
}

impl Play {
    /// Creates a run with default settings, about to start.
    pub(crate) fn new(definition: Definition) -> Self {
        Self {
            run: Run::default(),
            definition,
            program: Program::States,
            settings: Settings::default(),
            story: Vec::new(),
            last: Vec::new(),
            at: Timestamp(0),
            cost: USUAL,
            names: Names::default(),
            stops: 0,
            edits: 0,
            records: Vec::new(),
            replay: Some(Replay::default()),
        }
    }

    /// Changes the settings from the start or the next resume on.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Sets the program that the run starts with.
    pub(crate) fn running(mut self, program: Program) -> Self {
        self.program = program;
        self
    }

    pub(crate) fn started(mut self) -> Self {
        self.start();
        self
    }

    pub(crate) fn start(&mut self) -> String {
        let begin = self.begin();
        self.feed(vec![begin])
    }

    /// Returns the input that starts the run.
    pub(crate) fn begin(&self) -> Input {
        let start = Start {
            run: "play".into(),
            nonce: "nonce".into(),
            workflow: "/flow".into(),
            scope: "/flow".into(),
            manifest: Value::from("v1"),
            cwd: "/home".into(),
            input: None,
            program: self.program.clone(),
            settings: self.settings.clone(),
            backends: asked(&self.settings, &self.definition),
        };
        Input::Start(Box::new(start))
    }

    /// Passes inputs to the run, and returns the events as text.
    pub(crate) fn feed(&mut self, inputs: Vec<Input>) -> String {
        let mut replay = self.replay.take().filter(|replay| *replay.run() == self.run);
        let batch = batch(&mut self.run, &self.definition, self.at, inputs);
        let record = Record { seq: 1 + self.records.len() as u64, at: self.at, steps: batch.steps };
        if let Some(replay) = &mut replay {
            self.decide_again(&record, replay);
        }
        self.replay = replay;
        self.last = record.steps.iter().flat_map(|step| step.events.clone()).collect();
        self.records.push(record);
        self.names.learn(&self.run.nonce, &self.last);
        self.story.extend(self.last.iter().cloned());
        let events = self.last.iter().map(|event| self.names.event(event));
        let refusals = batch.verdicts.into_iter().filter_map(Result::err);
        let refusals = refusals.map(|refusal| format!("refused: {refusal}"));
        events.chain(refusals).collect::<Vec<_>>().join("\n")
    }

    /// Checks that a replay of the record decides the same.
    fn decide_again(&self, record: &Record, replay: &mut Replay) {
        let line = serde_json::to_string(record).unwrap();
        let Ok(difference) = replay.record(&serde_json::from_str(&line).unwrap(), self);
        assert_eq!(difference, None);
        assert_eq!(*replay.run(), self.run);
    }

    /// Sets the cost of the next prompts.
    pub(crate) fn costs(&mut self, cost: Cost) -> &mut Self {
        self.cost = cost;
        self
    }

    /// Ends the agent's turn, or the script's, with this text.
    pub(crate) fn says(&mut self, agent: &str, text: &str) -> String {
        self.says_so(agent, text, |_| {})
    }

    /// Ends the agent's turn with this text, after `change` has edited the outcome.
    pub(crate) fn says_so(
        &mut self,
        agent: &str,
        text: &str,
        change: impl FnOnce(&mut Finished),
    ) -> String {
        let input = self.finished(agent, text, change);
        self.feed(vec![input])
    }

    /// Returns the input that ends the agent's turn, without passing it to the run.
    pub(crate) fn finished(
        &self,
        agent: &str,
        text: &str,
        change: impl FnOnce(&mut Finished),
    ) -> Input {
        let source = match self.run.scheduler.turns[&AgentId::from(agent)].lane {
            Lane::Script => Source::Script,
            Lane::Prompt(_) => self.run.program.messages(),
        };
        let store = &mut |bytes: &[u8]| Ok::<_, Infallible>(Hash::of(bytes));
        let reply = ReadReply {
            reading: TagReading::of(text, source, store).unwrap(),
            directories: BTreeMap::from([
                ("sub".to_owned(), "/home/sub".to_owned()),
                ("/tmp".to_owned(), "/tmp".to_owned()),
            ]),
            ..Value::from(text).into()
        };
        let mut finished = Finished::new(reply, self.cost_of(agent));
        change(&mut finished);
        self.settled(agent, Outcome::Finished(Box::new(finished)))
    }

    pub(crate) fn fails(&mut self, agent: &str, failure: TurnFailure) -> String {
        let cost = self.cost_of(agent);
        let input = self
            .settled(agent, Outcome::Failed { failure, cost, denied: Vec::new(), session: None });
        self.feed(vec![input])
    }

    /// Fails the turn with a transient failure.
    pub(crate) fn stumbles(&mut self, agent: &str) -> String {
        self.fails(agent, TurnFailure::Transient { why: "overloaded".into() })
    }

    /// Ends the turn because its share is used up.
    pub(crate) fn is_capped(&mut self, agent: &str) -> String {
        self.is_capped_after(agent, true)
    }

    /// Ends the turn because its share is used up, with or without progress.
    pub(crate) fn is_capped_after(&mut self, agent: &str, progressed: bool) -> String {
        let cost = self.cost_of(agent);
        let input = self.settled(
            agent,
            Outcome::Capped { cost, progressed, denied: Vec::new(), session: None },
        );
        self.feed(vec![input])
    }

    /// Crashes the owner. A new owner finds nothing of the turns in flight, and resumes.
    pub(crate) fn crashes(&mut self, progressed: bool) -> String {
        let mut inputs = self.interruptions(Interruption::Crash, progressed);
        inputs.push(self.resume_input());
        self.feed(inputs)
    }

    /// Returns the inputs that interrupt all turns in flight.
    pub(crate) fn interruptions(&self, by: Interruption, progressed: bool) -> Vec<Input> {
        let cut = |agent: &AgentId| {
            let cost = self.cost_of(agent.as_str());
            self.settled(
                agent.as_str(),
                Outcome::Interrupted { by, cost, progressed, session: None },
            )
        };
        self.run.scheduler.in_flight.iter().map(cut).collect()
    }

    /// Requests a stop, with a new key each time.
    pub(crate) fn stop(&mut self, mode: StopMode) -> String {
        self.stops += 1;
        let key = format!("k{}", self.stops);
        self.feed(vec![Input::Stop { mode, by: StopOrigin::Command, key }])
    }

    /// Stops the run, which interrupts its turns in flight.
    pub(crate) fn halt(&mut self) -> String {
        let request = self.stop(StopMode::Now);
        let cut = self.interruptions(Interruption::Stop, false);
        let cut = self.feed(cut);
        [request, cut].join("\n")
    }

    /// Resumes the run with the current settings.
    pub(crate) fn resume(&mut self) -> String {
        let input = self.resume_input();
        self.feed(vec![input])
    }

    pub(crate) fn resume_input(&self) -> Input {
        Input::Resume(Box::new(Resume { settings: self.settings.clone(), is_wake: false }))
    }

    /// Edits the states, and lets the run adopt them.
    pub(crate) fn adopt(&mut self, definition: Definition) -> String {
        let earlier = std::mem::replace(&mut self.definition, definition);
        // The replay reads the definition again only if the manifest differs.
        self.edits += 1;
        let manifest = Value::Inline(format!("v{}", 1 + self.edits));
        let verdict = self.feed(vec![Input::Adopt { manifest, changed: Vec::new() }]);
        if verdict.starts_with("refused") {
            self.definition = earlier;
            self.edits -= 1;
        }
        verdict
    }

    /// Advances the clock.
    pub(crate) fn after(&mut self, span: Span) -> String {
        self.at = self.at + span;
        self.feed(vec![Input::Due])
    }

    /// Returns the effects of the last input.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        effects(&self.run, &self.definition, &self.last)
    }

    /// Returns the turn that the last input started.
    pub(crate) fn started_turn(&self) -> TurnSpec {
        match self.effects().as_slice() {
            [Effect::Start(spec)] => spec.clone(),
            other => panic!("one turn is due, not {other:?}"),
        }
    }

    /// Returns the prompt that the last input sends.
    pub(crate) fn prompt(&self) -> PromptSpec {
        match self.started_turn().work {
            Work::Prompt(prompt) => *prompt,
            other @ (Work::Script(_) | Work::Exec(_)) => {
                panic!("a prompt is due, not {other:?}")
            }
        }
    }

    pub(crate) fn agent(&self, id: &str) -> &Agent {
        &self.run.agents[&AgentId::from(id)]
    }

    /// The names of sessions, for texts.
    pub(crate) const fn names(&self) -> &Names {
        &self.names
    }

    /// An outcome of the turn that the agent has in flight.
    pub(crate) fn settled(&self, agent: &str, outcome: Outcome) -> Input {
        let turn = &self.run.scheduler.turns[&AgentId::from(agent)];
        assert!(matches!(turn.phase, TurnPhase::Running { .. }), "{} is not in flight", turn.id);
        Input::Settled { turn: turn.id.clone(), attempt: turn.attempt, outcome }
    }

    fn cost_of(&self, agent: &str) -> Cost {
        match self.run.scheduler.turns[&AgentId::from(agent)].lane {
            Lane::Script => Cost::Free,
            Lane::Prompt(_) => self.cost,
        }
    }
}

/// Dollars and cents.
pub(crate) fn usd(text: &str) -> Micros {
    text.parse().unwrap()
}

pub(crate) fn turn(id: &str) -> TurnId {
    id.parse().unwrap()
}
