//! The kinds of failure, and their consequences.

use serde_json::{Value, json};

use crate::harness::{Output, until};
use crate::stage::Stage;

const RETRIED: &str = "Your last turn on the task below failed for a technical reason: check what \
                       is already done, then continue.";

#[test]
fn transient_failure_is_retried_in_its_session() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: error 529
        fake[2]: say <result>done</result>",
    )]);
    stage.run("").prints("done\n").mentions(0, &["server_error", "retry 1"]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "resume A | START, again START"]);
    let body = stage.project.read("wf/START.md");
    assert_eq!(stage.prompts_sent(), [body.clone(), format!("{RETRIED}\n\n{body}")]);
}

#[test]
fn retry_of_unsaved_session_gets_another_id() {
    let stage = Stage::prompts(&[
        (
            "START",
            "fake[1]: forget
            fake[1]: kill
            fake[2]: say <call return='BACK'>SUB</call>",
        ),
        (
            "SUB",
            "fake[1]: forget
            fake[1]: kill
            fake[2]: say <result>x</result>",
        ),
        ("BACK", "fake: say <result>done</result>"),
    ]);
    stage.run("").prints("done\n").mentions(0, &[]);
    let call = "<call return='BACK'>SUB</call>";
    assert_eq!(
        stage.turn_contexts(),
        [
            "new A | START".to_owned(),
            "resume A | refused".to_owned(),
            "new B | START".to_owned(),
            format!("branch B to C | START, {call}, SUB"),
            "resume C | refused".to_owned(),
            format!("branch B to D | START, {call}, SUB"),
            format!("resume B | START, {call}, BACK"),
        ]
    );
}

#[test]
fn retries_are_limited() {
    let stage = Stage::prompts(&[("START", "fake: error 529")]);
    stage.run("--retries 1").mentions(1, &["failed: transient failure", "raymond resume r"]);
    assert_eq!(stage.failures(), ["transient", "transient"]);
    assert_eq!(stage.invocations().len(), 2);
}

#[test]
fn failed_agent_resumes_in_its_session() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: error 400
        fake[2]: say <result>done</result>",
    )]);
    stage.run("").mentions(1, &["invalid_request"]);
    stage.raymond("resume r").prints("done\n").mentions(0, &[]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "resume A | START, again START"]);
    assert!(stage.prompts_sent()[1].starts_with("Your work on the task below had failed"));
}

#[test]
fn failed_agent_does_not_fail_the_other_one() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <fork next='NEXT'>BAD</fork>"),
        ("BAD", "fake: error 400"),
        ("NEXT", "fake: say <goto>END</goto>"),
        ("END", "fake: say <result>done</result>"),
    ]);
    let output = stage.run("--max-parallel 1");
    output.prints("").mentions(1, &["main_bad1", "  results  main  done\n"]);
    assert_eq!(stage.project.state("r")["results"], json!({ "main": "done" }));
}

#[test]
fn protocol_error_gets_three_paid_reminders() {
    let stage = Stage::prompts(&[(
        "START",
        "fake: cost 0.25
        fake: say hm
        fake[reminder]: say hm again
        fake[reminder]: cost 0.5",
    )]);
    let output = stage.run("");
    output.mentions(1, &["reminder 1", "reminder 2", "reminder 3", "no tag"]);
    assert_eq!(stage.invocations().len(), 4);
    let amounts: Vec<u64> = stage.charges().into_iter().map(|(_, amount, _)| amount).collect();
    assert_eq!(amounts, [250_000, 500_000, 500_000, 500_000]);
}

fn status(stage: &Stage) -> Value {
    stage.raymond("status r --json").json()
}

/// Waits until the run waits.
fn waits(stage: &Stage) {
    until("the run waits", || {
        let held = !stage.project.events("r", "backend_held").is_empty();
        held && status(stage)["status"] == "waiting"
    });
}

#[test]
fn usage_limit_holds_paid_turns_across_restarts() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <fork next='LIMITED'>WORKER</fork>"),
        ("LIMITED", "fake[1]: quota 3600\nfake[2]: say <result>done</result>"),
        ("PAID", "fake: say <result>worker</result>"),
    ]);
    stage.project.write("wf/WORKER.sh", "echo x >> scripts; echo '<goto>PAID</goto>'");
    let running = stage.start_run("--max-parallel 1");
    waits(&stage);
    until("the script has run", || stage.project.read("scripts") == "x\n");
    let held = stage.project.events("r", "backend_held");
    assert_eq!(held.len(), 1, "{held:?}");
    let until_then = held[0]["hold"]["quota"]["until"].clone();
    let expected =
        ["new A | START", "resume A | START, <fork next='LIMITED'>WORKER</fork>, LIMITED"];
    assert_eq!(stage.turn_contexts(), expected);

    running.signal(rustix::process::Signal::KILL);
    running.wait();
    let again = stage.start("resume r");
    until("the run is resumed", || !stage.project.events("r", "run_resumed").is_empty());
    until("it waits again", || status(&stage)["status"] == "waiting");
    assert_eq!(stage.turn_contexts(), expected, "nothing is asked before the limit is lifted");
    stage.raymond("stop r").mentions(0, &[]);
    again.wait().mentions(130, &[]);
    let why = stage.raymond("why r");
    assert_eq!(stage.project.events("r", "backend_released"), [] as [Value; 0], "{why:?}");
    assert!(until_then.is_number() || until_then.is_string(), "{held:?}");
    stage.leaves_nothing();
}

#[test]
fn lifted_usage_limit_costs_no_retry() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: quota 1
        fake[2]: say <result>done</result>",
    )]);
    stage.run("--retries 0").prints("done\n").mentions(0, &["usage limit"]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "resume A | START, again START"]);
}

#[test]
fn no_wait_ends_at_a_usage_limit() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: quota 3600
        fake[2]: say <result>done</result>",
    )]);
    stage.run("--no-wait").mentions(4, &["usage limit"]);
    assert_eq!(status(&stage)["status"], "waiting");
    assert_eq!(stage.invocations().len(), 1);
    stage.leaves_nothing();
}

/// Checks that the run waits for a login if the client behaves like this.
#[track_caller]
fn needs_login(lines: &str) -> (Stage, Output) {
    let stage = Stage::prompts(&[("START", lines)]);
    let output = stage.run("");
    output.mentions(3, &["not logged in", "claude", "raymond resume r"]);
    assert_eq!(status(&stage)["status"], "waiting");
    assert_eq!(stage.failures(), ["auth"]);
    stage.leaves_nothing();
    (stage, output)
}

#[test]
fn missing_login_waits_for_a_person() {
    let (stage, _) = needs_login("fake[1]: error 401\nfake[2]: say <result>done</result>");
    stage.raymond("resume r").prints("done\n").mentions(0, &[]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "resume A | START, again START"]);
}

#[test]
fn missing_login_is_reported_before_client_retries() {
    let (stage, _) =
        needs_login("fake[1]: retry 401\nfake[1]: hang stall\nfake[2]: say <result>done</result>");
    stage.raymond("resume r").prints("done\n").mentions(0, &[]);
}

#[test]
fn client_retry_of_overload_is_left_alone() {
    let stage = Stage::prompts(&[("START", "fake: retry 529\nfake: say <result>done</result>")]);
    stage.run("").prints("done\n").mentions(0, &[]);
    assert_eq!(stage.failures(), [""; 0]);
}

#[test]
fn retrying_client_is_reported_once() {
    let lines = "fake: retry 529\nfake: retry 529\nfake: wait tries\nfake: tool Bash ls\nfake: wait \
                 works\nfake: retry 503\nfake: wait end\nfake: say <result>done</result>";
    let stage = Stage::prompts(&[("START", lines)]);
    let running = stage.start_run("");
    stage.reaches("tries");
    let place = "running: main is in turn 1 of START.md";
    let tries = "the client of main tries again: server_error (529), retry 1 of 10";
    let reason = |stage: &Stage| stage.raymond("why r").stdout.lines().next().unwrap().to_owned();
    assert_eq!(reason(&stage), format!("{place}; {tries}"));
    assert!(stage.raymond("status r").stdout.contains(tries));
    stage.opens("tries");
    stage.reaches("works");
    assert_eq!(reason(&stage), place);
    stage.opens("works");
    stage.reaches("end");
    until("the failure is reported again", || running.stderr_contains("503"));
    stage.opens("end");
    let output = running.wait();
    output.prints("done\n").mentions(0, &[]);
    let waves = output.stderr.lines().filter(|line| line.contains("the client tries again"));
    let waves: Vec<&str> =
        waves.filter_map(|line| line.split_once(": ")).map(|(_, why)| why).collect();
    assert_eq!(waves, ["server_error (529), retry 1 of 10", "server_error (503), retry 1 of 10"]);
}

/// Between its two prompts, the client loses all its sessions.
fn forgetful() -> Stage {
    let stage = Stage::prompts(&[
        ("START", "fake: say <goto>LOSE</goto>"),
        ("END", "fake: say <result>done</result>"),
    ]);
    stage.project.write("wf/LOSE.sh", "rm -r $CLAUDE_CONFIG_DIR/projects; echo '<goto>END</goto>'");
    stage
}

#[test]
fn lost_session_fails_its_agent() {
    let stage = forgetful();
    stage.run("").mentions(1, &["the client knows no session"]);
    assert_eq!(stage.failures(), ["lost_session"]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "resume A | refused"]);
}

#[test]
fn lost_session_is_replaced_only_on_request() {
    let stage = forgetful();
    stage
        .run("--on-lost-session fresh")
        .prints("done\n")
        .mentions(0, &["continues in a new session"]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "resume A | refused", "new B | again END"]);
    assert!(stage.prompts_sent()[2].starts_with("An earlier conversation about the task below"));
    let lost = stage.project.events("r", "session_lost");
    assert_eq!(lost.len(), 1);
}

#[test]
fn lost_caller_session_fails_the_call() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <goto>LOSE</goto>"),
        ("SUB", "fake: say <result>x</result>"),
        ("BACK", "fake: say <result>done</result>"),
    ]);
    let lose = "rm -r $CLAUDE_CONFIG_DIR/projects; echo '<call return=\"BACK\">SUB</call>'";
    stage.project.write("wf/LOSE.sh", lose);
    stage.run("").mentions(1, &["the client knows no session"]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "branch A to B | refused"]);
}
