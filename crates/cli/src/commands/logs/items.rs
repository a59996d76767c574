//! The items of a turn, read from a transcript or from the journal.
//!
//! A transcript has more details, but it may be missing: a caller answers without one, and a file
//! may be damaged. Then the journal still has the final message.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use raymond_backends::process::{StreamEvent, Transcript, UnreadableFile};
use raymond_backends::transcript_parser::TranscriptParser;
use raymond_core::crayfish::reading;
use raymond_core::failure::TurnFailure;
use raymond_core::run::outcome::Outcome;
use raymond_core::scheduler::Lane;
use raymond_core::value::Value;
use raymond_engine::observe;
use raymond_engine::turn_files::transcript;

use super::item::{ItemKind, LogItem};
use super::page::{Page, PageShape, PageStop};
use super::{LoggedTurn, Source};

/// Prints a note if the rest of a transcript cannot be read.
fn note_unread(read: Result<(), UnreadableFile>, page: &mut Page) -> Result<(), PageStop> {
    match read {
        Ok(()) => Ok(()),
        Err(error) => page.item(&LogItem::new(ItemKind::Note, error.to_string())),
    }
}

pub(super) struct ItemReading {
    transcript: Transcript,
    parser: TranscriptParser,
}

impl ItemReading {
    /// Prints what was written since the last read.
    pub(super) fn read_on(&mut self, page: &mut Page) -> Result<(), PageStop> {
        let Self { transcript, parser } = self;
        let mut printed = Ok(());
        let read = transcript.read_on(&mut |event| print_event(&event, parser, page, &mut printed));
        printed?;
        note_unread(read, page)
    }

    pub(super) fn finish(self, page: &mut Page) -> Result<(), PageStop> {
        let Self { transcript, mut parser } = self;
        let mut printed = Ok(());
        let read =
            transcript.finish(&mut |event| print_event(&event, &mut parser, page, &mut printed));
        printed?;
        note_unread(read, page)
    }
}

fn print_event(
    event: &StreamEvent,
    parser: &mut TranscriptParser,
    page: &mut Page,
    printed: &mut Result<(), PageStop>,
) {
    // The reader of stdout is gone, but the parser cannot be stopped in the middle of a read.
    if printed.is_err() {
        return;
    }
    *printed = match (page.shape(), event) {
        (PageShape::Raw, StreamEvent::Line(line)) => page.raw(line),
        (PageShape::Raw, StreamEvent::LongLine { length }) => {
            let left_out = serde_json::json!({ "raymond": "omitted a line", "bytes": length });
            page.raw(left_out.to_string().as_bytes())
        }
        (PageShape::Raw, _) => Ok(()),
        (PageShape::Text | PageShape::Json, event) => {
            parser.read_event(event).into_iter().try_for_each(|said| page.item(&said.into()))
        }
    };
}

impl Source {
    /// Opens the transcript of a turn, if its client writes one.
    pub(super) fn transcript(&self, turn: &LoggedTurn) -> Option<io::Result<ItemReading>> {
        let attempt = &turn.attempt;
        let parser = match &attempt.lane {
            Lane::Prompt(backend) if !self.uses_only_replies => TranscriptParser::of(backend)?,
            Lane::Prompt(_) | Lane::Script => return None,
        };
        let path = transcript(&self.paths.transcripts, &attempt.turn, attempt.number);
        let opened = Transcript::open(&path);
        Some(opened.map(|transcript| ItemReading { transcript, parser }))
    }

    /// Prints all items of a turn.
    pub(super) fn words(&self, turn: &LoggedTurn, page: &mut Page) -> Result<(), PageStop> {
        match self.transcript(turn) {
            Some(Ok(reading)) => {
                reading.finish(page)?;
                self.left(turn, ItemKind::Stderr, page)
            }
            Some(Err(error)) => {
                if let Some(why) = missing(turn, &error) {
                    page.item(&LogItem::new(ItemKind::Note, why))?;
                }
                self.recorded(turn, page)
            }
            None => self.recorded(turn, page),
        }
    }

    /// Prints the end of a file that a client or a script left.
    pub(super) fn left(
        &self,
        turn: &LoggedTurn,
        kind: ItemKind,
        page: &mut Page,
    ) -> Result<(), PageStop> {
        let attempt = &turn.attempt;
        let path = transcript(&self.paths.transcripts, &attempt.turn, attempt.number);
        let extension = if kind == ItemKind::Stderr { "stderr" } else { "stdout" };
        match tail(&path.with_extension(extension)) {
            Ok(text) if !text.trim().is_empty() => page.item(&LogItem::new(kind, text)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Prints the recorded outcome of a turn without a transcript.
    pub(super) fn recorded(&self, turn: &LoggedTurn, page: &mut Page) -> Result<(), PageStop> {
        // Only failed and stopped scripts leave output files; the output of others is in the
        // journal.
        if matches!(turn.outcome, Some(Outcome::Failed { .. } | Outcome::Interrupted { .. })) {
            self.left(turn, ItemKind::Text, page)?;
            self.left(turn, ItemKind::Stderr, page)?;
        }
        let mut tell = |kind, text: &str| {
            if text.is_empty() { Ok(()) } else { page.item(&LogItem::new(kind, text)) }
        };
        match &turn.outcome {
            Some(Outcome::Finished(finished)) if turn.is_answer() => {
                tell(ItemKind::Text, &answer(&self.load(&finished.reply.text)))
            }
            Some(Outcome::Finished(finished)) => {
                tell(ItemKind::Text, &self.load(&finished.reply.text))?;
                tell(ItemKind::Stderr, &finished.reply.stderr)?;
                finished.denied.iter().try_for_each(|tool| tell(ItemKind::Denied, tool))
            }
            Some(Outcome::Failed { failure, denied, .. }) => {
                match failure {
                    TurnFailure::Script { stderr, .. } => tell(ItemKind::Stderr, stderr)?,
                    TurnFailure::Step { result, .. } => {
                        tell(ItemKind::Text, &self.load(&result.value))?;
                    }
                    TurnFailure::OutputTooLarge { head, tail, .. } => {
                        tell(ItemKind::Text, head)?;
                        tell(ItemKind::Note, "the text between is not stored")?;
                        tell(ItemKind::Text, tail)?;
                    }
                    _ => {}
                }
                denied.iter().try_for_each(|tool| tell(ItemKind::Denied, tool))
            }
            Some(Outcome::Capped { denied, .. }) => {
                denied.iter().try_for_each(|tool| tell(ItemKind::Denied, tool))
            }
            Some(Outcome::Interrupted { .. }) | None => Ok(()),
        }
    }

    fn load(&self, text: &Value) -> String {
        observe::load(&self.blobs, text).unwrap_or_else(|error| format!("({error})"))
    }
}

/// Returns the JSON of a caller's answer, without the wrapper of its step.
fn answer(result: &str) -> String {
    let result: serde_json::Value = reading::read_text(result).unwrap_or_default();
    result.get("json").map(ToString::to_string).unwrap_or_default()
}

/// Explains why a transcript is not shown, unless there never was one.
fn missing(turn: &LoggedTurn, error: &io::Error) -> Option<String> {
    let never = matches!(
        turn.outcome,
        Some(Outcome::Failed { failure: TurnFailure::NotStarted { .. }, .. })
    );
    match error.kind() {
        io::ErrorKind::NotFound if never || turn.attempt.end.is_none() => None,
        io::ErrorKind::NotFound => Some("the transcript is missing".to_owned()),
        _ => Some(format!("could not read the transcript: {error}")),
    }
}

/// Returns the end of a file that may be large, with a mark for the omitted part.
fn tail(path: &Path) -> io::Result<String> {
    // In bytes: about a screen of text, in which the last lines usually name the error.
    const LONGEST: u64 = 4 * 1024;
    // An agent could have put a pipe in place of the file, and opening a pipe would block.
    if !std::fs::metadata(path)?.is_file() {
        return Ok(String::new());
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    if length <= LONGEST {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    // The cut may be inside a character of UTF-8, which has at most three continuation bytes.
    let is_inner = |byte: &&u8| (**byte & 0b1100_0000) == 0b1000_0000;
    let torn = bytes.iter().take(3).take_while(is_inner).count();
    Ok(format!("…{}", String::from_utf8_lossy(&bytes[torn..])))
}
