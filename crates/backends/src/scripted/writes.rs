//! The files that a reply writes, in place of an agent's own edits.
//!
//! Files are written as a whole, so playing a reply twice changes nothing. Paths stay inside the
//! working directory: the text of a path is checked when the replies file is read, and links are
//! checked when a reply is played. Nothing is executed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::reader::{Reader, Rejected};
use super::yaml::{Node, Value};

/// A file in the working directory to write or remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Write {
    /// Relative, without `.` and `..`.
    path: String,
    /// The new content; `None` removes the file.
    text: Option<String>,
}

/// Parses a mapping from paths to texts or to null.
pub(super) fn writes(reader: &mut Reader<'_>, node: Node) -> Result<Vec<Write>, Rejected> {
    let Value::Map(entries) = node.value else {
        return Err(reader.mistyped(&node, "a mapping from paths to texts"));
    };
    if entries.is_empty() {
        return Err(reader.reject(
            "empty-value",
            node.span,
            "an empty mapping writes nothing".into(),
        ));
    }
    // Collected first, so that the mistakes of all entries are recorded.
    let found: Vec<_> = entries.into_iter().map(|(key, node)| write(reader, &key, node)).collect();
    found.into_iter().collect()
}

fn write(reader: &mut Reader<'_>, key: &Node, node: Node) -> Result<Write, Rejected> {
    let path = reader.name(key).and_then(|path| match fault(&path) {
        None => Ok(path),
        Some(fault) => {
            Err(reader.reject("bad-path", key.span.clone(), format!("{path:?} {fault}")))
        }
    });
    let text = match node.value {
        Value::Text(text) => Ok(Some(text)),
        Value::Null => Ok(None),
        Value::Bool(_) | Value::Whole(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
            Err(reader.mistyped(&node, "text, or null to remove the file"))
        }
    };
    Ok(Write { path: path?, text: text? })
}

/// Returns why a path cannot name a file in the working directory, if it cannot.
fn fault(path: &str) -> Option<&'static str> {
    let mut names = path.split('/');
    if path.starts_with('/') {
        Some("is absolute: paths are relative to the agent's working directory")
    } else if names.clone().any(|name| name == "..") {
        Some("leaves the agent's working directory")
    } else if path.contains('\0') || names.any(|name| matches!(name, "" | ".")) {
        Some("is not the path of a file, such as src/main.rs")
    } else {
        None
    }
}

/// Writes and removes files in the order of the replies file.
pub(super) fn apply(writes: &[Write], directory: &Path) -> Result<(), String> {
    writes.iter().try_for_each(|write| {
        write.apply(directory).map_err(|error| {
            let verb = if write.text.is_some() { "write" } else { "remove" };
            format!("the reply cannot {verb} {:?} in {}: {error}", write.path, directory.display())
        })
    })
}

impl Write {
    fn apply(&self, directory: &Path) -> io::Result<()> {
        let path = contained(directory, &self.path)?;
        match &self.text {
            Some(text) => {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                // Opening a FIFO for writing would wait for a reader.
                if fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
                    return Err(io::Error::other("the path exists but is not a regular file"));
                }
                fs::write(path, text)
            }
            None => match fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                done => done,
            },
        }
    }
}

/// Returns the path in the directory, unless a link on the way leads out.
fn contained(directory: &Path, path: &str) -> io::Result<PathBuf> {
    let top = directory.canonicalize()?;
    let whole = top.join(path);
    let on_the_way = whole.ancestors().find(|part| part.symlink_metadata().is_ok());
    // A dangling link has no canonical path either, so it is refused.
    let real = on_the_way.unwrap_or(&top).canonicalize()?;
    if real.starts_with(&top) {
        return Ok(whole);
    }
    Err(io::Error::other("a link leads out of the agent's working directory"))
}
