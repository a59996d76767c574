//! Which workflow a person may have meant.

use std::path::{Path, PathBuf};

use raymond_core::workflow::extension::is_state;

/// A folder with more names than this is not searched.
const MOST_NAMES: usize = 1_000;

/// The workflow beside `path` whose name is nearest to it.
pub(crate) fn nearest(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = std::fs::read_dir(here).ok()?.take(MOST_NAMES).filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        may_be_one(&name, &entry.path()).then_some(name)
    });
    let names: Vec<String> = names.collect();
    let wanted = path.file_name()?.to_str()?;
    let found = raymond_core::workflow::nearest(wanted, names.iter().map(String::as_str))?;
    Some(folder.join(found))
}

fn may_be_one(name: &str, path: &Path) -> bool {
    let archive = path.extension().is_some_and(|extension| extension == "zip");
    !name.starts_with('.') && (path.is_dir() || archive || is_state(name))
}
