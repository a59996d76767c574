//! Reports the progress of a call, one line for each step that starts or ends.

use raymond_core::agent::Location;
use raymond_core::crayfish::{StepEvent, StepKey};
use raymond_core::run::record::RecordStep;
use raymond_core::run::{Event, Record, Run};
use tokio::sync::mpsc::UnboundedSender;

use crate::feed::{FeedItem, RunWatcher};

/// A line of progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallProgress {
    /// The number of lines so far. MCP requires that it only grows.
    pub count: u64,
    pub message: String,
}

/// Reports each durable record as lines of progress.
pub(super) struct ProgressReporter {
    progress: UnboundedSender<CallProgress>,
    count: u64,
}

impl ProgressReporter {
    pub(super) fn new(progress: UnboundedSender<CallProgress>) -> Self {
        Self { progress, count: 0 }
    }

    fn report(&mut self, message: String) {
        self.count += 1;
        let progress = CallProgress { count: self.count, message };
        // The caller may have dropped the receiver: progress is optional.
        self.progress.send(progress).ok();
    }

    fn report_record(&mut self, run: &Run, record: &Record) {
        for (event, others) in record.steps.iter().flat_map(with_others) {
            match event {
                // A step that fails before it starts gets one line, for the failure.
                Event::VisitEntered { location: Location::Step(key), .. } if fails(others, key) => {
                }
                Event::Stepped { event: StepEvent::Asked { key, .. }, .. }
                    if fails(others, key) => {}
                Event::RetryAt { turn, retry, of, .. } => {
                    let location = run.agents.get(&turn.agent).map(|agent| &agent.visit.location);
                    let key = location.map(ToString::to_string).unwrap_or_default();
                    let (next, all) = (retry + 1, of.unwrap_or(*retry) + 1);
                    self.report(format!("{key} failed; attempt {next} of {all} follows"));
                }
                Event::VisitEntered { location, .. } => self.report(format!("{location} begins")),
                Event::Stepped { event, .. } => match event {
                    StepEvent::Done { key, stored } if stored.ok => {
                        self.report(format!("{key} is done"));
                    }
                    StepEvent::Done { key, .. } | StepEvent::Failed { key, .. } => {
                        self.report(format!("{key} failed"));
                    }
                    StepEvent::Asked { key, attempt, .. } if *attempt > 1 => {
                        self.report(format!("{key} asks for attempt {attempt}"));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

/// Returns each event of a step together with all events of that step.
fn with_others(step: &RecordStep) -> impl Iterator<Item = (&Event, &[Event])> {
    step.events.iter().map(|event| (event, step.events.as_slice()))
}

/// Returns whether one of these events is the failure of the step with this key.
fn fails(events: &[Event], wanted: &StepKey) -> bool {
    events.iter().any(|event| match event {
        Event::Stepped { event: StepEvent::Failed { key, .. }, .. } => key == wanted,
        Event::Stepped { event: StepEvent::Done { key, stored }, .. } => {
            !stored.ok && key == wanted
        }
        _ => false,
    })
}

impl RunWatcher for ProgressReporter {
    fn take(&mut self, item: FeedItem<'_>) {
        match item {
            FeedItem::Record { record, run, .. } => self.report_record(run, record),
            FeedItem::Note(note) => self.report(note.to_string()),
            FeedItem::Progress { .. } => {}
        }
    }
}
