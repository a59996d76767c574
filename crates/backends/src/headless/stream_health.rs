//! What is heard of any client, before its words mean anything.

use raymond_core::run::event::Warning;

use super::{TranscriptItem, Warnings, shorten};
use crate::process::StreamEvent;

/// How well a client was heard.
#[derive(Debug, Default)]
pub(crate) struct StreamHealth {
    pub(crate) warnings: Warnings,
    /// What is too much of a transcript, when this one is.
    pub(crate) flooded: Option<u64>,
    /// Whether a line that could not be read may have been the last word.
    pub(crate) unread: bool,
    /// How many lines were too long to be read.
    pub(super) long_lines: usize,
    output: Output,
}

/// Whether a client has written anything but blank lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Output {
    #[default]
    Missing,
    Seen,
}

/// A line that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnknownLine {
    NotJson,
    /// JSON of a type that is not known.
    Unknown(String),
}

impl StreamHealth {
    /// The text of a line.
    pub(super) fn text(&mut self, bytes: &[u8]) -> String {
        if !bytes.trim_ascii().is_empty() {
            self.output = Output::Seen;
        }
        if str::from_utf8(bytes).is_err() {
            self.warnings.add(Warning::InvalidUtf8);
        }
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Whether the client has written nothing.
    pub(super) fn is_silent(&self) -> bool {
        self.output == Output::Missing && self.long_lines == 0 && self.flooded.is_none()
    }

    /// A line that was read, and means nothing.
    pub(super) fn note_unknown_line(&mut self, unknown: UnknownLine, line: &str) -> TranscriptItem {
        match unknown {
            UnknownLine::NotJson => {
                self.warnings
                    .add_message("the client wrote a line that is not JSON; it was ignored");
                TranscriptItem::Unread { what: format!("not JSON: {}", shorten(line)) }
            }
            UnknownLine::Unknown(kind) => {
                let what = format!("a line of unknown type {kind:?}");
                self.warnings.add_message(format!("the client wrote {what}; it was ignored"));
                TranscriptItem::Unread { what }
            }
        }
    }

    /// Whatever is heard beside lines.
    pub(super) fn note(&mut self, event: &StreamEvent) -> Vec<TranscriptItem> {
        match event {
            StreamEvent::LongLine { length } => {
                self.long_lines += 1;
                self.unread = true;
                let what = format!("a line of {length} bytes was too long to be read");
                self.warnings.add_message(what.clone());
                return vec![TranscriptItem::Unread { what }];
            }
            StreamEvent::TooLarge { limit } => self.flooded = Some(*limit),
            StreamEvent::Line(_)
            | StreamEvent::Stderr
            | StreamEvent::Suspended { .. }
            | StreamEvent::Exited(_)
            | StreamEvent::Unreadable { .. }
            | StreamEvent::Deadline => {}
        }
        Vec::new()
    }
}
