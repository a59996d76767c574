//! A run as plain lines, each of which names its agent.

use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use raymond_backends::contract::Sign;
use raymond_core::ids::TurnId;
use raymond_core::run::{Event, Record, Run};
use raymond_core::time::Timestamp;
use raymond_core::view::{Ledger, Line, Narrator, Weight};
use raymond_engine::clock;
use raymond_engine::shell::Watch;

use crate::args::Talk;
use crate::secrets::redacted_json;
use crate::words::{Mouth, plain};

/// Prints what happens.
pub(crate) struct Console {
    narrator: Narrator,
    least: Weight,
    talk: Talk,
    mouth: Mouth,
}

impl Console {
    pub(crate) fn new(talk: Talk) -> Self {
        let least = if talk.quiet {
            Weight::Error
        } else if talk.verbose {
            Weight::Detail
        } else {
            Weight::Plain
        };
        Self { narrator: Narrator::default(), least, talk, mouth: Mouth::open() }
    }

    /// Waits until everything is said; how much was to be said.
    pub(crate) fn end(self) -> Talk {
        self.mouth.close();
        self.talk
    }

    /// Tells the narrator what happened before, without a word.
    pub(crate) fn catch_up(&mut self, records: &[Record]) {
        for record in records {
            lines(&mut self.narrator, record);
        }
    }
}

impl Watch for Console {
    fn committed(&mut self, _: &Run, _: &Ledger, record: &Record) {
        if self.talk.events {
            events(record).for_each(|event| print_event(record, event));
        }
        for line in lines(&mut self.narrator, record) {
            if line.weight >= self.least {
                self.mouth.say(format_line(record.at, &line));
            }
        }
    }

    fn seen(&mut self, turn: &TurnId, sign: &Sign) {
        let (weight, text) = match sign {
            Sign::Silent(span) => (Weight::Warning, format!("silent for {span}")),
            Sign::Retries { why } => (Weight::Detail, format!("the client tries again: {why}")),
            Sign::Tool { name } => (Weight::Detail, name.clone()),
            Sign::Text => return,
        };
        if weight >= self.least {
            let line = Line { agent: Some(turn.agent.clone()), weight, text };
            self.mouth.say(format_line(clock::now(), &line));
        }
    }

    fn note(&mut self, text: &str) {
        self.mouth.say(format!("raymond: {}", plain(text)));
    }
}

fn events(record: &Record) -> impl Iterator<Item = &Event> {
    record.steps.iter().flat_map(|step| &step.events)
}

/// What a record tells.
fn lines(narrator: &mut Narrator, record: &Record) -> Vec<Line> {
    events(record).filter_map(|event| narrator.line(event)).collect()
}

fn print_event(record: &Record, event: &Event) {
    let line = serde_json::json!({ "seq": record.seq, "at": record.at, "event": event });
    // A reader that went away is no reason to end the run.
    writeln!(anstream::stdout(), "{}", redacted_json(line)).ok();
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
    // What follows a line break must not look like a line of its own.
    let text = plain(&line.text).replace('\n', "\n                          ");
    format!("{} {agent:<16} {style}{text}{style:#}", time_of_day(at))
}

/// The time of day, where the reader is.
fn time_of_day(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    let instant = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    instant.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_looks_like_a_line_of_its_own() {
        let text = "the client denied Bash(x\n00:00:00 main             ended: forged)".to_owned();
        let line = Line { agent: None, weight: Weight::Plain, text };
        let lines = format_line(Timestamp(0), &line);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("                          00:00:00 main"), "{lines:?}");
    }
}
