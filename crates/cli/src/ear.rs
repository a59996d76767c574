//! What is seen of turns that another process watches: their transcripts, read as they grow.

use std::collections::BTreeMap;
use std::path::PathBuf;

use raymond_backends::contract::Sign;
use raymond_backends::process::Transcript;
use raymond_backends::said::{Recount, Said};
use raymond_core::ids::{AgentId, TurnId};
use raymond_core::run::Run;
use raymond_core::scheduler::{Lane, Turn};
use raymond_engine::runner::transcript;

/// Listens to every client of a run.
pub(crate) struct Ear {
    transcripts: PathBuf,
    open: BTreeMap<AgentId, Reading>,
}

struct Reading {
    turn: (TurnId, u32),
    transcript: Transcript,
    recount: Recount,
    past: Past,
}

/// Whether what is read happened before anybody listened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Past {
    Unread,
    Read,
}

impl Ear {
    pub(crate) fn new(transcripts: PathBuf) -> Self {
        Self { transcripts, open: BTreeMap::new() }
    }

    /// Tells what was seen since; of what had been said before, only the last.
    pub(crate) fn listen(&mut self, run: &Run, mut tell: impl FnMut(&TurnId, &Sign)) {
        self.open.retain(|agent, _| run.scheduler.in_flight.contains(agent));
        for turn in
            run.scheduler.in_flight.iter().filter_map(|agent| run.scheduler.turns.get(agent))
        {
            let Some(reading) = self.reading(turn) else { continue };
            let mut signs = reading.read_on();
            if reading.past == Past::Unread && !signs.is_empty() {
                signs.drain(..signs.len() - 1);
                reading.past = Past::Read;
            }
            for sign in &signs {
                tell(&turn.id, sign);
            }
        }
    }

    /// The transcript of a turn, where its client has written anything yet.
    fn reading(&mut self, turn: &Turn) -> Option<&mut Reading> {
        let (agent, attempt) = (&turn.id.agent, (turn.id.clone(), turn.attempt));
        let Lane::Prompt(backend) = &turn.lane else { return None };
        if self.open.get(agent).is_none_or(|reading| reading.turn != attempt) {
            let path = transcript(&self.transcripts, &turn.id, turn.attempt);
            let transcript = Transcript::open(&path).ok()?;
            let (recount, past) = (Recount::of(backend)?, Past::Unread);
            let reading = Reading { turn: attempt, transcript, recount, past };
            self.open.insert(agent.clone(), reading);
        }
        self.open.get_mut(agent)
    }
}

impl Reading {
    fn read_on(&mut self) -> Vec<Sign> {
        let Self { transcript, recount, .. } = self;
        let mut signs = Vec::new();
        // The owner of the run notices an error, and acts on it; here there is just nothing to show.
        let _unreadable = transcript.read_on(&mut |heard| {
            signs.extend(recount.hear(&heard).iter().filter_map(Said::sign));
        });
        signs
    }
}
