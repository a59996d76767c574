//! The events of a branch, from which [`StepsState`](super::StepsState) is folded.

use serde::{Deserialize, Serialize};

use super::super::call::Call;
use super::super::gate::Gate;
use super::super::key::{Iteration, StepKey};
use super::super::name::StepId;
use super::super::problem::Problem;
use super::super::stored::{ParsedJson, Stored};
use super::LoopFrame;
use crate::ids::{AgentId, SessionId};

/// An event of one branch. The variants are journalled, so their names and fields are stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEvent {
    /// The branch was created.
    Begun {
        /// The iterations around it at its creation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        born: Vec<Iteration>,
        /// The branch whose parallel loop it is an iteration of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<AgentId>,
        /// The failures that count as results, because a loop collected them before the document
        /// was edited.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        settled: Vec<StepKey>,
        /// The steps that were edited after they had asked or failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edited: Vec<StepKey>,
        /// The failures whose steps are repeated. Another edit must not take them for collected
        /// ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repeated: Vec<StepKey>,
    },
    /// The branch is executing a step.
    Entered {
        step: StepId,
        /// The gate that it passes, and how many branches may be inside.
        // Recorded with its limit, because the fold does not know the document.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gate: Option<(Gate, u32)>,
    },
    /// The branch waits until another one has left a gate.
    Parked {
        gate: Gate,
        /// How many branches may be inside.
        limit: u32,
    },
    /// A call brought outputs and results.
    // Boxed, because a call would make every event of a branch as large as itself.
    Called(Box<Call>),
    /// A step takes an output of the caller.
    OutputTaken {
        /// The name it was sent under.
        name: String,
    },
    /// An output of the caller is for an attempt that is over.
    OutputIgnored {
        /// The name it was sent under.
        name: String,
    },
    /// An agent step asks for an attempt.
    Asked {
        key: StepKey,
        /// The attempt, from 1.
        attempt: u32,
        /// The errors of the attempt before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        errors: Vec<Problem>,
        /// The last attempt that the step has from now on, if a resume gave it more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    },
    /// Later steps with this label continue this conversation.
    ConversationKept { label: String, session: SessionId },
    /// A step has a result.
    Done { key: StepKey, stored: Stored },
    /// A step already had a result, which is used.
    Reused { key: StepKey },
    /// The branch enters a loop.
    LoopEntered {
        frame: LoopFrame,
        /// The steps of its body whose earlier results become invisible.
        // Recorded, because the fold does not know which steps are in the body.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hides: Vec<StepId>,
    },
    /// An iteration of the innermost loop begins.
    IterationBegun {
        /// The iteration, from 0.
        number: u32,
    },
    /// The iterations of the innermost loop begin, each as a branch.
    LoopSplit,
    /// The branch leaves its innermost loop.
    LoopLeft,
    /// The branch fails at a step.
    Failed {
        key: StepKey,
        /// The result of the failed step, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stored: Option<Stored>,
        /// Whether a loop around it collects failures.
        // Recorded, because only the document says which loops collect failures.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        contained: bool,
    },
    /// The branch repeats the step that failed.
    Revived,
    /// The document has ended: what its `output` reads is final.
    // Written only for a document with an `output`.
    Concluded,
    /// The branch has ended.
    Ended,
}

impl StepEvent {
    /// Drops the parsed forms of its values.
    pub(crate) fn drop_readings(&mut self) {
        match self {
            Self::Called(call) => call.drop_readings(),
            Self::Done { stored, .. } | Self::Failed { stored: Some(stored), .. } => {
                stored.read = ParsedJson::default();
            }
            Self::Begun { .. }
            | Self::Entered { .. }
            | Self::Parked { .. }
            | Self::OutputTaken { .. }
            | Self::OutputIgnored { .. }
            | Self::Asked { .. }
            | Self::ConversationKept { .. }
            | Self::Reused { .. }
            | Self::LoopEntered { .. }
            | Self::IterationBegun { .. }
            | Self::LoopSplit
            | Self::LoopLeft
            | Self::Failed { stored: None, .. }
            | Self::Revived
            | Self::Concluded
            | Self::Ended => {}
        }
    }
}
