//! The effect of a resume, printed before it happens.
//!
//! The plan is first computed from the journal alone. [`Plan::finding`] and [`Plan::knowing`]
//! refine it with the facts about processes and transcripts. It changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::agent::{Agent, AgentStatus};
use crate::budget::Micros;
use crate::decide::resume::{adoptable, beyond};
use crate::extension::Extension;
use crate::ids::{BackendName, TurnId};
use crate::run::effect::in_flight;
use crate::run::outcome::Outcome;
use crate::run::settings::InterruptedScripts;
use crate::run::{Input, Run, Settings, TranscriptCost};
use crate::scheduler::{Lane, Turn, TurnPhase};

use super::backend_labels::BackendLabels;
use super::ledger::Ledger;
use super::place::place;

/// The plan of a resume.
///
/// `reused 7 turns ($2.10), 1 finished meanwhile, adopting 1, continuing 1, repeating 0`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub reused: u64,
    pub amount: Micros,
    /// The turns without an outcome, by agent.
    pub open: Vec<TurnInFlight>,
    /// Agents that stay parked. A wait that is over ends with the resume.
    pub waiting: u32,
    /// Whether texts name backends; `None` if the backends are not known yet.
    naming: Option<BackendLabels>,
    /// The money that the cap leaves for turns in flight; `None` without a cap.
    free: Option<Micros>,
    /// The paid turns in flight with their budget shares, the oldest first.
    shares: Vec<(TurnId, Option<Micros>)>,
}

/// A turn that has begun and has no recorded outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnInFlight {
    pub turn: TurnId,
    pub place: String,
    /// The backend; `None` for a script.
    pub backend: Option<BackendName>,
    pub fate: Fate,
}

/// The effect of the resume on a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was in flight, and its answer was found.
    Finished,
    /// It was in flight, and its client still runs.
    Adopted,
    /// It was in flight, and its client is ended because its budget share exceeds the cap.
    Recalled,
    /// A prompt that continues in its session.
    Continued,
    /// A script that runs again.
    Repeated,
}

impl Fate {
    /// Returns the name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished_meanwhile",
            Self::Adopted => "adopting",
            Self::Recalled => "recalling",
            Self::Continued => "continuing",
            Self::Repeated => "repeating",
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Self::Finished => "finished meanwhile",
            Self::Adopted => "adopting its client, which still runs",
            Self::Recalled => {
                "ending its client, whose budget share exceeds the new cap; continuing in its session"
            }
            Self::Continued => "continuing in its session",
            Self::Repeated => "repeating",
        }
    }
}

/// The number of turns by backend.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptCounts(BTreeMap<BackendName, usize>);

impl PromptCounts {
    pub fn count(&self) -> usize {
        self.0.values().sum()
    }

    pub fn of(&self, backend: &BackendName) -> usize {
        self.0.get(backend).copied().unwrap_or(0)
    }

    /// Returns `2`, or `2 (claude, codex)` or `3 (2 claude, 1 codex)` if texts name backends.
    fn describe(&self, naming: BackendLabels) -> String {
        let count = self.count();
        if naming == BackendLabels::Hidden || count == 0 {
            return count.to_string();
        }
        let several = count > self.0.len() && self.0.len() > 1;
        let named = self.0.iter().map(|(backend, count)| {
            if several { format!("{count} {backend}") } else { backend.to_string() }
        });
        format!("{count} ({})", named.collect::<Vec<_>>().join(", "))
    }
}

impl FromIterator<BackendName> for PromptCounts {
    fn from_iter<T: IntoIterator<Item = BackendName>>(backends: T) -> Self {
        let mut prompts = Self::default();
        for backend in backends {
            *prompts.0.entry(backend).or_default() += 1;
        }
        prompts
    }
}

impl Plan {
    /// Returns the plan for a run that continues with `settings`.
    pub fn of(run: &Run, ledger: &Ledger, settings: &Settings) -> Self {
        let settled = ledger.settled;
        Self {
            reused: settled.turns,
            amount: settled.amount,
            open: run.agents.values().filter_map(|agent| open(run, agent, settings)).collect(),
            waiting: run.parked.saturating_sub(run.answered_agents()),
            // With another backend, turns that never began start there, so the names are not known.
            naming: (settings.backend == run.settings.backend).then(|| ledger.naming()),
            free: settings.budget.map(|cap| cap.minus(run.spent)),
            shares: adoptable(run)
                .into_iter()
                .map(|(attempt, share)| (attempt.turn, share))
                .collect(),
        }
    }

    /// Returns the plan for edited states, which may name other backends.
    #[must_use]
    pub fn unnamed(self) -> Self {
        Self { naming: None, ..self }
    }

    /// Returns the plan with the recorded outcomes of turns in flight.
    #[must_use]
    pub fn knowing(self, run: &Run, reports: &[Input]) -> Self {
        let report = |turn: &Turn| {
            reports.iter().find_map(|input| {
                let Input::Settled { turn: id, outcome, .. } = input else { return None };
                (*id == turn.id).then_some(outcome)
            })
        };
        let found = in_flight(run).filter_map(|turn| match report(turn) {
            Some(Outcome::Finished(_)) => Some((turn.id.clone(), Fate::Finished)),
            // Without an outcome, the recovery has found the client still running.
            None => Some((turn.id.clone(), Fate::Adopted)),
            Some(_) => None,
        });
        let ended = in_flight(run).filter_map(|turn| {
            let outcome = report(turn)?;
            let cost = TranscriptCost { cost: outcome.cost(), capped: outcome.is_capped() };
            Some((turn.id.clone(), cost))
        });
        self.paying(run, ended).finding(found)
    }

    /// Returns the plan after charging turns that ended meanwhile: a resume settles them before it
    /// checks which budget shares fit the cap.
    #[must_use]
    pub fn paying(
        self,
        run: &Run,
        ended: impl IntoIterator<Item = (TurnId, TranscriptCost)>,
    ) -> Self {
        let Some(mut free) = self.free else { return self };
        let mut run = run.clone();
        for (turn, cost) in ended {
            let share =
                self.shares.iter().find(|(id, _)| *id == turn).and_then(|(_, share)| *share);
            let amount = cost.charge(&run, share).amount;
            // A turn of unknown cost is estimated by the most expensive one so far.
            run.most_expensive = run.most_expensive.max(amount);
            free = free.minus(amount);
        }
        Self { free: Some(free), ..self }
    }

    /// Returns the plan with the fates of turns in flight. Scripts cannot be adopted.
    #[must_use]
    pub fn finding(mut self, found: impl IntoIterator<Item = (TurnId, Fate)>) -> Self {
        let found: BTreeMap<TurnId, Fate> = found.into_iter().collect();
        // Only prompts: a script has no transcript that could contain its outcome.
        for open in self.open.iter_mut().filter(|open| open.fate == Fate::Continued) {
            open.fate = found.get(&open.turn).copied().unwrap_or(open.fate);
        }
        self.recall();
        self
    }

    fn recall(&mut self) {
        let Some(free) = self.free else { return };
        let is_adopted = |turn: &TurnId| {
            self.open.iter().any(|open| open.turn == *turn && open.fate == Fate::Adopted)
        };
        let recalled =
            // The rule of the resume itself, so that the plan cannot announce something else.
            beyond(free, self.shares.iter().filter(|(turn, _)| is_adopted(turn)).cloned());
        for open in self.open.iter_mut().filter(|open| recalled.contains(&open.turn)) {
            open.fate = Fate::Recalled;
        }
    }

    /// Counts the prompts with this fate. A recalled turn is also continued.
    pub fn prompts(&self, fate: Fate) -> PromptCounts {
        let becomes = |open: &&TurnInFlight| {
            open.fate == fate || (fate, open.fate) == (Fate::Continued, Fate::Recalled)
        };
        let open = self.open.iter().filter(becomes);
        open.filter_map(|open| open.backend.clone()).collect()
    }

    pub fn repeating(&self) -> usize {
        self.open.iter().filter(|open| open.fate == Fate::Repeated).count()
    }

    /// Returns the backends of the open turns, if they are known.
    pub fn backends(&self) -> BTreeSet<&BackendName> {
        self.open.iter().filter_map(|open| self.backend(open)).collect()
    }

    /// Returns the backend of a turn, if it is known.
    pub fn backend<'p>(&'p self, open: &'p TurnInFlight) -> Option<&'p BackendName> {
        open.backend.as_ref().filter(|_| self.naming.is_some())
    }

    /// Returns a line for each turn, up to a limit.
    pub fn lines(&self) -> Vec<String> {
        // Turns; docs/durability.md promises the first ten.
        const MOST: usize = 10;
        let line = |open: &TurnInFlight| {
            let backend = self.naming.unwrap_or_default().suffix(open.backend.as_ref());
            let TurnInFlight { turn, place, fate, .. } = open;
            format!("{:<16} {place}{backend}: {}", turn.agent, fate.describe())
        };
        let more = self.open.len().saturating_sub(MOST);
        let more = (more > 0).then(|| format!("and {more} more"));
        self.open.iter().take(MOST).map(line).chain(more).collect()
    }
}

/// Returns the open turn of an agent, if it is to be done again. A turn that waits for its first
/// attempt never ran; a turn whose transition was kept has its outcome.
fn open(run: &Run, agent: &Agent, settings: &Settings) -> Option<TurnInFlight> {
    let of = |turn: TurnId, backend: Option<&BackendName>| TurnInFlight {
        turn,
        place: place(run, agent),
        backend: backend.cloned(),
        fate: if backend.is_some() { Fate::Continued } else { Fate::Repeated },
    };
    let Some(turn) = run.scheduler.turns.get(&agent.id) else {
        // An agent that failed after its turn was settled is asked again.
        let AgentStatus::Failed { kept: None, .. } = agent.status else { return None };
        let visit = &agent.visit;
        let turn = TurnId { agent: agent.id.clone(), visit: visit.number, turn: visit.turn };
        let state = visit.location.state();
        let is_prompt =
            state.is_some_and(|state| Extension::of(state.as_str()) == Some(Extension::Md));
        // A conversation stays with its backend, even if the run now has another default.
        let holder = agent.holder.as_ref().unwrap_or(&settings.backend);
        return Some(of(turn, is_prompt.then_some(holder)));
    };
    let again = of(turn.id.clone(), turn.lane.backend());
    match (&agent.status, &turn.phase) {
        (AgentStatus::Live, TurnPhase::Running { .. } | TurnPhase::Idle) => {
            let reruns = settings.interrupted_scripts == InterruptedScripts::Rerun;
            (turn.lane != Lane::Script || reruns).then_some(again)
        }
        (AgentStatus::Failed { kept: None, .. }, _) => Some(again),
        (AgentStatus::Live, TurnPhase::Queued | TurnPhase::Retrying { .. }) if turn.attempt > 0 => {
            Some(again)
        }
        (AgentStatus::Live, TurnPhase::Queued | TurnPhase::Retrying { .. })
        | (
            AgentStatus::Failed { kept: Some(_), .. }
            | AgentStatus::Held(_)
            | AgentStatus::Parked(_)
            | AgentStatus::Joining(_)
            | AgentStatus::Asking(_)
            | AgentStatus::Cancelling(_),
            _,
        ) => None,
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reused, amount, .. } = self;
        let naming = self.naming.unwrap_or_default();
        let [finished, adopted, continuing] =
            [Fate::Finished, Fate::Adopted, Fate::Continued].map(|fate| self.prompts(fate));
        let s = if *reused == 1 { "turn" } else { "turns" };
        write!(f, "reused {reused} {s} ({amount})")?;
        if finished.count() > 0 {
            write!(f, ", {} finished meanwhile", finished.describe(naming))?;
        }
        if adopted.count() > 0 {
            write!(f, ", adopting {}", adopted.describe(naming))?;
        }
        write!(f, ", continuing {}, repeating {}", continuing.describe(naming), self.repeating())?;
        if self.waiting > 0 {
            write!(f, ", waiting {}", self.waiting)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
