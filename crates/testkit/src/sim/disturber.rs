//! Faults and requests to stop, now and then.

use raymond_core::run::stop::StopMode;

use super::host::Host;
use super::passage::Guide;
use super::plan;
use crate::dice::Dice;
use crate::violation::Violation;

/// Makes things go wrong now and then.
pub(crate) struct Disturber {
    pub(crate) dice: Dice,
    /// How often, in percent.
    pub(crate) chance: u64,
    /// How often the run was asked to stop.
    pub(crate) stops: u32,
}

impl Guide for Disturber {
    fn interferes(&mut self, host: &mut Host) -> Result<bool, Violation> {
        if self.dice.percent(self.chance) {
            let (call, trouble) = (self.dice.below(8), *self.dice.pick(&plan::Trouble::ALL));
            host.plan.arm(call, trouble);
        }
        if self.stops < 3 && self.dice.percent(self.chance / 3) {
            self.stops += 1;
            let mode = *self.dice.pick(&[StopMode::AfterTurn, StopMode::Now]);
            host.stop(mode, &format!("stop {}", self.stops))?;
            return Ok(true);
        }
        Ok(false)
    }

    fn before_boot(&mut self, host: &mut Host) {
        if self.dice.percent(self.chance * 4) {
            host.plan.arm(self.dice.below(20), plan::Trouble::PowerCut);
        }
    }

    fn after_boot(&mut self, _: &mut Host) {}
}
