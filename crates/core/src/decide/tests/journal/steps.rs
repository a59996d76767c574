//! Samples of runs of steps.

use serde_json::json;

use crate::budget::Cost;
use crate::crayfish::ErrorCode;
use crate::crayfish::call::Output;
use crate::crayfish::gate::Gate;
use crate::crayfish::key::Iteration;
use crate::crayfish::state::LoopFrame;
use crate::crayfish::stored::Stored;
use crate::crayfish::verdict::Verdict;
use crate::crayfish::{Call, Problem, StepEvent, StepKey};
use crate::failure::{AgentFailure, TurnFailure};
use crate::protocol::ResultStatus;
use crate::run::event::Ending;
use crate::run::outcome::{Finished, Outcome, ReadReply};
use crate::run::program::AnswerSource;
use crate::run::start::Start;
use crate::run::{Event, Input, Program, Settings};
use crate::time::Timestamp;
use crate::value::Value;

use super::super::play::turn;
use super::samples::start;

fn key(text: &str) -> StepKey {
    text.parse().unwrap()
}

fn stored(ok: bool) -> Stored {
    Stored::inline(json!({ "ok": ok }), ok)
}

fn invalid() -> Verdict {
    Verdict::Invalid(vec![Problem::of_value("/foo", "is missing")])
}

fn call() -> Call {
    let output = |verdict| Output { stored: stored(true), verdict };
    Call {
        results: [(key("a"), stored(true))].into(),
        attempts: [(key("l[0].v"), 2)].into(),
        alone: false,
        outputs: [
            ("l[0].v:2".to_owned(), output(Verdict::Valid)),
            ("v".to_owned(), output(invalid())),
        ]
        .into(),
    }
}

/// Added later: runs of steps.
pub(super) fn steps() -> (Vec<Input>, Vec<Event>) {
    let settled = |outcome| Input::Settled { turn: turn("main.1.1"), attempt: 1, outcome };
    let judged = |verdict| {
        let text = Value::from(r#"{"ok":true,"json":1}"#);
        let reply = ReadReply { verdict: Some(verdict), ..text.into() };
        settled(Outcome::Finished(Box::new(Finished::new(reply, Cost::Free))))
    };
    let failure =
        || TurnFailure::Step { why: "exit status 1".into(), result: stored(false), again: true };
    let failed =
        Outcome::Failed { failure: failure(), cost: Cost::Free, denied: Vec::new(), session: None };
    let causes = vec![
        Input::Call(Box::new(call())),
        judged(Verdict::Valid),
        judged(invalid()),
        settled(failed),
    ];
    let started = |answers| {
        let program = Program::steps_of(answers);
        Event::RunStarted(Box::new(Start { program, ..*start(None, Settings::default()) }))
    };
    let step_failed = AgentFailure::Step {
        code: ErrorCode::ExecFailed,
        message: "exit status 1".into(),
        variable: None,
    };
    let mut events = vec![started(AnswerSource::Backend), started(AnswerSource::Caller)];
    events.extend(facts().into_iter().map(|event| Event::Stepped { agent: "main".into(), event }));
    events.extend([
        Event::VisitEntered {
            agent: "main".into(),
            location: key("l[3].v").into(),
            visit: 2,
            count: 1,
            input: None,
            result_status: ResultStatus::Ok,
        },
        Event::RetryAt { turn: turn("main.1.1"), until: Timestamp(7), retry: 1, of: Some(2) },
        Event::AgentFailed { agent: "main".into(), failure: step_failed, kept: None },
        Event::RunEnded { ending: Ending::NeedsCaller },
    ]);
    (causes, events)
}

fn facts() -> Vec<StepEvent> {
    let frame = |list: Option<StepKey>, count| LoopFrame {
        of: "l".parse().unwrap(),
        list,
        count,
        number: 0,
        listed: false,
    };
    let begun = |born, parent| StepEvent::Begun {
        born,
        parent,
        settled: Vec::new(),
        edited: Vec::new(),
        repeated: Vec::new(),
    };
    let born = vec![Iteration { of: "l".parse().unwrap(), number: 3 }];
    vec![
        begun(Vec::new(), None),
        begun(born, Some("main".into())),
        StepEvent::Entered { step: "a".parse().unwrap(), gate: None },
        StepEvent::Entered {
            step: "a".parse().unwrap(),
            gate: Some((Gate::of_loop(&"main".into()), 4)),
        },
        StepEvent::Parked { gate: Gate::of_label("wf:x:main"), limit: 1 },
        StepEvent::Called(Box::new(call())),
        StepEvent::OutputTaken { name: "v".into() },
        StepEvent::OutputIgnored { name: "v".into() },
        StepEvent::Asked { key: key("v"), attempt: 1, errors: Vec::new(), limit: None },
        StepEvent::Asked {
            key: key("l[3].v"),
            attempt: 2,
            errors: vec![Problem::of_value("/a", "no")],
            limit: None,
        },
        StepEvent::ConversationKept { label: "wf:x:main".into(), session: "s1".into() },
        StepEvent::Done { key: key("a"), stored: stored(true) },
        StepEvent::Reused { key: key("a") },
        StepEvent::LoopEntered { frame: frame(None, None), hides: Vec::new() },
        StepEvent::LoopEntered {
            frame: frame(Some(key("a")), Some(2)),
            hides: vec!["b".parse().unwrap()],
        },
        StepEvent::IterationBegun { number: 1 },
        StepEvent::LoopSplit,
        StepEvent::LoopLeft,
        StepEvent::Failed { key: key("a"), stored: Some(stored(false)), contained: false },
        StepEvent::Failed { key: key("a"), stored: None, contained: true },
        StepEvent::Revived,
        StepEvent::Ended,
    ]
}

/// Added with edited documents, fresh attempts, items of loops, and outputs.
pub(super) fn edited() -> (Input, Vec<Event>) {
    let changed = vec!["v".parse().unwrap()];
    let cause = Input::Adopt { manifest: "[]".into(), changed };
    let listed =
        LoopFrame { of: "l".parse().unwrap(), list: None, count: None, number: 0, listed: true };
    let facts = [
        StepEvent::Begun {
            born: Vec::new(),
            parent: None,
            settled: vec![key("l[0].a")],
            edited: vec![key("v")],
            repeated: vec![key("v")],
        },
        StepEvent::Asked { key: key("v"), attempt: 3, errors: Vec::new(), limit: Some(4) },
        StepEvent::LoopEntered { frame: listed, hides: Vec::new() },
        StepEvent::Concluded,
    ];
    let stepped = |event| Event::Stepped { agent: "main".into(), event };
    (cause, facts.map(stepped).into())
}
