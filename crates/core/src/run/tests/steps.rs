//! Runs of steps: what waits at the desk, and what follows.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::play::{Play, prompts};
use crate::crayfish::flow::{Read, Stored};
use crate::crayfish::{Document, Problem, Work};
use crate::failure::TurnFailure;
use crate::run::event::Ending;
use crate::run::input::{Output, Resume, Verdict};
use crate::run::program::Answers;
use crate::run::{Input, Phase, Program, Refusal};

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

fn output(play: &mut Play, attempt: u32, verdict: Verdict) -> String {
    let ask = play.run.desk.asks.keys().next().unwrap().clone();
    let json = json!({ "ok": true, "json": 1 });
    let text = json.to_string().as_str().into();
    let read = Read(Some(Arc::new(json)));
    let told = play.feed(vec![
        Input::Resume(Box::new(Resume { settings: play.settings.clone() })),
        Input::Output(Box::new(Output { ask, attempt, text, verdict, read })),
    ]);
    told.lines().filter(|line| line.starts_with("refused")).collect()
}

#[test]
fn only_the_output_that_was_asked_for_last_is_taken() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
    let mut play = steps(Answers::Caller, &json!([asks]));
    play.start();
    let wrong = Verdict::Invalid(vec![Problem::new("/a", "no")]);
    assert_eq!(output(&mut play, 1, wrong.clone()), "");
    let flow = play.run.flow.as_ref().unwrap();
    assert_eq!(flow.complaints[&"v".parse().unwrap()], [Problem::new("/a", "no")]);
    let stale = Refusal::Stale { attempt: 1 };
    assert_eq!(output(&mut play, 1, wrong), format!("refused: {stale}"));
    assert_eq!(output(&mut play, 2, Verdict::Valid), "");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

fn parallel(more: &Json) -> Json {
    let mut each = json!({
        "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x", "parallel": true,
        "body": [{ "id": "a", "kind": "exec", "shell": "true" }],
    });
    each.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    each
}

fn running(play: &Play) -> Vec<String> {
    play.run.desk.in_flight.iter().map(ToString::to_string).collect()
}

#[test]
fn a_loop_runs_only_so_many_programs_at_a_time() {
    let mut play = steps(Answers::Caller, &json!([parallel(&json!({ "maxParallel": 2 }))]));
    play.start();
    let [first, _] = running(&play).try_into().unwrap();
    leaves(&mut play, &first, &json!({ "ok": true }));
    assert_eq!(running(&play).len(), 2);
}

#[test]
fn what_failed_is_collected_and_the_loop_goes_on() {
    let gate = json!({ "op": "eq", "path": "$.results.a.ok", "value": false });
    let after =
        json!({ "id": "g", "kind": "if", "cond": gate, "then": [exec("y")], "else": [exec("n")] });
    let each = parallel(&json!({ "onError": "collect" }));
    let mut play = steps(Answers::Caller, &json!([each, after]));
    play.start();
    let agents = running(&play);
    leaves(&mut play, &agents[0], &json!({ "ok": true }));
    leaves(&mut play, &agents[1], &json!({ "ok": true }));
    fails(&mut play, &agents[2]);
    assert_eq!(play.run.agents[&"main".into()].visit.state.as_str(), "y", "the last item's counts");
}

#[test]
fn a_failure_lets_the_iterations_that_were_started_end_and_a_resume_does_it_again() {
    let mut play =
        steps(Answers::Caller, &json!([parallel(&json!({ "maxParallel": 2 })), exec("z")]));
    play.start();
    let agents = running(&play);
    fails(&mut play, &agents[0]);
    assert_eq!(play.run.phase, Phase::Open);
    while let Some(agent) = running(&play).first().cloned() {
        leaves(&mut play, &agent, &json!({ "ok": true }));
    }
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    play.resume();
    assert_eq!(running(&play), agents[..1], "only what failed is done again");
    leaves(&mut play, &agents[0], &json!({ "ok": true }));
    assert_eq!(play.run.agents[&"main".into()].visit.state.as_str(), "z");
}
