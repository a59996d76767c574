//! A short question to a program, which may not take long.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use raymond_backends::headless::program;
use raymond_backends::process::{Grace, Inherit, Input, Limits, Marker, ProcessEnd, Spec, start};
use raymond_backends::script::describe;
use raymond_backends::{claude, codex};
use raymond_core::ids::{AgentId, TurnId};
use raymond_core::view::health::Program;
use raymond_engine::clock;

use crate::interrupts::Asking;

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client may take, for whoever asks: longer than anything takes that works. Clients are large,
/// and a busy machine is no reason to refuse a run.
pub(crate) const OF_A_CLIENT: Duration = Duration::from_secs(30);

/// How much of what a program says is told.
const LONGEST: usize = 60;

/// Where a program is.
pub(crate) fn find(command: &str) -> Option<PathBuf> {
    let search = std::env::var_os("PATH");
    program::find(OsStr::new(command), search.as_deref()).ok()
}

/// What the client of this name says of its version, where Raymond was started: whoever keeps several
/// versions chooses by the directory. Whatever says no number, or that of something else, is another
/// program.
pub(crate) async fn version(name: &str, command: &str, patience: Duration) -> Program {
    let Some(found) = find(command) else { return Program::Missing };
    let path = found.display().to_string();
    let said = match std::env::current_dir() {
        Ok(here) => ask_within(&found, &["--version"], &here, patience).await,
        Err(error) => Err(format!("the current directory cannot be used: {error}")),
    };
    match said.and_then(|said| number(name, &said)) {
        Ok(version) => Program::Answers { path, version },
        Err(why) => Program::Silent { path, why },
    }
}

/// What a program prints, or why it does not.
pub(crate) async fn ask(program: &Path, words: &[&str], cwd: &Path) -> Result<String, String> {
    ask_within(program, words, cwd, PATIENCE).await
}

async fn ask_within(
    program: &Path,
    words: &[&str],
    cwd: &Path,
    patience: Duration,
) -> Result<String, String> {
    let limits =
        Limits { wall: Some(patience), output: 1 << 20, grace: SHORT, ..Limits::default() };
    let nobody = TurnId { agent: AgentId::new("doctor"), visit: 1, turn: 1 };
    let asking = Asking::begin()?;
    let started = start(Spec {
        program: program.as_os_str().to_owned(),
        arguments: words.iter().map(OsString::from).collect(),
        cwd: cwd.to_owned(),
        inherit: Inherit::All,
        set: Vec::new(),
        unset: Vec::new(),
        marker: Marker::new(&clock::nonce(), &nobody, 1),
        stdin: Input::Null,
    });
    let process = started.map_err(|error| error.to_string())?;
    let ended = process.finish(&limits, asking.token()).await;
    drop(asking);
    match ended.end {
        ProcessEnd::Exited(status) if status.success() => Ok(ended.text),
        ProcessEnd::Exited(status) => {
            let said = ended.stderr.lines().last().unwrap_or_else(|| first_line(&ended.text));
            let colon = if said.is_empty() { "" } else { ": " };
            Err(format!("{}{colon}{}", describe(status), cut(said)))
        }
        ProcessEnd::TimedOut { after, .. } => {
            Err(format!("it took more than {} s", after.as_secs()))
        }
        ProcessEnd::TooLarge { .. } => Err("it does not stop talking".to_owned()),
        ProcessEnd::Cancelled { .. } | ProcessEnd::ExitUnknown(_) => Err("it was lost".to_owned()),
    }
}

const SHORT: Grace = Grace {
    after_exit: Duration::from_millis(200),
    interrupt: Duration::from_millis(200),
    terminate: Duration::from_millis(500),
    kill: Duration::from_secs(2),
};

/// The number in `codex-cli 0.55.0`.
fn number(name: &str, said: &str) -> Result<String, String> {
    let line = first_line(said);
    if line.is_empty() {
        return Err("it says nothing".to_owned());
    }
    let starts = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words = line.split_whitespace().map(|word| word.strip_prefix('v').unwrap_or(word));
    let word = words.find(starts).filter(|_| is_of(name, line));
    word.map(cut).ok_or_else(|| format!("{:?} is no version of {name}", cut(line)))
}

/// Whether a line can be of this client: it names it, or begins with a number and names no other one.
fn is_of(name: &str, line: &str) -> bool {
    let line = line.to_lowercase();
    let mut others = [claude::NAME, codex::NAME].into_iter().filter(|other| *other != name);
    let is_bare = line.starts_with(|first: char| first.is_ascii_digit());
    line.contains(name) || (is_bare && !others.any(|other| line.contains(other)))
}

fn first_line(said: &str) -> &str {
    said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

fn cut(said: &str) -> String {
    match said.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_version_is_the_first_number_that_is_said_of_the_client() {
        let check = |name: &str, said: &str, expected: Result<&str, &str>| {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(number(name, said), expected, "{name}: {said}");
        };
        check("claude", "2.1.325 (Claude Code)\n", Ok("2.1.325"));
        check("claude", "2.1.325", Ok("2.1.325"));
        check("claude", "2.1.325-house built by somebody", Ok("2.1.325-house"));
        check("codex", "\ncodex-cli 0.55.0\nmore", Ok("0.55.0"));
        check("codex", "codex-cli v0.10.0", Ok("0.10.0"));
        let longest = "9".repeat(LONGEST);
        check("claude", &format!("{longest}9"), Ok(&format!("{longest}…")));
        let coreutils = "cat (GNU coreutils) 9.4";
        check("claude", coreutils, Err("\"cat (GNU coreutils) 9.4\" is no version of claude"));
        // Many a program prints just that.
        check("claude", "v22.1.0", Err("\"v22.1.0\" is no version of claude"));
        check("claude", "v2.1.325 (Claude Code)", Ok("2.1.325"));
        check("claude", "very new", Err("\"very new\" is no version of claude"));
        check("claude", "claude", Err("\"claude\" is no version of claude"));
        let mixed_up = "\"codex-cli 0.166.0\" is no version of claude";
        check("claude", "codex-cli 0.166.0", Err(mixed_up));
        let mixed_up = "\"2.1.325 (Claude Code)\" is no version of codex";
        check("codex", "2.1.325 (Claude Code)", Err(mixed_up));
        check("claude", "\u{1b}[2J9", Err("\"\\u{1b}[2J9\" is no version of claude"));
        check("claude", " \n", Err("it says nothing"));
    }

    #[tokio::test]
    async fn a_client_that_does_not_say_its_version_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client").to_str().unwrap().to_owned();
        let check = async |script: &str, patience: Duration, expected: &str| {
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            let silent = Program::Silent { path: path.clone(), why: expected.to_owned() };
            assert_eq!(version("claude", &path, patience).await, silent, "{script}");
        };
        let (long, short) = (Duration::from_mins(1), Duration::from_millis(100));
        check("echo 2.1.325; echo no node >&2; exit 3", long, "exit status 3: no node").await;
        check("echo 2.1.325; exit 3", long, "exit status 3: 2.1.325").await;
        check("exit 3", long, "exit status 3").await;
        check("echo hello", long, "\"hello\" is no version of claude").await;
        check("exec sleep 600", short, "it took more than 0 s").await;
        check("trap '' INT TERM; sleep 600", short, "it took more than 0 s").await;
    }
}
