//! A run that is cut back to one of its records.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_backends::process::{Grace, leftovers};
use raymond_core::ids::RunId;
use raymond_core::run::{Abandoned, Gone, Input, Record, batch};
use raymond_core::workflow::Definition;
use raymond_store::{Journal, RunPaths};

use super::{Found, OwnError, unopened};
use crate::clock;
use crate::driver::{DriverError, Head};
use crate::elsewhere::check_only;
use crate::fold;
use crate::pin::PLATFORM;
use crate::project::Project;
use crate::shell::transcript;

/// Keeps the records of a run up to number `last`. Whatever the others left running is ended first: it
/// carries the mark of a future that nobody will know any more.
pub(super) async fn cut_back(
    project: &Project,
    paths: &RunPaths,
    (run, last): (&RunId, u64),
) -> Result<Found, OwnError> {
    let read = Journal::read(project.disk.as_ref(), &paths.journal);
    let read = read.map_err(|error| unopened(project, error))?;
    let header = fold::header(&read.header)?;
    fold::check_owner(run, &header)?;
    if last == 0 {
        return Err(OwnError::NeverStarted(run.clone()));
    }
    check_only(project, &header)?;
    let mut head = Head::unborn();
    for line in read.lines.iter().take_while(|line| line.seq <= last) {
        head.fold(&fold::record(line.body, line.seq)?);
    }
    let mut found = Found::default();
    let abandoned = abandoned(project, paths, &head)?;
    let mut record = Vec::new();
    // Where there is no such record, whoever cuts says so.
    if head.seq == last {
        for nonce in abandoned.nonces() {
            let left = leftovers::find(nonce);
            found.survivors.extend(leftovers::end(&left, &Grace::default()).await);
            found.ended.extend(left);
        }
        record = rewound(&head, abandoned.gone())?;
    }
    let cut = Journal::truncate_to(Arc::clone(&project.disk), &paths.journal, last, &record);
    found.moved = cut.map_err(|error| unopened(project, error))?.moved;
    set_aside(project, paths, &abandoned, last);
    Ok(found)
}

/// The run as it went on after the last record to keep, whether it can be gone on with or not.
fn abandoned<'a>(
    project: &Project,
    paths: &RunPaths,
    kept: &'a Head,
) -> Result<Abandoned<'a>, OwnError> {
    let mut abandoned = Abandoned::new(&kept.run);
    for line in Journal::lines_after(project.disk.as_ref(), &paths.journal, kept.seq)? {
        match serde_json::from_slice(&line) {
            Ok(record) => abandoned.follow(&record),
            Err(_) => abandoned.miss(),
        }
    }
    Ok(abandoned)
}

/// The record that follows the last one to keep. What is cut away may have written into sessions,
/// which must never be opened again: so it is cut and told in one step.
fn rewound(kept: &Head, gone: Gone) -> Result<Vec<u8>, OwnError> {
    let at = clock::now();
    let rewind = Input::Rewind { kept: kept.seq, nonce: clock::nonce(), gone };
    // Nothing of the states is asked for, and they may not be readable.
    let (states, platform) = (BTreeMap::new(), PLATFORM);
    let nothing = Definition { entry: "".into(), states, platform, work: None, asking: Vec::new() };
    let steps = batch(&mut kept.run.clone(), &nothing, at, vec![rewind]).steps;
    let record = Record { seq: kept.seq + 1, at, steps };
    serde_json::to_vec(&record).map_err(|error| OwnError::Driver(DriverError::Encode(error)))
}

/// Turns to come have the numbers of those that were cut away, and nobody may read in the transcript of
/// one what another said.
fn set_aside(project: &Project, paths: &RunPaths, abandoned: &Abandoned<'_>, last: u64) {
    let (disk, aside) = (&project.disk, paths.transcripts.join(format!("cut-{last}")));
    if !abandoned.started().is_empty() {
        disk.create_dir(&aside).ok();
    }
    for (turn, attempt) in abandoned.started() {
        for kind in ["jsonl", "stderr", "pid"] {
            let from = transcript(&paths.transcripts, turn, *attempt).with_extension(kind);
            let Some(name) = from.file_name() else { continue };
            // A script has none.
            disk.rename(&from, &aside.join(name)).ok();
        }
    }
}
