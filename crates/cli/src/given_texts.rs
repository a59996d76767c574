//! Texts that a flag names instead of containing them: `--input -`, `--input @FILE`,
//! `--input <(…)`, `--replies -`.
//!
//! Standard input and pipes can be read only once. So they are read first, and a background process
//! gets their texts from its starter, as JSON on its standard input.

use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::args::RunFlags;
use crate::documents;
use crate::failure::Failure;
use crate::paths::is_read_once;

/// The texts of the flags of a new run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GivenTexts {
    /// The input, from the flag itself, a file or standard input.
    pub(crate) input: Option<String>,
    /// The replies, if they cannot be read a second time.
    pub(crate) replies: Option<String>,
}

impl GivenTexts {
    /// Reads the texts of a command line.
    pub(crate) fn of(flags: &RunFlags) -> Result<Self, Failure> {
        if flags.background.detached_as.is_some()
            && let Some(handed) = handed_over()?
        {
            return Ok(handed);
        }
        let replies = flags.setting_flags.replies.as_ref().map(|file| file.value.as_path());
        let replies = replies.filter(|path| is_read_once(path));
        if flags.input.as_deref() == Some("-") && replies == Some(Path::new("-")) {
            return Err(Failure::usage("--input and --replies cannot both read standard input")
                .hint("name a file for one of them: --input @FILE or --replies FILE"));
        }
        Ok(Self {
            input: flags.input.as_deref().map(input).transpose()?,
            replies: replies.map(|path| read("--replies", path)).transpose()?,
        })
    }

    /// Returns what a background process must get on its standard input.
    pub(crate) fn to_hand_over(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("two texts can be written as JSON")
    }
}

/// Returns the texts that the starter of this background process has read.
fn handed_over() -> Result<Option<GivenTexts>, Failure> {
    let mut json = Vec::new();
    io::stdin().lock().read_to_end(&mut json).map_err(|error| unread("standard input", &error))?;
    // A release before this feature handed over nothing.
    if json.is_empty() {
        return Ok(None);
    }
    let texts = serde_json::from_slice(&json);
    texts.map(Some).map_err(|error| Failure::environment(format!("standard input: {error}")))
}

/// Returns the text of `--input`: itself, or what `-`, `@FILE` or `<(…)` names.
fn input(flag: &str) -> Result<String, Failure> {
    if is_process_substitution(flag) {
        return read("--input", Path::new(flag)).map_err(|failure| {
            failure.hint("to pass this text itself, send it to standard input: --input -")
        });
    }
    match flag.strip_prefix('@') {
        // `@@home` is the text `@home`.
        Some(text) if text.starts_with('@') => Ok(text.to_owned()),
        Some(path) => read("--input", Path::new(path)).map_err(|failure| {
            failure.hint(format!("to pass this text itself: --input '@{flag}'"))
        }),
        None if flag == "-" => {
            let text = read("--input", Path::new("-"))?;
            if text.is_empty() {
                crate::say!("warning: --input -: standard input is empty");
            }
            Ok(text)
        }
        None => Ok(flag.to_owned()),
    }
}

/// Whether a text is a path by which a shell passes `<(…)`: `/dev/fd/63`, or `/proc/self/fd/11`.
fn is_process_substitution(text: &str) -> bool {
    let number = ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|start| text.strip_prefix(start));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}

fn read(flag: &str, path: &Path) -> Result<String, Failure> {
    let name = documents::name(path);
    let bytes =
        documents::read_file(path).map_err(|error| unread(&format!("{flag}: {name}"), &error))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{flag}: {name} is not UTF-8")))
}

fn unread(what: &str, error: &io::Error) -> Failure {
    Failure::usage(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_a_text_or_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("note.txt");
        std::fs::write(&file, "from a file\n").unwrap();
        let check = |flag: &str, expected: Result<&str, &str>| {
            let found = input(flag).map_err(|failure| failure.message_and_hint().0);
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{flag}");
        };
        check("a text", Ok("a text"));
        check("", Ok(""));
        check("@@home", Ok("@home"));
        check(&format!("@{}", file.display()), Ok("from a file\n"));
        let closed = "/dev/fd/987654";
        let refused = format!("--input: {closed}: No such file or directory (os error 2)");
        check(closed, Err(&refused));
        check("/dev/fd/", Ok("/dev/fd/"));
        check("/dev/fd/3 is open", Ok("/dev/fd/3 is open"));
        check("@missing.txt", Err("--input: missing.txt: No such file or directory (os error 2)"));
        std::fs::write(&file, b"\xff").unwrap();
        let binary = format!("--input: {} is not UTF-8", file.display());
        check(&format!("@{}", file.display()), Err(&binary));
    }
}
