//! What is heard of any client, before its words mean anything.

use raymond_core::run::event::Warning;

use super::{Said, Warnings, shortened};
use crate::process::Heard;

/// How well a client was heard.
#[derive(Debug, Default)]
pub(crate) struct Hearing {
    pub(crate) warnings: Warnings,
    /// What is too much of a transcript, when this one is.
    pub(crate) flooded: Option<u64>,
    /// Whether a line that could not be read may have been the last word.
    pub(crate) unread: bool,
    /// How many lines were too long to be read.
    pub(super) long_lines: usize,
    voice: Voice,
}

/// Whether a client has written anything but blank lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Voice {
    #[default]
    Silent,
    Heard,
}

/// A line that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Nonsense {
    NotJson,
    /// JSON of a type that is not known.
    Unknown(String),
}

impl Hearing {
    /// The text of a line.
    pub(super) fn text(&mut self, bytes: &[u8]) -> String {
        if !bytes.trim_ascii().is_empty() {
            self.voice = Voice::Heard;
        }
        if str::from_utf8(bytes).is_err() {
            self.warnings.add(Warning::InvalidUtf8);
        }
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Whether the client has written nothing.
    pub(super) fn is_silent(&self) -> bool {
        self.voice == Voice::Silent && self.long_lines == 0 && self.flooded.is_none()
    }

    /// A line that was read, and means nothing.
    pub(super) fn nonsense(&mut self, nonsense: Nonsense, line: &str) -> Said {
        match nonsense {
            Nonsense::NotJson => {
                self.warnings.say("the client wrote a line that is not JSON; it was ignored");
                Said::Unread { what: format!("not JSON: {}", shortened(line)) }
            }
            Nonsense::Unknown(kind) => {
                let what = format!("a line of unknown type {kind:?}");
                self.warnings.say(format!("the client wrote {what}; it was ignored"));
                Said::Unread { what }
            }
        }
    }

    /// Whatever is heard beside lines.
    pub(super) fn note(&mut self, heard: &Heard) -> Vec<Said> {
        match heard {
            Heard::Cut { length } => {
                self.long_lines += 1;
                self.unread = true;
                let what = format!("a line of {length} bytes was too long to be read");
                self.warnings.say(what.clone());
                return vec![Said::Unread { what }];
            }
            Heard::Flooded { limit } => self.flooded = Some(*limit),
            Heard::Line(_)
            | Heard::Stderr
            | Heard::Woke { .. }
            | Heard::Exited(_)
            | Heard::Broken { .. }
            | Heard::Deadline => {}
        }
        Vec::new()
    }
}
