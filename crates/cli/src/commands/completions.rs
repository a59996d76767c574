//! `raymond completions`: prints the completion script for a shell.

use std::path::Path;

use crate::args::{Completions, Shell};
use crate::completion;
use crate::failure::Failure;

use super::write_stdout;

pub(crate) fn completions(flags: &Completions) -> Result<u8, Failure> {
    let shell = match flags.shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Elvish => "elvish",
        Shell::Powershell => "powershell",
    };
    let script = completion::script(shell, &program())
        .map_err(|error| Failure::environment(format!("could not write the script: {error}")))?;
    write_stdout(&script)?;
    Ok(0)
}

/// Returns the program that the script calls: the name or the path by which this process was
/// called. A path that needs quoting in a shell is replaced by the name.
fn program() -> String {
    const NAME: &str = "raymond";
    let called = std::env::args_os().next().unwrap_or_default();
    if Path::new(&called).components().count() < 2 {
        return NAME.to_owned();
    }
    let path =
        std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let is_plain = |path: &String| raymond_core::text::quoted(path) == *path;
    path.filter(is_plain).unwrap_or_else(|| NAME.to_owned())
}
