//! A step while its document is read.

use crate::crayfish::document::{Kind, Place};
use crate::crayfish::name::StepId;

/// A step as far as it could be read.
pub(super) struct UnfinishedStep {
    pub(super) place: Place,
    pub(super) id: Option<StepId>,
    pub(super) kind: Option<Kind>,
}
