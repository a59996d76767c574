//! A short question to a program, which may not take long.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use raymond_backends::headless::program;
use raymond_backends::process::{Grace, How, Inherit, Input, Limits, Marker, Spec, start};
use raymond_backends::script::describe;
use raymond_core::ids::{AgentId, TurnId};
use raymond_core::view::health::Program;
use raymond_engine::clock;
use tokio_util::sync::CancellationToken;

/// How long a program may take to say its version: clients are large, and machines are busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a program is.
pub(crate) fn find(command: &str) -> Option<PathBuf> {
    let search = std::env::var_os("PATH");
    program::find(OsStr::new(command), search.as_deref()).ok()
}

/// What a program says of its version.
pub(crate) async fn version(command: &str) -> Program {
    let Some(found) = find(command) else { return Program::Missing };
    let path = found.display().to_string();
    match ask(&found, &["--version"], Path::new("/")).await {
        Ok(said) => Program::Answers { path, version: number(&said) },
        Err(why) => Program::Silent { path, why },
    }
}

/// What a program prints, or why it does not.
pub(crate) async fn ask(program: &Path, words: &[&str], cwd: &Path) -> Result<String, String> {
    let limits =
        Limits { wall: Some(PATIENCE), output: 1 << 20, grace: SHORT, ..Limits::default() };
    let nobody = TurnId { agent: AgentId::new("doctor"), visit: 1, turn: 1 };
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
    let ended = process.finish(&limits, &CancellationToken::new()).await;
    match ended.how {
        How::Exited(status) if status.success() => Ok(ended.text),
        How::Exited(status) => {
            let last = ended.stderr.lines().last().unwrap_or_default();
            let colon = if last.is_empty() { "" } else { ": " };
            Err(format!("{}{colon}{last}", describe(status)))
        }
        How::TimedOut { after, .. } => Err(format!("it took more than {} s", after.as_secs())),
        How::TooLarge { .. } => Err("it does not stop talking".to_owned()),
        How::Cancelled { .. } | How::Lost(_) => Err("it was lost".to_owned()),
    }
}

const SHORT: Grace = Grace {
    after_exit: Duration::from_millis(200),
    interrupt: Duration::from_millis(200),
    terminate: Duration::from_millis(500),
    kill: Duration::from_secs(2),
};

/// The number in `codex-cli 0.55.0`, or all of the first line.
fn number(said: &str) -> String {
    const LONGEST: usize = 60;
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("of no version").trim();
    let starts = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words = line.split_whitespace().map(|word| word.strip_prefix('v').unwrap_or(word));
    let word = words.find(starts).unwrap_or(line);
    word.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_first_number_that_is_said() {
        let check = |said: &str, expected: &str| assert_eq!(number(said), expected);
        check("2.1.325 (Claude Code)\n", "2.1.325");
        check("\ncodex-cli 0.55.0\nmore", "0.55.0");
        check("GNU bash, version 5.2.15(1)-release", "5.2.15(1)-release");
        check("codex-cli v0.10.0", "0.10.0");
        check("unknown build", "unknown build");
        check("very new", "very new");
        check("", "of no version");
        check(&"9".repeat(100), &"9".repeat(60));
    }
}
