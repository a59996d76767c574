//! `wait`: an agent joins its workers. The cases J1 to J14 of the specification.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Project, until};

/// Returns the list that M.sh or LATE.sh received.
const CAT: &str = r#"echo "<result>$(cat "$RAYMOND_RESULT_FILE")</result>""#;
/// A worker that returns its item.
const PLAIN: &str = r#"echo "<result>r-$RAYMOND_ATTR_ITEM</result>""#;

/// A script that forks a worker for each item and then waits.
fn start(items: &[&str], goto: &str) -> String {
    let fork = |item: &&str| format!("echo '<fork item=\"{item}\">W</fork>'\n");
    format!("echo x >> starts\n{}echo '{goto}'", items.iter().map(fork).collect::<String>())
}

/// Two workers with this script.
fn two(goto: &str, worker: &str) -> Project {
    Project::of(&[
        ("wf/START.sh", &start(&["a", "b"], goto)),
        ("wf/W.sh", &format!("echo \"$RAYMOND_ATTR_ITEM\" >> ran\n{worker}")),
        ("wf/M.sh", CAT),
        ("wf/LATE.sh", CAT),
    ])
}

fn list(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The parts of a worker that the cases name.
fn end(worker: &Value) -> [&Value; 3] {
    ["agent", "status", "result"].map(|name| &worker[name])
}

fn ran(project: &Project) -> Vec<String> {
    let mut ran: Vec<String> = project.read("ran").lines().map(str::to_owned).collect();
    ran.sort();
    ran
}

#[test]
fn j1_all_workers_return() {
    let worker = format!("[ \"$RAYMOND_ATTR_ITEM\" = a ] && sleep 0.5\n{PLAIN}");
    let project = two(r#"<goto wait="all">M</goto>"#, &worker);
    let ran = project.raymond("run wf --run-id r");
    let list = list(&ran.stdout);
    assert_eq!(end(&list[0]), [&json!("main_w1"), &json!("ended"), &json!("r-a")]);
    assert_eq!(end(&list[1]), [&json!("main_w2"), &json!("ended"), &json!("r-b")]);
    assert_eq!(list[0]["attributes"], json!({ "item": "a" }));
    ran.mentions(
        0,
        &[
            "START.sh waits for all 2 workers, then M.sh\n",
            "main_w2          ended: r-b\n",
            "main_w1          ended: r-a\n",
            "START.sh → M.sh (goto) with 2 results\n",
        ],
    );
    project.raymond("replay r").mentions(0, &[]);
}

#[test]
fn j2_failed_worker_is_not_dropped() {
    let failing = format!("[ \"$RAYMOND_ATTR_ITEM\" = b ] && exit 3\n{PLAIN}");
    let project = two(r#"<goto wait="all">M</goto>"#, &failing);
    project.raymond("run wf --run-id r").mentions(1, &["failed: main_w2 failed"]);
    assert!(!project.raymond("show r").stdout.contains("M.sh (goto)"));
    let why = project.raymond("why r").stdout;
    let expected = [
        "failed: main_w2 failed at W.sh: ",
        "; main waits for it\n",
        "to continue without it, first run: raymond cancel r --agent main_w2\n",
    ];
    assert!(expected.iter().all(|part| why.contains(part)), "{why}");
    let status = project.raymond("status r").stdout;
    assert!(status.contains("waiting for 2 workers (1 ended, 1 failed), then M.sh"), "{status}");
    let agents = project.raymond("status r --json").json()["agents"].clone();
    assert_eq!(
        (&agents[0]["status"], &agents[0]["waits_for"]),
        (&json!("waiting: workers"), &json!(0))
    );
    project.write("wf/W.sh", format!("echo again >> ran\n{PLAIN}"));
    let resumed = project.raymond("resume r --with-current");
    assert_eq!(list(&resumed.stdout).len(), 2, "{resumed:?}");
    assert_eq!(ran(&project), ["a", "again", "b"], "a does not run again");
}

#[test]
fn j3_run_continues_without_a_cancelled_worker() {
    let failing = format!("[ \"$RAYMOND_ATTR_ITEM\" = b ] && exit 3\n{PLAIN}");
    let project = two(r#"<goto wait="all">M</goto>"#, &failing);
    project.raymond("run wf --run-id r").mentions(1, &[]);
    project
        .raymond("cancel r --agent main_w2")
        .mentions(0, &["r: main_w2 is cancelled\n", "→ raymond resume r\n"]);
    project.raymond("why r").prints(
        "failed: main waits to continue; no agent is failed any more\n→ raymond resume r\n",
    );
    let status = project.raymond("status r").stdout;
    assert!(status.contains("1 of 2 workers done, 1 cancelled\n"), "{status}");
    let resumed = project.raymond("resume r");
    assert_eq!(list(&resumed.stdout)[1]["status"], "cancelled", "{resumed:?}");
    assert_eq!(resumed.code(), 0);
    assert_eq!(ran(&project), ["a", "b"], "no worker runs again");
    let cancelled = "main_w2          cancelled: requested by ";
    assert!(project.raymond("show r").stdout.contains(cancelled));
}

#[test]
fn j4_done_hands_over_failures() {
    let failing = format!("[ \"$RAYMOND_ATTR_ITEM\" = b ] && exit 3\n{PLAIN}");
    let project = two(r#"<goto wait="done">M</goto>"#, &failing);
    let ran = project.raymond("run wf --run-id r --json");
    let object = ran.json();
    assert_eq!((ran.code(), &object["status"]), (0, &json!("completed")));
    let list = list(object["results"]["main"].as_str().unwrap());
    assert_eq!(list[1]["status"], "failed");
    assert!(list[1]["failure"].as_str().unwrap().contains("exit status 3"), "{list:?}");
    assert!(object["handed_failures"]["main_w2"].is_string(), "{object}");
    let why = project.raymond("why r").stdout;
    assert!(why.contains("; 1 failed worker was handed to its parent\n"), "{why}");
}

#[test]
fn j5_any_ends_other_workers_before_its_parent_continues() {
    let slow = format!(
        "[ \"$RAYMOND_ATTR_ITEM\" = b ] && {{ echo $$ > pid; exec sleep 60; }}\nuntil [ -s pid ]; do sleep 0.05; done\n{PLAIN}"
    );
    let project = two(r#"<goto wait="any">M</goto>"#, &slow);
    project.write("wf/M.sh", format!("[ -e /proc/$(cat pid) ] && echo alive >> alive\n{CAT}"));
    let ran = project.raymond("run wf --run-id r");
    assert_eq!(list(&ran.stdout)[1]["status"], "cancelled", "{ran:?}");
    assert!(!project.path("alive").exists(), "no process of b is left");
    ran.mentions(0, &["main_w2          cancelled: enough workers ended\n"]);
}

#[test]
fn j6_wait_times_out() {
    let slow = format!("[ \"$RAYMOND_ATTR_ITEM\" = b ] && sleep 60\n{PLAIN}");
    let project = two(r#"<goto wait="all" timeout="1s" then="LATE">M</goto>"#, &slow);
    let ran = project.raymond("run wf --run-id r");
    let list = list(&ran.stdout);
    assert_eq!(list[1]["status"], "cancelled");
    // On a slow machine the time may be up before the first worker ends.
    let ended = list.iter().filter(|worker| worker["status"] == "ended").count();
    let line =
        format!("START.sh → LATE.sh (goto): the wait timed out, {ended} of 2 workers ended\n");
    ran.mentions(0, &["main_w2          cancelled: the wait timed out\n", &line]);
}

#[test]
fn j7_failure_leads_to_then_at_once() {
    let slow = format!("[ \"$RAYMOND_ATTR_ITEM\" = b ] && exit 3\nsleep 60\n{PLAIN}");
    let project = two(r#"<goto wait="all" then="LATE">M</goto>"#, &slow);
    let ran = project.raymond("run wf --run-id r");
    let list = list(&ran.stdout);
    assert_eq!([&list[0]["status"], &list[1]["status"]], [&json!("cancelled"), &json!("failed")]);
    ran.mentions(0, &["main_w1          cancelled: main_w2 failed\n"]);
}

#[test]
fn j8_killed_owner_loses_no_end() {
    let project = two(
        r#"<goto wait="all">M</goto>"#,
        &format!("until [ -e go ]; do sleep 0.05; done\n{PLAIN}"),
    );
    let owner = project.start("run wf --run-id r");
    until("both work", || project.path("ran").exists() && ran(&project).len() == 2);
    owner.signal(Signal::KILL);
    owner.wait();
    project.write("go", "");
    project.write("wf/M.sh", CAT);
    let resumed = project.raymond("resume r");
    assert_eq!(list(&resumed.stdout).len(), 2, "{resumed:?}");
    assert_eq!(project.events("r", "joined").len(), 1, "M runs once");
    assert_eq!(project.read("starts"), "x\n");

    let project = two(r#"<goto wait="all">M</goto>"#, PLAIN);
    project.write("wf/M.sh", format!("until [ -e go ]; do sleep 0.05; done\n{CAT}"));
    let owner = project.start("run wf --run-id r");
    until("the list is handed over", || !project.events("r", "joined").is_empty());
    owner.signal(Signal::KILL);
    owner.wait();
    project.write("go", "");
    let resumed = project.raymond("resume r --with-current");
    assert_eq!(list(&resumed.stdout).len(), 2, "{resumed:?}");
    assert_eq!(ran(&project), ["a", "b"], "no worker runs again");
}

#[test]
fn j9_stop_keeps_the_wait() {
    let project = two(
        r#"<goto wait="all">M</goto>"#,
        &format!("until [ -e go ]; do sleep 0.05; done\n{PLAIN}"),
    );
    let owner = project.start("run wf --run-id r");
    until("both work", || project.path("ran").exists() && ran(&project).len() == 2);
    project.raymond("stop r").says(0, "r: stopped");
    owner.wait();
    let plan = project.raymond("resume r --plan").stdout;
    assert!(plan.contains(", waiting 1"), "{plan}");
    project.write("go", "");
    assert_eq!(list(&project.raymond("resume r").stdout).len(), 2);
}

#[test]
fn j10_prompt_receives_the_list() {
    let project = two(r#"<goto wait="all">M</goto>"#, PLAIN);
    std::fs::remove_file(project.path("wf/M.sh")).unwrap();
    project.write("wf/M.md", "The workers returned {{result}}");
    let reply = "M: { text: <result>ok</result>, expect: ['\"agent\":\"main_w1\"', r-a] }\n";
    project.write("replies.yaml", reply);
    project.raymond("run wf --replies replies.yaml --run-id r").prints("ok\n");
    let prompts = project.raymond("logs r --state M --prompts").stdout;
    assert!(
        prompts.contains("\"agent\":\"main_w2\",\"status\":\"ended\",\"result\":\"r-b\""),
        "{prompts}"
    );
}

#[test]
fn j11_long_result_is_a_file() {
    let long = "printf '<result>'; head -c 10000000 /dev/zero | tr '\\0' y; printf '</result>'";
    let project = two(r#"<goto wait="all">M</goto>"#, long);
    project.write("wf/M.sh", format!("cp \"$RAYMOND_RESULT_FILE\" list\n{PLAIN}"));
    project.raymond("run wf --run-id r").mentions(0, &["with 2 results"]);
    let list = list(&project.read("list"));
    assert_eq!((&list[0]["bytes"], &list[0]["result"]), (&json!(10_000_000), &Value::Null));
    let file = list[0]["file"].as_str().unwrap();
    assert!(file.ends_with("/r/handed/main.2/main_w1"), "{file}");
    assert_eq!(std::fs::read(file).unwrap(), vec![b'y'; 10_000_000]);
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn j13_waits_nest_and_a_cancellation_reaches_below() {
    let inner = "if [ \"$RAYMOND_ATTR_ITEM\" = a ] && [ -z \"$RAYMOND_RESULT\" ]; then\n\
        echo '<fork item=\"1\">W</fork><fork item=\"2\">W</fork><goto wait=\"all\">N</goto>'; exit\nfi\n";
    let project = two(r#"<goto wait="all">M</goto>"#, &format!("{inner}{PLAIN}"));
    project.write("wf/N.sh", CAT);
    let ran = project.raymond("run wf --run-id r");
    let outer = list(&ran.stdout);
    let inner = list(outer[0]["result"].as_str().unwrap());
    assert_eq!(end(&inner[1]), [&json!("main_w1_w2"), &json!("ended"), &json!("r-2")]);

    let hanging = "case \"$RAYMOND_ATTR_ITEM\" in\n\
        a) echo '<fork item=\"1\">W</fork><fork item=\"2\">W</fork><goto wait=\"all\">N</goto>';;\n\
        b) echo '<result>r-b</result>';;\n*) sleep 60;;\nesac";
    let project = two(r#"<goto wait="all">M</goto>"#, hanging);
    project.write("wf/N.sh", CAT);
    let owner = project.start("run wf --run-id r");
    until("the inner workers work", || {
        project.path("ran").exists() && project.read("ran").lines().count() == 4
    });
    project.raymond("cancel r --agent main_w1").mentions(0, &["r: main_w1 is cancelled"]);
    let ended = owner.wait();
    assert_eq!(list(&ended.stdout)[0]["status"], "cancelled", "{ended:?}");
    let shown = project.raymond("show r").stdout;
    for agent in ["main_w1_w1", "main_w1_w2", "main_w1"] {
        let line = format!("{agent:<16} cancelled: requested by ");
        assert!(shown.contains(&line), "{agent}: {shown}");
    }
}

#[test]
fn j14_policy_asks_for_the_wait() {
    let policy = "---\nallowed_transitions:\n- { tag: fork, target: W }\n\
        - { tag: goto, target: M, wait: all }\n---\nFork.";
    let project = Project::of(&[("wf/START.md", policy), ("wf/W.sh", PLAIN), ("wf/M.sh", CAT)]);
    let forks = "<fork item=\"a\">W</fork>";
    let replies = format!(
        "START:\n- - '{forks} <goto>M</goto>'\n  - text: '{forks} <goto wait=\"all\">M</goto>'\n    expect: '<goto wait=\"all\">M</goto>'\n"
    );
    project.write("replies.yaml", replies);
    let ran = project.raymond("run wf --replies replies.yaml --run-id r");
    assert_eq!(list(&ran.stdout).len(), 1, "{ran:?}");
    assert_eq!(project.events("r", "reminded").len(), 1);
    assert_eq!(project.events("r", "agent_spawned").len(), 2, "main and one worker");
}

#[test]
fn only_live_or_failed_workers_can_be_cancelled() {
    let project = two(r#"<goto wait="all">M</goto>"#, "exit 3");
    project.raymond("run wf --run-id r").mentions(1, &[]);
    project.raymond("cancel r --agent main").says(
        2,
        "raymond: could not cancel `main`: only workers can be cancelled\n\
         hint: to end the run: raymond cancel r",
    );
    project.raymond("cancel r --agent main_x9").says(
        2,
        "raymond: could not cancel `main_x9`: `r` has no live or failed agent with this name\n\
         hint: raymond status r lists the agents",
    );
}

#[test]
fn edit_must_keep_the_states_of_a_wait() {
    let project =
        two(r#"<goto wait="all" then="LATE">M</goto>"#, "until [ -e go ]; do sleep 0.05; done");
    let owner = project.start("run wf --run-id r");
    until("both work", || project.path("ran").exists() && ran(&project).len() == 2);
    project.raymond("stop r").says(0, "r: stopped");
    owner.wait();
    std::fs::remove_file(project.path("wf/LATE.sh")).unwrap();
    project.raymond("resume r --with-current").mentions(
        2,
        &["could not resume `r` with the edited workflow: `main` waits to enter `LATE.sh`, which no longer exists"],
    );
}

#[test]
fn emit_writes_a_wait() {
    let project = Project::of(&[]);
    project
        .raymond("emit goto M --wait all --timeout 2h --then LATE")
        .prints("<goto wait=\"all\" timeout=\"2h\" then=\"LATE\">M</goto>\n");
    project
        .raymond("emit reset M --wait all")
        .says(2, "raymond: could not write the tag: <reset>: `wait` is only valid on goto");
    project
        .raymond("emit fork M --next N --at 2030-01-01T00:00:00Z")
        .says(2, "raymond: could not write the tag: <fork>: `at` is only valid on goto and reset");
}

#[test]
fn workers_of_workers_end_before_the_next_state() {
    let deep = "trap '' INT TERM; echo deep >> log; touch busy; until [ -e go ]; do sleep 0.05; \
                echo deep >> log; done";
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork>FAST</fork><fork>MID</fork><goto wait=\"any\">M</goto>'"),
        ("wf/FAST.sh", "until [ -e busy ]; do sleep 0.05; done; echo '<result>fast</result>'"),
        ("wf/MID.sh", "echo '<fork>DEEP</fork><goto wait=\"all\">M</goto>'"),
        ("wf/DEEP.sh", deep),
        ("wf/M.sh", "echo merge >> log; sleep 0.3; echo '<result>merged</result>'"),
    ]);
    project.raymond("run wf --run-id r").prints("merged\n");
    let log = project.read("log");
    assert!(log.ends_with("deep\nmerge\n"), "{log}");
}
