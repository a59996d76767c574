//! The costs of turns whose records are discarded, read from their transcripts.
//!
//! A damaged journal may not tell the end of a turn, or not even that it started; its transcript does. The
//! records that can be read tell which client wrote a transcript; otherwise each that the run may ask is
//! tried, and the most that one of them finds in it counts. If one of them misses a part, that is a lower
//! bound.

use std::collections::{BTreeMap, BTreeSet};

use raymond_backends::contract::{Answer, Attached, Started};
use raymond_backends::process::restarted_since;
use raymond_core::budget::Cost;
use raymond_core::ids::{BackendName, TurnId};
use raymond_core::machine::SessionPlan;
use raymond_core::run::effect::in_flight;
use raymond_core::run::{Attempt, Event, Record, Run, TranscriptCost};
use raymond_core::scheduler::{Lane, Turn};
use raymond_store::RunPaths;

use crate::boot;
use crate::project::Project;
use crate::recovery;
use crate::runner::{Backends, config_home, transcript};

/// Whether the machine ran on since the run was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BootState {
    /// It did.
    SameBoot,
    /// It restarted: the ends of transcripts may be lost.
    Restarted,
}

/// What records tell about the transcripts beside them.
#[derive(Debug, Default)]
pub(super) struct TranscriptIndex {
    /// The attempts of records that are kept, and are not in flight: their ends are recorded.
    settled: BTreeSet<Attempt>,
    plans: BTreeMap<Attempt, SessionPlan>,
    lanes: BTreeMap<TurnId, Lane>,
    backends_asked: BTreeSet<BackendName>,
}

impl TranscriptIndex {
    /// Learns from a record.
    pub(super) fn note(&mut self, record: &Record) {
        for event in record.steps.iter().flat_map(|step| &step.events) {
            match event {
                Event::RunStarted(start) => {
                    self.backends_asked.extend(start.backends.iter().cloned())
                }
                Event::TurnQueued { turn, lane, .. } => {
                    self.lanes.insert(turn.clone(), lane.clone());
                }
                Event::TurnStarted { turn, attempt, plan, .. } => {
                    self.plans.insert((turn.clone(), *attempt), plan.clone());
                }
                _ => {}
            }
        }
    }

    /// The records up to here are kept.
    pub(super) fn mark_kept(&mut self, run: &Run) {
        self.settled = self.plans.keys().cloned().collect();
        for turn in in_flight(run) {
            self.settled.remove(&(turn.id.clone(), turn.attempt));
        }
        self.backends_asked.insert(run.settings.backend.clone());
    }

    /// What each attempt cost that is not settled and has a transcript.
    pub(super) fn costs(
        &self,
        project: &Project,
        (run, paths): (&Run, &RunPaths),
        backends: &Backends,
        machine: BootState,
    ) -> BTreeMap<Attempt, TranscriptCost> {
        // A directory that cannot be read says nothing: what is not known there is not known.
        let names = project.disk.list(&paths.transcripts).unwrap_or_default();
        let attempts = names.iter().filter_map(|name| attempt_of(name.to_str()?));
        let open = attempts.filter(|attempt| !self.settled.contains(attempt));
        let attempt_cost = |attempt: Attempt| {
            let attempt_cost = self.attempt_cost(&attempt, (run, paths), backends, machine);
            (attempt, attempt_cost)
        };
        open.map(attempt_cost).collect()
    }

    fn attempt_cost(
        &self,
        attempt: &Attempt,
        (run, paths): (&Run, &RunPaths),
        backends: &Backends,
        machine: BootState,
    ) -> TranscriptCost {
        let backends_asked = match self.lanes.get(&attempt.0) {
            Some(Lane::Script) => return Cost::Free.into(),
            Some(Lane::Prompt(name)) => [name.clone()].into(),
            None => self.backends_asked.clone(),
        };
        let started = self.started(attempt, (run, paths));
        let machine = match restarted_since(&started.transcript) {
            Some(true) => BootState::Restarted,
            Some(false) => BootState::SameBoot,
            None => machine,
        };
        let found = backends_asked.iter().filter_map(|name| backends.get(name));
        let attempt_cost = found.map(|backend| cost_of_found(backend.attach(&started), machine));
        attempt_cost.reduce(TranscriptCost::or).unwrap_or_else(|| Cost::Unknown.into())
    }

    fn started(&self, attempt: &Attempt, (run, paths): (&Run, &RunPaths)) -> Started {
        let (turn, number) = attempt;
        let plan = self.plans.get(attempt).cloned();
        Started {
            nonce: run.nonce.clone(),
            turn: turn.clone(),
            attempt: *number,
            plan: plan.unwrap_or_else(|| SessionPlan::Fresh(turn.session(&run.nonce, 0))),
            transcript: transcript(&paths.transcripts, turn, *number),
            timeout: None,
            idle_timeout: None,
            cap: None,
            config_home: config_home(run.settings.config_home, &paths.homes, &turn.agent),
        }
    }
}

/// `main.3.1.2.jsonl`
fn attempt_of(name: &str) -> Option<Attempt> {
    let (turn, attempt) = name.strip_suffix(".jsonl")?.rsplit_once('.')?;
    Some((turn.parse().ok()?, attempt.parse().ok()?))
}

/// Returns what a turn in flight spent whose client is gone; none if it still runs.
pub fn turn_cost(paths: &RunPaths, turn: &Turn, found: Attached) -> Option<TranscriptCost> {
    if let Attached::Running = found {
        return None;
    }
    let transcript = transcript(&paths.transcripts, &turn.id, turn.attempt);
    let restarted = restarted_since(&transcript);
    let restarted = restarted.unwrap_or_else(|| boot::is_from_earlier_boot(&paths.journal));
    let machine = if restarted { BootState::Restarted } else { BootState::SameBoot };
    Some(cost_of_found(found, machine))
}

fn cost_of_found(found: Attached, machine: BootState) -> TranscriptCost {
    match (found, machine) {
        (Attached::Finished(answer), _) => cost_of_answer(&answer),
        (Attached::Absent { cost, .. }, BootState::SameBoot) => cost.into(),
        (Attached::Absent { cost, .. }, BootState::Restarted) => {
            recovery::after_restart(cost).into()
        }
        (Attached::Running | Attached::Unreadable { .. }, _) => Cost::Unknown.into(),
    }
}

fn cost_of_answer(answer: &Answer) -> TranscriptCost {
    match answer {
        Answer::Replied(reply) => TranscriptCost { cost: reply.cost, capped: reply.capped },
        Answer::Capped { cost, .. } => TranscriptCost { cost: *cost, capped: true },
        Answer::Failed { cost, .. } | Answer::Interrupted { cost, .. } => (*cost).into(),
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::budget::Micros;

    use super::*;

    // proves: A44
    #[test]
    fn a_capped_answer_is_traced_as_capped() {
        let cost = Cost::Reported(Micros(5));
        let (progressed, denied, session) = (true, Vec::new(), None);
        let capped = Answer::Capped { cost, progressed, denied, session };
        assert_eq!(cost_of_answer(&capped), TranscriptCost { cost, capped: true });
        let failed = Answer::Interrupted { cost, progressed, session: None };
        assert_eq!(cost_of_answer(&failed), TranscriptCost { cost, capped: false });
    }

    #[test]
    fn a_transcript_is_named_after_its_attempt() {
        let check = |name: &str, expected: Option<(&str, u32)>| {
            let expected = expected.map(|(turn, attempt)| (turn.parse().unwrap(), attempt));
            assert_eq!(attempt_of(name), expected, "{name}");
        };
        check("main.3.1.2.jsonl", Some(("main.3.1", 2)));
        check("main_w1.3.1.2.jsonl", Some(("main_w1.3.1", 2)));
        check("main.3.1.2.stderr", None);
        check("cut-1", None);
        check("main.3.jsonl", None);
    }
}
