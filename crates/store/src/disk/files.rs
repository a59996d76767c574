//! The real disk. Files get mode 0600, directories 0700.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use super::{Disk, Handle, Metadata, Open, Trouble, refused};

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files;

impl Disk for Files {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn Handle>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match how {
            Open::Read => &mut options,
            Open::Write => options.write(true),
            Open::New => options.write(true).create_new(true),
            Open::Create => options.write(true).create(true).truncate(false),
        };
        private_file(&mut options, how);
        // A pipe or a device in place of a file could be endless, or never answer: not even opened.
        match fs::metadata(path) {
            Ok(found) if !found.is_file() && !found.is_dir() => return Err(not_a_file()),
            Ok(_) | Err(_) => {}
        }
        let file = options.open(path).map_err(|error| not_through_a_link(path, how, error))?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Box::new(OpenFile(file)))
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

    #[cfg(unix)]
    fn stranger(&self, path: &Path) -> io::Result<Option<u32>> {
        use std::os::unix::fs::MetadataExt as _;
        let me = rustix::process::geteuid().as_raw();
        let owners = [fs::symlink_metadata(path)?.uid(), fs::metadata(path)?.uid()];
        Ok(owners.into_iter().find(|owner| *owner != me && *owner != 0))
    }

    #[cfg(unix)]
    fn unlock_dir(&self, directory: &Path) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let found = fs::symlink_metadata(directory)?;
        let mode = found.permissions().mode();
        if !found.is_dir() || mode & 0o700 == 0o700 {
            return Ok(());
        }
        fs::set_permissions(directory, fs::Permissions::from_mode(mode | 0o700))
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a directory")
}

#[derive(Debug)]
struct OpenFile(File);

impl Handle for OpenFile {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.seek(SeekFrom::Start(offset))?;
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(offset))?;
        self.0.write_all(bytes)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        match fs::metadata(path) {
            Ok(there) => Ok(same_file(&self.0.metadata()?, &there)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        self.0.try_lock()
    }
}

/// Whoever put a link in place of a file of ours chose what is written over.
fn not_through_a_link(path: &Path, how: Open, error: io::Error) -> io::Error {
    let is_link = || fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if how != Open::Read && is_link() { refused(Trouble::Link) } else { error }
}

#[cfg(unix)]
fn private_file(options: &mut OpenOptions, how: Open) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600);
    if how != Open::Read {
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
    match File::open(directory)?.sync_all() {
        // Some network file systems sync names on their own, and refuse to be asked.
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
fn private_file(_: &mut OpenOptions, _: Open) {}

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
