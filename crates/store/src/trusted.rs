//! Decides whose files are trusted: those of this user, of root, and of the owner of the directory
//! in which the user works.
//!
//! Another user can put a repository or a configuration into `/tmp`, above the directories of
//! others. If Raymond used it, that user would choose which programs run. The working directory
//! itself is trusted: the user chose it, and in a container it often belongs to a user of the host.

use std::io;
use std::path::Path;

use crate::disk::{self, Disk, DiskErrorKind, During as _};

/// The users whose files are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedUsers {
    /// The owner of the working directory, if that is neither this user nor root.
    directory_owner: Option<u32>,
}

impl TrustedUsers {
    /// Returns the trusted users for work in `directory`.
    pub fn in_directory(disk: &dyn Disk, directory: &Path) -> Self {
        // A directory that cannot be read has no extra trusted user: the strict answer.
        Self { directory_owner: disk.foreign_owner(directory).unwrap_or_default() }
    }

    /// Refuses a file or directory of any other user. A path that does not exist is accepted.
    pub fn check(self, disk: &dyn Disk, path: &Path) -> Result<(), disk::Error> {
        match disk.foreign_owner(path) {
            Ok(Some(owner)) if Some(owner) != self.directory_owner => {
                Err(disk::refused(DiskErrorKind::OtherUser(owner))).during("use", path)
            }
            Ok(_) => Ok(()),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(error).during("look at", path),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::disk::{Handle, Metadata, OpenMode};

    /// A disk that knows users and nothing else: `/7/f` is a file of user 7, `/0/f` of root or
    /// this user.
    #[derive(Debug)]
    struct Users;

    impl Disk for Users {
        fn foreign_owner(&self, path: &Path) -> io::Result<Option<u32>> {
            let mut names = path.iter().skip(1).filter_map(|name| name.to_str());
            let owner = match names.next() {
                Some("missing") => Err(io::ErrorKind::NotFound.into()),
                Some("file") => Err(io::ErrorKind::NotADirectory.into()),
                name => name.unwrap_or_default().parse::<u32>().map_err(io::Error::other),
            };
            owner.map(|owner| Some(owner).filter(|owner| *owner != 0))
        }

        fn open(&self, _: &Path, _: OpenMode) -> io::Result<Box<dyn Handle>> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn metadata(&self, _: &Path) -> io::Result<Metadata> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn list(&self, _: &Path) -> io::Result<Vec<OsString>> {
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

    #[test]
    fn only_the_directory_owner_is_also_trusted() {
        let check = |directory: &str, path: &str, expected: Result<(), DiskErrorKind>| {
            let trusted = TrustedUsers::in_directory(&Users, Path::new(directory));
            let found = trusted.check(&Users, Path::new(path)).map_err(|error| error.kind());
            assert_eq!(found, expected, "{path} from {directory}");
        };
        for directory in ["/0/d", "/7/d", "/missing"] {
            check(directory, "/0/f", Ok(()));
            check(directory, "/8/f", Err(DiskErrorKind::OtherUser(8)));
            check(directory, "/missing/f", Ok(()));
            check(directory, "/file/f", Ok(()));
            check(directory, "/unknown", Err(DiskErrorKind::Other));
        }
        check("/7/d", "/7/f", Ok(()));
        check("/0/d", "/7/f", Err(DiskErrorKind::OtherUser(7)));
    }
}
