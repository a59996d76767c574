//! The crash sweep: small workflows, and trouble at every single port call of each.
//!
//! Every workflow runs undisturbed first. Then it runs again with every trouble at every call where
//! that can happen; and for every such crash again, with another one at every call of the recovery
//! that follows. Whatever happens, the agents' history must be that of the undisturbed run.

mod case;
mod corpus;
mod replies;

use std::fmt;

use crate::compare::same;
use crate::sim::history::History;
use crate::sim::host::{Host, Seeds};
use crate::sim::passage::{Guide, drive};
use crate::sim::plan::{Point, Trouble};
use crate::violation::Violation;

pub use case::{Case, Strictness};
pub use corpus::corpus;

/// What a sweep of one workflow did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Port calls of the undisturbed run.
    pub calls: usize,
    /// Runs with one trouble.
    pub crashes: usize,
    /// Runs with another trouble in the recovery.
    pub recoveries: usize,
}

/// A run that went wrong: what repeats it, and why.
#[derive(Debug)]
pub struct Failed {
    /// Which one.
    pub spot: Spot,
    /// What must never happen.
    pub violation: Violation,
}

/// One run of a sweep.
#[derive(Debug, Clone, Copy)]
pub struct Spot {
    /// The workflow.
    pub case: &'static str,
    /// The first trouble: at which call, and what.
    pub first: Option<(usize, Trouble)>,
    /// The call of the recovery that goes wrong, too.
    pub second: Option<usize>,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.case)?;
        if let Some((call, trouble)) = self.first {
            write!(f, " {call} {}", trouble.name())?;
        }
        self.second.iter().try_for_each(|call| write!(f, " {call}"))
    }
}

/// Sweeps a workflow. Of the crashes, one in `stride` is crashed again while it recovers.
pub fn sweep(case: &Case, stride: usize) -> Result<Tally, Box<Failed>> {
    let calm = Spot { case: case.name, first: None, second: None };
    let undisturbed = run(case, calm).map_err(|violation| Failed { spot: calm, violation })?;
    let expected = &undisturbed.history;
    let mut tally = Tally { calls: undisturbed.points.len(), ..Tally::default() };
    for (call, point) in undisturbed.points.iter().enumerate() {
        let troubles = Trouble::ALL.into_iter().filter(|trouble| trouble.applies_to(*point));
        for trouble in troubles {
            let spot = Spot { first: Some((call, trouble)), ..calm };
            tally.crashes += 1;
            let recovery = check(case, spot, expected)?;
            if !tally.crashes.is_multiple_of(stride) {
                continue;
            }
            for second in 0..recovery.len() {
                tally.recoveries += 1;
                check(case, Spot { second: Some(second), ..spot }, expected)?;
            }
        }
    }
    Ok(tally)
}

/// Runs a workflow undisturbed; the machine that it ran on.
pub fn undisturbed(case: &Case) -> Result<Host, Violation> {
    let (mut host, mut sweeper) = begin(case, Spot { case: case.name, first: None, second: None })?;
    drive(&mut host, &mut sweeper)?;
    Ok(host)
}

/// Runs with trouble, and compares; the calls of the recovery.
fn check(case: &Case, spot: Spot, expected: &History) -> Result<Vec<Point>, Box<Failed>> {
    let ran = run(case, spot).and_then(|ran| {
        same(&case.view(expected), &case.view(&ran.history))?;
        Ok(ran.recovery)
    });
    ran.map_err(|violation| Box::new(Failed { spot, violation }))
}

/// Runs one spot of a sweep, and tells what happens in it.
pub fn tell(case: &Case, spot: Spot) -> (Vec<String>, Result<(), Violation>) {
    let calm = match run(case, Spot { first: None, second: None, ..spot }) {
        Ok(calm) => calm,
        Err(violation) => return (Vec::new(), Err(violation)),
    };
    let (mut host, mut sweeper) = match begin(case, spot) {
        Ok(ready) => ready,
        Err(violation) => return (Vec::new(), Err(violation)),
    };
    host.reality.borrow_mut().story.listen();
    let driven = drive(&mut host, &mut sweeper);
    let lines = host.reality.borrow_mut().story.lines();
    let compared = driven
        .and_then(|()| same(&case.view(&calm.history), &case.view(&host.history())).map(drop));
    (lines, compared)
}

struct Ran {
    history: History,
    points: Vec<Point>,
    recovery: Vec<Point>,
}

fn run(case: &Case, spot: Spot) -> Result<Ran, Violation> {
    let (mut host, mut sweeper) = begin(case, spot)?;
    drive(&mut host, &mut sweeper)?;
    if spot.first.is_none() {
        case.check_told(host.reality.borrow().turns_heard())?;
    }
    let (history, points) = (host.history(), host.plan.points(0));
    Ok(Ran { history, points, recovery: sweeper.recovery })
}

fn begin(case: &Case, spot: Spot) -> Result<(Host, Sweeper), Violation> {
    let (call, trouble) = spot.first.unwrap_or((0, Trouble::Kill));
    let mix = (call * 31 + trouble as usize * 7 + spot.second.unwrap_or(0)) as u64;
    let mut host = case.host(Seeds { world: 7, disk: mix })?;
    if let Some((call, trouble)) = spot.first {
        host.plan.arm(call as u64, trouble);
    }
    host.patience = case.patience;
    let sweeper =
        Sweeper { stop: case.stop, second: spot.second, begun: None, recovery: Vec::new() };
    Ok((host, sweeper))
}

/// Stops the run where its case says so, and crashes its first recovery.
struct Sweeper {
    stop: Option<usize>,
    second: Option<usize>,
    /// The call at which the first recovery begins.
    begun: Option<usize>,
    recovery: Vec<Point>,
}

impl Guide for Sweeper {
    fn interferes(&mut self, host: &mut Host) -> Result<bool, Violation> {
        let heard = host.reality.borrow().turns_heard();
        let known = host.reality.borrow().last.keys.contains("stop");
        if known || self.stop.is_none_or(|after| heard < after) {
            return Ok(false);
        }
        host.stop(raymond_core::run::stop::StopMode::Now, "stop")?;
        Ok(true)
    }

    fn before_boot(&mut self, host: &mut Host) {
        if host.downs != 1 || self.begun.is_some() {
            return;
        }
        self.begun = Some(host.plan.calls());
        if let Some(second) = self.second {
            // Power cuts and kills in turn: both can happen anywhere.
            let trouble = if second % 2 == 0 { Trouble::PowerCut } else { Trouble::Kill };
            host.plan.arm(second as u64, trouble);
        }
    }

    fn after_boot(&mut self, host: &mut Host) {
        if let Some(begun) = self.begun.filter(|_| self.recovery.is_empty()) {
            self.recovery = host.plan.points(begun);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: P1, P4
    #[test]
    fn trouble_at_any_call_changes_no_history() {
        for name in
            ["call", "many-forks", "large-payload", "failing-sibling", "stop", "held", "steps"]
        {
            let case = corpus().iter().find(|case| case.name == name).unwrap();
            match sweep(case, 97) {
                Ok(tally) => assert!(tally.crashes > tally.calls && tally.recoveries > 0, "{name}"),
                Err(failed) => panic!("simulate sweep {}: {}", failed.spot, failed.violation),
            }
        }
    }

    #[test]
    fn every_workflow_of_the_corpus_says_all_it_has_to_say() {
        for case in corpus() {
            let ran = run(case, Spot { case: case.name, first: None, second: None });
            assert!(ran.is_ok_and(|ran| !ran.history.is_empty()), "{}", case.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<&str> = corpus().iter().map(|c| c.name).collect();
        assert_eq!(names.len(), corpus().len());
    }
}
