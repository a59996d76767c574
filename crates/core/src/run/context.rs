//! The facts that all turns of a run share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{Nonce, RunId};
use crate::protocol::Source;

use super::settings::Pinning;
use super::state::Run;

/// The facts about a run that an executor needs, beside the specification of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContext {
    pub run: RunId,
    /// The seed of session ids and process markers.
    pub nonce: Nonce,
    /// The path of the workflow.
    pub scope: String,
    /// Template variables of the user.
    pub vars: BTreeMap<String, String>,
    /// How the final messages of agents are read.
    pub messages: Source,
    /// Whether scripts run from their pinned copies.
    pub pinning: Pinning,
}

impl RunContext {
    pub fn of(run: &Run) -> Self {
        Self {
            run: run.id.clone(),
            nonce: run.nonce.clone(),
            scope: run.scope.clone(),
            vars: run.settings.vars.clone(),
            messages: run.program.messages(),
            pinning: run.settings.definition,
        }
    }
}
