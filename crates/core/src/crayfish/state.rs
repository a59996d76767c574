//! Where a run of steps stands: its branches, and what is done.
//!
//! A branch is a thread of control: the document from its top, or one iteration of a parallel loop.
//! Everything here is a fold of [`StepEvent`]s, which say what is so from now on; the document is not
//! known here. A result is stored once under its key and never changes, so whatever was read from it
//! can be read again: a loop remembers which result its list was found in, not the list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::ids::{AgentId, SessionId};
use crate::value::Value;

use super::call::{Call, Output};
use super::gate::{Gate, Passage};
use super::key::{Iteration, Key};
use super::name::StepId;
use super::problem::Problem;
use super::stored::{Read, Stored};

mod branch;
mod gates;
mod offers;
#[cfg(test)]
mod tests;

pub use branch::{Branch, LoopFrame, Position};
pub(crate) use offers::Offer;

/// The most bytes of all results of a run: each reply holds them, the latest twice, and each call may
/// echo them.
pub const MOST_KEPT: u64 = 24 * 1024 * 1024;

/// A run of steps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StepsState {
    /// What is done, by key.
    pub results: BTreeMap<Key, Stored>,
    /// How many bytes that is.
    #[serde(default)]
    pub kept: u64,
    /// Of each step that was reached: the key of the latest result, in the order of iterations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latest: BTreeMap<StepId, Key>,
    /// Which attempt of an agent step was asked for last.
    pub attempts: BTreeMap<Key, u32>,
    /// The branches that have not ended.
    pub branches: BTreeMap<AgentId, Branch>,
    /// Those of them that have something to do next, in the order of their birth.
    pub ready: BTreeSet<(u64, AgentId)>,
    /// How many branches there have been.
    pub begun: u64,
    /// How many iterations there have been.
    #[serde(default)]
    pub turned: u64,
    /// What was wrong with the last output for an agent step that is asked again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub complaints: BTreeMap<Key, Vec<Problem>>,
    /// The conversations that steps share, by their label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<String, SessionId>,
    /// Where branches wait for each other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gates: BTreeMap<Gate, Passage>,
    /// What the caller handed in and no step has taken yet, by the name it came under.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offers: BTreeMap<String, Output>,
    /// The attempts that the caller says it answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims: BTreeMap<Key, u32>,
    /// What the caller handed in for an attempt that is over.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stale: BTreeSet<String>,
}

/// What an agent step leaves whose answer is valid.
pub fn accepted(answer: Json) -> Json {
    let fields = [("ok", true.into()), ("json", answer)];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Something that is so from now on, of one branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEvent {
    /// It exists.
    Begun {
        /// The iterations that it was born into.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        born: Vec<Iteration>,
        /// Whose loop it is an iteration of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<AgentId>,
    },
    /// It is at a step, which is being done.
    Entered {
        /// The step.
        step: StepId,
        /// The gate that it passes, and how many may be inside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gate: Option<(Gate, u32)>,
    },
    /// It waits until another branch has left a gate.
    Parked {
        /// The gate.
        gate: Gate,
        /// How many may be inside.
        most: u32,
    },
    /// The caller says what it knows.
    Called(Box<Call>),
    /// A step takes an output of the caller.
    Takes {
        /// The name it came under.
        name: String,
    },
    /// An output of the caller is for an attempt that is over.
    Ignores {
        /// The name it came under.
        name: String,
    },
    /// An agent step asks for this attempt.
    Asks {
        /// The step.
        key: Key,
        /// Which attempt, from 1.
        attempt: u32,
        /// What was wrong with the one before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        errors: Vec<Problem>,
    },
    /// Later steps with this label go on in this conversation.
    Keeps {
        /// The label.
        label: String,
        /// The conversation.
        session: SessionId,
    },
    /// A step is done.
    Done {
        /// The step.
        key: Key,
        /// What it left.
        stored: Stored,
    },
    /// A step had been done already.
    Met {
        /// The step.
        key: Key,
    },
    /// It enters a loop.
    Loops {
        /// The loop.
        turning: LoopFrame,
        /// The steps of its body whose earlier results are not seen any more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hides: Vec<StepId>,
    },
    /// An iteration of its innermost loop begins.
    Turns {
        /// Which, from 0.
        number: u32,
    },
    /// The iterations of its innermost loop begin, each as a branch of its own.
    Splits,
    /// It leaves its innermost loop.
    Leaves,
    /// It fails at a step.
    Fails {
        /// The step.
        key: Key,
        /// What it left all the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stored: Option<Stored>,
        /// Whether a loop around it collects what fails.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        contained: bool,
    },
    /// It does the step again that failed.
    Revived,
    /// It has come to its end.
    Ended,
}

impl StepsState {
    /// What was stored and has to be read before anything is decided.
    pub fn unread(&self) -> impl Iterator<Item = (&Key, &Value)> {
        let unread = self.results.iter().filter(|(_, stored)| stored.json().is_none());
        unread.map(|(key, stored)| (key, &stored.value))
    }

    /// What a stored result says.
    pub fn read(&mut self, key: &Key, json: Json) {
        if let Some(stored) = self.results.get_mut(key) {
            stored.read = Read(Some(Arc::new(json)));
        }
    }

    /// Makes `fact` so, of `agent`. A fact about a branch that is not there changes nothing.
    pub fn apply(&mut self, agent: &AgentId, fact: &StepEvent) {
        match fact {
            StepEvent::Begun { born, parent } => self.begin(agent, born.clone(), parent.clone()),
            StepEvent::Asks { key, attempt, errors } => {
                if !self.attempts.contains_key(key) {
                    // What was said of its step was said of this key.
                    self.attempts.remove(&Key::plain(key.step.clone()));
                }
                self.attempts.insert(key.clone(), *attempt);
                self.complaints.insert(key.clone(), errors.clone());
            }
            StepEvent::Keeps { label, session } => {
                self.sessions.insert(label.clone(), session.clone());
            }
            StepEvent::Called(call) => self.call(call),
            StepEvent::Takes { name } => drop(self.offers.remove(name)),
            StepEvent::Ignores { name } => {
                self.offers.remove(name);
                self.stale.insert(name.clone());
            }
            StepEvent::Parked { gate, most } => self.park(agent, gate, *most),
            StepEvent::Entered { gate, .. } => {
                if let Some((gate, most)) = gate {
                    self.pass(agent, gate, *most);
                }
                self.moves(agent, fact);
            }
            StepEvent::Fails { key, stored, contained } => {
                if let Some(stored) = stored {
                    self.store(key, stored);
                    self.reach(key);
                }
                self.fail(agent, key, *contained);
            }
            StepEvent::Revived => self.revive(agent),
            StepEvent::Done { key, stored } => {
                self.store(key, stored);
                self.complaints.remove(key);
                self.meet(agent, key);
            }
            StepEvent::Met { key } => self.meet(agent, key),
            StepEvent::Ended => self.end(agent),
            StepEvent::Loops { .. }
            | StepEvent::Turns { .. }
            | StepEvent::Splits
            | StepEvent::Leaves => {
                let turns = matches!(fact, StepEvent::Turns { .. });
                self.turned = self.turned.saturating_add(turns.into());
                self.moves(agent, fact);
            }
        }
        self.look(agent);
    }

    fn store(&mut self, key: &Key, stored: &Stored) {
        self.kept = self.kept.saturating_add(stored.value.len());
        if let Some(before) = self.results.insert(key.clone(), stored.clone()) {
            self.kept = self.kept.saturating_sub(before.value.len());
        }
    }

    /// What a caller brought is a result when its step is reached, not before.
    fn reach(&mut self, key: &Key) {
        let latest = self.latest.entry(key.step.clone()).or_insert_with(|| key.clone());
        if *latest < *key {
            latest.clone_from(key);
        }
    }

    fn begin(&mut self, agent: &AgentId, born: Vec<Iteration>, parent: Option<AgentId>) {
        let number = self.begun;
        self.begun = number.saturating_add(1);
        self.turned = self.turned.saturating_add(1);
        let (loops, at, seen) = (Vec::new(), Position::Start, BTreeMap::new());
        self.branches.insert(agent.clone(), Branch { number, parent, born, loops, at, seen });
    }

    fn call(&mut self, call: &Call) {
        for (key, stored) in &call.results {
            self.store(key, stored);
        }
        if call.alone {
            self.attempts.clone_from(&call.attempts);
        }
        self.offers.clone_from(&call.outputs);
        self.claims.clone_from(&call.attempts);
        self.stale.clear();
    }

    /// What an earlier call handed in is not waited for.
    pub fn forget_call(&mut self) {
        self.offers.clear();
        self.claims.clear();
        self.stale.clear();
    }

    fn moves(&mut self, agent: &AgentId, fact: &StepEvent) {
        self.leaves_the_start(agent);
        if let Some(branch) = self.branches.get_mut(agent) {
            branch.moves(fact);
        }
    }

    /// Whoever has begun is not idle any more.
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

    fn meet(&mut self, agent: &AgentId, key: &Key) {
        self.leaves_the_gate(agent);
        self.leaves_the_start(agent);
        self.reach(key);
        if let Some(branch) = self.branches.get_mut(agent) {
            branch.seen.insert(key.step.clone(), Some(key.clone()));
            branch.at = Position::Behind(key.step.clone());
        }
    }

    /// A branch that has ended is counted by its parent, which remembers what the last item saw.
    fn end(&mut self, agent: &AgentId) {
        self.leaves_the_start(agent);
        let Some(branch) = self.branches.remove(agent) else { return };
        self.leave(branch.number, agent);
        self.ready.remove(&(branch.number, agent.clone()));
        let Some((id, parent)) =
            branch.parent.and_then(|id| Some((id.clone(), self.branches.get_mut(&id)?)))
        else {
            return;
        };
        let count = parent.loops.last().and_then(|turning| turning.count);
        let is_last = branch.born.last().map(|born| born.number.saturating_add(1)) == count;
        if let Position::Waits { left, failed, last, .. } = &mut parent.at {
            *left = left.saturating_sub(1);
            if matches!(branch.at, Position::Failed(_)) {
                *failed = failed.saturating_sub(1);
            }
            if is_last {
                *last = branch.seen;
            }
        }
        self.look(&id);
    }

    fn fail(&mut self, agent: &AgentId, key: &Key, contained: bool) {
        self.leaves_the_gate(agent);
        self.leaves_the_start(agent);
        let Some(branch) = self.branches.get_mut(agent) else { return };
        if matches!(branch.at, Position::Failed(_)) {
            return;
        }
        branch.at = Position::Failed(key.clone());
        if contained {
            if let Some(Position::Waits { failed, .. }) = self.parent_at(agent) {
                *failed = failed.saturating_add(1);
            }
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
            self.count_broken(agent, -1);
        }
    }

    /// Every loop around a branch that failed for good begins no other iteration.
    fn count_broken(&mut self, agent: &AgentId, more: i32) {
        let mut around = self.branches.get(agent).and_then(|branch| branch.parent.clone());
        while let Some(branch) = around.as_ref().and_then(|parent| self.branches.get_mut(parent)) {
            if let Position::Waits { broken, .. } = &mut branch.at {
                *broken = broken.saturating_add_signed(more);
            }
            around.clone_from(&branch.parent);
        }
    }

    /// Whether a branch has something to do next.
    fn look(&mut self, agent: &AgentId) {
        let Some(branch) = self.branches.get(agent) else { return };
        let place = (branch.number, agent.clone());
        let is_ready = match &branch.at {
            Position::Start
            | Position::Before(_)
            | Position::Behind(_)
            | Position::Body
            | Position::Round => !self.is_parked(&place),
            // What failed in an iteration that is collected ends it, once nothing runs there.
            Position::Waits { left, idle, failed, .. } => {
                *left == 0 || (*failed > 0 && *left == failed.saturating_add(*idle))
            }
            Position::In(_) | Position::Failed(_) => false,
        };
        if is_ready {
            self.ready.insert(place);
        } else {
            self.ready.remove(&place);
        }
    }

    /// The branch that is to go on next.
    pub fn next_ready(&self) -> Option<&AgentId> {
        let ready = self.ready.iter().map(|(_, agent)| agent);
        ready.chain(self.next_admitted()).find(|agent| self.may_go_on(agent))
    }

    /// When an iteration of a loop has failed, no other one begins.
    pub(super) fn may_go_on(&self, agent: &AgentId) -> bool {
        let branch = self.branches.get(agent);
        branch.is_some_and(|branch| branch.at != Position::Start || !self.is_doomed(branch))
    }

    /// Whether something has failed in the loop that a branch was born into.
    fn is_doomed(&self, branch: &Branch) -> bool {
        let parent = branch.parent.as_ref().and_then(|parent| self.branches.get(parent));
        let at = parent.map(|parent| &parent.at);
        matches!(
            at,
            Some(Position::Waits { failed: 1.., .. } | Position::Waits { broken: 1.., .. })
        )
    }
}
