//! A walk along a path, component by component, for systems without `openat2`.
//!
//! The system follows no link: each link is read, and its text becomes part of the path. The
//! directories on the way stay open, so `..` returns to the directory that was really passed, even
//! if it was moved meanwhile.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::{Errno, Result};

/// The maximum number of links on one path, as in Linux.
const LINKS_MAX: u32 = 40;

pub(super) fn open(directory: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    follow(directory, path, |place, name| {
        openat(place, name, flags | OFlags::NOFOLLOW, Mode::empty())
    })
}

pub(super) fn stat(directory: &OwnedFd, path: &Path) -> Result<Stat> {
    follow(directory, path, |place, name| statat(place, name, AtFlags::SYMLINK_NOFOLLOW))
}

/// Walks to the last component and calls `finish`, which must not follow a link.
fn follow<T>(
    root: &OwnedFd,
    path: &Path,
    finish: impl Fn(BorrowedFd<'_>, &OsStr) -> Result<T>,
) -> Result<T> {
    let mut ahead = steps(path)?;
    let mut passed: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    while let Some(step) = ahead.pop_front() {
        let place = passed.last().map_or_else(|| root.as_fd(), |fd| fd.as_fd());
        // With no directory passed, `..` would leave the workspace.
        if step == ".." {
            passed.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        // Links are detected before opening, and `NOFOLLOW` below catches a link that appears in
        // between.
        let found = statat(place, &step, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP);
            }
            let target = readlinkat(place, &step, Vec::new())?;
            for step in steps(Path::new(OsStr::from_bytes(target.as_bytes())))?.into_iter().rev() {
                ahead.push_front(step);
            }
        } else if ahead.is_empty() {
            return finish(place, &step);
        } else {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let next = openat(place, &step, flags, Mode::empty())?;
            passed.push(next);
        }
    }
    let place = passed.last().map_or_else(|| root.as_fd(), |fd| fd.as_fd());
    finish(place, OsStr::new("."))
}

fn steps(path: &Path) -> Result<VecDeque<OsString>> {
    let steps = path.components().filter_map(|component| match component {
        Component::Prefix(_) | Component::RootDir => Some(Err(Errno::XDEV)),
        Component::CurDir => None,
        Component::ParentDir => Some(Ok("..".into())),
        Component::Normal(name) => Some(Ok(name.to_owned())),
    });
    steps.collect()
}
