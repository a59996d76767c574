//! Drives a run to its end, and acts as the user when the run needs help.

use raymond_core::budget::Micros;
use raymond_core::run::{Ending, Input, Phase};
use raymond_core::time::Span;

use super::host::{Host, Ticked};
use crate::violation::Violation;

/// More steps than any of these runs needs; a run that takes more does not end.
const MAX_STEPS: u32 = 4_000;

/// A source of faults and stop requests during a drive.
pub trait FaultInjector {
    /// Called before each step. Returns whether it acted itself, so that the step is skipped.
    fn inject(&mut self, host: &mut Host) -> Result<bool, Violation>;

    fn before_boot(&mut self, host: &mut Host);

    /// Called after a boot, even if the boot failed.
    fn after_boot(&mut self, host: &mut Host);
}

pub fn drive(host: &mut Host, injector: &mut dyn FaultInjector) -> Result<(), Violation> {
    for _ in 0..MAX_STEPS {
        if !host.is_up() {
            if host.is_over() {
                return host.sample_replay();
            }
            help(host);
            if let Phase::Ended(_) = host.phase() {
                host.answer()?;
            }
            injector.before_boot(host);
            host.boot()?;
            injector.after_boot(host);
        } else if !injector.inject(host)? {
            step(host)?;
        }
    }
    Err(Violation(format!("the run does not end: {:?}", host.phase())))
}

/// Does what a user does before a resume.
fn help(host: &mut Host) {
    match host.phase() {
        Phase::Ended(Ending::OverBudget) => {
            let spent = host.world.borrow().last.spent;
            // In millionths of a dollar: far more than one turn costs, so that the run ends after
            // few top-ups.
            host.settings.budget = Some(spent.plus(Micros(1_000_000)));
        }
        // A run that failed with too many agents would fail again in the same way.
        Phase::Ended(Ending::Failed) => host.settings.max_agents = 1_000,
        // The limits of these replies last 20 minutes, and their waits an hour at most.
        Phase::Ended(Ending::NoQuota | Ending::Sleeping) => host.wait(Span::minutes(30)),
        Phase::Ended(_) | Phase::Unborn | Phase::Open | Phase::Stopping(_) => {}
    }
}

fn step(host: &mut Host) -> Result<(), Violation> {
    host.answer()?;
    if !host.is_up() {
        return Ok(());
    }
    let input = match host.tick() {
        Ticked::Nothing => {
            return Err(Violation(format!("the run is stuck: {:?}", host.phase())));
        }
        Ticked::Down => return Ok(()),
        Ticked::Due => Input::Due,
        Ticked::Settled((turn, attempt), outcome) => {
            Input::Settled { turn, attempt, outcome: *outcome }
        }
    };
    host.handle(vec![input]).map(drop)
}
