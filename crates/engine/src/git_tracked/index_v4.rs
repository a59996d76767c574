//! Reads the paths of a git index in version 4.
//!
//! Version 4 stores each path as a difference to the path before it: how many bytes to remove, and
//! which bytes to add. A search for a whole path in the raw bytes therefore finds nothing, as it
//! would in versions 2 and 3. The format is described in git's `index-format` documentation.

use std::io::{self, BufRead, Read as _};

/// The bytes before the hash of an entry: times, numbers and sizes.
const STAT: usize = 40;
/// The sizes of SHA-1 and SHA-256 hashes in bytes. The index does not contain which one it uses.
const HASHES: [usize; 2] = [20, 32];
/// The flag of an entry with two more bytes of flags.
const EXTENDED: u16 = 0x4000;
/// The part of the flags with the length of the path. Longer paths have this value.
const LENGTH: u16 = 0x0fff;
/// The longest path in bytes. Linux allows 4 KiB; the limit only stops a damaged index.
const LONGEST: u64 = 64 << 10;

/// Returns the number of entries if this is the head of an index in version 4.
pub(super) fn count(head: &[u8]) -> Option<u32> {
    let count = head.strip_prefix(b"DIRC\0\0\0\x04")?.first_chunk()?;
    Some(u32::from_be_bytes(*count))
}

/// Returns whether one of `count` entries has a path that begins with `start`. `open` returns a
/// reader at the first entry.
pub(super) fn any<R: BufRead>(
    open: impl Fn() -> io::Result<R>,
    count: u32,
    start: &[u8],
) -> io::Result<bool> {
    // Tries both sizes of hashes. With the wrong one the entries make no sense and reading fails.
    match HASHES.map(|hash| any_with(open()?, hash, count, start)) {
        [Ok(one), Ok(other)] => Ok(one || other),
        [Ok(only), Err(_)] | [Err(_), Ok(only)] => Ok(only),
        [Err(error), Err(_)] => Err(error),
    }
}

fn any_with(mut entries: impl BufRead, hash: usize, count: u32, start: &[u8]) -> io::Result<bool> {
    let mut path = Vec::new();
    for _ in 0..count {
        next(&mut entries, hash, &mut path)?;
        if path.starts_with(start) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Changes `path` into the path of the next entry.
fn next(entries: &mut impl BufRead, hash: usize, path: &mut Vec<u8>) -> io::Result<()> {
    let unreadable = || io::Error::other("its entries cannot be read");
    io::copy(&mut entries.by_ref().take((STAT + hash) as u64), &mut io::sink())?;
    let flags = u16::from_be_bytes(bytes(entries)?);
    if flags & EXTENDED != 0 {
        bytes::<2>(entries)?;
    }
    let kept = usize::try_from(number(entries)?).ok();
    path.truncate(kept.and_then(|gone| path.len().checked_sub(gone)).ok_or_else(unreadable)?);
    entries.by_ref().take(LONGEST).read_until(0, path)?;
    let is_whole = path.pop() == Some(0);
    let length = u16::try_from(path.len()).unwrap_or(LENGTH).min(LENGTH);
    if is_whole && length == flags & LENGTH { Ok(()) } else { Err(unreadable()) }
}

fn bytes<const N: usize>(entries: &mut impl BufRead) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    entries.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads a number in git's variable-length encoding: all bytes except the last have their highest
/// bit set, and each continuation adds one.
fn number(entries: &mut impl BufRead) -> io::Result<u64> {
    let mut number = 0_u64;
    loop {
        let [byte] = bytes(entries)?;
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
        number = number.wrapping_add(1);
    }
}
