//! A run that is cut back to one of its records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use raymond_core::ids::RunId;
use raymond_core::run::{Abandoned, Event, Input, Record, batch};
use raymond_core::workflow::Definition;
use raymond_store::journal::{Lines, Read};
use raymond_store::{Journal, RunPaths};

use super::{OwnError, unopened};
use crate::clock;
use crate::driver::{DriverError, Head};
use crate::fold;
use crate::pin::PLATFORM;
use crate::project::Project;

/// Keeps the records of a run up to number `last`, and returns where the others went. From then on no process
/// that they started carries the mark of a turn: each is a stray.
pub(super) fn cut_back(
    project: &Project,
    paths: &RunPaths,
    (run, last): (&RunId, u64),
) -> Result<Option<PathBuf>, OwnError> {
    let read = Journal::read(project.disk.as_ref(), &paths.journal);
    let read = read.map_err(|error| unopened(project, error))?;
    let header = fold::header(&read.header)?;
    fold::check_owner(run, &header)?;
    if last == 0 {
        return Err(OwnError::NeverStarted(run.clone()));
    }
    let mut kept = Head::unborn();
    for line in read.lines.iter().take_while(|line| line.seq <= last) {
        kept.fold(&fold::record(line.body, line.seq)?);
    }
    let rewound = match kept.seq {
        seq if seq == last => follow(&kept, &abandoned(project, paths, (&kept, &read))?)?,
        // There is no such record, as whoever cuts says.
        _ => Vec::new(),
    };
    let moved = Journal::truncate_to(project.disk.as_ref(), &paths.journal, last, &rewound);
    moved.map_err(|error| unopened(project, error))
}

/// The run as it went on after the last record to keep.
fn abandoned<'a>(
    project: &Project,
    paths: &RunPaths,
    (kept, read): (&'a Head, &Read),
) -> Result<Abandoned<'a>, OwnError> {
    let mut abandoned = Abandoned::new(&kept.run);
    for line in read.lines.after(kept.seq) {
        abandoned.follow(&fold::record(line.body, line.seq)?);
    }
    let good = read.lines.last().map_or(0, |line| line.seq);
    for line in Journal::lines_after(project.disk.as_ref(), &paths.journal, good)? {
        match serde_json::from_slice(&line) {
            Ok(record) => abandoned.doubt(&record),
            Err(_) => abandoned.miss(),
        }
    }
    Ok(abandoned)
}

/// The record that follows the last one to keep. What is cut away may have written into sessions,
/// which must never be opened again: so it is cut and told in one step.
fn follow(kept: &Head, abandoned: &Abandoned<'_>) -> Result<Vec<u8>, OwnError> {
    let at = clock::now();
    let rewind = Input::Rewind {
        kept: kept.seq,
        nonce: kept.run.nonce.after_cut(&clock::nonce()),
        gone: abandoned.gone(),
        again: abandoned.again(),
        governed: abandoned.governed(),
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
pub(super) fn part_transcripts(
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
    paths
        .part_transcripts(project.disk.as_ref(), &aside, |name| kept.contains(&attempt_of(name)))?;
    Ok(())
}
