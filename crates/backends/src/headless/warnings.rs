//! The warnings of a turn, each kept once.

use raymond_core::run::warning::Warning;
use raymond_core::text::excerpt_bytes;

/// The warnings of a turn. A client that repeats the same mistake on every line causes one warning.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Vec<Warning>);

impl Warnings {
    /// The maximum number of warnings; more kinds of mistakes give no new information.
    pub(crate) const MAX: usize = 16;

    /// Adds a warning with a text of any length; long texts are shortened.
    pub(crate) fn add_message(&mut self, message: impl Into<String>) {
        // In bytes, because a quoted line may be megabytes long.
        const MAX_LENGTH: usize = 500;
        let message = excerpt_bytes(message.into(), MAX_LENGTH).into_owned();
        self.add(Warning::Other { message });
    }

    pub(crate) fn add(&mut self, warning: Warning) {
        // Equal warnings are dropped, so a client that repeats itself does not fill the journal.
        if self.0.len() < Self::MAX && !self.0.contains(&warning) {
            self.0.push(warning);
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Warning> {
        self.0
    }
}
