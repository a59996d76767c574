//! The paths of an index of git in version 4. Each is told by how much of the path before it goes, and by
//! what comes then; so a search for a whole path finds nothing.

use std::io::{self, BufRead, Read as _};

/// What stands before the hash of an entry: times, numbers and sizes.
const STAT: usize = 40;
/// The sizes of hashes, of SHA-1 and of SHA-256. Nothing in an index says which they are.
const HASHES: [usize; 2] = [20, 32];
/// In the flags of an entry: two more bytes of them follow.
const EXTENDED: u16 = 0x4000;
/// In the flags of an entry: how long its path is, or this if it is longer.
const LENGTH: u16 = 0x0fff;
/// No path is longer.
const LONGEST: u64 = 64 << 10;

/// The number of entries, if `head` begins an index whose paths are shortened.
pub(super) fn count(head: &[u8]) -> Option<u32> {
    let count = head.strip_prefix(b"DIRC\0\0\0\x04")?.first_chunk()?;
    Some(u32::from_be_bytes(*count))
}

/// Whether one of `count` entries has a path that begins so, whatever hashes they have. `open` leads to the
/// first of them.
pub(super) fn any<R: BufRead>(
    open: impl Fn() -> io::Result<R>,
    count: u32,
    start: &[u8],
) -> io::Result<bool> {
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

/// Makes the path of the next entry out of that of the last one.
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

/// A number whose bytes, but for the last one, have their highest bit set, and are counted from one.
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
