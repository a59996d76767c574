//! Decides which runs `prune` deletes.

use raymond_backends::process::leftovers::{MarkedProcess, find_marked};
use raymond_core::ids::RunId;
use raymond_core::time::{Span, Timestamp};
use raymond_engine::discard::{self, DiscardError};
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;

use super::rule::{self, PruneFate, Rule, UnfinishedRun};
use crate::args::Prune;
use crate::failure::{Failure, LOCKED};
use crate::runs::{self, Examined, examine};

/// The decision about the runs of a project.
#[derive(Debug, Default)]
pub(super) struct PrunePlan {
    pub(super) to_delete: Vec<RunToDelete>,
    /// The number of finished runs that are too young.
    pub(super) young: u64,
    /// The age of the youngest of them.
    pub(super) youngest: Option<Span>,
    /// The number of runs that could be resumed.
    pub(super) unfinished: u64,
    /// Runs that match the rule but must stay, with the reason.
    pub(super) stays: Vec<(RunId, String)>,
    /// The processes of all runs, listed once because the search is slow.
    processes: Vec<MarkedProcess>,
}

#[derive(Debug)]
pub(super) struct RunToDelete {
    pub(super) run: RunId,
    pub(super) status: &'static str,
    pub(super) is_unfinished: bool,
    /// The last record: a newer one means that the run continued, so it is not deleted.
    pub(super) seq: u64,
    /// The time of the last record.
    pub(super) last: Option<Timestamp>,
    pub(super) size: u64,
}

impl Prune {
    /// Returns the age that the user asked for.
    pub(super) fn age(&self) -> Span {
        self.older_than.unwrap_or(Rule::DEFAULT_AGE)
    }

    pub(super) fn rule(&self) -> Rule {
        let unfinished = if self.unfinished { UnfinishedRun::Go } else { UnfinishedRun::Stay };
        Rule { older_than: self.age(), unfinished }
    }
}

impl RunToDelete {
    fn of(project: &Project, seen: &Inspection) -> Self {
        let run = seen.header.run.clone();
        Self {
            status: seen.status.as_str(),
            is_unfinished: seen.status.is_unfinished(),
            seq: seen.head.seq,
            // A damaged run without records has no time: its ledger contains only the default.
            last: (seen.head.seq > 0).then_some(seen.head.ledger.updated_at),
            size: discard::size(project, &run),
            run,
        }
    }

    fn never_started(project: &Project, run: &RunId) -> Self {
        let size = discard::size(project, run);
        let status = "never started";
        Self { run: run.clone(), status, is_unfinished: false, seq: 0, last: None, size }
    }
}

impl PrunePlan {
    /// Decides by age, one run after the other, because together they may not fit into memory.
    pub(super) fn by_age(project: &Project, rule: Rule, now: Timestamp) -> Result<Self, Failure> {
        let mut plan = Self { processes: find_marked(), ..Self::default() };
        for run in project.runs()? {
            // A run that cannot be read has no known age, so only its name can select it.
            if let Examined::Readable(seen) = examine(project, &run) {
                plan.take(project, &seen, rule, now);
            }
        }
        Ok(plan)
    }

    fn take(&mut self, project: &Project, seen: &Inspection, rule: Rule, now: Timestamp) {
        let last = seen.head.ledger.updated_at;
        match rule.fate(seen.status, last, now) {
            PruneFate::Driven => {}
            PruneFate::Unfinished => self.unfinished += 1,
            PruneFate::Young => {
                let age = rule::age(last, now);
                self.young += 1;
                self.youngest = Some(self.youngest.map_or(age, |youngest| youngest.min(age)));
            }
            PruneFate::Goes => match check(project, seen, &self.processes) {
                Ok(()) => self.to_delete.push(RunToDelete::of(project, seen)),
                Err(failure) => {
                    self.stays.push((seen.header.run.clone(), failure.message_and_hint().0));
                }
            },
        }
    }

    /// Plans to delete the named runs: all of them, or none.
    pub(super) fn of_named(project: &Project, wanted: &[String]) -> Result<Self, Failure> {
        let mut plan = Self { processes: find_marked(), ..Self::default() };
        for wanted in wanted {
            let run = runs::find(project, wanted)?;
            // The user may name a run twice, for example by two prefixes.
            if plan.to_delete.iter().any(|run_to_delete| run_to_delete.run == run) {
                continue;
            }
            plan.to_delete.push(match examine(project, &run) {
                Examined::Damaged(_) => {
                    let place = project.paths(&run).directory.display().to_string();
                    let why = "its first record is damaged, so its processes and files are unknown";
                    return Err(Failure::environment(format!("could not delete {run}: {why}"))
                        .hint(format!(
                            "end its processes with `raymond doctor --fix`, then delete {place}"
                        )));
                }
                Examined::Readable(seen) => {
                    if rule::named(seen.status) == PruneFate::Driven {
                        return Err(driven(&run));
                    }
                    check(project, &seen, &plan.processes)?;
                    RunToDelete::of(project, &seen)
                }
                Examined::NeverStarted => {
                    own(project, &run)?;
                    if discard::may_be_starting(project, &run) {
                        return Err(too_young(&DiscardError::MayBeStarting(run)));
                    }
                    RunToDelete::never_started(project, &run)
                }
                // Without a journal its processes cannot be identified, so the user must decide.
                Examined::Lost => return Err(runs::journal_missing(project, &run)),
                Examined::Unreadable(error) => {
                    let place = project.paths(&run).directory.display().to_string();
                    let hint =
                        format!("could not find its processes; check them, then delete {place}");
                    return Err(Failure::from(error).hint(hint));
                }
            });
        }
        Ok(plan)
    }
}

/// Checks that a run without an owner may be deleted.
fn check(project: &Project, seen: &Inspection, processes: &[MarkedProcess]) -> Result<(), Failure> {
    let run = &seen.header.run;
    own(project, run)?;
    if processes.iter().any(|process| process.is_of(&seen.head.run.nonce)) {
        return Err(still_runs(run, seen.status.is_unfinished()));
    }
    Ok(())
}

fn own(project: &Project, run: &RunId) -> Result<(), Failure> {
    discard::check_own(project, run).map_err(|error| match error {
        DiscardError::GitTracked(error) => error.into(),
        error => Failure::environment(format!("could not delete {run}: {error}")),
    })
}

/// The failure for a run that has just been created: its starter would lose it.
pub(super) fn too_young(error: &DiscardError) -> Failure {
    Failure::usage(error.to_string()).hint("try again in a minute")
}

fn driven(run: &RunId) -> Failure {
    Failure::usage(format!("another process drives {run}"))
        .code(LOCKED)
        .hint(format!("end it first: raymond stop {run}"))
}

/// The failure for a run with processes: nothing could find them after the deletion.
pub(super) fn still_runs(run: &RunId, is_unfinished: bool) -> Failure {
    let end =
        if is_unfinished { format!("raymond stop {run}") } else { "raymond doctor --fix".into() };
    Failure::usage(format!("processes of {run} still run")).hint(format!("end them first: {end}"))
}
