//! Where things lie, and what is refused there.

use super::*;
use crate::disk::OpenMode::{Create, New, Read, Write};
use crate::disk::{Memory, RealDisk};

fn disk(directories: &[&str], git: Option<(&str, &str)>) -> Memory {
    let memory = Memory::new(0);
    for directory in directories {
        memory.create_dir(Path::new(directory)).unwrap();
    }
    if let Some((path, content)) = git {
        atomic_file::write(&memory, Path::new(path), content.as_bytes(), Durability::Derived)
            .unwrap();
    }
    memory
}

/// What is refused about a run whose files begin with a link at `name`.
#[cfg(unix)]
fn refused_with_a_link_at(name: &str) -> Option<(DiskErrorKind, PathBuf)> {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("elsewhere")).unwrap();
    let root = Root::in_directory(place.path());
    let paths = root.run("r").unwrap();
    let link = root.path().join(name);
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    // The root itself has an empty name, and a path with a slash at its end cannot be a link.
    let link = link.components().as_path();
    std::os::unix::fs::symlink(place.path().join("elsewhere"), link).unwrap();
    let error = root.ensure(&RealDisk).and_then(|()| paths.ensure(&RealDisk)).err()?;
    assert_eq!(RealDisk.list(&place.path().join("elsewhere")).unwrap(), [""; 0]);
    let named = error.path.strip_prefix(root.path()).unwrap().to_owned();
    Some((error.kind(), named))
}

#[cfg(unix)]
// proves: S6
#[test]
fn nothing_is_written_through_a_link() {
    let links = ["", "runs", "state", "runs/r", "runs/r/blobs", "runs/r/transcripts"];
    let files = ["runs/r/journal.jsonl", "runs/r/console.log", "runs/r/definition/A.sh"];
    for name in links.into_iter().chain(files) {
        assert_eq!(refused_with_a_link_at(name), Some((DiskErrorKind::Link, name.into())));
    }
    assert_eq!(refused_with_a_link_at("runs/r/homes/main/theirs"), None);
}

#[cfg(unix)]
#[test]
fn run_behind_a_link_is_refused_first() {
    for name in [".raymond", ".raymond/runs", ".raymond/runs/r", ".raymond/state"] {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(place.path(), &link).unwrap();
        let root = Root::in_directory(place.path());
        let paths = root.run("r").unwrap();
        for refused in [paths.refuse_links(&RealDisk), paths.refuse_links_above(&RealDisk)] {
            let error = refused.unwrap_err();
            assert_eq!((error.kind(), &error.path), (DiskErrorKind::Link, &link));
        }
        assert_eq!(root.refuse_links(&RealDisk).is_err(), name != ".raymond/runs/r", "{name}");
    }
}

#[cfg(unix)]
#[test]
fn link_inside_a_run_does_not_stop_removal() {
    let place = tempfile::tempdir().unwrap();
    let paths = Root::in_directory(place.path()).run("r").unwrap();
    std::fs::create_dir_all(&paths.directory).unwrap();
    std::os::unix::fs::symlink(place.path(), &paths.blobs).unwrap();
    assert!(paths.refuse_links(&RealDisk).is_err());
    paths.refuse_links_above(&RealDisk).unwrap();
}

#[cfg(unix)]
#[test]
fn nothing_is_swept_away_behind_a_link() {
    let place = tempfile::tempdir().unwrap();
    let root = Root::in_directory(place.path());
    let kept = place.path().join("elsewhere/.removed-0-r");
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::create_dir(root.path()).unwrap();
    std::os::unix::fs::symlink("../elsewhere", root.path().join("runs")).unwrap();
    assert_eq!(root.sweep(&RealDisk).unwrap_err().kind(), DiskErrorKind::Link);
    assert!(kept.exists());
}

/// A link to itself leads nowhere, not even for root.
#[cfg(unix)]
#[test]
fn unreadable_run_is_refused() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().unwrap();
    let endless = place.path().join("endless");
    symlink(&endless, &endless).unwrap();
    let paths = Root::in_directory(&endless).run("r").unwrap();
    let error = paths.refuse_links(&RealDisk).unwrap_err();
    assert_eq!((error.attempt, error.path), ("look at", paths.directory));
    let paths = Root::in_directory(place.path()).run("r").unwrap();
    paths.refuse_links(&RealDisk).unwrap();
    std::fs::create_dir_all(&paths.directory).unwrap();
    symlink(&paths.blobs, &paths.blobs).unwrap();
    let error = paths.refuse_links(&RealDisk).unwrap_err();
    assert_eq!((error.attempt, error.path), ("list", paths.blobs));
}

#[cfg(unix)]
// proves: S6
#[test]
fn files_are_never_written_through_a_link() {
    let place = tempfile::tempdir().unwrap();
    let (file, link) = (place.path().join("file"), place.path().join("link"));
    std::fs::write(&file, "kept").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for how in [Write, Create] {
        let refused = RealDisk.open(&link, how).unwrap_err();
        assert_eq!(DiskErrorKind::of(&refused), DiskErrorKind::Link, "{how:?}");
    }
    assert!(RealDisk.open(&link, New).is_err());
    assert!(RealDisk.open(&link, Read).is_ok());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "kept");
}

#[test]
fn root_is_beside_the_repository() {
    let check = |directories: &[&str], git, start: &str, expected: &str| {
        let found = Root::locate(&disk(directories, git), Path::new(start)).unwrap();
        assert_eq!(found.path(), Path::new(expected));
    };
    let plain = ["/p", "/p/.git", "/p/src"];
    let head = Some(("/p/.git/HEAD", "ref: refs/heads/main\n"));
    check(&plain, head, "/p/src", "/p/.raymond");
    check(&plain, head, "/p", "/p/.raymond");
    check(&plain, None, "/p/src", "/p/src/.raymond");
    check(&["/p", "/p/src"], None, "/p/src", "/p/src/.raymond");
    let linked = ["/main", "/main/.git", "/w", "/w/src"];
    let file = |content| Some(("/w/.git", content));
    check(&linked, file("gitdir: /main/.git/worktrees/w\n"), "/w/src", "/main/.raymond");
    check(&linked, file("gitdir: ../main/.git/worktrees/w"), "/w", "/main/.raymond");
    check(&linked, file("gitdir: ../main/.git/modules/w\n"), "/w", "/w/.raymond");
    check(&linked, file("gitdir: /bare.git/worktrees/w\n"), "/w", "/w/.raymond");
    check(&linked, file("garbage"), "/w", "/w/.raymond");
}

#[test]
fn nearest_project_is_found_outside_repositories() {
    let check = |directories: &[&str], file, start: &str, expected: &str| {
        let found = Root::locate(&disk(directories, file), Path::new(start)).unwrap();
        assert_eq!(found.path(), Path::new(expected));
    };
    let runs = ["/p", "/p/.raymond", "/p/a", "/p/a/b"];
    check(&runs, None, "/p/a/b", "/p/.raymond");
    check(&["/p", "/p/.raymond", "/p/a", "/p/a/.raymond"], None, "/p/a", "/p/a/.raymond");
    check(&["/p", "/p/a"], Some(("/p/raymond.toml", "")), "/p/a", "/p/.raymond");
    check(&["/.raymond", "/p"], None, "/p", "/p/.raymond");
    // A repository comes first, even if a directory in it has runs.
    let head = Some(("/p/.git/HEAD", "ref: refs/heads/main\n"));
    check(&["/p", "/p/.git", "/p/a", "/p/a/.raymond"], head, "/p/a", "/p/.raymond");
}

#[cfg(unix)]
#[test]
fn shared_directory_is_not_a_project() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let inner = place.path().join("inner");
    std::fs::create_dir_all(place.path().join(NAME)).unwrap();
    std::fs::create_dir(&inner).unwrap();
    let found = || Root::locate(&RealDisk, &inner).unwrap().project().to_owned();
    assert_eq!(found(), place.path());
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(found(), inner);
}

#[test]
fn run_ids_are_plain_names() {
    let root = Root::in_directory(Path::new("/p"));
    let paths = root.run("flow-1_a").unwrap();
    assert_eq!(paths.journal, Path::new("/p/.raymond/runs/flow-1_a/journal.jsonl"));
    assert_eq!(paths.state, Path::new("/p/.raymond/state/flow-1_a.json"));
    for bad in ["", "..", "a/b", "a b", "ä", &"x".repeat(129)] {
        assert_eq!(root.run(bad).unwrap_err(), UnsafeRunName(bad.to_owned()));
    }
}

#[test]
fn deleted_run_frees_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::in_directory(directory.path());
    root.sweep(&RealDisk).unwrap();
    root.ensure(&RealDisk).unwrap();
    let run = root.run("r").unwrap();
    for _ in 0..2 {
        run.ensure(&RealDisk).unwrap();
        let unfinished = run.state.with_file_name(".temporary-0-r.json");
        for file in [&run.journal, &run.state, &unfinished] {
            atomic_file::write(&RealDisk, file, b"x", Durability::Derived).unwrap();
        }
        let aside = run.move_to_removed(&RealDisk).unwrap();
        assert!(!run.exists(&RealDisk).unwrap());
        assert_eq!(RealDisk.list(run.state.parent().unwrap()).unwrap(), [""; 0]);
        assert!(aside.join("journal.jsonl").exists());
        assert_eq!(root.runs(&RealDisk).unwrap(), [""; 0]);
    }
    let names = || RealDisk.list(&root.runs_directory()).unwrap();
    assert_eq!(names(), [".removed-0-r", ".removed-1-r"]);
    run.ensure(&RealDisk).unwrap();
    root.sweep(&RealDisk).unwrap();
    assert_eq!(names(), ["r"]);
}

#[test]
fn discarded_transcripts_are_moved_durably() {
    // Changes that were not synced survive only with some seeds.
    for seed in 0..8 {
        let memory = Memory::new(seed);
        memory.create_dir(Path::new("/p")).unwrap();
        memory.sync_dir(Path::new("/")).unwrap();
        let root = Root::in_directory(Path::new("/p"));
        root.ensure(&memory).unwrap();
        let run = root.run("r").unwrap();
        run.ensure(&memory).unwrap();
        let write = |name: &str| {
            atomic_file::write(&memory, &run.transcripts.join(name), b"x", Durability::Durable)
                .unwrap();
        };
        let part =
            |aside: &str| run.move_discarded_transcripts(&memory, aside, |name| name == "kept");
        part("nothing").unwrap();
        assert!(!disk::exists(&memory, &run.transcripts).unwrap());
        create_dirs(&memory, &run.directory, &[&run.transcripts]).unwrap();
        part("nothing").unwrap();
        assert_eq!(memory.list(&run.transcripts).unwrap(), [""; 0], "no directory for nothing");
        ["a", "b", "kept"].into_iter().for_each(write);
        part("first").unwrap();
        write("a");
        part("second").unwrap();
        let later = memory.crash();
        let names = |directory: &Path| later.list(directory).unwrap();
        assert_eq!(names(&run.transcripts), ["first", "kept", "second"]);
        assert_eq!(names(&run.transcripts.join("first")), ["a", "b"]);
        assert_eq!(names(&run.transcripts.join("second")), ["a"]);
    }
}

#[test]
fn removal_continues_after_an_error() {
    let memory = disk(&["/p"], None);
    let root = Root::in_directory(Path::new("/p"));
    root.ensure(&memory).unwrap();
    for name in [".removed-0-a", ".removed-0-b"] {
        let aside = root.runs_directory().join(name);
        memory.create_dir(&aside).unwrap();
        for file in ["journal.jsonl", "lock"] {
            atomic_file::write(&memory, &aside.join(file), b"x", Durability::Derived).unwrap();
        }
    }
    let stays = Path::new("/p/.raymond/runs/.removed-0-a/journal.jsonl");
    memory.set_hook(Some(Box::new(move |call| {
        let is_it = call.operation == disk::memory::Operation::Remove && call.path == stays;
        is_it.then_some(disk::memory::DiskFault::Fail(io::ErrorKind::PermissionDenied))
    })));
    let error = root.sweep(&memory).unwrap_err();
    assert_eq!(error.path, stays);
    let aside = stays.parent().unwrap();
    assert_eq!(root.removed_runs(&memory).unwrap(), [aside]);
    assert_eq!(memory.list(aside).unwrap(), ["journal.jsonl"]);
    memory.set_hook(None);
    root.sweep(&memory).unwrap();
    assert_eq!(root.removed_runs(&memory).unwrap(), Vec::<PathBuf>::new());
}

/// Removes a directory while the call with this number fails. Returns the result.
fn removed_despite(number: u64, kind: io::ErrorKind) -> Result<(), String> {
    let memory = disk(&["/d"], Some(("/d/f", "x")));
    memory.plan(memory.call_count() + number, disk::memory::DiskFault::Fail(kind));
    remove_tree(&memory, Path::new("/d")).map_err(|error| error.to_string())
}

#[test]
fn removal_ignores_missing_files_and_reports_errors() {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    let denied = |what: &str| Err(format!("could not {what}: permission denied"));
    let calls = ["remove /d", "list /d", "remove /d/f", "remove /d"];
    for (number, what) in (0..).zip(calls) {
        assert_eq!(removed_despite(number, PermissionDenied), denied(what));
    }
    for number in [0, 1, 3] {
        assert_eq!(removed_despite(number, NotFound), Ok(()), "{number}");
        assert_eq!(removed_despite(number, NotADirectory), Ok(()), "{number}");
    }
}

#[test]
fn unreadable_directory_is_not_treated_as_empty() {
    let memory = disk(&["/p"], None);
    let root = Root::in_directory(Path::new("/p"));
    let denied = disk::memory::DiskFault::Fail(io::ErrorKind::PermissionDenied);
    memory.set_hook(Some(Box::new(move |_| Some(denied))));
    let told = |error: disk::Error| error.to_string();
    let located = Root::locate(&memory, Path::new("/p")).map_err(told);
    assert_eq!(located, Err("could not look at /p/.git: permission denied".to_owned()));
    let unlisted = "could not list /p/.raymond/runs: permission denied".to_owned();
    assert_eq!(root.runs(&memory).map_err(told), Err(unlisted.clone()));
    assert_eq!(root.removed_runs(&memory).map_err(told), Err(unlisted));
    let parted = root.run("r").unwrap().move_discarded_transcripts(&memory, "aside", |_| false);
    let unlisted = "could not list /p/.raymond/runs/r/transcripts: permission denied".to_owned();
    assert_eq!(parted.map_err(told), Err(unlisted));
}

#[cfg(unix)]
#[test]
fn only_unwritable_directories_get_write_permission() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let directory = tempfile::tempdir().unwrap();
    let (closed, link) = (directory.path().join("closed"), directory.path().join("link"));
    std::fs::create_dir(&closed).unwrap();
    symlink(&closed, &link).unwrap();
    let mode = || std::fs::metadata(&closed).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o050)).unwrap();
    RealDisk.make_dir_writable(&link).unwrap();
    assert_eq!(mode(), 0o050);
    for _ in 0..2 {
        RealDisk.make_dir_writable(&closed).unwrap();
        assert_eq!(mode(), 0o750);
    }
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o040)).unwrap();
    RealDisk.make_dir_writable(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o040);
}

#[test]
fn errors_contain_their_path() {
    use std::io::ErrorKind::{Other, PermissionDenied, ReadOnlyFilesystem, StorageFull};
    let check = |kind, trouble, text: &str| {
        let memory = disk(&["/p"], None);
        memory.set_hook(Some(Box::new(move |_| Some(disk::memory::DiskFault::Fail(kind)))));
        let root = Root::in_directory(Path::new("/p"));
        let error = root.ensure(&memory).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (trouble, text));
    };
    let what = |why| format!("could not create the directory /p/.raymond: {why}");
    check(StorageFull, DiskErrorKind::Full, &what("the disk is full"));
    check(ReadOnlyFilesystem, DiskErrorKind::ReadOnly, &what("the file system is read-only"));
    check(PermissionDenied, DiskErrorKind::Denied, &what("permission denied"));
    check(Other, DiskErrorKind::Other, &what("input/output error"));
}

#[cfg(unix)]
#[test]
fn files_are_private_and_removal_follows_no_link() {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    let directory = tempfile::tempdir().unwrap();
    let root = Root::in_directory(directory.path());
    root.ensure(&RealDisk).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(root.path()), 0o700);
    assert_eq!(mode(&root.path().join(".gitignore")), 0o600);
    let outside = directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), "").unwrap();
    let run = root.run("r").unwrap();
    run.ensure(&RealDisk).unwrap();
    symlink(&outside, run.directory.join("link")).unwrap();
    run.remove(&RealDisk).unwrap();
    assert!(!run.exists(&RealDisk).unwrap());
    assert!(outside.join("precious").exists());
}
