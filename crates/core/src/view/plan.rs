//! What a resume will do, told before it does it.

use std::fmt;

use crate::budget::Micros;
use crate::desk::{Lane, Phase, Turn};
use crate::machine::Standing;
use crate::run::effect::in_flight;
use crate::run::input::Outcome;
use crate::run::settings::InterruptedScripts;
use crate::run::{Input, Run, Settings};
use crate::workflow::Extension;

use super::ledger::Ledger;

/// `reused 7 turns ($2.10), 1 finished meanwhile, adopting 1, continuing 1, repeating 0`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Turns whose outcome is recorded.
    pub reused: u64,
    /// What they cost.
    pub amount: Micros,
    /// Turns in flight whose answer was found.
    pub finished: usize,
    /// Turns in flight whose client still runs.
    pub adopted: usize,
    /// Prompts that go on in their sessions.
    pub continuing: usize,
    /// Scripts that run again.
    pub repeating: usize,
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
        let asked_again: Vec<Option<Extension>> = failed
            .filter(|agent| matches!(agent.standing, Standing::Failed { kept: None, .. }))
            .filter(|agent| !run.desk.turns.contains_key(&agent.id))
            .map(|agent| Extension::of(agent.visit.state.as_str()))
            .collect();
        let prompts = asked_again.iter().filter(|kind| **kind == Some(Extension::Md)).count();
        let scripts = asked_again.len() - prompts;
        Self {
            reused: settled.turns,
            amount: settled.amount,
            finished: 0,
            adopted: 0,
            continuing: prompts + lanes().filter(|(lane, _)| **lane != Lane::Script).count(),
            repeating: lanes()
                .filter(|(lane, cut)| **lane == Lane::Script && repeats(*cut))
                .count()
                + scripts,
        }
    }

    /// The same, once it is recorded what became of them.
    #[must_use]
    pub fn knowing(self, run: &Run, reports: &[Input]) -> Self {
        let finished =
            |input: &&Input| matches!(input, Input::Settled { outcome: Outcome::Finished(_), .. });
        let settled = |input: &&Input| matches!(input, Input::Settled { .. });
        let adopted = in_flight(run).count().saturating_sub(reports.iter().filter(settled).count());
        self.without(reports.iter().filter(finished).count(), adopted)
    }

    /// The same, with a look at the turns in flight: what has finished or still runs is not continued.
    #[must_use]
    pub fn without(self, finished: usize, adopted: usize) -> Self {
        let continuing = self.continuing.saturating_sub(finished + adopted);
        Self { finished, adopted, continuing, ..self }
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
        let Self { reused, amount, finished, adopted, continuing, repeating } = self;
        let s = if *reused == 1 { "turn" } else { "turns" };
        write!(f, "reused {reused} {s} ({amount})")?;
        if *finished > 0 {
            write!(f, ", {finished} finished meanwhile")?;
        }
        if *adopted > 0 {
            write!(f, ", adopting {adopted}")?;
        }
        write!(f, ", continuing {continuing}, repeating {repeating}")
    }
}
