//! What happened in a simulation, told line by line to whoever looks for a mistake.

use raymond_core::run::Record;
use raymond_core::view::Narrator;

/// Lines, kept only when somebody wants them.
#[derive(Debug, Default)]
pub struct Story(Option<Telling>);

#[derive(Debug, Default)]
struct Telling {
    narrator: Narrator,
    lines: Vec<String>,
}

impl Story {
    /// Begins to listen.
    pub fn listen(&mut self) {
        self.0 = Some(Telling::default());
    }

    /// Something happened outside the run.
    pub fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(telling) = &mut self.0 {
            telling.lines.push(format!("       -- {}", line()));
        }
    }

    /// A record became durable.
    pub fn record(&mut self, record: &Record) {
        let Some(Telling { narrator, lines }) = &mut self.0 else { return };
        for event in record.steps.iter().flat_map(|step| &step.events) {
            if let Some(line) = narrator.line(event) {
                let whom = line.agent.as_ref().map_or("run", |agent| agent.as_str());
                lines.push(format!("{:>6} {whom}: {}", record.seq, line.text));
            }
        }
    }

    /// Everything so far.
    pub fn lines(&mut self) -> Vec<String> {
        self.0.as_mut().map(|telling| std::mem::take(&mut telling.lines)).unwrap_or_default()
    }
}
