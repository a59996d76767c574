//! The auditor's state of agents: which are live, where they are, and what they may do next.

use raymond_core::agent::{Agent, Frame, Session};
use raymond_core::budget::Micros;
use raymond_core::ids::AgentId;
use raymond_core::run::Event;
use raymond_core::run::event::StackChange;
use raymond_core::run::warning::Warning;

use super::{Auditor, steps};
use crate::violation::Violation;

#[derive(Debug, Clone, Default)]
pub(super) struct TrackedAgent {
    pub(super) stack: Vec<Frame>,
    pub(super) session: Session,
    cwd: String,
    pub(super) visit: u32,
    /// The charges of the current visit.
    pub(super) spent: Micros,
    reminders: u32,
    retries: u32,
    forks: u32,
    /// Whether a settled turn, a kept transition or a failed iteration allows the next move.
    pub(super) may_move: bool,
}

impl TrackedAgent {
    pub(super) fn compare(&self, agent: &Agent) -> Result<(), Violation> {
        let id = &agent.id;
        // No event contains the holder of a conversation; a wrong holder shows when a turn uses it.
        let without_holder = |frame: &Frame| Frame { holder: None, ..frame.clone() };
        let stack: Vec<Frame> = agent.stack.iter().map(without_holder).collect();
        must!(stack == self.stack, "the stack of {id} differs: {:?}", agent.stack);
        must!(agent.session == self.session, "the session of {id} differs");
        must!(agent.cwd == self.cwd, "{id} works in {} instead of {}", agent.cwd, self.cwd);
        must!(agent.forks == self.forks, "{id} has forked {} times", agent.forks);
        let spent = agent.visit.spent;
        must!(spent == self.spent, "the visit of {id} cost {spent} instead of {}", self.spent);
        Ok(())
    }
}

impl Auditor {
    pub(super) fn agent_event(&mut self, event: &Event) -> Result<(), Violation> {
        match event {
            Event::AgentSpawned { agent, cwd, .. } => self.spawned(agent, cwd)?,
            Event::VisitEntered { agent, visit, .. } => {
                let tracked = self.tracked(agent)?;
                // Turns are named by their visit. A visit number that is used twice would let old
                // outcomes match.
                must!(*visit == tracked.visit + 1, "{agent} enters visit {visit}");
                // This catches a transition that is taken twice, such as once by the dying owner
                // and once by the next one.
                must!(tracked.may_move, "{agent} moves without a settled turn");
                (tracked.visit, tracked.reminders, tracked.may_move) = (*visit, 0, false);
                // A budget limits one visit, so the next visit starts at zero. A revival does not:
                // see `status`.
                (tracked.retries, tracked.spent) = (0, Micros::ZERO);
            }
            Event::Reminded { agent, .. } => {
                let limit = self.settings.reminders;
                let tracked = self.tracked(agent)?;
                tracked.reminders += 1;
                // The reminder rejects the message that allowed the move; the next turn must allow
                // it again.
                tracked.may_move = false;
                must!(
                    tracked.reminders <= limit,
                    "{agent} is reminded {} times",
                    tracked.reminders
                );
            }
            Event::Warned { agent: Some(agent), warning } if ends_an_iteration(warning) => {
                let looped = self.is_loop;
                must!(looped, "{agent} continues after a failure outside a loop");
                self.tracked(agent)?.may_move = true;
            }
            Event::RetryAt { turn, retry, .. } => {
                // Program steps have their own number of retries, but this event lacks the
                // kind of its turn. So the looser of both limits is checked.
                let limit = self.settings.retries.max(steps::MAX_RETRIES);
                let tracked = self.tracked(&turn.agent)?;
                tracked.retries += 1;
                let counted = *retry == tracked.retries && *retry <= limit;
                must!(counted, "retry {retry} of {turn} instead of {}", tracked.retries);
            }
            Event::AgentWaits { agent, forks, .. } | Event::AgentJoins { agent, forks, .. } => {
                let tracked = self.tracked(agent)?;
                must!(tracked.may_move, "{agent} waits without a settled turn");
                must!(*forks >= tracked.forks, "the fork counter of {agent} went down");
                tracked.forks = *forks;
            }
            Event::AgentAsks { agent, .. } => {
                must!(self.tracked(agent)?.may_move, "{agent} asks without a settled turn");
            }
            Event::Moved { agent, stack, session, cwd, forks, .. } => {
                let tracked = self.tracked(agent)?;
                // Workers are named by this counter, so a lower value would use a name twice.
                must!(*forks >= tracked.forks, "the fork counter of {agent} went down");
                tracked.forks = *forks;
                tracked.session = session.clone();
                if let Some(cwd) = cwd {
                    tracked.cwd.clone_from(cwd);
                }
                restack(agent, tracked, stack)?;
            }
            Event::AgentEnded { .. }
            | Event::AgentFailed { .. }
            | Event::AgentRevived { .. }
            | Event::AgentCancelled { .. }
            | Event::Joined { .. } => self.status(event)?,
            Event::Stepped { agent, event } => self.stepped(agent, event)?,
            _ => {}
        }
        Ok(())
    }

    fn spawned(&mut self, agent: &AgentId, cwd: &str) -> Result<(), Violation> {
        // Ended agents stay in this set: turns are named after their agent, so a second agent of
        // that name would repeat the ids of turns.
        must!(self.names.insert(agent.clone()), "the name {agent} is used twice");
        let tracked =
            TrackedAgent { cwd: cwd.to_owned(), may_move: true, ..TrackedAgent::default() };
        self.live.insert(agent.clone(), tracked);
        // `max_agents` does not count `main`, which exists in every run.
        let workers = self.live.len() - usize::from(self.live.contains_key(&AgentId::main()));
        must!(
            workers <= self.settings.max_agents as usize || *agent == AgentId::main(),
            "{workers} live workers"
        );
        Ok(())
    }

    fn status(&mut self, event: &Event) -> Result<(), Violation> {
        match event {
            Event::AgentEnded { agent, .. } => {
                let tracked = self.tracked(agent)?;
                // A result with pending returns goes to the caller, so it never ends an agent.
                must!(tracked.stack.is_empty(), "{agent} ended with pending returns");
                must!(tracked.may_move, "{agent} ended without a settled turn");
                self.live.remove(agent);
            }
            Event::AgentFailed { agent, .. } => {
                let tracked = self.live.remove(agent);
                let tracked =
                    tracked.ok_or_else(|| Violation(format!("{agent} fails, not live")))?;
                self.failed.insert(agent.clone());
                self.parked.insert(agent.clone(), tracked);
            }
            Event::AgentRevived { agent } => {
                must!(self.failed.remove(agent), "{agent} is revived and had not failed");
                // `spent` stays: a resume gives new reminders and retries, but does not renew the
                // visit's budget.
                let mut tracked = self.parked.remove(agent).unwrap_or_default();
                (tracked.reminders, tracked.retries, tracked.may_move) = (0, 0, true);
                self.live.insert(agent.clone(), tracked);
            }
            Event::AgentCancelled { agent, .. } => {
                let was_live = self.live.remove(agent).is_some();
                must!(was_live || self.failed.remove(agent), "{agent} is cancelled, not live");
                self.parked.remove(agent);
            }
            Event::Joined { failed, .. } => {
                for worker in failed {
                    must!(self.failed.remove(worker), "{worker} is handed over, and not failed");
                    self.parked.remove(worker);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns whether the loop continues without a settled turn.
fn ends_an_iteration(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::IterationFailed { .. } | Warning::ResultRefused { .. } | Warning::NotPassed { .. }
    )
}

fn restack(
    agent: &AgentId,
    tracked: &mut TrackedAgent,
    change: &StackChange,
) -> Result<(), Violation> {
    match change {
        StackChange::Keep => {}
        StackChange::Push(frame) => tracked.stack.push(frame.clone()),
        StackChange::Pop => must!(tracked.stack.pop().is_some(), "{agent} pops an empty stack"),
        StackChange::Clear => tracked.stack.clear(),
    }
    Ok(())
}
