//! The asynchronous runtime of this process.

use std::time::Duration;

use crate::failure::Failure;
use crate::resource_limits;

/// Builds the runtime of this process, which has a single thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    resource_limits::check()?;
    let failed = |error| Failure::environment(format!("could not start the runtime: {error}"));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    // The threads that `resource_limits::warm_up` started must not end: starting one later may
    // fail, and tokio panics then.
    let builder = builder.enable_all().thread_keep_alive(Duration::MAX);
    let runtime = builder.build().map_err(failed)?;
    let entered = runtime.enter();
    // Other processes wake the owner of a run with SIGUSR1, whose default action would end this
    // process. Registering a handler once replaces that action for good.
    let poke = tokio::signal::unix::SignalKind::user_defined1();
    drop(tokio::signal::unix::signal(poke).map_err(failed)?);
    drop(entered);
    Ok(runtime)
}
