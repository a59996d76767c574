//! Runs of steps.

use std::collections::BTreeMap;

use raymond_core::budget::{Cost, Micros};
use raymond_core::crayfish::call::{Call, Output};
use raymond_core::crayfish::stored::Stored;
use raymond_core::crayfish::verdict::Verdict;
use raymond_core::crayfish::walk::MOST_BRANCHES;
use raymond_core::crayfish::{Problem, ProblemCode, StepKey};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::AgentId;
use raymond_core::run::Input;
use raymond_core::run::outcome::Outcome;
use raymond_core::run::program::AnswerSource;
use raymond_core::run::stop::{Interruption, StopMode};
use raymond_core::value::Value;
use serde_json::{Value as Json, json};

use super::super::builder::{JournalBuilder, cut};

fn step(id: &str) -> StepKey {
    id.parse().expect("a key")
}

fn agent(id: &str) -> Json {
    json!({ "id": id, "kind": "agent", "prompt": "?", "schema": {}, "retries": 2 })
}

fn exec(id: &str) -> Json {
    json!({ "id": id, "kind": "exec", "shell": id })
}

fn output(json: &Json, verdict: Verdict) -> Output {
    let stored = Stored::inline(json!({ "ok": true, "json": json }), true);
    Output { stored, verdict }
}

fn says(builder: &mut JournalBuilder, call: Call) {
    let resume = builder.resume_input();
    builder.feed(vec![resume, Input::Call(Box::new(call))]);
}

/// A caller that brings results, attempts and outputs, some of them late.
pub(super) fn brought() -> JournalBuilder {
    let each = json!({ "id": "each", "kind": "forEach", "listPath": "$.results.first.json.list",
        "itemVar": "item", "body": [agent("one")] });
    let document = json!({ "steps": [agent("first"), each, agent("last")] });
    let mut builder = JournalBuilder::steps(&document, AnswerSource::Caller);
    let list = Stored::inline(json!({ "ok": true, "json": { "list": ["a"] } }), true);
    let results = BTreeMap::from([(step("first"), list)]);
    let attempts = BTreeMap::from([(step("last"), 2)]);
    let call = Call { results, attempts, alone: true, outputs: BTreeMap::new() };
    let start = builder.start_input(|_| {});
    builder.feed(vec![start, Input::Call(Box::new(call))]);
    let wrong = || Verdict::Invalid(vec![Problem::of_value("/n", "is not a number")]);
    let outputs = BTreeMap::from([("one".to_owned(), output(&json!("x"), wrong()))]);
    says(&mut builder, Call { outputs, ..Call::default() });
    let outputs =
        BTreeMap::from([("each[0].one".to_owned(), output(&json!("late"), Verdict::Valid))]);
    says(&mut builder, Call { outputs, ..Call::default() });
    let outputs = BTreeMap::from([
        ("each[0].one:2".to_owned(), output(&json!(1), Verdict::Valid)),
        ("last:2".to_owned(), output(&json!(2), Verdict::Valid)),
    ]);
    says(&mut builder, Call { outputs, ..Call::default() });
    builder
}

/// An output with every problem, and one attempt too many.
pub(super) fn invalid() -> JournalBuilder {
    let mut builder =
        JournalBuilder::steps(&json!({ "steps": [agent("ask")] }), AnswerSource::Backend).started();
    let all =
        ProblemCode::ALL.map(|code| Problem::new(format!("/{code:?}"), code, "as an example"));
    let text = |problems: Vec<Problem>| Some(Verdict::Invalid(problems));
    let cost = Cost::Reported(Micros(10_000));
    let wrong = json!({ "ok": false, "json": 1 });
    builder.leaves("main", &wrong, cost, |finished| finished.reply.verdict = text(all.to_vec()));
    let one = Problem::of_value("", "is not a list");
    builder.leaves("main", &wrong, cost, |finished| finished.reply.verdict = text(vec![one]));
    builder
}

/// Steps that fail, and run again after a resume.
pub(super) fn failed() -> JournalBuilder {
    let document = json!({ "steps": [exec("build"), agent("look")] });
    let mut builder = JournalBuilder::steps(&document, AnswerSource::Backend).started();
    let result = Stored::inline(json!({ "ok": false, "stderr": "no" }), false);
    let failure = TurnFailure::Step { why: "exit status 1".to_owned(), result, again: true };
    let cost = Cost::Free;
    builder.ends("main", Outcome::Failed { failure, cost, denied: Vec::new(), session: None });
    builder.resume(|_| {});
    builder.leaves("main", &json!({ "ok": true, "stdout": "x".repeat(20_000) }), cost, |_| {});
    builder.fails("main", TurnFailure::Task { why: "gave up".to_owned() });
    builder.resume(|_| {});
    let valid = |finished: &mut raymond_core::run::outcome::Finished| {
        finished.reply.verdict = Some(Verdict::Valid);
    };
    builder.leaves("main", &json!({ "ok": true, "json": [1] }), Cost::Unknown, valid);
    builder
}

/// A failure in a loop, collected by an enclosing loop.
pub(super) fn contained() -> JournalBuilder {
    let inner = json!({ "id": "inner", "kind": "forEach", "listPath": "$.vars.list",
        "itemVar": "y", "parallel": true, "body": [exec("try")] });
    let outer = json!({ "id": "outer", "kind": "forEach", "listPath": "$.vars.list",
        "itemVar": "x", "parallel": true, "maxParallel": 2, "onError": "collect", "body": [inner] });
    let document = json!({ "vars": { "list": [1, 2] }, "steps": [outer, exec("after")] });
    let mut builder = JournalBuilder::steps(&document, AnswerSource::Backend).started();
    let mut count = 0;
    while let Some(agent) = builder.run.scheduler.in_flight.first().map(AgentId::to_string) {
        count += 1;
        if count == 2 {
            let result = Stored::inline(json!({ "ok": false }), false);
            let failure =
                TurnFailure::Step { why: "exit status 1".to_owned(), result, again: false };
            builder.fails(&agent, failure);
        } else {
            builder.leaves(&agent, &json!({ "ok": true, "stdout": "" }), Cost::Free, |_| {});
        }
    }
    builder
}

/// A step that reads a variable without a value.
pub(super) fn missing_variable() -> JournalBuilder {
    let reads = json!({ "id": "read", "kind": "exec", "shell": "echo {{vars.list[0]}}" });
    let document = json!({ "vars": { "list": [] }, "steps": [reads] });
    JournalBuilder::steps(&document, AnswerSource::Backend).started()
}

fn each(body: &Json) -> Json {
    json!({ "id": "each", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item",
        "parallel": true, "body": [body] })
}

/// A loop over a text.
pub(super) fn not_a_list() -> JournalBuilder {
    let document = json!({ "vars": { "list": "a text" }, "steps": [each(&exec("build"))] });
    JournalBuilder::steps(&document, AnswerSource::Backend).started()
}

/// A parallel loop with more items than branches are allowed.
pub(super) fn too_many_items() -> JournalBuilder {
    let list = vec![0; MOST_BRANCHES as usize + 1];
    let document = json!({ "vars": { "list": list }, "steps": [each(&exec("build"))] });
    JournalBuilder::steps(&document, AnswerSource::Backend).started()
}

/// A loop whose condition stays false.
pub(super) fn not_converged() -> JournalBuilder {
    let until = json!({ "op": "exists", "path": "$.vars.never" });
    let repeated = json!({ "id": "again", "kind": "while", "maxIters": 1, "until": until,
        "body": [exec("build")] });
    let mut builder =
        JournalBuilder::steps(&json!({ "steps": [repeated] }), AnswerSource::Backend).started();
    builder.leaves("main", &json!({ "ok": true, "stdout": "" }), Cost::Free, |_| {});
    builder
}

/// A client that fails in a loop, after an output with more problems than are listed. A loop around
/// it collects failures.
pub(super) fn agent_failed() -> JournalBuilder {
    let outer = json!({ "id": "outer", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x",
        "parallel": true, "onError": "collect", "body": [each(&agent("ask"))] });
    let document = json!({ "vars": { "list": [1] }, "steps": [outer] });
    let mut builder = JournalBuilder::steps(&document, AnswerSource::Backend).started();
    let asked = builder.run.scheduler.in_flight.first().expect("a question").to_string();
    let many = vec![Problem::of_value("/n", "is missing"), Problem::more(7)];
    let wrong = json!({ "ok": false, "json": 1 });
    builder.leaves(&asked, &wrong, Cost::Reported(Micros(10_000)), |finished| {
        finished.reply.verdict = Some(Verdict::Invalid(many));
    });
    builder.fails(&asked, TurnFailure::Task { why: "gave up".to_owned() });
    builder
}

/// A question that is answered by name.
pub(super) fn answered() -> JournalBuilder {
    let mut builder =
        JournalBuilder::steps(&json!({ "steps": [agent("ask")] }), AnswerSource::Caller).started();
    let ask = builder.run.scheduler.asks.keys().next().unwrap().clone();
    let (by, key) = ("somebody".to_owned(), "answer-1".to_owned());
    builder.feed(vec![Input::Answer { ask, value: Value::from("42"), by, key }]);
    builder
}

/// Invalid answers, a resume with more attempts, and an edited document that reads the items of a
/// loop and has an output.
pub(super) fn edited() -> JournalBuilder {
    let list = json!({ "list": [1, 2] });
    let mut each = each(&exec("try"));
    each["onError"] = "collect".into();
    let before = json!({ "vars": list, "steps": [each, agent("ask")] });
    let mut builder = JournalBuilder::steps(&before, AnswerSource::Backend).started();
    let tries: Vec<String> =
        builder.run.scheduler.in_flight.iter().map(AgentId::to_string).collect();
    let result = Stored::inline(json!({ "ok": false, "stderr": "no" }), false);
    let why = "exit status 1".to_owned();
    builder.fails(&tries[0], TurnFailure::Step { why, result, again: true });
    builder.leaves(&tries[1], &json!({ "ok": true, "stdout": "" }), Cost::Free, |_| {});
    let answers = |builder: &mut JournalBuilder, verdict: Verdict| {
        let (cost, answer) = (Cost::Reported(Micros(10_000)), json!({ "ok": true, "json": 1 }));
        builder.leaves("main", &answer, cost, |finished| finished.reply.verdict = Some(verdict));
    };
    let wrong = || Verdict::Invalid(vec![Problem::of_value("", "is too small")]);
    answers(&mut builder, wrong());
    answers(&mut builder, wrong());
    // Two more attempts; the run uses one of them.
    builder.resume(|_| {});
    answers(&mut builder, wrong());
    builder.stop(StopMode::Now);
    let outcome = cut(Interruption::Stop, Cost::Unknown, false);
    builder.ends("main", outcome);
    let mut asks = agent("ask");
    asks["prompt"] = "How many? {{results.each.items}}".into();
    let output = json!({ "answer": "{{results.ask.json}}", "items": "{{results.each.items}}" });
    let now = json!({ "vars": list, "steps": [each, asks], "output": output });
    builder.adopt_document(&now, &["ask"]);
    answers(&mut builder, Verdict::Valid);
    builder
}
