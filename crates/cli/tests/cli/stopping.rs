//! Signals, `stop` and `cancel`, and the rule that a run has one owner.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Output, Project, Running, is_once_quicker, until};

/// A script that logs its start, and then sleeps.
const SLOW: &str = "echo x >> log; test -e quick || sleep 300; echo '<result>done</result>'";

fn slow() -> Project {
    Project::of(&[("wf/START.sh", SLOW)])
}

/// Starts a command, and waits until its script has begun once more.
fn begun(project: &Project, words: &str) -> Running {
    let before = project.read("log").lines().count();
    let running = project.start(words);
    until("the script runs", || project.read("log").lines().count() > before);
    running
}

/// Checks that the run can be resumed, and completes.
#[track_caller]
fn resumes_to_the_end(project: &Project, run: &str) {
    assert_eq!(project.processes(run), [0; 0], "nothing outlives its run");
    project.write("quick", "");
    project.raymond(&format!("resume {run}")).prints("done\n").mentions(0, &[]);
}

/// The copy that the one script of the run `r` runs from.
fn pinned(project: &Project) -> String {
    let definition = ".raymond/runs/r/definition";
    let folder = fs::read_dir(project.path(definition)).unwrap().next().unwrap().unwrap();
    let folder = folder.file_name().into_string().unwrap();
    format!("/project/{definition}/{folder}/START.sh")
}

fn signalled(signal: Signal) -> (Project, Output) {
    let project = slow();
    let running = begun(&project, "run wf --run-id r");
    running.signal(signal);
    let output = running.wait();
    (project, output)
}

#[test]
fn one_signal_stops_a_run_resumably() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let (project, output) = signalled(signal);
        output.prints("").says(
            code,
            "r: cap $10.00 · 4 at a time · 1 state pinned
            main             starts at START.sh
            ·                stopping, because of a signal
            main             START.sh: stopped
            stopped: a signal to its owner stopped it; 1 agent can continue
            look     raymond show r · raymond logs r
            spent $0.00 of $10.00; to continue: raymond resume r",
        );
        assert_eq!(project.state("r")["status"], "stopped");
        resumes_to_the_end(&project, "r");
    }
}

/// A client in `bin`, asked for its version before anything starts.
fn with_client(script: &str) -> Project {
    let project = Project::of(&[
        ("wf/START.md", "---\nbackend: codex\nallowed_tags: [result]\n---\ngo"),
        ("bin/codex", &format!("#!/bin/sh\n{script}\n")),
    ]);
    let mode = Permissions::from_mode(0o755);
    fs::set_permissions(project.path("bin/codex"), mode).unwrap();
    let client = project.path("bin/codex").to_str().unwrap().to_owned();
    project.with("RAYMOND_CODEX", client)
}

#[test]
fn signal_during_version_check_ends_the_client() {
    let check = |words: &str, signal: Signal, code: i32| {
        let stubborn =
            "trap '' INT TERM HUP; setsid sleep 300 & echo $! $$ > pids; sleep 300; sleep 300";
        let project = with_client(stubborn);
        let running = project.start(words);
        until("the client is asked", || project.read("pids").ends_with('\n'));
        running.signal(signal);
        running.wait().prints("").says(code, "");
        for pid in project.read("pids").split_whitespace() {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(stat.is_empty() || stat.contains(") Z "), "{words}: {pid} is left: {stat}");
        }
        assert!(!project.path(".raymond").exists(), "{words}: nothing was started");
    };
    check("run wf --run-id r", Signal::INT, 130);
    check("run wf --run-id r", Signal::TERM, 143);
    check("run wf --run-id r", Signal::HUP, 129);
    check("run wf --run-id r -d", Signal::INT, 130);
    check("doctor", Signal::INT, 130);
}

#[test]
fn second_signal_keeps_the_code_of_the_first() {
    // The client logs the signal, and ends late.
    let stubborn = "trap 'echo x >> asked' INT TERM; : > ready; \
                    until test -e may_end; do sleep 0.05; done";
    let project = with_client(stubborn);
    let running = project.start("run wf --run-id r");
    until("the client is asked", || project.path("ready").exists());
    running.signal(Signal::TERM);
    until("it is asked to end", || project.path("asked").exists());
    running.signal(Signal::INT);
    project.write("may_end", "");
    running.wait().prints("").says(143, "");
}

#[test]
fn version_check_runs_in_the_current_directory() {
    let shim = "test -e .tool-versions && echo codex-cli 0.166.0 && exit; echo no version is set >&2; exit 126";
    let project = with_client(shim);
    let message = "(/project/bin/codex): exit status 126: no version is set";
    project.raymond("run wf --run-id r").prints("").mentions(7, &[message]);
    project.write(".tool-versions", "codex 0.166.0");
    // The answer does not matter here; only the recorded version is checked.
    project.raymond("run wf --run-id r --retries 0");
    let begun = &project.events("r", "run_started")[0];
    assert_eq!(begun["settings"]["clients"], json!({ "codex": "0.166.0" }));
}

#[test]
fn second_signal_ends_a_stubborn_script_at_once() {
    let script = "trap '' INT TERM; echo x >> log; test -e quick || sleep 300 & wait; sleep 1; \
                  test -e quick || sleep 300; echo '<result>done</result>'";
    let patience_for_one_signal = Duration::from_secs(5);
    is_once_quicker(patience_for_one_signal, || {
        let project = Project::of(&[("wf/START.sh", script)]);
        let running = begun(&project, "run wf --run-id r");
        let begun = Instant::now();
        running.signal(Signal::INT);
        until("the first one is recorded", || !project.events("r", "stop_requested").is_empty());
        running.signal(Signal::INT);
        let output = running.wait();
        let span = begun.elapsed();
        output.mentions(130, &["START.sh: stopped", "stopped: a signal to its owner stopped it"]);
        resumes_to_the_end(&project, "r");
        let by: Vec<_> =
            project.events("r", "turn_interrupted").iter().map(|e| e["by"].clone()).collect();
        assert_eq!(by, ["stop"], "it does not count as a crash");
        span
    });
}

#[test]
fn first_signal_decides_the_exit_code() {
    let script = "trap '' INT TERM HUP; echo x >> log; sleep 300; sleep 300";
    let check = |first: Signal, second: Signal, code: i32| {
        let project = Project::of(&[("wf/START.sh", script)]);
        let running = begun(&project, "run wf --run-id r");
        running.signal(first);
        until("the first one is recorded", || !project.events("r", "stop_requested").is_empty());
        running.signal(second);
        running.wait().mentions(code, &["stopped: a signal to its owner stopped it"]);
        assert_eq!(project.processes("r"), [0; 0], "{first:?}, then {second:?}");
    };
    check(Signal::TERM, Signal::TERM, 143);
    check(Signal::HUP, Signal::HUP, 129);
    check(Signal::INT, Signal::TERM, 130);
    check(Signal::TERM, Signal::INT, 143);
}

#[test]
fn stop_and_cancel_reach_a_living_owner() {
    let check = |verb: &str, status: &str, code: i32| {
        let project = slow();
        let running = begun(&project, "run wf --run-id r");
        project.raymond(&format!("{verb} r")).says(0, &format!("r: {status}"));
        let output = running.wait();
        output.mentions(code, &[&format!("\n{status}: ")]);
        assert_eq!(project.state("r")["status"], status);
        assert_eq!(project.processes("r"), [0; 0]);
        let object = project.raymond(&format!("{verb} r --json")).json();
        assert_eq!((&object["run_id"], &object["status"]), (&json!("r"), &json!(status)));
        let left = fs::read_dir(project.path(".raymond/runs/r/inbox")).unwrap().count();
        assert_eq!(left, 0, "the request was answered");
    };
    check("stop", "stopped", 130);
    check("cancel", "cancelled", 8);
}

#[test]
fn agents_of_a_stopped_run_are_stopped() {
    let wait = "touch began; exec sleep 1000";
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"END\">W</fork><fork next=\"END\">W</fork>'"),
        ("wf/W.sh", wait),
        ("wf/END.sh", wait),
    ]);
    let running = project.start("run wf --run-id r --max-parallel 1");
    until("one agent works", || project.path("began").exists());
    project.raymond("stop r").mentions(0, &[]);
    running.wait();
    let seen = project.raymond("status r").stdout;
    assert!(seen.contains("\n  3 stopped · 0 of 2 workers done\n"), "{seen}");
    for row in ["main             END.sh", "main_w1          W.sh", "main_w2          W.sh"] {
        assert!(seen.contains(&format!("\n  {row} #1  stopped\n")), "{row}: {seen}");
    }
    let object = project.raymond("status r --json").json();
    let tally = &object["tally"];
    let counts = ["running", "queued", "stopped"].map(|name| tally[name].as_u64());
    assert_eq!(counts, [Some(0), Some(0), Some(3)], "{tally}");
    let agents = object["agents"].as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["doing"] == "stopped"), "{object}");
}

#[test]
fn stop_after_turn_lets_the_turn_finish() {
    let project = Project::of(&[
        (
            "wf/START.sh",
            "echo x >> log; until test -e quick; do sleep 0.01; done; echo '<goto>NEXT</goto>'",
        ),
        ("wf/NEXT.sh", "echo '<result>done</result>'"),
    ]);
    let running = begun(&project, "run wf --run-id r");
    let stop = project.start("stop r --after-turn");
    until("it is asked", || !project.events("r", "stop_requested").is_empty());
    project.write("quick", "");
    stop.wait().says(0, "r: stopped");
    running.wait().mentions(
        130,
        &["stopping after the turns in flight, because a user asked", "START.sh → NEXT.sh"],
    );
    assert_eq!(project.events("r", "turn_settled").len(), 1);
    assert_eq!(project.events("r", "turn_interrupted").len(), 0);
    resumes_to_the_end(&project, "r");
}

#[test]
fn stop_without_owner_ends_leftover_processes() {
    for (verb, status) in [("stop", "stopped"), ("cancel", "cancelled")] {
        let project = slow();
        let running = begun(&project, "run wf --run-id r");
        running.signal(Signal::KILL);
        assert_eq!(running.wait().status.code(), None);
        until("its script sleeps", || project.processes("r").len() == 2);
        let seen = project.raymond("status r");
        let copy = pinned(&project);
        let left = format!("left running: bash {copy}\n");
        assert!(seen.stdout.contains(&left), "{seen:?}");
        project.raymond("why r").prints(&format!(
            "interrupted: its owner died with 1 unfinished turn
left running: bash {copy}
left running: sleep 300
→ raymond resume r
"
        ));
        let seen = project.raymond("list");
        assert!(seen.stdout.ends_with("with 1 unfinished turn; 2 left running\n"), "{seen:?}");
        let left = json!([format!("bash {copy}"), "sleep 300"]);
        for words in ["status r --json", "why r --json", "list --json"] {
            let printed = project.raymond(words).json();
            let object = if words.starts_with("list") { &printed[0] } else { &printed };
            assert_eq!(object["left_running"], left, "{words}");
        }
        project.raymond(&format!("{verb} r")).says(0, &format!("r: {status}"));
        assert_eq!(project.processes("r"), [0; 0]);
        assert_eq!(project.raymond("status r --json").json()["status"], status);
        let records = project.records("r").len();
        project.raymond(&format!("{verb} r")).says(0, &format!("r: {status}"));
        assert_eq!(project.records("r").len(), records, "it has ended already");
    }
}

#[test]
fn ended_run_cannot_be_stopped() {
    let project =
        Project::of(&[("good/START.sh", "echo '<result>x</result>'"), ("bad/START.sh", "exit 1")]);
    project.raymond("run good --run-id good");
    project.raymond("run bad --run-id bad");
    let check = |words: &str, status: &str| {
        let run = words.split_whitespace().last().unwrap();
        project.raymond(words).says(
            2,
            &format!("raymond: {run} had already ended: {status}\nhint: raymond why {run}"),
        );
    };
    check("stop good", "completed");
    check("cancel good", "completed");
    check("stop bad", "failed");
    project.raymond("cancel bad").says(0, "bad: cancelled");
    project.raymond("cancel bad").says(0, "bad: cancelled");
    check("stop bad", "cancelled");
}

#[test]
fn cancelled_run_is_final() {
    let project = Project::of(&[("bad/START.sh", "exit 1")]);
    project.raymond("run bad --run-id r");
    project.raymond("cancel r");
    project.raymond("resume r").says(
        8,
        "raymond: r was cancelled
        hint: start a new run with `raymond run /project/bad`",
    );
    project.raymond("why r").prints("cancelled: a user cancelled it\n→ raymond run /project/bad\n");
}

// proves: P9
#[test]
fn second_owner_is_rejected_with_the_first_named() {
    let project = slow();
    let running = begun(&project, "run wf --run-id r");
    let host = project.spawn("uname", &["-n"]).wait().stdout;
    let refusal = format!(
        "raymond: r is driven by process {} on {}
        hint: look at it with `raymond status r`, or end it with `raymond stop r`",
        running.pid(),
        host.trim()
    );
    project.raymond("resume r").says(6, &refusal);
    project.raymond("resume r --plan").says(6, &refusal);
    project.raymond("run wf --run-id r --or-resume").says(6, &refusal);
    project.raymond("run wf --run-id r").mentions(2, &["run r already exists"]);
    project.raymond("resume").mentions(2, &["no run is unfinished"]);
    let seen = project.raymond("status r");
    assert!(seen.stdout.contains("r  running\n  main is in turn 1 of START.sh\n"), "{seen:?}");
    running.signal(Signal::INT);
    running.wait().mentions(130, &[]);
    resumes_to_the_end(&project, "r");
}

#[test]
fn garbage_in_the_inbox_is_reported_and_ignored() {
    let project = slow();
    let running = begun(&project, "run wf --run-id r");
    project.write(".raymond/runs/r/inbox/one.json", "{ nonsense");
    project.write(".raymond/runs/r/inbox/two.json", "{\"start\": {}}");
    project.write(".raymond/runs/r/inbox/three", "?");
    project
        .write(".raymond/runs/r/inbox/other.json", "{\"stop\":{\"mode\":\"now\",\"key\":\"x\"}}");
    project.raymond("stop r").says(0, "r: stopped");
    running.wait().mentions(
        130,
        &[
            "raymond: ignored one.json in the inbox: it is not JSON\n",
            "raymond: ignored two.json in the inbox: unknown request\n",
            "raymond: ignored three in the inbox: its name is not a key with .json\n",
            "raymond: ignored other.json in the inbox: unknown request\n",
        ],
    );
    resumes_to_the_end(&project, "r");
}

// proves: P6
#[test]
fn interrupted_script_runs_again_unless_forbidden() {
    let project = slow();
    let running = begun(&project, "run wf --run-id r");
    running.signal(Signal::KILL);
    running.wait();
    project
        .raymond("resume r --plan --interrupted-scripts fail")
        .prints("r: reused 0 turns ($0.00), continuing 0, repeating 0\n");
    project.raymond("resume r --interrupted-scripts fail").mentions(
        1,
        &[
            &format!("raymond: ended a leftover process: bash {}\n", pinned(&project)),
            "main             START.sh: was interrupted when its owner died\n",
            "START.sh: failed: the script was interrupted and is not repeated\n",
        ],
    );
    resumes_to_the_end(&project, "r");
}

#[test]
fn requeued_script_ignores_interrupted_scripts_setting() {
    let script = "echo x >> log; sleep 300";
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"SLOW\">SLOW</fork>'"),
        ("wf/SLOW.sh", script),
    ]);
    let killed_after = |words: &str, scripts: usize| {
        let before = project.read("log").lines().count();
        let running = project.start(words);
        until("the scripts run", || project.read("log").lines().count() == before + scripts);
        running.signal(Signal::KILL);
        running.wait();
    };
    let plan = |flags: &str, repeating: &[&str]| {
        let count = repeating.len();
        let lines = repeating.iter().map(|agent| format!("  {agent:<16} SLOW.sh: repeating\n"));
        let lines = lines.collect::<String>();
        project
            .raymond(&format!("resume r --plan {flags}"))
            .prints(&format!("r: reused 1 turn ($0.00), continuing 0, repeating {count}\n{lines}"));
    };
    let both = ["main", "main_slow1"];
    killed_after("run wf --run-id r", 2);
    plan("", &both);
    plan("--interrupted-scripts fail", &[]);
    killed_after("resume r --max-parallel 1", 1);
    plan("", &both);
    plan("--interrupted-scripts fail", &both[1..]);
    project.raymond("stop r").says(0, "r: stopped");
}

#[test]
fn wait_ends_with_the_exit_code_of_run() {
    let project = slow();
    let running = begun(&project, "run wf --run-id r");
    let waiting = project.start("wait r");
    running.signal(Signal::INT);
    waiting.wait().says(
        130,
        "r: stopped: a signal to its owner stopped it; 1 agent can continue\n→ raymond resume r",
    );
    running.wait().mentions(130, &[]);
    resumes_to_the_end(&project, "r");
    project.raymond("wait").says(0, "r: completed: main ended with a result");
    assert_eq!(project.raymond("wait r --json").json()["status"], "completed");
}

#[test]
fn wait_reports_a_dead_owner() {
    let project = slow();
    let running = begun(&project, "run wf --run-id r");
    let waiting = project.start("wait r");
    running.signal(Signal::KILL);
    running.wait();
    waiting
        .wait()
        .says(130, "r: interrupted: its owner died with 1 unfinished turn\n→ raymond resume r");
    project.raymond("stop r").says(0, "r: stopped");
    resumes_to_the_end(&project, "r");
}

#[test]
fn stopped_run_continues_with_pinned_states() {
    for signal in [Signal::INT, Signal::KILL] {
        let project = slow();
        let running = begun(&project, "run wf --run-id r");
        running.signal(signal);
        running.wait();
        project.write("wf/START.sh", "echo '<result>edited</result>'");
        project.write("quick", "");
        let line = "raymond: continuing with the pinned states; changed since: START.sh (edited, already visited) (--with-current uses the changes)\n";
        project.raymond("resume r").prints("done\n").mentions(0, &[line]);
    }
}

/// A run whose owner was on another host; returns the number of that process there.
fn driven_elsewhere() -> (Project, serde_json::Value) {
    let project = slow();
    let running = begun(&project, "run wf --run-id r");
    let lock = project.read(".raymond/runs/r/lock");
    running.signal(Signal::KILL);
    running.wait();
    let mut owner: serde_json::Value = serde_json::from_str(&lock).unwrap();
    (owner["host"], owner["boot"]) = (json!("elsewhere"), json!("another"));
    project.write(".raymond/runs/r/lock", owner.to_string());
    (project, owner["pid"].clone())
}

// proves: P9
#[test]
fn owner_on_another_host_is_replaced_on_request() {
    let (project, pid) = driven_elsewhere();
    let refusal = format!(
        "raymond: r is driven by process {pid} on elsewhere
        hint: if that machine never comes back: `raymond resume r --takeover`"
    );
    for command in ["resume r", "resume r --plan", "stop r", "stop r --after-turn", "cancel r"] {
        project.raymond(command).says(6, &refusal);
    }
    assert_eq!(project.processes("r").len(), 2, "their owner may still run");
    assert_eq!(project.events("r", "stop_requested"), [json!(null); 0]);
    project.raymond("resume r --plan --takeover").mentions(0, &[]);
    project.write("quick", "");
    project.raymond("resume r --takeover").prints("done\n").mentions(0, &[]);
}

// proves: P10
#[test]
fn next_command_offers_takeover_of_remote_owner() {
    let (project, pid) = driven_elsewhere();
    let unseen = format!("process {pid} on elsewhere, which cannot be seen from here");
    let why = format!("main is in turn 1 of START.sh; it is driven by {unseen}");
    project.raymond("why r").prints(&format!("running: {why}\n→ raymond resume r --takeover\n"));
    let seen = project.raymond("status r").stdout;
    let start = format!("r  running\n  {why}\n  → raymond resume r --takeover\n");
    assert!(seen.starts_with(&start), "{seen}");
    let next_command = &project.raymond("status r --json").json()["next_command"];
    assert_eq!(next_command, "raymond resume r --takeover");
    // It may have been the last thing that it did.
    let lock = project.read(".raymond/runs/r/lock");
    fs::remove_file(project.path(".raymond/runs/r/lock")).unwrap();
    project.raymond("stop r").mentions(0, &["stopped"]);
    project.write(".raymond/runs/r/lock", &lock);
    let why = project.raymond("why r").stdout;
    assert!(why.ends_with("→ raymond resume r --takeover\n"), "{why}");
    fs::remove_file(project.path(".raymond/runs/r/lock")).unwrap();
    project.raymond("cancel r").mentions(0, &["cancelled"]);
    project.write(".raymond/runs/r/lock", &lock);
    let why = project.raymond("why r").stdout;
    assert!(why.ends_with("→ raymond run /project/wf\n"), "{why}");
    assert_eq!(project.raymond("wait r").code(), 8);
    // Nothing of it continues, and it can be deleted.
    project.raymond("prune r").mentions(6, &["hint", "`raymond resume r --takeover`"]);
    assert_eq!(project.raymond("resume r --takeover").code(), 8);
    project.raymond("prune r").mentions(0, &[]);
    assert!(!project.path(".raymond/runs/r").exists());
}

#[test]
fn owner_that_recorded_nothing_keeps_its_run() {
    let project = slow();
    let running = begun(&project, "run wf --run-id r");
    // Every run is in this state in its first moments.
    running.signal(Signal::STOP);
    let journal = project.path(".raymond/runs/r/journal.jsonl");
    fs::rename(&journal, project.path("aside")).unwrap();
    for words in ["resume r", "run wf --run-id r --or-resume", "status r", "stop r"] {
        project.raymond(words).mentions(6, &["r is driven by process", "recorded nothing yet"]);
    }
    fs::rename(project.path("aside"), &journal).unwrap();
    running.signal(Signal::CONT);
    running.signal(Signal::INT);
    running.wait();
    resumes_to_the_end(&project, "r");
}
