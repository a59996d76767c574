//! The data that a caller brings to a run of steps: requested outputs, attempts and earlier
//! results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::crayfish::verdict::Verdict;

use super::key::StepKey;
use crate::crayfish::stored::{ParsedJson, Stored};

/// The data of one call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Call {
    /// Results of steps from earlier calls, for a new run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<StepKey, Stored>,
    /// The attempts that the caller answers; a missing one is the first. The id of a step inside
    /// loops applies to the first of its keys that asks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attempts: BTreeMap<StepKey, u32>,
    /// Whether the caller alone knows the attempts, because the run has no journal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The outputs, each under `key:attempt`, a key, or the id of a step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Output>,
}

/// An output for an agent step, already checked against its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The result of the step if the output is valid.
    pub stored: Stored,
    pub verdict: Verdict,
}

impl Call {
    /// Drops the parsed forms of its values.
    pub(crate) fn drop_readings(&mut self) {
        let outputs = self.outputs.values_mut().map(|output| &mut output.stored);
        for stored in self.results.values_mut().chain(outputs) {
            stored.read = ParsedJson::default();
        }
    }
}

/// Returns the caller's attempt for a key, and the name it was sent under: the key, or its step's
/// id.
pub fn written(attempts: &BTreeMap<StepKey, u32>, key: &StepKey) -> Option<(StepKey, u32)> {
    // The exact key wins over the id, which may mean any iteration.
    let names = [key.clone(), StepKey::plain(key.step.clone())];
    names.into_iter().find_map(|name| attempts.get(&name).map(|attempt| (name.clone(), *attempt)))
}
