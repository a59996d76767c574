//! Loads the states of a zip archive. The archive may be hostile.
//!
//! The entries are read one by one, so that no claimed number or size is used before the bytes are
//! seen. Every entry is unpacked and counted; only states are kept in memory. An archive is flat or
//! has exactly one folder around everything: see `layout`. Nothing is written to disk.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use raymond_core::extension::is_state;
use raymond_core::workflow::{EntryPoint, SourceFile};
use zip::CompressionMethod;
use zip::read::{Config, ZipFileEntry, ZipReadOptions};
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;

use super::limited_read::{ByteLimit, Stopped};
use super::{LoadedScope, MOST_BYTES, MOST_ENTRIES, ScopeError, ScopeOrigin, unreadable};

use layout::{ArchiveLayout, check_path};

mod layout;

/// Why an archive is refused. Names are as written in it.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("it is not a zip archive")]
    NotAZip(#[source] ZipError),
    /// Its entries cannot be listed, or are described in two ways.
    #[error("its list of entries is damaged")]
    Damaged(#[source] ZipError),
    /// The archive contains no file.
    #[error("it is empty")]
    Empty,
    /// Files are beside a folder, or in several folders.
    #[error("it is mixed: {first:?} and {second:?} are not in one folder")]
    Mixed {
        /// One entry.
        first: String,
        /// An entry in another place.
        second: String,
    },
    /// A folder is inside another folder.
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
    /// A path contains `.`, `..` or nothing between two slashes.
    #[error("{0:?} is a dotted path")]
    Dotted(String),
    /// A path contains a backslash, which is a separator on Windows.
    #[error("{0:?} contains a backslash")]
    Backslash(String),
    /// A path is not UTF-8, contains a control character, or is longer than a file name can be.
    #[error("{0:?} cannot be the name of a file")]
    BadName(String),
    /// Two entries have the same name on a system that ignores case.
    #[error("{first:?} and {second:?} are the same name")]
    Duplicate { first: String, second: String },
    /// There are more entries than a scope may have.
    #[error("it has more than {MOST_ENTRIES} entries")]
    TooManyEntries,
    /// The unpacked archive is larger than a scope may be.
    #[error("it unpacks to more than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    /// An entry uses a compression that is not supported.
    #[error("{0:?} is compressed in an unsupported way (use deflate or store)")]
    Compression(String),
    /// The data of an entry is damaged or does not match its header.
    #[error("{name:?} is corrupt")]
    Corrupt {
        /// The entry.
        name: String,
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
        start: EntryPoint::Entry,
        files,
        origin: ScopeOrigin::Archive,
        warnings: Vec::new(),
    })
}

/// Returns the states of an archive, in order of name.
fn read(archive: impl Read + Seek) -> Result<Vec<SourceFile>, ArchiveError> {
    let archive = ZipIterable::try_new(archive, Config::default());
    // A hostile archive may describe an entry differently in its two headers, so that two programs
    // unpack different files. Such an archive is refused.
    let mut archive = archive.map_err(ArchiveError::NotAZip)?.enforce_header_consistency(true);
    if archive.len() > MOST_ENTRIES {
        return Err(ArchiveError::TooManyEntries);
    }
    let entries = archive.files().map_err(ArchiveError::Damaged)?;
    let mut limit = ByteLimit::new();
    let mut layout = ArchiveLayout::default();
    let mut files = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(ArchiveError::Damaged)?;
        let path = checked(&entry)?;
        // A folder has no content. Data that its header claims is never read.
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

/// Returns the path of an entry if it can be unpacked.
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

/// Unpacks a state, or counts the bytes of any other entry.
fn unpack<R: Read + Seek>(
    entry: ZipFileEntry<'_>,
    archive: &mut R,
    name: &str,
    limit: &mut ByteLimit,
) -> Result<Option<Vec<u8>>, Stopped> {
    let declared = entry.size();
    let content = entry.with_reader(archive, ZipReadOptions::new());
    let content = content.map_err(|error| Stopped::Failed(error.into()))?;
    // Other entries are unpacked too, so that a bomb beside the states is found.
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
