//! One attempt at a turn: its state, its prompt, its cost, its end.
//!
//! [`super::RunView`] makes attempts from events. The texts of a turn are not here: they are in its
//! transcript, or in the cause of its failure.

use crate::agent::Location;
use crate::budget::{Basis, Charge, Micros};
use crate::crayfish::problem::{Problem, first_problem};
use crate::failure::TurnFailure;
use crate::ids::{BackendName, TurnId};
use crate::run::stop::Interruption;
use crate::scheduler::{Lane, Prompt};
use crate::time::Timestamp;

use super::backend_labels::BackendLabels;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub turn: TurnId,
    /// The attempt, from 1.
    pub number: u32,
    pub location: Location,
    /// How often the agent had entered the state, including this visit.
    pub visit: u32,
    /// The script or backend.
    pub lane: Lane,
    pub sent: Sent,
    pub started: Timestamp,
    /// Its budget share; `None` without a cap, and for scripts.
    pub share: Option<Micros>,
    /// Its end; `None` while it is in flight.
    pub end: Option<End>,
}

/// The prompt of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The body of its state.
    Body,
    Reminder,
}

impl Sent {
    pub(super) const fn of(prompt: &Prompt) -> Self {
        match prompt {
            Prompt::Body => Self::Body,
            Prompt::Reminder(_) => Self::Reminder,
        }
    }
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub at: Timestamp,
    pub charge: Charge,
    /// The model, if the client reported it.
    pub model: Option<String>,
    pub how: How,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    Finished,
    /// Its budget share was used up, and it continued with a new share.
    ShareUsedUp,
    Failed(TurnFailure),
    Interrupted(Interruption),
    /// It never ran, because a caller answered.
    Answered(CallerAnswer),
}

/// The outcome of a caller's answer, which an agent step takes instead of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerAnswer {
    Taken,
    Invalid(Vec<Problem>),
    Stale,
}

impl CallerAnswer {
    fn words(&self) -> String {
        match self {
            Self::Taken => "answered by the caller".to_owned(),
            Self::Invalid(errors) => {
                let first = first_problem(errors);
                let colon = if first.is_empty() { "" } else { ": " };
                format!("answered by the caller, not valid{colon}{first}")
            }
            Self::Stale => "answered by the caller, for an attempt that is over".to_owned(),
        }
    }
}

impl Attempt {
    /// Returns the backend; a script has none.
    pub const fn backend(&self) -> Option<&BackendName> {
        self.lane.backend()
    }

    /// Returns `REVIEW.md #2 · turn 1 · codex · gpt-5.5 · $0.12 · finished after 12s`.
    pub fn title(&self, naming: BackendLabels) -> String {
        if let Some(End { how: How::Answered(answer), .. }) = &self.end {
            // No turn ran, so there is no backend, cost or duration to show.
            return format!("{} · attempt {} · {}", self.location, self.number, answer.words());
        }
        // Most states are visited once, so a first visit has no number.
        let visit = if self.visit > 1 { format!(" #{}", self.visit) } else { String::new() };
        let sent = match self.sent {
            Sent::Body => "",
            Sent::Reminder => " (a reminder)",
        };
        let again =
            if self.number > 1 { format!(", attempt {}", self.number) } else { String::new() };
        let mut parts = vec![
            format!("{}{visit}", self.location),
            format!("turn {}{sent}{again}", self.turn.turn),
        ];
        parts.extend(naming.label(self.backend()).map(ToString::to_string));
        match &self.end {
            None => parts.push("in flight".to_owned()),
            Some(end) => {
                parts.extend(end.model.clone());
                parts.extend(price(end.charge));
                let took = elapsed(self.started, end.at);
                parts.push(end.how.words(&took));
            }
        }
        parts.join(" · ")
    }
}

impl How {
    fn words(&self, took: &str) -> String {
        match self {
            Self::Finished => format!("finished after {took}"),
            Self::ShareUsedUp => format!("budget share used up after {took}"),
            Self::Failed(failure) => format!("failed after {took}: {failure}"),
            Self::Interrupted(Interruption::Crash) => "interrupted when its owner died".to_owned(),
            Self::Interrupted(Interruption::Stop) => format!("stopped after {took}"),
            Self::Answered(answer) => answer.words(),
        }
    }

    /// Returns the word in JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            // Programs read these words, so they stay when the texts for people change.
            Self::Finished => "finished",
            Self::ShareUsedUp => "share_used_up",
            Self::Failed(_) => "failed",
            Self::Interrupted(Interruption::Crash) => "interrupted",
            Self::Interrupted(Interruption::Stop) => "stopped",
            Self::Answered(CallerAnswer::Taken) => "answered",
            Self::Answered(CallerAnswer::Invalid(_)) => "not_valid",
            Self::Answered(CallerAnswer::Stale) => "stale",
        }
    }
}

fn price(charge: Charge) -> Option<String> {
    match charge.basis {
        Basis::Free => None,
        Basis::Reported => Some(charge.amount.to_string()),
        Basis::Estimated => Some(format!("{} estimated", charge.amount)),
        // A part of the cost is known, and the rest is not zero.
        Basis::Unpriced if charge.amount > Micros::ZERO => {
            Some(format!("{} + unpriced", charge.amount))
        }
        Basis::Unpriced => Some("unpriced".to_owned()),
    }
}

/// Returns a duration such as `840ms`, `12s`, `4m 12s` or `2h 5m`.
pub fn elapsed(from: Timestamp, to: Timestamp) -> String {
    // The clock may have been set back between the two records.
    let millis = to.0.saturating_sub(from.0);
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Cost;
    use crate::decide::tests::play::{Play, USUAL, prompts, usd, workflow};
    use crate::run::stop::StopMode;
    use crate::view::{RunView, ViewEvent};

    /// Returns the titles of all turns so far, with a second between two events.
    fn titles(play: &Play) -> Vec<String> {
        titled(play, BackendLabels::Hidden)
    }

    fn titled(play: &Play, naming: BackendLabels) -> Vec<String> {
        let mut view = RunView::default();
        let noted = (0..).zip(&play.story);
        let noted = noted.filter_map(|(n, event)| view.note(Timestamp(n * 1000), event));
        let ended = noted.filter_map(|noted| {
            let ViewEvent::AttemptEnded(attempt) = noted else { return None };
            Some(attempt)
        });
        let mut all: Vec<Attempt> = ended.collect();
        all.extend(view.in_flight().cloned());
        let title =
            |attempt: &Attempt| format!("{}: {}", attempt.turn.agent, attempt.title(naming));
        all.iter().map(title).collect()
    }

    #[test]
    fn turn_shows_place_cost_and_outcome() {
        let mut play = Play::new(prompts(&["A.md", "B.md"])).started();
        assert_eq!(titles(&play), ["main: A.md · turn 1 · in flight"]);
        play.says("main", "no tag");
        play.says("main", "<goto>B</goto>");
        play.says("main", "<goto>A</goto>");
        play.stumbles("main");
        assert_eq!(
            titles(&play),
            [
                "main: A.md · turn 1 · $0.10 · finished after 1s",
                "main: A.md · turn 2 (a reminder) · $0.10 · finished after 1s",
                "main: B.md · turn 1 · $0.10 · finished after 1s",
                "main: A.md #2 · turn 1 · $0.10 · failed after 1s: transient failure: overloaded",
            ]
        );
    }

    #[test]
    fn turns_of_siblings_are_distinguished() {
        let mut play = Play::new(workflow(&[("A.sh", ""), ("W.md", "text")])).started();
        play.says("main", r#"<fork next="A">W</fork>"#);
        play.costs(Cost::Unknown);
        play.says("main_w1", "<result>x</result>");
        play.stop(StopMode::Now);
        assert_eq!(
            titles(&play),
            [
                "main: A.sh · turn 1 · finished after 1s",
                "main_w1: W.md · turn 1 · unpriced · finished after 1s",
                "main: A.sh #2 · turn 1 · in flight",
            ]
        );
    }

    #[test]
    fn partial_cost_shows_unpriced_attempts() {
        let check = |cost: Cost, expected: &str| {
            let mut play = Play::new(prompts(&["A.md"])).started();
            play.costs(cost).says("main", "<result>x</result>");
            let title = format!("main: A.md · turn 1 · {expected} · finished after 1s");
            assert_eq!(titles(&play), [title]);
        };
        check(Cost::Unknown, "unpriced");
        check(Cost::AtLeast(Micros(200_000)), "$0.20 + unpriced");
        check(Cost::Estimated(Micros(200_000)), "$0.20 estimated");
    }

    #[test]
    fn interrupted_attempt_is_followed_by_another() {
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.costs(Cost::Reported(usd("10")));
        play.is_capped("main");
        play.settings.budget = Some(usd("100"));
        play.resume();
        play.costs(USUAL).crashes(true);
        play.halt();
        assert_eq!(
            titles(&play),
            [
                "main: A.md · turn 1 · $10.00 · budget share used up after 1s",
                "main: A.md · turn 1, attempt 2 · $0.10 · interrupted when its owner died",
                "main: A.md · turn 1, attempt 3 · $0.10 · stopped after 2s",
            ]
        );
    }

    #[test]
    fn every_end_has_one_word() {
        let ends = [
            How::Finished,
            How::ShareUsedUp,
            How::Failed(TurnFailure::Task { why: String::new() }),
            How::Interrupted(Interruption::Crash),
            How::Interrupted(Interruption::Stop),
            How::Answered(CallerAnswer::Taken),
            How::Answered(CallerAnswer::Invalid(Vec::new())),
            How::Answered(CallerAnswer::Stale),
        ];
        assert_eq!(
            ends.each_ref().map(How::as_str).join(" "),
            "finished share_used_up failed interrupted stopped answered not_valid stale"
        );
    }

    #[test]
    fn spans_are_shown_in_two_largest_units() {
        let check = |millis: u64, expected: &str| {
            assert_eq!(elapsed(Timestamp(5), Timestamp(5 + millis)), expected);
        };
        check(0, "0ms");
        check(840, "840ms");
        check(12_900, "12s");
        check(252_000, "4m 12s");
        check(7_500_000, "2h 5m");
        assert_eq!(elapsed(Timestamp(9), Timestamp(5)), "0ms");
    }
}
