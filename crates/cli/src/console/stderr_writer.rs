//! Writes lines to stderr, and draws the live rows below them, from a separate thread.
//!
//! A stuck terminal never blocks a run: if too many lines wait, new ones are dropped, and the lock
//! on the state of the rows is held only while rows are computed, never while they are written.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anstream::adapter::strip_str;
use jiff::tz::TimeZone;
use raymond_core::view::RunView;
use raymond_engine::clock;

use super::Interrupt;
use super::region::Region;
use super::rows::{Drawn, Scene, rows};
use super::writer::{STUCK_AFTER, WriteFate, WriteProgress, Writer};
use crate::sanitize::styled;
use crate::terminal;

/// Most messages that wait for the terminal; further ones are dropped. This bounds the memory.
const MAX_WAITING_LINES: usize = 10_000;
/// Most lines in one frame, so that rows are still drawn while many lines arrive.
const MAX_LINES_PER_FRAME: usize = 1_000;
/// Shortest time between two frames: eight frames a second look live and cost little.
const MIN_FRAME_INTERVAL: Duration = Duration::from_millis(125);
/// Time after which rows are drawn again without news, because they show ages in seconds.
const AGE_REFRESH: Duration = Duration::from_secs(1);

/// The handle through which a run writes to stderr.
pub(super) struct StderrWriter {
    messages: Sender<Message>,
    /// Counts the waiting messages. A bounded channel would allocate all its slots at once.
    waiting: Arc<AtomicUsize>,
    writer: Writer,
    screen: Arc<Screen>,
}

/// The end of the channel that the thread reads.
struct MessageReceiver {
    messages: Receiver<Message>,
    waiting: Arc<AtomicUsize>,
}

enum Message {
    Line(String),
    /// The rows have changed.
    Redraw,
}

/// The run as it is known, which the rows are drawn from.
struct Screen {
    view: Mutex<RunView>,
    content: Content,
    /// Whether a redraw was requested since the last frame: one request is enough.
    changed: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Lines,
    /// Lines, and rows below them.
    Rows,
}

impl Screen {
    fn new(content: Content) -> Arc<Self> {
        Arc::new(Self { view: Mutex::default(), content, changed: AtomicBool::new(false) })
    }
}

impl StderrWriter {
    /// Starts a writer of lines without rows.
    pub(super) fn with_lines() -> Self {
        Self::open(Screen::new(Content::Lines), write_lines)
    }

    /// Starts a writer that also draws rows.
    pub(super) fn with_rows(interrupt: Interrupt) -> Self {
        let screen = Screen::new(Content::Rows);
        let drawn = Arc::clone(&screen);
        Self::open(screen, move |receiver, progress| {
            draw(receiver, progress, &drawn, interrupt);
        })
    }

    fn open(
        screen: Arc<Screen>,
        write: impl FnOnce(&MessageReceiver, &WriteProgress) + Send + 'static,
    ) -> Self {
        let (messages, receiving) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let receiver = MessageReceiver { messages: receiving, waiting: Arc::clone(&waiting) };
        let writer = Writer::start(move |progress| write(&receiver, progress));
        Self { messages, waiting, writer, screen }
    }

    pub(super) fn say(&self, line: &str) {
        self.send(Message::Line(styled(line)));
    }

    /// Changes the view of the run, and draws the rows again if there are any.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut RunView) -> T) -> T {
        let screen = &self.screen;
        let changed = change(&mut screen.view.lock().unwrap_or_else(PoisonError::into_inner));
        // One waiting redraw shows all changes, and a busy run must not fill the queue with them.
        if screen.content == Content::Rows && !screen.changed.swap(true, Ordering::AcqRel) {
            self.send(Message::Redraw);
        }
        changed
    }

    fn send(&self, message: Message) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) < MAX_WAITING_LINES {
            self.messages.send(message).ok();
        } else {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines are written and the rows are removed, as long as there is progress.
    pub(super) fn close(self) -> WriteFate {
        drop(self.messages);
        self.writer.wait(STUCK_AFTER)
    }
}

impl MessageReceiver {
    fn receive(&self, patience: Duration) -> Result<Message, RecvTimeoutError> {
        self.messages.recv_timeout(patience).inspect(|_| {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        })
    }
}

fn write_lines(receiver: &MessageReceiver, progress: &WriteProgress) {
    while let Ok(message) = receiver.receive(Duration::MAX) {
        match message {
            Message::Line(line) => drop(writeln!(anstream::stderr(), "{line}")),
            Message::Redraw => {}
        }
        progress.make();
    }
}

/// Whether more messages may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Maybe,
    Never,
}

/// Whether the terminal shows colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paint {
    Colours,
    None,
}

impl Paint {
    fn here() -> Self {
        if terminal::takes_colours() { Self::Colours } else { Self::None }
    }

    /// Removes styles if the terminal shows none.
    fn over(self, lines: Vec<String>, rows: Vec<Drawn>) -> (Vec<String>, Vec<Drawn>) {
        match self {
            Self::Colours => (lines, rows),
            Self::None => (
                lines.iter().map(|line| strip_str(line).to_string()).collect(),
                rows.into_iter().map(Drawn::unstyled).collect(),
            ),
        }
    }
}

fn draw(
    receiver: &MessageReceiver,
    progress: &WriteProgress,
    screen: &Screen,
    interrupt: Interrupt,
) {
    let mut region = Region::default();
    let mut last = None;
    let paint = Paint::here();
    loop {
        let (lines, more) = gather(receiver, last);
        last = Some(Instant::now());
        let (size, ours) = (terminal::size(), terminal::is_ours());
        if !ours {
            // The shell or another job has written below the rows, so they cannot be overwritten
            // any more.
            region.forget();
        }
        // Reset before the rows are read: a change after this line sends a new redraw.
        screen.changed.store(false, Ordering::Release);
        let rows = match more {
            More::Maybe if ours && terminal::has_room(size) => {
                let scene = Scene { now: clock::now(), zone: TimeZone::system(), size, interrupt };
                rows(&screen.view.lock().unwrap_or_else(PoisonError::into_inner), &scene)
            }
            // The last frame has no rows, which removes them from the screen.
            More::Maybe | More::Never => Vec::new(),
        };
        let (lines, rows) = paint.over(lines, rows);
        if let Some(frame) = region.frame(&lines, rows, size.columns) {
            let mut stderr = io::stderr().lock();
            stderr.write_all(frame.as_bytes()).and_then(|()| stderr.flush()).ok();
        }
        progress.make();
        if more == More::Never {
            return;
        }
    }
}

/// Collects lines until the next frame is due: at once for the first frame, after
/// `MIN_FRAME_INTERVAL` if there is news, after `AGE_REFRESH` otherwise.
fn gather(receiver: &MessageReceiver, last: Option<Instant>) -> (Vec<String>, More) {
    let now = Instant::now();
    let mut lines = Vec::new();
    let mut until = last.map_or(now, |last| last + AGE_REFRESH);
    while lines.len() < MAX_LINES_PER_FRAME {
        match receiver.receive(until.saturating_duration_since(Instant::now())) {
            Ok(message) => {
                if let Message::Line(line) = message {
                    lines.push(line);
                }
                until = last.map_or(now, |last| last + MIN_FRAME_INTERVAL);
            }
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return (lines, More::Never),
        }
    }
    (lines, More::Maybe)
}
