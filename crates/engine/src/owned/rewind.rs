//! A run that is cut back to one of its records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use raymond_backends::process::Leftover;
use raymond_core::ids::RunId;
use raymond_core::run::{DiscardedTail, Event, Input, Record, batch};
use raymond_core::workflow::Definition;
use raymond_store::journal::{Lines, Read};
use raymond_store::{Journal, RunPaths};

use super::recover_turns::end_leftovers;
use super::transcript_costs::{BootState, TranscriptIndex};
use super::{BackendsFor, LeftoverClients, OwnError, explain_unopened};
use crate::clock;
use crate::copied_run::check_no_active_copy;
use crate::driver::{DriverError, Head};
use crate::fold;
use crate::pin::PLATFORM;
use crate::project::Project;

/// What cutting a run back found.
#[derive(Debug, Default)]
pub(super) struct Rewind {
    /// Where the records went.
    pub(super) moved: Option<PathBuf>,
    /// Processes that were left running and were ended.
    pub(super) ended: Vec<Leftover>,
}

/// Keeps the records of a run up to number `last`. From then on no process that the others started carries
/// the mark of a turn: each is a stray.
pub(super) async fn rewind(
    project: &Project,
    paths: &RunPaths,
    (run, last): (&RunId, u64),
    reading: (&BackendsFor<'_>, BootState),
) -> Result<Rewind, OwnError> {
    let read = Journal::read(project.disk.as_ref(), &paths.journal);
    let read = read.map_err(|error| explain_unopened(project, error))?;
    let header = fold::header(&read.header)?;
    fold::check_owner(run, &header)?;
    if last == 0 {
        return Err(OwnError::NeverStarted(run.clone()));
    }
    let mut kept = Head::empty();
    for line in read.lines.iter().take_while(|line| line.seq <= last) {
        kept.fold(&fold::record(line.body, line.seq)?);
    }
    let (mut rewound, mut ended) = (Vec::new(), Vec::new());
    // Otherwise there is no such record, as whoever cuts says.
    if kept.seq == last {
        check_no_active_copy(project, &header)?;
        // A client that still runs spends more than its transcript says.
        (ended, _) = end_leftovers(&kept.run, LeftoverClients::Adopt).await;
        rewound = rewind_record(&kept, &discarded_tail(project, paths, (&kept, &read), reading)?)?;
    }
    let moved = Journal::truncate_to(project.disk.as_ref(), &paths.journal, last, &rewound);
    Ok(Rewind { moved: moved.map_err(|error| explain_unopened(project, error))?, ended })
}

/// The run as it went on after the last record to keep.
fn discarded_tail<'a>(
    project: &Project,
    paths: &RunPaths,
    (kept, read): (&'a Head, &Read),
    (known, machine): (&BackendsFor<'_>, BootState),
) -> Result<DiscardedTail<'a>, OwnError> {
    let mut transcripts = TranscriptIndex::default();
    for line in read.lines.iter().take_while(|line| line.seq <= kept.seq) {
        transcripts.note(&fold::record(line.body, line.seq)?);
    }
    transcripts.mark_kept(&kept.run);
    let mut followed = Vec::new();
    for line in read.lines.after(kept.seq) {
        followed.push(fold::record(line.body, line.seq)?);
    }
    let good = read.lines.last().map_or(0, |line| line.seq);
    let lines = Journal::lines_after(project.disk.as_ref(), &paths.journal, good)?;
    let doubtful: Vec<Option<Record>> =
        lines.iter().map(|line| serde_json::from_slice(line).ok()).collect();
    for record in followed.iter().chain(doubtful.iter().flatten()) {
        transcripts.note(record);
    }

    let backends = known(&kept.run.settings);
    let costs = transcripts.costs(project, (&kept.run, paths), &backends, machine);
    let mut discarded_tail = DiscardedTail::new(&kept.run).knowing(costs);
    for record in &followed {
        discarded_tail.follow(record);
    }
    for record in &doubtful {
        match record {
            Some(record) => discarded_tail.doubt(record),
            None => discarded_tail.miss(),
        }
    }
    Ok(discarded_tail)
}

/// The record that follows the last one to keep. What is cut away may have written into sessions,
/// which must never be opened again: so it is cut and told in one step.
fn rewind_record(kept: &Head, discarded_tail: &DiscardedTail<'_>) -> Result<Vec<u8>, OwnError> {
    let at = clock::now();
    let rewind = Input::Rewind {
        kept: kept.seq,
        nonce: kept.run.nonce.after_cut(&clock::nonce()),
        discarded: discarded_tail.discarded(),
        again: discarded_tail.again(),
        governed: discarded_tail.governed(),
    };
    // Nothing of the states is asked for, and they may not be readable.
    let (states, platform) = (BTreeMap::new(), PLATFORM);
    let nothing = Definition { entry: "".into(), states, platform, work: None, asking: Vec::new() };
    let steps = batch(&mut kept.run.clone(), &nothing, at, vec![rewind]).steps;
    let record = Record { seq: kept.seq + 1, at, steps };
    serde_json::to_vec(&record).map_err(|error| OwnError::Driver(DriverError::Encode(error)))
}

/// Turns to come have the numbers of those that were cut away, and nobody may read in the transcript of
/// one what another said: before anything follows a cut, theirs are moved away.
pub(super) fn move_discarded_transcripts(
    project: &Project,
    paths: &RunPaths,
    lines: &Lines,
) -> Result<(), OwnError> {
    let Some(last) = lines.last() else { return Ok(()) };
    let events = |record: Record| record.steps.into_iter().flat_map(|step| step.events);
    let rewound = events(fold::record(last.body, last.seq)?).find_map(|event| match event {
        Event::RunRewound { nonce, .. } => Some(nonce),
        _ => None,
    });
    let Some(nonce) = rewound else { return Ok(()) };
    let mut kept = BTreeSet::new();
    for line in lines.iter() {
        for event in events(fold::record(line.body, line.seq)?) {
            if let Event::TurnStarted { turn, attempt, .. } = event {
                kept.insert(format!("{turn}.{attempt}"));
            }
        }
    }
    let attempt_of = |name: &str| name.splitn(5, '.').take(4).collect::<Vec<_>>().join(".");
    let aside = format!("cut-{}", nonce.last());
    paths.move_discarded_transcripts(project.disk.as_ref(), &aside, |name| {
        kept.contains(&attempt_of(name))
    })?;
    Ok(())
}
