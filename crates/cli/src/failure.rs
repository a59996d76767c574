//! The error of a command: what happened, what to do, and the exit code.
//!
//! `conversions` builds a `Failure` from the errors of the libraries, which know no flags or
//! commands. `diagnostic_text` prints the mistakes of a workflow.

mod conversions;
mod diagnostic_text;
mod source_line;

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use raymond_core::diagnostic::{Diagnostic, Severity};
use raymond_core::extension::is_state;
use raymond_core::ids::RunId;
use raymond_core::text::with_causes;

use diagnostic_text::hint_of;
pub(crate) use diagnostic_text::{print_diagnostic, print_diagnostics};

/// Exit code: usage error or invalid workflow.
pub(crate) const USAGE: u8 = 2;
/// Exit code: another process owns the run.
pub(crate) const LOCKED: u8 = 6;
/// Exit code: disk, permissions, missing client or damaged journal.
pub(crate) const ENVIRONMENT: u8 = 7;

/// What to do about a failure.
#[derive(Debug)]
enum Hint {
    Text(String),
    /// Continue before a damaged record. An error about a journal does not know its run.
    TruncateTo {
        record: u64,
        run: Option<RunId>,
    },
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::TruncateTo { record, run } => {
                let run = run.as_ref().map_or("RUN", RunId::as_str);
                write!(f, "`raymond resume {run} --truncate-to {record}` continues before it")
            }
        }
    }
}

/// An error with a hint and an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    message: String,
    hint: Option<Hint>,
    then: Option<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Failure {
    fn new(code: u8, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message, hint: None, then: None, diagnostics: Vec::new() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self::new(ENVIRONMENT, message)
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(Hint::Text(hint.into())), ..self }
    }

    /// Recommends to continue after this record of the journal.
    fn truncate_to(self, record: u64) -> Self {
        Self { hint: Some(Hint::TruncateTo { record, run: None }), ..self }
    }

    /// Adds a last line below the hint.
    #[must_use]
    pub(crate) fn then(self, line: impl Into<String>) -> Self {
        Self { then: Some(line.into()), ..self }
    }

    #[must_use]
    pub(crate) fn code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// Names the run in a hint that resumes it.
    #[must_use]
    pub(crate) fn naming_run(self, run: &RunId) -> Self {
        let hint = self.hint.map(|hint| match hint {
            Hint::TruncateTo { record, .. } => Hint::TruncateTo { record, run: Some(run.clone()) },
            text @ Hint::Text(_) => text,
        });
        Self { hint, ..self }
    }

    pub(crate) fn invalid(what: &str, diagnostics: Vec<Diagnostic>) -> Self {
        let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
        let count = diagnostics.iter().filter(is_error).count();
        Self::with_mistakes(what, count, diagnostics)
    }

    /// Creates a failure for this many mistakes, even if not all are listed.
    pub(crate) fn with_mistakes(what: &str, count: usize, diagnostics: Vec<Diagnostic>) -> Self {
        let message = match count {
            1 => format!("{what} has a mistake"),
            several => format!("{what} has {several} mistakes"),
        };
        Self { diagnostics, ..Self::usage(message) }
    }

    /// The failure for a run whose creation stopped before its first record.
    pub(crate) fn never_started(run: &RunId) -> Self {
        Self::usage(format!("{run} never started: it has no records"))
            .hint(format!("raymond run WORKFLOW --run-id {run}"))
    }

    /// Names files of a workflow by the path that a person gave for it.
    #[must_use]
    pub(crate) fn within(self, workflow: &Path) -> Self {
        let diagnostics = self.diagnostics.into_iter().map(|found| located(found, workflow));
        Self { diagnostics: diagnostics.collect(), ..self }
    }

    fn from_error(code: u8, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(code, with_causes(error))
    }

    /// Returns the message and the hint, for callers that print them in another form.
    pub(crate) fn message_and_hint(&self) -> (String, Option<String>) {
        let mistakes = self.diagnostics.iter().map(|found| match hint_of(found) {
            Some(hint) => format!("{found} ({hint})"),
            None => found.to_string(),
        });
        let lines: Vec<String> = mistakes.collect();
        let text = if lines.is_empty() { self.message.clone() } else { lines.join("\n") };
        (text, self.hint.as_ref().map(ToString::to_string))
    }

    pub(crate) fn print(&self) {
        print_diagnostics(&self.diagnostics);
        crate::say!("raymond: {}", self.message);
        if let Some(hint) = &self.hint {
            crate::say!("hint: {hint}");
        }
        if let Some(line) = &self.then {
            crate::say!("{line}");
        }
    }
}

/// Names the file of a diagnostic by the path that the user gave: `flows/x/START.md:3:7`.
pub(crate) fn located(found: Diagnostic, workflow: &Path) -> Diagnostic {
    // If the user named a state, the workflow is its directory.
    let name = workflow.file_name().and_then(OsStr::to_str);
    let is_state = name.is_some_and(is_state) && !workflow.is_dir();
    let scope = if is_state { workflow.parent().unwrap_or(workflow) } else { workflow };
    let file = match &found.file {
        Some(file) => scope.join(file),
        // The directory of `START.md` is the current one.
        None if scope.as_os_str().is_empty() => Path::new(".").to_owned(),
        None => scope.to_owned(),
    };
    found.in_file(without_control_characters(&file.display().to_string()))
}

/// Replaces line breaks, which could make a part of a name look like a message of Raymond.
fn without_control_characters(name: &str) -> String {
    name.replace(|c: char| c.is_control(), "\u{fffd}")
}

/// Names the project without runs, because the user may be in the wrong directory.
pub(crate) fn no_runs_in(project: &Path) -> String {
    format!("the project {} has no runs", project.display())
}
