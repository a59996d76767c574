//! Signals: SIGINT ends with a result and exit code 0, SIGTERM and SIGHUP end without output.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::directive::CatchableSignal;
use super::stream;
use super::turn_state::{Ending, SharedTurnState};

/// Runs the script on its own thread, so that a signal can end it at any point.
pub(super) fn run_with_signals(
    run: impl FnOnce(SharedTurnState) -> u8 + Send + 'static,
) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let code = runtime.and_then(|runtime| runtime.block_on(run_until_exit(run)));
    ExitCode::from(code.unwrap_or(70))
}

async fn run_until_exit(
    run: impl FnOnce(SharedTurnState) -> u8 + Send + 'static,
) -> std::io::Result<u8> {
    // All handlers exist before the script starts; otherwise an early signal would kill the process
    // by default.
    let mut int = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut hup = signal(SignalKind::hangup())?;
    let state = SharedTurnState::default();
    let (done, mut over) = oneshot::channel();
    let shared = state.clone();
    std::thread::spawn(move || done.send(run(shared)));
    loop {
        let caught = tokio::select! {
            // 70 is `EX_SOFTWARE`: the script thread panicked.
            code = &mut over => return Ok(code.unwrap_or(70)),
            _ = int.recv() => CatchableSignal::Int,
            _ = term.recv() => CatchableSignal::Term,
            _ = hup.recv() => CatchableSignal::Hup,
        };
        if let Some(code) = exit_code_after(&state, caught) {
            return Ok(code);
        }
    }
}

/// Returns the exit code after a signal, or `None` if the script ignores the signal.
fn exit_code_after(state: &SharedTurnState, caught: CatchableSignal) -> Option<u8> {
    let mut state = state.lock();
    if state.ignored.contains(&caught) {
        return None;
    }
    for child in &mut state.children {
        child.kill().ok();
        child.wait().ok();
    }
    match caught {
        CatchableSignal::Int => {
            let errors = vec!["Request was aborted.".to_owned()];
            let ending = Ending::Failed {
                subtype: "error_during_execution",
                reason: "aborted_streaming",
                errors,
            };
            stream::emit(&state.result(ending));
            Some(0)
        }
        // 128 plus the number of the signal, as a shell reports it.
        CatchableSignal::Term => Some(143),
        CatchableSignal::Hup => Some(129),
    }
}
