//! What many agents cost: `cargo xtask measure` prints it; and whether anything is lost under [`load`].
//!
//! The CPU time is that of the process itself, without the scripts that it runs: fields 14 and 15 of
//! `/proc/PID/stat`, read when the run is over but its process is not yet reaped.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../cli/harness.rs"]
mod harness;
mod load;

use std::fs;

use harness::{Project, Running, until};
use rustix::process::Signal;

/// What a process took, as far as its table entry still tells.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// User and system time, in ticks of a hundredth of a second.
    ticks: u64,
    /// The most memory it had, in KiB: with the parts of the program itself that it has used so far,
    /// which the system keeps once for all processes, and drops when it needs the room.
    peak: u64,
    /// What of it was its own: heap and stacks.
    own: u64,
}

/// What a process has taken up to now; nothing once it is reaped.
fn taken(pid: u32) -> (Taken, bool) {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let (stat, status) = (read("stat"), read("status"));
    // The name of the program, in parentheses, may hold anything; after it comes field 3.
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split(' ').collect();
    let number = |field: usize| fields.get(field - 3).and_then(|n| n.parse::<u64>().ok());
    let kibibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    };
    let ticks = number(14).unwrap_or(0) + number(15).unwrap_or(0);
    (Taken { ticks, peak: kibibytes("VmHWM:"), own: kibibytes("RssAnon:") }, fields[0] == "Z")
}

/// Looks at a process until it is over.
fn watch(running: &Running) -> Taken {
    let mut all = Taken::default();
    until("it ends", || {
        let (now, over) = taken(running.pid());
        let (peak, own) = (all.peak.max(now.peak), all.own.max(now.own));
        all = Taken { ticks: now.ticks, peak, own };
        over
    });
    all
}

#[test]
#[ignore = "heavy: run by cargo xtask measure"]
fn a_thousand_forked_workers_complete() {
    let project = Project::of(&[
        (
            "wf/START.sh",
            "for i in $(seq 1000); do echo \"<fork next='END' n='$i'>WORKER</fork>\"; done",
        ),
        ("wf/WORKER.sh", "echo \"<result>$RAYMOND_ATTR_N</result>\""),
        ("wf/END.sh", "echo '<result>done</result>'"),
    ]);
    let running = project.start("run wf --max-parallel 4 --json --quiet --run-id r");
    let taken = watch(&running);
    let output = running.wait();
    let results = &output.json()["results"];
    assert_eq!((output.code(), results.as_object().unwrap().len()), (0, 1001));
    for n in 1..=1000 {
        assert_eq!(results[format!("main_worker{n}")], n.to_string());
    }
    println!("1,000 workers: {} MiB at most, {} ms of CPU", taken.peak / 1024, taken.ticks * 10);
    assert!(taken.peak < 25 * 1024, "{} KiB", taken.peak);
}

#[test]
#[ignore = "heavy: run by cargo xtask measure"]
fn a_plain_run_takes_little_memory() {
    let project = Project::of(&[
        ("wf/START.md", "Think."),
        ("wf/CHECK.sh", "echo '<result>done</result>'"),
        ("replies.yaml", "START: { text: \"<goto>CHECK</goto>\", delay: 200ms }\n"),
    ]);
    let running = project.start("run wf --replies replies.yaml");
    let taken = watch(&running);
    running.wait().prints("done\n");
    println!("a plain run: {} KiB at most, {} KiB of it its own", taken.peak, taken.own);
    assert!(0 < taken.own && taken.own < 3 * 1024, "{} KiB", taken.own);
    assert!(taken.peak < 16 * 1024, "{} KiB", taken.peak);
}

/// The gotos that are measured, and those before them that are not.
const GOTOS: u32 = 1000;
const FIRST: u32 = 50;

/// The microseconds that a goto of one agent takes while `others` wait for an answer.
fn cost_per_transition(others: u32) -> f64 {
    let step = format!(
        "n=${{RAYMOND_INPUT:-1}}
test $n -eq {FIRST} && touch first
test $n -eq {last} && touch last && sleep 300
echo \"<goto input='$((n + 1))'>STEP</goto>\"",
        last = FIRST + GOTOS
    );
    let fork = format!("for i in $(seq {others}); do echo '<fork next=\"STEP\">WAIT</fork>'; done");
    let project = Project::of(&[
        ("wf/START.sh", &format!("{fork}; echo '<goto>STEP</goto>'")),
        ("wf/STEP.sh", &step),
        ("wf/WAIT.md", "wait"),
        ("replies.yaml", "WAIT: { hang: true }\n"),
    ]);
    let running = project.start(&format!(
        "run wf --replies replies.yaml --quiet --budget none --max-parallel {}",
        others + 1
    ));
    until("the others wait", || project.path("first").exists());
    let (before, _) = taken(running.pid());
    until("the last goto is made", || project.path("last").exists());
    let (after, _) = taken(running.pid());
    running.signal(Signal::INT);
    assert_eq!(running.wait().code(), 130);
    let ticks = u32::try_from(after.ticks - before.ticks).unwrap();
    f64::from(ticks) * 10_000.0 / f64::from(GOTOS)
}

#[test]
#[ignore = "heavy: run by cargo xtask measure"]
fn a_transition_costs_the_same_however_many_agents_live() {
    let mut first = None;
    println!("live agents   CPU per transition   ratio");
    for others in [0, 100, 1000] {
        // The least of three: whatever disturbs a measurement makes it larger.
        let cost = (0..3).map(|_| cost_per_transition(others)).fold(f64::INFINITY, f64::min);
        let ratio = cost / *first.get_or_insert(cost);
        println!("{others:>11}   {cost:>15.0} µs   {ratio:>5.2}");
        assert!(ratio < 2.0, "it grows with the number of agents");
    }
}
