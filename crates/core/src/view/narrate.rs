//! Events as lines for people, the same in a live console and in `show`.
//!
//! A [`Narrator`] remembers the little that its lines need: where each agent is, what its visit has
//! cost, and how its turn failed. Texts for a status are in [`super::why`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::agent::Location;
use crate::budget::{Charge, Micros};
use crate::crayfish::key::Key;
use crate::crayfish::problem::Problem;
use crate::crayfish::state::StepEvent;
use crate::crayfish::stored::Stored;
use crate::ids::{AgentId, BackendName, StateName, TurnId};
use crate::protocol::{Notice, TagName};
use crate::run::event::Ending;
use crate::run::stop::{Interruption, StopMode, StopOrigin};
use crate::run::warning::Warning;
use crate::run::{Event, Program, Run, Settings};
use crate::scheduler::{Hold, Lane, Phase as TurnPhase};
use crate::value::Value;

use super::backend_labels::BackendLabels;
use super::ledger::{Ledger, VisitCost};

/// One line, without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The agent; `None` if the line is about the run.
    pub agent: Option<AgentId>,
    pub weight: Weight,
    pub text: String,
}

/// The importance of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Shown only with `--verbose`.
    Detail,
    Plain,
    Warning,
    Error,
}

/// Turns events into lines. It remembers where each agent is.
#[derive(Debug, Clone, Default)]
pub struct Narrator {
    telling: Telling,
    naming: BackendLabels,
    places: BTreeMap<AgentId, Location>,
    moves: BTreeMap<AgentId, (TagName, Option<StateName>)>,
    bills: BTreeMap<AgentId, VisitCost>,
    /// The backend of each agent's turn.
    asked: BTreeMap<AgentId, BackendName>,
    /// The backends that the states may use, and those that were used.
    backends: BTreeSet<BackendName>,
    /// How a turn failed, until the line about its consequence.
    failures: BTreeMap<AgentId, String>,
    limits: Limits,
    what: What,
    /// The cost of all turns so far.
    total: Micros,
    /// The attempt of each step that was last requested with errors, so that they are shown once.
    refused: BTreeMap<Key, u32>,
    /// Agents whose turn waits for a new budget share. Whether it gets one is not decided yet: the
    /// run may end first, because its budget is spent.
    without_share: BTreeSet<AgentId>,
}

/// The kind of program that a run executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum What {
    /// States, and transitions between them.
    #[default]
    States,
    /// Steps, one after the other.
    Steps,
}

impl What {
    const fn of(program: &Program) -> Self {
        match program {
            Program::States | Program::Ralph(_) => Self::States,
            Program::Steps(_) => Self::Steps,
        }
    }
}

/// The audience of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Telling {
    /// Readers of a past run.
    #[default]
    History,
    /// Viewers of a live run. The console itself shows its start, its end and the result of `main`.
    Live,
}

/// The settings that lines mention.
#[derive(Debug, Clone, Default)]
struct Limits {
    cap: Option<Micros>,
    retries: u32,
}

impl Limits {
    const fn of(settings: &Settings) -> Self {
        Self { cap: settings.budget, retries: settings.retries }
    }
}

impl Narrator {
    /// Returns a narrator for viewers of a live run.
    pub fn live() -> Self {
        Self { telling: Telling::Live, ..Self::default() }
    }

    /// Returns a narrator for viewers who join now, with the memory of one that saw all events.
    pub fn after(run: &Run, ledger: &Ledger) -> Self {
        let agents = || ledger.agents.iter();
        let places =
            agents().filter_map(|(id, summary)| Some((id.clone(), summary.location.clone()?)));
        let bills = agents().filter_map(|(id, summary)| Some((id.clone(), summary.bill?)));
        let asked = agents().filter_map(|(id, summary)| Some((id.clone(), summary.asked.clone()?)));
        let refused = run.program.steps().into_iter().flat_map(|flow| {
            let attempt = |key: &Key| Some((key.clone(), *flow.attempts.get(key)?));
            flow.complaints.keys().filter_map(attempt)
        });
        let turns = run.scheduler.turns.iter();
        let without_share = turns.filter(|(_, turn)| {
            turn.phase == TurnPhase::Queued && turn.notice == Some(Notice::NewShare)
        });
        Self {
            without_share: without_share.map(|(id, _)| id.clone()).collect(),
            places: places.collect(),
            bills: bills.collect(),
            asked: asked.collect(),
            backends: ledger.known().cloned().collect(),
            limits: Limits::of(&run.settings),
            what: What::of(&run.program),
            total: run.spent,
            refused: refused.collect(),
            ..Self::live()
        }
    }

    /// Returns a narrator for readers of a past run, whose backends are named like this.
    pub fn history(naming: BackendLabels) -> Self {
        Self { naming, ..Self::default() }
    }

    /// Returns the line for an event, if it deserves one.
    #[expect(clippy::too_many_lines, reason = "one flat table of all events reads best")]
    pub fn line(&mut self, event: &Event) -> Option<Line> {
        let line = match event {
            Event::RunStarted(start) => {
                self.limits = Limits::of(&start.settings);
                self.what = What::of(&start.program);
                self.backends.clone_from(&start.backends);
                return None;
            }
            Event::RunResumed { settings } => {
                self.limits = Limits::of(settings);
                return self.in_history("resumed");
            }
            Event::DefinitionAdopted { .. } => {
                of_run(Weight::Plain, "uses the edited states from here on")
            }
            Event::RunRewound { kept, discarded, .. } => {
                // The discarded turns were paid: their cost stays part of the total.
                self.total = self.total.plus(discarded.amount);
                let stays = match discarded.amount {
                    Micros::ZERO => String::new(),
                    amount => format!("; the {amount} spent since then stay counted"),
                };
                of_run(Weight::Warning, format!("rewound to record {kept}{stays}"))
            }
            Event::StopRequested { mode, by, .. } => of_run(Weight::Plain, stop_words(*mode, *by)),
            Event::RunEnded { ending } => return self.in_history(ending_words(*ending)),
            Event::BackendHeld { backend, hold } => {
                of_run(Weight::Warning, format!("{backend}: {}", hold_words(hold)))
            }
            Event::BackendReleased { backend } => {
                of_run(Weight::Plain, format!("{backend}: tries again"))
            }
            Event::Warned { agent, warning } => {
                let (agent, text) = (agent.clone(), self.warning_words(warning));
                Line { agent, weight: Weight::Warning, text }
            }

            Event::TurnStarted { turn, .. } if self.without_share.remove(&turn.agent) => {
                self.of(&turn.agent, Weight::Plain, "continues with a new budget share")
            }
            Event::TurnStarted { turn, attempt, .. } => {
                let again =
                    if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                let text = format!("turn {}{again}", turn.turn);
                self.of(&turn.agent, Weight::Detail, text)
            }
            Event::TurnSettled { turn, charge, .. } => {
                // The turn has succeeded in the end: its earlier failure is not worth a line.
                self.failures.remove(&turn.agent);
                self.charge(turn, *charge);
                return None;
            }
            Event::TurnRecalled { turn, .. } => {
                let text = "budget share exceeds the new cap; ending its client";
                self.of(&turn.agent, Weight::Plain, text)
            }
            Event::TurnContinues { turn, charge, .. } => {
                self.charge(turn, *charge);
                self.of(&turn.agent, Weight::Plain, "budget share used up")
            }
            Event::TurnFailed { turn, charge, failure, .. } => {
                self.charge(turn, *charge);
                // No line yet: the next event decides whether the turn is retried or the agent fails.
                self.failures.insert(turn.agent.clone(), failure.to_string());
                return None;
            }
            Event::TurnInterrupted { turn, charge, by, .. } => {
                self.charge(turn, *charge);
                self.of(&turn.agent, Weight::Warning, interruption_words(*by))
            }
            Event::RetryAt { turn, retry, of, .. } => {
                let failure = self.failures.remove(&turn.agent).unwrap_or_default();
                let text = match of {
                    Some(most) => {
                        let (next, all) = (retry.saturating_add(1), most.saturating_add(1));
                        format!("{failure}; attempt {next} of {all} follows")
                    }
                    None => format!("{failure}; retry {retry} of {} follows", self.limits.retries),
                };
                self.of(&turn.agent, Weight::Warning, text)
            }
            Event::SessionLost { turn, lost, .. } => {
                let text = match self.failures.remove(&turn.agent) {
                    Some(failure) => format!("{failure}: continues in a new session"),
                    None => format!("does not continue session {lost}, which was abandoned"),
                };
                self.of(&turn.agent, Weight::Warning, text)
            }
            Event::Asked { ask, .. } => self.of(&ask.agent, Weight::Plain, "asks a question"),
            Event::AskAnswered { ask, by, .. } => {
                self.of(&ask.agent, Weight::Plain, format!("{by} answered"))
            }

            // A step that is repeated after its failure, which has had its line.
            Event::VisitEntered { agent, location: location @ Location::Step(_), .. }
                if self.places.get(agent) == Some(location) =>
            {
                return None;
            }
            Event::VisitEntered { agent, location, count, .. } => {
                self.entered(agent, location, *count)
            }
            Event::Moved { agent, tag, instead_of, .. } => {
                self.moves.insert(agent.clone(), (*tag, instead_of.clone()));
                return None;
            }
            Event::Reminded { agent, fault, reminder } => {
                self.of(agent, Weight::Warning, format!("reminder {reminder}: {fault}"))
            }
            Event::AgentEnded { agent, result } => self.ended(agent, result),
            Event::AgentFailed { agent, failure, kept } => {
                self.failures.remove(agent);
                self.without_share.remove(agent);
                let kept = if kept.is_some() { " (its transition is kept)" } else { "" };
                self.of(agent, Weight::Error, format!("failed: {failure}{kept}"))
            }
            Event::AgentHeld { agent, .. } => {
                self.of(agent, Weight::Warning, "waits until workers end")
            }
            Event::AgentRevived { agent } => {
                self.of(agent, Weight::Plain, "continues after its failure")
            }

            Event::TurnQueued { turn, lane, .. } => {
                self.queued(&turn.agent, lane);
                return None;
            }
            Event::TurnRequeued { turn, notice, .. } => {
                if *notice == Notice::NewShare {
                    self.without_share.insert(turn.agent.clone());
                } else {
                    self.without_share.remove(&turn.agent);
                }
                return None;
            }
            Event::CostAdjusted { spent, .. } => {
                self.total = *spent;
                return None;
            }
            Event::AskExpired { .. } | Event::AgentSpawned { .. } => return None,
            Event::Stepped { agent, fact } => return self.stepped(agent, fact),
        };
        Some(line)
    }

    /// Returns the line for a step that did not simply succeed. A success shows when the next step begins.
    fn stepped(&mut self, agent: &AgentId, fact: &StepEvent) -> Option<Line> {
        if let StepEvent::Asks { key, attempt, errors } = fact
            && !errors.is_empty()
        {
            // A resume asks for the same attempt again, with errors that have had their line.
            if self.refused.insert(key.clone(), *attempt) == Some(*attempt) {
                return None;
            }
            let text = format!("not valid: {}; attempt {attempt} follows", first_problem(errors));
            return Some(self.of(agent, Weight::Warning, text));
        }
        if let StepEvent::Fails { key, .. } = fact {
            // It may be a loop, which has no visit of its own.
            self.places.insert(agent.clone(), key.clone().into());
            return None;
        }
        let StepEvent::Done { key, stored } = fact else { return None };
        self.refused.remove(key);
        if stored.ok {
            return None;
        }
        let why = self.failures.remove(agent).or_else(|| message(stored));
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        Some(self.of(agent, Weight::Warning, format!("failed, and was collected{why}")))
    }

    // Readers of a past run get the labels of the whole run, viewers those of the events so far.
    fn naming(&self) -> BackendLabels {
        match self.naming {
            BackendLabels::Shown => BackendLabels::Shown,
            BackendLabels::Hidden => BackendLabels::among(&self.backends),
        }
    }

    fn queued(&mut self, agent: &AgentId, lane: &Lane) {
        self.without_share.remove(agent);
        match lane {
            Lane::Prompt(backend) => {
                self.backends.insert(backend.clone());
                self.asked.insert(agent.clone(), backend.clone());
            }
            Lane::Script => drop(self.asked.remove(agent)),
        }
    }

    fn entered(&mut self, agent: &AgentId, location: &Location, count: u32) -> Line {
        let from = self.places.insert(agent.clone(), location.clone());
        self.failures.remove(agent);
        let cost = self.bill(agent);
        let again = if count > 1 { format!(" #{count}") } else { String::new() };
        let text = match (from, self.moves.remove(agent)) {
            (Some(from), Some((tag, instead_of))) => {
                let limit = instead_of
                    .map(|meant| format!("; `max_visits` of {meant} reached"))
                    .unwrap_or_default();
                format!("{from} → {location}{again} ({tag}{limit}){cost}")
            }
            // Steps follow each other without a tag.
            (Some(from), None) => format!("{from} → {location}{cost}"),
            (None, _) => format!("starts at {location}"),
        };
        Line { agent: Some(agent.clone()), weight: Weight::Plain, text }
    }

    fn ended(&mut self, agent: &AgentId, result: &Value) -> Line {
        let cost = self.bill(agent);
        self.places.remove(agent);
        self.moves.remove(agent);
        self.asked.remove(agent);
        let text = match (self.what, self.telling) {
            (What::Steps, _) => format!("ended{cost}"),
            (What::States, Telling::Live) if *agent == AgentId::main() => format!("ended{cost}"),
            (What::States, Telling::Live | Telling::History) => {
                format!("ended: {}{cost}", preview(result))
            }
        };
        Line { agent: Some(agent.clone()), weight: Weight::Plain, text }
    }

    /// Returns a line about the run that viewers of a live run do not need.
    fn in_history(&self, text: &str) -> Option<Line> {
        (self.telling == Telling::History).then(|| of_run(Weight::Plain, text))
    }

    /// Returns a line about an agent, with its place.
    fn of(&self, agent: &AgentId, weight: Weight, text: impl fmt::Display) -> Line {
        let place = self.places.get(agent).map_or_else(|| "?".to_owned(), Location::to_string);
        let backend = self.naming().suffix(self.asked.get(agent));
        Line { agent: Some(agent.clone()), weight, text: format!("{place}{backend}: {text}") }
    }

    /// Returns the text of a warning. The record contains only the threshold, but the line shows the
    /// spent part of the cap.
    fn warning_words(&self, warning: &Warning) -> String {
        if let (Warning::Spent { .. }, Some(cap)) = (warning, self.limits.cap) {
            // 128 bits, because 100 times an amount in millionths overflows 64 bits. Rounded down:
            // 100 % means that the whole cap is spent.
            let percent = u128::from(self.total.0) * 100 / u128::from(cap.0.max(1));
            return format!("{percent} % of the cap is spent");
        }
        warning.to_string()
    }

    fn charge(&mut self, turn: &TurnId, charge: Charge) {
        self.total = self.total.plus(charge.amount);
        self.bills.entry(turn.agent.clone()).or_default().add(charge);
    }

    /// Returns the cost of the visit that ends now, and its backend if texts name backends.
    fn bill(&mut self, agent: &AgentId) -> String {
        let Some(VisitCost { amount, estimated, unpriced }) = self.bills.remove(agent) else {
            return String::new();
        };
        let named = self.naming().label(self.asked.get(agent));
        let mut bill = match named {
            Some(backend) if amount > Micros::ZERO => format!(" · {backend} {amount}"),
            Some(backend) => format!(" · {backend}"),
            None if amount > Micros::ZERO => format!(" · {amount}"),
            None => String::new(),
        };
        if estimated {
            bill.push_str(" estimated");
        }
        if unpriced {
            bill.push_str(if amount > Micros::ZERO { " + unpriced" } else { " · unpriced" });
        }
        bill
    }
}

/// Returns the first problem of an output and the number of the others.
fn first_problem(errors: &[Problem]) -> String {
    let first = errors.first().map(Problem::to_string).unwrap_or_default();
    match errors.len() {
        0 | 1 => first,
        several => format!("{first} (and {} more)", several - 1),
    }
}

/// Returns the message in the result of a failed step.
fn message(stored: &Stored) -> Option<String> {
    let Value::Inline(text) = &stored.value else { return None };
    let result: serde_json::Value = serde_json::from_str(text).ok()?;
    let message = result.get("message").or_else(|| result.get("error"))?;
    message.as_str().map(str::to_owned)
}

fn of_run(weight: Weight, text: impl Into<String>) -> Line {
    Line { agent: None, weight, text: text.into() }
}

const fn stop_words(mode: StopMode, by: StopOrigin) -> &'static str {
    match (mode, by) {
        (StopMode::Cancel, _) => "cancelling, as `raymond cancel` asks",
        (StopMode::AfterTurn, _) => "stopping after the turns in flight, as `raymond stop` asks",
        (StopMode::Now, StopOrigin::Caller) => "stopping, because its caller gave up",
        (StopMode::Now, StopOrigin::Command) => "stopping, as `raymond stop` asks",
        (StopMode::Now, StopOrigin::Signal) => "stopping, because of a signal",
        (StopMode::Now, StopOrigin::Trouble) => "stopping, because it cannot continue",
    }
}

const fn interruption_words(by: Interruption) -> &'static str {
    match by {
        Interruption::Crash => "was interrupted when its owner died",
        Interruption::Stop => "stopped",
    }
}

fn hold_words(hold: &Hold) -> String {
    match hold {
        Hold::Quota { until, why } => format!("usage limit, waits until {until}: {why}"),
        Hold::Auth { why } => format!("not logged in: {why}"),
        Hold::Environment { why } => why.clone(),
    }
}

/// Returns the word for the end of a run.
pub const fn ending_words(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Failed => "failed",
        Ending::OverBudget => "over budget",
        Ending::Stopped => "stopped",
        Ending::Cancelled => "cancelled",
        Ending::NeedsPerson => "waits for a person",
        Ending::NeedsCaller => "waits for its caller",
        Ending::Environment => "waiting for disk space or another resource of the machine",
        Ending::NoQuota => "usage limit reached, and the settings forbid waiting",
    }
}

/// Returns the beginning of a payload, on one line.
pub fn preview(value: &Value) -> String {
    const LONGEST: usize = 72;
    match value {
        Value::Inline(text) if text.trim().is_empty() => "(empty)".to_owned(),
        Value::Blob(blob) => format!("({} bytes)", blob.length),
        Value::Inline(text) => {
            let text = text.trim();
            let first: String =
                text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            match first.char_indices().nth(LONGEST) {
                Some((cut, _)) => format!("{}…", &first[..cut]),
                None => first,
            }
        }
    }
}
