//! `--events`: prints the events of a run to stdout, one line each, from a separate thread.
//!
//! A slow reader gets every event, but a run never waits for a reader. If too many lines wait, the
//! stream ends for good: the printed lines have no gap, and the journal contains the rest.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::writer::{WriteFate, WriteProgress, Writer};

/// Most bytes that wait for a reader: 64 MiB, so that a stuck reader cannot exhaust the memory.
pub(super) const MAX_WAITING_BYTES: usize = 64 << 20;

/// The stream of events on stdout.
pub(super) struct Events {
    /// `None` once the stream has ended.
    lines: Option<Sender<String>>,
    waiting: Arc<AtomicUsize>,
    most: usize,
    writer: Writer,
}

/// The effect of a line on the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventStream {
    /// The stream continues, or had ended before.
    AsBefore,
    /// The stream has just ended, because too many bytes wait.
    Ended,
}

impl Events {
    pub(super) fn to(output: impl Write + Send + 'static, most: usize) -> Self {
        let (lines, queue) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        let writer = Writer::start(move |progress| write(output, &queue, &left, progress));
        Self { lines: Some(lines), waiting, most, writer }
    }

    pub(super) fn print(&mut self, line: String) -> EventStream {
        let Some(lines) = &self.lines else { return EventStream::AsBefore };
        let weight = weight(&line);
        if self.waiting.fetch_add(weight, Ordering::Relaxed) + weight > self.most {
            self.lines = None;
            return EventStream::Ended;
        }
        // A closed stdout must not end the run, so the error is ignored.
        lines.send(line).ok();
        EventStream::AsBefore
    }

    /// Waits until everything is printed, as long as the reader takes something.
    pub(super) fn close(self, patience: Duration) -> WriteFate {
        drop(self.lines);
        self.writer.wait(patience)
    }
}

fn write(
    mut output: impl Write,
    queue: &Receiver<String>,
    waiting: &AtomicUsize,
    progress: &WriteProgress,
) {
    let mut gone = false;
    // After an error the loop still takes lines, because `waiting` must go down: otherwise the
    // stream would end with a note that blames the reader for being slow.
    for line in queue {
        gone = gone || writeln!(output, "{line}").and_then(|()| output.flush()).is_err();
        waiting.fetch_sub(weight(&line), Ordering::Relaxed);
        progress.make();
    }
}

/// Returns the memory that a waiting line takes, in bytes.
const fn weight(line: &str) -> usize {
    size_of::<String>() + line.len()
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read as _};

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    /// A pipe that is full already.
    fn full_pipe() -> (io::PipeReader, io::PipeWriter, usize) {
        let (reader, mut writer) = io::pipe().unwrap();
        let room = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
        writer.write_all(&vec![b'\n'; room]).unwrap();
        (reader, writer, room)
    }

    #[test]
    fn late_reader_gets_every_line() {
        let (mut reader, writer, room) = full_pipe();
        let mut events = Events::to(writer, MAX_WAITING_BYTES);
        let lines: Vec<String> = (0..10_000).map(|number| format!("line {number}")).collect();
        for line in &lines {
            assert_eq!(events.print(line.clone()), EventStream::AsBefore);
        }
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        assert_eq!(events.close(LONG), WriteFate::Done);
        let text = read.join().unwrap().unwrap();
        assert_eq!(text[room..].lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn full_stream_ends_once_without_a_gap() {
        let (mut reader, writer, room) = full_pipe();
        let mut events = Events::to(writer, 3 * weight("line 0"));
        let results: Vec<EventStream> =
            (0..5).map(|number| events.print(format!("line {number}"))).collect();
        let (before, ended) = (EventStream::AsBefore, EventStream::Ended);
        assert_eq!(results, [before, before, before, ended, before]);
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        assert_eq!(events.close(LONG), WriteFate::Done);
        assert_eq!(read.join().unwrap().unwrap()[room..], *"line 0\nline 1\nline 2\n");
    }

    #[test]
    fn stuck_reader_is_not_waited_for() {
        let (reader, writer, _) = full_pipe();
        let mut events = Events::to(writer, MAX_WAITING_BYTES);
        events.print("line".to_owned());
        assert_eq!(events.close(Duration::from_millis(1)), WriteFate::Stuck);
        drop(reader);
    }

    #[test]
    fn a_reader_that_went_away_is_harmless() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut events = Events::to(writer, 1000);
        for number in 0..10 {
            assert_eq!(events.print(format!("{number:0>200}")), EventStream::AsBefore);
            while events.waiting.load(Ordering::Relaxed) > 0 {
                std::thread::yield_now();
            }
        }
        assert_eq!(events.close(LONG), WriteFate::Done);
    }
}
