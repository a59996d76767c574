//! Signals before the owner of a run handles them.
//!
//! A signal handler replaces the default action of a signal for the rest of the process. So, from
//! the first probe of a program on, one thread handles signals: a signal still ends this process,
//! but first the probed program. Once another part of the process handles signals itself, this
//! thread ignores them.

use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;

use raymond_engine::runner::{Signal, Signals};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

static PHASE: Mutex<SignalPhase> = Mutex::new(SignalPhase::Idle);
static LISTENING: OnceLock<Result<(), String>> = OnceLock::new();

/// The situation in which a signal arrives.
#[derive(Debug)]
enum SignalPhase {
    /// No program has to be ended first.
    Idle,
    /// A probed program runs; the token ends it.
    Probing(CancellationToken),
    /// The probed program is being ended; then this process exits with the code of the signal.
    Ending(u8),
    /// Another part of this process handles signals.
    HandedOver(SignalOwner),
}

/// The part of this process that handles signals itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalOwner {
    /// The owner of a run, which handles all signals.
    Owner,
    /// The starter of a background run, which handles only Ctrl-C.
    Starter,
}

/// Leaves signals to another part of this process from here on.
pub(crate) fn hand_over_to(listener: SignalOwner) {
    // No probe may begin behind this call: it would replace the phase, and a signal would end the
    // process again.
    *lock_phase() = SignalPhase::HandedOver(listener);
}

/// A guard for the time in which a program is probed: a signal ends the program, then this process.
pub(crate) struct ProbeGuard(CancellationToken);

impl ProbeGuard {
    pub(crate) fn begin() -> Result<Self, String> {
        LISTENING.get_or_init(listen).clone()?;
        let token = CancellationToken::new();
        *lock_phase() = SignalPhase::Probing(token.clone());
        Ok(Self(token))
    }

    /// Returns the token that is cancelled when the program has to end.
    pub(crate) const fn token(&self) -> &CancellationToken {
        &self.0
    }
}

impl Drop for ProbeGuard {
    fn drop(&mut self) {
        // The program has ended. If a signal caused that, this process exits here, because the
        // signal thread only cancelled the token and left the exit to this thread.
        let before = std::mem::replace(&mut *lock_phase(), SignalPhase::Idle);
        if let SignalPhase::Ending(code) = before {
            exit(code);
        }
    }
}

fn lock_phase() -> MutexGuard<'static, SignalPhase> {
    PHASE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the signal thread and returns once it handles signals.
fn listen() -> Result<(), String> {
    let failure = |error: io::Error| format!("could not listen for signals: {error}");
    let (ready, is_ready) = mpsc::sync_channel(1);
    let listens = move || {
        // A runtime of its own, because the one of the command may be blocked or not exist yet.
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
    thread::Builder::new().name("signals".to_owned()).spawn(listens).map_err(failure)?;
    // Wait for the thread: a signal between the start of a program and the handler would orphan it.
    is_ready.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(failure)
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
        // A poke announces a request in the inbox of a run, and only an owner has one.
        Signal::Wake => return,
    };
    // Held until the reaction is chosen, so that a probe cannot begin or end in between.
    let mut phase = lock_phase();
    match &*phase {
        SignalPhase::HandedOver(SignalOwner::Owner) | SignalPhase::Ending(_) => {}
        SignalPhase::HandedOver(SignalOwner::Starter) if signal == Signal::Interrupt => {}
        SignalPhase::Idle | SignalPhase::HandedOver(SignalOwner::Starter) => exit(code),
        SignalPhase::Probing(token) => {
            token.cancel();
            *phase = SignalPhase::Ending(code);
        }
    }
}

#[expect(
    clippy::exit,
    reason = "replaces the default action of a signal, which ends the process, too"
)]
fn exit(code: u8) -> ! {
    std::process::exit(code.into())
}
