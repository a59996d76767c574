//! The terminal on stderr: whether it takes live rows, how large it is, and whose it is right now.

use std::io::{IsTerminal, stderr, stdout};
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use super::rows::Size;
use crate::args::OutputFlags;

/// What a terminal has that does not say how large it is.
const USUAL: Size = Size { columns: 80, rows: 24 };
/// A smaller one has no room for rows.
const LEAST: Size = Size { columns: 20, rows: 4 };

/// Whether live rows are drawn: on a terminal that obeys, for somebody who wants to see them, and not
/// into the lines that stdout prints on the same one.
pub(super) fn takes_rows(output: OutputFlags) -> bool {
    let obeys = std::env::var_os("TERM").is_some_and(|kind| kind != "dumb");
    let mixed = output.events && stdout().is_terminal();
    is_there() && obeys && !output.quiet && !mixed
}

/// Whether somebody looks at stderr.
pub(super) fn is_there() -> bool {
    stderr().is_terminal()
}

/// Whether a terminal of this size has room for rows.
pub(super) const fn has_room(size: Size) -> bool {
    size.columns >= LEAST.columns && size.rows >= LEAST.rows
}

/// How many columns there are for what is said; off a terminal, as many as are read with ease.
pub(crate) fn width() -> usize {
    const READ_WITH_EASE: usize = 100;
    if is_there() { size().columns.saturating_sub(1).max(LEAST.columns) } else { READ_WITH_EASE }
}

/// Where lines have to end; off a terminal, nowhere.
pub(crate) fn edge(stream: &(impl AsFd + IsTerminal)) -> usize {
    let columns = || size_of(stream).columns.saturating_sub(1).max(LEAST.columns);
    if stream.is_terminal() { columns() } else { usize::MAX }
}

/// Whether it is to have colours: `NO_COLOR` takes them, and nothing else.
pub(super) fn takes_colours() -> bool {
    !matches!(AutoStream::choice(&stderr()), ColorChoice::Never)
}

/// How large it is now.
pub(super) fn size() -> Size {
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

/// A run that a shell has put into the background only adds lines.
pub(super) fn is_ours() -> bool {
    tcgetpgrp(stderr()).map_or(true, |foreground| foreground == getpgrp())
}
