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
use serde_json::Value;

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
