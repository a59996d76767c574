//! What a resume will do, told before it does it.

use std::fmt;

use raymond_core::budget::Micros;
use raymond_core::desk::{Lane, Phase, Turn};
use raymond_core::machine::Standing;
use raymond_core::run::settings::InterruptedScripts;
use raymond_core::run::{Run, Settings};
use raymond_engine::driver::Head;
use serde_json::json;

/// `reused 7 turns ($2.10), continuing 1, repeating 0`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    reused: u64,
    amount: Micros,
    /// Prompts that go on in their sessions.
    continuing: usize,
    /// Scripts that run again.
    repeating: usize,
}

impl Plan {
    /// The plan for a run that goes on under `settings`.
    pub(super) fn of(head: &Head, settings: &Settings) -> Self {
        let settled = head.ledger.settled;
        let lanes = || head.run.desk.turns.values().filter_map(|turn| again(&head.run, turn));
        let repeats = |cut: Cut| {
            cut == Cut::Failed || settings.interrupted_scripts == InterruptedScripts::Rerun
        };
        Self {
            reused: settled.turns,
            amount: settled.amount,
            continuing: lanes().filter(|(lane, _)| **lane != Lane::Script).count(),
            repeating: lanes()
                .filter(|(lane, cut)| **lane == Lane::Script && repeats(*cut))
                .count(),
        }
    }

    /// The same for programs.
    pub(super) fn json(self) -> serde_json::Value {
        json!({
            "reused_turns": self.reused,
            "reused_usd": self.amount.dollars(),
            "continuing": self.continuing,
            "repeating": self.repeating,
        })
    }
}

/// Why a turn has to be done again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Off,
    Failed,
}

/// Whether a turn has to be done again. One that was queued never ran; the outcome of one whose
/// transition was kept is there.
fn again<'r>(run: &Run, turn: &'r Turn) -> Option<(&'r Lane, Cut)> {
    match (&run.agents.get(&turn.id.agent)?.standing, &turn.phase) {
        (Standing::Live, Phase::Running { .. } | Phase::Idle) => Some((&turn.lane, Cut::Off)),
        (Standing::Failed { kept: None, .. }, _) => Some((&turn.lane, Cut::Failed)),
        (Standing::Live, Phase::Queued | Phase::Retrying { .. })
        | (Standing::Failed { kept: Some(_), .. } | Standing::Held(_), _) => None,
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reused, amount, continuing, repeating } = self;
        let s = if *reused == 1 { "turn" } else { "turns" };
        write!(f, "reused {reused} {s} ({amount}), continuing {continuing}, repeating {repeating}")
    }
}
