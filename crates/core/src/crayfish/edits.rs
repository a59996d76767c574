//! Compares the document of a run with an edited one that the run should use from now on.
//!
//! A finished step is never repeated, so it must not have asked something else: its text, its input
//! and its schema stay, and so does everything that they depend on. A part that only decides how a
//! step runs, such as a time limit, may change. [`crate::steps`] makes a run begin again with the
//! edited document.

use std::collections::BTreeSet;

use super::Template;
use super::definition::StepsDefinition;
use super::document::{AgentStep, ExecStep, ForEach, Invocation, Order, Step, StepKind};
use super::name::StepId;
use super::path::{Namespace, Path};
use super::state::StepsState;

#[cfg(test)]
mod tests;

/// The differences between two documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edits {
    /// Steps that both have, and that differ in any part, in the order of the edited document.
    pub changed: Vec<StepId>,
    pub added: Vec<StepId>,
    pub removed: Vec<StepId>,
    /// The edits of finished steps, which the run cannot adopt.
    pub conflicts: Vec<Conflict>,
}

/// An edit that the run cannot adopt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conflict {
    /// A finished step would ask or run something else.
    Changed {
        step: StepId,
        /// The differences, such as `prompt` or `the variable x`.
        differences: Vec<String>,
    },
    /// An earlier edit removed the step, whose results are still there.
    Returned { step: StepId },
    /// The step has had more attempts than it would be allowed now.
    FewerAttempts { step: StepId, attempts: u32 },
    /// The loop has ended, and a later step is finished, which may have used its results.
    EndedLoop { step: StepId },
}

impl Edits {
    /// Compares the document of a run with an edited one.
    pub fn between(before: &StepsDefinition, now: &StepsDefinition, state: &StepsState) -> Self {
        let done = state.results.iter().filter(|(_, stored)| stored.ok);
        let finished: BTreeSet<&StepId> = done.map(|(key, _)| &key.step).collect();
        let known: BTreeSet<&StepId> =
            state.results.keys().chain(state.attempts.keys()).map(|key| &key.step).collect();
        let compared = Compared { before, now, finished: &finished, state };
        let mut edits = Self::default();
        for step in now.document.steps() {
            let id = step.id.clone();
            let Some(earlier) = before.document.find(id.as_str()) else {
                if known.contains(&id) {
                    edits.conflicts.push(Conflict::Returned { step: id.clone() });
                }
                edits.added.push(id);
                continue;
            };
            let earlier = before.document.step(earlier);
            let differences = compared.differences(earlier, step);
            let has_other_limits = has_other_limits(&earlier.kind, &step.kind);
            if !differences.is_empty() || has_other_limits {
                edits.changed.push(id.clone());
            }
            if finished.contains(&id) && !differences.is_empty() {
                edits.conflicts.push(Conflict::Changed { step: id, differences });
            } else if has_other_limits {
                edits.conflicts.extend(compared.limit_conflict(step));
            }
        }
        let is_gone = |step: &&Step| now.document.find(step.id.as_str()).is_none();
        let removed = before.document.steps().iter().filter(is_gone);
        edits.removed = removed.map(|step| step.id.clone()).collect();
        edits
    }
}

/// The document of a run and the edited one.
struct Compared<'a> {
    before: &'a StepsDefinition,
    now: &'a StepsDefinition,
    finished: &'a BTreeSet<&'a StepId>,
    state: &'a StepsState,
}

impl Compared<'_> {
    /// Names everything that makes a step ask or run something else.
    fn differences(&self, before: &Step, now: &Step) -> Vec<String> {
        let mut differences: Vec<String> =
            meaning(&before.kind, &now.kind).into_iter().map(|key| format!("`{key}`")).collect();
        let (around_before, around_now) = (loops(self.before, before), loops(self.now, now));
        let ids = |loops: &[&Step]| loops.iter().map(|step| step.id.clone()).collect::<Vec<_>>();
        if ids(&around_before) == ids(&around_now) {
            for (before, now) in around_before.iter().zip(&around_now) {
                let keys = meaning(&before.kind, &now.kind).into_iter();
                differences.extend(keys.map(|key| format!("`{key}` of the loop {}", now.id)));
            }
        } else {
            differences.push("the loops around it".to_owned());
        }
        let is_exec = matches!(now.kind, StepKind::Exec(_));
        let env = &self.now.document.env;
        if is_exec && self.before.document.env != *env {
            differences.push("`env` of the document".to_owned());
        }
        let env = env.values().filter(|_| is_exec).flat_map(Template::paths);
        let loops = around_now.iter().flat_map(|step| step.kind.paths());
        differences.extend(self.variables(now.kind.paths().into_iter().chain(loops).chain(env)));
        differences
    }

    /// Returns why a step cannot have these limits.
    fn limit_conflict(&self, step: &Step) -> Option<Conflict> {
        match &step.kind {
            StepKind::Agent(agent) => self.fewer_attempts(&step.id, agent),
            StepKind::While(_) => self.ended_loop(&step.id),
            StepKind::Exec(_) | StepKind::If(_) | StepKind::ForEach(_) => None,
        }
    }

    fn fewer_attempts(&self, id: &StepId, now: &AgentStep) -> Option<Conflict> {
        let asked = self.state.attempts.iter().filter(|(key, _)| key.step == *id);
        // A step that failed gets new attempts.
        let open = asked.filter(|(key, _)| !self.state.results.contains_key(*key));
        let attempts = open.map(|(_, attempts)| *attempts).max()?;
        let step = id.clone();
        (attempts > now.retries.get()).then_some(Conflict::FewerAttempts { step, attempts })
    }

    /// Returns a conflict if a step behind the loop is finished: with another number of iterations
    /// it would have read other results.
    fn ended_loop(&self, id: &StepId) -> Option<Conflict> {
        let steps = self.now.document.steps().iter();
        let mut behind = steps
            .skip_while(|step| step.id != *id)
            .skip(1)
            .filter(|step| loops(self.now, step).iter().all(|around| around.id != *id));
        let is_over = behind.any(|step| self.finished.contains(&step.id));
        is_over.then(|| Conflict::EndedLoop { step: id.clone() })
    }

    /// Names the variables of these paths that have another value.
    fn variables<'p>(&self, paths: impl Iterator<Item = &'p Path>) -> BTreeSet<String> {
        let names =
            paths.filter(|path| path.root == Namespace::Vars).map(|path| path.name.as_str());
        let names = names.filter(|name| self.before.vars.get(*name) != self.now.vars.get(*name));
        names.map(|name| format!("the variable `{name}`")).collect()
    }
}

/// Returns the loops around a step, innermost first.
fn loops<'a>(steps: &'a StepsDefinition, step: &Step) -> Vec<&'a Step> {
    let index = steps.document.find(step.id.as_str());
    let around = index.into_iter().flat_map(|index| steps.document.loops(index));
    around.map(|index| steps.document.step(index)).collect()
}

/// Returns the keys that differ and decide what a step asks or runs.
fn meaning(before: &StepKind, now: &StepKind) -> Vec<&'static str> {
    match (before, now) {
        (StepKind::Exec(before), StepKind::Exec(now)) => exec(before, now),
        (StepKind::Agent(before), StepKind::Agent(now)) => agent(before, now),
        (StepKind::ForEach(before), StepKind::ForEach(now)) => for_each(before, now),
        // Conditions are evaluated again.
        (StepKind::If(_), StepKind::If(_)) | (StepKind::While(_), StepKind::While(_)) => Vec::new(),
        (
            StepKind::Exec(_)
            | StepKind::Agent(_)
            | StepKind::If(_)
            | StepKind::ForEach(_)
            | StepKind::While(_),
            _,
        ) => vec!["kind"],
    }
}

fn exec(before: &ExecStep, now: &ExecStep) -> Vec<&'static str> {
    let command = match now.invocation {
        Invocation::Shell(_) => "shell",
        Invocation::Cmd { .. } => "run",
    };
    keys([
        (command, before.invocation != now.invocation),
        ("env", before.env != now.env),
        ("io", before.io != now.io),
    ])
}

fn agent(before: &AgentStep, now: &AgentStep) -> Vec<&'static str> {
    keys([
        ("prompt", before.prompt != now.prompt),
        ("input", before.input != now.input),
        ("schema", before.schema != now.schema),
    ])
}

fn for_each(before: &ForEach, now: &ForEach) -> Vec<&'static str> {
    let is_parallel = |order: Order| matches!(order, Order::Parallel { .. });
    keys([
        ("listPath", before.list != now.list),
        ("itemVar", before.item != now.item),
        // It decides which results an iteration sees.
        ("parallel", is_parallel(before.order) != is_parallel(now.order)),
    ])
}

fn keys<const N: usize>(compared: [(&'static str, bool); N]) -> Vec<&'static str> {
    compared.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

/// Returns whether the parts differ that only decide how a step runs.
fn has_other_limits(before: &StepKind, now: &StepKind) -> bool {
    match (before, now) {
        (StepKind::Exec(before), StepKind::Exec(now)) => {
            (before.timeout, before.retries) != (now.timeout, now.retries)
        }
        (StepKind::Agent(before), StepKind::Agent(now)) => {
            before.retries != now.retries
                || before.assignee != now.assignee
                || before.session != now.session
                || before.settings != now.settings
        }
        (StepKind::If(before), StepKind::If(now)) => before.condition != now.condition,
        (StepKind::ForEach(before), StepKind::ForEach(now)) => before.order != now.order,
        (StepKind::While(before), StepKind::While(now)) => {
            before.until != now.until
                || before.max_iters != now.max_iters
                || before.on_max_iters != now.on_max_iters
        }
        // Reported as another `kind`.
        (
            StepKind::Exec(_)
            | StepKind::Agent(_)
            | StepKind::If(_)
            | StepKind::ForEach(_)
            | StepKind::While(_),
            _,
        ) => false,
    }
}
