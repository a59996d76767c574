//! Every error of the rooms below, in the words and with the exit code of the command line.

use std::path::Path;

use raymond_core::ids::RunId;
use raymond_core::view::quoted;
use raymond_engine::driver::DriverError;
use raymond_engine::fold::FoldError;
use raymond_engine::git_tracked::GitTracked;
use raymond_engine::inspect::InspectError;
use raymond_engine::launch::{LaunchError, PrepareError};
use raymond_engine::owned::OwnError;
use raymond_engine::pin::PinError;
use raymond_engine::project::FindError;
use raymond_engine::replay::ReplayError;
use raymond_engine::request::RequestError;
use raymond_engine::runner::RunnerError;
use raymond_engine::scope::{NotAPrompt, ScopeError};
use raymond_store::lock::{Host as _, Life, ThisHost};
use raymond_store::{blobs, disk, inbox, journal, lock};

use super::{ENVIRONMENT, Failure, LOCKED, USAGE};
use crate::{place, runs, workflows};

/// Record 1 starts a run: without it there is none.
const NOTHING_LEFT: &str =
    "nothing good is left of it; start anew with `raymond run`, under another id";

/// To ask again would pay twice for an answer that may be there.
const UNREADABLE: &str = "make the file readable again, then run the same command; \
                          `raymond cancel` ends the run without it";

impl From<disk::Error> for Failure {
    fn from(error: disk::Error) -> Self {
        let hint = match error.kind() {
            disk::DiskErrorKind::Full => Some("free some space"),
            disk::DiskErrorKind::ReadOnly | disk::DiskErrorKind::Denied => {
                Some("runs are kept in .raymond/: run where that can be written")
            }
            disk::DiskErrorKind::Link => {
                Some("nothing is written through links: put a directory or a file in its place")
            }
            disk::DiskErrorKind::OtherUser(_) => Some(
                "it decides what is run here: work where nobody else's lies above, or in a repository of your own (`git init`)",
            ),
            disk::DiskErrorKind::Missing | disk::DiskErrorKind::Other => None,
        };
        let failure = match error.kind() {
            disk::DiskErrorKind::Other => Self::of(ENVIRONMENT, &error),
            // The message names the cause in our words.
            _ => Self::new(ENVIRONMENT, error.to_string()),
        };
        Self { hint: hint.map(str::to_owned), ..failure }
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
            FindError::Unknown { none_in: Some(project), .. } => {
                failure.hint(runs::none_in(&project))
            }
            FindError::Unknown { .. } => failure.hint("see `raymond list`"),
            FindError::Ambiguous { candidates, .. } => {
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
                let failure = Self::of(ENVIRONMENT, &error);
                match damaged.seq.checked_sub(1) {
                    None => failure.hint("its first line names the run: restore it from a copy"),
                    Some(0) => failure.hint(NOTHING_LEFT),
                    Some(good) => failure.hint(format!(
                        "`raymond resume {} --truncate-to {good}` goes on after the good records, \
                         and moves the rest aside",
                        run_at(path)
                    )),
                }
            }
            journal::Error::NoSuchRecord { last: 0, .. } => {
                Self::of(USAGE, &error).hint(NOTHING_LEFT)
            }
            journal::Error::NoSuchRecord { ref path, last, .. } => {
                Self::of(USAGE, &error).hint(format!(
                    "`raymond resume {} --truncate-to {last}` keeps all that is good",
                    run_at(path)
                ))
            }
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
            FoldError::NotAJournal(_) | FoldError::OtherRun { .. } => {
                failure.hint("something else was put in its place: restore it from a copy")
            }
            FoldError::Unreadable { seq: 0 | 1, .. } => failure.hint(NOTHING_LEFT),
            FoldError::Unreadable { seq, .. } => failure
                .hint(format!("`raymond resume RUN --truncate-to {}` goes on before it", seq - 1)),
        }
    }
}

impl From<lock::Error> for Failure {
    fn from(error: lock::Error) -> Self {
        match error {
            lock::Error::Disk(error) => error.into(),
            lock::Error::Held { path, owner } => {
                let Some(owner) = owner else { return Self::driven(&path, "another process") };
                Self::driven(&path, &by(&owner)).unless_suspended(&owner)
            }
            lock::Error::Removed { path } => {
                Self::usage(format!("{} was deleted just now", run_at(&path)))
            }
            lock::Error::OtherHost { path, owner } => {
                let run = run_at(&path);
                Self::driven(&path, &by(&owner)).hint(format!(
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

    /// Replaces the hint if the owner is suspended: it does nothing until someone continues it.
    fn unless_suspended(self, owner: &lock::Owner) -> Self {
        if ThisHost.life(&owner.process) != Life::Suspended {
            return self;
        }
        let message = format!("{}, which is suspended", self.message);
        let continuing = place::continuing(owner);
        Self { message, ..self }
            .hint(format!("continue the owner with `{continuing}`, or `fg` in its terminal"))
    }
}

fn by(owner: &lock::Owner) -> String {
    format!("process {} on {}", owner.process.pid, owner.process.host)
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
            OwnError::Blobs(error) => error.into(),
            OwnError::Driver(error) => error.into(),
            error @ OwnError::ActiveCopy(_) => Self::of(LOCKED, &error)
                .hint("its processes cannot be told from those of this copy: end it there first"),
            OwnError::GitTracked(error) => error.into(),
            OwnError::NeverStarted(run) => runs::never_started(&run),
            error @ OwnError::Unreadable { .. } => Self::of(ENVIRONMENT, &error).hint(UNREADABLE),
        }
    }
}

impl From<GitTracked> for Failure {
    fn from(error: GitTracked) -> Self {
        let failure = Self::of(USAGE, &error);
        match error {
            GitTracked::Run(_) => failure.hint(
                "it would run what somebody else pinned; if it is yours: git rm -r --cached .raymond \
                 (and git update-index --no-split-index, where the index is split)",
            ),
            GitTracked::Unknown { .. } => failure
                .code(ENVIRONMENT)
                .hint("mend the repository: `git status` has to work here"),
        }
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Exists(run) => Self::usage(format!("there is a run {run} already"))
                .hint(format!("choose another --run-id, or go on with it: raymond resume {run}")),
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
                    None => {
                        failure.hint("a workflow is a folder of states; `raymond init` writes one")
                    }
                }
            }
            PrepareError::Scope(ScopeError::NotAPrompt { ref path, what }) => {
                Self::of(USAGE, &error).hint(instead_of_a_prompt(path, what))
            }
            PrepareError::Scope(error) => Self::of(USAGE, &error),
        }
    }
}

fn instead_of_a_prompt(path: &Path, what: NotAPrompt) -> String {
    let named = |path: &Path| quoted(&path.display().to_string());
    match what {
        NotAPrompt::Directory => format!(
            "name the prompt in it: `raymond ralph {}`; a workflow is started by `raymond run {}`",
            named(&path.join("PROMPT.md")),
            named(path)
        ),
        NotAPrompt::Workflow => format!("`raymond run {}` starts it", named(path)),
        NotAPrompt::Other => "the name of a prompt ends in .md".to_owned(),
    }
}

impl From<InspectError> for Failure {
    fn from(error: InspectError) -> Self {
        match error {
            InspectError::NothingYet { run, owner } => {
                let by = by(&owner);
                let message = format!("{run} is driven by {by}, which has recorded nothing yet");
                Self::new(LOCKED, message).hint("try again in a moment").unless_suspended(&owner)
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
            error @ ReplayError::Source { .. } => Self::of(ENVIRONMENT, &error),
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

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        match error {
            RunnerError::Driver(error) => error.into(),
            RunnerError::Blobs(error) => error.into(),
            RunnerError::RunDirectory(error) => error.into(),
            error @ RunnerError::Refused(_) => {
                Self::of(USAGE, &error).hint("raymond why says where it is")
            }
            error @ RunnerError::Signals(_) => Self::of(ENVIRONMENT, &error),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Inbox(inbox::Error::Disk(error)) => error.into(),
            RequestError::Inbox(error) => Self::of(ENVIRONMENT, &error),
            RequestError::Inspect(error) => error.into(),
            RequestError::Own(error) => error.into(),
            RequestError::Driver(error) => error.into(),
            RequestError::Journal(error) => error.into(),
            RequestError::Fold(error) => error.into(),
            RequestError::Lock(error) => error.into(),
            error @ RequestError::Suspended(_) => Self::of(LOCKED, &error),
        }
    }
}
