//! The texts about a run of steps.

use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::{Value as Json, json};

use super::{ledger, lines_of, shown};
use crate::crayfish::call::Output;
use crate::crayfish::stored::{ParsedJson, Stored};
use crate::crayfish::verdict::Verdict;
use crate::crayfish::{Call, Document, Problem, StepsDefinition};
use crate::decide::tests::play::{Play, prompts};
use crate::failure::TurnFailure;
use crate::run::program::AnswerSource;
use crate::run::stop::StopMode;
use crate::run::{Input, Program};
use crate::time::{Span, Timestamp};
use crate::value::Value;
use crate::view::{BackendLabels, OwnerState, RunView, ViewEvent, is_final, place};

fn steps(answers: AnswerSource, steps: &Json) -> Play {
    let document = json!({ "steps": steps, "vars": { "list": [1, 2], "no": false, "word": "x" } });
    let document = Document::parse(&document).unwrap();
    let vars = document.vars.clone();
    let mut definition = prompts(&["NONE.md"]);
    definition.states.clear();
    definition.steps = Some(Box::new(StepsDefinition { document, vars }));
    let mut play = Play::new(definition).running(Program::steps_of(answers));
    play.settings.vars = [("list:", "[1]"), ("name", "a b")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    play.start();
    play
}

fn exec(id: &str, retries: u32) -> Json {
    json!({ "id": id, "kind": "exec", "shell": "true", "retries": retries })
}

fn asks(id: &str) -> Json {
    json!({ "id": id, "kind": "agent", "prompt": "x", "schema": {}, "retries": 2 })
}

fn each(on_error: &str, body: &Json) -> Json {
    json!({ "id": "each", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "i",
            "parallel": true, "onError": on_error, "body": body })
}

fn done(play: &mut Play, agent: &str) {
    let result = json!({ "ok": true });
    let read = ParsedJson(Some(Arc::new(result.clone())));
    play.says_so(agent, &result.to_string(), |finished| finished.reply.read = read);
}

fn invalid(play: &mut Play, agent: &str) {
    let errors =
        vec![Problem::of_value("/a", "it is missing"), Problem::of_value("", "it is short")];
    play.says_so(agent, "{}", |finished| finished.reply.verdict = Some(Verdict::Invalid(errors)));
}

fn fails(play: &mut Play, agent: &str) {
    let result = Stored::inline(json!({ "ok": false }), false);
    play.fails(agent, TurnFailure::Step { why: "exit status 1".into(), result, again: true });
}

/// Answers as the caller of a run.
fn call(play: &mut Play, name: &str, verdict: Verdict) {
    let stored = Stored::inline(json!({ "ok": true, "json": name }), true);
    let outputs = [(name.to_owned(), Output { stored, verdict })].into();
    let call = Input::Call(Box::new(Call { outputs, ..Call::default() }));
    play.feed(vec![play.resume_input(), call]);
}

#[test]
fn a_story_of_steps_reads_well() {
    let mut play = steps(AnswerSource::Backend, &json!([exec("a", 2), asks("b"), exec("c", 1)]));
    fails(&mut play, "main");
    done(&mut play, "main");
    invalid(&mut play, "main");
    done(&mut play, "main");
    done(&mut play, "main");
    assert_snapshot!(lines_of(&play), @"
      main       starts at a
    . main       a: turn 1
    ! main       a: exit status 1; attempt 2 of 2 follows
    . main       a: turn 1, attempt 2
      main       a → b
    . main       b: turn 1
    ! main       b: not valid: /a: it is missing (and 1 more problem); attempt 2 follows
    . main       b: turn 2
      main       b → c · $0.20
    . main       c: turn 1
      main       ended
      -          completed
    ");
    assert_snapshot!(shown(&play, OwnerState::Gone), @"completed: every step is done: Show");
}

#[test]
fn collected_failures_are_shown() {
    let mut play = steps(
        AnswerSource::Backend,
        &json!([each("collect", &json!([exec("try", 1), asks("judge")]))]),
    );
    fails(&mut play, "main_each1");
    done(&mut play, "main_each2");
    invalid(&mut play, "main_each2");
    invalid(&mut play, "main_each2");
    assert_snapshot!(lines_of(&play), @"
      main_each1 starts at each[0].try
      main_each2 starts at each[1].try
    . main_each1 each[0].try: turn 1
    . main_each2 each[1].try: turn 1
    ! main_each1 each[0].try: failed, and was collected: exit status 1
      main_each1 ended
      main_each2 each[1].try → each[1].judge
    . main_each2 each[1].judge: turn 1
    ! main_each2 each[1].judge: not valid: /a: it is missing (and 1 more problem); attempt 2 follows
    . main_each2 each[1].judge: turn 2
    ! main_each2 each[1].judge: failed, and was collected: no output of 2 was valid: /a: it is missing
      main_each2 ended · $0.20
      main       ended
      -          completed
    ");
    assert_snapshot!(shown(&play, OwnerState::Gone), @"completed: every step is done; 2 failures were collected: Show");
}

#[test]
fn ended_call_run_needs_another_run() {
    let mut play = steps(AnswerSource::Caller, &json!([asks("a")]));
    play.stop(StopMode::Cancel);
    assert_snapshot!(shown(&play, OwnerState::Gone), @"cancelled: a user cancelled it: Call(OtherRun)");
    let mut play = steps(AnswerSource::Caller, &json!([exec("a", 1)]));
    fails(&mut play, "main");
    assert_snapshot!(shown(&play, OwnerState::Gone), @r#"failed: main failed at a: exec_failed: exit status 1 (Output { agent: None, location: "a" }): Call(SameRun)"#);
    let until = json!({ "op": "eq", "path": "$.vars.no", "value": true });
    let stays = json!({ "id": "stays", "kind": "while", "maxIters": 1, "until": until, "body": [exec("a", 1)] });
    let mut play = steps(AnswerSource::Caller, &json!([stays]));
    done(&mut play, "main");
    assert_snapshot!(shown(&play, OwnerState::Gone), @"failed: main failed at stays: while_not_converged: `until` does not hold after 1 iteration: Call(OtherRun)");
}

#[test]
fn final_failure_needs_new_run_with_results() {
    let mut play = steps(AnswerSource::Caller, &json!([asks("a")]));
    let wrong = || Verdict::Invalid(vec![Problem::of_value("/a", "it is missing")]);
    call(&mut play, "a:1", wrong());
    call(&mut play, "a:2", wrong());
    assert_snapshot!(shown(&play, OwnerState::Gone), @"failed: main failed at a: agent_output_schema_failed: no output of 2 was valid: /a: it is missing: Call(OtherRunWithResults)");
}

#[test]
fn nothing_is_final_while_running() {
    let gone = json!({ "id": "g", "kind": "if", "cond": { "op": "eq", "path": "$.locals.i", "value": 1 },
        "then": [{ "id": "bad", "kind": "exec", "shell": "{{vars.gone}}" }] });
    let mut play =
        steps(AnswerSource::Backend, &json!([each("fail", &json!([exec("a", 1), gone]))]));
    done(&mut play, "main_each1");
    assert!(!play.run.failed.is_empty() && !is_final(&play.run));
    done(&mut play, "main_each2");
    assert!(is_final(&play.run));
}

#[test]
fn stopping_user_of_a_call_is_named() {
    let mut play = steps(AnswerSource::Caller, &json!([exec("a", 1)]));
    play.halt();
    assert_snapshot!(shown(&play, OwnerState::Gone), @"stopped: a user stopped it: Call(SameRun)");
}

#[test]
fn repeated_step_is_one_path_entry() {
    let mut play = steps(AnswerSource::Backend, &json!([exec("a", 1), exec("b", 1)]));
    done(&mut play, "main");
    fails(&mut play, "main");
    play.resume();
    done(&mut play, "main");
    assert_snapshot!(lines_of(&play), @r#"
      main       starts at a
    . main       a: turn 1
      main       a → b
    . main       b: turn 1
    x main       b: failed: exec_failed: exit status 1
      -          failed
      -          resumed
      main       b: continues after its failure
    . main       b: turn 1
      main       ended
      -          completed
    "#);
    assert_eq!(ledger(&play).path.fitted(|_| true), "a → b");
}

#[test]
fn answer_problems_are_shown_once() {
    let mut play = steps(AnswerSource::Backend, &json!([asks("a")]));
    invalid(&mut play, "main");
    play.fails("main", TurnFailure::Task { why: "it is down".into() });
    play.resume();
    done(&mut play, "main");
    assert_snapshot!(lines_of(&play), @"
      main       starts at a
    . main       a: turn 1
    ! main       a: not valid: /a: it is missing (and 1 more problem); attempt 2 follows
    . main       a: turn 2
    x main       a: failed: the client reports failure: it is down
      -          failed
      -          resumed
      main       a: continues after its failure
    . main       a: turn 1
      main       ended · $0.30
      -          completed
    ");
}

#[test]
fn collected_step_hides_earlier_failures() {
    let asked =
        json!({ "id": "judge", "kind": "agent", "prompt": "x", "schema": {}, "retries": 1 });
    let mut play = steps(AnswerSource::Backend, &json!([each("collect", &json!([asked]))]));
    let until = Some(Timestamp(0) + Span::minutes(1));
    play.fails("main_each1", TurnFailure::Quota { until, why: "noon".into() });
    play.after(Span::minutes(2));
    invalid(&mut play, "main_each1");
    let lines = lines_of(&play);
    let collected = lines.lines().find(|line| line.contains("and was collected"));
    assert_snapshot!(collected.unwrap_or(&lines), @"! main_each1 each[0].judge: failed, and was collected: no output of 1 was valid: /a: it is missing");
}

#[test]
fn a_variable_without_a_value_is_asked_for() {
    let step = json!({ "id": "a", "kind": "exec", "shell": "echo {{vars.who}}" });
    let mut play = steps(AnswerSource::Backend, &json!([exec("b", 1), step]));
    done(&mut play, "main");
    assert_snapshot!(shown(&play, OwnerState::Gone), @r#"failed: main failed at a: unknown_name: at /steps/1/shell: `{{vars.who}}` has no value here (MissingVariable { name: "who" }): Resume([CurrentStates, Variable(Missing { name: "who" })])"#);
}

#[test]
fn list_variable_is_requested_as_a_list() {
    let mut words = each("fail", &json!([exec("try", 1)]));
    words["listPath"] = "$.vars.word".into();
    let play = steps(AnswerSource::Backend, &json!([words]));
    assert_snapshot!(shown(&play, OwnerState::Gone), @r#"failed: main failed at each: not_an_array: $.vars.word is a string, not a list (ListVariable { name: "word" }): Resume([CurrentStates, Variable(NotAList { name: "word" })])"#);
    // A caller sets variables in its request, not by flag.
    let play = steps(AnswerSource::Caller, &json!([words]));
    assert_snapshot!(shown(&play, OwnerState::Gone), @"failed: main failed at each: not_an_array: $.vars.word is a string, not a list: Call(OtherRunWithResults)");
}

#[test]
fn a_program_that_failed_can_be_tried_again() {
    let mut play = steps(AnswerSource::Backend, &json!([exec("a", 1)]));
    fails(&mut play, "main");
    assert_snapshot!(shown(&play, OwnerState::Gone), @r#"failed: main failed at a: exec_failed: exit status 1 (Output { agent: None, location: "a" }): Resume([])"#);
    assert!(!is_final(&play.run));
}

#[test]
fn invalid_answers_can_be_asked_for_again() {
    let mut play = steps(AnswerSource::Backend, &json!([asks("a")]));
    invalid(&mut play, "main");
    invalid(&mut play, "main");
    assert_snapshot!(shown(&play, OwnerState::Gone), @r#"failed: main failed at a: agent_output_schema_failed: no output of 2 was valid: /a: it is missing (Output { agent: None, location: "a" }): Resume([])"#);
    assert!(!is_final(&play.run));
    play.resume();
    done(&mut play, "main");
    assert_snapshot!(lines_of(&play), @"
      main       starts at a
    . main       a: turn 1
    ! main       a: not valid: /a: it is missing (and 1 more problem); attempt 2 follows
    . main       a: turn 2
    x main       a: failed: agent_output_schema_failed: no output of 2 was valid: /a: it is missing
      -          failed
      -          resumed
      main       a: continues after its failure
    ! main       a: not valid: /a: it is missing (and 1 more problem); attempt 3 follows
    . main       a: turn 1
      main       ended · $0.30
      -          completed
    ");
}

#[test]
fn loop_is_where_its_branch_is() {
    let until = json!({ "op": "eq", "path": "$.vars.no", "value": true });
    let stays = json!({ "id": "stays", "kind": "while", "maxIters": 1, "until": until, "body": [exec("a", 1)] });
    let mut play = steps(AnswerSource::Backend, &json!([stays]));
    done(&mut play, "main");
    assert_snapshot!(shown(&play, OwnerState::Gone), @"failed: main failed at stays: while_not_converged: `until` does not hold after 1 iteration: Resume([CurrentStates])");
    let play = steps(AnswerSource::Backend, &json!([each("fail", &json!([exec("try", 1)]))]));
    let at = |agent: &str| place(&play.run, &play.run.agents[&agent.into()]);
    assert_eq!((at("main"), at("main_each2")), ("each".to_owned(), "each[1].try".to_owned()));
}

#[test]
fn only_the_caller_continues_a_tool_run() {
    let play = steps(AnswerSource::Caller, &json!([asks("a")]));
    assert_snapshot!(shown(&play, OwnerState::Gone), @"waiting: the caller has to answer `play:a:1`: Call(SameRun)");
    let play = steps(AnswerSource::Caller, &json!([each("fail", &json!([asks("judge")]))]));
    assert_snapshot!(shown(&play, OwnerState::Gone), @"waiting: the caller has to answer `play:each[0].judge:1` and 1 more request: Call(SameRun)");
}

#[test]
fn caller_answers_are_shown_with_their_outcome() {
    let mut play = steps(AnswerSource::Caller, &json!([asks("a"), asks("b")]));
    let errors = vec![Problem::of_value("/a", "it is missing"), Problem::of_value("", "short")];
    call(&mut play, "a:1", Verdict::Invalid(errors));
    call(&mut play, "a", Verdict::Valid);
    call(&mut play, "a:2", Verdict::Valid);
    // Sent before the step asked for it.
    let mut early = steps(AnswerSource::Caller, &json!([exec("x", 1), asks("b")]));
    call(&mut early, "b", Verdict::Valid);
    done(&mut early, "main");
    let mut view = RunView::default();
    let shown = play.story.iter().chain(&early.story).filter_map(|event| {
        let told = view.note(Timestamp(0), event)?;
        let ViewEvent::Answered { attempt, value: Value::Inline(said) } = told else { return None };
        let (turn, title) = (attempt.turn.turn, attempt.title(BackendLabels::Hidden));
        Some(format!("{turn} {title} {said}"))
    });
    assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @r#"
    1 a · attempt 1 · answered by the caller, not valid: /a: it is missing (and 1 more problem) {"json":"a:1","ok":true}
    2 a · attempt 2 · answered by the caller, for an attempt that is over {"json":"a","ok":true}
    2 a · attempt 2 · answered by the caller {"json":"a:2","ok":true}
    1 b · attempt 1 · answered by the caller {"json":"b","ok":true}
    "#);
}
