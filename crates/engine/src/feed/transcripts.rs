//! Reads the transcripts of running turns while another process drives the run.
//!
//! `attach` shows their progress, and `status` finds clients that only retry. The parsers of
//! transcripts are in `raymond_backends::transcript_parser`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::turn_files::transcript;
use raymond_backends::contract::ClientProgress;
use raymond_backends::process::Transcript;
use raymond_backends::transcript_parser::{TranscriptItem, TranscriptParser};
use raymond_core::ids::{AgentId, TurnAttempt, TurnId};
use raymond_core::run::Run;
use raymond_core::scheduler::{Lane, Turn};

/// A reader of the transcripts of all running turns.
pub struct TranscriptFollower {
    transcripts: PathBuf,
    open: BTreeMap<AgentId, OpenTranscript>,
}

struct OpenTranscript {
    attempt: TurnAttempt,
    transcript: Transcript,
    parser: TranscriptParser,
    backlog: Backlog,
}

/// Whether the part of a transcript before the first poll was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backlog {
    Unread,
    Read,
}

impl TranscriptFollower {
    pub fn new(transcripts: PathBuf) -> Self {
        Self { transcripts, open: BTreeMap::new() }
    }

    /// Reports the progress since the last poll; of the backlog, only the last item.
    pub fn poll(&mut self, run: &Run, mut report: impl FnMut(&TurnId, &ClientProgress)) {
        self.open.retain(|agent, _| run.scheduler.in_flight.contains(agent));
        for turn in
            run.scheduler.in_flight.iter().filter_map(|agent| run.scheduler.turns.get(agent))
        {
            let Some(reading) = self.reading(turn) else { continue };
            let mut signs = reading.read_on();
            if reading.backlog == Backlog::Unread && !signs.is_empty() {
                // At the first poll a transcript may contain hours of work; only its last item is
                // current.
                signs.drain(..signs.len() - 1);
                reading.backlog = Backlog::Read;
            }
            for sign in &signs {
                report(&turn.id, sign);
            }
        }
    }

    /// Opens the transcript of a turn, if its client has written anything yet.
    fn reading(&mut self, turn: &Turn) -> Option<&mut OpenTranscript> {
        let (agent, attempt) = (&turn.id.agent, turn.attempt_id());
        let Lane::Prompt(backend) = &turn.lane else { return None };
        if self.open.get(agent).is_none_or(|reading| reading.attempt != attempt) {
            let path = transcript(&self.transcripts, &turn.id, turn.attempt);
            let transcript = Transcript::open(&path).ok()?;
            let (parser, backlog) = (TranscriptParser::of(backend)?, Backlog::Unread);
            let reading = OpenTranscript { attempt, transcript, parser, backlog };
            self.open.insert(agent.clone(), reading);
        }
        self.open.get_mut(agent)
    }
}

impl OpenTranscript {
    fn read_on(&mut self) -> Vec<ClientProgress> {
        let Self { transcript, parser, .. } = self;
        let mut signs = Vec::new();
        // The owner of the run handles an unreadable transcript; here it only means that there is
        // no progress.
        let _unreadable = transcript.read_on(&mut |event| {
            signs.extend(parser.read_event(&event).iter().filter_map(TranscriptItem::progress));
        });
        signs
    }
}
