//! Tests on the real disk, because entries have times, modes and links.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, UNIX_EPOCH};

use tempfile::TempDir;

use super::*;
use crate::disk::{Memory, RealDisk};

/// A time in 2026, in milliseconds since 1970.
const NOW: u64 = 1_790_000_000_000;

/// A state directory that does not exist yet, and two projects beside it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for name in ["one", "two"] {
            fs::create_dir(place.path(name)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn project(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn registry(&self) -> ProjectRegistry {
        ProjectRegistry::in_state_directory(&self.path("deep/state"))
    }

    /// The names of the registered projects, and the reasons of ignored entries.
    fn read(&self) -> (Vec<String>, Vec<String>) {
        let found = self.registry().read(&RealDisk, NOW).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let ignored = found.ignored.iter().map(|ignored| ignored.why.to_string());
        (found.directories.iter().map(name).collect(), ignored.collect())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.registry().file(&self.project(name))
    }

    fn note(&self, name: &str) {
        self.registry().note(&RealDisk, &self.project(name), NOW).unwrap();
    }

    /// Sets the time at which an entry was written.
    fn written(&self, name: &str, milliseconds: u64) {
        let file = File::options().write(true).open(self.file(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_millis(milliseconds)).unwrap();
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// proves: S53
#[test]
fn noted_project_has_one_private_file() {
    let place = Place::new();
    assert_eq!(place.read(), (vec![], vec![]));
    place.note("one");
    place.note("two");
    assert_eq!(place.read(), (vec!["one".to_owned(), "two".to_owned()], vec![]));
    let directory = place.registry().path().to_owned();
    assert_eq!(directory, place.path("deep/state/raymond/projects"));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
    assert_eq!(mode(&place.file("one")), 0o600);
    assert_eq!((mode(&directory), mode(directory.parent().unwrap())), (0o700, 0o700));
    let text = fs::read_to_string(place.file("one")).unwrap();
    let path = place.project("one");
    assert_eq!(text, format!("{{\"version\":1,\"path\":\"{path}\",\"seen\":{NOW}}}\n"));
}

#[test]
fn entry_is_written_at_most_once_a_day() {
    let place = Place::new();
    place.note("one");
    let rewritten = |written: u64| {
        fs::write(place.file("one"), "damaged").unwrap();
        place.written("one", written);
        place.note("one");
        fs::read(place.file("one")).unwrap() != b"damaged"
    };
    assert!(!rewritten(NOW));
    assert!(!rewritten(NOW - REFRESH + 1));
    assert!(rewritten(NOW - REFRESH));
    // The clock was set back by a day or more.
    assert!(rewritten(NOW + REFRESH));
}

#[test]
fn missing_directory_is_hidden_and_later_removed() {
    let place = Place::new();
    let (registry, project) = (place.registry(), place.project("one"));
    registry.add(&RealDisk, &project, NOW).unwrap();
    fs::remove_dir(place.path("one")).unwrap();
    let read = |now: u64| registry.read(&RealDisk, now).unwrap();
    for now in [NOW, NOW + EXPIRY, NOW - EXPIRY] {
        assert_eq!(read(now), RegisteredProjects::default());
        assert!(place.file("one").exists());
    }
    // The directory is back, such as one on a removable disk.
    fs::create_dir(place.path("one")).unwrap();
    assert_eq!(read(NOW + EXPIRY + 1).directories, [place.path("one")]);
    fs::remove_dir(place.path("one")).unwrap();
    // A file is not a project.
    fs::write(place.path("one"), "").unwrap();
    assert_eq!(read(NOW + EXPIRY + 1), RegisteredProjects::default());
    assert!(!place.file("one").exists());
}

#[test]
fn damaged_entry_is_ignored_and_repaired() {
    let check = |content: &[u8], why: &str| {
        let place = Place::new();
        place.note("one");
        place.note("two");
        fs::write(place.file("one"), content).unwrap();
        assert_eq!(place.read(), (vec!["two".to_owned()], vec![why.to_owned()]));
        place.registry().add(&RealDisk, &place.project("one"), NOW).unwrap();
        assert_eq!(place.read(), (vec!["one".to_owned(), "two".to_owned()], vec![]));
    };
    check(b"", "does not contain a project");
    check(b"\xff\x00", "does not contain a project");
    check(br#"{"version":1}"#, "does not contain a project");
    check(br#"{"version":1,"path":"one","seen":0}"#, "does not contain a project");
    check(br#"{"version":2,"path":"/x","seen":0}"#, "was written by a newer release");
    check(br#"{"version":1,"path":"/x","seen":0}"#, "contains the path of another project");
    check(&vec![b' '; 1 << 20], "does not contain a project");
}

#[test]
fn other_files_are_left_alone() {
    let place = Place::new();
    place.note("one");
    let names =
        [".temporary-0-0123456789abcdef.json", "notes.txt", "0123.json", "0123456789ABCDEF.json"];
    for name in names {
        fs::write(place.registry().path().join(name), "x").unwrap();
    }
    fs::create_dir(place.registry().path().join("0123456789abcdef.json")).unwrap();
    let directory = "does not contain a project".to_owned();
    assert_eq!(place.read(), (vec!["one".to_owned()], vec![directory]));
    for name in names {
        assert!(place.registry().path().join(name).exists(), "{name}");
    }
}

#[test]
fn links_are_never_followed() {
    let place = Place::new();
    place.note("one");
    let (file, elsewhere) = (place.file("one"), place.path("elsewhere"));
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_eq!(place.read(), (vec![], vec!["could not be read: it is a link".to_owned()]));
    let before = fs::read(&elsewhere).unwrap();
    // The link is replaced, and its target stays as it is.
    place.registry().note(&RealDisk, &place.project("one"), NOW + 7).unwrap();
    assert!(!fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
    let directory = place.registry().path().to_owned();
    fs::rename(&directory, place.path("moved")).unwrap();
    symlink(place.path("moved"), &directory).unwrap();
    let registry = place.registry();
    let refused = format!("could not use {}: it is a link", directory.display());
    let two = place.project("two");
    assert_eq!(registry.note(&RealDisk, &two, NOW).unwrap_err().to_string(), refused);
    assert_eq!(registry.forget(&RealDisk, &two).unwrap_err().to_string(), refused);
    assert_eq!(registry.read(&RealDisk, NOW).unwrap_err().to_string(), refused);
    assert_eq!(fs::read_dir(place.path("moved")).unwrap().count(), 1);
}

#[test]
fn forgotten_project_has_no_file() {
    let place = Place::new();
    let forget = |name| place.registry().forget(&RealDisk, &place.project(name)).unwrap();
    assert!(!forget("one"));
    place.note("one");
    place.note("two");
    assert!(forget("one"));
    assert!(!forget("one"));
    assert_eq!(place.read(), (vec!["two".to_owned()], vec![]));
}

#[test]
fn unwritable_state_directory_is_reported() {
    let place = Place::new();
    fs::write(place.path("deep"), "").unwrap();
    let refused = place.registry().note(&RealDisk, &place.project("one"), NOW).unwrap_err();
    assert!(refused.to_string().starts_with("could not "), "{refused}");
}

#[test]
fn disk_without_times_is_written_each_time() {
    let disk = Memory::new(0);
    disk.create_dir(Path::new("/project")).unwrap();
    let registry = ProjectRegistry::in_state_directory(Path::new("/state"));
    for now in [NOW, NOW + 1] {
        registry.note(&disk, "/project", now).unwrap();
        let text = disk::read(&disk, &registry.file("/project")).unwrap();
        let entry: Entry = serde_json::from_slice(&text).unwrap();
        assert_eq!(entry.seen, now);
    }
    assert_eq!(registry.read(&disk, NOW).unwrap().directories, [Path::new("/project")]);
}

/// A disk of several users: `theirs` belongs to user 7, and all users may write to `/tmp`.
#[derive(Debug)]
struct Shared;

impl Disk for Shared {
    fn foreign_owner(&self, path: &Path) -> io::Result<Option<u32>> {
        Ok(path.iter().any(|name| name == "theirs").then_some(7))
    }
    fn is_open_to_all(&self, directory: &Path) -> io::Result<bool> {
        Ok(directory == Path::new("/tmp"))
    }
    fn metadata(&self, _: &Path) -> io::Result<Metadata> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn open(&self, _: &Path, _: disk::OpenMode) -> io::Result<Box<dyn disk::Handle>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn list(&self, _: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

// proves: S60
#[test]
fn directory_replaced_by_another_user_is_refused() {
    let check = |directory: &str, expected: Result<(), DiskErrorKind>| {
        let found = locate_registered(&Shared, Path::new(directory));
        assert_eq!(found.map(drop).map_err(|error| error.kind()), expected, "{directory}");
    };
    check("/tmp/mine", Ok(()));
    check("/tmp/theirs", Err(DiskErrorKind::OtherUser(7)));
    check("/tmp/theirs/project", Err(DiskErrorKind::OtherUser(7)));
    // Only the owner of `/srv` could have put it there: a directory of the host in a container.
    check("/srv/theirs", Ok(()));
}
