//! Shows a run on stderr: a log in which every line names its agent and, on a terminal, live rows
//! below it that show the activity of each agent.
//!
//! The log is the same everywhere and scrolls away. Colour never carries information alone. Without
//! a terminal, or on one that cannot move the cursor, there are only lines. `stderr_writer` owns
//! the thread that writes, `rows` computes the rows, `region` draws them.

mod events;
mod region;
mod rows;
mod stderr_writer;
mod wrap;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, stderr, stdout};

use anstyle::{AnsiColor, Style};
use jiff::tz::TimeZone;
use raymond_backends::contract::ClientProgress;
use raymond_core::ids::{AgentId, TurnId};
use raymond_core::run::stop::{StopMode, StopOrigin};
use raymond_core::run::{Event, Record, Run};
use raymond_core::time::Timestamp;
use raymond_core::view::{BackendLabels, LogLine, RunView, ViewEvent, Weight, words};
use raymond_engine::driver::Head;
use raymond_engine::feed::{FeedItem, NoteKind, RunWatcher};

use crate::args::OutputFlags;
use crate::json::{self, Layout};
use crate::local_time::{self, DayHeadings};
use crate::sanitize::sanitized;
use crate::secrets::redacted_json;
use crate::{streams, suspended_owner, terminal};
use events::{EventStream, Events, MAX_WAITING_BYTES};
use stderr_writer::StderrWriter;
use writer::{STUCK_AFTER, WriteFate};

pub(crate) use wrap::{LineLayout, whole, wrapped};

/// A log of lines on stderr that never blocks its caller.
pub(crate) struct StderrLog(StderrWriter);

impl StderrLog {
    pub(crate) fn open() -> Self {
        Self(StderrWriter::with_lines())
    }

    pub(crate) fn say(&self, line: &str) {
        self.0.say(line);
    }

    /// Waits until all lines are written, as long as there is progress.
    pub(crate) fn end(self) {
        if self.0.close() == WriteFate::Stuck {
            streams::give_up_stderr();
        }
    }
}

/// A watcher of a run that prints its events.
pub(crate) struct Console {
    least: Weight,
    shown: AlreadyShown,
    stderr_writer: StderrWriter,
    events: Option<Events>,
    days: DayHeadings,
    /// The turns whose clients only retry, so that a retry is a warning only once.
    retrying: BTreeMap<AgentId, TurnId>,
}

/// The facts that the console has shown already, so that the summary need not repeat them.
pub(crate) struct AlreadyShown {
    pub(crate) output: OutputFlags,
    /// The agents whose failures were printed.
    pub(crate) failed: BTreeSet<AgentId>,
}

impl AlreadyShown {
    /// The value for a run that was not watched.
    pub(crate) const fn nothing(output: OutputFlags) -> Self {
        Self { output, failed: BTreeSet::new() }
    }
}

/// The effect of Ctrl-C on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Stops,
    /// Ctrl-C ends only this process, such as `attach`.
    Leaves,
}

impl Console {
    pub(crate) fn new(output: OutputFlags, interrupt: Interrupt) -> Self {
        let least = if output.quiet {
            Weight::Error
        } else if output.verbose {
            Weight::Detail
        } else {
            Weight::Plain
        };
        let stderr_writer = if takes_rows(output) {
            StderrWriter::with_rows(interrupt)
        } else {
            StderrWriter::with_lines()
        };
        let events = output.events.then(|| Events::to(anstream::stdout(), MAX_WAITING_BYTES));
        let (shown, retrying) = (AlreadyShown::nothing(output), BTreeMap::new());
        let days = DayHeadings::default();
        Self { least, shown, stderr_writer, events, days, retrying }
    }

    /// Waits until everything is written and the rows are removed; gives up a stream that is stuck.
    pub(crate) fn end(self) -> AlreadyShown {
        if self.events.map(|events| events.close(STUCK_AFTER)) == Some(WriteFate::Stuck) {
            streams::give_up_stdout();
        }
        if self.stderr_writer.close() == WriteFate::Stuck {
            streams::give_up_stderr();
        }
        self.shown
    }

    /// Takes over the state of a run without printing its past.
    pub(crate) fn catch_up(&mut self, Head { run, ledger, .. }: &Head) {
        self.stderr_writer.change(|view| *view = RunView::of(run, ledger));
    }

    /// Prints the events of a record to stdout if `--events` was given.
    fn print(&mut self, run: &Run, record: &Record) {
        let Some(stream) = &mut self.events else { return };
        let lines = events(record).map(|event| {
            let line = serde_json::json!({ "seq": record.seq, "at": record.at, "event": event });
            json::text(&redacted_json(line), Layout::OneLine)
        });
        // Collected before the check, because `any` would stop at the first end of the stream and
        // lose the other lines of this record.
        let results: Vec<EventStream> = lines.map(|line| stream.print(line)).collect();
        if results.contains(&EventStream::Ended) {
            let id = &run.id;
            self.say_note(&format!(
                "stopped printing events because no process reads them; the journal of {id} contains them all"
            ));
        }
    }

    /// Returns the weight of a retry: a warning at first, a detail until the client makes progress.
    fn retries(&mut self, turn: &TurnId) -> Weight {
        match self.retrying.insert(turn.agent.clone(), turn.clone()) {
            Some(before) if before == *turn => Weight::Detail,
            Some(_) | None => Weight::Warning,
        }
    }

    /// Returns the line for an event, unless it is below the chosen verbosity.
    fn line(&self, event: &ViewEvent, naming: BackendLabels) -> Option<LogLine> {
        let mut line = words(event, naming, local_time::date_time)?.live()?;
        // Only a user at this terminal can press Ctrl-C again; for `raymond stop` the hint would be
        // wrong.
        if let ViewEvent::StopRequested { mode: StopMode::Now, by: StopOrigin::Signal } = event
            && terminal::is_there()
        {
            "stopping; Ctrl-C again ends everything at once".clone_into(&mut line.text);
        }
        let is_mistake = matches!(
            event,
            ViewEvent::Warned { warning, .. } if warning.is_mistake_of_workflow()
        );
        (is_mistake || line.weight >= self.least).then_some(line)
    }
}

impl RunWatcher for Console {
    fn take(&mut self, item: FeedItem<'_>) {
        match item {
            FeedItem::Record { record, run, .. } => {
                self.print(run, record);
                self.show_record(record);
            }
            FeedItem::Progress { turn, at, progress } => self.show_progress(turn, at, progress),
            FeedItem::Note(NoteKind::OwnerSuspended(owner)) => {
                self.say_note(&suspended_owner::describe_with_hint(&owner));
            }
            FeedItem::Note(note) => self.say_note(&note.to_string()),
        }
    }
}

impl Console {
    fn show_record(&mut self, record: &Record) {
        // All events first: the rows must never show half of a record.
        let noted: Vec<(ViewEvent, BackendLabels)> = self.stderr_writer.change(|view| {
            let note = |event| Some((view.note(record.at, event)?, view.naming()));
            events(record).filter_map(note).collect()
        });
        for (event, naming) in &noted {
            if let Some(line) = self.line(event, *naming) {
                self.say_line(record.at, &line);
            }
            if let ViewEvent::AgentFailed { place, .. } = event {
                self.shown.failed.insert(place.agent.clone());
            }
            if let ViewEvent::AttemptBegan { attempt, .. } = event {
                self.retrying.remove(&attempt.turn.agent);
            }
        }
    }

    fn show_progress(&mut self, turn: &TurnId, now: Timestamp, sign: &ClientProgress) {
        let (weight, text) = match sign {
            ClientProgress::Silent(span) => (Some(Weight::Warning), format!("silent for {span}")),
            ClientProgress::Retries { why } => {
                (Some(self.retries(turn)), format!("the client tries again: {why}"))
            }
            ClientProgress::Tool { name } => (Some(Weight::Detail), name.clone()),
            ClientProgress::Text => (None, "writes".to_owned()),
        };
        if matches!(sign, ClientProgress::Tool { .. } | ClientProgress::Text) {
            self.retrying.remove(&turn.agent);
        }
        // A row shows the age of the last activity, so silence must not count as activity.
        if !matches!(sign, ClientProgress::Silent(_)) {
            self.stderr_writer.change(|view| view.see(now, turn, &text));
        }
        if let Some(weight) = weight.filter(|weight| *weight >= self.least) {
            let line = LogLine::new(Some(turn.agent.clone()), weight, text);
            self.say_line(now, &line);
        }
    }

    fn say_line(&mut self, at: Timestamp, line: &LogLine) {
        if let Some(day) = self.days.above(at) {
            self.stderr_writer.say(&day);
        }
        self.stderr_writer.say(&fitted_line(at, line, terminal::edge(&stderr())));
    }

    fn say_note(&self, text: &str) {
        const WHO: &str = "raymond: ";
        let room =
            LineLayout { edge: terminal::edge(&stderr()), taken: WHO.len(), indent: WHO.len() };
        self.stderr_writer.say(&format!("{WHO}{}", wrapped(&sanitized(text), room)));
    }
}

fn events(record: &Record) -> impl Iterator<Item = &Event> {
    record.steps.iter().flat_map(|step| &step.events)
}

/// `12:03:04 main            START.md → REVIEW.md (goto)`
pub(crate) fn format_line(at: Timestamp, line: &LogLine) -> String {
    fitted_line(at, line, usize::MAX)
}

/// Formats a line and wraps it at `edge`; further lines are indented below the text.
pub(crate) fn fitted_line(at: Timestamp, line: &LogLine, edge: usize) -> String {
    const TEXT: usize = 26;
    let style = match line.weight {
        Weight::Detail => Style::new().dimmed(),
        Weight::Plain => Style::new(),
        Weight::Warning => AnsiColor::Yellow.on_default(),
        Weight::Error => AnsiColor::Red.on_default(),
    };
    let agent = sanitized(line.agent.as_ref().map_or("·", |agent| agent.as_str()));
    let agent = agent.as_str();
    let (dimmed, named) = (Style::new().dimmed(), agent_style(agent));
    let time = local_time::time_of_day(at, &TimeZone::system());
    // A line break in foreign text must not start a line that looks like one of Raymond's, so
    // `wrapped` indents what follows.
    let taken = TEXT + agent.len().saturating_sub(16);
    let text = wrapped(&sanitized(&line.text), LineLayout { edge, taken, indent: TEXT });
    format!("{dimmed}{time}{dimmed:#} {named}{agent:<16}{named:#} {style}{text}{style:#}")
}

/// Returns the colour of a worker, which helps the eye; the name carries the same information.
fn agent_style(agent: &str) -> Style {
    const COLOURS: [AnsiColor; 4] =
        [AnsiColor::Cyan, AnsiColor::Green, AnsiColor::Magenta, AnsiColor::BrightBlue];
    let Some((_, worker)) = agent.split_once('_') else { return Style::new() };
    let sum: usize = worker.bytes().map(usize::from).sum();
    COLOURS[sum % COLOURS.len()].on_default()
}

/// Whether to draw live rows: the terminal must move the cursor, the user must want messages, and
/// stdout must not print lines to the same terminal.
fn takes_rows(output: OutputFlags) -> bool {
    let obeys = std::env::var_os("TERM").is_some_and(|kind| kind != "dumb");
    let mixed = output.events && stdout().is_terminal();
    terminal::is_there() && obeys && !output.quiet && !mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: S30
    #[test]
    fn foreign_text_never_looks_like_a_log_line() {
        let text = "the client denied Bash(x\n00:00:00 main             ended: forged)".to_owned();
        let line = LogLine::new(None, Weight::Plain, text);
        let lines = anstream::adapter::strip_str(&format_line(Timestamp(0), &line)).to_string();
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("                          00:00:00 main"), "{lines:?}");
    }
}
