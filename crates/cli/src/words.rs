//! Words from elsewhere, made safe to show, and a mouth that never keeps a run waiting.

use std::io::Write as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::secrets::redacted;

/// More lines than this wait for nobody.
const MOST_WAITING: usize = 10_000;
/// How long a run that is over waits for its last lines to be read.
const PATIENCE: Duration = Duration::from_secs(2);

/// The text without secrets, and without what a terminal would obey: control characters, and marks
/// that turn the direction of writing.
pub(crate) fn plain(text: &str) -> String {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    redacted(text).chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

/// Says lines on stderr from a thread of its own: a terminal that does not take them holds up
/// nobody. Lines that nobody takes are dropped.
pub(crate) struct Mouth {
    lines: SyncSender<String>,
    silence: Receiver<()>,
}

impl Mouth {
    pub(crate) fn open() -> Self {
        let (lines, waiting) = sync_channel::<String>(MOST_WAITING);
        let (over, silence) = sync_channel(1);
        std::thread::spawn(move || {
            for line in waiting {
                writeln!(anstream::stderr(), "{line}").ok();
            }
            over.send(()).ok();
        });
        Self { lines, silence }
    }

    pub(crate) fn say(&self, line: String) {
        self.lines.try_send(line).ok();
    }

    /// Waits until everything is said, but not for ever.
    pub(crate) fn close(self) {
        drop(self.lines);
        match self.silence.recv_timeout(PATIENCE) {
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let check = |text: &str, expected: &str| assert_eq!(plain(text), expected);
        check("plain ä\n\ttext", "plain ä\n\ttext");
        check("\u{1b}]0;x\u{7}y", "\u{fffd}]0;x\u{fffd}y");
        check("a\u{202e}b\u{2066}c", "a\u{fffd}b\u{fffd}c");
        check("\u{9b}2J\r", "\u{fffd}2J\u{fffd}");
    }
}
