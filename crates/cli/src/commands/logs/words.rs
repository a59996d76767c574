//! What was said in a turn, from wherever it is kept.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use raymond_backends::process::{Heard, Transcript, Unreadable};
use raymond_backends::said::{Recount, Said, Speaker};
use raymond_core::crayfish::reading;
use raymond_core::failure::TurnFailure;
use raymond_core::run::input::Outcome;
use raymond_core::scheduler::Lane;
use raymond_core::value::Value;
use raymond_engine::observe;
use raymond_engine::runner::transcript;

use crate::words::plain;

use super::page::{Page, Shape, Stop};
use super::{Source, Turn};

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) kind: Kind,
    pub(super) text: String,
}

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Subagent,
    Tool,
    Error,
    Denied,
    Stderr,
    Note,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Subagent => "subagent",
            Self::Tool => "tool",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Stderr => "stderr",
            Self::Note => "note",
        }
    }

    /// What stands before each of its lines. No text can look like something else.
    const fn mark(self) -> &'static str {
        match self {
            Self::Text => "|",
            Self::Subagent => ":",
            Self::Tool => ">",
            Self::Error => "!",
            Self::Denied => "! denied:",
            Self::Stderr => "2|",
            Self::Note => "~",
        }
    }
}

impl Word {
    pub(super) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// For a screen. A text is told whole; everything else in one line.
    pub(super) fn lines(&self) -> String {
        let mark = self.kind.mark();
        let text = plain(self.text.trim_end());
        match self.kind {
            Kind::Text | Kind::Subagent | Kind::Stderr => {
                text.lines().flat_map(|line| ["    ", mark, " ", line, "\n"]).collect()
            }
            Kind::Tool | Kind::Error | Kind::Denied | Kind::Note => {
                format!("    {mark} {}\n", one_line(&text))
            }
        }
    }
}

impl From<Said> for Word {
    fn from(said: Said) -> Self {
        match said {
            Said::Text { by, text } | Said::Final { by, text } => {
                let kind = match by {
                    Speaker::Agent => Kind::Text,
                    Speaker::Subagent => Kind::Subagent,
                    Speaker::Client => Kind::Error,
                };
                Self::new(kind, text)
            }
            Said::Tool { name } => Self::new(Kind::Tool, name),
            Said::ToolFailed { why } => Self::new(Kind::Error, why),
            Said::Denied { tool } => Self::new(Kind::Denied, tool),
            Said::Retries { why } => Self::new(Kind::Note, format!("tries again: {why}")),
            Said::Unread { what } => Self::new(Kind::Note, what),
        }
    }
}

/// The beginning of a text, on one line.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    let words = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = words.collect::<Vec<_>>().join(" / ");
    match line.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

/// Says that the rest of a transcript cannot be read.
fn note_unread(read: Result<(), Unreadable>, page: &mut Page) -> Result<(), Stop> {
    match read {
        Ok(()) => Ok(()),
        Err(error) => page.word(&Word::new(Kind::Note, error.to_string())),
    }
}

/// A transcript that is being read.
pub(super) struct Reading {
    transcript: Transcript,
    recount: Recount,
}

impl Reading {
    /// Tells what was written since.
    pub(super) fn read_on(&mut self, page: &mut Page) -> Result<(), Stop> {
        let Self { transcript, recount } = self;
        let mut told = Ok(());
        let read = transcript.read_on(&mut |heard| hear(&heard, recount, page, &mut told));
        told?;
        note_unread(read, page)
    }

    /// Tells the rest.
    pub(super) fn finish(self, page: &mut Page) -> Result<(), Stop> {
        let Self { transcript, mut recount } = self;
        let mut told = Ok(());
        let read = transcript.finish(&mut |heard| hear(&heard, &mut recount, page, &mut told));
        told?;
        note_unread(read, page)
    }
}

fn hear(heard: &Heard, recount: &mut Recount, page: &mut Page, told: &mut Result<(), Stop>) {
    if told.is_err() {
        return;
    }
    *told = match (page.shape(), heard) {
        (Shape::Raw, Heard::Line(line)) => page.raw(line),
        (Shape::Raw, Heard::Cut { length }) => {
            let left_out = serde_json::json!({ "raymond": "a line was left out", "bytes": length });
            page.raw(left_out.to_string().as_bytes())
        }
        (Shape::Raw, _) => Ok(()),
        (Shape::Text | Shape::Json, heard) => {
            recount.hear(heard).into_iter().try_for_each(|said| page.word(&said.into()))
        }
    };
}

impl Source {
    /// The transcript of a turn, where its client leaves one.
    pub(super) fn transcript(&self, turn: &Turn) -> Option<io::Result<Reading>> {
        let attempt = &turn.attempt;
        let recount = match &attempt.lane {
            Lane::Prompt(backend) if !self.is_played => Recount::of(backend)?,
            Lane::Prompt(_) | Lane::Script => return None,
        };
        let path = transcript(&self.paths.transcripts, &attempt.turn, attempt.number);
        let opened = Transcript::open(&path);
        Some(opened.map(|transcript| Reading { transcript, recount }))
    }

    /// Tells everything that was said in a turn.
    pub(super) fn words(&self, turn: &Turn, page: &mut Page) -> Result<(), Stop> {
        match self.transcript(turn) {
            Some(Ok(reading)) => {
                reading.finish(page)?;
                self.left(turn, Kind::Stderr, page)
            }
            Some(Err(error)) => {
                if let Some(why) = missing(turn, &error) {
                    page.word(&Word::new(Kind::Note, why))?;
                }
                self.recorded(turn, page)
            }
            None => self.recorded(turn, page),
        }
    }

    /// The end of what a client or a script left in a file.
    pub(super) fn left(&self, turn: &Turn, kind: Kind, page: &mut Page) -> Result<(), Stop> {
        let attempt = &turn.attempt;
        let path = transcript(&self.paths.transcripts, &attempt.turn, attempt.number);
        let extension = if kind == Kind::Stderr { "stderr" } else { "stdout" };
        match tail(&path.with_extension(extension)) {
            Ok(text) if !text.trim().is_empty() => page.word(&Word::new(kind, text)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// What is kept of a turn without a transcript: its text, or how it went wrong.
    pub(super) fn recorded(&self, turn: &Turn, page: &mut Page) -> Result<(), Stop> {
        if matches!(turn.outcome, Some(Outcome::Failed { .. } | Outcome::Interrupted { .. })) {
            self.left(turn, Kind::Text, page)?;
            self.left(turn, Kind::Stderr, page)?;
        }
        let mut tell = |kind, text: &str| {
            if text.is_empty() { Ok(()) } else { page.word(&Word::new(kind, text)) }
        };
        match &turn.outcome {
            Some(Outcome::Finished(finished)) if turn.is_answer() => {
                tell(Kind::Text, &answer(&self.load(&finished.text)))
            }
            Some(Outcome::Finished(finished)) => {
                tell(Kind::Text, &self.load(&finished.text))?;
                tell(Kind::Stderr, &finished.stderr)?;
                finished.denied.iter().try_for_each(|tool| tell(Kind::Denied, tool))
            }
            Some(Outcome::Failed { failure, denied, .. }) => {
                match failure {
                    TurnFailure::Script { stderr, .. } => tell(Kind::Stderr, stderr)?,
                    TurnFailure::Step { result, .. } => {
                        tell(Kind::Text, &self.load(&result.value))?;
                    }
                    TurnFailure::OutputTooLarge { head, tail, .. } => {
                        tell(Kind::Text, head)?;
                        tell(Kind::Note, "what stands between is not kept")?;
                        tell(Kind::Text, tail)?;
                    }
                    _ => {}
                }
                denied.iter().try_for_each(|tool| tell(Kind::Denied, tool))
            }
            Some(Outcome::Capped { denied, .. }) => {
                denied.iter().try_for_each(|tool| tell(Kind::Denied, tool))
            }
            Some(Outcome::Interrupted { .. }) | None => Ok(()),
        }
    }

    fn load(&self, text: &Value) -> String {
        observe::load(&self.blobs, text).unwrap_or_else(|error| format!("({error})"))
    }
}

/// What a caller said: the JSON, without what its step makes of it.
fn answer(result: &str) -> String {
    let result: serde_json::Value = reading::read_text(result).unwrap_or_default();
    result.get("json").map(ToString::to_string).unwrap_or_default()
}

/// Why the transcript of a turn is not shown, unless there never was one.
fn missing(turn: &Turn, error: &io::Error) -> Option<String> {
    let never = matches!(
        turn.outcome,
        Some(Outcome::Failed { failure: TurnFailure::NotStarted { .. }, .. })
    );
    match error.kind() {
        io::ErrorKind::NotFound if never || turn.attempt.end.is_none() => None,
        io::ErrorKind::NotFound => Some("its transcript is gone".to_owned()),
        _ => Some(format!("its transcript cannot be read: {error}")),
    }
}

/// The end of a file that may be long; a mark stands for what is cut off.
fn tail(path: &Path) -> io::Result<String> {
    const LONGEST: u64 = 4 * 1024;
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
    let is_inner = |byte: &&u8| (**byte & 0b1100_0000) == 0b1000_0000;
    let torn = bytes.iter().take(3).take_while(is_inner).count();
    Ok(format!("…{}", String::from_utf8_lossy(&bytes[torn..])))
}
