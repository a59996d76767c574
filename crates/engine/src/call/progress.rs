//! How a call is going, told to whoever follows it.

use raymond_core::crayfish::StepEvent;
use raymond_core::run::record::Step;
use raymond_core::run::{Event, Record, Run};
use raymond_core::view::Ledger;
use tokio::sync::mpsc::UnboundedSender;

use crate::runner::RunWatcher;

/// How a call is going.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How many steps have begun or ended so far: it only grows.
    pub count: u64,
    /// What happened, in one line.
    pub message: String,
}

/// Tells what is recorded.
pub(super) struct ProgressReporter {
    progress: UnboundedSender<Progress>,
    count: u64,
}

impl ProgressReporter {
    pub(super) fn new(progress: UnboundedSender<Progress>) -> Self {
        Self { progress, count: 0 }
    }

    fn report(&mut self, message: String) {
        self.count += 1;
        let progress = Progress { count: self.count, message };
        // Whoever does not listen any more does not want to know.
        self.progress.send(progress).ok();
    }
}

/// Each event of a step, with all of them.
fn with_others(step: &Step) -> impl Iterator<Item = (&Event, &[Event])> {
    step.events.iter().map(|event| (event, step.events.as_slice()))
}

/// Whether a step fails here, for whatever that means.
fn fails(events: &[Event], wanted: &str) -> bool {
    events.iter().any(|event| match event {
        Event::Stepped { fact: StepEvent::Fails { key, .. }, .. } => key.to_string() == wanted,
        Event::Stepped { fact: StepEvent::Done { key, stored }, .. } => {
            !stored.ok && key.to_string() == wanted
        }
        _ => false,
    })
}

impl RunWatcher for ProgressReporter {
    fn committed(&mut self, run: &Run, _: &Ledger, record: &Record) {
        for (event, others) in record.steps.iter().flat_map(with_others) {
            match event {
                // What cannot even begin only fails.
                Event::VisitEntered { state, .. } if fails(others, state.as_str()) => {}
                Event::Stepped { fact: StepEvent::Asks { key, .. }, .. }
                    if fails(others, &key.to_string()) => {}
                Event::RetryAt { turn, retry, of, .. } => {
                    let state = run.agents.get(&turn.agent).map(|agent| &agent.visit.state);
                    let key = state.map(ToString::to_string).unwrap_or_default();
                    let (next, all) = (retry + 1, of.unwrap_or(*retry) + 1);
                    self.report(format!("{key} failed; attempt {next} of {all} follows"));
                }
                Event::VisitEntered { state, .. } => self.report(format!("{state} begins")),
                Event::Stepped { fact, .. } => match fact {
                    StepEvent::Done { key, stored } if stored.ok => {
                        self.report(format!("{key} is done"));
                    }
                    StepEvent::Done { key, .. } | StepEvent::Fails { key, .. } => {
                        self.report(format!("{key} failed"));
                    }
                    StepEvent::Asks { key, attempt, .. } if *attempt > 1 => {
                        self.report(format!("{key} asks for attempt {attempt}"));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }

    fn note(&mut self, text: &str) {
        self.report(text.to_owned());
    }
}
