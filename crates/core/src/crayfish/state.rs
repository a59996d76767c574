//! The state of a run of steps: its branches and its results.
//!
//! A branch is a thread of control: the document from its top, or one iteration of a parallel loop.
//! The state is a fold of [`StepEvent`]s and does not know the document. A successful result never
//! changes, so a value read from it can be read again. A loop therefore remembers which result
//! contains its list, not the list itself. [`super::walk`] computes the next event of a branch.
//!
//! Positions of a branch ([`Position`]): it begins at `Start`. It is `In` a step that runs, and
//! `Behind` it afterwards. It enters a loop at `Round`. Each sequential iteration begins at `Body`;
//! parallel iterations are branches, for which it `Waits`. After the loop it is `Behind` the loop.
//! A failure leaves it `Failed` at a step, and a resume puts it `Before` that step.
//!
//! Counters:
//!
//! - `begun`: branches ever created; numbers them by age and makes the ids of their agents unique
//! - `turned`: iterations ever begun, for the limit [`super::walk::MOST_TURNS`]
//! - `kept`: bytes of all results, for the limit [`MOST_KEPT`]
//!
//! Agent steps: `attempts` has the attempt that a step asked for last, `limits` the attempts that a
//! resume added, `complaints` the errors that the request repeats. `latest` names the result that a
//! reply also shows under the id of its step. `lists` has the lengths of the items of loops.
//!
//! Only after the document of a run was edited: `settled` has the failures that are not repeated,
//! `repeated` the others until their steps have run, and `edited` the steps whose earlier errors
//! are no longer about their question.
//!
//! Only in runs of a caller, and only until the next call: `offers` has the outputs that no step
//! has taken, `claims` the attempts that the caller says it answers, and `stale` the outputs for
//! attempts that are over, which the reply reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value as Json;

use crate::ids::{AgentId, SessionId};
use crate::value::Value;

use super::call::{Call, Output};
use super::gate::{Gate, Passage};
use super::key::{Iteration, StepKey};
use super::name::StepId;
use super::problem::Problem;
use super::stored::{ParsedJson, Stored};

mod branch;
mod event;
mod gates;
mod loop_frame;
mod offers;
#[cfg(test)]
mod tests;

pub use branch::{Branch, Position};
pub use event::StepEvent;
pub use loop_frame::LoopFrame;
pub(crate) use offers::Offer;

/// The most bytes of all results of a run. Every reply contains them, the latest twice, and every
/// call may send them back.
// Twice this size leaves room for the rest in a request of at most 64 MiB.
pub const MOST_KEPT: u64 = 24 * 1024 * 1024;

/// The state of a run of steps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StepsState {
    /// Results by key.
    #[serde(serialize_with = "without_readings")]
    pub results: BTreeMap<StepKey, Stored>,
    /// The size of all results in bytes.
    #[serde(default)]
    pub kept: u64,
    /// The key of the latest result of each step that was reached, in the order of iterations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latest: BTreeMap<StepId, StepKey>,
    /// How many iterations each loop had whose items a path reads, by the key of the loop.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lists: BTreeMap<StepKey, u32>,
    /// The attempt of each agent step that was requested last.
    pub attempts: BTreeMap<StepKey, u32>,
    /// The last attempt of each agent step to which a resume gave more attempts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<StepKey, u32>,
    /// Failures that count as results, although their steps will be reached again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub settled: BTreeSet<StepKey>,
    /// Failures that the run still has to repeat, even if another edit comes first.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub repeated: BTreeSet<StepKey>,
    /// Agent steps that were edited after they had asked or failed, until they ask again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub edited: BTreeSet<StepKey>,
    /// The branches that have not ended.
    pub branches: BTreeMap<AgentId, Branch>,
    /// The branches that can continue, oldest first.
    // Kept beside `branches`, so that the next decision does not look at every branch.
    pub ready: BTreeSet<(u64, AgentId)>,
    /// How many branches have been created.
    pub begun: u64,
    /// How many iterations have begun.
    #[serde(default)]
    pub turned: u64,
    /// The results that the document could see at its end, if it has an `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<BTreeMap<StepId, Option<StepKey>>>,
    /// The errors of the last output, for an agent step that asks again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub complaints: BTreeMap<StepKey, Vec<Problem>>,
    /// The conversations that steps share, by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<String, SessionId>,
    /// The gates at which branches wait for each other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gates: BTreeMap<Gate, Passage>,
    /// Outputs of the caller that no step has taken yet, by the name they were sent under.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "outputs_without_readings"
    )]
    pub offers: BTreeMap<String, Output>,
    /// The attempts that the caller says it answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<StepKey, u32>,
    /// Outputs of the caller for attempts that are over.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stale: BTreeSet<String>,
}

/// Serializes results without their parsed forms: a snapshot would contain everything twice.
fn without_readings<S: Serializer>(
    results: &BTreeMap<StepKey, Stored>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(results.iter().map(|(key, stored)| (key, stored.without_reading())))
}

fn outputs_without_readings<S: Serializer>(
    outputs: &BTreeMap<String, Output>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let without = |output: &Output| Output {
        stored: output.stored.without_reading(),
        verdict: output.verdict.clone(),
    };
    serializer.collect_map(outputs.iter().map(|(name, output)| (name, without(output))))
}

/// Returns the result of an agent step with a valid answer.
pub fn accepted(answer: Json) -> Json {
    let fields = [("ok", true.into()), ("json", answer)];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl StepsState {
    /// Iterates over the results whose JSON must be loaded before the next decision.
    pub fn unread(&self) -> impl Iterator<Item = (&StepKey, &Value)> {
        let unread = self.results.iter().filter(|(_, stored)| stored.json().is_none());
        unread.map(|(key, stored)| (key, &stored.value))
    }

    /// Sets the loaded JSON of a result.
    pub fn read(&mut self, key: &StepKey, json: Json) {
        if let Some(stored) = self.results.get_mut(key) {
            stored.read = ParsedJson(Some(Arc::new(json)));
        }
    }

    /// Applies an event of `agent`. An event about an unknown branch changes nothing.
    pub fn apply(&mut self, agent: &AgentId, event: &StepEvent) {
        match event {
            StepEvent::Begun { born, parent, settled, edited, repeated } => {
                self.begin(agent, born.clone(), parent.clone());
                self.settle(settled, edited, repeated);
            }
            StepEvent::Asked { key, attempt, errors, limit } => {
                if !self.attempts.contains_key(key) {
                    // The caller gave an attempt for the step's id: it applied to this key only.
                    self.attempts.remove(&StepKey::plain(key.step.clone()));
                }
                self.attempts.insert(key.clone(), *attempt);
                self.limits.extend(limit.map(|limit| (key.clone(), limit)));
                self.edited.remove(key);
                // Kept until the step has a result, because every later reply repeats the open
                // request.
                self.complaints.insert(key.clone(), errors.clone());
            }
            StepEvent::ConversationKept { label, session } => {
                self.sessions.insert(label.clone(), session.clone());
            }
            StepEvent::Called(call) => self.call(call),
            StepEvent::OutputTaken { name } => drop(self.offers.remove(name)),
            StepEvent::OutputIgnored { name } => {
                self.offers.remove(name);
                self.stale.insert(name.clone());
            }
            StepEvent::Parked { gate, limit } => self.park(agent, gate, *limit),
            StepEvent::Entered { gate, .. } => {
                if let Some((gate, limit)) = gate {
                    self.pass(agent, gate, *limit);
                }
                self.moves(agent, event);
            }
            StepEvent::Failed { key, stored, contained } => {
                self.settled.remove(key);
                self.repeated.remove(key);
                if let Some(stored) = stored {
                    // The reply shows the failed result, but no step of this branch sees it: none
                    // follows.
                    self.store(key, stored);
                    self.reach(key);
                }
                self.fail(agent, key, *contained);
            }
            StepEvent::Revived => self.revive(agent),
            StepEvent::Done { key, stored } => {
                self.store(key, stored);
                self.settled.remove(key);
                self.repeated.remove(key);
                self.complaints.remove(key);
                self.meet(agent, key);
            }
            StepEvent::Reused { key } => self.meet(agent, key),
            StepEvent::Concluded => self.conclude(agent),
            StepEvent::Ended => self.end(agent),
            StepEvent::LoopEntered { .. }
            | StepEvent::IterationBegun { .. }
            | StepEvent::LoopSplit
            | StepEvent::LoopLeft => {
                // Only sequential iterations: `begin` counts those of parallel loops.
                let turns = matches!(event, StepEvent::IterationBegun { .. });
                self.turned = self.turned.saturating_add(turns.into());
                self.moves(agent, event);
            }
        }
        // Any event can change whether its branch can continue. `end` and `fail` look at the
        // parent.
        self.look(agent);
    }

    fn store(&mut self, key: &StepKey, stored: &Stored) {
        // A result that is replaced gives its bytes back below.
        self.kept = self.kept.saturating_add(stored.value.len());
        if let Some(before) = self.results.insert(key.clone(), stored.clone()) {
            self.kept = self.kept.saturating_sub(before.value.len());
        }
    }

    /// Makes a result the latest one of its step. A result that a caller brought becomes visible
    /// only here, when its step is reached.
    fn reach(&mut self, key: &StepKey) {
        let latest = self.latest.entry(key.step.clone()).or_insert_with(|| key.clone());
        // Parallel iterations finish in any order, but the latest is the one with the highest
        // number.
        if *latest < *key {
            latest.clone_from(key);
        }
    }

    fn begin(&mut self, agent: &AgentId, born: Vec<Iteration>, parent: Option<AgentId>) {
        let number = self.begun;
        self.begun = number.saturating_add(1);
        // A parallel iteration is a branch. The main branch counts as one iteration, too.
        self.turned = self.turned.saturating_add(1);
        let (loops, at, seen) = (Vec::new(), Position::Start, BTreeMap::new());
        self.branches.insert(agent.clone(), Branch { number, parent, born, loops, at, seen });
    }

    /// Keeps what an edited document needs to know about its earlier execution.
    fn settle(&mut self, settled: &[StepKey], edited: &[StepKey], repeated: &[StepKey]) {
        self.settled.extend(settled.iter().cloned());
        self.repeated.extend(repeated.iter().cloned());
        self.edited.extend(edited.iter().cloned());
        // An answer to the earlier question says nothing about the edited one.
        self.complaints.retain(|key, _| !edited.contains(key));
    }

    fn call(&mut self, call: &Call) {
        // Empty for a run that an earlier call started: its own record counts.
        for (key, stored) in &call.results {
            self.store(key, stored);
        }
        // With a journal the run knows its attempts; without one only the caller does.
        if call.alone {
            self.attempts.clone_from(&call.attempts);
        }
        self.offers.clone_from(&call.outputs);
        self.claims.clone_from(&call.attempts);
        // Outputs belong to one call: what it did not use is not kept for the next.
        self.stale.clear();
    }

    /// Drops what an earlier call brought: it does not apply to the next one.
    pub fn forget_call(&mut self) {
        self.offers.clear();
        self.claims.clear();
        self.stale.clear();
    }

    fn moves(&mut self, agent: &AgentId, event: &StepEvent) {
        // Before the move, because afterwards the branch is no longer at its start.
        self.leaves_the_start(agent);
        if let Some(branch) = self.branches.get_mut(agent) {
            if let Some((list, count)) =
                branch.left_list().filter(|_| *event == StepEvent::LoopLeft)
            {
                branch.seen.insert(list.step.clone(), Some(list.clone()));
                self.lists.insert(list, count);
            }
            branch.moves(event);
        }
    }

    /// Counts a branch that leaves its start as no longer idle in its parent.
    fn leaves_the_start(&mut self, agent: &AgentId) {
        if self.branches.get(agent).is_some_and(|branch| branch.at == Position::Start)
            && let Some(Position::Waits { idle, .. }) = self.parent_at(agent)
        {
            *idle = idle.saturating_sub(1);
        }
    }

    fn leaves_the_gate(&mut self, agent: &AgentId) {
        if let Some(number) = self.branches.get(agent).map(|branch| branch.number) {
            self.leave(number, agent);
        }
    }

    fn parent_at(&mut self, agent: &AgentId) -> Option<&mut Position> {
        let parent = self.branches.get(agent)?.parent.clone()?;
        self.branches.get_mut(&parent).map(|branch| &mut branch.at)
    }

    fn meet(&mut self, agent: &AgentId, key: &StepKey) {
        self.leaves_the_gate(agent);
        self.leaves_the_start(agent);
        self.reach(key);
        if let Some(branch) = self.branches.get_mut(agent) {
            branch.seen.insert(key.step.clone(), Some(key.clone()));
            branch.at = Position::Behind(key.step.clone());
        }
    }

    fn conclude(&mut self, agent: &AgentId) {
        self.conclusion = self.branches.get(agent).map(|branch| branch.seen.clone());
    }

    /// Ends a branch: its parent counts it, and keeps what the last iteration could see.
    fn end(&mut self, agent: &AgentId) {
        // An iteration can end at its start: its body is empty, or its loop fails before it begins.
        self.leaves_the_start(agent);
        let Some(branch) = self.branches.remove(agent) else { return };
        self.leave(branch.number, agent);
        self.ready.remove(&(branch.number, agent.clone()));
        let Some((id, parent)) =
            branch.parent.and_then(|id| Some((id.clone(), self.branches.get_mut(&id)?)))
        else {
            return;
        };
        let count = parent.loops.last().and_then(|frame| frame.count);
        // Steps after the loop see the results of its last item, whichever iteration ends last.
        let is_last = branch.born.last().map(|born| born.number.saturating_add(1)) == count;
        if let Position::Waits { left, failed, last, .. } = &mut parent.at {
            *left = left.saturating_sub(1);
            // A collected failure was counted when it happened; its end takes it back.
            if matches!(branch.at, Position::Failed(_)) {
                *failed = failed.saturating_sub(1);
            }
            if is_last {
                *last = branch.seen;
            }
        }
        self.look(&id);
    }

    fn fail(&mut self, agent: &AgentId, key: &StepKey, contained: bool) {
        self.leaves_the_gate(agent);
        self.leaves_the_start(agent);
        let Some(branch) = self.branches.get_mut(agent) else { return };
        // A second failure of the same branch must not be counted twice by its parents.
        if matches!(branch.at, Position::Failed(_)) {
            return;
        }
        branch.at = Position::Failed(key.clone());
        if contained {
            if let Some(Position::Waits { failed, .. }) = self.parent_at(agent) {
                *failed = failed.saturating_add(1);
            }
            // The parent continues if this was the last iteration that was running: it then fails,
            // too.
            if let Some(parent) = self.branches.get(agent).and_then(|branch| branch.parent.clone())
            {
                self.look(&parent);
            }
        } else {
            self.count_broken(agent, 1);
        }
    }

    fn revive(&mut self, agent: &AgentId) {
        let Some(branch) = self.branches.get_mut(agent) else { return };
        if let Position::Failed(key) = &branch.at {
            branch.at = Position::Before(key.step.clone());
            // Only failures that no loop collects are revived, so this one was counted as broken.
            self.count_broken(agent, -1);
        }
    }

    /// Adjusts the number of permanent failures in every loop around a branch: such a loop begins
    /// no other iteration.
    fn count_broken(&mut self, agent: &AgentId, more: i32) {
        let mut around = self.branches.get(agent).and_then(|branch| branch.parent.clone());
        while let Some(branch) = around.as_ref().and_then(|parent| self.branches.get_mut(parent)) {
            if let Position::Waits { broken, .. } = &mut branch.at {
                *broken = broken.saturating_add_signed(more);
            }
            // Loops may be nested, and each of them must stop.
            around.clone_from(&branch.parent);
        }
    }

    /// Updates whether a branch can continue.
    fn look(&mut self, agent: &AgentId) {
        let Some(branch) = self.branches.get(agent) else { return };
        let place = (branch.number, agent.clone());
        let is_ready = match &branch.at {
            Position::Start
            | Position::Before(_)
            | Position::Behind(_)
            | Position::Body
            | Position::Round => !self.is_parked(&place),
            // A collected failure ends the loop once all remaining iterations have failed or not
            // begun.
            Position::Waits { left, idle, failed, .. } => {
                *left == 0 || (*failed > 0 && *left == failed.saturating_add(*idle))
            }
            // The end of a turn, an answer or a resume moves such a branch.
            Position::In(_) | Position::Failed(_) => false,
        };
        if is_ready {
            self.ready.insert(place);
        } else {
            self.ready.remove(&place);
        }
    }

    /// Returns the branch that continues next: the oldest one that may.
    pub fn next_ready(&self) -> Option<&AgentId> {
        let ready = self.ready.iter().map(|(_, agent)| agent);
        // Branches at an open gate come after those that wait for nothing.
        ready.chain(self.next_admitted()).find(|agent| self.may_continue(agent))
    }

    /// Returns whether a branch may continue. After a failure in a loop, no other iteration begins.
    pub(super) fn may_continue(&self, agent: &AgentId) -> bool {
        // Iterations that have begun run to their end, so only one at its start is refused.
        let branch = self.branches.get(agent);
        branch.is_some_and(|branch| branch.at != Position::Start || !self.is_doomed(branch))
    }

    /// Returns whether an iteration of the branch's loop has failed.
    fn is_doomed(&self, branch: &Branch) -> bool {
        let parent = branch.parent.as_ref().and_then(|parent| self.branches.get(parent));
        let at = parent.map(|parent| &parent.at);
        matches!(
            at,
            Some(Position::Waits { failed: 1.., .. } | Position::Waits { broken: 1.., .. })
        )
    }
}
