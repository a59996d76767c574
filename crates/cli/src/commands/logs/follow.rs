//! `raymond logs --follow`: prints the turns of a live run until the run ends.
//!
//! Turns of several agents run at once, so the page repeats the title of a turn whenever the output
//! switches to it. When a turn ends, its title appears once more, with its cost and its outcome.

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

use crate::failure::Failure;

use super::item::Kind;
use super::items::Reading;
use super::page::{Page, Stop};
use super::{Source, Turn, Wanted, changes};

/// Pause between two reads of the journal and the transcripts: short enough to look live.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A reader of all running turns of a run.
pub(super) struct TurnFollower<'a> {
    pub(super) source: &'a Source,
    pub(super) page: &'a mut Page,
    pub(super) wanted: Wanted<'a>,
    pub(super) turns: Turns,
    /// The running turns.
    pub(super) open: BTreeMap<AgentId, OpenTurn>,
}

/// A running turn.
pub(super) struct OpenTurn {
    turn: Turn,
    /// `None` until the client has written anything; scripts and replies leave no transcript.
    reading: Option<Reading>,
}

impl TurnFollower<'_> {
    /// Prints what turns write until the run has ended, or no process drives it any more.
    pub(super) fn follow(
        mut self,
        project: &Project,
        mut seen: Inspection,
        known: Vec<Turn>,
    ) -> Result<(), Stop> {
        let run = seen.header.run.clone();
        let path = project.paths(&run).journal;
        for turn in known {
            self.catch_up(turn)?;
        }
        while !matches!(seen.head.run.phase, Phase::Ended(_)) {
            self.read_transcripts()?;
            // Read the owner before the journal: an owner that ends in between has already written
            // its last record, so nothing is missed.
            let owner = inspect::owner(project, &run).map_err(Failure::from)?;
            let followed = Journal::follow(project.disk.as_ref(), &path, &mut seen.journal.cursor);
            let lines = followed.map_err(Failure::from)?;
            for line in lines.iter() {
                let record = fold::record(line.body, line.seq).map_err(Failure::from)?;
                seen.head.fold(&record);
                self.page.naming = seen.head.ledger.naming();
                for (change, outcome) in changes(&mut self.turns, &record) {
                    match change {
                        Change::Started(attempt) => self.begin(Turn { attempt, outcome })?,
                        Change::Ended(attempt) => self.end(&Turn { attempt, outcome })?,
                        Change::Answered(attempt, _) => self.catch_up(Turn { attempt, outcome })?,
                    }
                }
            }
            if owner.is_none() && lines.is_empty() {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        self.leave()
    }
    /// Prints a turn that the journal contains already.
    fn catch_up(&mut self, turn: Turn) -> Result<(), Stop> {
        match turn.attempt.end {
            None => self.begin(turn),
            Some(_) if self.wanted.takes(&turn.attempt) => self.source.print(&turn, self.page),
            Some(_) => Ok(()),
        }
    }

    fn begin(&mut self, turn: Turn) -> Result<(), Stop> {
        if self.wanted.takes(&turn.attempt) {
            self.page.begin(&turn.attempt)?;
            self.open.insert(turn.attempt.turn.agent.clone(), OpenTurn { turn, reading: None });
        }
        Ok(())
    }

    fn read_transcripts(&mut self) -> Result<(), Stop> {
        for OpenTurn { turn, reading } in self.open.values_mut() {
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

    /// Prints the rest of running turns whose owner is gone.
    fn leave(&mut self) -> Result<(), Stop> {
        for OpenTurn { turn, reading } in std::mem::take(&mut self.open).into_values() {
            if let Some(reading) = reading {
                self.page.hear(&turn.attempt);
                reading.finish(self.page)?;
            }
        }
        self.page.flush()
    }
}
