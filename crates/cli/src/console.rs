//! A run as it is watched: a log in which every line names its agent and, on a terminal, live rows
//! below it that say what each agent is at.
//!
//! The log is the same everywhere, and scrolls away as everything does. Nothing is said by colour
//! alone. Off a terminal, or where one does not obey, there are plain lines and no rows.

mod events;
mod mouth;
mod region;
mod rows;
mod terminal;
mod wrap;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::io::stderr;

use anstyle::{AnsiColor, Style};
use jiff::tz::TimeZone;
use raymond_backends::contract::Sign;
use raymond_core::ids::{AgentId, TurnId};
use raymond_core::run::input::StopMode;
use raymond_core::run::{Event, Record, Run};
use raymond_core::time::Timestamp;
use raymond_core::view::{Ledger, Line, Live, Narrator, Stopper, Weight};
use raymond_engine::clock;
use raymond_engine::driver::Head;
use raymond_engine::runner::RunWatcher;

use crate::args::Talk;
use crate::json::{self, Layout};
use crate::secrets::redacted_json;
use crate::streams;
use crate::words::plain;
use events::{Events, MOST_WAITING, Stream};
use mouth::Mouth;
use writer::{Fate, PATIENCE};

pub(crate) use terminal::{edge, width};
pub(crate) use wrap::{Room, whole, wrapped};

/// Says lines on stderr, and nobody waits for whoever reads them.
pub(crate) struct Lines(Mouth);

impl Lines {
    pub(crate) fn open() -> Self {
        Self(Mouth::with_lines())
    }

    pub(crate) fn say(&self, line: &str) {
        self.0.say(line);
    }

    /// Waits until everything is said, as long as somebody listens.
    pub(crate) fn end(self) {
        if self.0.close() == Fate::Stuck {
            streams::give_up_stderr();
        }
    }
}

/// Prints what happens.
pub(crate) struct Console {
    narrator: Narrator,
    least: Weight,
    said: Said,
    mouth: Mouth,
    events: Option<Events>,
    /// The turns whose clients do nothing but try again, so that it is said once.
    retrying: BTreeMap<AgentId, TurnId>,
}

/// What whoever watched knows.
pub(crate) struct Said {
    /// How much was to be said.
    pub(crate) talk: Talk,
    /// The agents of which it was said why they failed.
    pub(crate) failed: BTreeSet<AgentId>,
}

impl Said {
    /// Nobody has watched.
    pub(crate) const fn nothing(talk: Talk) -> Self {
        Self { talk, failed: BTreeSet::new() }
    }
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
        let events = talk.events.then(|| Events::to(anstream::stdout(), MOST_WAITING));
        let (narrator, retrying) = (Narrator::live(), BTreeMap::new());
        Self { narrator, least, said: Said::nothing(talk), mouth, events, retrying }
    }

    /// Waits until everything is said and the rows are gone. A stream that nobody reads is given up.
    pub(crate) fn end(self) -> Said {
        if self.events.map(|events| events.close(PATIENCE)) == Some(Fate::Stuck) {
            streams::give_up_stdout();
        }
        if self.mouth.close() == Fate::Stuck {
            streams::give_up_stderr();
        }
        self.said
    }

    /// Learns what happened before, without a word.
    pub(crate) fn catch_up(&mut self, Head { run, ledger, .. }: &Head) {
        self.narrator = Narrator::after(run, ledger);
        self.mouth.change(|live| *live = Live::after(run, ledger));
    }

    /// Prints the events of a record, where somebody wants them.
    fn print(&mut self, run: &Run, record: &Record) {
        let Some(stream) = &mut self.events else { return };
        let lines = events(record).map(|event| {
            let line = serde_json::json!({ "seq": record.seq, "at": record.at, "event": event });
            json::text(&redacted_json(line), Layout::OneLine)
        });
        // Each of them is offered: none is lost while there is room.
        let told: Vec<Stream> = lines.map(|line| stream.print(line)).collect();
        if told.contains(&Stream::Ended) {
            let id = &run.id;
            self.note(&format!(
                "nobody reads the events, and no more are printed; the journal of {id} has them all"
            ));
        }
    }

    /// How much it matters that a client tries again: the first time since it did anything else, it is
    /// a warning.
    fn retries(&mut self, turn: &TurnId) -> Weight {
        match self.retrying.insert(turn.agent.clone(), turn.clone()) {
            Some(before) if before == *turn => Weight::Detail,
            Some(_) | None => Weight::Warning,
        }
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

impl RunWatcher for Console {
    fn committed(&mut self, run: &Run, _: &Ledger, record: &Record) {
        self.print(run, record);
        self.mouth.change(|live| events(record).for_each(|event| live.note(record.at, event)));
        for event in events(record) {
            if let Some(line) = self.line(event) {
                self.mouth.say(&fitted_line(record.at, &line, edge(&stderr())));
            }
            if let Event::AgentFailed { agent, .. } = event {
                self.said.failed.insert(agent.clone());
            }
            if let Event::TurnStarted { turn, .. } = event {
                self.retrying.remove(&turn.agent);
            }
        }
    }

    fn seen(&mut self, turn: &TurnId, sign: &Sign) {
        let now = clock::now();
        let (weight, text) = match sign {
            Sign::Silent(span) => (Some(Weight::Warning), format!("silent for {span}")),
            Sign::Retries { why } => {
                (Some(self.retries(turn)), format!("the client tries again: {why}"))
            }
            Sign::Tool { name } => (Some(Weight::Detail), name.clone()),
            Sign::Text => (None, "writes".to_owned()),
        };
        if matches!(sign, Sign::Tool { .. } | Sign::Text) {
            self.retrying.remove(&turn.agent);
        }
        // How long nothing was seen is told by what was seen last.
        if !matches!(sign, Sign::Silent(_)) {
            self.mouth.change(|live| live.see(now, &turn.agent, &text));
        }
        if let Some(weight) = weight.filter(|weight| *weight >= self.least) {
            let line = Line { agent: Some(turn.agent.clone()), weight, text };
            self.mouth.say(&fitted_line(now, &line, edge(&stderr())));
        }
    }

    fn note(&mut self, text: &str) {
        const WHO: &str = "raymond: ";
        let room = Room { edge: edge(&stderr()), taken: WHO.len(), indent: WHO.len() };
        self.mouth.say(&format!("{WHO}{}", wrapped(&plain(text), room)));
    }
}

fn events(record: &Record) -> impl Iterator<Item = &Event> {
    record.steps.iter().flat_map(|step| &step.events)
}

/// `12:03:04 main            START.md → REVIEW.md (goto)`
pub(crate) fn format_line(at: Timestamp, line: &Line) -> String {
    fitted_line(at, line, usize::MAX)
}

/// The same, where lines end at an edge: what goes on stands below the text.
pub(crate) fn fitted_line(at: Timestamp, line: &Line, edge: usize) -> String {
    const TEXT: usize = 26;
    let style = match line.weight {
        Weight::Detail => Style::new().dimmed(),
        Weight::Plain => Style::new(),
        Weight::Warning => AnsiColor::Yellow.on_default(),
        Weight::Error => AnsiColor::Red.on_default(),
    };
    let agent = plain(line.agent.as_ref().map_or("·", |agent| agent.as_str()));
    let agent = agent.as_str();
    let (dimmed, named) = (Style::new().dimmed(), agent_style(agent));
    let time = time_of_day(at, &TimeZone::system());
    // What follows a line break must not look like a line of its own.
    let taken = TEXT + agent.len().saturating_sub(16);
    let text = wrapped(&plain(&line.text), Room { edge, taken, indent: TEXT });
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

    // proves: S30
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
