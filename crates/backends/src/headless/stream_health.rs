//! Warnings and read errors that are the same for every client's stream.
//!
//! The protocols in `claude` and `codex` interpret lines; this module only counts what could not be
//! interpreted.

use raymond_core::run::warning::Warning;

use super::screen_line::shorten;
use super::transcript_item::TranscriptItem;
use super::warnings::Warnings;
use crate::process::StreamEvent;

/// The warnings and read errors of one turn.
#[derive(Debug, Default)]
pub(crate) struct StreamHealth {
    pub(crate) warnings: Warnings,
    /// The size limit in bytes, if the transcript exceeded it.
    pub(crate) flooded: Option<u64>,
    /// Whether a line that was too long to read may have been the result.
    pub(crate) unread: bool,
    /// How many lines were too long to read.
    pub(super) long_lines: usize,
    output: Output,
}

/// Whether the client has written anything but blank lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Output {
    #[default]
    Missing,
    Seen,
}

/// A line that cannot be interpreted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnknownLine {
    NotJson,
    /// JSON of an unknown type.
    Unknown(String),
}

impl StreamHealth {
    /// Returns the text of a line and notes invalid UTF-8.
    pub(super) fn text(&mut self, bytes: &[u8]) -> String {
        if !bytes.trim_ascii().is_empty() {
            self.output = Output::Seen;
        }
        // Lossy text still shows the rest of the line; the warning says that bytes were replaced.
        if str::from_utf8(bytes).is_err() {
            self.warnings.add(Warning::InvalidUtf8);
        }
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Whether the client has written nothing.
    pub(super) fn is_silent(&self) -> bool {
        self.output == Output::Missing && self.long_lines == 0 && self.flooded.is_none()
    }

    /// Notes a line that cannot be interpreted.
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

    /// Notes an event that is not a line.
    pub(super) fn note(&mut self, event: &StreamEvent) -> Vec<TranscriptItem> {
        match event {
            StreamEvent::LongLine { length } => {
                self.long_lines += 1;
                // The skipped line may have been the result.
                self.unread = true;
                let what = format!("a line of {length} bytes was too long to read");
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
