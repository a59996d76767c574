//! Runs a program in a terminal of 80 columns and 24 rows, and reads its screen.
//!
//! The terminal is a real pseudo-terminal and the controlling terminal of the program; `vt100`
//! keeps the screen. Tests wait for a screen, never for a time.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use raymond_testkit::private_command::bare_command;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tempfile::TempDir;

/// The longest time that anything may take.
const LIMIT: Duration = Duration::from_mins(10);

pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    watcher: Option<JoinHandle<()>>,
    seen: Arc<Seen>,
    _home: TempDir,
}

struct Seen {
    state: Mutex<State>,
    news: Condvar,
}

struct State {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    gate: Gate,
}

/// Whether the output of the program is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Shut,
}

impl Terminal {
    /// Starts a program here, with these variables beside the usual ones.
    pub(crate) fn start(directory: &Path, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&slave, window(80, 24)).unwrap();
        // A session of its own, for which this is the controlling terminal.
        let home = tempfile::tempdir().unwrap();
        let mut command = bare_command("setsid", home.path());
        command.arg("--ctty").args(words).current_dir(directory);
        command.env("TERM", "xterm-256color").env("TZ", "UTC").envs(variables.iter().copied());
        let stream = || slave.try_clone().unwrap();
        let child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        let keyboard = File::from(master);
        let screen = vt100::Parser::new(size(24), size(80), 1000);
        let state = State { screen, bytes: Vec::new(), gate: Gate::Open };
        let seen = Arc::new(Seen { state: Mutex::new(state), news: Condvar::new() });
        let (eyes, output) = (Arc::clone(&seen), keyboard.try_clone().unwrap());
        let watcher = Some(std::thread::spawn(move || eyes.watch(output)));
        Self { child, keyboard, watcher, seen, _home: home }
    }

    /// Waits until the screen fulfils a condition, and returns its lines.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let deadline = Instant::now() + LIMIT;
        let mut state = self.seen.lock();
        loop {
            let lines = state.lines();
            if is_so(&lines) {
                return lines;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited too long until {what}:\n{}", lines.join("\n"));
            state = self.seen.news.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits until a line of the screen contains this text.
    #[track_caller]
    pub(crate) fn until_shown(&self, words: &str) -> Vec<String> {
        self.until(words, |lines| lines.iter().any(|line| line.contains(words)))
    }

    /// The lines of the screen, unchanged.
    pub(crate) fn raw(&self) -> Vec<String> {
        let state = self.seen.lock();
        let screen = state.screen.screen();
        screen.rows(0, screen.size().1.get()).collect()
    }

    /// Draws the screen as it is now.
    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&vt100::Screen) -> T) -> T {
        draw(self.seen.lock().screen.screen())
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
    }

    /// Changes the size; the kernel sends SIGWINCH to the program.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let mut state = self.seen.lock();
        state.screen.screen_mut().set_size(size(rows), size(columns));
        tcsetwinsize(&self.keyboard, window(columns, rows)).unwrap();
    }

    /// Blocks the terminal, or lets it continue.
    pub(crate) fn set(&self, gate: Gate) {
        self.seen.lock().gate = gate;
        self.seen.news.notify_all();
    }

    /// Waits for the end of the program, even if its output was not read.
    #[track_caller]
    pub(crate) fn code(&mut self) -> i32 {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            let state = self.seen.lock();
            assert!(Instant::now() < deadline, "it took too long:\n{}", state.lines().join("\n"));
            drop(self.seen.news.wait_timeout(state, Duration::from_millis(5)).unwrap());
        }
    }

    /// Waits for the end: the exit code, the last screen, and every byte that was written.
    #[track_caller]
    pub(crate) fn end(mut self) -> (i32, Vec<String>, String) {
        let code = self.code();
        // The leader of the session is gone, and with it the terminal.
        self.watcher.take().unwrap().join().unwrap();
        let state = self.seen.lock();
        let bytes = String::from_utf8(state.bytes.clone()).unwrap();
        (code, state.lines(), bytes)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Reads the output until all writers are closed.
    fn watch(&self, mut output: File) {
        let mut buffer = [0; 4096];
        loop {
            drop(self.news.wait_while(self.lock(), |state| state.gate == Gate::Shut).unwrap());
            let Ok(length @ 1..) = output.read(&mut buffer) else { return };
            let mut state = self.lock();
            state.screen.process(&buffer[..length]);
            state.bytes.extend_from_slice(&buffer[..length]);
            self.news.notify_all();
        }
    }
}

impl State {
    /// The lines of the screen, with times set to midnight, ages to zero, and single blanks.
    fn lines(&self) -> Vec<String> {
        let screen = self.screen.screen();
        let mut lines: Vec<String> =
            screen.rows(0, screen.size().1.get()).map(|line| without_times(&line)).collect();
        while lines.pop_if(|line| line.is_empty()).is_some() {}
        lines
    }
}

fn without_times(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let zeros: String =
            word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        match zeros.trim_end_matches([':', ';']) {
            "00:00:00" | "0000-00-00" => zeros,
            "0s" | "00s" | "0.0s" => word.replace(|c: char| c.is_ascii_digit(), "0"),
            _ => word.to_owned(),
        }
    });
    let words: Vec<String> = words.collect();
    words.join(" ").replace("0.0s", "0s").replace("00s", "0s")
}

fn size(n: u16) -> NonZero<u16> {
    NonZero::new(n).unwrap()
}

fn window(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
