//! The costs of turns whose records are discarded, read from their transcripts.
//!
//! A damaged journal may lack the end of a turn, or even its start, but the transcript shows what
//! it cost. If no record names the client that wrote a transcript, each backend of the run reads
//! it, and the highest cost counts. If one of them finds a part that it cannot price, the cost is a
//! lower bound.

use std::collections::{BTreeMap, BTreeSet};

use raymond_backends::contract::{Answer, AttachResult, StartedTurn};
use raymond_backends::process::restarted_since;
use raymond_core::agent::SessionPlan;
use raymond_core::budget::Cost;
use raymond_core::ids::{BackendName, TurnAttempt, TurnId};
use raymond_core::run::effect::in_flight;
use raymond_core::run::{Event, Record, Run, TranscriptCost};
use raymond_core::scheduler::{Lane, Turn};
use raymond_store::RunPaths;

use crate::backends::Backends;
use crate::boot;
use crate::project::Project;
use crate::recovery::{self, ClientTraces};
use crate::turn_files::{config_home, transcript};

/// Whether the machine has restarted since the run was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BootState {
    SameBoot,
    /// The ends of transcripts may be lost, because clients do not sync them.
    Restarted,
}

/// The facts about transcripts that the records contain.
#[derive(Debug, Default)]
pub(super) struct TranscriptIndex {
    /// The attempts whose outcomes are in records that are kept.
    settled: BTreeSet<TurnAttempt>,
    plans: BTreeMap<TurnAttempt, SessionPlan>,
    lanes: BTreeMap<TurnId, Lane>,
    backends_asked: BTreeSet<BackendName>,
}

/// Everything that is needed to read the transcripts of a run.
#[derive(Clone, Copy)]
pub(super) struct TranscriptReader<'a> {
    pub(super) run: &'a Run,
    pub(super) paths: &'a RunPaths,
    pub(super) backends: &'a Backends,
    /// Used for transcripts whose boot is unknown.
    pub(super) machine: BootState,
}

impl TranscriptIndex {
    /// Adds the facts of a record.
    pub(super) fn note(&mut self, record: &Record) {
        for event in record.steps.iter().flat_map(|step| &step.events) {
            match event {
                Event::RunStarted(start) => {
                    self.backends_asked.extend(start.backends.iter().cloned());
                }
                Event::TurnQueued { turn, lane, .. } => {
                    self.lanes.insert(turn.clone(), lane.clone());
                }
                Event::TurnStarted { turn, attempt, plan, .. } => {
                    let attempt = TurnAttempt { turn: turn.clone(), number: *attempt };
                    self.plans.insert(attempt, plan.clone());
                }
                _ => {}
            }
        }
    }

    /// Marks the records so far as kept.
    pub(super) fn mark_kept(&mut self, run: &Run) {
        self.settled = self.plans.keys().cloned().collect();
        for turn in in_flight(run) {
            self.settled.remove(&turn.attempt_id());
        }
        self.backends_asked.insert(run.settings.backend.clone());
    }

    /// Returns the cost of each attempt that has a transcript and no recorded outcome.
    pub(super) fn costs(
        &self,
        project: &Project,
        reader: TranscriptReader<'_>,
    ) -> BTreeMap<TurnAttempt, TranscriptCost> {
        // A directory that cannot be read gives no costs. The discarded turns then have an unknown
        // cost, which is charged by the rules of the budget.
        let names = project.disk.list(&reader.paths.transcripts).unwrap_or_default();
        let attempts = names.iter().filter_map(|name| attempt_of(name.to_str()?));
        let open = attempts.filter(|attempt| !self.settled.contains(attempt));
        let attempt_cost = |attempt: TurnAttempt| {
            let attempt_cost = self.attempt_cost(&attempt, reader);
            (attempt, attempt_cost)
        };
        open.map(attempt_cost).collect()
    }

    fn attempt_cost(&self, attempt: &TurnAttempt, reader: TranscriptReader<'_>) -> TranscriptCost {
        let backends_asked = match self.lanes.get(&attempt.turn) {
            Some(Lane::Script) => return Cost::Free.into(),
            Some(Lane::Prompt(name)) => [name.clone()].into(),
            None => self.backends_asked.clone(),
        };
        let started = self.started(attempt, reader);
        let machine = match restarted_since(&started.transcript) {
            Some(true) => BootState::Restarted,
            Some(false) => BootState::SameBoot,
            None => reader.machine,
        };
        let found = backends_asked.iter().filter_map(|name| reader.backends.get(name));
        let attempt_cost = found.map(|backend| cost_of_found(backend.attach(&started), machine));
        attempt_cost.reduce(TranscriptCost::or).unwrap_or_else(|| Cost::Unknown.into())
    }

    fn started(&self, attempt: &TurnAttempt, reader: TranscriptReader<'_>) -> StartedTurn {
        let TranscriptReader { run, paths, .. } = reader;
        let TurnAttempt { turn, number } = attempt;
        let plan = self.plans.get(attempt).cloned();
        StartedTurn {
            nonce: run.nonce.clone(),
            turn: turn.clone(),
            attempt: *number,
            // The record with the plan is lost. A fresh session is what most turns have, and only
            // the transcript is read here.
            plan: plan.unwrap_or_else(|| SessionPlan::Fresh(turn.session(&run.nonce, 0))),
            transcript: transcript(&paths.transcripts, turn, *number),
            timeout: None,
            idle_timeout: None,
            cap: None,
            config_home: config_home(run.settings.config_home, &paths.homes, &turn.agent),
        }
    }
}

/// Parses the name of a transcript, such as `main.3.1.2.jsonl`.
fn attempt_of(name: &str) -> Option<TurnAttempt> {
    let (turn, number) = name.strip_suffix(".jsonl")?.rsplit_once('.')?;
    Some(TurnAttempt { turn: turn.parse().ok()?, number: number.parse().ok()? })
}

/// Returns the cost of a turn in flight, or `None` if its client still runs.
pub fn turn_cost(paths: &RunPaths, turn: &Turn, found: AttachResult) -> Option<TranscriptCost> {
    if let AttachResult::Running = found {
        return None;
    }
    let transcript = transcript(&paths.transcripts, &turn.id, turn.attempt);
    // The file that names the client contains its boot. Without that file the time of the journal
    // decides.
    let restarted = restarted_since(&transcript);
    let restarted = restarted.unwrap_or_else(|| boot::is_from_earlier_boot(&paths.journal));
    let machine = if restarted { BootState::Restarted } else { BootState::SameBoot };
    Some(cost_of_found(found, machine))
}

fn cost_of_found(found: AttachResult, machine: BootState) -> TranscriptCost {
    let AttachResult::Ended(answer) = found else { return Cost::Unknown.into() };
    let restarted = machine == BootState::Restarted;
    let traces = ClientTraces { lost_transcript: false, restarted };
    cost_of_answer(&recovery::with_possible_cost(answer, traces))
}

fn cost_of_answer(answer: &Answer) -> TranscriptCost {
    TranscriptCost { cost: answer.cost(), capped: answer.is_capped() }
}

#[cfg(test)]
mod tests {
    use raymond_core::budget::Micros;
    use raymond_core::run::stop::Interruption;

    use super::*;

    // proves: A44
    #[test]
    fn cost_of_a_capped_answer_is_marked_capped() {
        let cost = Cost::Reported(Micros(5));
        let (progressed, denied, session) = (true, Vec::new(), None);
        let capped = Answer::Capped { cost, progressed, denied, session };
        assert_eq!(cost_of_answer(&capped), TranscriptCost { cost, capped: true });
        let failed =
            Answer::Interrupted { by: Interruption::Stop, cost, progressed, session: None };
        assert_eq!(cost_of_answer(&failed), TranscriptCost { cost, capped: false });
    }

    #[test]
    fn a_transcript_is_named_after_its_attempt() {
        let check = |name: &str, expected: Option<(&str, u32)>| {
            let expected =
                expected.map(|(turn, number)| TurnAttempt { turn: turn.parse().unwrap(), number });
            assert_eq!(attempt_of(name), expected, "{name}");
        };
        check("main.3.1.2.jsonl", Some(("main.3.1", 2)));
        check("main_w1.3.1.2.jsonl", Some(("main_w1.3.1", 2)));
        check("main.3.1.2.stderr", None);
        check("discarded-1", None);
        check("main.3.jsonl", None);
    }
}
