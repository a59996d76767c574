//! How a call is going, told to whoever follows it.

use raymond_core::crayfish::Fact;
use raymond_core::run::{Event, Record, Run};
use raymond_core::view::Ledger;
use tokio::sync::mpsc::UnboundedSender;

use crate::shell::Watch;

/// How a call is going.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How many steps have begun or ended so far: it only grows.
    pub count: u64,
    /// What happened, in one line.
    pub message: String,
}

/// Tells what is recorded.
pub(super) struct Teller {
    progress: UnboundedSender<Progress>,
    count: u64,
}

impl Teller {
    pub(super) fn new(progress: UnboundedSender<Progress>) -> Self {
        Self { progress, count: 0 }
    }

    fn tell(&mut self, message: String) {
        self.count += 1;
        let progress = Progress { count: self.count, message };
        // Whoever does not listen any more does not want to know.
        self.progress.send(progress).ok();
    }
}

impl Watch for Teller {
    fn committed(&mut self, _: &Run, _: &Ledger, record: &Record) {
        for event in record.steps.iter().flat_map(|step| &step.events) {
            match event {
                Event::TurnQueued { turn, .. } | Event::Asked { ask: turn, .. }
                    if turn.turn > 1 =>
                {
                    self.tell(format!("{} is tried again", turn.agent));
                }
                Event::VisitEntered { state, .. } => self.tell(format!("{state} begins")),
                Event::Stepped { fact, .. } => match fact {
                    Fact::Done { key, stored } if stored.ok => self.tell(format!("{key} is done")),
                    Fact::Done { key, .. } | Fact::Fails { key, .. } => {
                        self.tell(format!("{key} failed"));
                    }
                    Fact::Asks { key, attempt, .. } if *attempt > 1 => {
                        self.tell(format!("{key} asks for attempt {attempt}"));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }

    fn note(&mut self, text: &str) {
        self.tell(text.to_owned());
    }
}
