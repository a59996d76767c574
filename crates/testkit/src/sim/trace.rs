//! A readable trace of a simulation, for debugging a seed.

use raymond_core::run::Record;
use raymond_core::view::{RunView, words};

/// The lines of a trace; empty unless it is enabled.
#[derive(Debug, Default)]
pub struct Trace(Option<Recording>);

#[derive(Debug, Default)]
struct Recording {
    view: RunView,
    lines: Vec<String>,
}

impl Trace {
    pub fn enable(&mut self) {
        self.0 = Some(Recording::default());
    }

    /// Adds a line about an event outside the run.
    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(recording) = &mut self.0 {
            recording.lines.push(format!("       -- {}", line()));
        }
    }

    /// Adds the lines of a durable record.
    pub fn record(&mut self, record: &Record) {
        let Some(Recording { view, lines }) = &mut self.0 else { return };
        for event in record.steps.iter().flat_map(|step| &step.events) {
            let told = view.note(record.at, event);
            if let Some(line) =
                told.and_then(|told| words(&told, view.naming(), |at| at.to_string()))
            {
                let actor = line.agent.as_ref().map_or("run", |agent| agent.as_str());
                lines.push(format!("{:>6} {actor}: {}", record.seq, line.text));
            }
        }
    }

    /// Removes and returns all lines.
    pub fn take_lines(&mut self) -> Vec<String> {
        self.0.as_mut().map(|recording| std::mem::take(&mut recording.lines)).unwrap_or_default()
    }
}
