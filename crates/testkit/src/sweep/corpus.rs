//! The workflows of the sweep: every tag, and every combination that has its own rule.
//!
//! Each case is as small as its rule allows, because the sweep runs it once for every fault at
//! every call, and again for every call of a recovery. `case` explains the fields, `replies` the
//! format of the lines. Rare combinations of several rules are left to the simulator.

mod limits;
mod programs;
mod transitions;

use super::case::Case;

pub fn corpus() -> impl Iterator<Item = &'static Case> {
    [transitions::TRANSITIONS, limits::LIMITS, programs::PROGRAMS].into_iter().flatten()
}
