//! The part of a program that an agent executes: a state, or one execution of a step.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::crayfish::StepKey;
use crate::ids::StateName;

/// The state or the step of a visit. Both print as their name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    State(StateName),
    Step(StepKey),
}

impl Location {
    /// Returns the state; `None` in a run of steps.
    pub const fn state(&self) -> Option<&StateName> {
        match self {
            Self::State(state) => Some(state),
            Self::Step(_) => None,
        }
    }

    /// Returns the key of the step; `None` in a run of states.
    pub const fn step(&self) -> Option<&StepKey> {
        match self {
            Self::State(_) => None,
            Self::Step(key) => Some(key),
        }
    }

    /// Returns the name without the extension of a state's file.
    pub fn stem(&self) -> String {
        match self {
            Self::State(state) => state.stem().to_owned(),
            // The key of a step in a loop contains a dot, which does not begin an extension.
            Self::Step(key) => key.to_string(),
        }
    }
}

impl From<StateName> for Location {
    fn from(state: StateName) -> Self {
        Self::State(state)
    }
}

impl From<StepKey> for Location {
    fn from(key: StepKey) -> Self {
        Self::Step(key)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => state.fmt(f),
            Self::Step(key) => key.fmt(f),
        }
    }
}
