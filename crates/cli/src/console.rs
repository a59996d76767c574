//! A run as it is watched: a log in which every line names its agent and, on a terminal, live rows
//! below it that say what each agent is at.
//!
//! The log is the same everywhere, and scrolls away as everything does. Nothing is said by colour
//! alone. Off a terminal, or where one does not obey, there are plain lines and no rows.

mod mouth;
mod region;
mod rows;
mod terminal;

use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use jiff::tz::TimeZone;
use raymond_backends::contract::Sign;
use raymond_core::ids::TurnId;
use raymond_core::run::input::StopMode;
use raymond_core::run::{Event, Record, Run};
use raymond_core::time::Timestamp;
use raymond_core::view::{Ledger, Line, Narrator, Stopper, Weight};
use raymond_engine::clock;
use raymond_engine::shell::Watch;

use crate::args::Talk;
use crate::json::{self, Layout};
use crate::secrets::redacted_json;
use crate::words::plain;
use mouth::Mouth;

pub(crate) use terminal::width;

/// Prints what happens.
pub(crate) struct Console {
    narrator: Narrator,
    least: Weight,
    talk: Talk,
    mouth: Mouth,
}

/// What Ctrl-C does here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// It stops the run.
    Stops,
    /// It leaves the run alone.
    Leaves,
}

impl Console {
    pub(crate) fn new(talk: Talk, interrupt: Interrupt) -> Self {
        let least = if talk.quiet {
            Weight::Error
        } else if talk.verbose {
            Weight::Detail
        } else {
            Weight::Plain
        };
        let mouth = if terminal::takes_rows(talk) {
            Mouth::with_rows(interrupt)
        } else {
            Mouth::with_lines()
        };
        Self { narrator: Narrator::live(), least, talk, mouth }
    }

    /// Waits until everything is said and the rows are gone; how much was to be said.
    pub(crate) fn end(self) -> Talk {
        self.mouth.close();
        self.talk
    }

    /// Learns what happened before, without a word.
    pub(crate) fn catch_up(&mut self, records: &[Record]) {
        for event in records.iter().flat_map(events) {
            self.narrator.line(event);
        }
        self.mouth.change(|live| {
            for record in records {
                events(record).for_each(|event| live.note(record.at, event));
            }
        });
    }

    /// The line for an event, when it is worth one here.
    fn line(&mut self, event: &Event) -> Option<Line> {
        let mut line = self.narrator.line(event)?;
        if let Event::StopRequested { mode: StopMode::Now, key } = event
            && Stopper::of(key) == Stopper::Signal
            && terminal::is_there()
        {
            "stopping; Ctrl-C again ends everything at once".clone_into(&mut line.text);
        }
        (line.weight >= self.least).then_some(line)
    }
}

impl Watch for Console {
    fn committed(&mut self, _: &Run, _: &Ledger, record: &Record) {
        if self.talk.events {
            events(record).for_each(|event| print_event(record, event));
        }
        self.mouth.change(|live| events(record).for_each(|event| live.note(record.at, event)));
        for event in events(record) {
            if let Some(line) = self.line(event) {
                self.mouth.say(format_line(record.at, &line));
            }
        }
    }

    fn seen(&mut self, turn: &TurnId, sign: &Sign) {
        let now = clock::now();
        let (weight, text) = match sign {
            Sign::Silent(span) => (Some(Weight::Warning), format!("silent for {span}")),
            Sign::Retries { why } => {
                (Some(Weight::Detail), format!("the client tries again: {why}"))
            }
            Sign::Tool { name } => (Some(Weight::Detail), name.clone()),
            Sign::Text => (None, "writes".to_owned()),
        };
        // How long nothing was seen is told by what was seen last.
        if !matches!(sign, Sign::Silent(_)) {
            self.mouth.change(|live| live.see(now, &turn.agent, &text));
        }
        if let Some(weight) = weight.filter(|weight| *weight >= self.least) {
            let line = Line { agent: Some(turn.agent.clone()), weight, text };
            self.mouth.say(format_line(now, &line));
        }
    }

    fn note(&mut self, text: &str) {
        self.mouth.say(format!("raymond: {}", plain(text)));
    }
}

fn events(record: &Record) -> impl Iterator<Item = &Event> {
    record.steps.iter().flat_map(|step| &step.events)
}

fn print_event(record: &Record, event: &Event) {
    let line = serde_json::json!({ "seq": record.seq, "at": record.at, "event": event });
    // A reader that went away is no reason to end the run.
    writeln!(anstream::stdout(), "{}", json::text(&redacted_json(line), Layout::OneLine)).ok();
}

/// `12:03:04 main            START.md → REVIEW.md (goto)`
pub(crate) fn format_line(at: Timestamp, line: &Line) -> String {
    let style = match line.weight {
        Weight::Detail => Style::new().dimmed(),
        Weight::Plain => Style::new(),
        Weight::Warning => AnsiColor::Yellow.on_default(),
        Weight::Error => AnsiColor::Red.on_default(),
    };
    let agent = line.agent.as_ref().map_or("·", |agent| agent.as_str());
    let (dimmed, named) = (Style::new().dimmed(), agent_style(agent));
    let time = time_of_day(at, &TimeZone::system());
    // What follows a line break must not look like a line of its own.
    let text = plain(&line.text).replace('\n', "\n                          ");
    format!("{dimmed}{time}{dimmed:#} {named}{agent:<16}{named:#} {style}{text}{style:#}")
}

/// Workers have colours, so that the eye finds the lines of one; a name says the same.
fn agent_style(agent: &str) -> Style {
    const COLOURS: [AnsiColor; 4] =
        [AnsiColor::Cyan, AnsiColor::Green, AnsiColor::Magenta, AnsiColor::BrightBlue];
    let Some((_, worker)) = agent.split_once('_') else { return Style::new() };
    let sum: usize = worker.bytes().map(usize::from).sum();
    COLOURS[sum % COLOURS.len()].on_default()
}

/// The time of day, where the reader is.
fn time_of_day(at: Timestamp, zone: &TimeZone) -> String {
    zoned(at, zone).strftime("%H:%M:%S").to_string()
}

/// A time that lies ahead: of today `14:05`, otherwise `Jan 31 09:00`.
fn time_at(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (zoned(at, zone), zoned(now, zone));
    let shape = if at.date() == now.date() { "%H:%M" } else { "%b %-d %H:%M" };
    at.strftime(shape).to_string()
}

fn zoned(at: Timestamp, zone: &TimeZone) -> jiff::Zoned {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    let instant = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    instant.to_zoned(zone.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_looks_like_a_line_of_its_own() {
        let text = "the client denied Bash(x\n00:00:00 main             ended: forged)".to_owned();
        let line = Line { agent: None, weight: Weight::Plain, text };
        let lines = anstream::adapter::strip_str(&format_line(Timestamp(0), &line)).to_string();
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("                          00:00:00 main"), "{lines:?}");
    }
}
