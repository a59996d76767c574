//! Many agents in one run, many parallel runs and long journals: nothing is lost, and the tests
//! print the resources that they used. `LOAD=10` runs a tenth of the load (default: all of it).

use std::time::Instant;

use raymond_testkit::tally;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Project, until};
use crate::{taken, watch};

/// Returns the part of a number that `LOAD` asks for.
fn share(of: usize) -> usize {
    let percent = std::env::var("LOAD").ok().and_then(|percent| percent.parse().ok());
    of * percent.unwrap_or(100) / 100
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn ten_thousand_agents_return_their_own_results() {
    let agents = share(10_000);
    let fork = format!(
        "for i in $(seq {agents}); do echo \"<fork next='END' n='$i'>WORKER</fork>\"; done"
    );
    let project = Project::of(&[
        ("wf/START.sh", &fork),
        ("wf/WORKER.sh", "echo \"<result>$RAYMOND_ATTR_N</result>\""),
        ("wf/END.sh", "echo '<result>done</result>'"),
    ]);
    let begun = Instant::now();
    let most = agents + 1;
    let running = project
        .start(&format!("run wf --max-agents {most} --max-parallel 4 --json --quiet --run-id r"));
    let taken = watch(&running);
    let output = running.wait();
    assert_eq!(output.code(), 0, "{}", output.stderr);
    let results = &output.json()["results"];
    assert_eq!(results.as_object().unwrap().len(), agents + 1);
    for n in 1..=agents {
        assert_eq!(results[format!("main_worker{n}")], n.to_string());
    }
    assert_eq!(project.processes("r"), [0; 0]);
    println!(
        "{agents} agents: {} s, {} MiB at most, {} ms of its own CPU",
        begun.elapsed().as_secs(),
        taken.peak / 1024,
        taken.ticks * 10
    );
    tally::count("load", "agents of one run", agents as u64);
    assert!(taken.own < 120 * 1024, "{} KiB", taken.own);
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn two_hundred_parallel_runs_complete() {
    let runs = share(200);
    let project = Project::of(&[
        ("wf/START.md", "begin"),
        (
            "wf/NEXT.sh",
            "until test -e go; do test -d $PWD || exit 1; sleep 0.1; done; echo '<goto>END</goto>'",
        ),
        ("wf/END.md", "end"),
        (
            "replies.yaml",
            "START: { text: '<goto>NEXT</goto>', cost: 0.01 }\nEND: { text: '<result>x</result>', cost: 0.01 }\n",
        ),
    ]);
    let name = |n: usize| format!("r{n}");
    let running: Vec<_> = (0..runs)
        .map(|n| {
            project.start(&format!("run wf --replies replies.yaml --quiet --run-id {}", name(n)))
        })
        .collect();
    for n in 0..runs {
        until("all of them run", || project.events(&name(n), "turn_started").len() == 2);
    }
    let begun = Instant::now();
    project.raymond("status r0").mentions(0, &[]);
    let status = begun.elapsed();
    let own: u64 = running.iter().map(|one| taken(one.pid()).0.own).sum();
    project.write("go", "");
    for one in running {
        one.wait().prints("x\n");
    }
    let listed = project.raymond("list --json").json();
    let completed = listed.as_array().unwrap();
    let completed = completed.iter().filter(|run| run["status"] == "completed").count();
    assert_eq!(completed, runs, "{listed}");
    println!(
        "{runs} runs: {} KiB each of its own, status of one among them in {} ms",
        own / runs as u64,
        status.as_millis()
    );
    tally::count("load", "runs side by side", runs as u64);
    assert!(own / (runs as u64) < 4 * 1024, "{own} KiB");
}

/// A project, and the arguments of `raymond run` for its long run.
struct LongRun {
    project: Project,
    arguments: &'static str,
}

/// A program that logs its start, and waits.
const LAST: &str = "echo x >> log; test -e go || sleep 300; echo '<result>done</result>'";

/// A run of so many events in a few records: turns of a loop that runs no program.
fn few_records(events: usize) -> LongRun {
    let list: Vec<usize> = (0..events).collect();
    let document = json!({
        "name": "long",
        "vars": { "list": list },
        "steps": [
            {
                "id": "all", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item",
                "body": [{ "id": "choose", "kind": "if", "cond": { "op": "exists", "path": "$.vars.list" }, "then": [] }],
            },
            { "id": "last", "kind": "exec", "shell": LAST },
        ],
    });
    let project = Project::of(&[("flow.json", &document.to_string())]);
    LongRun { project, arguments: "flow.json" }
}

/// A goto settles a turn, moves, enters, queues and starts.
const EVENTS_OF_A_GOTO: usize = 5;

/// A run of so many events, five to a record: one goto after the other.
fn many_records(events: usize) -> LongRun {
    let gotos = events / EVENTS_OF_A_GOTO;
    let again = format!("---\nmax_visits: {gotos}\nthen: LAST\n---\nagain\n");
    let replies = "START: { text: '<goto>START</goto>', cost: 0 }\n";
    let files = [("wf/START.md", &*again), ("wf/LAST.sh", LAST), ("replies.yaml", replies)];
    LongRun { project: Project::of(&files), arguments: "wf --replies replies.yaml" }
}

/// Raymond writes a snapshot for a journal of more records.
const WORTH_A_SNAPSHOT: usize = 1_000;

/// Kills the owner of a run in its last step, checks `status` and `resume`, and checks that both
/// take less than `most` KiB. Returns the number of records.
#[expect(clippy::print_stdout, reason = "what it takes is printed")]
fn check_resume(run: &LongRun, wanted: usize, most: u64) -> usize {
    let LongRun { project, arguments } = run;
    let running = project.start(&format!("run {arguments} --quiet --json --run-id r"));
    until("the last step runs", || !project.read("log").is_empty());
    if project.records("r").len() > WORTH_A_SNAPSHOT {
        let snapshot = project.path(".raymond/runs/r/snapshot.json");
        until("a snapshot is kept", || snapshot.exists());
    }
    running.signal(Signal::KILL);
    running.wait();
    let records = project.records("r");
    let steps = records.iter().flat_map(|record| record["steps"].as_array().unwrap());
    let events: usize = steps.map(|step| step["events"].as_array().unwrap().len()).sum();
    assert!(events >= wanted, "{events} events");
    let begun = Instant::now();
    let looking = project.start("status r --json");
    let looked = watch(&looking);
    assert_eq!(looking.wait().json()["status"], "interrupted");
    let status = begun.elapsed();
    project.write("go", "");
    let begun = Instant::now();
    let running = project.start("resume r --quiet --json");
    let resumed = watch(&running);
    let output = running.wait();
    assert_eq!(output.code(), 0, "{output:?}");
    println!(
        "{events} events in {} records: status in {} ms, {} KiB of its own; resumed and ended in {} ms, {} KiB",
        records.len(),
        status.as_millis(),
        looked.own,
        begun.elapsed().as_millis(),
        resumed.own
    );
    tally::count("load", "events of two journals", events as u64);
    tally::count("load", "records of one journal", records.len() as u64);
    assert_eq!(project.read("log"), "x\nx\n", "what was in flight was repeated, once");
    assert!(looked.own.max(resumed.own) < most, "{looked:?}, {resumed:?}");
    records.len()
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn large_records_are_resumed() {
    let wanted = share(100_000);
    check_resume(&few_records(wanted), wanted, 64 * 1024);
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn many_records_are_resumed() {
    let wanted = share(100_000);
    let long = many_records(wanted);
    let records = check_resume(&long, wanted, 128 * 1024);
    let (project, gotos) = (long.project, wanted / EVENTS_OF_A_GOTO);
    assert!(records >= gotos, "{records} records");
    let status = project.raymond("status r --json").json();
    let found = ["status", "turns", "visits", "results"].map(|name| status[name].clone());
    let results = json!({ "main": "done" });
    // The interrupted attempt and its repetition are one turn.
    assert_eq!(found, [json!("completed"), json!(gotos + 1), json!(gotos + 1), results]);
}
