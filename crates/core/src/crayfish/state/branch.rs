//! A branch of a run of steps, and its position in the document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::crayfish::key::{Iteration, StepKey};
use crate::crayfish::name::StepId;
use crate::ids::AgentId;

use super::{LoopFrame, StepEvent};

/// A thread of control: the document itself, or one iteration of a parallel loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Its number in the order of creation.
    pub number: u64,
    /// The branch whose loop it is an iteration of; `None` for the document itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The iterations around it at its creation, outermost first: the prefix of all its keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub born: Vec<Iteration>,
    /// The loops that it is in, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopFrame>,
    pub at: Position,
    /// The result it sees for a step, where it differs from its parent. `None` hides the step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<StepId, Option<StepKey>>,
}

/// The position of a branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Before the first step of its list.
    Start,
    Before(StepId),
    /// At a step that is running.
    In(StepId),
    Behind(StepId),
    /// In an iteration of its innermost loop, before the first step of the body.
    Body,
    /// At its innermost loop, before the first iteration.
    Round,
    /// At its innermost loop, whose iterations are branches.
    Waits {
        /// How many iterations have not ended.
        left: u32,
        /// How many of those have not begun.
        idle: u32,
        /// How many of those have failed.
        failed: u32,
        /// How many branches inside have failed permanently, at any depth.
        broken: u32,
        /// The results visible to the last iteration, once it has ended.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        last: BTreeMap<StepId, Option<StepKey>>,
    },
    /// At a step that failed, its own or one of an iteration.
    Failed(StepKey),
}

impl Branch {
    /// Moves the branch as an event says.
    pub(crate) fn moves(&mut self, event: &StepEvent) {
        match event {
            StepEvent::Entered { step, .. } => self.at = Position::In(step.clone()),
            StepEvent::LoopEntered { frame, hides } => {
                self.loops.push(frame.clone());
                self.seen.extend(hides.iter().map(|step| (step.clone(), None)));
                self.at = Position::Round;
            }
            StepEvent::IterationBegun { number } => {
                self.at = Position::Body;
                if let Some(frame) = self.loops.last_mut() {
                    frame.number = *number;
                }
            }
            StepEvent::LoopSplit => {
                // Only a `forEach` splits, and the frame of a `forEach` has a count.
                let left = self.loops.last().and_then(|frame| frame.count).unwrap_or(0);
                let last = BTreeMap::new();
                self.at = Position::Waits { left, idle: left, failed: 0, broken: 0, last };
            }
            StepEvent::LoopLeft => {
                let left = self.loops.pop();
                // Steps after a parallel loop see the results of its last item, as after a
                // sequential one.
                if let Position::Waits { last, .. } = &mut self.at {
                    self.seen.append(last);
                }
                // The interpreter leaves only a loop that the branch is in; the fold accepts any
                // event.
                self.at = left.map_or(Position::Start, |frame| Position::Behind(frame.of));
            }
            // These concern more than one branch, or a result: `StepsState::apply` handles them.
            StepEvent::Begun { .. }
            | StepEvent::Asked { .. }
            | StepEvent::ConversationKept { .. }
            | StepEvent::Parked { .. }
            | StepEvent::Called(_)
            | StepEvent::OutputTaken { .. }
            | StepEvent::OutputIgnored { .. }
            | StepEvent::Failed { .. }
            | StepEvent::Revived
            | StepEvent::Done { .. }
            | StepEvent::Reused { .. }
            | StepEvent::Concluded
            | StepEvent::Ended => {}
        }
    }

    /// Returns the innermost loop if its items can be read, and how many iterations it has had.
    pub(super) fn left_list(&self) -> Option<(StepKey, u32)> {
        let frame = self.loops.last().filter(|frame| frame.listed)?;
        let begun = match self.at {
            Position::Round => 0,
            Position::Start
            | Position::Before(_)
            | Position::In(_)
            | Position::Behind(_)
            | Position::Body
            | Position::Waits { .. }
            | Position::Failed(_) => frame.number.saturating_add(1),
        };
        // A `forEach` is left after its last item.
        Some((self.loop_key()?, frame.count.unwrap_or(begun)))
    }

    /// Returns the key of a step in the current iterations of the branch.
    pub fn key(&self, step: &StepId) -> StepKey {
        self.key_in(&self.loops, step)
    }

    pub fn failed_at(&self) -> Option<&StepKey> {
        if let Position::Failed(key) = &self.at { Some(key) } else { None }
    }

    /// Returns the key of the innermost loop that the branch is in.
    pub fn loop_key(&self) -> Option<StepKey> {
        let (innermost, around) = self.loops.split_last()?;
        Some(self.key_in(around, &innermost.of))
    }

    fn key_in(&self, loops: &[LoopFrame], step: &StepId) -> StepKey {
        let iteration =
            |frame: &LoopFrame| Iteration { of: frame.of.clone(), number: frame.number };
        // Outermost first: the iterations that the branch was created in are around its own loops.
        let iterations = self.born.iter().cloned().chain(loops.iter().map(iteration)).collect();
        StepKey { iterations, step: step.clone() }
    }
}
