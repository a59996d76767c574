//! Failures on the way to the model: the number of requests, and the outcome.
//!
//! The client asks three times before it gives up (`CLAUDE_CODE_MAX_RETRIES=2`), unless an error is
//! final or the wait is too long. Errors come from the client's stream, costs from the model.

use raymond_core::prices::{Prices, Usage};
use raymond_testkit::model::{DEFAULT_USAGE, Failure, FaultDuration, NetworkState, RequestOutcome};
use serde_json::Value;

use crate::harness::until;
use crate::shown::{conversation, session};
use crate::stage::Stage;

/// The number of requests before the client gives up.
const TRIES: u32 = 3;

/// A run of one turn, and a server that fails from the start.
fn under(weather: NetworkState) -> Stage {
    let stage = Stage::prompts(&[("START", "model: say <result>done</result>")]);
    stage.model.set_network(weather).unwrap();
    stage
}

fn failing(status: u16, span: FaultDuration) -> NetworkState {
    NetworkState::Failing(Failure::new(status), span)
}

/// Every request, with a letter for its session: `A | START, again START`.
pub(crate) fn shown(stage: &Stage) -> Vec<String> {
    let requests = stage.requests();
    let mut sessions: Vec<&str> = Vec::new();
    let line = |seen| {
        let place = sessions.iter().position(|known| *known == session(seen));
        let place = place.unwrap_or_else(|| {
            sessions.push(session(seen));
            sessions.len() - 1
        });
        let letter = char::from(b'A' + u8::try_from(place).unwrap());
        format!("{letter} | {}", conversation(&seen.conversation))
    };
    requests.iter().map(line).collect()
}

/// The failures of turns: their kind, and the message of the client.
pub(crate) fn failures(stage: &Stage) -> Vec<(String, String)> {
    let failed = |event: &Value| {
        let (kind, failure) = event["failure"].as_object().unwrap().iter().next().unwrap();
        (kind.clone(), failure["why"].as_str().unwrap_or_default().to_owned())
    };
    stage.events("turn_failed").iter().map(failed).collect()
}

fn kinds(stage: &Stage) -> Vec<String> {
    failures(stage).into_iter().map(|(kind, _)| kind).collect()
}

/// Checks that one reply was delivered, and that the run paid for it.
#[track_caller]
fn is_billed_once(stage: &Stage) {
    let answered = stage.requests().iter().filter(|seen| seen.is_answered()).count();
    assert_eq!(answered, 1);
    is_billed(stage);
}

/// Checks that the run paid for the delivered replies. The client sometimes counts the beginning of
/// an interrupted reply.
#[track_caller]
fn is_billed(stage: &Stage) {
    let begun = Usage { output: 1, ..DEFAULT_USAGE };
    let cut = stage.requests().into_iter().filter(|seen| seen.outcome == RequestOutcome::Broken);
    let cut = cut.map(|seen| Prices::default().estimate(&seen.model, &begun).unwrap().0);
    let (billed, most) = (stage.billed(), stage.billed() + cut.sum::<u64>());
    let spent = stage.spent();
    assert!((billed..=most).contains(&spent), "{spent} is not {billed} to {most}");
    let charges = stage.charges();
    assert!(charges.iter().all(|(_, _, basis)| basis == "reported"), "{charges:?}");
}

/// Checks that the client recovers by itself after so many requests.
#[track_caller]
fn client_recovers(stage: &Stage, requests: usize) {
    stage.run("").prints("done\n").mentions(0, &[]);
    assert_eq!(kinds(stage), [""; 0]);
    assert_eq!(stage.events("turn_started").len(), 1);
    assert_eq!(shown(stage), vec!["A | START"; requests]);
    is_billed_once(stage);
    stage.leaves_nothing();
}

/// Checks that the client gives up after so many requests, and that Raymond retries.
#[track_caller]
fn raymond_retries(stage: &Stage, requests: usize) {
    stage.run("").prints("done\n").mentions(0, &["retry 1 of 5 follows"]);
    assert_eq!(kinds(stage), ["transient"]);
    let mut expected = vec!["A | START"; requests];
    expected.push("A | START, again START");
    assert_eq!(shown(stage), expected);
    is_billed_once(stage);
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn missing_login_waits_without_retries() {
    // The client would wait this long before its next request.
    let refused = Failure::new(401).with_header("retry-after", "20");
    let stage = under(NetworkState::Failing(refused, FaultDuration::UntilChanged));
    stage.run("").mentions(3, &["not logged in", "claude /login", "raymond resume r"]);
    // After its own retries, the client would print another sentence.
    let said = "run `claude /login` or set ANTHROPIC_API_KEY; the client says: \
                authentication_failed (401)";
    assert_eq!(failures(&stage), [("auth".to_owned(), said.to_owned())]);
    assert_eq!(stage.requests().len(), 1, "the client is not left to its own retries");
    assert_eq!(stage.raymond("status r --json").json()["status"], "waiting");
    stage.leaves_nothing();

    stage.model.set_network(NetworkState::Normal).unwrap();
    stage.raymond("resume r").prints("done\n").mentions(0, &[]);
    // The client was interrupted like by a person, and records that in the conversation.
    let interrupted = "[Request interrupted by user], No response requested.";
    assert_eq!(shown(&stage).last().unwrap(), &format!("A | START, {interrupted}, again START"));
    is_billed_once(&stage);
}

/// Checks that the run waits for a person after a single request, and continues after a resume.
#[track_caller]
fn waits_for_a_person(failure: Failure, why: &str) {
    let stage = under(NetworkState::Failing(failure, FaultDuration::UntilChanged));
    stage.run("").mentions(3, &[why, "raymond resume r"]);
    assert_eq!(kinds(&stage), ["auth"], "{:?}", failures(&stage));
    assert_eq!(shown(&stage), ["A | START"]);
    assert_eq!(stage.raymond("status r --json").json()["status"], "waiting");
    assert_eq!(stage.spent(), 0);
    stage.leaves_nothing();
    stage.model.set_network(NetworkState::Normal).unwrap();
    stage.raymond("resume r").prints("done\n").mentions(0, &[]);
    assert_eq!(shown(&stage).last().unwrap(), "A | START, again START");
    is_billed_once(&stage);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn forbidden_key_waits_for_a_person() {
    waits_for_a_person(Failure::new(403).with_message("not for this key"), "not for this key");
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn empty_balance_waits_for_a_person() {
    // The server calls this an invalid request, and those fail their agent.
    let credit = "Your credit balance is too low to access the Anthropic API. \
                  Please go to Plans & Billing to upgrade or purchase credits.";
    let credit = Failure::new(400).with_kind("invalid_request_error").with_message(credit);
    waits_for_a_person(credit, "Credit balance is too low");
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn short_server_failure_is_left_to_the_client() {
    client_recovers(&under(failing(500, FaultDuration::NextRequests(1))), 2);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn rate_limited_request_is_repeated_by_the_client() {
    let early = Failure::new(429).with_header("retry-after", "1");
    client_recovers(&under(NetworkState::Failing(early, FaultDuration::NextRequests(1))), 2);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn failing_server_is_retried() {
    raymond_retries(&under(failing(500, FaultDuration::NextRequests(TRIES))), 3);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn overloaded_server_is_retried() {
    raymond_retries(&under(failing(529, FaultDuration::NextRequests(TRIES))), 3);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn dropped_connections_are_retried() {
    raymond_retries(&under(NetworkState::Dropping(FaultDuration::NextRequests(TRIES))), 3);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn truncated_text_is_requested_again_by_the_client() {
    // The start of the message, the start of its text, and half of the text.
    client_recovers(&under(NetworkState::Cutting(3, FaultDuration::NextRequests(1))), 2);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn always_truncated_text_is_retried_by_raymond() {
    // The client's last request is one without a stream.
    raymond_retries(&under(NetworkState::Cutting(3, FaultDuration::NextRequests(TRIES + 1))), 4);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn tool_with_a_truncated_call_does_not_run() {
    let call = r#"model: tool Bash {"command":"echo x >> effects"}"#;
    let stage = Stage::prompts(&[("START", &format!("{call}\nmodel: say <result>done</result>"))]);
    stage.model.set_network(NetworkState::Cutting(3, FaultDuration::NextRequests(1))).unwrap();
    let words = ["run", "wf", "--run-id", "r", "--allow", "Bash(echo:*)"];
    stage.start_words(&words).wait().prints("done\n").mentions(0, &[]);
    assert_eq!(stage.project.read("effects"), "x\n");
    assert_eq!(shown(&stage), ["A | START", "A | START", "A | START, Bash, done"]);
    assert_eq!(kinds(&stage), [""; 0]);
    is_billed(&stage);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn dead_server_fails_the_agent_until_resume() {
    let stage = under(failing(500, FaultDuration::UntilChanged));
    stage.run("--retries 1").mentions(1, &["failed: transient failure", "raymond resume r"]);
    assert_eq!(kinds(&stage), ["transient", "transient"]);
    let (first, second) = ("A | START", "A | START, again START");
    assert_eq!(shown(&stage), [first, first, first, second, second, second]);
    assert_eq!(stage.spent(), 0);
    stage.model.set_network(NetworkState::Normal).unwrap();
    stage.raymond("resume r").prints("done\n").mentions(0, &[]);
    assert_eq!(shown(&stage)[6], "A | START, again START, again START");
    is_billed_once(&stage);
}

/// Checks that the agent fails at once, after so many requests.
#[track_caller]
fn is_final(stage: &Stage, requests: usize, why: &str) {
    stage.run("").mentions(1, &[why, "raymond resume r"]);
    assert_eq!(kinds(stage), ["task"], "{:?}", failures(stage));
    assert_eq!(stage.events("turn_started").len(), 1);
    assert_eq!(stage.requests().len(), requests);
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn too_long_prompt_is_not_retried() {
    let long = "prompt is too long: 250000 tokens > 200000 maximum";
    let long = Failure::new(400).with_kind("invalid_request_error").with_message(long);
    is_final(
        &under(NetworkState::Failing(long, FaultDuration::UntilChanged)),
        1,
        "Prompt is too long",
    );
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn too_large_request_is_not_retried() {
    is_final(&under(failing(413, FaultDuration::UntilChanged)), 1, "Request too large");
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn unknown_model_is_not_retried() {
    let unknown =
        Failure::new(404).with_kind("not_found_error").with_message("model: no-such-model");
    let stage = under(NetworkState::Failing(unknown, FaultDuration::UntilChanged));
    is_final(&stage, 2, "issue with the selected model");
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn invalid_request_is_not_retried() {
    // The client leaves out one optional part of its request after the other. None is billed.
    let invalid =
        Failure::new(400).with_kind("invalid_request_error").with_message("no such thing");
    is_final(
        &under(NetworkState::Failing(invalid, FaultDuration::UntilChanged)),
        6,
        "no such thing",
    );
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn refusal_is_not_retried() {
    // The client reports the refusal to the model once, and continues.
    let stage = Stage::prompts(&[("START", "model: refuse\nmodel: then\nmodel: refuse")]);
    is_final(&stage, 2, "the model refused");
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn outage_loses_no_work_and_no_conversation() {
    let stage = Stage::prompts(&[
        ("START", "model: wait first\nmodel: say <goto>ONE</goto>"),
        ("ONE", "model: say <goto>TWO</goto>"),
        (
            "TWO",
            "model: wait second
            model: tool Bash {\"command\":\"echo x >> effects\"}
            model: say <goto>END</goto>
            model: again
            model: say <goto>END</goto>",
        ),
        ("END", "model: say <result>done</result>"),
    ]);
    let words = ["run", "wf", "--run-id", "r", "--allow", "Bash(echo:*)"];
    let running = stage.start_words(&words);
    // The server refuses connections when the second turn begins.
    stage.reaches("first");
    stage.model.set_network(NetworkState::Refusing).unwrap();
    stage.opens("first");
    until("the connection was refused", || kinds(&stage).len() == 1);
    stage.model.set_network(NetworkState::Normal).unwrap();
    // The server goes down while the third turn is at its tool.
    stage.reaches("second");
    stage.model.set_network(failing(503, FaultDuration::UntilChanged)).unwrap();
    stage.opens("second");
    until("the server failed", || kinds(&stage).len() == 2);
    stage.model.set_network(NetworkState::Normal).unwrap();
    running.wait().prints("done\n").mentions(0, &["ONE.md: transient", "TWO.md: transient"]);

    assert_eq!(kinds(&stage), ["transient", "transient"]);
    let one = "A | START, <goto>ONE</goto>, ONE, again ONE";
    let two = format!("{one}, <goto>TWO</goto>, TWO");
    let down = format!("{two}, Bash, done");
    let again = format!("{down}, again TWO");
    let end = format!("{again}, <goto>END</goto>, END");
    assert_eq!(shown(&stage), ["A | START", one, &two, &down, &down, &down, &again, &end]);
    assert_eq!(stage.project.read("effects"), "x\n");
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}
