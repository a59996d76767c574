//! Groups: the workers that a parked agent waits for.
//!
//! A group counts how its members ended, so that each end costs the same however large the group
//! is. Results are not copied: the run keeps them for every agent that ended. The rules that end a
//! wait are in [`crate::machine::joins`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::few::Few;
use crate::ids::AgentId;
use crate::protocol::Need;
use crate::value::Value;

/// The workers of one message, for which their parent waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub need: Need,
    pub members: BTreeMap<AgentId, Member>,
    /// Members that are live.
    pub left: u32,
    /// Members that ended with a result.
    pub ended: u32,
    /// Members that failed.
    pub failed: u32,
    /// Why the wait is over; `None` while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<WaitEnd>,
}

/// A worker of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The position of its `fork` in the message, from 0.
    pub place: u32,
    /// A copy, because an agent that ended has none.
    pub attributes: Few<String, Value>,
}

/// The reason why a wait for workers is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEnd {
    /// Enough workers ended.
    Met,
    /// Too many workers failed, and the tag names a state for that.
    Unmet,
    TimedOut,
}

impl Group {
    pub fn new(need: Need, members: BTreeMap<AgentId, Member>) -> Self {
        let left = u32::try_from(members.len()).unwrap_or(u32::MAX);
        Self { need, members, left, ended: 0, failed: 0, over: None }
    }

    /// Counts a member that ended with a result.
    pub(crate) const fn note_end(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.ended += 1;
    }

    /// Counts a member that failed.
    pub(crate) const fn note_failure(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.failed += 1;
    }

    /// Counts a failed member that continues.
    pub(crate) const fn note_revival(&mut self) {
        self.failed = self.failed.saturating_sub(1);
        self.left += 1;
    }

    /// Counts a member that was cancelled.
    pub(crate) const fn note_cancellation(&mut self, has_failed: bool) {
        if has_failed {
            self.failed = self.failed.saturating_sub(1);
        } else {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Returns how many members were not cancelled.
    pub const fn counted(&self) -> u32 {
        self.left + self.ended + self.failed
    }
}
