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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::TurnFailure;
    use crate::run::tests::play::{Play, prompts, workflow};
    use crate::time::Timestamp;

    fn plan(play: &Play) -> Plan {
        let mut ledger = Ledger::default();
        play.story.iter().for_each(|event| ledger.note(Timestamp(0), event));
        Plan::of(&play.run, &ledger, &play.settings)
    }

    /// What goes on, and what runs again.
    #[track_caller]
    fn check(play: &Play, continuing: usize, repeating: usize) {
        let plan = plan(play);
        assert_eq!((plan.continuing.count(), plan.repeating), (continuing, repeating), "{plan}");
    }

    fn scripts() -> Play {
        Play::new(workflow(&[("S.sh", "true"), ("T.sh", "true"), ("A.md", "text")]))
    }

    #[test]
    fn only_what_was_tried_before_goes_on() {
        let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
        play.says("main", r#"<fork next="A">W</fork>"#);
        play.halt();
        // The worker never had its turn.
        check(&play, 1, 0);
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.stumbles("main");
        check(&play, 1, 0);
        let mut play = Play::new(prompts(&["A.md"])).with(|s| s.no_wait = true).started();
        play.fails("main", TurnFailure::Quota { until: None, why: "limit".into() });
        check(&play, 1, 0);
    }

    #[test]
    fn a_script_that_was_cut_off_runs_again_unless_it_is_to_fail() {
        let mut play = scripts().started();
        play.halt();
        check(&play, 0, 1);
        play.settings.interrupted_scripts = InterruptedScripts::Fail;
        check(&play, 0, 0);
    }

    #[test]
    fn an_agent_that_failed_is_asked_again_once() {
        let mut play = Play::new(prompts(&["A.md"])).with(|s| s.reminders = 0).started();
        play.says("main", "no tag");
        check(&play, 1, 0);
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.fails("main", TurnFailure::Task { why: "no".into() });
        check(&play, 1, 0);
        let mut play = scripts().started();
        play.says("main", r#"<fork next="S">T</fork>"#);
        play.says("main_t1", "no tag");
        // One failed, and one is in flight.
        check(&play, 0, 2);
    }

    #[test]
    fn what_finished_meanwhile_is_told_and_does_not_go_on() {
        let play = Play::new(prompts(&["A.md"])).started();
        let said = play.finished("main", "<result>x</result>", |_| {});
        assert_eq!(
            plan(&play).knowing(&play.run, &[said]).to_string(),
            "reused 0 turns ($0.00), 1 finished meanwhile, continuing 0, repeating 0"
        );
    }

    #[test]
    fn one_backend_has_all_the_turns_and_is_not_counted_again() {
        let check = |backends: &[&str], expected: &str| {
            let prompts: Prompts = backends.iter().map(|name| BackendName::new(*name)).collect();
            assert_eq!(prompts.told(Naming::Named), expected);
            assert_eq!(prompts.told(Naming::Tacit), backends.len().to_string());
        };
        check(&[], "0");
        check(&["codex"], "1 (codex)");
        check(&["codex", "codex"], "2 (codex)");
        check(&["codex", "claude"], "2 (claude, codex)");
        check(&["codex", "claude", "codex"], "3 (1 claude, 2 codex)");
    }
}
