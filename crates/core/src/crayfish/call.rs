//! What a caller brings to a run of steps: outputs that were asked for, and what it knows already.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::crayfish::verdict::Verdict;

use super::key::Key;
use crate::crayfish::stored::Stored;

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

/// What a caller says of an attempt, and under which name: that of its key, else the id of its step.
pub fn written(attempts: &BTreeMap<Key, u32>, key: &Key) -> Option<(Key, u32)> {
    let names = [key.clone(), Key::plain(key.step.clone())];
    names.into_iter().find_map(|name| attempts.get(&name).map(|attempt| (name.clone(), *attempt)))
}
