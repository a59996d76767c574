//! What a caller brings to a run of steps: outputs that were asked for, and what it knows already.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::run::input::Verdict;

use super::key::Key;
use super::state::{StepsState, Stored};

/// What a caller brings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Call {
    /// What steps left in earlier calls, for a run that begins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<Key, Stored>,
    /// Which attempts it answers; where nothing is said, the first. The id of a step in loops stands
    /// for whichever of its keys asks first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attempts: BTreeMap<Key, u32>,
    /// Whether nobody else knows the attempts: the run has no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The outputs, each under `key:attempt`, a key, or the id of a step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Output>,
}

/// An output for an agent step, weighed by its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// What the step leaves if it is valid.
    pub stored: Stored,
    /// What it is worth.
    pub verdict: Verdict,
}

/// What the caller has for a question.
pub(super) enum Offer<'a> {
    /// This output, which came under this name.
    Output(String, &'a Output),
    /// One for an attempt that is over.
    Stale(String),
}

/// What a caller says of an attempt, and under which name: that of its key, else the id of its step.
pub fn written(attempts: &BTreeMap<Key, u32>, key: &Key) -> Option<(Key, u32)> {
    let names = [key.clone(), Key::plain(key.step.clone())];
    names.into_iter().find_map(|name| attempts.get(&name).map(|attempt| (name.clone(), *attempt)))
}

impl StepsState {
    /// What the caller has for an attempt at an agent step.
    pub(super) fn offer(&self, key: &Key, attempt: u32) -> Option<Offer<'_>> {
        let request = format!("{key}:{attempt}");
        if let Some(output) = self.offers.get(&request) {
            return Some(Offer::Output(request, output));
        }
        let names = [key.to_string(), key.step.to_string()];
        let (name, output) =
            names.into_iter().find_map(|name| Some((name.clone(), self.offers.get(&name)?)))?;
        let claimed = written(&self.claims, key).map_or(1, |(_, claimed)| claimed);
        Some(if claimed < attempt { Offer::Stale(name) } else { Offer::Output(name, output) })
    }
}
