//! Recovered answers are checked as if the owner had received them.

use std::path::{Path, PathBuf};

use raymond_backends::contract::{
    AnswerFuture, AttachResult, Backend, PromptRequest, TurnObserver,
};
use raymond_core::capability::Capability;
use raymond_core::crayfish::verdict::Verdict;
use raymond_core::ids::BackendName;
use raymond_core::run::outcome::{Finished, Outcome, Reply};
use raymond_core::run::program::AnswerSource;
use raymond_core::run::{Program, Settings};
use raymond_core::workflow::definition::steps::{FILE, pinned};
use raymond_core::workflow::{Definition, EntryPoint, SourceFile};
use raymond_store::Root;
use raymond_store::disk::Memory;
use serde_json::{Map, Value as Json, json};

use super::*;
use crate::driver::{Driver, RecordOnly};
use crate::launch::Launch;
use crate::pin::PLATFORM;
use crate::prepare::Prepared;
use crate::scope::{LoadedScope, ScopeOrigin};

/// A client that had said this when its owner died.
struct Said(&'static str);

impl Backend for Said {
    fn name(&self) -> BackendName {
        BackendName::new("said")
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[]
    }

    fn answer(&self, _: PromptRequest, _: TurnObserver) -> AnswerFuture<'_> {
        unreachable!("it had answered already")
    }

    fn attach(&self, _: &StartedTurn) -> AttachResult {
        AttachResult::Ended(Answer::Finished(Box::new(Finished::new(
            Reply::new(self.0),
            Cost::Free,
        ))))
    }
}

/// A run of one agent step, whose turn is in flight.
fn asked() -> OwnedRun {
    let schema = json!({ "type": "object", "required": ["n"] });
    started(&json!({ "id": "ask", "kind": "agent", "prompt": "?", "schema": schema }))
}

/// A run of one step, whose turn is in flight.
fn started(step: &Json) -> OwnedRun {
    let text = pinned(&json!({ "steps": [step] }), &Map::new());
    let bytes = text.into_bytes().into();
    let files = vec![SourceFile { name: FILE.to_owned(), bytes, executable: false }];
    let definition =
        Definition::parse(files.clone(), &EntryPoint::Steps, PLATFORM).unwrap().definition;
    let (scope, start, warnings) = (PathBuf::from("/flow.json"), EntryPoint::Steps, Vec::new());
    let loaded = LoadedScope { scope, start, files, origin: ScopeOrigin::Directory, warnings };
    let prepared = Prepared { loaded, definition, warnings: Vec::new() };
    let project =
        Project { disk: Arc::new(Memory::new(0)), root: Root::in_directory(Path::new("/")) };
    let settings = Settings { backend: BackendName::new("said"), ..Settings::default() };
    let launch = Launch {
        run: "r".into(),
        nonce: "0123456789abcdef".into(),
        workflow: "/flow.json".to_owned(),
        cwd: "/".to_owned(),
        input: None,
        program: Program::steps_of(AnswerSource::Backend),
        settings,
    };
    let (owned, start) = OwnedRun::create(&project, prepared, launch).unwrap();
    let OwnedRun { head, definition, journal, .. } = owned;
    let mut driver = Driver::new(head, definition, journal, RecordOnly);
    driver.handle(crate::clock::now(), vec![start]).unwrap();
    let (head, definition, journal) = driver.into_parts();
    OwnedRun { journal, head, definition, ..owned }
}

async fn recovered(text: &'static str) -> (Json, Option<Verdict>) {
    let mut backends = Backends::default();
    backends.add(Arc::new(Said(text)));
    let mut inputs = asked().report_inputs(&backends, OnUnreadable::Refuse).await.unwrap();
    let Some(Input::Settled { outcome: Outcome::Finished(finished), .. }) = inputs.pop() else {
        panic!("its turn is over");
    };
    let json = finished.reply.read.0.as_deref().cloned();
    assert_eq!(raymond_core::value::Value::Inline(json!(json).to_string()), finished.reply.text);
    (json.unwrap(), finished.reply.verdict)
}

#[tokio::test]
async fn recovered_step_answer_is_checked_by_schema() {
    let valid = json!({ "ok": true, "json": { "n": 1 } });
    assert_eq!(recovered(r#"{"n": 1}"#).await, (valid, Some(Verdict::Valid)));
    for (said, json) in [("no JSON", json!("no JSON")), ("{}", json!({}))] {
        let (left, verdict) = recovered(said).await;
        assert_eq!((&left["ok"], &left["json"]), (&json!(false), &json), "{said}");
        assert!(matches!(verdict, Some(Verdict::Invalid(_))), "{said}");
    }
}

// proves: P5
#[tokio::test]
async fn interrupted_program_of_a_step_costs_nothing() {
    let mut owned = started(&json!({ "id": "run", "kind": "exec", "shell": "true" }));
    let reports = owned.report_inputs(&Backends::default(), OnUnreadable::Refuse).await;
    let [Input::Settled { outcome: Outcome::Interrupted { cost, .. }, .. }] = &reports.unwrap()[..]
    else {
        panic!("its program died with its owner");
    };
    assert_eq!(*cost, Cost::Free);
}

/// A client whose transcript cannot be read.
struct Illegible;

impl Backend for Illegible {
    fn name(&self) -> BackendName {
        BackendName::new("said")
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[]
    }

    fn answer(&self, _: PromptRequest, _: TurnObserver) -> AnswerFuture<'_> {
        unreachable!("it may have answered already")
    }

    fn attach(&self, _: &StartedTurn) -> AttachResult {
        AttachResult::Unreadable { why: "could not read it".to_owned() }
    }
}

#[tokio::test]
async fn unreadable_outcome_is_refused_or_given_up() {
    let mut backends = Backends::default();
    backends.add(Arc::new(Illegible));
    let refused = asked().report_inputs(&backends, OnUnreadable::Refuse).await;
    assert_eq!(refused.unwrap_err().to_string(), "could not read it");
    let inputs = asked().report_inputs(&backends, OnUnreadable::GiveUp).await.unwrap();
    let [Input::Settled { outcome: Outcome::Interrupted { cost, progressed, .. }, .. }] =
        &inputs[..]
    else {
        panic!("its turn is given up: {inputs:?}");
    };
    assert_eq!((*cost, *progressed), (Cost::Unknown, true));
}
