//! Runs of steps: what waits at the desk, and what follows.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::play::{Play, prompts};
use crate::crayfish::flow::{Read, Stored};
use crate::crayfish::{Document, Work};
use crate::failure::TurnFailure;
use crate::run::event::Ending;
use crate::run::input::Verdict;
use crate::run::program::Answers;
use crate::run::{Phase, Program};

fn steps(answers: Answers, steps: &Json) -> Play {
    let document = Document::parse(&json!({ "steps": steps, "vars": { "list": [1, 2, 3] } }));
    let document = document.unwrap();
    let vars = document.vars.clone();
    let mut definition = prompts(&["NONE.md"]);
    definition.states.clear();
    definition.work = Some(Box::new(Work { document, vars }));
    let mut play = Play::new(definition);
    play.settings.program = Program::Crayfish { answers };
    play
}

fn exec(id: &str) -> Json {
    json!({ "id": id, "kind": "exec", "shell": "true", "retries": 2 })
}

fn leaves(play: &mut Play, agent: &str, result: &Json) {
    let text = result.to_string();
    play.says_so(agent, &text, |finished| finished.read = Read(Some(Arc::new(result.clone()))));
}

fn fails(play: &mut Play, agent: &str) {
    let result = Stored::inline(json!({ "ok": false }), false);
    play.fails(agent, TurnFailure::Step { why: "exit status 1".into(), result, again: true });
}

#[test]
fn steps_wait_at_the_desk_one_after_the_other() {
    let mut play = steps(Answers::Caller, &json!([exec("a"), exec("b")]));
    play.start();
    assert_eq!(play.run.agents[&"main".into()].visit.state.as_str(), "a");
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!(play.run.agents[&"main".into()].visit.state.as_str(), "b");
    fails(&mut play, "main");
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

#[test]
fn a_program_that_fails_too_often_fails_the_run() {
    let mut play = steps(Answers::Caller, &json!([exec("a")]));
    play.start();
    fails(&mut play, "main");
    assert_eq!(play.run.phase, Phase::Open);
    fails(&mut play, "main");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
}

#[test]
fn an_output_that_is_not_valid_is_asked_for_again() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {}, "retries": 2 });
    let mut play = steps(Answers::Backend, &json!([asks]));
    play.start();
    let wrong = || Some(Verdict::Invalid(Vec::new()));
    play.says_so("main", "1", |finished| finished.verdict = wrong());
    assert_eq!(play.run.flow.as_ref().unwrap().attempts[&"v".parse().unwrap()], 2);
    play.says_so("main", "1", |finished| finished.verdict = wrong());
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
}

#[test]
fn a_caller_is_waited_for() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
    let mut play = steps(Answers::Caller, &json!([asks]));
    play.start();
    assert_eq!(play.run.phase, Phase::Ended(Ending::NeedsCaller));
}

#[test]
fn iterations_at_the_same_time_are_agents() {
    let each = json!({
        "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x", "parallel": true,
        "body": [exec("a")],
    });
    let mut play = steps(Answers::Caller, &json!([each, exec("z")]));
    play.start();
    let agents: Vec<String> = play.run.agents.keys().map(ToString::to_string).collect();
    assert_eq!(agents.len(), 4, "{agents:?}");
    for agent in &agents[1..] {
        leaves(&mut play, agent, &json!({ "ok": true }));
    }
    assert_eq!(play.run.agents[&"main".into()].visit.state.as_str(), "z");
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}
