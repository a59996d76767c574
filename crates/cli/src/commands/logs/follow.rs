//! A live run, followed until it ends.
//!
//! Turns of several agents are in flight at once: whenever another one speaks, its line is told
//! again. A turn that has ended is named once more, with its cost and how it ended.

use std::collections::BTreeMap;
use std::time::Duration;

use raymond_core::ids::AgentId;
use raymond_core::run::Phase;
use raymond_core::view::Turns;
use raymond_core::view::turns::Change;
use raymond_engine::fold;
use raymond_engine::inspect::{self, Inspection};
use raymond_engine::project::Project;
use raymond_store::Journal;

use crate::args::Logs;
use crate::failure::Failure;

use super::page::{Page, Stop};
use super::words::{Kind, Reading};
use super::{Source, Turn, Wanted, changes};

/// How often the journal and the transcripts are looked at.
const BEAT: Duration = Duration::from_millis(50);

/// Tells what is said until the run has ended, or nobody drives it any more.
pub(super) fn follow(
    project: &Project,
    mut seen: Inspection,
    (turns, known): (Turns, Vec<Turn>),
    flags: &Logs,
    (source, page): (&Source, &mut Page),
) -> Result<(), Stop> {
    let run = seen.header.run.clone();
    let path = project.paths(&run).journal;
    let mut ear = Ear { source, page, wanted: flags.wanted(), turns, open: BTreeMap::new() };
    for turn in known {
        ear.catch_up(turn)?;
    }
    while !matches!(seen.head.run.phase, Phase::Ended(_)) {
        ear.listen()?;
        // The owner first: one that ends in between has written all it will ever write.
        let owner = inspect::owner(project, &run).map_err(Failure::from)?;
        let followed = Journal::follow(project.disk.as_ref(), &path, &mut seen.journal.cursor);
        let lines = followed.map_err(Failure::from)?;
        for line in lines.iter() {
            let record = fold::record(line.body, line.seq).map_err(Failure::from)?;
            seen.head.fold(&record);
            ear.page.naming = seen.head.ledger.naming();
            for (change, outcome) in changes(&mut ear.turns, &record) {
                match change {
                    Change::Started(attempt) => ear.begin(Turn { attempt, outcome })?,
                    Change::Ended(attempt) => ear.end(&Turn { attempt, outcome })?,
                    Change::Answered(attempt, _) => ear.catch_up(Turn { attempt, outcome })?,
                }
            }
        }
        if owner.is_none() && lines.is_empty() {
            break;
        }
        std::thread::sleep(BEAT);
    }
    ear.leave()
}

struct Ear<'a> {
    source: &'a Source,
    page: &'a mut Page,
    wanted: Wanted<'a>,
    turns: Turns,
    /// Those in flight.
    open: BTreeMap<AgentId, Open>,
}

struct Open {
    turn: Turn,
    /// None until its client has written anything, and for whoever leaves no transcript.
    reading: Option<Reading>,
}

impl Ear<'_> {
    /// A turn of which the journal knows already.
    fn catch_up(&mut self, turn: Turn) -> Result<(), Stop> {
        match turn.attempt.end {
            None => self.begin(turn),
            Some(_) if self.wanted.takes(&turn.attempt) => self.source.tell(&turn, self.page),
            Some(_) => Ok(()),
        }
    }

    fn begin(&mut self, turn: Turn) -> Result<(), Stop> {
        if self.wanted.takes(&turn.attempt) {
            self.page.begin(&turn.attempt)?;
            self.open.insert(turn.attempt.turn.agent.clone(), Open { turn, reading: None });
        }
        Ok(())
    }

    fn listen(&mut self) -> Result<(), Stop> {
        for Open { turn, reading } in self.open.values_mut() {
            if reading.is_none() {
                *reading = self.source.transcript(turn).and_then(Result::ok);
            }
            if let Some(reading) = reading {
                self.page.hear(&turn.attempt);
                reading.read_on(self.page)?;
            }
        }
        self.page.flush()
    }

    fn end(&mut self, turn: &Turn) -> Result<(), Stop> {
        let Some(open) = self.open.remove(&turn.attempt.turn.agent) else { return Ok(()) };
        let transcript = || self.source.transcript(turn).and_then(Result::ok);
        match open.reading.or_else(transcript) {
            Some(reading) => {
                self.page.hear(&open.turn.attempt);
                reading.finish(self.page)?;
                self.source.left(turn, Kind::Stderr, self.page)?;
                self.page.title(&turn.attempt)?;
            }
            None => {
                self.page.begin(&turn.attempt)?;
                self.source.recorded(turn, self.page)?;
            }
        }
        self.page.flush()
    }

    /// Whatever is in flight has no owner any more.
    fn leave(&mut self) -> Result<(), Stop> {
        for Open { turn, reading } in std::mem::take(&mut self.open).into_values() {
            if let Some(reading) = reading {
                self.page.hear(&turn.attempt);
                reading.finish(self.page)?;
            }
        }
        self.page.flush()
    }
}
