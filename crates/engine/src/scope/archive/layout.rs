//! Checks the layout of an archive: all entries at the top, or all in one folder.

use std::collections::BTreeMap;

use super::ArchiveError;

/// The longest name of a file in bytes, on all common file systems.
const LONGEST_NAME: usize = 255;

/// The layout of the entries so far.
#[derive(Default)]
pub(super) struct ArchiveLayout {
    /// The first entry and its folder.
    first: Option<(String, Option<String>)>,
    /// Paths in lower case, and as they were written: some file systems ignore case.
    seen: BTreeMap<String, String>,
    has_files: bool,
}

impl ArchiveLayout {
    /// Returns the name of a file without its folder, or `None` for a folder. The caller has
    /// checked the path.
    pub(super) fn place(&mut self, path: &str) -> Result<Option<String>, ArchiveError> {
        let whole = path.strip_suffix('/').unwrap_or(path);
        if let Some(first) = self.seen.insert(whole.to_lowercase(), path.to_owned()) {
            let second = path.to_owned();
            return Err(ArchiveError::Duplicate { first, second });
        }
        let is_folder = path.ends_with('/');
        let (folder, name) = match (whole.split_once('/'), is_folder) {
            (Some((folder, name)), false) if !name.contains('/') => (Some(folder), name),
            (Some(_), _) => return Err(ArchiveError::Nested(beginning(path))),
            (None, true) => (Some(whole), ""),
            (None, false) => (None, whole),
        };
        self.agree(path, folder)?;
        self.has_files |= !is_folder;
        Ok((!is_folder).then(|| name.to_owned()))
    }

    /// Checks the layout after the last entry.
    pub(super) fn finish(self) -> Result<(), ArchiveError> {
        if self.has_files { Ok(()) } else { Err(ArchiveError::Empty) }
    }

    fn agree(&mut self, path: &str, folder: Option<&str>) -> Result<(), ArchiveError> {
        match &self.first {
            None => self.first = Some((path.to_owned(), folder.map(str::to_owned))),
            Some((_, known)) if known.as_deref() == folder => {}
            Some((first, _)) => {
                return Err(ArchiveError::Mixed { first: first.clone(), second: path.to_owned() });
            }
        }
        Ok(())
    }
}

/// Refuses a path that could lead out of the archive, or that is not a valid path on every system.
pub(super) fn check_path(path: &str) -> Result<(), ArchiveError> {
    let whole = path.strip_suffix('/').unwrap_or(path);
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    let bad = |part: &str| part.len() > LONGEST_NAME || part.chars().any(char::is_control);
    let refused = if path.starts_with('/') || drive {
        ArchiveError::Absolute
    } else if path.contains('\\') {
        ArchiveError::Backslash
    } else if whole.split('/').any(bad) {
        ArchiveError::BadName
    } else if whole.split('/').any(|part| matches!(part, "" | "." | "..")) {
        ArchiveError::Dotted
    } else {
        return Ok(());
    };
    Err(refused(beginning(path)))
}

/// Shortens a path for a message: in an archive it can have 64 KiB.
fn beginning(path: &str) -> String {
    path.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(paths: &[&str]) -> Result<Vec<String>, String> {
        let mut layout = ArchiveLayout::default();
        let mut names = Vec::new();
        for path in paths {
            let placed = check_path(path).and_then(|()| layout.place(path));
            names.extend(placed.map_err(|error| error.to_string())?);
        }
        layout.finish().map_err(|error| error.to_string())?;
        Ok(names)
    }

    #[test]
    fn entries_are_at_top_or_in_one_folder() {
        let check = |paths: &[&str], expected: &[&str]| {
            assert_eq!(place(paths), Ok(expected.iter().map(|n| (*n).to_owned()).collect()));
        };
        check(&["START.md", "a.sh"], &["START.md", "a.sh"]);
        check(&["flow/START.md", "flow/a.sh"], &["START.md", "a.sh"]);
        check(&["flow/", "flow/START.md"], &["START.md"]);
        check(&["flow/START.md", "flow/"], &["START.md"]);
        check(&["...", "..a", "a..md"], &["...", "..a", "a..md"]);
    }

    // proves: S10
    #[test]
    fn every_other_layout_is_refused() {
        let refused = |paths: &[&str]| place(paths).unwrap_err();
        insta::assert_snapshot!(refused(&[]), @"it is empty");
        insta::assert_snapshot!(refused(&["flow/"]), @"it is empty");
        insta::assert_snapshot!(refused(&["START.md", "flow/a.md"]), @r#"it is mixed: "START.md" and "flow/a.md" are not in one folder"#);
        insta::assert_snapshot!(refused(&["flow/a.md", "START.md"]), @r#"it is mixed: "flow/a.md" and "START.md" are not in one folder"#);
        insta::assert_snapshot!(refused(&["one/a.md", "two/b.md"]), @r#"it is mixed: "one/a.md" and "two/b.md" are not in one folder"#);
        insta::assert_snapshot!(refused(&["one/a.md", "two/"]), @r#"it is mixed: "one/a.md" and "two/" are not in one folder"#);
        insta::assert_snapshot!(refused(&["a/b/c.md"]), @r#"it is nested: "a/b/c.md" is more than one folder deep"#);
        insta::assert_snapshot!(refused(&["a/b/"]), @r#"it is nested: "a/b/" is more than one folder deep"#);
        insta::assert_snapshot!(refused(&["/etc/passwd"]), @r#""/etc/passwd" is an absolute path"#);
        insta::assert_snapshot!(refused(&["c:/x.md"]), @r#""c:/x.md" is an absolute path"#);
        insta::assert_snapshot!(refused(&["../x.md"]), @r#""../x.md" is a dotted path"#);
        insta::assert_snapshot!(refused(&["./x.md"]), @r#""./x.md" is a dotted path"#);
        insta::assert_snapshot!(refused(&["a//x.md"]), @r#""a//x.md" is a dotted path"#);
        insta::assert_snapshot!(refused(&[""]), @r#""" is a dotted path"#);
        insta::assert_snapshot!(refused(&["a\\x.md"]), @r#""a\\x.md" contains a backslash"#);
        insta::assert_snapshot!(refused(&["a\0.md"]), @r#""a\0.md" cannot be the name of a file"#);
        insta::assert_snapshot!(refused(&["A.md", "a.MD"]), @r#""A.md" and "a.MD" are the same name"#);
        insta::assert_snapshot!(refused(&["Ä.md", "ä.md"]), @r#""Ä.md" and "ä.md" are the same name"#);
        insta::assert_snapshot!(refused(&["f/A.md", "f/A.md"]), @r#""f/A.md" and "f/A.md" are the same name"#);
        assert!(refused(&[&"x".repeat(256)]).ends_with("cannot be the name of a file"));
    }
}
