//! The real disk.
//!
//! Files get mode 0600 and directories 0700, because prompts and answers are private. A file is
//! opened for writing without following a link, and pipes and devices are never opened. Syncs are
//! not retried and errors are not interpreted: callers do that, with `DiskErrorKind`.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::{Disk, DiskErrorKind, Handle, Metadata, OpenMode, refused};

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn Handle>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match how {
            OpenMode::Read => &mut options,
            OpenMode::Write => options.write(true),
            OpenMode::New => options.write(true).create_new(true),
            OpenMode::Create => options.write(true).create(true).truncate(false),
        };
        // The mode is set at creation: a later `chmod` would leave a moment in which others can
        // read.
        private_file(&mut options, how);
        // A pipe or a device in place of a file could be endless or block forever, so it is not
        // even opened.
        match fs::metadata(path) {
            Ok(found) if !found.is_file() && !found.is_dir() => return Err(not_a_file()),
            Ok(_) | Err(_) => {}
        }
        let file = options.open(path).map_err(|error| not_through_a_link(path, how, error))?;
        let opened = file.metadata()?;
        if opened.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Box::new(OpenFile { file, opened }))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            Ok(Metadata::Directory)
        } else if metadata.is_file() {
            Ok(Metadata::File(metadata.len()))
        } else {
            Err(not_a_file())
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        // Sorted below, because the order of a directory differs between file systems and runs.
        let names = fs::read_dir(directory)?.map(|entry| entry.map(|e| e.file_name()));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        private_directory(&mut builder);
        builder.create(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        sync_directory(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        // Without following a link: a link to a directory is removed as a file, and its target
        // stays.
        if fs::symlink_metadata(path)?.is_dir() {
            fs::remove_dir(path)
        } else {
            fs::remove_file(path)
        }
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::symlink_metadata(path)?.is_symlink())
    }

    fn link_in(&self, directory: &Path) -> io::Result<Option<OsString>> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_symlink() {
                return Ok(Some(entry.file_name()));
            }
        }
        Ok(None)
    }

    fn written_at(&self, path: &Path) -> io::Result<Option<u64>> {
        let found = fs::symlink_metadata(path)?;
        if !found.is_file() {
            return Ok(None);
        }
        let since = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(u64::try_from(since.as_millis()).ok())
    }

    #[cfg(unix)]
    fn foreign_owner(&self, path: &Path) -> io::Result<Option<u32>> {
        use std::os::unix::fs::MetadataExt as _;
        // Both the link and its target count: another user may own either of them.
        let owners = [fs::symlink_metadata(path)?.uid(), fs::metadata(path)?.uid()];
        Ok(foreign_owner_among(owners, rustix::process::geteuid().as_raw()))
    }

    #[cfg(unix)]
    fn is_open_to_all(&self, directory: &Path) -> io::Result<bool> {
        use std::os::unix::fs::PermissionsExt as _;
        const OTHERS_MAY_WRITE: u32 = 0o002;
        Ok(fs::metadata(directory)?.permissions().mode() & OTHERS_MAY_WRITE != 0)
    }

    #[cfg(unix)]
    fn make_dir_writable(&self, directory: &Path) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let found = fs::symlink_metadata(directory)?;
        if !found.is_dir() {
            return Ok(());
        }
        // Never through a link: the mode of a foreign directory must not change.
        let mode = found.permissions().mode();
        fs::set_permissions(directory, fs::Permissions::from_mode(mode | 0o700))
    }
}

/// Returns the first owner who is neither this user nor root.
#[cfg(unix)]
fn foreign_owner_among(owners: [u32; 2], me: u32) -> Option<u32> {
    owners.into_iter().find(|owner| *owner != me && *owner != 0)
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a directory")
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// The metadata at opening. Device and inode identify the file, and never change.
    opened: fs::Metadata,
}

impl Handle for OpenFile {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(offset))?;
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn sync(&mut self) -> io::Result<()> {
        // `fdatasync`: content and size, but not the time of the last change, which nothing needs.
        self.file.sync_data()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        match fs::metadata(path) {
            Ok(there) => Ok(same_file(&self.opened, &there)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        self.file.try_lock()
    }
}

/// Explains a refused link. The author of a link in place of a file would choose which file Raymond
/// overwrites, so files are opened for writing with `O_NOFOLLOW`.
fn not_through_a_link(path: &Path, how: OpenMode, error: io::Error) -> io::Error {
    let is_link = || fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if how != OpenMode::Read && is_link() { refused(DiskErrorKind::Link) } else { error }
}

#[cfg(unix)]
fn private_file(options: &mut OpenOptions, how: OpenMode) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600);
    if how != OpenMode::Read {
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
}

#[cfg(unix)]
fn private_directory(builder: &mut DirBuilder) {
    use std::os::unix::fs::DirBuilderExt as _;
    builder.mode(0o700);
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    unless_refused(File::open(directory)?.sync_all())
}

/// Ignores `EINVAL`: some network file systems sync names by themselves and refuse the call.
#[cfg(unix)]
fn unless_refused(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

#[cfg(unix)]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn private_file(_: &mut OpenOptions, _: OpenMode) {}

#[cfg(not(unix))]
fn private_directory(_: &mut DirBuilder) {}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn same_file(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn foreign_owner_is_neither_user_nor_root() {
        let check = |owners, me, expected| {
            assert_eq!(foreign_owner_among(owners, me), expected, "{owners:?} for {me}");
        };
        check([0, 0], 0, None);
        check([7, 7], 7, None);
        check([0, 7], 7, None);
        check([7, 7], 0, Some(7));
        check([7, 7], 8, Some(7));
        check([7, 0], 8, Some(7));
        check([8, 7], 8, Some(7));
    }

    /// Only root can give a file to another user, so other users check less here.
    #[test]
    fn the_owner_of_a_file_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        fs::write(&file, "").unwrap();
        assert_eq!(RealDisk.foreign_owner(&file).unwrap(), None);
        let given_away = chown(&file, Some(4242), None).is_ok();
        assert_eq!(RealDisk.foreign_owner(&file).unwrap(), given_away.then_some(4242));
    }

    #[test]
    fn special_files_are_not_opened() {
        let device = Path::new("/dev/null");
        let refused = |error: io::Error| error.to_string();
        let expected = "it is neither a file nor a directory";
        assert_eq!(RealDisk.open(device, OpenMode::Read).map_err(refused).unwrap_err(), expected);
        assert_eq!(RealDisk.metadata(device).map_err(refused).unwrap_err(), expected);
    }

    #[test]
    fn only_unsupported_directory_syncs_are_ignored() {
        let synced = |kind: io::ErrorKind| unless_refused(Err(kind.into())).map_err(|e| e.kind());
        assert_eq!(synced(io::ErrorKind::InvalidInput), Ok(()));
        assert_eq!(synced(io::ErrorKind::Other), Err(io::ErrorKind::Other));
        assert!(unless_refused(Ok(())).is_ok());
    }

    #[test]
    fn file_behind_an_unreadable_name_is_not_missing() {
        let directory = tempfile::tempdir().unwrap();
        let (path, endless) = (directory.path().join("f"), directory.path().join("endless"));
        symlink(&endless, &endless).unwrap();
        let file = RealDisk.open(&path, OpenMode::New).unwrap();
        assert!(file.is_at(&path).unwrap());
        assert!(!file.is_at(&directory.path().join("g")).unwrap());
        assert!(file.is_at(&endless).is_err());
    }

    /// Files of `/proc` look like any other; the kernel reads or syncs some of them never.
    #[cfg(target_os = "linux")]
    #[test]
    fn failed_reads_and_syncs_are_reported() {
        let open = |path: &str| RealDisk.open(Path::new(path), OpenMode::Read).unwrap();
        assert!(open("/proc/self/mem").read_at(0, &mut [0]).is_err());
        assert!(open("/proc/self/stat").sync().is_err());
    }
}
