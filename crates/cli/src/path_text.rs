//! Paths for people: short, and relative where that is shorter.

use std::path::{Path, PathBuf};

/// Returns the path for display, with `~` for the home directory.
pub(crate) fn below_home(path: &Path) -> String {
    // A name with a line break must not forge a row of a table.
    shortened(path, home().as_deref()).replace(['\n', '\r'], "\u{fffd}")
}

/// Returns the path for display: relative if it is below the current directory.
pub(crate) fn below_here(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// Returns the home directory of the user.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

fn shortened(path: &Path, home: Option<&Path>) -> String {
    // Below `/`, which is the home of some services, `~` would shorten nothing.
    let home = home.filter(|home| home.parent().is_some());
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_shortened_to_a_tilde() {
        let check = |path: &str, home: Option<&str>, expected: &str| {
            assert_eq!(shortened(Path::new(path), home.map(Path::new)), expected, "{home:?}");
        };
        check("/home/me/app", Some("/home/me"), "~/app");
        check("/home/me", Some("/home/me/"), "~");
        check("/home/meadow", Some("/home/me"), "/home/meadow");
        check("/srv/app", Some("/home/me"), "/srv/app");
        check("/srv/app", Some("/"), "/srv/app");
        check("/srv/app", None, "/srv/app");
    }
}
