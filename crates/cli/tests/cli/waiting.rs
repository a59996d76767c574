//! `after` and `at`: parked agents, `--no-wait`, `resume --now` and `tend`.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Project, until};

/// A script that waits, and one that ends.
fn nap(attributes: &str) -> Project {
    Project::of(&[
        ("wf/START.sh", &format!("echo x >> log; echo '<goto {attributes}>END</goto>'")),
        ("wf/END.sh", "echo '<result>ok</result>'"),
    ])
}

#[test]
fn timer_fires_late_but_never_early() {
    let project = nap("after=\"1s\"");
    let began = Instant::now();
    let ran = project.raymond("run wf --run-id r");
    assert!(began.elapsed() >= Duration::from_secs(1));
    ran.prints("ok\n")
        .mentions(0, &["START.sh waits 1s, until ", ", then END.sh\n", "→ END.sh (goto)"]);
    assert_eq!(project.events("r", "agent_waits").len(), 1);
}

#[test]
fn no_wait_ends_the_process_resume_keeps_waiting() {
    let project = nap("after=\"1h\"");
    project.raymond("run wf --run-id r --no-wait").prints("").mentions(
        4,
        &["waiting: main waits until ", ", then enters END.sh", "to continue: raymond resume r"],
    );
    let status = project.raymond("status r --json").json();
    assert_eq!(
        (&status["status"], &status["agents"][0]["status"]),
        (&json!("waiting"), &json!("waiting: time"))
    );
    let until = status["agents"][0]["waits_until"].as_str().unwrap();
    assert_eq!(project.state("r")["agents"][0]["waits_until"], until);
    let plan = "r: reused 1 turn ($0.00), continuing 0, repeating 0, waiting 1\n";
    project.raymond("resume r --plan").prints(plan);
    project.raymond("tend --once").prints("");
    project.raymond("resume r --no-wait").mentions(4, &["repeating 0, waiting 1"]);
    project.raymond("resume r --now").prints("ok\n").mentions(0, &["START.sh → END.sh (goto)"]);
    assert_eq!(project.read("log"), "x\n", "START ran once");
    project.raymond("replay r").mentions(0, &[]);
}

#[test]
fn killed_owner_leaves_a_waiting_run() {
    let project = nap("after=\"1h\"");
    let owner = project.start("run wf --run-id r");
    until("it waits", || !project.events("r", "agent_waits").is_empty());
    owner.signal(Signal::KILL);
    owner.wait();
    assert_eq!(project.raymond("status r --json").json()["status"], "waiting");
    assert_eq!(project.processes("r"), Vec::<u32>::new());
    project.raymond("tend --once").prints("");
    project.raymond("resume r --now").prints("ok\n");
    assert_eq!(project.read("log"), "x\n", "START ran once");
}

#[test]
fn tend_continues_a_run_in_time() {
    let project = nap("after=\"1s\"");
    project.raymond("run wf --run-id r --no-wait").mentions(4, &["waiting: main waits until"]);
    until("its time has come", || project.raymond("tend --once").stdout == "r\n");
    project.raymond("wait r").prints("ok\n").mentions(0, &["r: completed"]);
    assert_eq!(project.read("log"), "x\n", "START ran once");
    let idle = project.raymond("tend --once --json").json();
    assert_eq!(idle["woken"], json!([]));
}

#[test]
fn poll_has_no_limit_of_its_own() {
    let script = r#"echo x >> log
        if [ "$(wc -l < log)" -lt 4 ]; then echo '<goto after="1s">POLL</goto>'; else echo '<result>ready</result>'; fi"#;
    let project =
        Project::of(&[("wf/1_START.sh", "echo '<goto>POLL</goto>'"), ("wf/POLL.sh", script)]);
    project.raymond("run wf --run-id r --quiet").prints("ready\n");
    assert_eq!(project.events("r", "agent_waits").len(), 3);
}

#[test]
fn workers_run_while_their_parent_waits() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork>W</fork><goto after=\"1h\">END</goto>'"),
        ("wf/W.sh", "echo '<result>w</result>'"),
        ("wf/END.sh", "echo '<result>ok</result>'"),
    ]);
    let ran = project.raymond("run wf --run-id r --no-wait");
    ran.mentions(4, &["main_w1          ended: w", "waiting: main waits until"]);
    project.raymond("resume r --now").prints("ok\n");
}

#[test]
fn prompt_continues_its_conversation_after_the_wait() {
    let replies = |tag: &str| {
        format!(
            "START: '<{tag} after=\"1s\" input=\"again\">END</{tag}>'\nEND: {{ text: <result>ok</result>, expect: again }}\n"
        )
    };
    let files = [("wf/START.md", "Ask."), ("wf/END.md", "{{input}}")];
    for tag in ["goto", "reset"] {
        let project = Project::of(&files);
        project.write("r.yaml", replies(tag));
        project.raymond("run wf --run-id r --replies r.yaml --quiet").prints("ok\n");
        let plans = project.events("r", "turn_started");
        let fresh = plans.iter().filter(|event| event["plan"].get("fresh").is_some());
        assert_eq!(fresh.count(), if tag == "goto" { 1 } else { 2 }, "{plans:?}");
    }
}

#[test]
fn mistake_is_reported_at_once() {
    nap("after=\"5\"").raymond("run wf").mentions(
        1,
        &["malformed <goto>: `after`: \"5\" is not a duration such as 90s, 10m, 2h or 7d"],
    );
    nap("at=\"07:00\"").raymond("run wf").mentions(
        1,
        &["malformed <goto>: `at`: \"07:00\" is not a time such as 2026-11-18T07:00:00+01:00"],
    );
    let project = Project::of(&[
        ("wf/START.md", "Ask."),
        ("wf/END.sh", "echo '<result>ok</result>'"),
        (
            "r.yaml",
            "START: [['<goto after=\"5\">END</goto>', '<goto at=\"2001-01-01T00:00:00Z\">END</goto>']]\n",
        ),
    ]);
    let ran = project.raymond("run wf --replies r.yaml --run-id r");
    ran.prints("ok\n").mentions(0, &["reminder 1: malformed <goto>: `after`"]);
    assert_eq!(project.events("r", "agent_waits").len(), 0, "a time in the past is over");
}

#[test]
fn script_after_a_wait_runs_without_any_budget() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork>PAID</fork><fork>PAID</fork><goto after=\"1s\">END</goto>'"),
        ("wf/PAID.md", "Ask."),
        ("wf/END.sh", "echo x >> log; echo '<result>ok</result>'"),
        ("r.yaml", "PAID: { text: <result>p</result>, cost: 1 }\n"),
    ]);
    project.raymond("run wf --replies r.yaml --budget 0.5 --max-parallel 1").mentions(5, &[]);
    assert_eq!(project.read("log"), "x\n");
}

#[test]
fn edit_must_keep_states_that_agents_wait_for() {
    let project = nap("after=\"1h\"");
    project.raymond("run wf --run-id r --no-wait --quiet");
    std::fs::remove_file(project.path("wf/END.sh")).unwrap();
    project.raymond("resume r --with-current").says(
        2,
        "raymond: could not resume `r` with the edited workflow: `main` waits to enter `END.sh`, which no longer exists
        hint: restore it, or run `raymond resume r --pinned`",
    );
    project.raymond("resume r --pinned --now --quiet").prints("ok\n");
}

#[test]
fn stopped_run_keeps_its_wait_cancelled_one_ends() {
    let project = nap("after=\"1h\"");
    project.raymond("run wf --run-id r -d").prints("r\n");
    until("it waits", || !project.events("r", "agent_waits").is_empty());
    project.raymond("stop r --after-turn").says(0, "r: stopped");
    project.raymond("tend --once").prints("");
    project.raymond("resume r -d --quiet").prints("r\n");
    project.raymond("cancel r").says(0, "r: cancelled");
    project.raymond("resume r").mentions(8, &["r was cancelled"]);
}

#[test]
fn waiting_run_without_owner_can_be_stopped() {
    for words in ["stop r", "stop r --after-turn"] {
        let project = nap("after=\"1s\"");
        project.raymond("run wf --run-id r --no-wait --quiet").mentions(4, &[]);
        project.raymond(words).says(0, "r: stopped");
        let records = project.records("r").len();
        project.raymond(words).says(0, "r: stopped");
        assert_eq!(project.records("r").len(), records, "it is stopped already");
        project.raymond("tend --once").prints("");
        project.raymond("resume r --quiet").prints("ok\n");
    }
}

#[test]
fn tend_reports_what_it_could_not_continue() {
    let project = Project::of(&[
        ("wf/START.md", "Ask."),
        ("wf/END.sh", "echo '<result>ok</result>'"),
        ("r.yaml", "START: '<goto after=\"1s\">END</goto>'\n"),
    ]);
    project.raymond("run wf --run-id r --replies r.yaml --no-wait --quiet");
    std::fs::remove_file(project.path("r.yaml")).unwrap();
    until("its time has come", || {
        let tended = project.raymond("tend --once --json").json();
        tended["left"] != json!([])
    });
    let tended = project.raymond("tend --once");
    tended.prints("").mentions(0, &["r: could not continue: "]);
}

#[test]
fn only_one_process_tends_a_project() {
    let project = nap("after=\"1s\"");
    project.raymond("run wf --run-id r --no-wait --quiet");
    let tends = project.start("tend --json");
    until("it has the lock", || project.path(".raymond/tend.lock").exists());
    until("it has continued the run", || {
        project.raymond("status r --json").json()["status"] == "completed"
    });
    project
        .raymond("tend --once")
        .says(6, "raymond: another `raymond tend` is at work in this project");
    tends.signal(Signal::TERM);
    let ended = tends.wait();
    assert_eq!(ended.code(), 143, "{ended:?}");
    assert!(ended.stdout.contains("\"r\""), "{ended:?}");
}

#[test]
fn interrupted_run_is_continued_only_on_demand() {
    let project = Project::of(&[(
        "wf/START.sh",
        "echo x >> log; test -e go || sleep 600; echo '<result>ok</result>'",
    )]);
    let owner = project.start("run wf --run-id r");
    until("the script runs", || project.path("log").exists());
    owner.signal(Signal::KILL);
    owner.wait();
    project.write("go", "");
    project.raymond("tend --once").prints("");
    project.raymond("tend --once --interrupted").prints("r\n");
    project.raymond("wait r").prints("ok\n");
}

#[test]
fn emit_writes_waits() {
    let project = nap("after=\"1s\"");
    let emit = |words: &str| project.raymond(&format!("emit {words}"));
    emit("goto POLL --after 5m").prints("<goto after=\"5m\">POLL</goto>\n");
    emit("reset POLL --at 2026-11-18T07:00:00Z")
        .prints("<reset at=\"2026-11-18T07:00:00Z\">POLL</reset>\n");
    emit("goto POLL --after 5").mentions(2, &["<goto>: `after`: \"5\" is not a duration"]);
    emit("result done --after 5m").mentions(2, &["`after` is only valid on goto and reset"]);
}

#[test]
fn emit_takes_input_that_begins_with_hyphen() {
    let project = Project::of(&[]);
    let emit = |words: &[&str]| {
        let words = [&["emit", "goto", "X"], words].concat();
        project.spawn(env!("CARGO_BIN_EXE_raymond"), &words).wait()
    };
    for text in ["- text", "--next", "-"] {
        emit(&["--input", text]).prints(&format!("<goto input=\"{text}\">X</goto>\n"));
    }
    // The flag takes the next word as its text, so that a forgotten text is an error.
    emit(&["--input", "--next", "Y"]).mentions(2, &["unexpected argument 'Y'"]);
    emit(&["--input"]).mentions(2, &["a value is required for '--input"]);
}

#[test]
fn tend_repeats_no_failed_work() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork>W</fork><goto after=\"1s\">POLL</goto>'"),
        ("wf/W.sh", "echo x >> tried; exit 3"),
        (
            "wf/POLL.sh",
            "echo x >> polls\nif [ \"$(wc -l < polls)\" -lt 3 ]; then echo '<goto after=\"1s\">POLL</goto>'; else echo '<result>done</result>'; fi",
        ),
    ]);
    project.raymond("run wf --run-id r --no-wait").mentions(4, &["waiting: main waits until "]);
    until("the polls are over", || {
        project.raymond("tend --once");
        project.raymond("status r --json").json()["status"] == "failed"
    });
    assert_eq!(project.read("polls"), "x\nx\nx\n");
    assert_eq!(project.read("tried"), "x\n", "the failed worker was not tried again");
}

#[test]
fn tend_wakes_every_run_in_turn() {
    let project = Project::of(&[(
        "wf/START.sh",
        "echo x >> \"polls-$RAYMOND_RUN_ID\"; echo '<goto after=\"1s\">START</goto>'",
    )]);
    let runs = ["r1", "r2", "r3", "r4", "r5"];
    for run in runs {
        project.raymond(&format!("run wf --run-id {run} --no-wait --quiet"));
    }
    until("each run has polled again", || {
        project.raymond("tend --once");
        runs.iter().all(|run| project.read(&format!("polls-{run}")).lines().count() > 1)
    });
}

#[test]
fn tend_wakes_runs_that_also_need_a_login() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork>W</fork><goto after=\"1s\">END</goto>'"),
        ("wf/W.md", "Work."),
        ("wf/END.sh", "echo x >> ended; echo '<result>done</result>'"),
        ("replies.yaml", "W: { fail: { kind: auth, message: log in } }\n"),
    ]);
    project.raymond("run wf --replies replies.yaml --run-id r --no-wait").mentions(3, &["log in"]);
    until("the timer has fired", || {
        project.raymond("tend --once");
        project.path("ended").exists()
    });
}

#[test]
fn tend_leaves_no_trace_without_runs() {
    let project = Project::of(&[]);
    project.raymond("tend --once").prints("");
    assert!(!project.path(".raymond").exists());
}
