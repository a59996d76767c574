//! The verdicts of a check of the machine, with a remedy for each.
//!
//! The caller collects the facts; this module judges them. A failure prevents runs from working; a
//! warning is something that the user should know before a run.

use std::fmt;

use crate::capability::BackendCatalog;
use crate::ids::BackendName;

use crate::text::{bytes, counted};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    Ok,
    Warn,
    /// Runs do not work.
    Fail,
}

/// The verdict of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check, in one word.
    pub check: &'static str,
    pub mark: Mark,
    pub text: String,
    pub remedy: Option<String>,
}

impl Mark {
    /// Returns the word in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

// Upper case on a screen, so that a failure is visible without colours.
impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        })
    }
}

impl Finding {
    pub fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, mark: Mark::Ok, text: text.into(), remedy: None }
    }

    pub fn warn(
        check: &'static str,
        text: impl Into<String>,
        remedy: impl Into<Option<String>>,
    ) -> Self {
        Self { mark: Mark::Warn, remedy: remedy.into(), ..Self::ok(check, text) }
    }

    pub fn fail(
        check: &'static str,
        text: impl Into<String>,
        remedy: impl Into<Option<String>>,
    ) -> Self {
        Self { mark: Mark::Fail, remedy: remedy.into(), ..Self::ok(check, text) }
    }
}

pub fn worst(findings: &[Finding]) -> Mark {
    findings.iter().map(|finding| finding.mark).max().unwrap_or(Mark::Ok)
}

/// The answer of a program to a request for its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Missing,
    Answers { path: String, version: String },
    Silent { path: String, why: String },
}

/// How much a client is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It is the default backend.
    Default,
    /// Only states or flags that name it use it, but the user configured its path.
    Named,
    /// Only states or flags that name it use it.
    Optional,
}

impl Need {
    /// Returns the finding for a client that cannot be used.
    pub fn unfit(self, text: String, remedy: String) -> Finding {
        match self {
            Self::Default => Finding::fail("client", text, remedy),
            Self::Named | Self::Optional => Finding::warn("client", text, remedy),
        }
    }
}

/// Checks the client of the backend `name`, which was found.
pub fn client(name: &str, found: &Program, need: Need) -> Finding {
    match found {
        Program::Answers { path, version } => {
            Finding::ok("client", format!("{name} {version} ({path})"))
        }
        Program::Silent { path, why } => need.unfit(
            format!("{name} ({path}) does not answer: {why}"),
            format!("see what `{path} --version` says"),
        ),
        Program::Missing => need.unfit(format!("{name} has gone"), "look again".to_owned()),
    }
}

/// Returns the finding for a client that was not found, with cause and remedy.
pub fn missing(name: &str, (text, remedy): (String, String), need: Need) -> Finding {
    match need {
        Need::Default | Need::Named => need.unfit(text, remedy),
        Need::Optional => {
            let text = format!("{name}: not installed (only needed for `backend: {name}`)");
            Finding::ok("client", text)
        }
    }
}

/// Returns a failure if the backend chosen at `origin` does not exist.
pub fn backend(name: &BackendName, origin: &str, offers: &BackendCatalog) -> Option<Finding> {
    let text = format!("there is no backend {:?} ({origin})", name.as_str());
    offers.of(name).is_none().then(|| Finding::fail("config", text, offers.advice(name)))
}

/// Free bytes from which disk space is fine: 1 GiB.
const PLENTY: u64 = 1 << 30;
/// Free bytes below which runs are likely to fail: 100 MiB.
const LITTLE: u64 = 100 << 20;

/// Checks the free disk space; `needed` bytes must be free for a turn to start.
pub fn room(free: u64, needed: u64) -> Finding {
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
pub struct Folder {
    pub name: String,
    /// Whether it is a symbolic link where a directory is required.
    pub is_link: bool,
    pub writable: bool,
    /// The owner, if it is another user.
    pub foreign: Option<u32>,
    /// The mode, if the directory must be private.
    pub mode: Option<u32>,
}

pub fn folder(check: &'static str, folder: &Folder) -> Finding {
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
pub enum Repository {
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
pub fn repository(found: Repository) -> Finding {
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
pub fn left_running(run: &str, commands: &[String]) -> Finding {
    let (processes, shown) = (counted_as(commands.len(), "process", "processes"), few(commands));
    Finding::warn(
        "processes",
        format!("{processes} of {run}, which has no owner: {shown}"),
        format!("raymond resume {run} continues the run; raymond doctor --fix ends them"),
    )
}

/// Reports processes and files of killed calls without a `runId`.
pub fn left_by_calls(commands: &[String], files: &[String]) -> Vec<Finding> {
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

pub fn transcripts(size: u64) -> Finding {
    let text = format!("transcripts take {}", bytes(size));
    if size >= MUCH {
        return Finding::warn("disk", text, "raymond prune".to_owned());
    }
    Finding::ok("disk", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(finding: &Finding) -> String {
        let Finding { check, mark, text, remedy } = finding;
        let remedy = remedy.as_deref().map(|remedy| format!(" → {remedy}")).unwrap_or_default();
        format!("{mark} {check}: {text}{remedy}")
    }

    #[test]
    fn every_mark_has_one_word() {
        assert_eq!([Mark::Ok, Mark::Warn, Mark::Fail].map(Mark::as_str), ["ok", "warn", "fail"]);
    }

    #[test]
    fn needed_client_without_answer_is_a_failure() {
        let check = |found: &Program, need, expected: &str| {
            assert_eq!(describe(&client("claude", found, need)), expected);
        };
        let path = || "/bin/claude".to_owned();
        let answers = Program::Answers { path: path(), version: "2.1".into() };
        let silent = Program::Silent { path: path(), why: "exit status 1".into() };
        check(&answers, Need::Default, "ok client: claude 2.1 (/bin/claude)");
        check(&answers, Need::Optional, "ok client: claude 2.1 (/bin/claude)");
        let bad = "FAIL client: claude (/bin/claude) does not answer: exit status 1 → see what \
                   `/bin/claude --version` says";
        check(&silent, Need::Default, bad);
        check(&silent, Need::Optional, &bad.replace("FAIL", "warn"));
        check(&Program::Missing, Need::Default, "FAIL client: claude has gone → look again");
    }

    #[test]
    fn unused_client_may_be_missing() {
        let check = |need, expected: &str| {
            let why = ("cannot find it".to_owned(), "install it".to_owned());
            assert_eq!(describe(&missing("claude", why, need)), expected);
        };
        check(Need::Default, "FAIL client: cannot find it → install it");
        check(Need::Named, "warn client: cannot find it → install it");
        let information = "ok client: claude: not installed (only needed for `backend: claude`)";
        check(Need::Optional, information);
    }

    #[test]
    fn unknown_backend_is_named_with_its_origin() {
        let names = ["claude", "codex"];
        let offers: BackendCatalog =
            names.into_iter().map(|name| (BackendName::new(name), &[] as &[_])).collect();
        let check = |name: &str, expected: Option<&str>| {
            let finding = backend(&BackendName::new(name), "RAYMOND_BACKEND", &offers);
            assert_eq!(finding.as_ref().map(describe).as_deref(), expected);
        };
        check("codex", None);
        let codx =
            "FAIL config: there is no backend \"codx\" (RAYMOND_BACKEND) → did you mean `codex`?";
        check("codx", Some(codx));
        let other =
            "FAIL config: there is no backend \"x\" (RAYMOND_BACKEND) → there are claude and codex";
        check("x", Some(other));
    }

    #[test]
    fn disk_space_is_compared_with_possible_need() {
        let needed = (5 << 20) + (64 << 10);
        let check = |free, mark| assert_eq!(room(free, needed).mark, mark, "{free}");
        check(u64::MAX, Mark::Ok);
        check(1 << 30, Mark::Ok);
        check((1 << 30) - 1, Mark::Warn);
        check(100 << 20, Mark::Warn);
        check((100 << 20) - 1, Mark::Fail);
        check(0, Mark::Fail);
        let said = |free| room(free, needed).text;
        assert_eq!(said(1 << 30), "1 GiB free");
        assert_eq!(said(300 << 20), "300 MiB free, less than 1 GiB");
        let little = "5 MiB free, less than 100 MiB; a turn needs about 5.1 MiB";
        assert_eq!(said(5 << 20), little);
        assert_eq!(transcripts(1 << 30).mark, Mark::Warn);
        assert_eq!(describe(&transcripts(2048)), "ok disk: transcripts take 2 KiB");
    }

    #[test]
    fn directory_must_be_owned_writable_and_private() {
        let check = |writable, foreign, mode, expected: &str| {
            let facts =
                Folder { name: ".raymond/".into(), is_link: false, writable, foreign, mode };
            assert!(describe(&folder("storage", &facts)).starts_with(expected), "{facts:?}");
            let facts = Folder { is_link: true, ..facts };
            let link = "FAIL storage: .raymond/ is a link";
            assert!(describe(&folder("storage", &facts)).starts_with(link), "{facts:?}");
        };
        check(true, None, Some(0o700), "ok storage: .raymond/ can be written");
        check(true, None, None, "ok storage: .raymond/ can be written");
        check(true, None, Some(0o755), "warn storage: .raymond/ can be read by others (mode 755)");
        check(false, None, Some(0o700), "FAIL storage: .raymond/ cannot be written");
        check(true, Some(7), Some(0o700), "FAIL storage: .raymond/ belongs to user 7");
    }

    #[test]
    fn missing_git_is_a_warning() {
        let check = |found, expected: &str| {
            assert!(describe(&repository(found)).starts_with(expected), "{found:?}");
        };
        let some = |changed, runs_are_committed| Repository::Some { changed, runs_are_committed };
        check(some(0, false), "ok git: clean");
        check(some(2, false), "warn git: 2 files not committed");
        check(some(0, true), "warn git: .raymond/ is not ignored");
        check(Repository::None, "warn git: not a git repository");
        check(Repository::Unknown, "warn git: git does not answer");
    }

    #[test]
    fn leftover_processes_are_listed_up_to_a_limit() {
        let check = |commands: &[&str], expected: &str| {
            let commands: Vec<String> = commands.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(left_running("r", &commands).text, expected);
        };
        check(&["a"], "1 process of r, which has no owner: a");
        check(&["a", "b", "c"], "3 processes of r, which has no owner: a; b; c");
        let many = "4 processes of r, which has no owner: a; b; c; …";
        check(&["a", "b", "c", "d"], many);
    }

    #[test]
    fn remains_of_killed_calls_are_named() {
        let check = |commands: &[&str], files: &[&str], expected: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|&name| name.into()).collect::<Vec<_>>();
            let found = left_by_calls(&owned(commands), &owned(files));
            let texts: Vec<&str> = found.iter().map(|finding| finding.text.as_str()).collect();
            assert_eq!(texts, expected);
        };
        check(&[], &[], &[]);
        check(&["a"], &[], &["1 process of killed `raymond crayfish` calls: a"]);
        let files = "2 files of killed `raymond crayfish` calls: f; g";
        check(&[], &["f", "g"], &[files]);
        check(&["a"], &["f", "g"], &["1 process of killed `raymond crayfish` calls: a", files]);
    }

    #[test]
    fn the_worst_finding_counts() {
        let (ok, warn) = (Finding::ok("a", "x"), Finding::warn("b", "x", None));
        let fail = Finding::fail("c", "x", None);
        assert_eq!(worst(&[]), Mark::Ok);
        assert_eq!(worst(&[warn.clone(), ok.clone()]), Mark::Warn);
        assert_eq!(worst(&[ok, fail, warn]), Mark::Fail);
    }
}
