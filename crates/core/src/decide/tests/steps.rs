//! Runs of steps: queued turns, and the events that follow.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::play::{Play, prompts, turn};
use crate::agent::SessionPlan;
use crate::crayfish::call::Output;
use crate::crayfish::state::MOST_KEPT;
use crate::crayfish::stored::{ParsedJson, Stored};
use crate::crayfish::verdict::Verdict;
use crate::crayfish::{Call, Document, Problem, ProblemCode, StepsDefinition};
use crate::failure::TurnFailure;
use crate::run::event::Ending;
use crate::run::input::Resume;
use crate::run::program::AnswerSource;
use crate::run::stop::StopMode;
use crate::run::turn_spec::{TurnSpec, Work};
use crate::run::{Event, Input, Phase, Program};
use crate::value::{BlobRef, Hash, Value};

pub(crate) fn steps(answers: AnswerSource, steps: &Json) -> Play {
    let document = Document::parse(&json!({ "steps": steps, "vars": { "list": [1, 2, 3] } }));
    let document = document.unwrap();
    let vars = document.vars.clone();
    let mut definition = prompts(&["NONE.md"]);
    definition.states.clear();
    definition.steps = Some(Box::new(StepsDefinition { document, vars }));
    Play::new(definition).running(Program::steps_of(answers))
}

pub(crate) fn exec(id: &str) -> Json {
    json!({ "id": id, "kind": "exec", "shell": "true", "retries": 2 })
}

pub(crate) fn leaves(play: &mut Play, agent: &str, result: &Json) {
    let text = result.to_string();
    play.says_so(agent, &text, |finished| {
        finished.reply.read = ParsedJson(Some(Arc::new(result.clone())));
    });
}

pub(crate) fn fails(play: &mut Play, agent: &str) {
    let result = Stored::inline(json!({ "ok": false }), false);
    play.fails(agent, TurnFailure::Step { why: "exit status 1".into(), result, again: true });
}

#[test]
fn steps_queue_one_after_the_other() {
    let mut play = steps(AnswerSource::Caller, &json!([exec("a"), exec("b")]));
    play.start();
    assert_eq!(play.run.agents[&"main".into()].visit.location.to_string(), "a");
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!(play.run.agents[&"main".into()].visit.location.to_string(), "b");
    fails(&mut play, "main");
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

#[test]
fn program_runs_with_its_steps_attempt_number() {
    let mut play = steps(AnswerSource::Caller, &json!([exec("a")]));
    let numbers = |play: &Play| {
        let TurnSpec { header, work } = play.started_turn();
        assert_eq!((header.turn, header.cwd.as_str()), (turn("main.1.1"), "/home"));
        assert_eq!(header.location.to_string(), "a");
        let Work::Exec(exec) = work else { panic!("{work:?}") };
        (header.attempt, exec.counted)
    };
    play.start();
    assert_eq!(numbers(&play), (1, 1));
    play.crashes(true);
    assert_eq!(numbers(&play), (2, 1), "an interrupted attempt does not count");
    fails(&mut play, "main");
    assert_eq!(numbers(&play), (3, 2));
}

#[test]
fn program_failing_too_often_fails_the_run() {
    let mut play = steps(AnswerSource::Caller, &json!([exec("a")]));
    play.start();
    fails(&mut play, "main");
    assert_eq!(play.run.phase, Phase::Open);
    fails(&mut play, "main");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
}

#[test]
fn invalid_output_is_requested_again() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {}, "retries": 2 });
    let mut play = steps(AnswerSource::Backend, &json!([asks]));
    play.start();
    assert_eq!(play.prompt().count, 1);
    let wrong = || Some(Verdict::Invalid(Vec::new()));
    play.says_so("main", "1", |finished| finished.reply.verdict = wrong());
    assert_eq!(play.prompt().count, 2);
    assert_eq!(play.run.program.steps().unwrap().attempts[&"v".parse().unwrap()], 2);
    play.says_so("main", "1", |finished| finished.reply.verdict = wrong());
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
}

#[test]
fn run_waits_for_its_caller() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
    let mut play = steps(AnswerSource::Caller, &json!([asks]));
    play.start();
    assert_eq!(play.run.phase, Phase::Ended(Ending::NeedsCaller));
    for mode in [StopMode::Now, StopMode::AfterTurn] {
        assert_eq!(play.stop(mode), "refused: the run has already ended");
    }
}

#[test]
fn parallel_iterations_are_agents() {
    let each = json!({
        "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x", "parallel": true,
        "body": [exec("a")],
    });
    let mut play = steps(AnswerSource::Caller, &json!([each, exec("z")]));
    play.start();
    let agents: Vec<String> = play.run.agents.keys().map(ToString::to_string).collect();
    assert_eq!(agents.len(), 4, "{agents:?}");
    for agent in &agents[1..] {
        leaves(&mut play, agent, &json!({ "ok": true }));
    }
    assert_eq!(play.run.agents[&"main".into()].visit.location.to_string(), "z");
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

pub(crate) fn valid() -> Output {
    let stored = Stored::inline(json!({ "ok": true, "json": 1 }), true);
    Output { stored, verdict: Verdict::Valid }
}

pub(crate) fn wrong() -> Output {
    Output { verdict: Verdict::Invalid(vec![Problem::of_value("/a", "no")]), ..valid() }
}

/// A call: its attempts, and its outputs.
pub(crate) fn call(play: &mut Play, attempts: &[(&str, u32)], outputs: &[(&str, Output)]) {
    let attempts = attempts.iter().map(|(key, attempt)| (key.parse().unwrap(), *attempt)).collect();
    let outputs =
        outputs.iter().map(|(name, output)| ((*name).to_owned(), output.clone())).collect();
    let alone = play.run.phase == Phase::Unborn;
    let call = Input::Call(Box::new(Call { attempts, alone, outputs, ..Call::default() }));
    let begin = if alone {
        play.begin()
    } else {
        Input::Resume(Box::new(Resume { settings: play.settings.clone(), is_wake: false }))
    };
    play.feed(vec![begin, call]);
}

fn attempt(play: &Play, key: &str) -> u32 {
    play.run.program.steps().unwrap().attempts[&key.parse().unwrap()]
}

fn stale(play: &Play) -> Vec<&str> {
    play.run.program.steps().unwrap().stale.iter().map(String::as_str).collect()
}

#[test]
fn only_the_last_requested_output_counts() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
    let mut play = steps(AnswerSource::Caller, &json!([asks]));
    play.start();
    call(&mut play, &[("v", 1)], &[("v", wrong())]);
    let flow = play.run.program.steps().unwrap();
    assert_eq!(flow.complaints[&"v".parse().unwrap()], [Problem::of_value("/a", "no")]);
    // The same output again uses up nothing, under any name.
    call(&mut play, &[("v", 1)], &[("v", wrong())]);
    assert_eq!((attempt(&play, "v"), stale(&play)), (2, vec!["v"]));
    call(&mut play, &[], &[("v", wrong())]);
    assert_eq!((attempt(&play, "v"), stale(&play)), (2, vec!["v"]));
    call(&mut play, &[], &[("v:1", wrong())]);
    assert_eq!(attempt(&play, "v"), 2);
    call(&mut play, &[], &[("v:2", valid())]);
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

#[test]
fn consecutive_attempt_outputs_are_taken_together() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {}, "retries": 3 });
    let all = [("v:1", wrong()), ("v:2", wrong()), ("v:3", valid()), ("v:4", valid())];
    let check = |is_asked: bool, brought: &[(&str, Output)], expected: (Ending, u32)| {
        let mut play = steps(AnswerSource::Caller, &json!([asks]));
        if is_asked {
            play.start();
        }
        call(&mut play, &[], brought);
        assert_eq!((play.run.phase, attempt(&play, "v")), (Phase::Ended(expected.0), expected.1));
    };
    for is_asked in [false, true] {
        check(is_asked, &all, (Ending::Completed, 3));
        check(is_asked, &all[..2], (Ending::NeedsCaller, 3));
        check(is_asked, &[("v:1", wrong()), ("v:3", valid())], (Ending::NeedsCaller, 2));
        let wrong = [("v:1", wrong()), ("v:2", wrong()), ("v:3", wrong()), ("v:4", valid())];
        check(is_asked, &wrong, (Ending::Failed, 3));
    }
}

#[test]
fn callers_output_is_taken_at_its_step() {
    let asks = |id: &str| json!({ "id": id, "kind": "agent", "prompt": "?", "schema": {} });
    let mut play = steps(AnswerSource::Caller, &json!([asks("u"), exec("a"), asks("v")]));
    call(&mut play, &[], &[("u", valid()), ("v", wrong())]);
    assert_eq!(play.run.agents[&"main".into()].visit.location.to_string(), "a");
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!(play.run.phase, Phase::Ended(Ending::NeedsCaller));
    assert_eq!((attempt(&play, "u"), attempt(&play, "v")), (1, 2));
}

#[test]
fn step_output_goes_to_first_waiting_iteration() {
    let each = json!({
        "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x", "parallel": true,
        "body": [{ "id": "v", "kind": "agent", "prompt": "?", "schema": {} }],
    });
    let mut play = steps(AnswerSource::Caller, &json!([each]));
    play.start();
    let done = |play: &Play| -> Vec<String> {
        play.run.program.steps().unwrap().results.keys().map(ToString::to_string).collect()
    };
    call(&mut play, &[], &[("v", valid())]);
    assert_eq!(done(&play), ["l[0].v"]);
    call(&mut play, &[], &[("l[2].v", valid()), ("v", wrong())]);
    assert_eq!(done(&play), ["l[0].v", "l[2].v"]);
    assert_eq!(attempt(&play, "l[1].v"), 2);
    call(&mut play, &[], &[("v", valid())]);
    assert_eq!(stale(&play), ["v"], "the first that waits is at another attempt");
    call(&mut play, &[("l[1].v", 2)], &[("v", valid())]);
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

#[test]
fn claimed_attempts_beyond_the_limit_are_refused() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {}, "retries": 2 });
    let mut play = steps(AnswerSource::Caller, &json!([asks]));
    call(&mut play, &[("v", 3)], &[("v", valid())]);
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
}

#[test]
fn unstorable_output_uses_up_an_attempt() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {}, "retries": 2 });
    let mut play = steps(AnswerSource::Backend, &json!([asks]));
    play.start();
    let huge = Value::Blob(BlobRef { hash: Hash::of(b"huge"), length: MOST_KEPT + 1 });
    play.says_so("main", "", |finished| {
        finished.reply.verdict = Some(Verdict::Valid);
        finished.reply.text = huge;
    });
    let flow = play.run.program.steps().unwrap();
    let message = "the results of a run would have more than 24 MiB";
    let complaint = Problem::new("", ProblemCode::TooLarge, message);
    assert_eq!(flow.complaints[&"v".parse().unwrap()], [complaint]);
    play.says_so("main", "1", |finished| finished.reply.verdict = Some(Verdict::Valid));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

#[test]
fn steps_sharing_a_conversation_run_in_turn() {
    let asks = json!({
        "id": "v", "kind": "agent", "prompt": "?", "schema": {}, "session": { "mode": "sticky" },
    });
    let each = parallel(&json!({ "body": [asks] }));
    let mut play = steps(AnswerSource::Backend, &json!([each]));
    play.start();
    for _ in 0..3 {
        let [agent] = running(&play).try_into().unwrap();
        play.says_so(&agent, "1", |finished| finished.reply.verdict = Some(Verdict::Valid));
    }
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
    assert_eq!(play.run.program.steps().unwrap().sessions.len(), 1);
}

#[test]
fn shared_conversation_is_opened_continued_and_dropped() {
    let asks = |id: &str, session: Json| json!({ "id": id, "kind": "agent", "prompt": "?", "schema": {}, "session": session });
    let sticky = || json!({ "mode": "sticky" });
    let reset = json!({ "mode": "sticky", "reset": true });
    let all =
        json!([asks("a", sticky()), asks("b", sticky()), asks("c", reset), asks("d", sticky())]);
    let mut play = steps(AnswerSource::Backend, &all);
    play.start();
    let mut sessions = Vec::new();
    while let Some(turn) = play.run.scheduler.turns.values().next() {
        sessions.push(turn.plan.clone());
        play.says_so("main", "1", |finished| finished.reply.verdict = Some(Verdict::Valid));
    }
    let [
        SessionPlan::Fresh(first),
        SessionPlan::Resume(on),
        SessionPlan::Fresh(second),
        SessionPlan::Resume(last),
    ] = &sessions[..]
    else {
        panic!("{sessions:?}");
    };
    assert_eq!((on, last), (first, second));
    assert_ne!(first, second);
}

#[test]
fn shared_conversation_is_identified_by_its_label() {
    let asks = |id: &str, assignee: &str, session: Json| {
        json!({
            "id": id, "kind": "agent", "prompt": "?", "schema": {}, "assigneeAgentId": assignee,
            "session": session,
        })
    };
    let all = json!([
        { "id": "a", "kind": "agent", "prompt": "?", "schema": {}, "session": { "mode": "sticky" } },
        asks("b", "musk", json!({ "mode": "sticky" })),
        asks("c", "musk", json!({ "mode": "sticky", "label": "own" })),
        asks("d", "musk", json!({ "mode": "ephemeral", "label": "alone" })),
        asks("e", "musk", json!({ "label": "without" })),
    ]);
    let check = |name: Option<&str>, expected: [&str; 3]| {
        let mut play = steps(AnswerSource::Backend, &all);
        let work = play.definition.steps.as_mut().unwrap();
        work.document.name = name.map(str::to_owned);
        play.start();
        while play.run.phase == Phase::Open {
            play.says_so("main", "1", |finished| finished.reply.verdict = Some(Verdict::Valid));
        }
        let labels: Vec<&String> = play.run.program.steps().unwrap().sessions.keys().collect();
        assert_eq!(labels, expected);
    };
    check(None, ["own", "wf:workflow:main", "wf:workflow:musk"]);
    check(Some("digest"), ["own", "wf:digest:main", "wf:digest:musk"]);
}

#[test]
fn step_failing_before_its_start_is_placed() {
    let asks = |retries: u32| json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {}, "retries": retries });
    let unknown = json!({ "id": "s", "kind": "exec", "shell": "{{vars.gone}}" });
    let no_list = |list: &str| json!({ "id": "m", "kind": "forEach", "listPath": list, "itemVar": "y", "body": [] });
    let failed =
        |error: &str, message: &str| json!({ "ok": false, "error": error, "message": message });
    let check = |step: &Json, key: &str, stored: Option<Json>| {
        let mut play = steps(AnswerSource::Caller, &json!([exec("a"), step]));
        let attempts = [("v".parse().unwrap(), 9)].into();
        let call = Input::Call(Box::new(Call { attempts, alone: true, ..Call::default() }));
        let begin = play.begin();
        play.feed(vec![begin, call]);
        leaves(&mut play, "main", &json!({ "ok": true }));
        assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
        let visit = &play.run.agents[&"main".into()].visit;
        assert_eq!((visit.location.to_string(), visit.number), (key.to_owned(), 2));
        let visits = play.last.iter().filter(|event| matches!(event, Event::VisitEntered { .. }));
        assert_eq!(visits.count(), 1);
        let results = &play.run.program.steps().unwrap().results;
        let left = results.get(&key.parse().unwrap()).map(|stored| stored.json().unwrap().clone());
        assert_eq!(left, stored);
    };
    let message = "at /steps/1/shell: `{{vars.gone}}` has no value here";
    check(&unknown, "s", Some(failed("unknown_name", message)));
    // Nothing is stored for a loop.
    check(&no_list("$.vars.gone"), "m", None);
    let message = "`attempts` says 9 for v, which has 2 at most";
    let mut left = failed("agent_output_schema_failed", message);
    let error = json!({ "path": "/attempts/v", "code": "out_of_range", "message": message });
    left["errors"] = json!([error]);
    check(&asks(2), "v", Some(left));
}

#[test]
fn failed_loop_leaves_an_entry_when_collected() {
    let inner = json!({
        "id": "m", "kind": "forEach", "listPath": "$.locals.x", "itemVar": "y", "body": [],
    });
    let outer = parallel(&json!({ "onError": "collect", "body": [inner] }));
    let mut play = steps(AnswerSource::Caller, &json!([outer, exec("z")]));
    play.start();
    assert_eq!(play.run.agents[&"main".into()].visit.location.to_string(), "z");
    let results = &play.run.program.steps().unwrap().results;
    let message = "$.locals.x is a number, not a list";
    let left = json!({ "ok": false, "error": "not_an_array", "message": message });
    let expected = [0, 1, 2].map(|n| (format!("l[{n}].m"), left.clone()));
    let reported =
        results.iter().map(|(key, stored)| (key.to_string(), stored.json().unwrap().clone()));
    assert_eq!(reported.collect::<Vec<_>>(), expected);
}

#[test]
fn earlier_calls_outputs_are_not_reused() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
    let mut play = steps(AnswerSource::Caller, &json!([exec("a"), asks]));
    call(&mut play, &[], &[("v", valid())]);
    fails(&mut play, "main");
    fails(&mut play, "main");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    play.resume();
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!(play.run.phase, Phase::Ended(Ending::NeedsCaller));
}

#[test]
fn reported_attempts_belong_to_first_asking_key() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
    let mut play = steps(AnswerSource::Caller, &json!([parallel(&json!({ "body": [asks] }))]));
    call(&mut play, &[("v", 2)], &[]);
    let attempts = &play.run.program.steps().unwrap().attempts;
    let reported: Vec<String> = attempts.iter().map(|(key, n)| format!("{key}:{n}")).collect();
    assert_eq!(reported, ["l[0].v:2", "l[1].v:1", "l[2].v:1"]);
}

#[test]
fn no_iteration_starts_after_a_failure() {
    let inner = json!({
        "id": "m", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "y", "parallel": true,
        "maxParallel": 2, "body": [{ "id": "a", "kind": "exec", "shell": "true" }],
    });
    let outer = parallel(&json!({ "onError": "collect", "maxParallel": 1, "body": [inner] }));
    let mut play = steps(AnswerSource::Caller, &json!([outer, exec("z")]));
    play.start();
    assert_eq!(running(&play).len(), 4, "the most of a run at a time");
    let mut begun = 0;
    while let Some(agent) = running(&play).first().cloned().filter(|agent| agent != "main") {
        begun += 1;
        fails(&mut play, &agent);
    }
    assert_eq!(begun, 6, "two of each three");
    assert_eq!(play.run.agents[&"main".into()].visit.location.to_string(), "z");
    assert_eq!(play.run.agents.len(), 1, "no strand is left behind");
}

#[test]
fn inner_failure_starts_no_outer_iteration() {
    let inner = json!({
        "id": "m", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "y", "parallel": true,
        "body": [{ "id": "a", "kind": "exec", "shell": "true" }],
    });
    let outer = parallel(&json!({ "maxParallel": 1, "body": [exec("first"), inner] }));
    let mut play = steps(AnswerSource::Caller, &json!([outer]));
    play.start();
    let [first] = running(&play).try_into().unwrap();
    play.settings.max_parallel = 1;
    leaves(&mut play, &first, &json!({ "ok": true }));
    let deep = running(&play).into_iter().find(|agent| agent.contains("_m")).unwrap();
    fails(&mut play, &deep);
    while let Some(agent) = running(&play).first().cloned() {
        leaves(&mut play, &agent, &json!({ "ok": true }));
    }
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    let results = &play.run.program.steps().unwrap().results;
    let firsts = results.keys().filter(|key| key.step.as_str() == "first").count();
    assert_eq!(firsts, 2, "{:?}", results.keys().map(ToString::to_string).collect::<Vec<_>>());
}

#[test]
fn resume_repeats_an_agent_step() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
    let mut play = steps(AnswerSource::Backend, &json!([asks]));
    play.start();
    play.fails("main", TurnFailure::Task { why: "no".into() });
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    play.resume();
    play.says_so("main", "1", |finished| finished.reply.verdict = Some(Verdict::Valid));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

fn asks(id: &str, retries: u32) -> Json {
    json!({ "id": id, "kind": "agent", "prompt": "?", "schema": {}, "retries": retries })
}

fn is_invalid(play: &mut Play, why: &str) {
    let errors = vec![Problem::of_value("/a", why)];
    play.says_so("main", "{}", |finished| {
        finished.reply.verdict = Some(Verdict::Invalid(errors));
    });
}

#[test]
fn resume_gives_a_failed_agent_step_new_attempts() {
    let mut play = steps(AnswerSource::Backend, &json!([exec("a"), asks("v", 2), exec("z")]));
    play.start();
    leaves(&mut play, "main", &json!({ "ok": true }));
    let request = |play: &Play| {
        let (steps, state) = (play.definition.steps.as_deref(), play.run.program.steps());
        let request = steps.unwrap().request(state.unwrap(), &"main".into(), &"v".parse().unwrap());
        let request = request.unwrap();
        let errors = request.validation_errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        (request.attempt, request.max_attempts, errors.join(", "))
    };
    let said = |why: &str| format!("/a: {why}");
    is_invalid(&mut play, "one");
    assert_eq!(request(&play), (2, 2, said("one")));
    is_invalid(&mut play, "two");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    play.resume();
    assert_eq!((request(&play), play.prompt().count), ((3, 4, said("two")), 3));
    is_invalid(&mut play, "three");
    assert_eq!(request(&play), (4, 4, said("three")));
    is_invalid(&mut play, "four");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    play.resume();
    assert_eq!(request(&play), (5, 6, said("four")));
    // A failure of the client uses up no attempt.
    play.fails("main", TurnFailure::Task { why: "it is down".into() });
    play.resume();
    assert_eq!(request(&play), (5, 6, said("four")));
    play.says_so("main", "1", |finished| finished.reply.verdict = Some(Verdict::Valid));
    assert_eq!(play.run.agents[&"main".into()].visit.location.to_string(), "z");
    let started = play.story.iter().filter(|event| matches!(event, Event::TurnStarted { .. }));
    assert_eq!(started.count(), 8, "the first program runs once");
}

#[test]
fn failure_ends_the_run_before_new_attempts() {
    let mut play = steps(AnswerSource::Backend, &json!([asks("v", 1)]));
    play.start();
    let invalid = Some(Verdict::Invalid(Vec::new()));
    let outcome = play.finished("main", "{}", |finished| finished.reply.verdict = invalid);
    // A recovery reports the last answer and resumes, in one batch.
    play.feed(vec![outcome, play.resume_input()]);
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    play.resume();
    assert_eq!((play.run.phase, attempt(&play, "v")), (Phase::Open, 2));
}

#[test]
fn calls_give_no_new_attempts() {
    let mut play = steps(AnswerSource::Caller, &json!([asks("v", 1)]));
    play.start();
    call(&mut play, &[], &[("v:1", wrong())]);
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    call(&mut play, &[], &[("v:2", valid())]);
    assert_eq!((play.run.phase, attempt(&play, "v")), (Phase::Ended(Ending::Failed), 1));
}

#[test]
fn cap_holds_for_new_attempts() {
    let mut play = steps(AnswerSource::Backend, &json!([asks("v", 1)]));
    play.settings.budget = Some("0.10".parse().unwrap());
    play.start();
    is_invalid(&mut play, "one");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    play.resume();
    assert_eq!(play.run.phase, Phase::Ended(Ending::OverBudget));
}

fn parallel(more: &Json) -> Json {
    let mut each = json!({
        "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x", "parallel": true,
        "body": [{ "id": "a", "kind": "exec", "shell": "true" }],
    });
    each.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    each
}

pub(crate) fn running(play: &Play) -> Vec<String> {
    play.run.scheduler.in_flight.iter().map(ToString::to_string).collect()
}

#[test]
fn loop_limits_its_parallel_programs() {
    let mut play = steps(AnswerSource::Caller, &json!([parallel(&json!({ "maxParallel": 2 }))]));
    play.start();
    let [first, _] = running(&play).try_into().unwrap();
    leaves(&mut play, &first, &json!({ "ok": true }));
    assert_eq!(running(&play).len(), 2);
}

#[test]
fn collected_failures_let_the_loop_continue() {
    let gate = json!({ "op": "eq", "path": "$.results.a.ok", "value": false });
    let after =
        json!({ "id": "g", "kind": "if", "cond": gate, "then": [exec("y")], "else": [exec("n")] });
    let each = parallel(&json!({ "onError": "collect" }));
    let mut play = steps(AnswerSource::Caller, &json!([each, after]));
    play.start();
    let agents = running(&play);
    leaves(&mut play, &agents[0], &json!({ "ok": true }));
    leaves(&mut play, &agents[1], &json!({ "ok": true }));
    fails(&mut play, &agents[2]);
    assert_eq!(
        play.run.agents[&"main".into()].visit.location.to_string(),
        "y",
        "the last item's counts"
    );
}

#[test]
fn started_iterations_end_after_a_failure() {
    let mut play =
        steps(AnswerSource::Caller, &json!([parallel(&json!({ "maxParallel": 2 })), exec("z")]));
    play.start();
    let agents = running(&play);
    fails(&mut play, &agents[0]);
    assert_eq!(play.run.phase, Phase::Open);
    assert_eq!(running(&play), agents[1..], "the third does not begin");
    leaves(&mut play, &agents[1], &json!({ "ok": true }));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    play.resume();
    assert_eq!(running(&play).len(), 2, "what failed is done again, and the third begins");
    while let Some(agent) = running(&play).first().cloned().filter(|agent| agent != "main") {
        leaves(&mut play, &agent, &json!({ "ok": true }));
    }
    assert_eq!(play.run.agents[&"main".into()].visit.location.to_string(), "z");
}

#[test]
fn collected_failure_still_waits_for_the_caller() {
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": {} });
    let once = json!({ "id": "x", "kind": "exec", "shell": "true" });
    let inner = json!({
        "id": "m", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "y", "parallel": true,
        "body": [once, asks],
    });
    let outer = parallel(&json!({ "onError": "collect", "body": [inner] }));
    let mut play = steps(AnswerSource::Caller, &json!([outer]));
    play.settings.max_parallel = 20;
    play.start();
    let agents = running(&play);
    assert_eq!(agents.len(), 9);
    for (n, agent) in agents.iter().enumerate() {
        if n % 3 == 1 {
            fails(&mut play, agent);
        } else {
            leaves(&mut play, agent, &json!({ "ok": true }));
        }
    }
    assert_eq!(play.run.phase, Phase::Ended(Ending::NeedsCaller));
    assert_eq!(play.run.scheduler.asks.len(), 6);
    let outputs: Vec<(String, Output)> =
        (0..3).flat_map(|l| [0, 2].map(|m| (format!("l[{l}].m[{m}].v"), valid()))).collect();
    let outputs: Vec<(&str, Output)> =
        outputs.iter().map(|(name, output)| (name.as_str(), output.clone())).collect();
    call(&mut play, &[], &outputs[..5]);
    assert_eq!(play.run.scheduler.asks.len(), 1);
    call(&mut play, &[], &outputs[5..]);
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

/// Edits the document of a failed or stopped run, and resumes the run with it.
fn adopt(play: &mut Play, steps: &Json, changed: &[&str]) {
    let document = Document::parse(&json!({ "steps": steps, "vars": { "list": [1, 2, 3] } }));
    let (document, vars) =
        (document.unwrap(), play.definition.steps.as_ref().unwrap().vars.clone());
    play.definition.steps = Some(Box::new(StepsDefinition { document, vars }));
    let changed = changed.iter().map(|id| id.parse().unwrap()).collect();
    let manifest = Value::from(format!("v{}", play.records.len()).as_str());
    let resume = play.resume_input();
    let happened = play.feed(vec![Input::Adopt { manifest, changed }, resume]);
    assert!(!happened.contains("refused"), "{happened}");
}

fn location(play: &Play) -> String {
    play.run.agents[&"main".into()].visit.location.to_string()
}

#[test]
fn edited_document_begins_at_its_first_unfinished_step() {
    let mut play = steps(AnswerSource::Backend, &json!([exec("a"), asks("v", 1), exec("z")]));
    play.start();
    leaves(&mut play, "main", &json!({ "ok": true }));
    is_invalid(&mut play, "one");
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    // A step is added before the one that failed, and the one behind it is removed.
    adopt(&mut play, &json!([exec("new"), exec("a"), asks("v", 2)]), &["v"]);
    assert_eq!(location(&play), "new");
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!((location(&play), attempt(&play, "v")), ("v".to_owned(), 2));
    let flow = play.run.program.steps().unwrap();
    assert!(flow.complaints[&"v".parse().unwrap()].is_empty(), "they were about another question");
    is_invalid(&mut play, "two");
    let flow = play.run.program.steps().unwrap();
    assert_eq!(flow.complaints[&"v".parse().unwrap()], [Problem::of_value("/a", "two")]);
    play.says_so("main", "1", |finished| finished.reply.verdict = Some(Verdict::Valid));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
    let started = play.story.iter().filter(|event| matches!(event, Event::TurnStarted { .. }));
    assert_eq!(started.count(), 5, "a and new once, v three times");
}

#[test]
fn failed_step_can_be_removed() {
    let mut play = steps(AnswerSource::Backend, &json!([exec("a"), exec("bad"), exec("z")]));
    play.start();
    leaves(&mut play, "main", &json!({ "ok": true }));
    fails(&mut play, "main");
    fails(&mut play, "main");
    adopt(&mut play, &json!([exec("a"), exec("z")]), &[]);
    assert_eq!(location(&play), "z");
    assert!(play.run.failed.is_empty() && play.run.live == 1);
}

#[test]
fn stopped_turn_is_dropped_for_an_edited_document() {
    let mut play = steps(AnswerSource::Backend, &json!([asks("v", 1), exec("z")]));
    play.start();
    play.halt();
    assert!(!play.run.scheduler.turns.is_empty());
    adopt(&mut play, &json!([exec("first"), asks("v", 1)]), &[]);
    assert_eq!(location(&play), "first");
    assert_eq!(play.run.scheduler.turns.len(), 1);
    leaves(&mut play, "main", &json!({ "ok": true }));
    play.says_so("main", "1", |finished| finished.reply.verdict = Some(Verdict::Valid));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
}

#[test]
fn turn_in_flight_prevents_an_edited_document() {
    let mut play = steps(AnswerSource::Backend, &json!([asks("v", 1)]));
    play.start();
    let before = play.run.clone();
    let (manifest, changed) = (Value::from("v2"), Vec::new());
    let refused = play.feed(vec![Input::Adopt { manifest, changed }]);
    let message = "main has an unfinished turn, whose outcome must be recorded first";
    assert_eq!((refused, play.run), (format!("refused: {message}"), before));
}

#[test]
fn parallel_iterations_begin_again_with_their_results() {
    let each =
        |on_error: &str| parallel(&json!({ "onError": on_error, "body": [exec("a"), exec("b")] }));
    let mut play = steps(AnswerSource::Backend, &json!([each("fail"), exec("z")]));
    play.start();
    let agents = running(&play);
    leaves(&mut play, &agents[0], &json!({ "ok": true }));
    leaves(&mut play, &agents[1], &json!({ "ok": true }));
    fails(&mut play, &agents[2]);
    fails(&mut play, &agents[2]);
    leaves(&mut play, &agents[0], &json!({ "ok": true }));
    leaves(&mut play, &agents[1], &json!({ "ok": true }));
    assert_eq!(play.run.phase, Phase::Ended(Ending::Failed));
    adopt(&mut play, &json!([each("collect"), exec("z")]), &[]);
    let [agent] = running(&play).try_into().unwrap();
    assert_eq!(play.run.agents[&agent.as_str().into()].visit.location.to_string(), "l[2].a");
    fails(&mut play, &agent);
    fails(&mut play, &agent);
    assert_eq!(location(&play), "z");
}

#[test]
fn collected_failure_is_repeated_only_after_an_edit() {
    let once = |id: &str| json!({ "id": id, "kind": "exec", "shell": "true" });
    let each = parallel(&json!({ "onError": "collect", "body": [once("a")] }));
    let with = |last: &str| json!([each, exec(last)]);
    let check = |changed: &[&str], expected: &str| {
        let mut play = steps(AnswerSource::Backend, &with("bad"));
        play.start();
        let agents = running(&play);
        leaves(&mut play, &agents[0], &json!({ "ok": true }));
        fails(&mut play, &agents[1]);
        leaves(&mut play, &agents[2], &json!({ "ok": true }));
        fails(&mut play, "main");
        fails(&mut play, "main");
        adopt(&mut play, &with("good"), changed);
        let at = play.run.agents.values().last().unwrap();
        assert_eq!(at.visit.location.to_string(), expected);
        let flow = play.run.program.steps().unwrap();
        assert!(flow.settled.is_empty() && !flow.results[&"l[1].a".parse().unwrap()].ok);
    };
    check(&[], "good");
    check(&["a"], "l[1].a");
}

#[test]
fn output_is_read_at_the_end() {
    let document = |output: &Json| {
        json!({ "vars": { "list": [1, 2] }, "output": output, "steps": [
            { "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x",
              "body": [exec("a")] },
            { "id": "g", "kind": "if", "cond": { "op": "exists", "path": "$.vars.gone" },
              "then": [exec("skipped")] } ] })
    };
    let check = |output: Json, expected: Json| {
        let mut play = steps(AnswerSource::Caller, &json!([]));
        let parsed = Document::parse(&document(&output)).unwrap();
        let vars = parsed.vars.clone();
        play.definition.steps = Some(Box::new(StepsDefinition { document: parsed, vars }));
        play.start();
        leaves(&mut play, "main", &json!({ "ok": true, "n": 1 }));
        leaves(&mut play, "main", &json!({ "ok": true, "n": 2 }));
        assert_eq!(play.run.phase, Phase::Ended(Ending::Completed));
        let flow = play.run.program.steps().unwrap();
        let output = play.definition.steps.as_ref().unwrap().output(flow);
        assert_eq!(output, Some(Ok(expected)));
    };
    check(json!("{{results.a.stdout}}"), Json::Null);
    check(json!(["{{results.a.ok}}", "a {{vars.list}}"]), json!([true, "a [1,2]"]));
    check(
        json!({ "x": "{{results.skipped}}", "y": "<{{vars.gone}}>" }),
        json!({ "x": null, "y": "<>" }),
    );
    let items = json!([{ "a": { "ok": true, "n": 1 } }, { "a": { "ok": true, "n": 2 } }]);
    check(json!("{{results.l.items}}"), items);
}

#[test]
fn output_that_is_too_large_fails_the_run() {
    let mut play = steps(AnswerSource::Caller, &json!([exec("a")]));
    let long = "x".repeat(1 << 20);
    let output = json!("{{vars.long}}".repeat(20));
    let document = json!({ "vars": { "long": long }, "steps": [exec("a")], "output": output });
    let document = Document::parse(&document).unwrap();
    let vars = document.vars.clone();
    play.definition.steps = Some(Box::new(StepsDefinition { document, vars }));
    play.start();
    leaves(&mut play, "main", &json!({ "ok": true }));
    assert_eq!((play.run.phase, location(&play)), (Phase::Ended(Ending::Failed), "output".into()));
    let flow = play.run.program.steps().unwrap();
    let stored: Vec<String> = flow.results.keys().map(ToString::to_string).collect();
    assert_eq!(stored, ["a"], "all results are kept");
}
