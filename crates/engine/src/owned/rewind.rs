//! Rewinds a run to one of its records, and discards the records after it.
//!
//! The money of discarded turns stays spent, so their costs are read from the records and from
//! transcripts before the journal is changed. Removing the later records and appending the record
//! of the rewind are one atomic step. Discarded records are moved to another file, not deleted. The
//! rules for costs are in `raymond_core::run` (`DiscardedTail`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use raymond_backends::process::Leftover;
use raymond_core::decide::batch;
use raymond_core::ids::RunId;
use raymond_core::run::{DiscardedTail, Event, Input, Record};
use raymond_core::workflow::Definition;
use raymond_store::journal::{JournalLines, ReadJournal};
use raymond_store::{Journal, RunPaths};

use super::recover_turns::end_leftovers;
use super::transcript_costs::{BootState, TranscriptIndex, TranscriptReader};
use super::{BackendsFor, LeftoverClients, OwnError, explain_unopened};
use crate::clock;
use crate::copied_run::check_no_active_copy;
use crate::driver::{DriverError, Head};
use crate::fold;
use crate::pin::PLATFORM;
use crate::project::Project;

/// The result of a rewind.
#[derive(Debug, Default)]
pub(super) struct Rewind {
    /// The file with the discarded records.
    pub(super) moved: Option<PathBuf>,
    /// Leftover processes that were ended.
    pub(super) ended: Vec<Leftover>,
}

/// The record to rewind a run to, and what is needed to read the discarded costs.
pub(super) struct RewindTo<'a> {
    pub(super) run: &'a RunId,
    /// The last record to keep.
    pub(super) last: u64,
    pub(super) backends: &'a BackendsFor<'a>,
    pub(super) machine: BootState,
}

/// Keeps the records of a run up to `to.last`. The rewind changes the nonce of the run, so
/// processes that the discarded records started belong to no turn any more.
pub(super) async fn rewind(
    project: &Project,
    paths: &RunPaths,
    to: &RewindTo<'_>,
) -> Result<Rewind, OwnError> {
    let read = Journal::read(project.disk.as_ref(), &paths.journal);
    let read = read.map_err(|error| explain_unopened(project, error))?;
    let header = fold::header(&read.header)?;
    fold::check_owner(to.run, &header)?;
    let last = to.last;
    // Without its first record a run has no settings and no definition to continue with.
    if last == 0 {
        return Err(OwnError::NeverStarted(to.run.clone()));
    }
    // Folded from the start, not from a snapshot: a snapshot may reflect records that are
    // discarded.
    let mut kept = Head::empty();
    for line in read.lines.iter().take_while(|line| line.seq <= last) {
        kept.fold(&fold::record(line.body, line.seq)?);
    }
    let (mut rewound, mut ended) = (Vec::new(), Vec::new());
    // If the journal is shorter, `Journal::truncate_to` below returns the error.
    if kept.seq == last {
        check_no_active_copy(project, &header)?;
        // Costs are read only after processes have ended: a running client spends more than its
        // transcript contains.
        (ended, _) = end_leftovers(&kept.run, LeftoverClients::Adopt).await;
        rewound = rewind_record(&kept, &discarded_tail(project, paths, &kept, &read, to)?)?;
    }
    let moved = Journal::truncate_to(project.disk.as_ref(), &paths.journal, last, &rewound);
    Ok(Rewind { moved: moved.map_err(|error| explain_unopened(project, error))?, ended })
}

/// Collects everything that is known about the records to discard.
fn discarded_tail<'a>(
    project: &Project,
    paths: &RunPaths,
    kept: &'a Head,
    read: &ReadJournal,
    to: &RewindTo<'_>,
) -> Result<DiscardedTail<'a>, OwnError> {
    let mut transcripts = TranscriptIndex::default();
    for line in read.lines.iter().take_while(|line| line.seq <= kept.seq) {
        transcripts.note(&fold::record(line.body, line.seq)?);
    }
    // The lines so far are kept: their turns are settled, except those in flight.
    transcripts.mark_kept(&kept.run);
    let mut followed = Vec::new();
    for line in read.lines.after(kept.seq) {
        followed.push(fold::record(line.body, line.seq)?);
    }
    // Lines after damage are not trusted, but their costs count: see
    // `DiscardedTail::read_untrusted`.
    let good = read.lines.last().map_or(0, |line| line.seq);
    let lines = Journal::lines_after(project.disk.as_ref(), &paths.journal, good)?;
    let doubtful: Vec<Option<Record>> =
        lines.iter().map(|line| serde_json::from_slice(line).ok()).collect();
    for record in followed.iter().chain(doubtful.iter().flatten()) {
        transcripts.note(record);
    }

    let backends = (to.backends)(&kept.run.settings);
    let reader =
        TranscriptReader { run: &kept.run, paths, backends: &backends, machine: to.machine };
    let costs = transcripts.costs(project, reader);
    let mut discarded_tail = DiscardedTail::new(&kept.run).with_transcript_costs(costs);
    for record in &followed {
        discarded_tail.follow(record);
    }
    for record in &doubtful {
        match record {
            Some(record) => discarded_tail.read_untrusted(record),
            None => discarded_tail.count_unreadable(),
        }
    }
    Ok(discarded_tail)
}

/// Returns the record of the rewind. Discarded turns may have written to sessions that must never
/// be opened again, so the rewind and this record become durable in one step.
fn rewind_record(kept: &Head, discarded_tail: &DiscardedTail<'_>) -> Result<Vec<u8>, OwnError> {
    let at = clock::now();
    let rewind = Input::Rewind {
        kept: kept.seq,
        nonce: kept.run.nonce.after_rewind(&clock::nonce()),
        discarded: discarded_tail.discarded(),
        again: discarded_tail.turns_to_repeat(),
        governed: discarded_tail.governed(),
    };
    // A rewind uses no state, and the pinned definition may be the thing that cannot be read.
    let (states, platform) = (BTreeMap::new(), PLATFORM);
    let nothing =
        Definition { entry: "".into(), states, platform, steps: None, asking: Vec::new() };
    // On a copy, because the caller folds the written record when it opens the journal.
    let steps = batch(&mut kept.run.clone(), &nothing, at, vec![rewind]).steps;
    let record = Record { seq: kept.seq + 1, at, steps };
    serde_json::to_vec(&record).map_err(|error| OwnError::Driver(DriverError::Encode(error)))
}

/// Moves the transcripts of discarded turns to another directory. New turns get the same numbers,
/// and a reader must not find the transcript of a discarded turn under the number of a new one.
///
/// This runs at every opening whose last record is a rewind, because the rewind may have crashed
/// before it moved the files.
pub(super) fn move_discarded_transcripts(
    project: &Project,
    paths: &RunPaths,
    lines: &JournalLines,
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
    // `main.3.1.2.jsonl`: agent, visit, turn, attempt, and the kind of file.
    let attempt_of = |name: &str| name.splitn(5, '.').take(4).collect::<Vec<_>>().join(".");
    let aside = format!("discarded-{}", nonce.last());
    paths.move_discarded_transcripts(project.disk.as_ref(), &aside, |name| {
        kept.contains(&attempt_of(name))
    })?;
    Ok(())
}
