//! Many agents in one run, many runs side by side, long journals: nothing is lost, and what it takes is
//! printed. `LOAD=10` is a tenth of everything; all of it by default.

use std::time::Instant;

use raymond_testkit::tally;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Project, until};
use crate::{taken, watch};

/// So many, or the part of it that is wanted.
fn share(of: usize) -> usize {
    let percent = std::env::var("LOAD").ok().and_then(|percent| percent.parse().ok());
    of * percent.unwrap_or(100) / 100
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn ten_thousand_agents_of_one_run_end_each_with_its_own_result() {
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
fn two_hundred_runs_side_by_side_all_come_to_their_end() {
    let runs = share(200);
    let project = Project::of(&[
        ("wf/START.md", "begin"),
        ("wf/NEXT.sh", "until test -e go; do sleep 0.1; done; echo '<goto>END</goto>'"),
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

/// Turns of a loop that runs no program: each is an event.
fn long(turns: usize) -> Project {
    let list: Vec<usize> = (0..turns).collect();
    let document = json!({
        "name": "long",
        "vars": { "list": list },
        "steps": [
            {
                "id": "all", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item",
                "body": [{ "id": "choose", "kind": "if", "cond": { "op": "exists", "path": "$.vars.list" }, "then": [] }],
            },
            { "id": "last", "kind": "exec", "shell": "echo x >> log; test -e go || sleep 300" },
        ],
    });
    Project::of(&[("flow.json", &document.to_string())])
}

#[test]
#[ignore = "heavy: run by cargo xtask torture"]
fn a_journal_of_a_hundred_thousand_events_is_gone_on_with() {
    let wanted = share(100_000);
    let project = long(wanted);
    let running = project.start("run flow.json --quiet --json --run-id r");
    until("the last step runs", || !project.read("log").is_empty());
    running.signal(Signal::KILL);
    running.wait();
    let events: usize = project
        .records("r")
        .iter()
        .flat_map(|record| record["steps"].as_array().unwrap())
        .map(|step| step["events"].as_array().unwrap().len())
        .sum();
    assert!(events >= wanted, "{events} events");
    let begun = Instant::now();
    project.raymond("status r").mentions(0, &[]);
    let status = begun.elapsed();
    project.write("go", "");
    let begun = Instant::now();
    let running = project.start("resume r --quiet --json");
    let taken = watch(&running);
    let output = running.wait();
    assert_eq!(output.code(), 0, "{output:?}");
    println!(
        "{events} events: status in {} ms, resumed and ended in {} ms, {} MiB at most",
        status.as_millis(),
        begun.elapsed().as_millis(),
        taken.peak / 1024
    );
    tally::count("load", "events of one journal", events as u64);
    assert_eq!(project.read("log"), "x\nx\n", "what was in flight was repeated, once");
}
