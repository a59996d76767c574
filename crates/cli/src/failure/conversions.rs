//! Converts the errors of the libraries to failures with hints and exit codes.
//!
//! The libraries know no flags and no commands, so only this module can say what to do about an
//! error. Exit code 2 is for mistakes of the user, 6 for a run that another process drives, and 7
//! for the machine (disk, permissions, damaged files).

use std::path::Path;

use raymond_core::ids::RunId;
use raymond_core::text::quoted;
use raymond_engine::driver::DriverError;
use raymond_engine::fold::FoldError;
use raymond_engine::git_tracked::GitTracked;
use raymond_engine::inspect::InspectError;
use raymond_engine::launch::LaunchError;
use raymond_engine::owned::OwnError;
use raymond_engine::pin::PinError;
use raymond_engine::prepare::PrepareError;
use raymond_engine::project::FindError;
use raymond_engine::replay::ReplayError;
use raymond_engine::request::RequestError;
use raymond_engine::runner::RunnerError;
use raymond_engine::scope::{NotAPrompt, ScopeError};
use raymond_engine::step_results::ResultsError;
use raymond_store::host::{Host as _, Life, ThisHost};
use raymond_store::{blobs, disk, inbox, journal, lock};

use super::{ENVIRONMENT, Failure, LOCKED, USAGE, no_runs_in};
use crate::{suspended_owner, workflows};

/// Without record 1, which starts the run, nothing can be continued.
const NO_RECORD_HINT: &str =
    "no record of it is readable; start a new run under another id with `raymond run`";

/// The hint for an unreadable transcript. Raymond does not ask again, because the file may contain
/// an answer that is already paid.
const UNREADABLE_HINT: &str = "make the file readable again, then run the same command; \
                          `raymond cancel` ends the run without it";

impl From<disk::Error> for Failure {
    fn from(error: disk::Error) -> Self {
        let hint = match error.kind() {
            disk::DiskErrorKind::Full => Some("free some space"),
            disk::DiskErrorKind::ReadOnly | disk::DiskErrorKind::Denied => {
                Some("Raymond stores runs in .raymond/: use a directory where it can write")
            }
            disk::DiskErrorKind::Link => Some(
                "Raymond does not write through links: replace the link by a directory or a file",
            ),
            disk::DiskErrorKind::OtherUser(_) => Some(
                "its owner could choose what runs here; work elsewhere, or run `git init` in your own directory",
            ),
            disk::DiskErrorKind::Missing | disk::DiskErrorKind::Other => None,
        };
        let failure = match error.kind() {
            disk::DiskErrorKind::Other => Self::from_error(ENVIRONMENT, &error),
            // The message names the cause already, so the error of the system is not appended.
            _ => Self::new(ENVIRONMENT, error.to_string()),
        };
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        let failure = Self::from_error(USAGE, &error);
        match error {
            FindError::Disk(error) => error.into(),
            FindError::Unknown { nearest: Some(nearest), .. } => {
                failure.hint(format!("did you mean {nearest}?"))
            }
            FindError::Unknown { none_in: Some(project), .. } => {
                let elsewhere = "`raymond list --all` shows the runs of your other projects";
                failure.hint(format!("{}; {elsewhere}", no_runs_in(&project)))
            }
            FindError::Unknown { .. } => failure.hint("see `raymond list`"),
            FindError::Ambiguous { candidates, .. } => {
                // Ten names fit on a screen; a short prefix may match hundreds of runs.
                let names: Vec<&str> = candidates.iter().take(10).map(RunId::as_str).collect();
                failure.hint(format!("one of {}", names.join(", ")))
            }
        }
    }
}

impl From<journal::Error> for Failure {
    fn from(error: journal::Error) -> Self {
        match error {
            journal::Error::Disk(error) => error.into(),
            journal::Error::Damaged { ref path, ref damaged } => {
                let failure = Self::from_error(ENVIRONMENT, &error);
                // Record 0 is the header. Its loss loses the name of the run, and a rewind to 0
                // would keep no record.
                match damaged.seq.checked_sub(1) {
                    None => failure
                        .hint("restore the journal from a copy: its first line names the run"),
                    Some(0) => failure.hint(NO_RECORD_HINT),
                    Some(good) => failure.hint(format!(
                        "`raymond resume {} --truncate-to {good}` continues after the good records \
                         and moves the rest aside",
                        run_of(path)
                    )),
                }
            }
            journal::Error::NoSuchRecord { last: 0, .. } => {
                Self::from_error(USAGE, &error).hint(NO_RECORD_HINT)
            }
            journal::Error::NoSuchRecord { ref path, last, .. } => Self::from_error(USAGE, &error)
                .hint(format!(
                    "`raymond resume {} --truncate-to {last}` keeps all good records",
                    run_of(path)
                )),
            journal::Error::Missing(_) | journal::Error::Unborn(_) => {
                Self::from_error(ENVIRONMENT, &error)
                    .hint("no record was written; start the run again")
            }
            error => Self::from_error(ENVIRONMENT, &error),
        }
    }
}

impl From<FoldError> for Failure {
    fn from(error: FoldError) -> Self {
        let failure = Self::from_error(ENVIRONMENT, &error);
        match error {
            FoldError::Newer(_) => failure.hint("use the release that wrote it, or a later one"),
            FoldError::NotAJournal(_) | FoldError::OtherRun { .. } => {
                failure.hint("another file has replaced it: restore it from a copy")
            }
            FoldError::Unreadable { seq: 0 | 1, .. } => failure.hint(NO_RECORD_HINT),
            // The record itself cannot be read, so the last good one is before it.
            FoldError::Unreadable { seq, .. } => failure.truncate_to(seq - 1),
        }
    }
}

impl From<lock::Error> for Failure {
    fn from(error: lock::Error) -> Self {
        match error {
            lock::Error::Disk(error) => error.into(),
            lock::Error::Held { path, owner } => {
                // The lock is held, but its owner has not written its name yet or the file is
                // unreadable.
                let Some(owner) = owner else { return Self::driven(&path, "another process") };
                Self::driven(&path, &process_on_host(&owner)).with_suspension_hint(&owner)
            }
            lock::Error::Removed { path } => {
                Self::usage(format!("{} was deleted just now", run_of(&path)))
            }
            lock::Error::OtherHost { path, owner } => {
                let run = run_of(&path);
                Self::driven(&path, &process_on_host(&owner)).hint(format!(
                    "if that machine never comes back: `raymond resume {run} --takeover`"
                ))
            }
        }
    }
}

impl Failure {
    fn driven(lock: &Path, by: &str) -> Self {
        let run = run_of(lock);
        Self::new(LOCKED, format!("{run} is driven by {by}")).hint(format!(
            "look at it with `raymond status {run}`, or end it with `raymond stop {run}`"
        ))
    }

    /// Replaces the hint if the owner is suspended: it does nothing until someone continues it.
    fn with_suspension_hint(self, owner: &lock::Owner) -> Self {
        // A suspended owner (Ctrl-Z) holds the lock but answers no request, so the usual hints
        // would hang.
        if ThisHost.life(&owner.process) != Life::Suspended {
            return self;
        }
        let message = format!("{}, which is suspended", self.message);
        Self { message, ..self }.hint(suspended_owner::hint(owner))
    }
}

fn process_on_host(owner: &lock::Owner) -> String {
    format!("process {} on {}", owner.process.pid, owner.process.host)
}

/// Returns the run whose directory contains a file.
fn run_of(path: &Path) -> std::borrow::Cow<'_, str> {
    path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy()
}

impl From<blobs::Error> for Failure {
    fn from(error: blobs::Error) -> Self {
        match error {
            blobs::Error::Disk(error) => error.into(),
            error => Self::from_error(ENVIRONMENT, &error),
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
            error @ PinError::Unreadable(_) => Self::from_error(ENVIRONMENT, &error),
        }
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        match error {
            ResultsError::Blobs(error) => error.into(),
            error @ ResultsError::Unreadable { .. } => Self::from_error(ENVIRONMENT, &error),
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
            OwnError::Results(error) => error.into(),
            OwnError::Disk(error) => error.into(),
            OwnError::Blobs(error) => error.into(),
            OwnError::Driver(error) => error.into(),
            error @ OwnError::ActiveCopy(_) => Self::from_error(LOCKED, &error)
                .hint("Raymond cannot distinguish its processes from those of this copy: end it there first"),
            OwnError::GitTracked(error) => error.into(),
            OwnError::NeverStarted(run) => Self::never_started(&run),
            error @ OwnError::Unreadable { .. } => Self::from_error(ENVIRONMENT, &error).hint(UNREADABLE_HINT),
        }
    }
}

impl From<GitTracked> for Failure {
    fn from(error: GitTracked) -> Self {
        let failure = Self::from_error(USAGE, &error);
        match error {
            GitTracked::Run(_) => failure.hint(
                "it would run a workflow that another user pinned; if the run is yours: git rm -r --cached .raymond \
                 (and git update-index --no-split-index, where the index is split)",
            ),
            GitTracked::Unknown { .. } => failure
                .code(ENVIRONMENT)
                .hint("repair the repository: `git status` must work here"),
        }
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Exists(run) => {
                Self::usage(format!("run {run} already exists")).hint("choose another --run-id")
            }
            LaunchError::Own(error) => error.into(),
            LaunchError::Blobs(error) => error.into(),
        }
    }
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Invalid(diagnostics) => Self::invalid("the workflow", diagnostics),
            // An unreadable file is a problem of the machine (exit code 7), not a mistake in the
            // workflow (2).
            PrepareError::Scope(error @ ScopeError::Unreadable { .. }) => {
                Self::from_error(ENVIRONMENT, &error)
            }
            PrepareError::Scope(ref missing @ ScopeError::Missing(ref path)) => {
                Self::from_error(USAGE, missing).hint(workflows::missing_hint(path))
            }
            PrepareError::Scope(ScopeError::NotAPrompt { ref path, what }) => {
                Self::from_error(USAGE, &error).hint(instead_of_a_prompt(path, what))
            }
            PrepareError::Scope(error) => Self::from_error(USAGE, &error),
        }
    }
}

fn instead_of_a_prompt(path: &Path, what: NotAPrompt) -> String {
    let named = |path: &Path| quoted(&path.display().to_string());
    match what {
        NotAPrompt::Directory => format!(
            "pass the prompt in it: `raymond ralph {}`; to start a workflow: `raymond run {}`",
            named(&path.join("PROMPT.md")),
            named(path)
        ),
        NotAPrompt::Workflow => format!("start it with `raymond run {}`", named(path)),
        NotAPrompt::Other => "the name of a prompt ends in .md".to_owned(),
    }
}

impl From<InspectError> for Failure {
    fn from(error: InspectError) -> Self {
        match error {
            InspectError::NothingYet { run, owner } => {
                let by = process_on_host(&owner);
                let message = format!("{run} is driven by {by}, which has recorded nothing yet");
                Self::new(LOCKED, message)
                    .hint("try again in a moment")
                    .with_suspension_hint(&owner)
            }
            InspectError::Journal(error) => error.into(),
            InspectError::Fold(error) => error.into(),
            InspectError::Lock(error) => error.into(),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Journal(error) => error.into(),
            ReplayError::Fold(error) => error.into(),
            error @ ReplayError::Source { .. } => Self::from_error(ENVIRONMENT, &error),
        }
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Commit(error) => error.into(),
            error => Self::from_error(ENVIRONMENT, &error),
        }
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        match error {
            RunnerError::Driver(error) => error.into(),
            RunnerError::Blobs(error) => error.into(),
            RunnerError::RunDirectory(error) => error.into(),
            error @ RunnerError::Refused(_) => {
                Self::from_error(USAGE, &error).hint("run raymond why")
            }
            error @ RunnerError::Signals(_) => Self::from_error(ENVIRONMENT, &error),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Inbox(inbox::Error::Disk(error)) => error.into(),
            RequestError::Inbox(error) => Self::from_error(ENVIRONMENT, &error),
            RequestError::Inspect(error) => error.into(),
            RequestError::Own(error) => error.into(),
            RequestError::Driver(error) => error.into(),
            RequestError::Journal(error) => error.into(),
            RequestError::Fold(error) => error.into(),
            RequestError::Lock(error) => error.into(),
            error @ RequestError::Suspended(_) => Self::from_error(LOCKED, &error),
        }
    }
}
