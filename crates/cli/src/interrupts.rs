//! Signals while nobody drives a run.
//!
//! Whoever listens for a signal takes the place of what it does by itself, for good. So from the first
//! question to a program on, one thread listens: a signal ends this process as ever, but a program
//! that is being asked is ended first, and whoever listens for himself is left alone.

use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;

use raymond_engine::shell::{Signal, Signals};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

static PHASE: Mutex<SignalPhase> = Mutex::new(SignalPhase::Alone);
static LISTENING: OnceLock<Result<(), String>> = OnceLock::new();

/// What a signal meets.
#[derive(Debug)]
enum SignalPhase {
    /// Nothing that has to be ended.
    Alone,
    /// A program that is being asked.
    ProbeGuard(CancellationToken),
    /// A program that is being ended, and the exit code of the signal.
    Ending(u8),
    /// Somebody who listens for himself.
    Heard(SignalOwner),
}

/// Who listens for signals himself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalOwner {
    /// The owner of a run: for all of them.
    Owner,
    /// Whoever starts one in the background: for Ctrl-C.
    Starter,
}

/// From here on somebody listens for himself.
pub(crate) fn hand_over_to(listener: SignalOwner) {
    *lock_phase() = SignalPhase::Heard(listener);
}

/// A program is being asked: a signal ends it, and then this process.
pub(crate) struct ProbeGuard(CancellationToken);

impl ProbeGuard {
    pub(crate) fn begin() -> Result<Self, String> {
        LISTENING.get_or_init(listen).clone()?;
        let token = CancellationToken::new();
        *lock_phase() = SignalPhase::ProbeGuard(token.clone());
        Ok(Self(token))
    }

    /// Cancelled when the program is to be ended.
    pub(crate) const fn token(&self) -> &CancellationToken {
        &self.0
    }
}

/// The program has ended. When a signal wanted that, so does this process.
impl Drop for ProbeGuard {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *lock_phase(), SignalPhase::Alone);
        if let SignalPhase::Ending(code) = before {
            exit(code);
        }
    }
}

fn lock_phase() -> MutexGuard<'static, SignalPhase> {
    PHASE.lock().unwrap_or_else(PoisonError::into_inner)
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
                runtime.block_on(handle_signals(signals));
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

async fn handle_signals(mut signals: Signals) {
    loop {
        on_signal(signals.next().await);
    }
}

fn on_signal(signal: Signal) {
    let code = match signal {
        Signal::HangUp => 129,
        Signal::Interrupt => 130,
        Signal::Terminate => 143,
        // Only an owner has an inbox.
        Signal::Poke => return,
    };
    let mut lock_phase = lock_phase();
    match &*lock_phase {
        SignalPhase::Heard(SignalOwner::Owner) | SignalPhase::Ending(_) => {}
        SignalPhase::Heard(SignalOwner::Starter) if signal == Signal::Interrupt => {}
        SignalPhase::Alone | SignalPhase::Heard(SignalOwner::Starter) => exit(code),
        SignalPhase::ProbeGuard(token) => {
            token.cancel();
            *lock_phase = SignalPhase::Ending(code);
        }
    }
}

#[expect(clippy::exit, reason = "it stands for a signal, which asks nobody either")]
fn exit(code: u8) -> ! {
    std::process::exit(code.into())
}
