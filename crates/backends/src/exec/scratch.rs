//! Files for shell texts of steps that are too long for an argument.
//!
//! A file is removed when its step has ended. If the process that runs the step is killed, the file
//! stays. Its name contains the nonce of the run, so that `doctor --fix` finds it.

use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use raymond_core::ids::Nonce;
use rustix::process::geteuid;
use tempfile::NamedTempFile;

use crate::process::Marker;

const PREFIX: &str = "raymond-step-";
const SUFFIX: &str = ".sh";
/// The separator between the nonce and the random part; no nonce contains it.
const SEPARATOR: char = '_';

/// Writes a text to a file that only this user can read, because the text may contain secrets.
pub(super) fn write_file(text: &str, marker: &Marker) -> io::Result<NamedTempFile> {
    let prefix = format!("{PREFIX}{}{SEPARATOR}", marker.run());
    let mut file = tempfile::Builder::new().prefix(&prefix).suffix(SUFFIX).tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// Returns the files of this user that belong to the given runs.
pub fn find(is_meant: impl Fn(&Nonce) -> bool) -> Vec<PathBuf> {
    find_in(&std::env::temp_dir(), is_meant)
}

fn find_in(directory: &Path, is_meant: impl Fn(&Nonce) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let meant = entries.filter(|entry| {
        // The temporary directory is shared with other users, who may create files of any name.
        let is_own = entry
            .metadata()
            .is_ok_and(|found| found.is_file() && found.uid() == geteuid().as_raw());
        entry.file_name().to_str().and_then(run_of).is_some_and(|run| is_own && is_meant(&run))
    });
    let mut files: Vec<PathBuf> = meant.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Returns the run to which a file of this name belongs.
fn run_of(name: &str) -> Option<Nonce> {
    let rest = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    rest.rsplit_once(SEPARATOR).map(|(run, _)| Nonce::from(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_found_by_nonce_of_run() {
        let place = tempfile::tempdir().unwrap();
        let turn = "main.1.1".parse().unwrap();
        let file = write_file("echo", &Marker::new(&"c0ffee".into(), &turn, 1)).unwrap();
        let name = file.path().file_name().unwrap();
        std::fs::copy(file.path(), place.path().join(name)).unwrap();
        for other in ["raymond-step-abc.sh", "raymond-step-beef_x.sh", "x_c0ffee.sh"] {
            std::fs::write(place.path().join(other), "").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("raymond-step-c0ffee_l.sh"))
            .unwrap();
        let found = find_in(place.path(), |run| *run == Nonce::from("c0ffee"));
        assert_eq!(found, [place.path().join(name)]);
    }
}
