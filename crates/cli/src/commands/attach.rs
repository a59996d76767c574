//! `raymond attach`: follows a run as if it had been started here, and leaves it alone otherwise.

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
use crate::ear::Ear;
use crate::failure::Failure;
use crate::place::{self, Place};
use crate::runs;

use super::farewell::farewell;
use super::report::report;

/// How often the journal is looked at.
const BEAT: Duration = Duration::from_millis(50);

pub(crate) fn attach(flags: &Attach) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    let runtime = crate::runtime()?;
    let mut interrupt = interrupt(&runtime)?;
    // The summary of a run that is over says it all.
    if !flags.talk.quiet && !matches!(seen.head.run.phase, Phase::Ended(_)) {
        let Place { status, why, .. } = Place::seen(&project, &seen);
        crate::say!("{run}: {status}: {why}");
    }
    let mut console = Console::new(flags.talk, Interrupt::Leaves);
    console.catch_up(&seen.head);
    let followed = runtime.block_on(async {
        tokio::select! {
            followed = follow(&project, &run, seen, &mut console) => followed.map(Some),
            _ = interrupt.recv() => Ok(None),
        }
    });
    farewell(&runtime, move || {
        let said = console.end();
        let Some((seen, status)) = followed? else {
            crate::say!("{run} goes on without being watched; to stop it: raymond stop {run}");
            return Ok(Status::Stopped.exit_code());
        };
        report(&seen.head, status, &project.blobs(&project.paths(&run)), &said)?;
        Ok(status.exit_code())
    })
}

/// Ctrl-C, which from here on does not end this process.
fn interrupt(runtime: &Runtime) -> Result<Signal, Failure> {
    let entered = runtime.enter();
    let interrupt = signal(SignalKind::interrupt());
    drop(entered);
    interrupt.map_err(|error| Failure::environment(format!("could not listen for Ctrl-C: {error}")))
}

/// Tells what happens, until nothing will any more.
async fn follow(
    project: &Project,
    run: &RunId,
    mut seen: Inspection,
    console: &mut Console,
) -> Result<(Inspection, Status), Failure> {
    let paths = project.paths(run);
    let mut ear = Ear::new(paths.transcripts);
    let mut suspension = Suspension::default();
    while !matches!(seen.head.run.phase, Phase::Ended(_)) {
        // The owner first: one that ends in between has written all it will ever write.
        let owner = inspect::owner_and_life(project, run)?;
        let lines =
            Journal::follow(project.disk.as_ref(), &paths.journal, &mut seen.journal.cursor)?;
        for line in lines.iter() {
            let record = fold::record(line.body, line.seq)?;
            seen.head.fold(&record);
            console.committed(&seen.head.run, &seen.head.ledger, &record);
        }
        if owner.is_none() && lines.is_empty() {
            break;
        }
        if let Some((owner, life)) = &owner
            && suspension.is_news(*life, Instant::now())
        {
            console.note(&place::suspended_with_hint(owner));
        }
        ear.listen(&seen.head.run, |turn, sign| console.seen(turn, sign));
        tokio::time::sleep(BEAT).await;
    }
    let status = view::status(&seen.head.run, Owner::Gone);
    Ok((seen, status))
}
