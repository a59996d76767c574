//! Commands for tests that keep away from the files of the developer.
//!
//! Raymond reads the configuration of its user and writes the registry of the user's projects. So
//! every test that starts the binary makes its command here, with a directory in place of the
//! user's home. `xtask/src/tidy.rs` refuses other commands in the tests of the command line.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Returns a command with the environment of this process, but without the settings of Raymond.
/// Configuration and state of the user are below `home`, which need not exist.
#[expect(clippy::disallowed_methods, reason = "a test starts what it tests")]
pub fn private_command(program: impl AsRef<OsStr>, home: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RAYMOND_") {
            command.env_remove(name);
        }
    }
    in_home(&mut command, home);
    command
}

/// Returns a command with nothing in its environment but the path to programs and a home.
pub fn bare_command(program: impl AsRef<OsStr>, home: &Path) -> Command {
    let mut command = private_command(program, home);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    in_home(&mut command, home);
    command.env("HOME", home);
    command
}

fn in_home(command: &mut Command, home: &Path) {
    command.env("XDG_CONFIG_HOME", home.join("config")).env("XDG_STATE_HOME", home.join("state"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_the_user_are_below_the_home() {
        let home = Path::new("/nowhere");
        for command in [private_command("x", home), bare_command("x", home)] {
            for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
                let (_, value) = command.get_envs().find(|(known, _)| *known == name).unwrap();
                assert!(Path::new(value.unwrap()).starts_with(home), "{name} in {command:?}");
            }
        }
    }
}
