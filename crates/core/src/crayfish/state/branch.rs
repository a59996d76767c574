//! A thread of control, and where it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::crayfish::key::{Iteration, Key};
use crate::crayfish::name::StepId;
use crate::ids::AgentId;

use super::StepEvent;

/// A thread of control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// Its place in the order of birth.
    pub number: u64,
    /// Whose loop it is an iteration of; none is the document itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The iterations that it was born into, outermost first: the beginning of all its keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub born: Vec<Iteration>,
    /// The loops that it is in, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopFrame>,
    /// Where it is.
    pub at: Position,
    /// What it sees under the name of a step, where that is not what its parent sees. None is hidden.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<StepId, Option<Key>>,
}

/// A loop that a branch is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopFrame {
    /// The loop.
    pub of: StepId,
    /// The result in which its list was found, where it was found in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Key>,
    /// How many iterations there are; none where only a condition ends them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The iteration it is in, from 0.
    pub number: u32,
}

/// Where a branch is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Before the first step of its list.
    Start,
    /// Before a step.
    Before(StepId),
    /// At a step that is being done.
    In(StepId),
    /// Behind a step.
    Behind(StepId),
    /// In an iteration of its innermost loop, before the first step of the body.
    Body,
    /// At its innermost loop, before the first iteration.
    Round,
    /// At its innermost loop, whose iterations are branches of their own.
    Waits {
        /// How many of them have not ended.
        left: u32,
        /// How many of those have not begun.
        idle: u32,
        /// How many of those have failed.
        failed: u32,
        /// How many branches have failed for good in them, or in iterations of theirs.
        broken: u32,
        /// What the last of them saw, once it has ended.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        last: BTreeMap<StepId, Option<Key>>,
    },
    /// At a step that failed, its own or one of its iterations.
    Failed(Key),
}

impl Branch {
    /// Where it is once this is so.
    pub(super) fn moves(&mut self, fact: &StepEvent) {
        match fact {
            StepEvent::Entered { step, .. } => self.at = Position::In(step.clone()),
            StepEvent::Loops { turning, hides } => {
                self.loops.push(turning.clone());
                self.seen.extend(hides.iter().map(|step| (step.clone(), None)));
                self.at = Position::Round;
            }
            StepEvent::Turns { number } => {
                self.at = Position::Body;
                if let Some(turning) = self.loops.last_mut() {
                    turning.number = *number;
                }
            }
            StepEvent::Splits => {
                let left = self.loops.last().and_then(|turning| turning.count).unwrap_or(0);
                let last = BTreeMap::new();
                self.at = Position::Waits { left, idle: left, failed: 0, broken: 0, last };
            }
            StepEvent::Leaves => {
                let left = self.loops.pop();
                if let Position::Waits { last, .. } = &mut self.at {
                    self.seen.append(last);
                }
                self.at = left.map_or(Position::Start, |turning| Position::Behind(turning.of));
            }
            StepEvent::Begun { .. }
            | StepEvent::Asks { .. }
            | StepEvent::Keeps { .. }
            | StepEvent::Parked { .. }
            | StepEvent::Called(_)
            | StepEvent::Takes { .. }
            | StepEvent::Ignores { .. }
            | StepEvent::Fails { .. }
            | StepEvent::Revived
            | StepEvent::Done { .. }
            | StepEvent::Met { .. }
            | StepEvent::Ended => {}
        }
    }

    /// The key of a step in the iterations that the branch is in.
    pub fn key(&self, step: &StepId) -> Key {
        self.key_in(&self.loops, step)
    }

    /// The key of the step that it failed at.
    pub fn failed_at(&self) -> Option<&Key> {
        if let Position::Failed(key) = &self.at { Some(key) } else { None }
    }

    /// The key of the loop that the branch is in.
    pub fn loop_key(&self) -> Option<Key> {
        let (innermost, around) = self.loops.split_last()?;
        Some(self.key_in(around, &innermost.of))
    }

    fn key_in(&self, loops: &[LoopFrame], step: &StepId) -> Key {
        let turning =
            |turning: &LoopFrame| Iteration { of: turning.of.clone(), number: turning.number };
        let iterations = self.born.iter().cloned().chain(loops.iter().map(turning)).collect();
        Key { iterations, step: step.clone() }
    }
}
