//! Follows a run that another process drives, without changing it.

use std::time::{Duration, Instant};

use raymond_core::run::Phase;
use raymond_store::lock::Owner;
use raymond_store::{Journal, RunPaths};

use super::transcripts::TranscriptFollower;
use super::{FeedCursor, FeedItem, NoteKind};
use crate::inspect::{self, InspectError, Inspection};
use crate::project::Project;
use crate::suspension::Suspension;
use crate::{clock, fold};

/// Pause between two polls: short enough to look live.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A reader of the feed of a run, from the files of the run.
pub struct RunFollower<'p> {
    project: &'p Project,
    paths: RunPaths,
    seen: Inspection,
    progress: Option<TranscriptFollower>,
    suspension: Suspension,
}

/// Whether more items may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    More,
    /// The run has ended, or no process drives it any more.
    Over,
}

impl<'p> RunFollower<'p> {
    /// Returns a follower that begins after what was seen of the run. It reports no progress.
    pub fn new(project: &'p Project, seen: Inspection) -> Self {
        let paths = project.paths(&seen.header.run);
        Self { project, paths, seen, progress: None, suspension: Suspension::default() }
    }

    /// Also reports the progress of turns in flight, from their transcripts.
    #[must_use]
    pub fn with_progress(mut self) -> Self {
        self.progress = Some(TranscriptFollower::new(self.paths.transcripts.clone()));
        self
    }

    /// Returns whether the run has ended, so that nothing will follow.
    pub const fn has_ended(&self) -> bool {
        matches!(self.seen.head.run.phase, Phase::Ended(_))
    }

    /// Returns the run as it was known after the last poll.
    pub fn into_seen(self) -> Inspection {
        self.seen
    }

    /// Takes everything that happened since the last poll.
    pub fn poll(&mut self, take: &mut dyn FnMut(FeedItem<'_>)) -> Result<Followed, InspectError> {
        if self.has_ended() {
            return Ok(Followed::Over);
        }
        // Read the owner before the journal: an owner that ends in between has already written its
        // last record, so nothing is missed.
        let owner = inspect::owner_and_life(self.project, &self.seen.header.run)?;
        let has_news = self.take_records(take)?;
        // The owner is gone and its last records are taken: nothing will follow.
        let Some((owner, life)) = owner else {
            return Ok(if has_news { self.take_progress(take) } else { Followed::Over });
        };
        if self.suspension.is_news(life, Instant::now()) {
            // A suspended owner writes nothing, so without this note a watcher would look stuck.
            take(FeedItem::Note(suspended(owner)));
        }
        Ok(self.take_progress(take))
    }

    /// Takes the new records, and returns whether there were any.
    fn take_records(&mut self, take: &mut dyn FnMut(FeedItem<'_>)) -> Result<bool, InspectError> {
        let (disk, journal) = (self.project.disk.as_ref(), &self.paths.journal);
        let lines = Journal::follow(disk, journal, &mut self.seen.journal.cursor)?;
        for line in lines.iter() {
            let record = fold::record(line.body, line.seq)?;
            self.seen.head.fold(&record);
            let (cursor, run) = (FeedCursor::of(&line), &self.seen.head.run);
            take(FeedItem::Record { cursor, record: &record, run });
        }
        Ok(!lines.is_empty())
    }

    fn take_progress(&mut self, take: &mut dyn FnMut(FeedItem<'_>)) -> Followed {
        if let Some(transcripts) = &mut self.progress {
            transcripts.poll(&self.seen.head.run, |turn, progress| {
                take(FeedItem::Progress { turn, at: clock::now(), progress });
            });
        }
        Followed::More
    }
}

fn suspended(owner: Owner) -> NoteKind {
    NoteKind::OwnerSuspended(Box::new(owner))
}
