//! The terminal on stderr: its abilities, its size, and whether this process may draw on it now.

use std::io::{IsTerminal, stderr};
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// The size of a terminal that does not report one: the traditional 80 by 24.
const USUAL: Size = Size { columns: 80, rows: 24 };
/// The least size for rows.
const LEAST: Size = Size { columns: 20, rows: 4 };

/// Whether stderr is a terminal.
pub(crate) fn is_there() -> bool {
    stderr().is_terminal()
}

pub(crate) const fn has_room(size: Size) -> bool {
    size.columns >= LEAST.columns && size.rows >= LEAST.rows
}

/// Returns the columns for messages; without a terminal, a width that reads easily.
pub(crate) fn width() -> usize {
    const READABLE_COLUMNS: usize = 100;
    if is_there() { size().columns.saturating_sub(1).max(LEAST.columns) } else { READABLE_COLUMNS }
}

/// Returns the column at which lines end; without a terminal, no limit.
pub(crate) fn edge(stream: &(impl AsFd + IsTerminal)) -> usize {
    let columns = || size_of(stream).columns.saturating_sub(1).max(LEAST.columns);
    if stream.is_terminal() { columns() } else { usize::MAX }
}

/// Whether to use colours: always, unless `NO_COLOR` is set.
pub(crate) fn takes_colours() -> bool {
    !matches!(AutoStream::choice(&stderr()), ColorChoice::Never)
}

pub(crate) fn size() -> Size {
    size_of(&stderr())
}

fn size_of(stream: &impl AsFd) -> Size {
    match tcgetwinsize(stream) {
        Ok(found) if found.ws_col > 0 && found.ws_row > 0 => {
            Size { columns: found.ws_col.into(), rows: found.ws_row.into() }
        }
        Ok(_) | Err(_) => USUAL,
    }
}

/// Whether this process is in the foreground of its terminal. A background job must not draw rows
/// over the shell; it only adds lines.
pub(crate) fn is_ours() -> bool {
    tcgetpgrp(stderr()).map_or(true, |foreground| foreground == getpgrp())
}
