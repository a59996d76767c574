//! Random faults and stop requests during a drive.

use raymond_core::run::stop::StopMode;

use super::drive::FaultInjector;
use super::fault_plan;
use super::host::Host;
use crate::dice::Dice;
use crate::violation::Violation;

pub(crate) struct RandomFaults {
    pub(crate) dice: Dice,
    /// The chance of a fault before each step, in percent.
    pub(crate) chance: u64,
    /// The number of stop requests so far.
    pub(crate) stops: u32,
}

impl FaultInjector for RandomFaults {
    fn inject(&mut self, host: &mut Host) -> Result<bool, Violation> {
        if self.dice.percent(self.chance) {
            let (call, fault) =
                (self.dice.below(8), *self.dice.pick(&fault_plan::MachineFault::ALL));
            host.faults.arm(call, fault);
        }
        // Bounded, so that a run with many stops still ends within the limit of steps.
        if self.stops < 3 && self.dice.percent(self.chance / 3) {
            self.stops += 1;
            // No cancellation: the run must reach its end, because its history is compared.
            let mode = *self.dice.pick(&[StopMode::AfterTurn, StopMode::Now]);
            host.stop(mode, &format!("stop {}", self.stops))?;
            return Ok(true);
        }
        Ok(false)
    }

    fn before_boot(&mut self, host: &mut Host) {
        // More often than before a step, because a run has few boots.
        if self.dice.percent(self.chance * 4) {
            host.faults.arm(self.dice.below(20), fault_plan::MachineFault::PowerCut);
        }
    }

    fn after_boot(&mut self, _: &mut Host) {}
}
