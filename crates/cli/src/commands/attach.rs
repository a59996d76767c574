//! `raymond attach`: follows a run that another process drives, without changing it.

use std::time::{Duration, Instant};

use raymond_core::ids::RunId;
use raymond_core::run::Phase;
use raymond_core::view::{self, Owner, Status};
use raymond_engine::fold;
use raymond_engine::inspect::{self, Inspection};
use raymond_engine::project::Project;
use raymond_engine::runner::RunWatcher as _;
use raymond_engine::suspension::Suspension;
use raymond_store::Journal;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Attach;
use crate::console::{Console, Interrupt};
use crate::failure::Failure;
use crate::runs;
use crate::status_summary::{self, StatusSummary};
use crate::transcript_follower::TranscriptFollower;

use super::finish::finish;
use super::report::report;

/// Pause between two reads of the journal: short enough to look live.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn attach(flags: &Attach) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    let runtime = crate::runtime::runtime()?;
    let mut interrupt = interrupt(&runtime)?;
    // The summary of an ended run contains the status already.
    if !flags.output.quiet && !matches!(seen.head.run.phase, Phase::Ended(_)) {
        let StatusSummary { status, why, .. } = StatusSummary::seen(&project, &seen);
        crate::say!("{run}: {status}: {why}");
    }
    let mut console = Console::new(flags.output, Interrupt::Leaves);
    console.catch_up(&seen.head);
    let followed = runtime.block_on(async {
        tokio::select! {
            followed = follow(&project, &run, seen, &mut console) => followed.map(Some),
            _ = interrupt.recv() => Ok(None),
        }
    });
    finish(&runtime, move || {
        let said = console.end();
        let Some((seen, status)) = followed? else {
            crate::say!("{run} continues without being watched; to stop it: raymond stop {run}");
            return Ok(Status::Stopped.exit_code());
        };
        report(&seen.head, status, &project.blobs(&project.paths(&run)), &said)?;
        Ok(status.exit_code())
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
    project: &Project,
    run: &RunId,
    mut seen: Inspection,
    console: &mut Console,
) -> Result<(Inspection, Status), Failure> {
    let paths = project.paths(run);
    let mut follower = TranscriptFollower::new(paths.transcripts);
    let mut suspension = Suspension::default();
    while !matches!(seen.head.run.phase, Phase::Ended(_)) {
        // Read the owner before the journal: an owner that ends in between has already written its
        // last record, so nothing is missed.
        let owner = inspect::owner_and_life(project, run)?;
        let lines =
            Journal::follow(project.disk.as_ref(), &paths.journal, &mut seen.journal.cursor)?;
        for line in lines.iter() {
            let record = fold::record(line.body, line.seq)?;
            seen.head.fold(&record);
            console.committed(&seen.head.run, &seen.head.ledger, &record);
        }
        // The owner is gone and its last records are printed: nothing will follow.
        if owner.is_none() && lines.is_empty() {
            break;
        }
        if let Some((owner, life)) = &owner
            && suspension.is_news(*life, Instant::now())
        {
            // A suspended owner writes nothing, so without this note `attach` would look stuck.
            console.note(&status_summary::suspended_with_hint(owner));
        }
        follower.poll(&seen.head.run, |turn, sign| console.seen(turn, sign));
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let status = view::status(&seen.head.run, Owner::Gone);
    Ok((seen, status))
}
