//! The verdicts of a check of the machine, with a remedy for each.
//!
//! The caller collects the facts; this module judges them. A failure prevents runs from working; a
//! warning is something that the user should know before a run.

use std::fmt;

use raymond_core::capability::BackendCatalog;
use raymond_core::ids::BackendName;
use raymond_core::text::{bytes, counted};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HealthMark {
    Ok,
    Warn,
    /// Runs do not work.
    Fail,
}

/// The verdict of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The name of the check, in one word.
    pub(crate) check: &'static str,
    pub(crate) mark: HealthMark,
    pub(crate) text: String,
    pub(crate) remedy: Option<String>,
}

impl HealthMark {
    /// Returns the word in JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

// Upper case on a screen, so that a failure is visible without colours.
impl fmt::Display for HealthMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        })
    }
}

impl Finding {
    pub(crate) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, mark: HealthMark::Ok, text: text.into(), remedy: None }
    }

    pub(crate) fn warn(
        check: &'static str,
        text: impl Into<String>,
        remedy: impl Into<Option<String>>,
    ) -> Self {
        Self { mark: HealthMark::Warn, remedy: remedy.into(), ..Self::ok(check, text) }
    }

    pub(crate) fn fail(
        check: &'static str,
        text: impl Into<String>,
        remedy: impl Into<Option<String>>,
    ) -> Self {
        Self { mark: HealthMark::Fail, remedy: remedy.into(), ..Self::ok(check, text) }
    }
}

pub(crate) fn worst(findings: &[Finding]) -> HealthMark {
    findings.iter().map(|finding| finding.mark).max().unwrap_or(HealthMark::Ok)
}

/// The answer of a program to a request for its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientProbe {
    Missing,
    Answers { path: String, version: String },
    Silent { path: String, why: String },
}

/// How much a client is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientNeed {
    /// It is the default backend.
    Default,
    /// Only states or flags that name it use it, but the user configured its path.
    Named,
    /// Only states or flags that name it use it.
    Optional,
}

impl ClientNeed {
    /// Returns the finding for a client that cannot be used.
    pub(crate) fn unfit(self, text: String, remedy: String) -> Finding {
        match self {
            Self::Default => Finding::fail("client", text, remedy),
            Self::Named | Self::Optional => Finding::warn("client", text, remedy),
        }
    }
}

/// Checks the client of the backend `name`, which was found.
pub(crate) fn client(name: &str, found: &ClientProbe, need: ClientNeed) -> Finding {
    match found {
        ClientProbe::Answers { path, version } => {
            Finding::ok("client", format!("{name} {version} ({path})"))
        }
        ClientProbe::Silent { path, why } => need.unfit(
            format!("{name} ({path}) does not answer: {why}"),
            format!("see what `{path} --version` says"),
        ),
        ClientProbe::Missing => need.unfit(format!("{name} has gone"), "look again".to_owned()),
    }
}

/// Returns the finding for a client that was not found, with cause and remedy.
pub(crate) fn missing(name: &str, text: String, remedy: String, need: ClientNeed) -> Finding {
    match need {
        ClientNeed::Default | ClientNeed::Named => need.unfit(text, remedy),
        ClientNeed::Optional => {
            let text = format!("{name}: not installed (only needed for `backend: {name}`)");
            Finding::ok("client", text)
        }
    }
}

/// Returns a failure if the backend chosen at `origin` does not exist.
pub(crate) fn backend(
    name: &BackendName,
    origin: &str,
    offers: &BackendCatalog,
) -> Option<Finding> {
    let text = format!("there is no backend {:?} ({origin})", name.as_str());
    offers.of(name).is_none().then(|| Finding::fail("config", text, offers.advice(name)))
}

/// Free bytes from which disk space is fine: 1 GiB.
const PLENTY: u64 = 1 << 30;
/// Free bytes below which runs are likely to fail: 100 MiB.
const LITTLE: u64 = 100 << 20;

/// Checks the free disk space; `needed` bytes must be free for a turn to start.
pub(crate) fn room(free: u64, needed: u64) -> Finding {
    let text = match free {
        PLENTY.. => format!("{} free", bytes(free)),
        LITTLE..PLENTY => format!("{} free, less than {}", bytes(free), bytes(PLENTY)),
        0..LITTLE => format!(
            "{} free, less than {}; a turn needs about {}",
            bytes(free),
            bytes(LITTLE),
            // Rounded up to a tenth of a MiB, because a little less is not enough.
            bytes(needed.saturating_add((1 << 20) / 10))
        ),
    };
    let remedy = "free some space: `raymond prune` deletes runs that are over".to_owned();
    match free {
        PLENTY.. => Finding::ok("disk", text),
        LITTLE..PLENTY => Finding::warn("disk", text, remedy),
        0..LITTLE => Finding::fail("disk", text, remedy),
    }
}

/// The facts about a directory that Raymond writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    pub(crate) name: String,
    /// Whether it is a symbolic link where a directory is required.
    pub(crate) is_link: bool,
    pub(crate) writable: bool,
    /// The owner, if it is another user.
    pub(crate) foreign: Option<u32>,
    /// The mode, if the directory must be private.
    pub(crate) mode: Option<u32>,
}

pub(crate) fn folder(check: &'static str, folder: &Folder) -> Finding {
    let Folder { name, is_link, writable, foreign, mode } = folder;
    let open = mode.filter(|mode| mode & 0o077 != 0);
    if *is_link {
        return Finding::fail(
            check,
            format!("{name} is a link, and nothing is written through one"),
            format!("put a directory in place of {name}"),
        );
    }
    match (foreign, writable, open) {
        (Some(user), _, _) => Finding::fail(
            check,
            format!("{name} belongs to user {user}"),
            format!("chown it, or work as that user: only the owner of {name} can use it"),
        ),
        (None, false, _) => Finding::fail(
            check,
            format!("{name} cannot be written"),
            format!("make {name} writable, or work elsewhere"),
        ),
        (None, true, Some(mode)) => Finding::warn(
            check,
            format!("{name} can be read by others (mode {mode:03o})"),
            format!("chmod 700 {name}"),
        ),
        (None, true, None) => Finding::ok(check, format!("{name} can be written")),
    }
}

/// The state of the project's git repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repository {
    None,
    Some {
        /// The number of files that differ from the last commit.
        changed: usize,
        /// Whether the directory of the runs would be committed.
        runs_are_committed: bool,
    },
    Unknown,
}

/// Checks whether git can distinguish edits of agents from those of people.
pub(crate) fn repository(found: Repository) -> Finding {
    match found {
        Repository::None => Finding::warn(
            "git",
            "not a git repository: edits of agents cannot be distinguished from earlier files",
            "git init".to_owned(),
        ),
        Repository::Unknown => Finding::warn("git", "git does not answer", None),
        Repository::Some { runs_are_committed: true, .. } => Finding::warn(
            "git",
            ".raymond/ is not ignored: runs would be committed",
            "echo '*' > .raymond/.gitignore".to_owned(),
        ),
        Repository::Some { changed: 0, .. } => Finding::ok("git", "clean"),
        Repository::Some { changed, .. } => Finding::warn(
            "git",
            format!(
                "{} not committed: edits of agents cannot be distinguished from these",
                counted(changed as u64, "file")
            ),
            "commit or stash before a run".to_owned(),
        ),
    }
}

/// Reports processes of a run that has no owner.
pub(crate) fn left_running(run: &str, commands: &[String]) -> Finding {
    let (processes, shown) = (counted_as(commands.len(), "process", "processes"), few(commands));
    Finding::warn(
        "processes",
        format!("{processes} of {run}, which has no owner: {shown}"),
        format!("raymond resume {run} continues the run; raymond doctor --fix ends them"),
    )
}

/// Reports processes and files of killed calls without a `runId`.
pub(crate) fn left_by_calls(commands: &[String], files: &[String]) -> Vec<Finding> {
    let processes = (!commands.is_empty()).then(|| {
        let processes = counted_as(commands.len(), "process", "processes");
        let text = format!("{processes} of killed `raymond crayfish` calls: {}", few(commands));
        Finding::warn("processes", text, "raymond doctor --fix ends them".to_owned())
    });
    let files = (!files.is_empty()).then(|| {
        let text = format!(
            "{} of killed `raymond crayfish` calls: {}",
            counted_as(files.len(), "file", "files"),
            few(files)
        );
        Finding::warn("files", text, "raymond doctor --fix removes them".to_owned())
    });
    processes.into_iter().chain(files).collect()
}

fn counted_as(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Returns the first names, with an ellipsis if there are more.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = if names.len() > SHOWN { "; …" } else { "" };
    format!("{shown}{more}")
}

/// Bytes of transcripts from which a warning is due: 1 GiB.
const MUCH: u64 = 1 << 30;

pub(crate) fn transcripts(size: u64) -> Finding {
    let text = format!("transcripts take {}", bytes(size));
    if size >= MUCH {
        return Finding::warn("disk", text, "raymond prune".to_owned());
    }
    Finding::ok("disk", text)
}

#[cfg(test)]
mod tests;
