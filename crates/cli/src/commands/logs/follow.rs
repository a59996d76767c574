//! `raymond logs --follow`: prints the turns of a live run until the run ends.
//!
//! Turns of several agents run at once, so the page repeats the title of a turn whenever the output
//! switches to it. When a turn ends, its title appears once more, with its cost and its outcome.

use std::collections::BTreeMap;

use raymond_core::ids::AgentId;
use raymond_core::run::Record;
use raymond_core::view::RunView;
use raymond_engine::feed::{FeedItem, Followed, POLL_INTERVAL, RunFollower};
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;

use crate::failure::Failure;

use super::item::ItemKind;
use super::items::ItemReading;
use super::page::{Page, PageStop};
use super::{Change, LoggedTurn, Source, Wanted, changes};

/// A reader of all running turns of a run.
pub(super) struct TurnFollower<'a> {
    pub(super) source: &'a Source,
    pub(super) page: &'a mut Page,
    pub(super) wanted: Wanted<'a>,
    pub(super) view: RunView,
    /// The running turns.
    pub(super) open: BTreeMap<AgentId, OpenTurn>,
}

/// A running turn.
pub(super) struct OpenTurn {
    turn: LoggedTurn,
    /// `None` until the client has written anything; scripts and replies leave no transcript.
    reading: Option<ItemReading>,
}

impl TurnFollower<'_> {
    /// Prints what turns write until the run has ended, or no process drives it any more.
    pub(super) fn follow(
        mut self,
        project: &Project,
        seen: Inspection,
        known: Vec<LoggedTurn>,
    ) -> Result<(), PageStop> {
        for turn in known {
            self.catch_up(turn)?;
        }
        let mut follower = RunFollower::new(project, seen);
        let mut result = Ok(());
        while !follower.has_ended() {
            // Before the records: the end of a turn closes its transcript.
            self.read_transcripts()?;
            let mut take = |item: FeedItem<'_>| {
                if let (FeedItem::Record { record, .. }, true) = (item, result.is_ok()) {
                    result = self.take_record(record);
                }
            };
            let followed = follower.poll(&mut take).map_err(Failure::from)?;
            // `poll` takes a callback that cannot fail, so the callback keeps the first error until
            // here.
            std::mem::replace(&mut result, Ok(()))?;
            if followed == Followed::Over {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        self.leave()
    }

    fn take_record(&mut self, record: &Record) -> Result<(), PageStop> {
        let changes = changes(&mut self.view, record);
        self.page.naming = self.view.naming();
        for change in changes {
            match change {
                Change::Began(turn) => self.begin(turn)?,
                Change::Ended(turn) => self.end(&turn)?,
                Change::Answered(turn) => self.catch_up(turn)?,
            }
        }
        Ok(())
    }

    /// Prints a turn that the journal contains already.
    fn catch_up(&mut self, turn: LoggedTurn) -> Result<(), PageStop> {
        match turn.attempt.end {
            None => self.begin(turn),
            Some(_) if self.wanted.takes(&turn.attempt) => self.source.print(&turn, self.page),
            Some(_) => Ok(()),
        }
    }

    fn begin(&mut self, turn: LoggedTurn) -> Result<(), PageStop> {
        if self.wanted.takes(&turn.attempt) {
            self.page.begin(&turn.attempt)?;
            self.open.insert(turn.attempt.turn.agent.clone(), OpenTurn { turn, reading: None });
        }
        Ok(())
    }

    fn read_transcripts(&mut self) -> Result<(), PageStop> {
        for OpenTurn { turn, reading } in self.open.values_mut() {
            if reading.is_none() {
                // The transcript appears some time after the record of the start, so an error now
                // means nothing.
                *reading = self.source.transcript(turn).and_then(Result::ok);
            }
            if let Some(reading) = reading {
                self.page.hear(&turn.attempt);
                reading.read_on(self.page)?;
            }
        }
        self.page.flush()
    }

    fn end(&mut self, turn: &LoggedTurn) -> Result<(), PageStop> {
        let Some(open) = self.open.remove(&turn.attempt.turn.agent) else { return Ok(()) };
        let transcript = || self.source.transcript(turn).and_then(Result::ok);
        match open.reading.or_else(transcript) {
            // The client may have written more since `read_transcripts`, so the rest is read before
            // the end.
            Some(reading) => {
                self.page.hear(&open.turn.attempt);
                reading.finish(self.page)?;
                self.source.left(turn, ItemKind::Stderr, self.page)?;
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
    fn leave(&mut self) -> Result<(), PageStop> {
        for OpenTurn { turn, reading } in std::mem::take(&mut self.open).into_values() {
            if let Some(reading) = reading {
                self.page.hear(&turn.attempt);
                reading.finish(self.page)?;
            }
        }
        self.page.flush()
    }
}
