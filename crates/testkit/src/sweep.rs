//! The crash sweep: small workflows, with a fault at every single call of the disk and every
//! effect.
//!
//! Every workflow runs without faults first. Then it runs once for every fault at every call where
//! the fault is possible. For each of these crashes it runs again, with a second fault at every
//! call of the recovery. The agents' history must always be the history of the run without faults.

mod case;
mod corpus;
mod replies;

use std::fmt;

use crate::compare::compare_histories;
use crate::sim::drive::{FaultInjector, drive};
use crate::sim::fault_plan::{MachineFault, Point};
use crate::sim::history::History;
use crate::sim::host::{Host, Seeds};
use crate::violation::Violation;

pub use case::{Case, Strictness};
pub use corpus::corpus;

/// The numbers of a sweep of one workflow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Calls of the run without faults.
    pub calls: usize,
    /// Runs with one fault.
    pub crashes: usize,
    /// Runs with a second fault in the recovery.
    pub recoveries: usize,
}

/// A failed run of a sweep.
#[derive(Debug)]
pub struct SweepFailure {
    pub spec: RunSpec,
    pub violation: Violation,
}

/// One run of a sweep; prints as the arguments that reproduce it.
#[derive(Debug, Clone, Copy)]
pub struct RunSpec {
    pub case: &'static str,
    /// The first fault, and the number of its call.
    pub first: Option<(usize, MachineFault)>,
    /// The call of the recovery that also fails.
    pub second: Option<usize>,
}

impl fmt::Display for RunSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.case)?;
        if let Some((call, fault)) = self.first {
            write!(f, " {call} {}", fault.name())?;
        }
        self.second.iter().try_for_each(|call| write!(f, " {call}"))
    }
}

/// Sweeps a workflow. One crash in `stride` is repeated with crashes of its recovery.
pub fn sweep(case: &Case, stride: usize) -> Result<Counts, Box<SweepFailure>> {
    let plain = RunSpec { case: case.name, first: None, second: None };
    let undisturbed =
        run(case, plain).map_err(|violation| SweepFailure { spec: plain, violation })?;
    let expected = &undisturbed.history;
    let mut counts = Counts { calls: undisturbed.points.len(), ..Counts::default() };
    // The calls of the run without faults: up to the fault both runs are the same, so these numbers
    // hold for every run of the sweep.
    for (call, point) in undisturbed.points.iter().enumerate() {
        let faults = MachineFault::ALL.into_iter().filter(|fault| fault.applies_to(*point));
        for fault in faults {
            let spec = RunSpec { first: Some((call, fault)), ..plain };
            counts.crashes += 1;
            let recovery = check(case, spec, expected)?;
            // Each crash has many calls in its recovery, so a short sweep repeats only a sample of
            // the crashes.
            if !counts.crashes.is_multiple_of(stride) {
                continue;
            }
            for second in 0..recovery.len() {
                counts.recoveries += 1;
                check(case, RunSpec { second: Some(second), ..spec }, expected)?;
            }
        }
    }
    Ok(counts)
}

/// Runs a workflow without faults, and returns the machine.
pub fn undisturbed(case: &Case) -> Result<Host, Violation> {
    let (mut host, mut faults) =
        begin(case, RunSpec { case: case.name, first: None, second: None })?;
    drive(&mut host, &mut faults)?;
    Ok(host)
}

/// Runs with faults, compares the history, and returns the calls of the recovery.
fn check(case: &Case, spec: RunSpec, expected: &History) -> Result<Vec<Point>, Box<SweepFailure>> {
    let ran = run(case, spec).and_then(|ran| {
        compare_histories(&case.comparable(expected), &case.comparable(&ran.history))?;
        Ok(ran.recovery)
    });
    ran.map_err(|violation| Box::new(SweepFailure { spec, violation }))
}

/// Runs one run of a sweep, and also returns a trace of it.
pub fn run_with_trace(case: &Case, spec: RunSpec) -> (Vec<String>, Result<(), Violation>) {
    let plain = match run(case, RunSpec { first: None, second: None, ..spec }) {
        Ok(plain) => plain,
        Err(violation) => return (Vec::new(), Err(violation)),
    };
    let (mut host, mut faults) = match begin(case, spec) {
        Ok(ready) => ready,
        Err(violation) => return (Vec::new(), Err(violation)),
    };
    host.world.borrow_mut().trace.enable();
    let driven = drive(&mut host, &mut faults);
    let lines = host.world.borrow_mut().trace.take_lines();
    let compared = driven.and_then(|()| {
        compare_histories(&case.comparable(&plain.history), &case.comparable(&host.history()))
            .map(drop)
    });
    (lines, compared)
}

struct RunResult {
    history: History,
    points: Vec<Point>,
    recovery: Vec<Point>,
}

fn run(case: &Case, spec: RunSpec) -> Result<RunResult, Violation> {
    let (mut host, mut faults) = begin(case, spec)?;
    drive(&mut host, &mut faults)?;
    if spec.first.is_none() {
        // Only without faults, because a crash can change the number of turns: an interrupted
        // attempt may use up the budget of its visit.
        case.check_all_replies_used(host.world.borrow().finished_turns())?;
    }
    let (history, points) = (host.history(), host.faults.points(0));
    Ok(RunResult { history, points, recovery: faults.recovery })
}

fn begin(case: &Case, spec: RunSpec) -> Result<(Host, PlannedFaults), Violation> {
    let (call, fault) = spec.first.unwrap_or((0, MachineFault::Kill));
    // Each run has its own disk seed, so that power failures lose different data; the seed of the
    // world stays the same, because the histories are compared.
    let mix = (call * 31 + fault as usize * 7 + spec.second.unwrap_or(0)) as u64;
    let mut host = case.host(Seeds { world: 7, disk: mix })?;
    if let Some((call, fault)) = spec.first {
        host.faults.arm(call as u64, fault);
    }
    host.help_limits = case.help_limits;
    let faults = PlannedFaults {
        stop: case.stop,
        second: spec.second,
        recovery_start: None,
        recovery: Vec::new(),
    };
    Ok((host, faults))
}

/// Stops the run where its case requires it, and crashes its first recovery.
struct PlannedFaults {
    stop: Option<usize>,
    second: Option<usize>,
    /// The number of the recovery's first call.
    recovery_start: Option<usize>,
    recovery: Vec<Point>,
}

impl FaultInjector for PlannedFaults {
    fn inject(&mut self, host: &mut Host) -> Result<bool, Violation> {
        let finished = host.world.borrow().finished_turns();
        let known = host.world.borrow().last.keys.contains("stop");
        // By the key in the journal, not by a flag: a crash decides whether the request was
        // recorded, and a request that was not recorded must be repeated.
        if known || self.stop.is_none_or(|after| finished < after) {
            return Ok(false);
        }
        host.stop(raymond_core::run::stop::StopMode::Now, "stop")?;
        Ok(true)
    }

    fn before_boot(&mut self, host: &mut Host) {
        // Only the first recovery after the first fault; boots after an ordinary end are not
        // recoveries.
        if host.downs != 1 || self.recovery_start.is_some() {
            return;
        }
        self.recovery_start = Some(host.faults.calls());
        if let Some(second) = self.second {
            // Power failures and kills alternate: both are possible at every call.
            let fault = if second % 2 == 0 { MachineFault::PowerCut } else { MachineFault::Kill };
            host.faults.arm(second as u64, fault);
        }
    }

    fn after_boot(&mut self, host: &mut Host) {
        if let Some(recovery_start) = self.recovery_start.filter(|_| self.recovery.is_empty()) {
            self.recovery = host.faults.points(recovery_start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: P1, P4
    #[test]
    fn fault_at_any_call_changes_no_history() {
        for name in
            ["call", "many-forks", "large-payload", "failing-sibling", "stop", "held", "steps"]
        {
            let case = corpus().find(|case| case.name == name).unwrap();
            match sweep(case, 97) {
                Ok(counts) => {
                    assert!(counts.crashes > counts.calls && counts.recoveries > 0, "{name}");
                }
                Err(failed) => panic!("simulate sweep {}: {}", failed.spec, failed.violation),
            }
        }
    }

    #[test]
    fn every_workflow_uses_all_its_replies() {
        for case in corpus() {
            let ran = run(case, RunSpec { case: case.name, first: None, second: None });
            assert!(ran.is_ok_and(|ran| !ran.history.is_empty()), "{}", case.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = corpus().map(|c| c.name).collect();
        assert_eq!(names.len(), corpus().count());
    }
}
