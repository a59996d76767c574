//! The states of a zip archive, which is taken to be hostile.
//!
//! One pass over the central directory, entry by entry, so that neither the number of entries nor
//! their sizes are believed before they are seen. Every entry is unpacked into a counter at least,
//! states also into memory. The archive is flat, or has exactly one folder around everything.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use raymond_core::workflow::extension::is_state;
use raymond_core::workflow::{SourceFile, Start};
use zip::CompressionMethod;
use zip::read::{Config, ZipFileEntry, ZipReadOptions};
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;

use super::limited_read::{ByteLimit, Stopped};
use super::{LoadedScope, MOST_BYTES, MOST_ENTRIES, Origin, ScopeError, unreadable};

use layout::{Layout, check_path};

mod layout;

/// What is wrong with an archive. Names are as written in it.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is not a zip archive.
    #[error("it is not a zip archive")]
    NotAZip(#[source] ZipError),
    /// Its entries cannot be listed, or are described in two ways.
    #[error("its list of entries is damaged")]
    Damaged(#[source] ZipError),
    /// It holds no file.
    #[error("it is empty")]
    Empty,
    /// Files lie beside a folder, or in several.
    #[error("it is mixed: {first:?} and {second:?} are not in one folder")]
    Mixed {
        /// One entry.
        first: String,
        /// One that lies elsewhere.
        second: String,
    },
    /// A folder lies in a folder.
    #[error("it is nested: {0:?} is more than one folder deep")]
    Nested(String),
    /// An entry needs a password.
    #[error("{0:?} is encrypted")]
    Encrypted(String),
    /// An entry is a symbolic link.
    #[error("{0:?} is a link")]
    Link(String),
    /// An entry is a pipe, a socket or a device.
    #[error("{0:?} is not a file")]
    Special(String),
    /// A path starts at the root, or at a drive.
    #[error("{0:?} is an absolute path")]
    Absolute(String),
    /// A path holds `.`, `..` or nothing between two slashes.
    #[error("{0:?} is a dotted path")]
    Dotted(String),
    /// A path contains a backslash.
    #[error("{0:?} contains a backslash")]
    Backslash(String),
    /// A path is no text, holds a control character, or is longer than a file name can be.
    #[error("{0:?} cannot be the name of a file")]
    BadName(String),
    /// Two entries have the same name on some machine.
    #[error("{first:?} and {second:?} are the same name")]
    Duplicate {
        /// The first.
        first: String,
        /// The one that repeats it.
        second: String,
    },
    /// There are more entries than a scope may have.
    #[error("it has more than {MOST_ENTRIES} entries")]
    TooManyEntries,
    /// It unpacks to more than a scope may hold.
    #[error("it unpacks to more than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    /// An entry is compressed in a way that is not read.
    #[error("{0:?} is compressed in an unsupported way (use deflate or store)")]
    Compression(String),
    /// The data of an entry is damaged, or not what its header says.
    #[error("{name:?} is corrupt")]
    Corrupt {
        /// The entry.
        name: String,
        /// What was found.
        source: io::Error,
    },
}

pub(super) fn load(path: &Path) -> Result<LoadedScope, ScopeError> {
    let failed = |error| unreadable(path, error);
    let scope = std::fs::canonicalize(path).map_err(failed)?;
    let file = File::open(&scope).map_err(failed)?;
    let files = read(BufReader::new(file))
        .map_err(|source| ScopeError::Archive { path: path.to_owned(), source })?;
    Ok(LoadedScope {
        scope,
        start: Start::Entry,
        files,
        origin: Origin::Archive,
        warnings: Vec::new(),
    })
}

/// The states of an archive, in order of name.
fn read(archive: impl Read + Seek) -> Result<Vec<SourceFile>, ArchiveError> {
    let archive = ZipIterable::try_new(archive, Config::default());
    let mut archive = archive.map_err(ArchiveError::NotAZip)?.enforce_header_consistency(true);
    if archive.len() > MOST_ENTRIES {
        return Err(ArchiveError::TooManyEntries);
    }
    let entries = archive.files().map_err(ArchiveError::Damaged)?;
    let mut limit = ByteLimit::new();
    let mut layout = Layout::default();
    let mut files = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(ArchiveError::Damaged)?;
        let path = checked(&entry)?;
        // A folder has no content: whatever its header claims is never read.
        let Some(name) = layout.place(&path)? else {
            continue;
        };
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        let unpacked = unpack(entry, entries.reader_mut(), &name, &mut limit);
        let unpacked = unpacked.map_err(|stopped| match stopped {
            Stopped::TooLarge => ArchiveError::TooLarge,
            Stopped::Failed(source) => ArchiveError::Corrupt { name: path, source },
        })?;
        if let Some(bytes) = unpacked {
            let bytes = bytes.into();
            files.push(SourceFile { name, bytes, executable });
        }
    }
    layout.finish()?;
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

/// The path of an entry that can be unpacked.
fn checked(entry: &ZipFileEntry<'_>) -> Result<String, ArchiveError> {
    let unreadable = |_| {
        ArchiveError::BadName(entry.name_raw().escape_ascii().take(255).map(char::from).collect())
    };
    let name = entry.name().map_err(unreadable)?.into_owned();
    check_path(&name)?;
    if entry.encrypted() {
        return Err(ArchiveError::Encrypted(name));
    }
    // The type bits of a Unix mode; archives made elsewhere have none.
    match entry.unix_mode().map_or(0, |mode| mode & 0o170_000) {
        0 | 0o100_000 | 0o040_000 => {}
        0o120_000 => return Err(ArchiveError::Link(name)),
        _ => return Err(ArchiveError::Special(name)),
    }
    match entry.compression() {
        CompressionMethod::Stored | CompressionMethod::Deflated => Ok(name),
        _ => Err(ArchiveError::Compression(name)),
    }
}

/// What a state holds; anything else is only counted.
fn unpack<R: Read + Seek>(
    entry: ZipFileEntry<'_>,
    archive: &mut R,
    name: &str,
    limit: &mut ByteLimit,
) -> Result<Option<Vec<u8>>, Stopped> {
    let declared = entry.size();
    let content = entry.with_reader(archive, ZipReadOptions::new());
    let content = content.map_err(|error| Stopped::Failed(error.into()))?;
    let (kept, length) = if is_state(name) {
        let bytes = limit.read(content)?;
        let length = bytes.len() as u64;
        (Some(bytes), length)
    } else {
        (None, limit.skip(content)?)
    };
    if length == declared {
        Ok(kept)
    } else {
        let why = format!("its header says {declared} bytes, but it has {length}");
        Err(Stopped::Failed(io::Error::new(io::ErrorKind::InvalidData, why)))
    }
}
