//! A loop that a branch is in.

use serde::{Deserialize, Serialize};

use crate::crayfish::key::StepKey;
use crate::crayfish::name::StepId;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopFrame {
    pub of: StepId,
    /// The key of the result that contains its list, if a result does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<StepKey>,
    /// How many iterations there are; `None` if only a condition ends the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The current iteration, from 0.
    pub number: u32,
    /// Whether a path of the document reads its items, so that its iterations are counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub listed: bool,
}
