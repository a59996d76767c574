//! What a test did, counted for the table of `cargo xtask torture`.
//!
//! A test that is run alone says nothing. Under torture the variable names a file; every line of it is
//! a number of something, which the table adds up.

use std::fs::OpenOptions;
use std::io::Write as _;

use serde_json::json;

/// The variable that names the file.
pub const FILE: &str = "RAYMOND_TALLY";

/// Counts so many of `what` in this part of the torture: `("kill", "after the sync of the journal", 3)`.
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
