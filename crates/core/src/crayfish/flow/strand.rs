//! A thread of control, and where it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::crayfish::key::{Iteration, Key};
use crate::crayfish::name::StepId;
use crate::ids::AgentId;

use super::Fact;

/// A thread of control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strand {
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
    pub loops: Vec<Turning>,
    /// Where it is.
    pub at: At,
    /// What it sees under the name of a step, where that is not what its parent sees. None is hidden.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<StepId, Option<Key>>,
}

/// A loop that a strand is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turning {
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

/// Where a strand is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
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
    /// At its innermost loop, whose iterations are strands of their own.
    Waits {
        /// How many of them have not ended.
        left: u32,
        /// How many of those have not begun.
        idle: u32,
        /// How many of those have failed.
        failed: u32,
        /// How many strands have failed for good in them, or in iterations of theirs.
        broken: u32,
        /// What the last of them saw, once it has ended.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        last: BTreeMap<StepId, Option<Key>>,
    },
    /// At a step that failed, its own or one of its iterations.
    Failed(Key),
}

impl Strand {
    /// Where it is once this is so.
    pub(super) fn moves(&mut self, fact: &Fact) {
        match fact {
            Fact::Entered { step, .. } => self.at = At::In(step.clone()),
            Fact::Loops { turning, hides } => {
                self.loops.push(turning.clone());
                self.seen.extend(hides.iter().map(|step| (step.clone(), None)));
                self.at = At::Round;
            }
            Fact::Turns { number } => {
                self.at = At::Body;
                if let Some(turning) = self.loops.last_mut() {
                    turning.number = *number;
                }
            }
            Fact::Splits => {
                let left = self.loops.last().and_then(|turning| turning.count).unwrap_or(0);
                let last = BTreeMap::new();
                self.at = At::Waits { left, idle: left, failed: 0, broken: 0, last };
            }
            Fact::Leaves => {
                let left = self.loops.pop();
                if let At::Waits { last, .. } = &mut self.at {
                    self.seen.append(last);
                }
                self.at = left.map_or(At::Start, |turning| At::Behind(turning.of));
            }
            Fact::Begun { .. }
            | Fact::Asks { .. }
            | Fact::Keeps { .. }
            | Fact::Parked { .. }
            | Fact::Called(_)
            | Fact::Takes { .. }
            | Fact::Ignores { .. }
            | Fact::Fails { .. }
            | Fact::Revived
            | Fact::Done { .. }
            | Fact::Met { .. }
            | Fact::Ended => {}
        }
    }

    /// The key of a step in the iterations that the strand is in.
    pub fn key(&self, step: &StepId) -> Key {
        self.key_in(&self.loops, step)
    }

    /// The key of the step that it failed at.
    pub fn failed_at(&self) -> Option<&Key> {
        if let At::Failed(key) = &self.at { Some(key) } else { None }
    }

    /// The key of the loop that the strand is in.
    pub fn loop_key(&self) -> Option<Key> {
        let (innermost, around) = self.loops.split_last()?;
        Some(self.key_in(around, &innermost.of))
    }

    fn key_in(&self, loops: &[Turning], step: &StepId) -> Key {
        let turning =
            |turning: &Turning| Iteration { of: turning.of.clone(), number: turning.number };
        let iterations = self.born.iter().cloned().chain(loops.iter().map(turning)).collect();
        Key { iterations, step: step.clone() }
    }
}
