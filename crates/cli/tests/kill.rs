//! kill -9 of the real binary at random moments: nothing that was finished is done again, nothing is
//! lost, nothing is left running.
//!
//! The seed is printed; `KILL_SEED=N` repeats its moments as far as a clock can.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "cli/harness.rs"]
mod harness;

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use harness::{Project, until};
use raymond_testkit::dice::Dice;
use rustix::process::Signal;
use serde_json::{Value, json};

const RUNS: u64 = 50;
const THREADS: u64 = 5;
const KILLS_IN_A_ROW: usize = 10;

/// A script that leaves a trace under the key of its visit, and takes its time.
fn script(tag: &str) -> String {
    format!("echo \"${{RAYMOND_VISIT#*.}}\" >> log; sleep 0.01; printf %s '{tag}'")
}

/// Forks, a call, a function and a loop, prompts and scripts in turn.
fn project(laps: usize) -> Project {
    let again = format!(
        "echo \"${{RAYMOND_VISIT#*.}}\" >> log; n=$(cat $RAYMOND_RESULT_FILE); \
         test $n -ge {laps} && echo '<goto>END</goto>' || \
         echo \"<goto input='$((n + 1))'>LAP</goto>\""
    );
    let fork = "<fork next=\"CALL\" n=\"1\">WORKER</fork><fork next=\"CALL\" n=\"2\">WORKER</fork>";
    Project::of(&[
        ("wf/START.md", "begin"),
        ("wf/WORKER.sh", &script("<goto>REPORT</goto>")),
        ("wf/REPORT.md", "report {{n}}"),
        ("wf/CALL.sh", &script("<call return=\"BACK\">SUB</call>")),
        ("wf/SUB.md", "sub"),
        ("wf/BACK.sh", &script("<function return=\"LAP\">COUNT</function>")),
        ("wf/COUNT.sh", &script("<result>1</result>")),
        ("wf/LAP.sh", &again),
        ("wf/END.md", "end"),
        (
            "replies.yaml",
            &format!(
                "START: {{ text: '{fork}', delay: 10ms, cost: 0.01 }}
SUB: {{ text: '<result>deep</result>', delay: 10ms, cost: 0.01 }}
END: {{ text: '<result>the end</result>', delay: 10ms, cost: 0.01 }}
REPORT: {{ text: '<result>worked</result>', delay: 20ms, cost: 0.01 }}
"
            ),
        ),
    ])
}

const RUN: &str = "run wf --replies replies.yaml --run-id r --json --or-resume";

/// What a run comes to: its results, and every settled turn.
#[derive(Debug, PartialEq)]
struct Outcome {
    results: Value,
    settled: Vec<String>,
}

#[track_caller]
fn outcome(project: &Project, results: Value) -> Outcome {
    let turns = project.events("r", "turn_settled");
    let mut settled: Vec<String> =
        turns.iter().map(|event| event["turn"].as_str().unwrap().to_owned()).collect();
    settled.sort();
    Outcome { results, settled }
}

/// Finishes the run, and checks everything that must hold however often it was killed.
#[track_caller]
fn finishes(project: &Project, expected: &Outcome) {
    let begun = !project.records("r").is_empty();
    let output = project.raymond(if begun { "resume r --json" } else { RUN });
    assert_eq!(output.code(), 0, "{output:?}");
    assert_eq!(&outcome(project, output.json()["results"].clone()), expected);
    assert_eq!(project.processes("r"), [0; 0], "nothing is left running");
    let mut starts: BTreeMap<String, usize> = BTreeMap::new();
    for event in project.events("r", "turn_started") {
        *starts.entry(event["turn"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let mut traces: BTreeMap<String, usize> = BTreeMap::new();
    for visit in project.read("log").lines() {
        *traces.entry(format!("{visit}.1")).or_default() += 1;
    }
    for (turn, traces) in &traces {
        assert!(*traces <= starts[turn], "{turn} ran {traces} times, started {}", starts[turn]);
    }
    let scripts = expected.settled.iter().filter(|turn| traces.contains_key(*turn)).count();
    assert_eq!(scripts, traces.len(), "every trace is that of a turn that settled");
}

fn undisturbed(laps: usize) -> (Outcome, Duration) {
    let project = project(laps);
    let begun = Instant::now();
    let output = project.raymond(RUN);
    assert_eq!(output.code(), 0, "{output:?}");
    let took = begun.elapsed();
    let expected = outcome(&project, output.json()["results"].clone());
    let mut unique = expected.settled.clone();
    unique.dedup();
    assert_eq!(unique, expected.settled, "every turn settles once");
    (expected, took)
}

/// A document of steps: every program that succeeds leaves a line, and so does every attempt.
fn steps() -> Project {
    let shell = |name: &str| format!("echo {name} >> begun; sleep 0.01; echo {name} >> ended");
    let exec = |id: &str, name: &str| json!({ "id": id, "kind": "exec", "shell": shell(name) });
    let ask = |id: &str| json!({ "id": id, "kind": "agent", "prompt": id, "schema": { "type": "integer" } });
    let item = "{{locals.item}}";
    let document = json!({
        "name": "killed", "vars": { "list": ["a", "b", "c", "d"] },
        "steps": [
            exec("first", "first"),
            ask("plan"),
            {
                "id": "all", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item",
                "parallel": true, "maxParallel": 2, "onError": "collect",
                "body": [exec("try", &format!("try-{item}")), ask("look"), exec("note", &format!("note-{item}"))],
            },
            {
                "id": "again", "kind": "while", "maxIters": 3, "onMaxIters": "continue",
                "until": { "op": "gt", "path": "$.results.judge.json", "value": 7 },
                "body": [exec("fix", "fix"), ask("judge")],
            },
            exec("last", "last"),
        ],
    });
    let replies = "plan: { text: '1', delay: 10ms, cost: 0.01 }\n\
        look: { text: '2', delay: 10ms, cost: 0.01 }\n\
        judge: { text: '5', delay: 10ms, cost: 0.01 }\n";
    Project::of(&[("flow.json", &document.to_string()), ("replies.yaml", replies)])
}

const STEPS: &str = "run flow.json --replies replies.yaml --run-id r --json --or-resume";

/// What a document comes to: what its steps left, and the attempts that were asked for.
fn left(project: &Project) -> BTreeMap<String, Value> {
    let mut left = BTreeMap::new();
    for event in project.events("r", "stepped") {
        let fact = &event["fact"];
        for (word, value) in [("done", "stored"), ("asks", "attempt")] {
            if let Some(key) = fact[word]["key"].as_str() {
                let earlier = left.insert(format!("{word} {key}"), fact[word][value].clone());
                assert!(word == "asks" || earlier.is_none(), "{key} is done twice");
            }
        }
    }
    left
}

#[test]
#[ignore = "heavy: run by cargo xtask test kill"]
fn steps_that_are_done_are_not_done_again_after_a_kill() {
    let seed = seed();
    let calm = steps();
    let begun = Instant::now();
    assert_eq!(calm.raymond(STEPS).code(), 0);
    let (took, expected) = (begun.elapsed(), left(&calm));
    let lines = |project: &Project, name: &str| -> Vec<String> {
        let mut lines: Vec<String> = project.read(name).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let mut hit = 0;
    for number in 0..RUNS {
        let mut dice = Dice::new(seed.wrapping_add(number));
        let project = steps();
        let mut kills = 0;
        while kills < 3 {
            let mut running = project.start(STEPS);
            let micros = u64::try_from(took.as_micros()).unwrap();
            sleep(Duration::from_micros(dice.below(micros)));
            if !running.is_alive() {
                running.wait();
                break;
            }
            running.signal(Signal::KILL);
            running.wait();
            kills += 1;
        }
        hit += kills;
        let output = project.raymond(STEPS);
        assert_eq!(output.code(), 0, "{output:?}");
        assert_eq!(left(&project), expected, "run {number}");
        assert_eq!(project.processes("r"), [0; 0], "nothing is left running");
        // A program that was cut off may have come to its end: once for each kill, never more.
        let (ended, calm_ended) = (lines(&project, "ended"), lines(&calm, "ended"));
        let repeats = ended.len() - calm_ended.len();
        assert!(repeats <= 2 * kills, "{repeats} programs ended again after {kills} kills");
        for line in calm_ended {
            assert!(ended.contains(&line), "{line} is lost");
        }
    }
    println!("{hit} kills");
    assert!(hit > 25, "most moments lie inside a run");
}

#[expect(clippy::print_stdout, reason = "a failing seed must be known")]
fn seed() -> u64 {
    let given = std::env::var("KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("KILL_SEED={seed}");
    seed
}

#[test]
#[ignore = "heavy: run by cargo xtask test kill"]
fn fifty_runs_survive_a_kill_at_a_random_moment() {
    let seed = seed();
    let (expected, took) = undisturbed(5);
    let killed = |number: u64| {
        let mut dice = Dice::new(seed.wrapping_add(number));
        let project = project(5);
        let mut running = project.start(RUN);
        // The others slow it down: moments of the whole run, and some after it.
        let micros = 2 * u64::try_from(took.as_micros()).unwrap();
        sleep(Duration::from_micros(dice.below(micros)));
        let alive = running.is_alive();
        if alive {
            running.signal(Signal::KILL);
        }
        running.wait();
        finishes(&project, &expected);
        alive
    };
    let hit: usize = std::thread::scope(|scope| {
        let share = |first| (first..RUNS).step_by(usize::try_from(THREADS).unwrap());
        let threads: Vec<_> = (0..THREADS)
            .map(|first| scope.spawn(move || share(first).filter(|n| killed(*n)).count()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{hit} of {RUNS} runs were killed before their end");
    assert!(hit > 25, "most moments lie inside a run");
}

#[test]
#[ignore = "heavy: run by cargo xtask test kill"]
fn one_run_survives_ten_kills_in_a_row() {
    let mut dice = Dice::new(seed());
    let laps = 150;
    let (expected, _) = undisturbed(laps);
    let project = project(laps);
    for kill in 1..=KILLS_IN_A_ROW {
        let before = project.events("r", "turn_settled").len();
        let mut running = project.start(RUN);
        until("there is progress", || project.events("r", "turn_settled").len() > before);
        sleep(Duration::from_micros(dice.below(60_000)));
        assert!(running.is_alive(), "the run ended before kill {kill}");
        running.signal(Signal::KILL);
        running.wait();
    }
    finishes(&project, &expected);
}
