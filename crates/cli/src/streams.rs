//! The output streams of this process, and whether they still have a reader.
//!
//! A writer that has waited for a reader in vain gives the stream up. From then on nothing more is
//! written to the stream, because a write would block for ever and keep a process whose run is
//! over.

use std::io::{Write as _, stderr, stdout};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::fstat;

pub(crate) static STDOUT: OutputStream = OutputStream::new();
pub(crate) static STDERR: OutputStream = OutputStream::new();

/// One output stream of this process.
pub(crate) struct OutputStream {
    given_up: AtomicBool,
}

impl OutputStream {
    const fn new() -> Self {
        Self { given_up: AtomicBool::new(false) }
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }
}

/// Prints a line to stderr. The text is sanitized already: use `say!` unless it has styles.
pub(crate) fn print_error_line(text: &str) {
    if !STDERR.is_given_up() {
        writeln!(anstream::stderr(), "{text}").ok();
    }
}

/// Stops all further writes to stdout.
pub(crate) fn give_up_stdout() {
    STDOUT.given_up.store(true, Ordering::Release);
}

/// Stops all further writes to stderr, and to stdout if it is the same terminal, pipe or file.
pub(crate) fn give_up_stderr() {
    STDERR.given_up.store(true, Ordering::Release);
    if are_same(&stdout(), &stderr()) {
        give_up_stdout();
    }
}

/// Whether both lead to the same terminal, pipe or file.
fn are_same(one: &impl AsFd, other: &impl AsFd) -> bool {
    // Device and inode identify the target, whichever descriptors lead to it.
    let place = |stream: &dyn AsFd| fstat(stream.as_fd()).map(|found| (found.st_dev, found.st_ino));
    place(one).is_ok_and(|found| place(other) == Ok(found))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn same_target_makes_streams_equal() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (_, other) = std::io::pipe().unwrap();
        assert!(are_same(&writer, &writer.try_clone().unwrap()));
        assert!(!are_same(&writer, &other));
        assert!(!are_same(&writer, &File::open("/dev/null").unwrap()));
        drop(reader);
    }
}
