//! One file for each verb.

pub(crate) mod attach;
mod background;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cost;
pub(crate) mod crayfish;
pub(crate) mod demo;
pub(crate) mod doctor;
mod finish;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod prune;
pub(crate) mod ralph;
pub(crate) mod replay;
mod report;
mod result;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod wait;
pub(crate) mod why;

use std::io::Write as _;

use crate::failure::Failure;
use crate::json::{self, Layout};
use crate::sanitize::{sanitized, styled};
use crate::secrets::redacted_json;
use crate::streams;

/// Shows one JSON value on stdout.
pub(crate) fn print_json(value: serde_json::Value) -> Result<(), Failure> {
    write_stdout(&(json::text(&redacted_json(value), Layout::Indented) + "\n"))
}

/// Shows a text on stdout. Names and paths in it are somebody's: nothing of it is obeyed.
pub(crate) fn print_text(text: &str) -> Result<(), Failure> {
    write_stdout(&sanitized(text))
}

/// Shows a text with styles of ours on stdout, whose parts are plain already.
pub(crate) fn print_styled(text: &str) -> Result<(), Failure> {
    write_stdout(&styled(text))
}

/// Prints a line to stderr. The text is plain or styled already: use `say!` unless it has styles.
pub(crate) fn print_error_line(text: &str) {
    if !streams::STDERR.is_given_up() {
        writeln!(anstream::stderr(), "{text}").ok();
    }
}

/// Writes data to stdout, as it is; a reader that went away is fine, and one that does not read is
/// not waited for twice.
pub(crate) fn write_stdout(text: &str) -> Result<(), Failure> {
    if streams::STDOUT.is_given_up() {
        return Ok(());
    }
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::environment(format!("could not write to stdout: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
