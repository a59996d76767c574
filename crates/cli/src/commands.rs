//! The commands, one file each, and the functions that print their output.

pub(crate) mod answer;
pub(crate) mod attach;
mod background;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cost;
pub(crate) mod crayfish;
pub(crate) mod demo;
pub(crate) mod doctor;
mod drive;
pub(crate) mod emit;
mod finish;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod projects;
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
pub(crate) mod tend;
pub(crate) mod wait;
pub(crate) mod why;

use std::io::Write as _;

use crate::failure::Failure;
use crate::json::{self, Layout};
use crate::sanitize::{sanitized, styled};
use crate::secrets::redacted_json;
use crate::streams;

/// Returns the name under which requests of this user are recorded.
pub(crate) fn login_name() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    name.or_else(|| {
        let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
        account(&accounts, rustix::process::getuid().as_raw()).map(str::to_owned)
    })
    .unwrap_or_else(|| "a user".to_owned())
}

/// Returns the name of a user in the text of `/etc/passwd`.
fn account(accounts: &str, user: u32) -> Option<&str> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(user)).then_some(name)
    })
}

/// Prints a JSON value to stdout, without secrets.
pub(crate) fn print_json(value: serde_json::Value) -> Result<(), Failure> {
    write_stdout(&(json::text(&redacted_json(value), Layout::Indented) + "\n"))
}

/// Prints a text to stdout, without secrets and control characters, because it may contain foreign
/// names.
pub(crate) fn print_text(text: &str) -> Result<(), Failure> {
    write_stdout(&sanitized(text))
}

/// Prints a text with Raymond's styles to stdout; foreign parts are sanitized already.
pub(crate) fn print_styled(text: &str) -> Result<(), Failure> {
    write_stdout(&styled(text))
}

/// Writes data to stdout unchanged. A closed stdout is not an error, and a stuck one is not tried
/// twice.
pub(crate) fn write_stdout(text: &str) -> Result<(), Failure> {
    // Another thread may still be blocked in a write and hold the lock of stdout.
    if streams::STDOUT.is_given_up() {
        return Ok(());
    }
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // A reader that closed the pipe, such as `head`, has seen enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::environment(format!("could not write to stdout: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_is_found_by_its_number() {
        let accounts =
            "root:x:0:0:root:/root:/bin/bash\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(account(accounts, 1000), Some("ada"));
        assert_eq!(account(accounts, 0), Some("root"));
        assert_eq!(account(accounts, 7), None);
    }
}
