//! What is worth a look, each once.

use raymond_core::run::event::Warning;

/// Warnings of a turn. A client that writes nonsense on every line is told of once.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Vec<Warning>);

impl Warnings {
    /// Kinds of nonsense beyond this many tell nothing new.
    pub(crate) const MAX: usize = 16;

    /// What is quoted in it may be of any length.
    pub(crate) fn add_message(&mut self, message: impl Into<String>) {
        const MAX_LENGTH: usize = 500;
        let mut message = message.into();
        if message.len() > MAX_LENGTH {
            message.truncate(message.floor_char_boundary(MAX_LENGTH));
            message.push('…');
        }
        self.add(Warning::Other { message });
    }

    pub(crate) fn add(&mut self, warning: Warning) {
        if self.0.len() < Self::MAX && !self.0.contains(&warning) {
            self.0.push(warning);
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Warning> {
        self.0
    }
}
