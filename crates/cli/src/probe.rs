//! Runs a program with a time limit and reads its answer, such as `claude --version`.
//!
//! Probes never reach a model. A signal during a probe ends the program first (see `interrupts`).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::health::ClientProbe;
use raymond_backends::headless::program;
use raymond_backends::process::{
    Grace, Inherit, Limits, Marker, ProcessEnd, ProcessStdin, Spec, start,
};
use raymond_backends::registry::CLIENTS;
use raymond_backends::script::describe;
use raymond_core::ids::{AgentId, TurnId};
use raymond_core::text::excerpt;
use raymond_engine::clock;

use crate::interrupts::ProbeGuard;

/// Time limit of a short answer, for example of git. Generous: such programs answer within
/// milliseconds.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a client. Clients are large programs, and a busy machine must not refuse a run.
pub(crate) const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Most characters of a program's answer in a message.
const MAX_SHOWN_CHARS: usize = 60;

/// Finds a program on `PATH`.
pub(crate) fn find(command: &str) -> Option<PathBuf> {
    let search = std::env::var_os("PATH");
    program::find(OsStr::new(command), search.as_deref()).ok()
}

/// Asks a client for its version, in the current directory, because version managers choose by
/// directory. An answer without a number, or of another client, means that it is another program.
pub(crate) async fn client_version(name: &str, command: &str, time_limit: Duration) -> ClientProbe {
    let Some(found) = find(command) else { return ClientProbe::Missing };
    let path = found.display().to_string();
    let said = match std::env::current_dir() {
        Ok(here) => output_within(&found, &["--version"], &here, time_limit).await,
        Err(error) => Err(format!("could not use the current directory: {error}")),
    };
    match said.and_then(|said| parse_version(name, &said)) {
        Ok(version) => ClientProbe::Answers { path, version },
        Err(why) => ClientProbe::Silent { path, why },
    }
}

/// Runs a program and returns its output, or the reason why there is none.
pub(crate) async fn output(program: &Path, words: &[&str], cwd: &Path) -> Result<String, String> {
    output_within(program, words, cwd, TIMEOUT).await
}

async fn output_within(
    program: &Path,
    words: &[&str],
    cwd: &Path,
    time_limit: Duration,
) -> Result<String, String> {
    let limits =
        // 1 MiB of output is far more than any version text; a program that prints endlessly is
        // stopped.
        Limits { wall: Some(time_limit), output: 1 << 20, grace: SHORT_GRACE, ..Limits::default() };
    // Every process carries the marker of a turn. A probe belongs to no run, so its marker names
    // none.
    let no_turn = TurnId { agent: AgentId::new("doctor"), visit: 1, turn: 1 };
    // Before the start, so that a signal between the two also ends the program.
    let guard = ProbeGuard::begin()?;
    let started = start(Spec {
        program: program.as_os_str().to_owned(),
        arguments: words.iter().map(OsString::from).collect(),
        cwd: cwd.to_owned(),
        inherit: Inherit::All,
        set: Vec::new(),
        unset: Vec::new(),
        marker: Marker::new(&clock::nonce(), &no_turn, 1),
        stdin: ProcessStdin::Null,
    });
    let process = started.map_err(|error| error.to_string())?;
    let ended = process.finish(&limits, guard.token()).await;
    // Here a signal that ended the program ends this process, before a misleading error is printed.
    drop(guard);
    match ended.end {
        ProcessEnd::Exited(status) if status.success() => Ok(ended.text),
        ProcessEnd::Exited(status) => {
            // The last line of stderr is usually the error; some programs report errors on stdout
            // instead.
            let said = ended.stderr.lines().last().unwrap_or_else(|| first_line(&ended.text));
            let colon = if said.is_empty() { "" } else { ": " };
            Err(format!("{}{colon}{}", describe(status), shortened(said)))
        }
        ProcessEnd::TimedOut { after, .. } => {
            Err(format!("no answer within {} s", after.as_secs()))
        }
        ProcessEnd::TooLarge { .. } => Err("it printed more than 1 MiB".to_owned()),
        ProcessEnd::Cancelled { .. } | ProcessEnd::ExitUnknown(_) => {
            Err("it was interrupted".to_owned())
        }
    }
}

// Shorter than for turns: a program that only prints its version has nothing to save.
const SHORT_GRACE: Grace = Grace {
    after_exit: Duration::from_millis(200),
    interrupt: Duration::from_millis(200),
    terminate: Duration::from_millis(500),
    kill: Duration::from_secs(2),
};

/// Returns the number in an answer such as `codex-cli 0.55.0`.
fn parse_version(name: &str, said: &str) -> Result<String, String> {
    let line = first_line(said);
    if line.is_empty() {
        return Err("it printed nothing".to_owned());
    }
    let starts = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words = line.split_whitespace().map(|word| word.strip_prefix('v').unwrap_or(word));
    let word = words.find(starts).filter(|_| can_be_from(name, line));
    word.map(shortened).ok_or_else(|| format!("{:?} is not a version of {name}", shortened(line)))
}

/// Whether an answer can come from this client: it names the client, or starts with a number and
/// names no other client.
fn can_be_from(name: &str, line: &str) -> bool {
    let line = line.to_lowercase();
    let mut others = CLIENTS.iter().map(|kind| kind.name).filter(|other| *other != name);
    let is_bare = line.starts_with(|first: char| first.is_ascii_digit());
    line.contains(name) || (is_bare && !others.any(|other| line.contains(other)))
}

fn first_line(said: &str) -> &str {
    said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

fn shortened(said: &str) -> String {
    excerpt(said, MAX_SHOWN_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn version_is_the_first_number_of_the_answer() {
        let check = |name: &str, said: &str, expected: Result<&str, &str>| {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(parse_version(name, said), expected, "{name}: {said}");
        };
        check("claude", "2.1.325 (Claude Code)\n", Ok("2.1.325"));
        check("claude", "2.1.325", Ok("2.1.325"));
        check("claude", "2.1.325-house built by hand", Ok("2.1.325-house"));
        check("codex", "\ncodex-cli 0.55.0\nmore", Ok("0.55.0"));
        check("codex", "codex-cli v0.10.0", Ok("0.10.0"));
        let longest = "9".repeat(MAX_SHOWN_CHARS);
        check("claude", &format!("{longest}9"), Ok(&format!("{longest}…")));
        let coreutils = "cat (GNU coreutils) 9.4";
        check("claude", coreutils, Err("\"cat (GNU coreutils) 9.4\" is not a version of claude"));
        // Many other programs print only a number.
        check("claude", "v22.1.0", Err("\"v22.1.0\" is not a version of claude"));
        check("claude", "v2.1.325 (Claude Code)", Ok("2.1.325"));
        check("claude", "very new", Err("\"very new\" is not a version of claude"));
        check("claude", "claude", Err("\"claude\" is not a version of claude"));
        let mixed_up = "\"codex-cli 0.166.0\" is not a version of claude";
        check("claude", "codex-cli 0.166.0", Err(mixed_up));
        let mixed_up = "\"2.1.325 (Claude Code)\" is not a version of codex";
        check("codex", "2.1.325 (Claude Code)", Err(mixed_up));
        check("claude", "\u{1b}[2J9", Err("\"\\u{1b}[2J9\" is not a version of claude"));
        check("claude", " \n", Err("it printed nothing"));
    }

    #[tokio::test]
    async fn missing_version_has_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client").to_str().unwrap().to_owned();
        let check = async |script: &str, time_limit: Duration, expected: &str| {
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
            let silent = ClientProbe::Silent { path: path.clone(), why: expected.to_owned() };
            assert_eq!(client_version("claude", &path, time_limit).await, silent, "{script}");
        };
        let (long, short) = (Duration::from_mins(1), Duration::from_millis(100));
        check("echo 2.1.325; echo no node >&2; exit 3", long, "exit status 3: no node").await;
        check("echo 2.1.325; exit 3", long, "exit status 3: 2.1.325").await;
        check("exit 3", long, "exit status 3").await;
        check("echo hello", long, "\"hello\" is not a version of claude").await;
        check("exec sleep 600", short, "no answer within 0 s").await;
        check("trap '' INT TERM; sleep 600", short, "no answer within 0 s").await;
    }
}
