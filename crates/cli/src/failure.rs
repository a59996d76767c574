//! What went wrong, what to do about it, and the exit code that says so.

use std::path::Path;

use raymond_core::diagnostic::Diagnostic;
use raymond_core::ids::RunId;
use raymond_engine::driver::DriverError;
use raymond_engine::fold::FoldError;
use raymond_engine::launch::{LaunchError, PrepareError};
use raymond_engine::look::LookError;
use raymond_engine::owned::OwnError;
use raymond_engine::pin::PinError;
use raymond_engine::project::FindError;
use raymond_engine::request::RequestError;
use raymond_engine::scope::ScopeError;
use raymond_engine::shell::ShellError;
use raymond_store::{blobs, disk, inbox, journal, lock};

use crate::workflows;

/// Usage, or an invalid workflow.
pub(crate) const USAGE: u8 = 2;
/// Another process holds the run.
pub(crate) const LOCKED: u8 = 6;
/// The machine: disk, permissions, a missing client, a damaged journal.
pub(crate) const ENVIRONMENT: u8 = 7;

/// An error for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
    then: Option<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Failure {
    fn new(code: u8, message: impl Into<String>) -> Self {
        let message = message.into();
        let (causes, diagnostics) = (Vec::new(), Vec::new());
        Self { code, message, causes, hint: None, then: None, diagnostics }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self::new(ENVIRONMENT, message)
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// A last line, below the hint.
    #[must_use]
    pub(crate) fn then(self, line: impl Into<String>) -> Self {
        Self { then: Some(line.into()), ..self }
    }

    #[must_use]
    pub(crate) fn code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// Names the run in a hint that speaks of `RUN`.
    #[must_use]
    pub(crate) fn about(self, run: &RunId) -> Self {
        Self { hint: self.hint.map(|hint| hint.replace("RUN", run.as_str())), ..self }
    }

    pub(crate) fn invalid(what: &str, diagnostics: Vec<Diagnostic>) -> Self {
        Self { diagnostics, ..Self::usage(format!("{what} has mistakes")) }
    }

    fn of(code: u8, error: &dyn std::error::Error) -> Self {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !error.to_string().contains(&text) {
                causes.push(text);
            }
            source = cause.source();
        }
        Self { causes, ..Self::new(code, error.to_string()) }
    }

    pub(crate) fn print(&self) {
        for diagnostic in &self.diagnostics {
            print_diagnostic(diagnostic);
        }
        let causes: String = self.causes.iter().map(|cause| format!(": {cause}")).collect();
        anstream::eprintln!("raymond: {}{causes}", self.message);
        if let Some(hint) = &self.hint {
            anstream::eprintln!("hint: {hint}");
        }
        if let Some(line) = &self.then {
            anstream::eprintln!("{line}");
        }
    }
}

/// `START.md:3:7: error: …`, with its hint.
pub(crate) fn print_diagnostic(diagnostic: &Diagnostic) {
    anstream::eprintln!("{diagnostic}");
    if let Some(hint) = &diagnostic.hint {
        anstream::eprintln!("  hint: {hint}");
    }
}

impl From<disk::Error> for Failure {
    fn from(error: disk::Error) -> Self {
        let hint = match error.trouble() {
            disk::Trouble::Full => Some("free some space"),
            disk::Trouble::ReadOnly | disk::Trouble::Denied => {
                Some("runs are kept in .raymond/: run where that can be written")
            }
            disk::Trouble::Missing | disk::Trouble::Other => None,
        };
        Self { hint: hint.map(str::to_owned), ..Self::of(ENVIRONMENT, &error) }
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        let failure = Self::of(USAGE, &error);
        match error {
            FindError::Disk(error) => error.into(),
            FindError::Unknown { nearest: Some(nearest), .. } => {
                failure.hint(format!("did you mean {nearest}?"))
            }
            FindError::Unknown { known: 0, .. } => failure.hint("this project has no runs yet"),
            FindError::Unknown { .. } => failure.hint("see `raymond list`"),
            FindError::Ambiguous { candidates, .. } => {
                let names: Vec<&str> = candidates.iter().take(10).map(|run| run.as_str()).collect();
                failure.hint(format!("one of {}", names.join(", ")))
            }
        }
    }
}

impl From<journal::Error> for Failure {
    fn from(error: journal::Error) -> Self {
        match error {
            journal::Error::Disk(error) => error.into(),
            journal::Error::Damaged { ref damaged, .. } => {
                let failure = Self::of(ENVIRONMENT, &error);
                match damaged.seq.checked_sub(1) {
                    None => failure.hint("its first line names the run: restore it from a copy"),
                    Some(good) => failure.hint(format!(
                        "`raymond resume RUN --truncate-to {good}` goes on after the good records, \
                         and moves the rest aside"
                    )),
                }
            }
            journal::Error::NoSuchRecord { last, .. } => Self::of(USAGE, &error)
                .hint(format!("`raymond resume RUN --truncate-to {last}` keeps all that is good")),
            journal::Error::Missing(_) | journal::Error::Unborn(_) => {
                Self::of(ENVIRONMENT, &error).hint("nothing of it was recorded; start it anew")
            }
            error => Self::of(ENVIRONMENT, &error),
        }
    }
}

impl From<FoldError> for Failure {
    fn from(error: FoldError) -> Self {
        let failure = Self::of(ENVIRONMENT, &error);
        match error {
            FoldError::Newer(_) => failure.hint("use the release that wrote it, or a later one"),
            FoldError::Foreign(_) | FoldError::Stranger { .. } => {
                failure.hint("something else was put in its place: restore it from a copy")
            }
            FoldError::Unreadable { seq, .. } => failure.hint(format!(
                "`raymond resume RUN --truncate-to {}` goes on before it",
                seq.saturating_sub(1)
            )),
        }
    }
}

impl From<lock::Error> for Failure {
    fn from(error: lock::Error) -> Self {
        match error {
            lock::Error::Disk(error) => error.into(),
            lock::Error::Held { path, owner } => {
                let by = match owner {
                    None => "another process".to_owned(),
                    Some(owner) => {
                        format!("process {} on {}", owner.process.pid, owner.process.host)
                    }
                };
                Self::driven(&path, &by)
            }
            lock::Error::OtherHost { path, owner } => {
                let by = format!("process {} on {}", owner.process.pid, owner.process.host);
                let run = run_at(&path);
                Self::driven(&path, &by).hint(format!(
                    "when that machine is gone for good: `raymond resume {run} --takeover`"
                ))
            }
        }
    }
}

impl Failure {
    fn driven(lock: &Path, by: &str) -> Self {
        let run = run_at(lock);
        Self::new(LOCKED, format!("{run} is driven by {by}")).hint(format!(
            "look at it with `raymond status {run}`, or end it with `raymond stop {run}`"
        ))
    }
}

/// The run in whose directory a file lies.
fn run_at(path: &Path) -> std::borrow::Cow<'_, str> {
    path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy()
}

impl From<blobs::Error> for Failure {
    fn from(error: blobs::Error) -> Self {
        match error {
            blobs::Error::Disk(error) => error.into(),
            error => Self::of(ENVIRONMENT, &error),
        }
    }
}

impl From<PinError> for Failure {
    fn from(error: PinError) -> Self {
        match error {
            PinError::Blobs(error) => error.into(),
            PinError::Invalid(diagnostics) => {
                Self::invalid("the pinned workflow", diagnostics).code(ENVIRONMENT)
            }
            error @ PinError::Unreadable(_) => Self::of(ENVIRONMENT, &error),
        }
    }
}

impl From<OwnError> for Failure {
    fn from(error: OwnError) -> Self {
        match error {
            OwnError::Lock(error) => error.into(),
            OwnError::Journal(error) => error.into(),
            OwnError::Fold(error) => error.into(),
            OwnError::Pin(error) => error.into(),
            OwnError::Disk(error) => error.into(),
            OwnError::Driver(error) => error.into(),
        }
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Exists(run) => Self::usage(format!("there is a run {run} already"))
                .hint(format!("raymond resume {run}")),
            LaunchError::Own(error) => error.into(),
            LaunchError::Blobs(error) => error.into(),
        }
    }
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Invalid(diagnostics) => Self::invalid("the workflow", diagnostics),
            PrepareError::Scope(error @ ScopeError::Unreadable { .. }) => {
                Self::of(ENVIRONMENT, &error)
            }
            PrepareError::Scope(ref missing @ ScopeError::Missing(ref path)) => {
                let failure = Self::of(USAGE, missing);
                match workflows::nearest(path) {
                    Some(nearest) => failure.hint(format!("did you mean {}?", nearest.display())),
                    None => failure,
                }
            }
            PrepareError::Scope(error) => Self::of(USAGE, &error),
        }
    }
}

impl From<LookError> for Failure {
    fn from(error: LookError) -> Self {
        match error {
            LookError::Journal(error) => error.into(),
            LookError::Fold(error) => error.into(),
            LookError::Lock(error) => error.into(),
        }
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Commit(error) => error.into(),
            error => Self::of(ENVIRONMENT, &error),
        }
    }
}

impl From<ShellError> for Failure {
    fn from(error: ShellError) -> Self {
        match error {
            ShellError::Driver(error) => error.into(),
            ShellError::Blobs(error) => error.into(),
            ShellError::Home(error) => error.into(),
            error @ ShellError::Signals(_) => Self::of(ENVIRONMENT, &error),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Inbox(inbox::Error::Disk(error)) => error.into(),
            RequestError::Inbox(error) => Self::of(ENVIRONMENT, &error),
            RequestError::Look(error) => error.into(),
            RequestError::Own(error) => error.into(),
            RequestError::Driver(error) => error.into(),
            RequestError::Journal(error) => error.into(),
            RequestError::Fold(error) => error.into(),
            RequestError::Lock(error) => error.into(),
        }
    }
}
