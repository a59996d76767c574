//! kill -9 of the owner, with clients in their first turn: nothing is paid twice, nothing is lost.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Running, until};
use crate::stage::Stage;

const INTERRUPTED: &str = "Your work on the task below was interrupted: check what is already done, \
                           then continue.";
const CALL: &str = "<call return='BACK'>SUB</call>";

/// A worker and a callee, each in its first turn, and each at its gate.
fn stage() -> Stage {
    Stage::prompts(&[
        ("START", "fake: say <fork next='CALL'>WORKER</fork>"),
        ("CALL", &format!("fake: say {CALL}")),
        (
            "SUB",
            "fake: cost 0.25
            fake: wait sub
            fake: say <result>found</result>",
        ),
        (
            "WORKER",
            "fake: cost 0.5
            fake: wait worker
            fake: say <result>worked</result>",
        ),
        ("BACK", "fake: say <result>{{result}}!</result>"),
    ])
}

/// Kills the owner while both clients wait at their gates.
fn killed(stage: &Stage) {
    let running = stage.start_run("");
    stage.reaches("sub");
    stage.reaches("worker");
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status.code(), None);
    assert_eq!(stage.invocations().len(), 4);
}

fn clients(stage: &Stage) -> Vec<u32> {
    let pids = stage.invocations().into_iter().map(|invocation| invocation.pid);
    pids.filter(|pid| stage.is_ours(*pid)).collect()
}

fn kill_clients(stage: &Stage) {
    for pid in clients(stage) {
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    until("the clients are gone", || clients(stage).is_empty());
}

// proves: A36
#[test]
fn client_without_transcripts_is_charged_as_unpriced() {
    for ending in ["resume r", "stop r", "cancel r"] {
        let stage = Stage::prompts(&[(
            "START",
            "fake[1]: cost 0.5
            fake[1]: wait gate
            fake: say <result>done</result>",
        )]);
        let running = stage.start_run("");
        stage.reaches("gate");
        running.signal(Signal::KILL);
        running.wait();
        std::fs::remove_dir_all(stage.project.path(".raymond/runs/r/transcripts")).unwrap();
        assert_eq!(stage.raymond(ending).status.code(), Some(0), "{ending}");
        assert_eq!(stage.charges()[0].2, "unpriced", "{ending}");
        stage.leaves_nothing();
    }
}

// proves: A35
#[test]
fn answer_counts_after_a_change_of_backend() {
    let stage = Stage::prompts(&[
        ("START", "fake: cost 0.5\nfake: wait gate\nfake: say <goto>NEXT</goto>"),
        ("NEXT", "Go on."),
    ]);
    let running = stage.start_run("");
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    stage.opens("gate");
    until("the client has finished", || clients(&stage).is_empty());
    stage.project.write("replies.yaml", "NEXT: <result>done</result>");
    let resumed = stage.raymond("resume r --replies replies.yaml");
    resumed.prints("done\n").mentions(0, &["spent $0.50"]);
    assert_eq!(stage.charges()[0], ("main.1.1".to_owned(), 500_000, "reported".to_owned()));
}

#[track_caller]
fn completes(stage: &Stage, resumed: Running, invocations: usize) {
    resumed.wait().prints("found!\n").mentions(0, &[]);
    let results = json!({ "main": "found!", "main_worker1": "worked" });
    assert_eq!(stage.project.state("r")["results"], results);
    assert_eq!(stage.invocations().len(), invocations, "{:#?}", stage.turn_contexts());
    stage.leaves_nothing();
}

// proves: P5, P6
#[test]
fn clients_of_discarded_records_are_ended_and_charged() {
    for is_damaged in [false, true] {
        let stage = stage();
        killed(&stage);
        if is_damaged {
            let journal = ".raymond/runs/r/journal.jsonl";
            stage
                .project
                .write(journal, stage.project.read(journal).replacen("{\"seq\":2", "?", 1));
        }
        let left = clients(&stage);
        assert_eq!(left.len(), 2);
        let resumed = stage.start("resume r --truncate-to 1");
        until("they are ended", || !left.iter().any(|pid| stage.is_ours(*pid)));
        stage.opens("sub");
        stage.opens("worker");
        completes(&stage, resumed, 9);
        // The costs of two finished turns, and the costs in the transcripts of two unfinished ones.
        let rows = stage.raymond("cost r --json").json()["rows"].clone();
        let cut = rows.as_array().unwrap().iter().find(|row| row["name"] == "discarded").unwrap();
        assert_eq!(cut["spent_usd"], 0.02 + 0.25 + 0.5, "{rows:#}");
        assert_eq!(cut["unpriced_attempts"], 2 + u32::from(is_damaged), "{rows:#}");
        let transcripts = stage.project.path(".raymond/runs/r/transcripts");
        let mut entries =
            std::fs::read_dir(transcripts).unwrap().flatten().map(|entry| entry.path());
        let aside = entries.find(|path| path.is_dir()).unwrap();
        for turn in ["main.2.1", "main.3.1", "main_worker1.1.1"] {
            assert!(aside.join(format!("{turn}.1.jsonl")).exists(), "{turn}");
        }
        assert!(!aside.join("main.1.1.1.jsonl").exists(), "it is kept");
    }
}

// proves: A24
#[test]
fn transcripts_of_discarded_records_are_charged() {
    for flags in ["", "--strict-budget"] {
        let stage = Stage::prompts(&[
            ("START", "fake: cost 0.90\nfake: say <goto>EXPENSIVE</goto>"),
            ("EXPENSIVE", "fake: cost 3\nfake: say <goto>LAST</goto>"),
            ("LAST", "fake: cost 0.10\nfake: say <result>done</result>"),
        ]);
        stage.run(&format!("--budget 10 {flags}")).prints("done\n");
        let journal = ".raymond/runs/r/journal.jsonl";
        let text = stage.project.read(journal);
        // Nothing but the first record can be read.
        let kept: Vec<&str> = text.lines().take(2).collect();
        stage.project.write(journal, format!("{}\n?\n?\n?\n", kept.join("\n")));
        let resumed = stage.raymond("resume r --truncate-to 1");
        // In the kept records the first turn is in flight, and its transcript has the answer. The
        // other turns are paid a second time.
        resumed.prints("done\n").mentions(0, &[]);
        assert_eq!(stage.invocations().len(), 5, "{flags}");
        let spent = stage.raymond("status r --json").json()["spent_usd"].as_f64().unwrap();
        assert!((spent - (0.90 + 2.0 * 3.10)).abs() < 1e-6, "{flags}: {spent}");
    }
}

// proves: P3
#[test]
fn dead_clients_are_continued_in_their_own_sessions() {
    let stage = stage();
    killed(&stage);
    kill_clients(&stage);
    let seen = stage.raymond("why r");
    assert!(seen.stdout.starts_with("interrupted: "), "{seen:?}");
    stage.raymond("resume r --plan").prints(
        "r: reused 2 turns ($0.02), continuing 2, repeating 0
  main             SUB.md: continuing in its session
  main_worker1     WORKER.md: continuing in its session\n",
    );
    stage.opens("sub");
    stage.opens("worker");
    completes(&stage, stage.start("resume r --max-parallel 1"), 7);
    let contexts = stage.turn_contexts();
    let again: Vec<&String> = contexts[4..].iter().filter(|line| line.contains("again")).collect();
    assert_eq!(again.len(), 2, "{contexts:#?}");
    let branch = contexts.iter().position(|line| line.starts_with("branch")).unwrap();
    let session = contexts[branch].split([' ', '|']).nth(3).unwrap();
    assert!(
        contexts.iter().any(|line| line.starts_with(&format!("resume {session} |"))
            && line.ends_with("SUB, again SUB")),
        "the callee stays in its own session: {contexts:#?}"
    );
    let body = stage.project.read("wf/SUB.md");
    assert!(stage.prompts_sent().contains(&format!("{INTERRUPTED}\n\n{body}")));
    assert!(
        contexts.last().unwrap().ends_with(&format!("CALL, {CALL}, BACK")),
        "the caller never sees its callee: {contexts:#?}"
    );
}

// proves: P6
#[test]
fn running_clients_are_adopted() {
    let stage = stage();
    killed(&stage);
    let living = clients(&stage);
    assert_eq!(living.len(), 2, "a client finishes the turn it is in");
    let status = stage.raymond("status r --json").json();
    assert_eq!(status["status"], "interrupted");
    assert_eq!(status["left_running"].as_array().unwrap().len(), 2, "{status}");
    let resumed = stage.start("resume r");
    until("the run is resumed", || !stage.project.events("r", "run_resumed").is_empty());
    assert_eq!(clients(&stage), living, "no client was ended or started");
    stage.opens("sub");
    stage.opens("worker");
    completes(&stage, resumed, 5);
    let costs: Vec<u64> = stage.charges().into_iter().map(|(_, amount, _)| amount).collect();
    assert_eq!(costs.iter().sum::<u64>(), 780_000, "{costs:?}");
    assert_eq!(stage.project.events("r", "turn_interrupted").len(), 0);
}

#[test]
fn adopted_client_that_falls_silent_is_ended() {
    let lines = "idle_timeout: 1s\n---\nfake: say thinking\nfake: hang stall";
    for lines in [lines, &lines.replace("idle_timeout", "timeout")] {
        let stage = Stage::prompts(&[("START", lines)]);
        let running = stage.start_run("--retries 0");
        until("the client runs", || clients(&stage).len() == 1);
        running.signal(Signal::KILL);
        running.wait();
        stage.raymond("resume r").prints("").mentions(1, &["timed out"]);
        assert_eq!(stage.invocations().len(), 1, "it was adopted, and no other was started");
        stage.leaves_nothing();
    }
}

// proves: P2
#[test]
fn finished_clients_are_not_asked_again() {
    let stage = stage();
    killed(&stage);
    stage.opens("sub");
    stage.opens("worker");
    until("they are done", || clients(&stage).is_empty());
    completes(&stage, stage.start("resume r"), 5);
    let costs: Vec<u64> = stage.charges().into_iter().map(|(_, amount, _)| amount).collect();
    assert_eq!(costs.iter().sum::<u64>(), 780_000, "{costs:?}");
}

// proves: P3
#[test]
fn finished_running_and_dead_clients_resume_together() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <fork next='ONE' n='2'>W</fork><fork next='ONE' n='3'>W</fork>"),
        ("ONE", "fake: wait one\nfake: say <result>1</result>"),
        ("W", "fake: wait w{{n}}\nfake: say <result>{{n}}</result>"),
    ]);
    let running = stage.start_run("");
    for gate in ["one", "w2", "w3"] {
        stage.reaches(gate);
    }
    running.signal(Signal::KILL);
    running.wait();
    let pid = |part: &str| {
        let sent = stage.invocations().into_iter();
        let mut found = sent.filter(|sent| sent.stdin.as_ref().unwrap().contains(part));
        found.next().unwrap().pid
    };
    stage.opens("one");
    until("it is done", || !stage.is_ours(pid("wait one")));
    let dead = i32::try_from(pid("wait w3")).unwrap();
    kill_process(Pid::from_raw(dead).unwrap(), Signal::KILL).unwrap();
    until("it is dead", || !stage.is_ours(pid("wait w3")));
    let plan = "reused 1 turn ($0.01), 1 finished meanwhile, adopting 1, continuing 1, repeating 0";
    stage.raymond("resume r --plan").prints(&format!(
        "r: {plan}
  main             ONE.md: finished meanwhile
  main_w1          W.md: adopting its client, which still runs
  main_w2          W.md: continuing in its session\n"
    ));
    let turn = |agent: &str, turn: &str, state: &str, what: &str| json!({ "turn": turn, "agent": agent, "state": state, "backend": "claude", "what": what });
    assert_eq!(
        stage.raymond("resume r --plan --json").json()["turns"],
        json!([
            turn("main", "main.2.1", "ONE.md", "finished_meanwhile"),
            turn("main_w1", "main_w1.1.1", "W.md", "adopting"),
            turn("main_w2", "main_w2.1.1", "W.md", "continuing"),
        ])
    );
    let resumed = stage.start("resume r");
    stage.opens("w3");
    until("the dead one has been asked again", || stage.invocations().len() == 5);
    stage.opens("w2");
    resumed.wait().prints("1\n").mentions(0, &[plan]);
    assert_eq!(
        stage.project.state("r")["results"],
        json!({ "main": "1", "main_w1": "2", "main_w2": "3" })
    );
    assert_eq!(stage.invocations().len(), 5);
    stage.leaves_nothing();
}

#[test]
fn unsaved_session_is_replaced_by_a_new_one() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: forget
        fake[1]: wait gate
        fake[2]: wait second
        fake: say <result>done</result>",
    )]);
    let mut owner = stage.start_run("");
    for gate in ["gate", "second"] {
        stage.reaches(gate);
        owner.signal(Signal::KILL);
        owner.wait();
        kill_clients(&stage);
        owner = stage.start("resume r");
    }
    owner.wait().prints("done\n").mentions(0, &[]);
    let expected = ["new A | START", "resume A | refused", "new B | START"];
    assert_eq!(stage.turn_contexts()[..3], expected);
    assert_eq!(
        stage.turn_contexts()[3..],
        ["resume B | START, again START"],
        "a saved session is resumed"
    );
}

#[test]
fn failed_adopted_client_is_retried_in_its_session() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: wait gate
        fake[1]: error 529
        fake[2]: say <result>done</result>",
    )]);
    let running = stage.start_run("");
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    let resumed = stage.start("resume r");
    until("the run is resumed", || !stage.project.events("r", "run_resumed").is_empty());
    stage.opens("gate");
    resumed.wait().prints("done\n").mentions(0, &["server_error"]);
    assert_eq!(stage.turn_contexts(), ["new A | START", "resume A | START, again START"]);
}

// proves: P4
#[test]
fn run_survives_repeated_kills_of_its_owner() {
    let stage = stage();
    killed(&stage);
    for _ in 0..6 {
        let before = stage.project.events("r", "run_resumed").len();
        let resumed = stage.start("resume r");
        until("the run is resumed", || stage.project.events("r", "run_resumed").len() > before);
        resumed.signal(Signal::KILL);
        resumed.wait();
    }
    let resumed = stage.start("resume r");
    stage.opens("sub");
    stage.opens("worker");
    completes(&stage, resumed, 5);
}

// proves: P6
#[test]
fn stop_and_cancel_end_leftover_processes() {
    for (verb, status) in [("stop", "stopped"), ("cancel", "cancelled")] {
        let stage = stage();
        killed(&stage);
        stage.raymond(&format!("{verb} r")).mentions(0, &[status]);
        stage.leaves_nothing();
        assert_eq!(stage.raymond("status r --json").json()["status"], status);
        assert_eq!(stage.invocations().len(), 4);
    }
}

// proves: P6
#[test]
fn resume_finishes_an_interrupted_cancel() {
    let stubborn = "fake: ignore INT
        fake: ignore TERM
        fake: wait gate
        fake: say <result>done</result>";
    let stage = Stage::prompts(&[("START", stubborn)]);
    let running = stage.start_run("");
    stage.reaches("gate");
    let asking = stage.start("cancel r");
    until("it is recorded", || !stage.project.events("r", "stop_requested").is_empty());
    for process in [running, asking] {
        process.signal(Signal::KILL);
        process.wait();
    }
    assert_eq!(clients(&stage).len(), 1, "its owner was too quick");
    let why = stage.raymond("why r").mentions(0, &[]).stdout.clone();
    assert!(why.ends_with("→ raymond resume r\n"), "{why}");
    stage
        .raymond("resume r --plan")
        .prints("r: cancel requested; a resume ends the leftover processes\n");
    assert_eq!(clients(&stage).len(), 1, "looking ends nothing");
    stage.raymond("resume r").prints("").mentions(8, &["r was cancelled"]);
    stage.leaves_nothing();
    assert_eq!(stage.raymond("status r --json").json()["status"], "cancelled");
    assert_eq!(stage.invocations().len(), 1);
}

#[test]
fn inspecting_leftover_processes_ends_none() {
    let stage = stage();
    killed(&stage);
    for words in ["status r", "why r", "list", "show r", "resume r --plan"] {
        stage.raymond(words).mentions(0, &[]);
    }
    assert_eq!(clients(&stage).len(), 2);
    stage.raymond("stop r").mentions(0, &[]);
    stage.leaves_nothing();
}

// proves: P6
#[test]
fn children_of_dead_client_end_before_resume() {
    let stage = Stage::prompts(&[(
        "START",
        "fake[1]: grandchild
        fake[1]: wait gate
        fake[2]: wait second
        fake: say <result>done</result>",
    )]);
    let running = stage.start_run("");
    stage.reaches("gate");
    running.signal(Signal::KILL);
    running.wait();
    kill_clients(&stage);
    let living = || stage.offspring().iter().filter(|pid| stage.is_ours(**pid)).count();
    assert_eq!(living(), 1);
    let resumed = stage.start("resume r");
    stage.reaches("second");
    assert_eq!(living(), 0);
    stage.opens("second");
    resumed.wait().prints("done\n").mentions(0, &[]);
    stage.leaves_nothing();
}
