//! Every table row is checked with both resolvers.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

struct Fixture {
    outer: TempDir,
    ways: [Workspace; 2],
}

/// Creates a workspace in a directory that has a secret beside it.
fn fixture() -> Fixture {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("workspace");
    fs::create_dir_all(root.join("data/deep")).unwrap();
    fs::write(outer.path().join("secret"), "secret").unwrap();
    fs::write(root.join("data/a.json"), "inside").unwrap();
    let ways = [PathResolver::Kernel, PathResolver::Walk].map(|resolver| {
        let workspace = Workspace::open(&root).unwrap();
        Workspace { resolver, ..workspace }
    });
    Fixture { outer, ways }
}

impl Fixture {
    fn at(&self, path: &str) -> PathBuf {
        self.outer.path().join("workspace").join(path)
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "rows are literals")]
    fn check(&self, path: &str, expected: Result<&str, WorkspaceErrorKind>) {
        for workspace in &self.ways {
            let found = workspace.read(path).map(|bytes| String::from_utf8(bytes).unwrap());
            let expected = expected.clone().map(str::to_owned);
            let expected = expected.map_err(|why| WorkspaceError { path: path.to_owned(), why });
            assert_eq!(found, expected, "{:?}", workspace.resolver);
        }
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "rows are literals")]
    fn allowed(&self, path: &str, expected: Result<(), WorkspaceErrorKind>) {
        for workspace in &self.ways {
            let found = workspace.check(path).map_err(|fault| fault.why);
            assert_eq!(found, expected, "{path} {:?}", workspace.resolver);
        }
    }
}

// proves: S39
#[test]
fn a_path_stays_inside() {
    let fixture = fixture();
    fixture.check("data/a.json", Ok("inside"));
    fixture.check("./data/./deep/../a.json", Ok("inside"));
    fixture.check("data//a.json", Ok("inside"));
    fixture.check("..", Err(WorkspaceErrorKind::Escapes));
    fixture.check("../secret", Err(WorkspaceErrorKind::Escapes));
    fixture.check("data/../../secret", Err(WorkspaceErrorKind::Escapes));
    fixture.check("data/../../workspace/data/a.json", Err(WorkspaceErrorKind::Escapes));
    fixture.check("/etc/passwd", Err(WorkspaceErrorKind::Escapes));
    fixture.check(fixture.at("data/a.json").to_str().unwrap(), Err(WorkspaceErrorKind::Escapes));
}

// proves: S39
#[test]
fn a_link_may_lead_around_but_not_out() {
    let fixture = fixture();
    let link = |target: &str, path: &str| symlink(target, fixture.at(path)).unwrap();
    link("../data/a.json", "data/around");
    link("a.json", "data/beside");
    link("data", "directory");
    link("directory/around", "twice");
    link("../../secret", "data/out");
    link("..", "up");
    link("/etc", "absolute");
    link("loop", "loop");
    link("/proc/self/root", "magic");
    link("gone", "dangling");
    symlink(fixture.at("data"), fixture.at("own")).unwrap();
    fixture.check("data/around", Ok("inside"));
    fixture.check("data/beside", Ok("inside"));
    fixture.check("directory/a.json", Ok("inside"));
    fixture.check("twice", Ok("inside"));
    fixture.check("data/out", Err(WorkspaceErrorKind::Escapes));
    fixture.check("up/secret", Err(WorkspaceErrorKind::Escapes));
    fixture.check("absolute/passwd", Err(WorkspaceErrorKind::Escapes));
    fixture.check("magic/etc/passwd", Err(WorkspaceErrorKind::Escapes));
    fixture.check("own/a.json", Err(WorkspaceErrorKind::Escapes));
    fixture.check("dangling", Err(WorkspaceErrorKind::Missing));
    let message = "Too many levels of symbolic links (os error 40)";
    fixture.check("loop", Err(WorkspaceErrorKind::Unreadable(message.to_owned())));
    fixture.allowed("data/out", Err(WorkspaceErrorKind::Escapes));
    fixture.allowed("up/new.json", Err(WorkspaceErrorKind::Escapes));
    fixture.allowed("directory/new.json", Ok(()));
}

#[test]
fn only_regular_files_are_read_without_blocking() {
    let fixture = fixture();
    mknodat(CWD, fixture.at("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = UnixListener::bind(fixture.at("socket")).unwrap();
    for path in ["fifo", "socket", "data", ".", "data/deep/.."] {
        fixture.check(path, Err(WorkspaceErrorKind::NotAFile));
        fixture.allowed(path, Ok(()));
    }
}

#[test]
fn absent_file_is_missing() {
    let fixture = fixture();
    for path in ["gone", "data/gone/deeper", "data/a.json/inner", "", "a\0b"] {
        fixture.check(path, Err(WorkspaceErrorKind::Missing));
        fixture.allowed(path, Ok(()));
    }
    let check = |path: &str, why: &str| {
        let path = fixture.at(path);
        let expected = format!("could not open the workspace {}: {why}", path.display());
        assert_eq!(Workspace::open(&path).unwrap_err().to_string(), expected);
    };
    check("gone", "No such file or directory (os error 2)");
    check("data/a.json", "Not a directory (os error 20)");
}

#[test]
fn a_file_has_a_largest_size() {
    let fixture = fixture();
    for workspace in &fixture.ways {
        assert_eq!(workspace.read_within(6, "data/a.json"), Ok(b"inside".to_vec()));
        let found = workspace.read_within(5, "data/a.json");
        assert_eq!(found, Err(WorkspaceErrorKind::TooLarge { limit: 5 }));
    }
    let sparse = File::create(fixture.at("sparse")).unwrap();
    sparse.set_len(FILE_MAX * 1000).unwrap();
    fixture.check("sparse", Err(WorkspaceErrorKind::TooLarge { limit: FILE_MAX }));
}

#[test]
fn a_fault_says_which_path_and_why() {
    let fixture = fixture();
    let fault = fixture.ways[0].read("../secret").unwrap_err();
    let expected = "could not read ../secret in the workspace: it leads out of the workspace";
    assert_eq!(fault.to_string(), expected);
}

#[test]
fn a_workspace_that_is_moved_stays_the_same() {
    let fixture = fixture();
    fs::rename(fixture.at(""), fixture.outer.path().join("moved")).unwrap();
    fixture.check("data/a.json", Ok("inside"));
}

struct Enough<'a>(&'a AtomicBool);

impl Drop for Enough<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// proves: S39
#[test]
fn a_race_never_leads_out() {
    let fixture = fixture();
    let (inner, link) = (fixture.at("data"), fixture.at("link"));
    fs::write(fixture.outer.path().join("a.json"), "outside").unwrap();
    symlink("..", &link).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &inner, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        // A failure here must stop the thread that swaps the directories.
        let _enough = Enough(&done);
        let mut seen = [0, 0];
        for round in 0..200_000 {
            let found = fixture.ways[round % 2].read_within(100, "data/a.json");
            match found {
                Ok(bytes) => {
                    assert_eq!(bytes, b"inside");
                    seen[0] += 1;
                }
                Err(WorkspaceErrorKind::Escapes) => seen[1] += 1,
                // The walk meets a link where it saw a directory before.
                Err(_) => {}
            }
            if round > 10_000 && seen.iter().all(|count| *count > 100) {
                break;
            }
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    });
}

fn parse(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|_| "not JSON".to_owned())
}

// proves: S40
#[test]
fn schemas_are_found_by_file_name_in_order() {
    let fixture = fixture();
    let workspace = &fixture.ways[0];
    fs::create_dir_all(fixture.at("one/Directory")).unwrap();
    fs::create_dir_all(fixture.at("two")).unwrap();
    let write = |path: &str, text: &str| fs::write(fixture.at(path), text).unwrap();
    write("one/A.json", "1");
    write("two/A.json", "2");
    write("two/B.json", "3");
    write("two/Plain", "4");
    write("two/Directory.json", "5");
    write("two/bad.json", "{");
    symlink("../../secret", fixture.at("two/out.json")).unwrap();
    let files = |paths: &[&str]| {
        let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        workspace.schema_files(&paths, parse)
    };
    let both = files(&["one", "gone", "./two/"]).unwrap();
    let check = |name: &str, expected: Result<Option<Value>, &str>| {
        assert_eq!(both.find(name), expected.map_err(str::to_owned), "{name}");
    };
    check("A", Ok(Some(json!(1))));
    check("A.json", Ok(Some(json!(1))));
    check("B", Ok(Some(json!(3))));
    check("Plain", Ok(Some(json!(4))));
    check("Directory", Ok(Some(json!(5))));
    check("C", Ok(None));
    check("bad", Err("./two/bad.json: not JSON"));
    let out = "could not read ./two/out.json in the workspace: it leads out of the workspace";
    check("out", Err(out));
    check("../secret", Err("`../secret` is not a file name"));
    check("..", Err("`..` is not a file name"));
    assert_eq!(both.display_directories(), "looked in: one, gone, ./two");
    let none = files(&[]).unwrap();
    assert_eq!(none.find("A"), Ok(None));
    assert_eq!(
        none.display_directories(),
        "no schema directory is set: use --schema-path DIR or `ref.schemaPaths`"
    );
    write("Root.json", "6");
    for root in ["", ".", "./"] {
        assert_eq!(files(&[root]).unwrap().find("Root"), Ok(Some(json!(6))), "{root}");
    }
    let found = files(&["/etc", "one", "../x"]).unwrap_err();
    let escapes = |index, path: &str| {
        (index, WorkspaceError { path: path.to_owned(), why: WorkspaceErrorKind::Escapes })
    };
    assert_eq!(found, [escapes(0, "/etc"), escapes(2, "../x")]);
}
