//! Converts paths of the user to the absolute paths that are recorded.

use std::io::ErrorKind;
use std::path::Path;

use crate::failure::Failure;

/// Returns the absolute path without links; the path must exist.
pub(crate) fn absolute(path: &Path) -> Result<String, Failure> {
    let named = path.display();
    let found = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::usage(format!("there is no {named}")),
        _ => Failure::usage(format!("could not find {named}: {error}")),
    })?;
    found
        .into_os_string()
        .into_string()
        .map_err(|_| Failure::usage(format!("the path {named} is not UTF-8")))
}
