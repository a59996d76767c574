//! What goes, and what stays.

use raymond_backends::process::leftovers::{Marked, marked};
use raymond_core::ids::RunId;
use raymond_core::time::{Span, Timestamp};
use raymond_core::view::pruning::{self, Fate, Rule, Unfinished};
use raymond_engine::discard::{self, DiscardError};
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;

use crate::args::Prune;
use crate::failure::{Failure, LOCKED};
use crate::runs::{self, Examined, examine};

/// What becomes of the runs of a project.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Those that are deleted.
    pub(super) goes: Vec<Doomed>,
    /// How many are finished, and too young.
    pub(super) young: u64,
    /// The age of the youngest of them.
    pub(super) youngest: Option<Span>,
    /// How many could go on.
    pub(super) unfinished: u64,
    /// Those that would go by the rule, and why they do not.
    pub(super) stays: Vec<(RunId, String)>,
    /// What runs started, as it was at first.
    processes: Vec<Marked>,
}

/// A run that is deleted.
#[derive(Debug)]
pub(super) struct Doomed {
    pub(super) run: RunId,
    /// The word for where it is.
    pub(super) status: &'static str,
    pub(super) is_unfinished: bool,
    /// Its last record: anything newer saves it.
    pub(super) seq: u64,
    /// When something last happened.
    pub(super) last: Option<Timestamp>,
    pub(super) size: u64,
}

impl Prune {
    /// The age that was asked for.
    pub(super) fn age(&self) -> Span {
        self.older_than.unwrap_or(Rule::DEFAULT_AGE)
    }

    pub(super) fn rule(&self) -> Rule {
        let unfinished = if self.unfinished { Unfinished::Go } else { Unfinished::Stay };
        Rule { older_than: self.age(), unfinished }
    }
}

impl Doomed {
    fn of(project: &Project, seen: &Inspection) -> Self {
        let run = seen.header.run.clone();
        Self {
            status: seen.status.as_str(),
            is_unfinished: seen.status.is_unfinished(),
            seq: seen.head.seq,
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

impl Plan {
    /// One run after the other: together they may be more than fits into memory.
    pub(super) fn by_age(project: &Project, rule: Rule, now: Timestamp) -> Result<Self, Failure> {
        let mut plan = Self { processes: marked(), ..Self::default() };
        for run in project.runs()? {
            if let Examined::Readable(seen) = examine(project, &run) {
                plan.take(project, &seen, rule, now);
            }
        }
        Ok(plan)
    }

    fn take(&mut self, project: &Project, seen: &Inspection, rule: Rule, now: Timestamp) {
        let last = seen.head.ledger.updated_at;
        match rule.fate(seen.status, last, now) {
            Fate::Driven => {}
            Fate::Unfinished => self.unfinished += 1,
            Fate::Young => {
                let age = pruning::age(last, now);
                self.young += 1;
                self.youngest = Some(self.youngest.map_or(age, |youngest| youngest.min(age)));
            }
            Fate::Goes => match check(project, seen, &self.processes) {
                Ok(()) => self.goes.push(Doomed::of(project, seen)),
                Err(failure) => self.stays.push((seen.header.run.clone(), failure.told().0)),
            },
        }
    }

    /// All of them, or none.
    pub(super) fn of_named(project: &Project, wanted: &[String]) -> Result<Self, Failure> {
        let mut plan = Self { processes: marked(), ..Self::default() };
        for wanted in wanted {
            let run = runs::find(project, wanted)?;
            if plan.goes.iter().any(|doomed| doomed.run == run) {
                continue;
            }
            plan.goes.push(match examine(project, &run) {
                Examined::Readable(seen) | Examined::Damaged(seen) => {
                    if pruning::named(seen.status) == Fate::Driven {
                        return Err(driven(&run));
                    }
                    check(project, &seen, &plan.processes)?;
                    Doomed::of(project, &seen)
                }
                Examined::NeverStarted => {
                    own(project, &run)?;
                    if discard::may_be_starting(project, &run) {
                        return Err(young(&DiscardError::MayBeStarting(run)));
                    }
                    Doomed::never_started(project, &run)
                }
                Examined::Lost => return Err(runs::lost(project, &run)),
                Examined::Unreadable(error) => {
                    let place = project.paths(&run).directory.display().to_string();
                    let hint = format!("what it started cannot be found; look, and delete {place}");
                    return Err(Failure::from(error).hint(hint));
                }
            });
        }
        Ok(plan)
    }
}

/// Whether a run may be deleted that nobody drives.
fn check(project: &Project, seen: &Inspection, processes: &[Marked]) -> Result<(), Failure> {
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
        error => Failure::environment(format!("{run} is not deleted: {error}")),
    })
}

/// Whoever starts it would lose it.
pub(super) fn young(error: &DiscardError) -> Failure {
    Failure::usage(error.to_string()).hint("try again in a minute")
}

fn driven(run: &RunId) -> Failure {
    Failure::usage(format!("somebody drives {run}"))
        .code(LOCKED)
        .hint(format!("end it first: raymond stop {run}"))
}

/// Processes of it would be nobody's.
pub(super) fn still_runs(run: &RunId, is_unfinished: bool) -> Failure {
    let end =
        if is_unfinished { format!("raymond stop {run}") } else { "raymond doctor --fix".into() };
    Failure::usage(format!("processes of {run} still run")).hint(format!("end them first: {end}"))
}
