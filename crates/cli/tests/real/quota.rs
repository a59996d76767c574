//! Usage limits, from the headers of the server to a run that waits and continues by itself.
//!
//! Only a personal login has usage limits with an end; with a key, the client learns of a limit but
//! not of its duration.

use std::time::{SystemTime, UNIX_EPOCH};

use raymond_testkit::model::{Failure, FaultDuration, NetworkState};
use rustix::process::Signal;
use serde_json::Value;

use crate::faults::{failures, shown};
use crate::harness::until;
use crate::stage::Stage;

const HOUR: u64 = 3600;
/// The shortest hold, in milliseconds: a limit that ends sooner lasts as long.
const SHORTEST_HOLD: u64 = 30_000;

/// A client with the login of a person instead of a key.
fn logged_in(stage: Stage) -> Stage {
    stage.with("ANTHROPIC_API_KEY=").with("CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-not-a-token")
}

fn one_prompt() -> Stage {
    Stage::prompts(&[("START", "model: say <result>done</result>")])
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The answer of the server when the limit of five hours is used up.
fn limit(reset: u64) -> Failure {
    Failure::new(429)
        .with_kind("rate_limit_error")
        .with_header("anthropic-ratelimit-unified-status", "rejected")
        .with_header("anthropic-ratelimit-unified-reset", &reset.to_string())
        .with_header("anthropic-ratelimit-unified-representative-claim", "five_hour")
}

pub(crate) fn status(stage: &Stage) -> Value {
    stage.raymond("status r --json").json()
}

/// When the one hold of the journal began and when it ends, in milliseconds since 1970.
#[track_caller]
pub(crate) fn hold(stage: &Stage) -> (u64, u64) {
    let records = stage.project.records("r");
    let holds = records.iter().flat_map(|record| {
        let steps = record["steps"].as_array().unwrap().iter();
        let events = steps.flat_map(|step| step["events"].as_array().unwrap());
        let held = events.filter_map(|event| event.get("backend_held"));
        held.map(|held| (number(&record["at"]), number(&held["hold"]["quota"]["until"])))
    });
    let holds: Vec<(u64, u64)> = holds.collect();
    let [hold] = holds[..] else { panic!("one hold: {holds:?}") };
    hold
}

#[track_caller]
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number: {value}"))
}

/// When each turn started, in milliseconds since 1970.
pub(crate) fn starts(stage: &Stage) -> Vec<u64> {
    let records = stage.project.records("r");
    let started = records.iter().filter(|record| {
        let mut steps = record["steps"].as_array().unwrap().iter();
        steps.any(|step| {
            let mut events = step["events"].as_array().unwrap().iter();
            events.any(|event| event.get("turn_started").is_some())
        })
    });
    started.map(|record| number(&record["at"])).collect()
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn usage_limit_holds_paid_turns_across_a_kill() {
    let stage = logged_in(Stage::prompts(&[
        ("START", "model: wait gate\nmodel: say <fork next=\"LIMITED\">WORKER</fork>"),
        ("LIMITED", "model: say <result>done</result>"),
        ("PAID", "model: say <result>worker</result>"),
    ]));
    stage.state("WORKER.sh", "echo x >> scripts; echo '<goto>PAID</goto>'");
    let running = stage.start_run("--max-parallel 1 --retries 0");
    stage.reaches("gate");
    let limited = NetworkState::Failing(limit(now() + 2), FaultDuration::UntilChanged);
    stage.model.set_network(limited).unwrap();
    stage.opens("gate");
    until("it waits", || !stage.events("backend_held").is_empty());
    until("the script has run", || stage.project.read("scripts") == "x\n");
    until("it says so", || status(&stage)["status"] == "waiting");
    let (held, lifted) = hold(&stage);
    assert_eq!(lifted, held + SHORTEST_HOLD, "the limit ends at once");
    let fork = "A | START, <fork next=\"LIMITED\">WORKER</fork>, LIMITED";
    assert_eq!(shown(&stage), ["A | START", fork]);

    running.signal(Signal::KILL);
    running.wait();
    stage.model.set_network(NetworkState::Normal).unwrap();
    let again = stage.start("resume r");
    until("the run is resumed", || !stage.events("run_resumed").is_empty());
    until("it waits again", || status(&stage)["status"] == "waiting");
    assert_eq!(stage.requests().len(), 2, "nothing is asked before the limit is lifted");
    again.wait().prints("done\n").mentions(0, &["tries again"]);

    assert_eq!(failures(&stage).len(), 1, "{:?}", failures(&stage));
    assert_eq!(hold(&stage), (held, lifted));
    let early = starts(&stage).into_iter().filter(|at| (held..lifted).contains(at)).count();
    assert_eq!(early, 1, "only the script starts while paid turns are held");
    let mut rest = shown(&stage).split_off(2);
    rest.sort();
    assert_eq!(rest, [&format!("{fork}, again LIMITED"), "B | PAID"]);
    assert_eq!(stage.project.state("r")["results"]["main_worker1"], "worker");
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn usage_limit_is_shown_with_its_end() {
    let stage = logged_in(Stage::prompts(&[(
        "START",
        "model: wait gate
        model: tool Bash {\"command\":\"pwd\"}
        model: say <result>done</result>",
    )]));
    let running = stage.start_run("--no-wait");
    stage.reaches("gate");
    let reset = now() + 2 * HOUR;
    stage
        .model
        .set_network(NetworkState::Failing(limit(reset), FaultDuration::UntilChanged))
        .unwrap();
    stage.opens("gate");
    let time = jiff::Timestamp::from_second(i64::try_from(reset).unwrap()).unwrap();
    let time = time.strftime("%Y-%m-%d %H:%M UTC").to_string();
    let reached = format!("the usage limit of claude is reached until {time}: You've hit your");
    running.wait().prints("").mentions(4, &[&reached, "to continue: raymond resume r"]);

    assert_eq!(hold(&stage).1, reset * 1000);
    assert_eq!(shown(&stage), ["A | START", "A | START, Bash, done"], "the client asks once");
    assert_eq!(stage.spent(), stage.billed(), "what was said before the limit is paid");
    let status = status(&stage);
    assert_eq!(
        (&status["status"], &status["next_command"]),
        (&"waiting".into(), &"raymond resume r".into())
    );
    assert!(status["why"].as_str().unwrap().contains(&reached), "{status}");
    for look in ["status r", "why r"] {
        let output = stage.raymond(look);
        assert!(output.stdout.contains(&reached), "{output:?}");
    }
    let list = stage.raymond("list").stdout;
    assert!(list.contains(" waiting ") && list.contains("the usage limit of claude"), "{list}");

    stage.raymond("resume r --no-wait").prints("").mentions(4, &[&reached]);
    assert_eq!(stage.requests().len(), 2, "nothing is asked before the limit is lifted");
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn resume_after_no_wait_costs_no_retry() {
    let stage = logged_in(one_prompt());
    stage
        .model
        .set_network(NetworkState::Failing(limit(now() + 2), FaultDuration::NextRequests(1)))
        .unwrap();
    stage.run("--no-wait --retries 0").prints("").mentions(4, &["You've hit your 5-hour limit"]);
    stage.leaves_nothing();
    stage.raymond("resume r").prints("done\n").mentions(0, &["tries again"]);
    let (_, lifted) = hold(&stage);
    assert!(starts(&stage)[1] >= lifted);
    assert_eq!(shown(&stage), ["A | START", "A | START, again START"]);
    assert_eq!((stage.spent(), stage.events("retry_at").len()), (stage.billed(), 0));
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn retry_after_decides_the_length_of_a_hold() {
    let check = |retry_after: &str, requests: usize, length: std::ops::RangeInclusive<u64>| {
        let stage = one_prompt();
        let early = Failure::new(429).with_header("retry-after", retry_after);
        stage.model.set_network(NetworkState::Failing(early, FaultDuration::UntilChanged)).unwrap();
        stage.run("--no-wait").prints("").mentions(4, &["usage limit"]);
        assert_eq!(stage.requests().len(), requests, "retry-after {retry_after}");
        let (held, lifted) = hold(&stage);
        assert!(length.contains(&(lifted - held)), "retry-after {retry_after}: {held} {lifted}");
    };
    // The client waits twice, and is rejected each time.
    check("1", 3, SHORTEST_HOLD..=SHORTEST_HOLD);
    // That is too long for the client, which then reports no end of the limit.
    check("3600", 1, 900_000..=900_000);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn missing_usage_credits_wait_for_a_person() {
    let stage = logged_in(one_prompt());
    let credits = "Usage credits are required for long context requests.";
    let credits = Failure::new(429).with_kind("rate_limit_error").with_message(credits);
    stage.model.set_network(NetworkState::Failing(credits, FaultDuration::UntilChanged)).unwrap();
    stage.run("").prints("").mentions(3, &["Usage credits required", "raymond resume r"]);
    assert_eq!(stage.requests().len(), 1);
    let kinds: Vec<String> = failures(&stage).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["auth"]);
}
