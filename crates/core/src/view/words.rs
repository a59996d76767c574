//! Lines for people: the same in a live console and in `show`.
//!
//! A pure function of a [`ViewEvent`], without memory. Each line has an audience. The console shows
//! some facts in another way, so the lines about these facts are only for readers of a past run.
//! Texts for a status are in [`super::why`].

use std::fmt;

use crate::agent::Location;
use crate::budget::Micros;
use crate::crayfish::problem::first_problem;
use crate::failure::TurnFailure;
use crate::ids::{AgentId, SessionId};
use crate::protocol::{Need, ResultStatus};
use crate::run::event::Ending;
use crate::run::stop::{Interruption, StopMode, StopOrigin};
use crate::run::warning::Warning;
use crate::run::{DiscardedCost, WaitEnd};
use crate::scheduler::Hold;
use crate::text::counted;
use crate::value::Value;

use super::TimeFormat;
use super::attempt::{Attempt, How};
use super::backend_labels::BackendLabels;
use super::summary::{QuestionEnd, Transition, VisitCost};
use super::view_event::{
    AgentCost, AgentPlace, AttemptCause, JoinCounts, ProgramKind, RetryLimit, ViewEvent,
};

/// One line, without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The agent; `None` if the line is about the run.
    pub agent: Option<AgentId>,
    pub weight: Weight,
    pub audience: Audience,
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

/// The people who get a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    Everyone,
    /// Readers of a past run. The live console shows the start and the end of a run itself.
    HistoryOnly,
    /// Everyone, but viewers of a live run get this text: the console prints the result of `main`
    /// itself.
    ShorterLive(String),
}

impl LogLine {
    /// Returns a line for everyone.
    pub const fn new(agent: Option<AgentId>, weight: Weight, text: String) -> Self {
        Self { agent, weight, audience: Audience::Everyone, text }
    }

    /// Returns the line for viewers of a live run, if they get it.
    pub fn live(self) -> Option<Self> {
        match self.audience {
            Audience::Everyone => Some(self),
            Audience::HistoryOnly => None,
            Audience::ShorterLive(text) => Some(Self::new(self.agent, self.weight, text)),
        }
    }
}

/// Returns the line for an event, if it deserves one. `naming` says whether it names backends.
#[expect(clippy::too_many_lines, reason = "one flat table of all events reads best")]
pub fn words(event: &ViewEvent, naming: BackendLabels, time: TimeFormat) -> Option<LogLine> {
    let plain = |place: &AgentPlace, text: &dyn fmt::Display| {
        Some(line_at(place, naming, Weight::Plain, text))
    };
    let warning = |place: &AgentPlace, text: &dyn fmt::Display| {
        Some(line_at(place, naming, Weight::Warning, text))
    };
    match event {
        // The first visit has a line, and `raymond logs` prints answers together with their texts.
        ViewEvent::RunStarted { .. } | ViewEvent::Answered { .. } => None,
        ViewEvent::RunResumed => Some(history_only("resumed")),
        ViewEvent::RunEnded(ending) => Some(history_only(ending_words(*ending))),
        ViewEvent::DefinitionAdopted => {
            Some(of_run(Weight::Plain, "uses the edited workflow from here on"))
        }
        ViewEvent::RunRewound { kept, discarded } => Some(rewound(*kept, discarded)),
        ViewEvent::StopRequested { mode, by } => {
            Some(of_run(Weight::Plain, stop_words(*mode, *by)))
        }
        ViewEvent::BackendHeld { backend, hold } => {
            Some(of_run(Weight::Warning, format!("{backend}: {}", hold_words(hold, time))))
        }
        ViewEvent::BackendReleased(backend) => {
            Some(of_run(Weight::Plain, format!("{backend}: tries again")))
        }
        ViewEvent::Warned { agent, warning, spent_percent } => {
            let text = match spent_percent {
                // The record has only the threshold, but one turn can go far beyond it.
                Some(percent) => format!("{percent} % of the cap is spent"),
                None => warning_words(warning, time),
            };
            Some(LogLine::new(agent.clone(), Weight::Warning, text))
        }

        ViewEvent::AttemptBegan { attempt, cause } => Some(began(attempt, *cause, naming)),
        ViewEvent::AttemptEnded(attempt) => ended(attempt, naming),
        ViewEvent::TurnRecalled(place) => {
            plain(place, &"budget share exceeds the new cap; ending its client")
        }
        ViewEvent::RetryScheduled { place, failure, retry, limit } => {
            warning(place, &retry_words(failure.as_ref(), *retry, *limit))
        }
        ViewEvent::SessionLost { place, lost, failure } => {
            warning(place, &lost_words(lost, failure.as_ref()))
        }
        ViewEvent::Asked(place) => plain(place, &"asks a question"),
        ViewEvent::AskAnswered { place, by } => plain(place, &format_args!("{by} answered")),

        ViewEvent::VisitEntered {
            agent,
            from,
            item,
            to,
            count,
            transition,
            result,
            joined,
            closed,
            bill,
        } => {
            let text = match (from, item) {
                (None, None) => format!("starts at {to}"),
                (None, Some(item)) => format!("starts at {to} · {item}"),
                (Some(from), _) => {
                    let transition = transition.as_ref();
                    let joined = joined.map(join_words).unwrap_or_default();
                    let entry = entry(to, *count, transition, *result);
                    let closed = closed.as_ref().map(closed_words).unwrap_or_default();
                    format!("{from} → {entry}{joined}{closed}{}", bill.words(naming))
                }
            };
            Some(LogLine::new(Some(agent.clone()), Weight::Plain, text))
        }
        ViewEvent::Reminded { place, fault, reminder } => {
            warning(place, &format_args!("reminder {reminder}: {fault}"))
        }
        ViewEvent::AgentEnded { agent, result, program, bill } => {
            Some(agent_ended(agent, result, program, &bill.words(naming)))
        }
        ViewEvent::AgentFailed { place, failure, keeps_transition } => {
            let kept = if *keeps_transition { " (its transition is kept)" } else { "" };
            let text = format!("failed: {failure}{kept}");
            Some(line_at(place, naming, Weight::Error, &text))
        }
        ViewEvent::AgentHeld(place) => warning(place, &"waits until workers end"),
        ViewEvent::AgentWaits { agent, at, until, span, then } => {
            let span = span.map(|span| format!(" {span},")).unwrap_or_default();
            let text = format!("{at} waits{span} until {}, then {then}", time(*until));
            Some(LogLine::new(Some(agent.clone()), Weight::Plain, text))
        }
        ViewEvent::AgentJoins { agent, at, need, workers, then } => {
            let workers = needed_words(*need, *workers);
            let text = format!("{at} waits for {workers}, then {then}");
            Some(LogLine::new(Some(agent.clone()), Weight::Plain, text))
        }
        ViewEvent::AgentAsks { agent, at, question, options } => {
            let options = options_words(options);
            let text = format!("{at} asks: {}{options}", preview(question));
            Some(LogLine::new(Some(agent.clone()), Weight::Plain, text))
        }
        ViewEvent::AgentCancelled { agent, why } => {
            let text = format!("cancelled: {why}");
            Some(LogLine::new(Some(agent.clone()), Weight::Plain, text))
        }
        ViewEvent::AgentRevived(place) => plain(place, &"continues after its failure"),
        ViewEvent::OutputRefused { place, errors, attempt } => {
            let problem = first_problem(errors);
            warning(place, &format_args!("not valid: {problem}; attempt {attempt} follows"))
        }
        ViewEvent::FailureCollected { place, why } => {
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            warning(place, &format_args!("failed, and was collected{why}"))
        }
    }
}

/// Describes the workers that have to end: `all 3 workers`.
fn needed_words(need: Need, workers: usize) -> String {
    let is_single = workers == 1;
    let workers = counted(workers as u64, "worker");
    match need {
        Need::All if is_single => "its worker".to_owned(),
        Need::All => format!("all {workers}"),
        Need::Count(count) => format!("{count} of {workers}"),
        Need::Done => format!("{workers} to end or fail"),
    }
}

/// Describes the workers of a wait that is over.
fn join_words(JoinCounts { end, ended, workers }: JoinCounts) -> String {
    let all = counted(workers as u64, "worker");
    match end {
        WaitEnd::Met => format!(" with {}", counted(ended, "result")),
        WaitEnd::TimedOut => format!(": the wait timed out, {ended} of {all} ended"),
        WaitEnd::Unmet => format!(": too many workers failed, {ended} of {all} ended"),
    }
}

/// Describes how the question of a visit was closed.
fn closed_words(end: &QuestionEnd) -> String {
    match end {
        QuestionEnd::Answered { by, answer } => format!(", {by} answered: {}", preview(answer)),
        QuestionEnd::Expired => ": no answer in time".to_owned(),
    }
}

/// Returns ` (approve | reject)`; nothing if any text is an answer.
pub fn options_words(options: &[String]) -> String {
    if options.is_empty() { String::new() } else { format!(" ({})", options.join(" | ")) }
}

fn of_run(weight: Weight, text: impl Into<String>) -> LogLine {
    LogLine::new(None, weight, text.into())
}

fn history_only(text: &str) -> LogLine {
    LogLine { audience: Audience::HistoryOnly, ..of_run(Weight::Plain, text) }
}

/// Returns a line about an agent, with its place.
fn line_at(
    place: &AgentPlace,
    naming: BackendLabels,
    weight: Weight,
    text: &dyn fmt::Display,
) -> LogLine {
    let location = place.location.as_ref().map_or_else(|| "?".to_owned(), Location::to_string);
    let backend = naming.suffix(place.backend.as_ref());
    LogLine::new(Some(place.agent.clone()), weight, format!("{location}{backend}: {text}"))
}

fn attempt_place(attempt: &Attempt) -> AgentPlace {
    AgentPlace {
        agent: attempt.turn.agent.clone(),
        location: Some(attempt.location.clone()),
        backend: attempt.backend().cloned(),
    }
}

fn began(attempt: &Attempt, cause: AttemptCause, naming: BackendLabels) -> LogLine {
    let place = attempt_place(attempt);
    match cause {
        AttemptCause::NewShare => {
            line_at(&place, naming, Weight::Plain, &"continues with a new budget share")
        }
        AttemptCause::Turn => {
            let again = match attempt.number {
                0 | 1 => String::new(),
                number => format!(", attempt {number}"),
            };
            // A detail, because the end of the turn has a line of its own: a visit, a retry or a
            // failure.
            let text = format!("turn {}{again}", attempt.turn.turn);
            line_at(&place, naming, Weight::Detail, &text)
        }
    }
}

fn ended(attempt: &Attempt, naming: BackendLabels) -> Option<LogLine> {
    let place = attempt_place(attempt);
    match &attempt.end.as_ref()?.how {
        How::ShareUsedUp => Some(line_at(&place, naming, Weight::Plain, &"budget share used up")),
        How::Interrupted(by) => {
            Some(line_at(&place, naming, Weight::Warning, &interruption_words(*by)))
        }
        // The next event shows the consequence: a visit, a retry, or the failure of the agent.
        How::Finished | How::Failed(_) | How::Answered(_) => None,
    }
}

fn agent_ended(agent: &AgentId, result: &Value, program: &ProgramKind, bill: &str) -> LogLine {
    let short = format!("ended{bill}");
    let long = || format!("ended: {}{bill}", preview(result));
    let (audience, text) = match program {
        // A branch of steps has no result: its event contains an empty text.
        ProgramKind::Steps(_) => (Audience::Everyone, short),
        _ if *agent == AgentId::main() => (Audience::ShorterLive(short), long()),
        ProgramKind::States | ProgramKind::Ralph(_) => (Audience::Everyone, long()),
    };
    LogLine { agent: Some(agent.clone()), weight: Weight::Plain, audience, text }
}

fn rewound(kept: u64, discarded: &DiscardedCost) -> LogLine {
    let stays = match discarded.amount {
        Micros::ZERO => String::new(),
        // The discarded turns were paid: their cost stays part of the total.
        amount => format!("; the {amount} spent since then stay counted"),
    };
    of_run(Weight::Warning, format!("rewound to record {kept}{stays}"))
}

/// Returns `REVIEW.md #2 (goto)`, `(goto, without a tag)` for an implicit transition, or `(failed
/// result)`. Steps follow each other without a tag, and are visited once.
fn entry(
    to: &Location,
    count: u32,
    transition: Option<&Transition>,
    result: ResultStatus,
) -> String {
    let Some(Transition { tag, instead_of, implicit }) = transition else {
        return to.to_string();
    };
    let again = if count > 1 { format!(" #{count}") } else { String::new() };
    let limit = instead_of.as_ref().map(|meant| format!("; `max_visits` of {meant} reached"));
    let untagged = if *implicit { ", without a tag" } else { "" };
    let failed = if result == ResultStatus::Failed { "failed " } else { "" };
    format!("{to}{again} ({failed}{tag}{untagged}{})", limit.unwrap_or_default())
}

fn retry_words(failure: Option<&TurnFailure>, retry: u32, limit: RetryLimit) -> String {
    let failure = failure.map(ToString::to_string).unwrap_or_default();
    match limit {
        RetryLimit::Step(most) => {
            // Documents count attempts, settings count retries: the first attempt is not a retry.
            let (next, all) = (retry.saturating_add(1), most.saturating_add(1));
            format!("{failure}; attempt {next} of {all} follows")
        }
        RetryLimit::Settings(most) => format!("{failure}; retry {retry} of {most} follows"),
    }
}

fn lost_words(lost: &SessionId, failure: Option<&TurnFailure>) -> String {
    match failure {
        Some(failure) => format!("{failure}: continues in a new session"),
        None => format!("does not continue session {lost}, which was abandoned"),
    }
}

impl AgentCost {
    /// Returns ` · codex $0.10 estimated`, with the backend if texts name backends.
    fn words(&self, naming: BackendLabels) -> String {
        let Some(VisitCost { amount, estimated, unpriced }) = self.cost else {
            return String::new();
        };
        let mut bill = match naming.label(self.backend.as_ref()) {
            Some(backend) if amount > Micros::ZERO => format!(" · {backend} {amount}"),
            // The backend is named even if the visit cost nothing, because it still answered.
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

const fn stop_words(mode: StopMode, by: StopOrigin) -> &'static str {
    match (mode, by) {
        (StopMode::Cancel, _) => "cancelling, because a user asked",
        (StopMode::AfterTurn, _) => "stopping after the turns in flight, because a user asked",
        (StopMode::Now, StopOrigin::Caller) => "stopping, because its caller gave up",
        (StopMode::Now, StopOrigin::Command) => "stopping, because a user asked",
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

fn warning_words(warning: &Warning, time: TimeFormat) -> String {
    if let Warning::ClockSetBack { until } = warning {
        return format!("the clock was set back: the wait begins again, until {}", time(*until));
    }
    warning.to_string()
}

fn hold_words(hold: &Hold, time: TimeFormat) -> String {
    match hold {
        Hold::Quota { until, why } => format!("usage limit, waits until {}: {why}", time(*until)),
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
        Ending::Sleeping => "waiting for a time",
        Ending::NoQuota => "usage limit reached, and the settings forbid waiting",
    }
}

/// Returns the beginning of a payload, on one line.
pub fn preview(value: &Value) -> String {
    const LONGEST: usize = 72;
    match value {
        Value::Inline(text) if text.trim().is_empty() => "(empty)".to_owned(),
        // The text of a blob is in a file, which the core cannot read.
        Value::Blob(blob) => format!("({} bytes)", blob.length),
        Value::Inline(text) => {
            let text = text.trim();
            let first: String =
                // A payload must not break the line or control the terminal.
                text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            match first.char_indices().nth(LONGEST) {
                Some((cut, _)) => format!("{}…", &first[..cut]),
                None => first,
            }
        }
    }
}
