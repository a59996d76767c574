//! Ships the examples: every file below `examples/` becomes a part of the binary.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Files that a run of an example leaves behind; they are not shipped.
const LEFT_OUT: [&str; 3] = [".raymond", ".git", "try"];

/// The source of a slice of `Example`.
pub(crate) fn source(examples: &Path) -> io::Result<String> {
    let mut source = String::from("&[\n");
    for folder in entries(examples)?.into_iter().filter(|path| path.is_dir()) {
        writeln!(source, "Example {{ name: {:?}, files: &[", name(&folder)).ok();
        for file in files(&folder)? {
            let path = file.strip_prefix(&folder).unwrap_or(&file).display().to_string();
            // `include_bytes!` keeps only the content, but an example may contain scripts that a
            // user calls.
            let executable = fs::metadata(&file)?.permissions().mode() & 0o111 != 0;
            let content = format!("include_bytes!({:?})", file.display().to_string());
            writeln!(source, "({path:?}, {content}, {executable}),").ok();
        }
        source.push_str("] },\n");
    }
    source.push(']');
    Ok(source)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the entries of a folder sorted by name, so that equal files give an equal binary.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        entries.push(entry?.path());
    }
    entries.retain(|path| !LEFT_OUT.contains(&name(path).as_str()));
    entries.sort();
    Ok(entries)
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
