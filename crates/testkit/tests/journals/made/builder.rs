//! Builds a journal from inputs, with the records that the driver would write.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_core::budget::{Cost, Micros};
use raymond_core::crayfish::stored::ParsedJson;
use raymond_core::decide::batch;
use raymond_core::extension::Platform;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::{AgentId, BackendName};
use raymond_core::protocol::{Source, TagReading};
use raymond_core::run::input::Resume;
use raymond_core::run::outcome::{Finished, Outcome, ReadReply};
use raymond_core::run::program::AnswerSource;
use raymond_core::run::start::Start;
use raymond_core::run::stop::{Interruption, StopMode, StopOrigin};
use raymond_core::run::{DiscardedTail, Input, Program, Record, Run, Settings, apply};
use raymond_core::scheduler::Lane;
use raymond_core::time::{Span, Timestamp};
use raymond_core::value::Value;
use raymond_core::workflow::{Definition, EntryPoint, SourceFile};
use raymond_engine::observe;
use raymond_engine::pin::Pin;
use raymond_store::Blobs;
use raymond_testkit::steps::drive;
use serde_json::{Map, Value as Json};

pub(crate) struct JournalBuilder {
    pub(crate) run: Run,
    pub(crate) program: Program,
    pub(crate) settings: Settings,
    pub(crate) records: Vec<Record>,
    pub(crate) blobs: Blobs,
    definition: Definition,
    manifest: Value,
    pub(crate) at: Timestamp,
    stops: u32,
}

/// Names and texts of the files in a scope.
type Files<'f> = &'f [(&'f str, &'f str)];

impl JournalBuilder {
    /// Prepares a run of these files.
    pub(crate) fn of(files: Files<'_>, entry: &EntryPoint) -> Self {
        let blobs = super::blobs();
        let (definition, manifest) = pinned(files, entry, &blobs);
        Self {
            run: Run::default(),
            program: Program::States,
            settings: Settings { backend: BackendName::new("claude"), ..Settings::default() },
            records: Vec::new(),
            blobs,
            definition,
            manifest,
            at: Timestamp(1_790_000_000_000),
            stops: 0,
        }
    }

    /// Prepares a run of states, which starts at the first one.
    pub(crate) fn states(files: Files<'_>) -> Self {
        Self::of(files, &EntryPoint::State(files[0].0.to_owned()))
    }

    /// Prepares a run of a document, whose questions `answers` answers.
    pub(crate) fn steps(document: &Json, answers: AnswerSource) -> Self {
        let file = drive::file(document, &Map::new());
        let text = String::from_utf8(file.bytes.to_vec()).unwrap();
        let program = Program::steps_of(answers);
        Self { program, ..Self::of(&[(file.name.as_str(), text.as_str())], &EntryPoint::Steps) }
    }

    /// Changes the settings of the start or the next resume.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    pub(crate) fn started(self) -> Self {
        self.started_as(|_| {})
    }

    pub(crate) fn started_as(mut self, change: impl FnOnce(&mut Start)) -> Self {
        let start = self.start_input(change);
        self.feed(vec![start]);
        self
    }

    pub(crate) fn start_input(&self, change: impl FnOnce(&mut Start)) -> Input {
        let mut start = Start {
            run: "golden".into(),
            nonce: "0123456789abcdef".into(),
            workflow: "/project/flow".into(),
            scope: "/project/flow".into(),
            manifest: self.manifest.clone(),
            cwd: "/project".into(),
            input: None,
            program: self.program.clone(),
            settings: self.settings.clone(),
            backends: std::collections::BTreeSet::new(),
        };
        change(&mut start);
        Input::Start(Box::new(start))
    }

    pub(crate) fn feed(&mut self, inputs: Vec<Input>) {
        self.at = self.at + Span(1_000);
        let batch = batch(&mut self.run, &self.definition, self.at, inputs);
        let refused: Vec<_> = batch.verdicts.iter().filter_map(|it| it.as_ref().err()).collect();
        assert!(refused.is_empty(), "{refused:?}");
        assert!(!batch.steps.is_empty(), "nothing followed");
        let seq = 1 + self.records.len() as u64;
        self.records.push(Record { seq, at: self.at, steps: batch.steps });
    }

    /// Ends the turn that an agent has in flight.
    pub(crate) fn ends(&mut self, agent: &str, outcome: Outcome) {
        let input = self.settled(agent, outcome);
        self.feed(vec![input]);
    }

    pub(crate) fn settled(&self, agent: &str, outcome: Outcome) -> Input {
        let turn = &self.run.scheduler.turns[&AgentId::from(agent)];
        Input::Settled { turn: turn.id.clone(), attempt: turn.attempt, outcome }
    }

    pub(crate) fn says(&mut self, agent: &str, text: &str) {
        self.says_with(agent, text, |_| {});
    }

    /// Ends a turn with a text, and changes the outcome.
    pub(crate) fn says_with(
        &mut self,
        agent: &str,
        text: &str,
        change: impl FnOnce(&mut Finished),
    ) {
        let lane = &self.run.scheduler.turns[&AgentId::from(agent)].lane;
        let (source, cost) = match lane {
            Lane::Script => (Source::Script, Cost::Free),
            Lane::Prompt(_) => (self.run.program.messages(), Cost::Reported(Micros(100_000))),
        };
        let mut store = |bytes: &[u8]| observe::BlobStore::put(&self.blobs, bytes);
        let reading = TagReading::of(text, source, &mut store).unwrap();
        let text = Value::keep(text, &mut store).unwrap();
        let directories = BTreeMap::from([("sub".to_owned(), "/project/sub".to_owned())]);
        let named = reading.tags.iter().any(|tag| tag.cd() == Some("sub"));
        let directories = if named { directories } else { BTreeMap::new() };
        let reply = ReadReply { reading, directories, ..text.into() };
        let mut finished = Finished::new(reply, cost);
        change(&mut finished);
        self.ends(agent, Outcome::Finished(Box::new(finished)));
    }

    /// Ends the turn of a step with this result.
    pub(crate) fn leaves(
        &mut self,
        agent: &str,
        json: &Json,
        cost: Cost,
        change: impl FnOnce(&mut Finished),
    ) {
        let mut store = |bytes: &[u8]| observe::BlobStore::put(&self.blobs, bytes);
        let text = Value::keep(&json.to_string(), &mut store).unwrap();
        let read = ParsedJson(Some(Arc::new(json.clone())));
        let mut finished = Finished::new(ReadReply { read, ..text.into() }, cost);
        change(&mut finished);
        self.ends(agent, Outcome::Finished(Box::new(finished)));
    }

    pub(crate) fn fails(&mut self, agent: &str, failure: TurnFailure) {
        self.ends(agent, failed(failure));
    }

    pub(crate) fn after(&mut self, span: Span) {
        self.at = self.at + span;
        self.feed(vec![Input::Due]);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.at
    }

    pub(crate) fn stop(&mut self, mode: StopMode) {
        self.stop_by(StopOrigin::Command, mode);
    }

    pub(crate) fn stop_by(&mut self, by: StopOrigin, mode: StopMode) {
        self.stops += 1;
        self.feed(vec![Input::Stop { mode, by, key: format!("key-{}", self.stops) }]);
    }

    /// Resumes with a new owner, which finds this outcome of every turn in flight.
    pub(crate) fn recovers(&mut self, found: impl Fn() -> Outcome) {
        let flying = self.run.scheduler.in_flight.iter();
        let mut inputs: Vec<Input> =
            flying.map(|agent| self.settled(agent.as_str(), found())).collect();
        inputs.push(self.resume_input());
        self.feed(inputs);
    }

    pub(crate) fn resume_input(&self) -> Input {
        Input::Resume(Box::new(Resume { settings: self.settings.clone(), is_wake: false }))
    }

    pub(crate) fn resume(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
        let input = self.resume_input();
        self.feed(vec![input]);
    }

    pub(crate) fn adopt(&mut self, files: Files<'_>) {
        let entry = EntryPoint::State(files[0].0.to_owned());
        let (definition, manifest) = pinned(files, &entry, &self.blobs);
        self.definition = definition;
        self.feed(vec![Input::Adopt { manifest, changed: Vec::new() }]);
    }

    /// Resumes with an edited document; `changed` are its edited steps.
    pub(crate) fn adopt_document(&mut self, document: &Json, changed: &[&str]) {
        let file = drive::file(document, &Map::new());
        let text = String::from_utf8(file.bytes.to_vec()).unwrap();
        let files = [(file.name.as_str(), text.as_str())];
        let (definition, manifest) = pinned(&files, &EntryPoint::Steps, &self.blobs);
        self.definition = definition;
        let changed = changed.iter().map(|id| id.parse().unwrap()).collect();
        let resume = self.resume_input();
        self.feed(vec![Input::Adopt { manifest, changed }, resume]);
    }

    /// Discards every record after `kept`.
    pub(crate) fn rewind(&mut self, kept: u64, nonce: &str) {
        let cut = self.records.split_off(usize::try_from(kept).unwrap());
        self.run = Run::default();
        let events = self.records.iter().flat_map(|record| &record.steps);
        for event in events.flat_map(|step| &step.events) {
            apply(&mut self.run, event);
        }
        let mut abandoned = DiscardedTail::new(&self.run);
        for record in &cut {
            abandoned.follow(record);
        }
        let (discarded, again, governed) =
            (abandoned.discarded(), abandoned.turns_to_repeat(), abandoned.governed());
        self.feed(vec![Input::Rewind { kept, nonce: nonce.into(), discarded, again, governed }]);
    }

    pub(super) fn seal(&self, name: &str) -> Result<(), String> {
        let blob = |hash: &str| self.blobs.get(hash).map_err(|error| error.to_string());
        super::write(name, &self.records, &blob)
    }
}

fn pinned(files: Files<'_>, entry: &EntryPoint, blobs: &Blobs) -> (Definition, Value) {
    let file = |(name, text): &(&str, &str)| SourceFile {
        name: (*name).to_owned(),
        bytes: text.as_bytes().into(),
        executable: false,
    };
    let files: Vec<SourceFile> = files.iter().map(file).collect();
    let pin = Pin::of(&super::loaded(files.clone(), entry.clone())).store(blobs).unwrap();
    let definition = Definition::parse(files, entry, Platform::Unix).unwrap().definition;
    (definition, pin)
}

pub(crate) fn failed(failure: TurnFailure) -> Outcome {
    let cost = Cost::Reported(Micros(20_000));
    Outcome::Failed { failure, cost, denied: Vec::new(), session: None }
}

/// Returns the outcome of an interrupted turn.
pub(crate) fn cut(by: Interruption, cost: Cost, progressed: bool) -> Outcome {
    Outcome::Interrupted { by, cost, progressed, session: None }
}
