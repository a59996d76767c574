//! What a resume will do, told before it does it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::budget::Micros;
use crate::desk::{Lane, Phase, Turn};
use crate::ids::BackendName;
use crate::machine::{Agent, Standing};
use crate::run::effect::in_flight;
use crate::run::input::Outcome;
use crate::run::settings::InterruptedScripts;
use crate::run::{Input, Run, Settings};
use crate::workflow::Extension;

use super::backends::Naming;
use super::ledger::Ledger;

/// `reused 7 turns ($2.10), 1 finished meanwhile, adopting 1, continuing 1, repeating 0`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Turns whose outcome is recorded.
    pub reused: u64,
    /// What they cost.
    pub amount: Micros,
    /// Turns in flight whose answer was found.
    pub finished: Prompts,
    /// Turns in flight whose client still runs.
    pub adopted: Prompts,
    /// Prompts that go on in their sessions.
    pub continuing: Prompts,
    /// Scripts that run again.
    pub repeating: usize,
    /// None when it is not known yet who goes on.
    naming: Option<Naming>,
}

/// Turns, counted by the backend that answers them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompts(BTreeMap<BackendName, usize>);

impl Prompts {
    /// How many.
    pub fn count(&self) -> usize {
        self.0.values().sum()
    }

    /// How many of this backend.
    pub fn of(&self, backend: &BackendName) -> usize {
        self.0.get(backend).copied().unwrap_or(0)
    }

    fn without(mut self, others: &Self) -> Self {
        for (backend, count) in &mut self.0 {
            *count = count.saturating_sub(others.of(backend));
        }
        self.0.retain(|_, count| *count > 0);
        self
    }

    /// `2`, or `2 (claude, codex)`, `3 (2 claude, 1 codex)` where backends are named.
    fn told(&self, naming: Naming) -> String {
        let count = self.count();
        if naming == Naming::Tacit || count == 0 {
            return count.to_string();
        }
        let several = count > self.0.len() && self.0.len() > 1;
        let named = self.0.iter().map(|(backend, count)| {
            if several { format!("{count} {backend}") } else { backend.to_string() }
        });
        format!("{count} ({})", named.collect::<Vec<_>>().join(", "))
    }
}

impl FromIterator<BackendName> for Prompts {
    fn from_iter<T: IntoIterator<Item = BackendName>>(backends: T) -> Self {
        let mut prompts = Self::default();
        for backend in backends {
            *prompts.0.entry(backend).or_default() += 1;
        }
        prompts
    }
}

impl Plan {
    /// The plan for a run that goes on under `settings`.
    pub fn of(run: &Run, ledger: &Ledger, settings: &Settings) -> Self {
        let settled = ledger.settled;
        let lanes = || run.desk.turns.values().filter_map(|turn| again(run, turn));
        let repeats = |cut: Cut| match cut {
            Cut::Off => settings.interrupted_scripts == InterruptedScripts::Rerun,
            Cut::Failed | Cut::Waiting => true,
        };
        // An agent that failed after its turn was settled is asked again.
        let failed = run.failed.iter().filter_map(|id| run.agents.get(id));
        let (prompts, scripts): (Vec<&Agent>, Vec<&Agent>) = failed
            .filter(|agent| matches!(agent.standing, Standing::Failed { kept: None, .. }))
            .filter(|agent| !run.desk.turns.contains_key(&agent.id))
            .partition(|agent| Extension::of(agent.visit.state.as_str()) == Some(Extension::Md));
        let holder =
            |agent: &Agent| agent.holder.clone().unwrap_or_else(|| settings.backend.clone());
        let cut = lanes().filter_map(|(lane, _)| lane.backend().cloned());
        Self {
            reused: settled.turns,
            amount: settled.amount,
            finished: Prompts::default(),
            adopted: Prompts::default(),
            continuing: prompts.into_iter().map(holder).chain(cut).collect(),
            repeating: lanes()
                .filter(|(lane, cut)| **lane == Lane::Script && repeats(*cut))
                .count()
                + scripts.len(),
            // Under another one, what never began begins there.
            naming: (settings.backend == run.settings.backend).then(|| ledger.naming()),
        }
    }

    /// The same, with states that may name other backends than those that were asked.
    #[must_use]
    pub fn unnamed(self) -> Self {
        Self { naming: None, ..self }
    }

    /// The same, once it is recorded what became of them.
    #[must_use]
    pub fn knowing(self, run: &Run, reports: &[Input]) -> Self {
        let report = |turn: &Turn| {
            reports.iter().find_map(|input| {
                let Input::Settled { turn: id, outcome, .. } = input else { return None };
                (*id == turn.id).then_some(outcome)
            })
        };
        let backends = |is_one: &dyn Fn(Option<&Outcome>) -> bool| {
            let turns = in_flight(run).filter(|turn| is_one(report(turn)));
            turns.filter_map(|turn| turn.lane.backend().cloned()).collect()
        };
        let finished = |report: Option<&Outcome>| matches!(report, Some(Outcome::Finished(_)));
        self.without(backends(&finished), backends(&|report| report.is_none()))
    }

    /// The same, with a look at the turns in flight: what has finished or still runs is not continued.
    #[must_use]
    pub fn without(self, finished: Prompts, adopted: Prompts) -> Self {
        let continuing = self.continuing.without(&finished).without(&adopted);
        Self { finished, adopted, continuing, ..self }
    }

    /// The backends that have something to do with it, where that is known.
    pub fn backends(&self) -> BTreeSet<&BackendName> {
        let all = [&self.finished, &self.adopted, &self.continuing];
        let all = all.into_iter().filter(|_| self.naming.is_some());
        all.flat_map(|prompts| prompts.0.keys()).collect()
    }
}

/// Why a turn has to be done again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// It was in flight.
    Off,
    /// Its agent failed.
    Failed,
    /// An earlier attempt came to nothing, and the next one was already due.
    Waiting,
}

/// Whether a turn has to be done again. One that waits for its first attempt never ran; the outcome
/// of one whose transition was kept is there.
fn again<'r>(run: &Run, turn: &'r Turn) -> Option<(&'r Lane, Cut)> {
    match (&run.agents.get(&turn.id.agent)?.standing, &turn.phase) {
        (Standing::Live, Phase::Running { .. } | Phase::Idle) => Some((&turn.lane, Cut::Off)),
        (Standing::Failed { kept: None, .. }, _) => Some((&turn.lane, Cut::Failed)),
        (Standing::Live, Phase::Queued | Phase::Retrying { .. }) if turn.attempt > 0 => {
            Some((&turn.lane, Cut::Waiting))
        }
        (Standing::Live, Phase::Queued | Phase::Retrying { .. })
        | (Standing::Failed { kept: Some(_), .. } | Standing::Held(_), _) => None,
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reused, amount, finished, adopted, continuing, repeating, .. } = self;
        let naming = self.naming.unwrap_or_default();
        let s = if *reused == 1 { "turn" } else { "turns" };
        write!(f, "reused {reused} {s} ({amount})")?;
        if finished.count() > 0 {
            write!(f, ", {} finished meanwhile", finished.told(naming))?;
        }
        if adopted.count() > 0 {
            write!(f, ", adopting {}", adopted.told(naming))?;
        }
        write!(f, ", continuing {}, repeating {repeating}", continuing.told(naming))
    }
}
