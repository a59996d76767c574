//! The auditor's state of a run of steps: a finished step never runs again, and attempts are
//! counted.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::agent::SessionPlan;
use raymond_core::crayfish::document::SessionMode;
use raymond_core::crayfish::{StepEvent, StepKey};
use raymond_core::ids::{AgentId, SessionId};
use raymond_core::run::turn_spec::{PromptSpec, TurnHeader};
use raymond_core::workflow::Definition;

use super::Auditor;
use crate::violation::Violation;

/// How often a program step is retried at most: the language allows five attempts.
pub(super) const MAX_RETRIES: u32 = 4;

#[derive(Debug, Clone, Default)]
pub(super) struct TrackedSteps {
    /// Keys with a recorded success.
    done: BTreeSet<StepKey>,
    /// Keys with a recorded failure.
    failed: BTreeSet<StepKey>,
    /// The number of the last requested attempt.
    attempts: BTreeMap<StepKey, u32>,
    /// The sessions that steps share, by label.
    sessions: BTreeMap<String, SessionId>,
}

impl Auditor {
    pub(super) fn stepped(&mut self, agent: &AgentId, fact: &StepEvent) -> Result<(), Violation> {
        match fact {
            StepEvent::Done { key, stored } => {
                // Only successes are final: a revived run tries failed steps again.
                must!(!self.steps.done.contains(key), "{key} is done twice");
                let tracked = &mut self.steps;
                (if stored.ok { &mut tracked.done } else { &mut tracked.failed })
                    .insert(key.clone());
                self.tracked(agent)?.may_move = true;
            }
            // A step is skipped only because of a recorded result, which may be a failure.
            StepEvent::Reused { key } => {
                let known = self.steps.done.contains(key) || self.steps.failed.contains(key);
                must!(known, "{key} is taken as done, and is not");
                self.tracked(agent)?.may_move = true;
            }
            StepEvent::Failed { key, stored, contained } => {
                // A failed loop leaves a result only if an enclosing loop collects failures.
                if stored.is_some() {
                    self.steps.failed.insert(key.clone());
                }
                if *contained {
                    self.tracked(agent)?.may_move = true;
                }
            }
            StepEvent::Asked { key, attempt, .. } => {
                let last = self.steps.attempts.insert(key.clone(), *attempt).unwrap_or(0);
                // The caller's answers name this number. With a gap or a repetition, an old answer
                // would be taken for a new question.
                must!(*attempt == last + 1, "{key} asks for attempt {attempt} after {last}");
            }
            StepEvent::ConversationKept { label, session } => {
                self.steps.sessions.insert(label.clone(), session.clone());
            }
            StepEvent::Begun { .. }
            | StepEvent::Parked { .. }
            | StepEvent::Called(_)
            | StepEvent::OutputTaken { .. }
            | StepEvent::OutputIgnored { .. }
            | StepEvent::Entered { .. }
            | StepEvent::LoopEntered { .. }
            | StepEvent::IterationBegun { .. }
            | StepEvent::LoopSplit
            | StepEvent::LoopLeft
            | StepEvent::Revived
            | StepEvent::Concluded
            | StepEvent::Ended => {}
        }
        Ok(())
    }

    /// Checks that a finished step neither runs nor costs money again.
    pub(super) fn not_done(&self, key: &StepKey) -> Result<(), Violation> {
        must!(!self.steps.done.contains(key), "{key} is done, and is done again");
        Ok(())
    }

    /// Checks that the first question of a step continues the session of its label, and no other
    /// session.
    pub(super) fn within_label(
        &self,
        definition: &Definition,
        header: &TurnHeader,
        prompt: &PromptSpec,
    ) -> Result<(), Violation> {
        let (Some(steps), Some(key)) = (&definition.steps, header.location.step()) else {
            return Ok(());
        };
        self.not_done(key)?;
        let Some(asks) = steps.agent(key) else {
            return Err(Violation(format!("{key} is asked, but is not an agent step")));
        };
        // Only the first prompt of a step chooses a session; reminders and retries continue in it.
        if header.turn.turn > 1 || header.attempt > 1 {
            return Ok(());
        }
        let kept =
            asks.session.as_ref().filter(|session| session.mode == Some(SessionMode::Sticky));
        let name = steps.document.name.as_deref().unwrap_or("workflow");
        let assignee = asks.assignee.as_deref().unwrap_or("main");
        // The default label comes from the specification and is built a second time here, because a
        // wrong default in core would share a session between assignees.
        let label =
            kept.map(|kept| kept.label.clone().unwrap_or_else(|| format!("wf:{name}:{assignee}")));
        let is_reset = kept.is_some_and(|kept| kept.reset == Some(true));
        let known = label.filter(|_| !is_reset).and_then(|label| self.steps.sessions.get(&label));
        let resumed = match &prompt.plan {
            SessionPlan::Resume(session) => Some(session),
            SessionPlan::Fresh(_) => None,
            other => return Err(Violation(format!("{key} begins with {other:?}"))),
        };
        must!(resumed == known, "{key} continues in {resumed:?} instead of {known:?}");
        Ok(())
    }
}
