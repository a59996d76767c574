//! The output of `logs`: lines for people, raw transcripts, or one JSON value.
//!
//! Everything is written as it is read. A JSON value is opened, filled turn by turn and closed, so
//! that even a huge run needs little memory.

use std::io::{self, IsTerminal as _, StdoutLock, Write as _};

use raymond_core::budget::{Basis, Charge, Micros};
use raymond_core::ids::{RunId, TurnId};
use raymond_core::run::stop::Interruption;
use raymond_core::view::attempt::{Attempt, CallerAnswer, End, How, Sent};
use raymond_core::view::{BackendLabels, LogLine, Weight};
use serde_json::json;

use crate::console;
use crate::failure::Failure;
use crate::json::{self, Layout};
use crate::local_time::DayHeadings;
use crate::sanitize::sanitized;
use crate::secrets::{redacted_json, redacted_line};

use super::item::LogItem;

/// The reason to stop writing.
pub(super) enum PageStop {
    /// The reader closed stdout.
    ReaderGone,
    Failed(Failure),
}

impl From<Failure> for PageStop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<io::Error> for PageStop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Failed(Failure::environment(format!("could not write to stdout: {error}"))),
        }
    }
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageShape {
    Text,
    Raw,
    Json,
}

/// The output and its position.
pub(super) struct Page {
    shape: PageShape,
    /// Whether turns show their backend.
    pub(super) naming: BackendLabels,
    out: io::BufWriter<StdoutLock<'static>>,
    reader: Reader,
    days: DayHeadings,
    /// The turn of the next item.
    speaker: Option<Attempt>,
    /// The turn whose title was printed last.
    titled: Option<(TurnId, u32)>,
    /// The number of printed turns.
    turns: usize,
    /// The number of printed items of this turn.
    words: usize,
    /// The number of printed transcript lines.
    lines: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Terminal,
    Other,
}

impl Page {
    pub(super) fn new(shape: PageShape, naming: BackendLabels) -> Self {
        let stdout = io::stdout();
        let reader = if stdout.is_terminal() { Reader::Terminal } else { Reader::Other };
        // Transcripts may have many megabytes, and stdout alone writes line by line.
        let out = io::BufWriter::new(stdout.lock());
        let (speaker, titled) = (None, None);
        let days = DayHeadings::default();
        Self { shape, naming, out, reader, days, speaker, titled, turns: 0, words: 0, lines: 0 }
    }

    pub(super) const fn shape(&self) -> PageShape {
        self.shape
    }

    pub(super) fn open(&mut self, run: &RunId) -> Result<(), PageStop> {
        if self.shape == PageShape::Json {
            let version = json::VERSION;
            write!(self.out, r#"{{"version":{version},"run_id":{},"turns":["#, json!(run))?;
        }
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), PageStop> {
        if self.shape == PageShape::Json {
            writeln!(self.out, "]}}")?;
        }
        self.flush()
    }

    pub(super) fn flush(&mut self) -> Result<(), PageStop> {
        Ok(self.out.flush()?)
    }

    pub(super) fn begin(&mut self, attempt: &Attempt) -> Result<(), PageStop> {
        match self.shape {
            PageShape::Raw => {}
            PageShape::Text => self.title(attempt)?,
            PageShape::Json => {
                let before = if self.turns > 0 { "," } else { "" };
                let head = json::text(&redacted_json(object(attempt)), Layout::OneLine);
                // The items follow as the last field of the object, which stays open.
                let head = head.strip_suffix('}').unwrap_or(&head);
                write!(self.out, r#"{before}{head},"said":["#)?;
            }
        }
        self.hear(attempt);
        self.turns += 1;
        self.words = 0;
        Ok(())
    }

    /// Attributes the next items to this turn, which has started before.
    pub(super) fn hear(&mut self, attempt: &Attempt) {
        self.speaker = Some(attempt.clone());
    }

    pub(super) fn end(&mut self) -> Result<(), PageStop> {
        if self.shape == PageShape::Json {
            write!(self.out, "]}}")?;
        }
        Ok(())
    }

    pub(super) fn title(&mut self, attempt: &Attempt) -> Result<(), PageStop> {
        if self.shape != PageShape::Text {
            return Ok(());
        }
        self.titled = Some((attempt.turn.clone(), attempt.number));
        let weight = match attempt.end.as_ref().map(|end| &end.how) {
            None | Some(How::Finished | How::ShareUsedUp | How::Answered(CallerAnswer::Taken)) => {
                Weight::Plain
            }
            Some(
                How::Interrupted(Interruption::Stop | Interruption::Crash)
                | How::Answered(CallerAnswer::Invalid(_) | CallerAnswer::Stale),
            ) => Weight::Warning,
            Some(How::Failed(_)) => Weight::Error,
        };
        let agent = Some(attempt.turn.agent.clone());
        let line = LogLine::new(agent, weight, attempt.title(self.naming));
        if let Some(day) = self.days.above(attempt.started) {
            writeln!(self.out, "{day}")?;
        }
        let line = console::format_line(attempt.started, &line);
        match self.reader {
            Reader::Terminal => writeln!(self.out, "{line}")?,
            // This writer is not anstream's, which would remove styles itself.
            Reader::Other => writeln!(self.out, "{}", anstream::adapter::strip_str(&line))?,
        }
        Ok(())
    }

    pub(super) fn item(&mut self, item: &LogItem) -> Result<(), PageStop> {
        match self.shape {
            PageShape::Raw => return Ok(()),
            PageShape::Text => {
                self.name_speaker()?;
                self.out.write_all(item.lines().as_bytes())?;
            }
            PageShape::Json => {
                let before = if self.words > 0 { "," } else { "" };
                // Not sanitized: `json::text` escapes control characters, and a program needs the
                // exact text.
                let object = json!({ "kind": item.kind.as_str(), "text": item.text });
                let text = json::text(&redacted_json(object), Layout::OneLine);
                write!(self.out, "{before}{text}")?;
            }
        }
        self.words += 1;
        Ok(())
    }

    /// Prints the title again if another turn has written in between.
    fn name_speaker(&mut self) -> Result<(), PageStop> {
        let is_titled = |attempt: &Attempt| {
            self.titled
                .as_ref()
                .is_some_and(|(turn, number)| *turn == attempt.turn && *number == attempt.number)
        };
        match self.speaker.clone() {
            Some(attempt) if !is_titled(&attempt) => self.title(&attempt),
            Some(_) | None => Ok(()),
        }
    }

    /// Prints a line of a transcript, without secrets and, on a terminal, without control
    /// characters.
    pub(super) fn raw(&mut self, line: &[u8]) -> Result<(), PageStop> {
        let text = redacted_line(&String::from_utf8_lossy(line));
        match self.reader {
            Reader::Terminal => writeln!(self.out, "{}", sanitized(&text))?,
            Reader::Other => writeln!(self.out, "{text}")?,
        }
        self.lines += 1;
        Ok(())
    }

    /// Explains why nothing was printed.
    pub(super) fn explain_empty(&self, run: &RunId) {
        if self.turns == 0 {
            crate::say!("{run} has no such turn");
        } else if self.shape == PageShape::Raw && self.lines == 0 {
            crate::say!(
                "no client left a transcript; raymond logs {run} shows the recorded answers"
            );
        }
    }
}

fn object(attempt: &Attempt) -> serde_json::Value {
    let Attempt { turn, number, location, visit, sent, started, end, .. } = attempt;
    let failure = end.as_ref().and_then(|end| match &end.how {
        How::Failed(failure) => Some(failure.to_string()),
        How::Answered(CallerAnswer::Invalid(errors)) => errors.first().map(ToString::to_string),
        How::Finished | How::ShareUsedUp | How::Interrupted(_) | How::Answered(_) => None,
    });
    let end = end.as_ref();
    json!({
        "turn": turn,
        "attempt": number,
        "agent": turn.agent,
        "state": location.to_string(),
        "visit": visit,
        "backend": attempt.backend(),
        "reminder": *sent == Sent::Reminder,
        "started_at": started.to_string(),
        "ended_at": end.map(|end| end.at.to_string()),
        "ended": end.map(|end| end.how.as_str()),
        "failure": failure,
        "model": end.and_then(|end| end.model.as_deref()),
        "spent_usd": end.and_then(spent),
        "basis": end.map(|end| end.charge.basis),
    })
}

/// Returns the charge; `None` if the cost is unknown.
fn spent(end: &End) -> Option<f64> {
    let Charge { amount, basis } = end.charge;
    // Zero dollars would claim that an unpriced turn was free.
    (basis != Basis::Unpriced || amount > Micros::ZERO).then(|| amount.dollars())
}
