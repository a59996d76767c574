//! A step while its document is being read.

use crate::crayfish::document::{StepKind, StepPlace};
use crate::crayfish::name::StepId;

/// A step with the parts that could be read.
pub(super) struct UnfinishedStep {
    pub(super) place: StepPlace,
    pub(super) id: Option<StepId>,
    pub(super) kind: Option<StepKind>,
    pub(super) description: Option<String>,
}
