use std::fs;
use std::io::{Cursor, Write as _};

use tempfile::TempDir;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn names(loaded: &LoadedScope) -> Vec<&str> {
    loaded.files.iter().map(|file| file.name.as_str()).collect()
}

/// The error and its causes, without the directory of the test.
fn refusal(path: &Path) -> String {
    let error = load(path).unwrap_err();
    let parent = path.parent().unwrap();
    let places = [parent.to_owned(), fs::canonicalize(parent).unwrap()];
    let mut shown = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        shown = format!("{shown}: {cause}");
        source = cause.source();
    }
    for place in places {
        shown = shown.replace(&*place.to_string_lossy(), "DIR");
    }
    shown
}

mod forms {
    use super::*;

    #[test]
    fn a_directory_starts_at_its_entry() {
        let directory = directory(&[
            ("START.md", "go"),
            ("b.sh", "true"),
            ("README.md", "no"),
            ("x.json", "{}"),
        ]);
        fs::create_dir(directory.path().join("sub")).unwrap();
        fs::write(directory.path().join("sub/deep.md"), "no").unwrap();
        let loaded = load(directory.path()).unwrap();
        let file = |name: &str, text: &str| SourceFile {
            name: name.to_owned(),
            bytes: text.as_bytes().into(),
            executable: false,
        };
        assert_eq!(
            loaded,
            LoadedScope {
                scope: fs::canonicalize(directory.path()).unwrap(),
                start: EntryPoint::Entry,
                files: vec![file("START.md", "go"), file("b.sh", "true")],
                origin: ScopeOrigin::Directory,
                warnings: vec![],
            }
        );
    }

    #[test]
    fn a_state_starts_in_its_own_directory() {
        let directory = directory(&[("REVIEW.md", "r"), ("OTHER.md", "o")]);
        let loaded = load(&directory.path().join("REVIEW.md")).unwrap();
        assert_eq!(loaded.start, EntryPoint::State("REVIEW.md".into()));
        assert_eq!(loaded.scope, fs::canonicalize(directory.path()).unwrap());
        assert_eq!(names(&loaded), ["OTHER.md", "REVIEW.md"]);
    }

    #[test]
    fn other_files_are_not_workflows() {
        let directory = directory(&[
            ("a.txt", ""),
            ("README.md", "x"),
            ("flow.json", "{}"),
            ("bare", ""),
            ("f.zip", "text"),
        ]);
        let refused = |name: &str| refusal(&directory.path().join(name));
        insta::assert_snapshot!(refused("a.txt"), @"DIR/a.txt is not a workflow: expected a directory, a .zip, a state (.md, .sh, .bat, .ps1), or a document of steps (.json)");
        insta::assert_snapshot!(refused("bare"), @"DIR/bare is not a workflow: expected a directory, a .zip, a state (.md, .sh, .bat, .ps1), or a document of steps (.json)");
        insta::assert_snapshot!(refused("README.md"), @"DIR/README.md is not a state: a README describes a workflow");
        insta::assert_snapshot!(refused("flow.json"), @"DIR/flow.json is a document of steps (Crayfish), not a workflow of states");
        insta::assert_snapshot!(refused("missing.md"), @"could not find DIR/missing.md");
        insta::assert_snapshot!(refused("f.zip"), @"could not use the archive DIR/f.zip: it is not a zip archive: invalid Zip archive: Could not find EOCD");
    }

    #[test]
    fn a_directory_may_have_any_name() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["flow.zip", "flow.json", "flow.md"] {
            let path = directory.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("START.md"), "go").unwrap();
            assert_eq!(names(&load(&path).unwrap()), ["START.md"], "{name}");
        }
        assert_eq!(names(&load(&directory.path().join("flow.md")).unwrap()), ["START.md"]);
    }
}

#[cfg(unix)]
mod directories {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    // proves: S9
    #[test]
    fn links_are_followed_only_inside_the_scope() {
        let outside = directory(&[("out.md", "secret")]);
        let directory = directory(&[("START.md", "go")]);
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("lib")).unwrap();
        fs::write(at("lib/shared.md"), "shared").unwrap();
        symlink("START.md", at("ALIAS.md")).unwrap();
        symlink("lib/shared.md", at("SHARED.md")).unwrap();
        symlink(outside.path().join("out.md"), at("OUT.md")).unwrap();
        symlink(outside.path(), at("ELSEWHERE.md")).unwrap();
        symlink("nowhere.md", at("BROKEN.md")).unwrap();
        symlink("LOOP.md", at("LOOP.md")).unwrap();
        symlink(outside.path().join("out.md"), at("notes.txt")).unwrap();
        symlink("lib", at("FOLDER.md")).unwrap();
        let loaded = load(directory.path()).unwrap();
        assert_eq!(names(&loaded), ["ALIAS.md", "SHARED.md", "START.md"]);
        let out = fs::canonicalize(outside.path()).unwrap();
        let warnings: Vec<_> =
            loaded.warnings.iter().map(|w| format!("{w} [{}]", w.code)).collect();
        let warnings = warnings.join("\n").replace(&*out.to_string_lossy(), "OUT");
        insta::assert_snapshot!(warnings, @r"
        BROKEN.md: warning: the link leads nowhere; it is not used as a state [broken-link]
        ELSEWHERE.md: warning: the link leads out of the scope, to OUT; it is not used as a state [link-leaves-scope]
        LOOP.md: warning: the link leads nowhere; it is not used as a state [broken-link]
        OUT.md: warning: the link leads out of the scope, to OUT/out.md; it is not used as a state [link-leaves-scope]
        ");
        let error = load(&at("OUT.md")).unwrap_err();
        assert!(matches!(error, ScopeError::StartLeaves { .. }), "{error}");
    }

    #[test]
    fn a_link_to_the_scope_itself_is_followed() {
        let directory = directory(&[("START.md", "go")]);
        let links = tempfile::tempdir().unwrap();
        let link = links.path().join("flow");
        symlink(directory.path(), &link).unwrap();
        let loaded = load(&link).unwrap();
        assert_eq!(loaded.scope, fs::canonicalize(directory.path()).unwrap());
        assert_eq!(names(&loaded), ["START.md"]);
    }

    #[test]
    fn folders_and_sockets_are_not_states() {
        let directory = directory(&[("START.md", "go")]);
        fs::create_dir(directory.path().join("DIR.md")).unwrap();
        let _socket =
            std::os::unix::net::UnixListener::bind(directory.path().join("S.sh")).unwrap();
        let loaded = load(directory.path()).unwrap();
        assert_eq!(names(&loaded), ["START.md"]);
        insta::assert_snapshot!(loaded.warnings[0], @"S.sh: warning: this is not a file; it is not used as a state");
        assert_eq!(loaded.warnings.len(), 1);
    }

    #[test]
    fn the_right_to_execute_is_kept() {
        let directory = directory(&[("START.md", "go"), ("run.sh", "true")]);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path().join("run.sh"), mode).unwrap();
        let loaded = load(directory.path()).unwrap();
        let executable: Vec<_> = loaded.files.iter().map(|file| file.executable).collect();
        assert_eq!(executable, [false, true]);
    }

    #[test]
    fn state_names_must_be_utf8() {
        use std::os::unix::ffi::OsStrExt as _;
        let directory = directory(&[("START.md", "go")]);
        let name = std::ffi::OsStr::from_bytes(b"na\xefve.md");
        fs::write(directory.path().join(name), "x").unwrap();
        assert_eq!(names(&load(directory.path()).unwrap()), ["START.md"]);
    }

    #[test]
    fn scope_size_is_limited() {
        let directory = directory(&[("START.md", "go")]);
        let file = fs::File::create(directory.path().join("LARGE.md")).unwrap();
        file.set_len(MOST_BYTES - 2).unwrap();
        assert_eq!(names(&load(directory.path()).unwrap()).len(), 2);
        file.set_len(MOST_BYTES - 1).unwrap();
        assert!(matches!(load(directory.path()), Err(ScopeError::TooLarge(_))));
    }

    #[test]
    fn number_of_states_is_limited() {
        let directory = tempfile::tempdir().unwrap();
        for n in 0..=MOST_ENTRIES {
            symlink("nowhere", directory.path().join(format!("{n}.md"))).unwrap();
        }
        assert!(matches!(load(directory.path()), Err(ScopeError::TooManyStates(_))));
    }
}

mod archives;

mod prompts {
    use raymond_core::run::Ralph;

    use super::*;

    fn ralph(until: Option<&str>) -> Ralph {
        Ralph { until: until.map(str::to_owned) }
    }

    #[test]
    fn only_the_prompt_and_its_command_are_loaded() {
        let directory = directory(&[("P.md", "go"), ("Q.md", "other"), ("UNTIL.sh", "theirs")]);
        let path = directory.path().join("P.md");
        let loaded = load_prompt(&path, &ralph(None)).unwrap();
        assert_eq!(names(&loaded), ["P.md"]);
        assert_eq!(loaded.start, EntryPoint::Ralph("P.md".into()));
        let loaded = load_prompt(&path, &ralph(Some("make"))).unwrap();
        assert_eq!(names(&loaded), ["P.md", "UNTIL.sh"]);
        assert_eq!(&*loaded.files[1].bytes, b"exec >&2; make\n");
    }

    #[cfg(unix)]
    #[test]
    fn prompt_is_loaded_from_its_path() {
        let (here, elsewhere) = (directory(&[("P.md", "go")]), directory(&[("P.md", "go")]));
        let link = |to: &Path, name: &str| {
            let path = here.path().join(name);
            std::os::unix::fs::symlink(to, &path).unwrap();
            load_prompt(&path, &ralph(None))
        };
        assert_eq!(names(&link(Path::new("P.md"), "SAME.md").unwrap()), ["SAME.md"]);
        let out = link(&elsewhere.path().join("P.md"), "OUT.md");
        assert!(matches!(out, Err(ScopeError::StartLeaves { .. })), "{out:?}");
        let gone = link(Path::new("NOTHING.md"), "GONE.md");
        assert!(matches!(gone, Err(ScopeError::Missing(_))), "{gone:?}");
    }
}
