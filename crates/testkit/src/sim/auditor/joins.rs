//! The auditor's rules about waits for workers: no worker outlives its wait, and no failed worker
//! is handed over as if it had ended.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::ids::AgentId;
use raymond_core::protocol::Need;
use raymond_core::run::{Event, WaitEnd};

use crate::violation::Violation;

/// The groups of workers for which a parent waits.
#[derive(Debug, Clone, Default)]
pub(super) struct Joins {
    groups: BTreeMap<AgentId, Group>,
    /// The end of every worker of a group that has an end.
    ends: BTreeMap<AgentId, End>,
    /// Agents whose turns are being ended.
    cancelling: BTreeSet<AgentId>,
}

#[derive(Debug, Clone)]
struct Group {
    need: Need,
    workers: Vec<AgentId>,
    /// Why the wait is over.
    over: Option<WaitEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Ended,
    Failed,
    Cancelled,
}

impl Joins {
    pub(super) fn event(&mut self, event: &Event) -> Result<(), Violation> {
        match event {
            Event::AgentJoins { agent, workers, need, .. } => {
                let group = Group { need: *need, workers: workers.clone(), over: None };
                self.groups.insert(agent.clone(), group);
            }
            Event::AgentEnded { agent, .. } => {
                must!(!self.cancelling.contains(agent), "{agent} is cancelled, and ends");
                self.ends.insert(agent.clone(), End::Ended);
                self.groups.remove(agent);
            }
            Event::AgentFailed { agent, .. } => {
                must!(!self.cancelling.contains(agent), "{agent} is cancelled, and fails");
                self.ends.insert(agent.clone(), End::Failed);
            }
            Event::AgentRevived { agent } => {
                self.ends.remove(agent);
            }
            Event::AgentCancelling { agent, .. } => {
                must!(self.cancelling.insert(agent.clone()), "{agent} is cancelled twice");
            }
            Event::AgentCancelled { agent, .. } => {
                let before = self.ends.insert(agent.clone(), End::Cancelled);
                must!(before != Some(End::Cancelled), "{agent} is cancelled twice");
                self.cancelling.remove(agent);
                self.groups.remove(agent);
                // A failed agent leaves at once.
                let is_early = before.is_none() && agent.has_descendant_in(&self.cancelling);
                must!(!is_early, "{agent} leaves before its workers");
            }
            Event::TurnStarted { turn, .. } => {
                let agent = &turn.agent;
                must!(!self.cancelling.contains(agent), "{turn} starts, but {agent} is cancelled");
                let waits = self.groups.get(agent).is_some_and(|group| group.over.is_none());
                must!(!waits, "{turn} starts, but {agent} waits for its workers");
            }
            Event::WaitOver { agent, end } => self.over(agent, *end)?,
            Event::Joined { agent, failed } => self.joined(agent, failed)?,
            _ => {}
        }
        Ok(())
    }

    fn count(&self, group: &Group, end: Option<End>) -> usize {
        group.workers.iter().filter(|id| self.ends.get(*id).copied() == end).count()
    }

    fn over(&mut self, parent: &AgentId, end: WaitEnd) -> Result<(), Violation> {
        let group = self.groups.get(parent);
        let group = group.ok_or_else(|| Violation(format!("{parent} does not wait")))?;
        must!(group.over.is_none(), "the wait of {parent} is over twice");
        let of = |end| self.count(group, end);
        let (live, ended) = (of(None), of(Some(End::Ended)));
        let counted = group.workers.len() - of(Some(End::Cancelled));
        let fits = match (end, group.need) {
            (WaitEnd::TimedOut, _) => true,
            (WaitEnd::Met, Need::All) => ended == counted,
            (WaitEnd::Met, Need::Done) => live == 0,
            (WaitEnd::Met, Need::Count(count)) => ended >= counted.min(count as usize),
            (WaitEnd::Unmet, _) => of(Some(End::Failed)) > 0,
        };
        must!(fits, "the wait of {parent} is over ({end:?}) with {ended} of {counted} results");
        if let Some(group) = self.groups.get_mut(parent) {
            group.over = Some(end);
        }
        Ok(())
    }

    fn joined(&mut self, parent: &AgentId, failed: &[AgentId]) -> Result<(), Violation> {
        let group = self.groups.remove(parent);
        let group = group.ok_or_else(|| Violation(format!("{parent} has no list")))?;
        must!(group.over.is_some(), "{parent} receives its list before its wait is over");
        let outlives = self.count(&group, None) > 0 || parent.has_descendant_in(&self.cancelling);
        must!(!outlives, "a worker outlives the wait of {parent}");
        let expected: BTreeSet<&AgentId> =
            group.workers.iter().filter(|id| self.ends.get(*id) == Some(&End::Failed)).collect();
        let named: BTreeSet<&AgentId> = failed.iter().collect();
        must!(named == expected, "{parent} receives {named:?} as failed, not {expected:?}");
        Ok(())
    }
}
