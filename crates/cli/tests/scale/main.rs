//! Checks that nothing is lost under [`load`], and measures memory and CPU time.
//!
//! The CPU time excludes the scripts of the run: it is read from the fields 14 and 15 of
//! `/proc/PID/stat` when the run is over, but its process is not yet reaped.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../cli/harness.rs"]
mod harness;
mod load;

use std::fs;

use harness::{Project, Running, until};

/// The resources that a process used, by its entry in the process table.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    /// User and system time, in ticks of a hundredth of a second.
    ticks: u64,
    /// The peak memory in KiB. It includes the used pages of the program file, which the system
    /// shares between all processes and can drop at any time.
    peak: u64,
    /// The private part of it: heap and stacks.
    own: u64,
}

/// Returns the resources that a process used so far; zeros once it is reaped.
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

/// Measures a process until its end.
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
fn plain_run_takes_little_memory() {
    let project = Project::of(&[
        ("wf/START.md", "Think."),
        ("wf/CHECK.sh", "echo '<result>done</result>'"),
        ("replies.yaml", "START: { text: \"<goto>CHECK</goto>\", delay: 200ms }\n"),
    ]);
    let running = project.start("run wf --replies replies.yaml");
    let taken = watch(&running);
    running.wait().prints("done\n");
    assert!(0 < taken.own && taken.own < 3 * 1024, "{} KiB", taken.own);
}
