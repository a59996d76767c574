//! The theme of a random run. Without themes, races for the last money and similar situations would
//! be too rare.

use raymond_core::budget::Micros;
use raymond_core::ids::BackendName;
use raymond_core::run::Settings;
use raymond_core::run::settings::{InterruptedScripts, OnLostSession};

use crate::dice::Dice;

use super::super::host::Leftovers;
use super::super::outages::Outages;
use super::super::random_agents::{Behavior, RandomAgents};
use super::super::random_workflow::{BACKENDS, RandomWorkflow};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    Anything,
    /// Many agents, and hardly any money.
    LastCents,
    /// Usage limits and missing logins while many turns wait.
    Limits,
    /// Owners that die while their clients continue.
    Orphans,
    /// Owners that die all the time, without clients that continue.
    Crashes,
}

impl Theme {
    pub(super) fn pick(dice: &mut Dice) -> Self {
        // Half of the runs have no theme, so that they can meet situations that no theme was made
        // for.
        match dice.below(40) {
            0..=20 => Self::Anything,
            21..=26 => Self::LastCents,
            27..=32 => Self::Limits,
            33..=38 => Self::Orphans,
            _ => Self::Crashes,
        }
    }

    /// Draws the settings of the run.
    pub(super) fn settings(self, dice: &mut Dice) -> Settings {
        let cap = |dice: &mut Dice| match self {
            // From less than the least share to about six of them, at costs of up to 60,000 for
            // each turn.
            Self::LastCents => Some(Micros(40_000 + dice.below(260_000))),
            Self::Anything | Self::Limits | Self::Orphans | Self::Crashes => {
                *dice.pick(&[None, Some(Micros(10_000_000)), Some(Micros(400_000))])
            }
        };
        // Races for money and limits need several agents at the same time.
        let is_crowded = self == Self::LastCents || self == Self::Limits;
        Settings {
            budget: cap(dice),
            strict_budget: dice.percent(20),
            max_parallel: u32::from(is_crowded) + 1 + u32::try_from(dice.below(4)).unwrap_or(0),
            max_agents: *dice.pick(if is_crowded {
                // Mostly without a limit: agents that wait for places do not compete for money.
                &[3, 1_000, 1_000, 1_000]
            } else {
                // Mostly a limit that forks reach, because a fork that waits for places is rare
                // otherwise.
                &[1, 1, 2, 1_000]
            }),
            reminders: *dice.pick(&[0, 1, 3]),
            retries: *dice.pick(&[0, 2, 5]),
            backend: BackendName::new(BACKENDS[0]),
            no_wait: dice.percent(20),
            on_lost_session: *dice.pick(&[OnLostSession::Fail, OnLostSession::Fresh]),
            interrupted_scripts: *dice.pick(&[InterruptedScripts::Rerun, InterruptedScripts::Fail]),
            ..Settings::default()
        }
    }

    /// Draws the agents of the run.
    pub(super) fn random_agents(
        self,
        seed: u64,
        workflow: &RandomWorkflow,
        dice: &mut Dice,
    ) -> RandomAgents {
        let first_forks = match self {
            Self::LastCents | Self::Limits if dice.percent(70) => 2 + dice.index(3),
            Self::Anything | Self::LastCents | Self::Limits | Self::Orphans | Self::Crashes => 0,
        };
        RandomAgents {
            seed,
            states: workflow.names(),
            failures: *dice.pick(&[0, 5, 15, 40]),
            mistakes: *dice.pick(&[0, 10, 30]),
            behavior: Behavior::Full,
            outages: if self == Self::Limits { Outages::random(dice) } else { Outages::default() },
            first_forks,
        }
    }

    /// Returns the state in which crashes leave turns.
    pub(super) const fn leftovers(self) -> Leftovers {
        match self {
            Self::Anything | Self::LastCents | Self::Limits | Self::Orphans => Leftovers::Any,
            // An agent fails after five crashes without progress. With survivors, few runs would
            // get there.
            Self::Crashes => Leftovers::Nothing,
        }
    }

    /// Returns the possible times without an owner, in milliseconds.
    pub(super) const fn downtimes(self) -> &'static [u64] {
        match self {
            // Clients take up to 5,000 ms. Short downtimes leave them running; an hour finishes all
            // of them.
            Self::Orphans => &[0, 0, 300, 1_000, 2_000, 3_600_000],
            Self::Anything | Self::LastCents | Self::Limits | Self::Crashes => {
                &[0, 0, 1_000, 3_000, 20_000, 3_600_000]
            }
        }
    }

    /// Returns the chance of a machine fault, in percent of all steps.
    pub(super) const fn fault_percent(self) -> u64 {
        match self {
            Self::Anything | Self::LastCents | Self::Limits | Self::Crashes => 5,
            Self::Orphans => 12,
        }
    }

    /// Returns the chance that the owner dies between two actions, in percent of all steps.
    pub(super) const fn kill_percent(self) -> u64 {
        match self {
            Self::Anything | Self::LastCents | Self::Limits => 0,
            Self::Orphans => 12,
            // Almost every step, because five crashes in a row must hit the same turn.
            Self::Crashes => 70,
        }
    }
}
