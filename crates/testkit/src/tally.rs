//! Counts for the table of `cargo xtask torture`.
//!
//! A test that runs alone counts nothing. During torture an environment variable names a file, and
//! every count is a line in it; the table adds them up.

use std::fs::OpenOptions;
use std::io::Write as _;

use serde_json::json;

/// The environment variable that names the file.
pub const FILE: &str = "RAYMOND_TALLY";

/// Adds to a count of this part of the torture: `("kill", "after the sync of the journal", 3)`.
pub fn count(part: &str, what: &str, number: u64) {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let line = json!({ "part": part, "what": what, "count": number });
    let mut file =
        OpenOptions::new().create(true).append(true).open(file).expect("a file of counts");
    // One write, so that lines of several processes do not mix.
    file.write_all(format!("{line}\n").as_bytes()).expect("a line of counts");
}
