//! SIGINT ends with a result and exit code 0, SIGTERM and SIGHUP without a word.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::directive::Ignored;
use super::scene::{Ending, Shared};
use super::stream;

/// Plays on a thread of its own, so that a signal finds the scene wherever it is.
pub(super) fn watch(play: impl FnOnce(Shared) -> u8 + Send + 'static) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let code = runtime.and_then(|runtime| runtime.block_on(ended(play)));
    ExitCode::from(code.unwrap_or(70))
}

async fn ended(play: impl FnOnce(Shared) -> u8 + Send + 'static) -> std::io::Result<u8> {
    let mut int = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut hup = signal(SignalKind::hangup())?;
    let scene = Shared::default();
    let (done, mut over) = oneshot::channel();
    let played = scene.clone();
    std::thread::spawn(move || done.send(play(played)));
    loop {
        let caught = tokio::select! {
            code = &mut over => return Ok(code.unwrap_or(70)),
            _ = int.recv() => Ignored::Int,
            _ = term.recv() => Ignored::Term,
            _ = hup.recv() => Ignored::Hup,
        };
        if let Some(code) = cut_off(&scene, caught) {
            return Ok(code);
        }
    }
}

/// The exit code, unless the signal is ignored.
fn cut_off(scene: &Shared, caught: Ignored) -> Option<u8> {
    let mut scene = scene.lock();
    if scene.ignored.contains(&caught) {
        return None;
    }
    for child in &mut scene.children {
        child.kill().ok();
        child.wait().ok();
    }
    match caught {
        Ignored::Int => {
            let errors = vec!["Request was aborted.".to_owned()];
            let ending = Ending::Failed {
                subtype: "error_during_execution",
                reason: "aborted_streaming",
                errors,
            };
            stream::emit(&scene.result(ending));
            Some(0)
        }
        Ignored::Term => Some(143),
        Ignored::Hup => Some(129),
    }
}
