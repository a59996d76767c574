//! Signals while nobody drives a run.
//!
//! Whoever listens for a signal takes the place of what it does by itself, for good. So from the first
//! question to a program on, one thread listens: a signal ends this process as ever, but a program
//! that is being asked is ended first, and whoever listens for himself is left alone.

use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;

use raymond_engine::runner::{Signal, Signals};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

static STAGE: Mutex<Stage> = Mutex::new(Stage::Alone);
static LISTENING: OnceLock<Result<(), String>> = OnceLock::new();

/// What a signal meets.
#[derive(Debug)]
enum Stage {
    /// Nothing that has to be ended.
    Alone,
    /// A program that is being asked.
    Asking(CancellationToken),
    /// A program that is being ended, and the exit code of the signal.
    Ending(u8),
    /// Somebody who listens for himself.
    Heard(Listener),
}

/// Who listens for signals himself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// The owner of a run: for all of them.
    Owner,
    /// Whoever starts one in the background: for Ctrl-C.
    Starter,
}

/// From here on somebody listens for himself.
pub(crate) fn leave_to(listener: Listener) {
    *stage() = Stage::Heard(listener);
}

/// A program is being asked: a signal ends it, and then this process.
pub(crate) struct Asking(CancellationToken);

impl Asking {
    pub(crate) fn begin() -> Result<Self, String> {
        LISTENING.get_or_init(listen).clone()?;
        let token = CancellationToken::new();
        *stage() = Stage::Asking(token.clone());
        Ok(Self(token))
    }

    /// Cancelled when the program is to be ended.
    pub(crate) const fn token(&self) -> &CancellationToken {
        &self.0
    }
}

/// The program has ended. When a signal wanted that, so does this process.
impl Drop for Asking {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *stage(), Stage::Alone);
        if let Stage::Ending(code) = before {
            exit(code);
        }
    }
}

fn stage() -> MutexGuard<'static, Stage> {
    STAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns once the thread listens.
fn listen() -> Result<(), String> {
    let told = |error: io::Error| format!("could not listen for signals: {error}");
    let (ready, is_ready) = mpsc::sync_channel(1);
    let listens = move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        match runtime.and_then(|runtime| Ok((listening(&runtime)?, runtime))) {
            Ok((signals, runtime)) => {
                ready.send(Ok(())).ok();
                runtime.block_on(meet(signals));
            }
            Err(error) => {
                ready.send(Err(error)).ok();
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listens).map_err(told)?;
    is_ready.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(told)
}

fn listening(runtime: &Runtime) -> io::Result<Signals> {
    let _entered = runtime.enter();
    Signals::listen()
}

async fn meet(mut signals: Signals) {
    loop {
        arrived(signals.next().await);
    }
}

fn arrived(signal: Signal) {
    let code = match signal {
        Signal::HangUp => 129,
        Signal::Interrupt => 130,
        Signal::Terminate => 143,
        // Only an owner has an inbox.
        Signal::Wake => return,
    };
    let mut stage = stage();
    match &*stage {
        Stage::Heard(Listener::Owner) | Stage::Ending(_) => {}
        Stage::Heard(Listener::Starter) if signal == Signal::Interrupt => {}
        Stage::Alone | Stage::Heard(Listener::Starter) => exit(code),
        Stage::Asking(token) => {
            token.cancel();
            *stage = Stage::Ending(code);
        }
    }
}

#[expect(clippy::exit, reason = "it stands for a signal, which asks nobody either")]
fn exit(code: u8) -> ! {
    std::process::exit(code.into())
}
