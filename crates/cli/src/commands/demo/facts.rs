//! Collects the facts that the demo shows from a journal.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::agent::{Location, SessionPlan};
use raymond_core::budget::Micros;
use raymond_core::ids::{AgentId, SessionId, StateName, TurnId};
use raymond_core::run::Event;
use raymond_core::value::Value;
use raymond_engine::inspect::Inspection;

/// The facts of one run.
pub(super) struct Facts {
    /// How often each turn was settled.
    pub(super) settled: BTreeMap<TurnId, u32>,
    /// The charges for interrupted attempts.
    pub(super) interrupted: Micros,
    /// The result of each agent.
    pub(super) results: Vec<String>,
    started: Vec<(TurnId, SessionPlan)>,
    states: BTreeMap<(AgentId, u32), StateName>,
    workers_at_once: usize,
}

impl Facts {
    pub(super) fn of(seen: &Inspection) -> Self {
        let results = seen.head.run.results();
        let mut facts = Self {
            settled: BTreeMap::new(),
            interrupted: Micros::ZERO,
            results: results
                .map(|(agent, value)| format!("{agent:<12}  {}", text(value)))
                .collect(),
            started: Vec::new(),
            states: BTreeMap::new(),
            workers_at_once: 0,
        };
        let mut at_work = BTreeSet::new();
        // An unreadable record ends the facts. The demo then fails, because its claims do not hold.
        let steps = seen.records().map_while(Result::ok).flat_map(|record| record.steps);
        for event in steps.flat_map(|step| step.events) {
            facts.note(&event, &mut at_work);
        }
        facts
    }

    fn note(&mut self, event: &Event, at_work: &mut BTreeSet<AgentId>) {
        if let Event::VisitEntered { agent, location: Location::State(state), visit, .. } = event {
            self.states.insert((agent.clone(), *visit), state.clone());
        } else if let Event::TurnStarted { turn, plan, .. } = event {
            self.started.push((turn.clone(), plan.clone()));
            // `main` forks the workers and is not one of them.
            if turn.agent != AgentId::main() {
                at_work.insert(turn.agent.clone());
                self.workers_at_once = self.workers_at_once.max(at_work.len());
            }
        } else if let Event::TurnSettled { turn, .. } = event {
            *self.settled.entry(turn.clone()).or_default() += 1;
            at_work.remove(&turn.agent);
        } else if let Event::TurnInterrupted { charge, .. } = event {
            self.interrupted = self.interrupted.plus(charge.amount);
        }
    }

    /// Returns the largest number of workers that worked at the same time.
    pub(super) const fn workers_at_once(&self) -> usize {
        self.workers_at_once
    }

    /// Returns which prompt worked in which conversation; conversations are named A, B, C in order.
    pub(super) fn sessions(&self) -> Vec<String> {
        let mut names: Vec<&SessionId> = Vec::new();
        let mut lines = Vec::new();
        let mut before: Option<&StateName> = None;
        for (turn, plan) in &self.started {
            let Some(state) = self.states.get(&(turn.agent.clone(), turn.visit)) else { continue };
            if let Some(how) = conversation(plan, &mut names) {
                let returned = match (plan, before) {
                    (SessionPlan::Resume(_), Some(callee)) => {
                        format!(", with the result of {}", callee.stem())
                    }
                    _ => String::new(),
                };
                lines.push(format!("{state:<8}  {how}{returned}"));
            }
            before = Some(state);
        }
        lines
    }
}

fn conversation<'a>(plan: &'a SessionPlan, names: &mut Vec<&'a SessionId>) -> Option<String> {
    let mut name = |session: &'a SessionId| {
        let known = names.iter().position(|name| *name == session);
        let index = known.unwrap_or_else(|| {
            names.push(session);
            names.len() - 1
        });
        char::from(b'A' + u8::try_from(index % 26).unwrap_or(0))
    };
    match plan {
        SessionPlan::Fresh(session) => Some(format!("opens conversation {}", name(session))),
        SessionPlan::Resume(session) | SessionPlan::Continue { session, .. } => {
            Some(format!("continues {}", name(session)))
        }
        SessionPlan::Branch { from, to } => {
            let from = name(from);
            Some(format!("works in {}, a branch of {from}", name(to)))
        }
        // Scripts carry the conversation of their agent along but say nothing in it.
        SessionPlan::Carry => None,
    }
}

/// Returns a value inline; the demo uses no value that is large enough for a blob.
fn text(value: &Value) -> &str {
    match value {
        Value::Inline(text) => text,
        Value::Blob(_) => "…",
    }
}
