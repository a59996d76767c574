//! `raymond attach`: follows a run that another process drives, without changing it.

use raymond_core::run::Phase;
use raymond_core::view::{self, OwnerState, Status};
use raymond_engine::feed::{Followed, POLL_INTERVAL, RunFollower, RunWatcher as _};
use raymond_engine::inspect::Inspection;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Attach;
use crate::console::{Console, Interrupt};
use crate::exit_code;
use crate::failure::Failure;
use crate::runs;
use crate::status_summary::StatusSummary;

use super::finish::finish;
use super::report::report;

pub(crate) fn attach(flags: &Attach) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    let runtime = crate::runtime::runtime()?;
    // Before anything is printed: a Ctrl-C from here on must report that the run continues.
    let mut interrupt = interrupt(&runtime)?;
    // The summary of an ended run contains the status already.
    if !flags.output.quiet && !matches!(seen.head.run.phase, Phase::Ended(_)) {
        let StatusSummary { status, why, .. } = StatusSummary::seen(&project, &seen);
        crate::say!("{run}: {status}: {why}");
    }
    let mut console = Console::new(flags.output, Interrupt::Leaves);
    console.catch_up(&seen.head);
    let follower = RunFollower::new(&project, seen).with_progress();
    let followed = runtime.block_on(async {
        tokio::select! {
            followed = follow(follower, &mut console) => followed.map(Some),
            _ = interrupt.recv() => Ok(None),
        }
    });
    finish(&runtime, move || {
        let said = console.end();
        let Some((seen, status)) = followed? else {
            crate::say!("{run} continues without being watched; to stop it: raymond stop {run}");
            // 130, as for any program that Ctrl-C ends, although the run itself was not stopped.
            return Ok(exit_code::of_run(Status::Stopped));
        };
        report(&seen.head, status, &project.blobs(&project.paths(&run)), &said)?;
        Ok(exit_code::of_run(status))
    })
}

/// Handles Ctrl-C, which then ends only this command and not the run.
fn interrupt(runtime: &Runtime) -> Result<Signal, Failure> {
    let entered = runtime.enter();
    let interrupt = signal(SignalKind::interrupt());
    drop(entered);
    interrupt.map_err(|error| Failure::environment(format!("could not listen for Ctrl-C: {error}")))
}

/// Prints events until the run has ended or has no owner.
async fn follow(
    mut follower: RunFollower<'_>,
    console: &mut Console,
) -> Result<(Inspection, Status), Failure> {
    while follower.poll(&mut |item| console.take(item))? == Followed::More {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let seen = follower.into_seen();
    // `poll` returns `Over` for an owner that is gone, and an ended run needs none.
    let status = view::status(&seen.head.run, OwnerState::Gone);
    Ok((seen, status))
}
