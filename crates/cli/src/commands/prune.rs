//! `raymond prune`: deletes finished runs.
//!
//! The plan is complete before anything is deleted, and named runs are refused together. A run
//! stays if it has an owner or leftover processes, or belongs to another user.

mod plan;
mod rule;

use std::fmt::Write as _;

use raymond_core::ids::RunId;
use raymond_core::text::{bytes, counted};
use raymond_core::time::Timestamp;
use raymond_engine::clock;
use raymond_engine::discard::{DiscardError, discard};
use raymond_engine::project::Project;
use serde_json::json;

use crate::args::Prune;
use crate::deleted_costs::{self, DeletedCosts};
use crate::failure::Failure;
use crate::local_time::date_time;
use crate::runs;

use super::{cost, print_json, print_text};
use plan::{PrunePlan, RunToDelete};

pub(crate) fn prune(flags: &Prune) -> Result<u8, Failure> {
    let project = runs::project()?;
    let mut plan = if flags.runs.is_empty() {
        PrunePlan::by_age(&project, flags.rule(), clock::now())?
    } else {
        PrunePlan::of_named(&project, &flags.runs)?
    };
    let mut trouble = None;
    if !flags.dry_run {
        // `discard` takes the lock of a run, and the holder of a lock may receive SIGUSR1: the
        // runtime handles it.
        let _runtime = crate::runtime::runtime()?;
        trouble = carry_out(&project, &mut plan);
        // Also removes the rest of an interrupted prune. Files that remain do not bring a run back.
        if let Err(error) = project.root.sweep(project.disk.as_ref()) {
            crate::say!(
                "could not delete some files of deleted runs: {}",
                Failure::from(error).message_and_hint().0
            );
        }
    }
    if flags.json {
        print_json(object(&plan, flags))?;
    } else {
        let verb = if flags.dry_run { "would delete" } else { "deleted" };
        print_text(
            &plan
                .to_delete
                .iter()
                .map(|run_to_delete| line(verb, run_to_delete))
                .collect::<String>(),
        )?;
        report(&plan, flags);
    }
    // Behind the report, so that the user also sees which runs were deleted.
    trouble.map_or(Ok(0), Err)
}

/// Deletes the planned runs, and keeps only deleted ones in the plan. Returns the first failure and
/// prints the others.
fn carry_out(project: &Project, plan: &mut PrunePlan) -> Option<Failure> {
    let mut trouble: Option<Failure> = None;
    plan.to_delete.retain(|run_to_delete| {
        // `discard` compares the number of records under the lock: a run that continued since the
        // plan stays.
        keep_costs(project, &run_to_delete.run);
        match discard(project, &run_to_delete.run, run_to_delete.seq) {
            Ok(()) => true,
            Err(error) => {
                let failure = refused(error, run_to_delete);
                match &trouble {
                    None => trouble = Some(failure),
                    Some(_) => failure.print(),
                }
                false
            }
        }
    });
    trouble
}

/// Keeps the costs of a run that is about to be deleted. On a full disk they are lost, because
/// `prune` is how the user frees space.
fn keep_costs(project: &Project, run: &RunId) {
    let Ok(seen) = runs::look(project, run) else { return };
    let Ok(costs) = cost::count(&seen, Timestamp(0)) else { return };
    let nonce = seen.header.nonce;
    if let Err(error) =
        deleted_costs::add(project, &DeletedCosts { run: run.clone(), nonce, costs })
    {
        let why = Failure::from(error).message_and_hint().0;
        crate::say!("could not keep the costs of {run}: {why}");
    }
}

/// Returns the reason why a run was not deleted.
fn refused(error: DiscardError, run_to_delete: &RunToDelete) -> Failure {
    let RunToDelete { run, .. } = run_to_delete;
    match error {
        DiscardError::Lock(error) => error.into(),
        DiscardError::Inspect(error) => Failure::from(error).naming_run(run),
        DiscardError::Disk(error) => error.into(),
        DiscardError::GitTracked(error) => error.into(),
        error @ DiscardError::ActiveCopy(_) => Failure::environment(error.to_string()),
        DiscardError::Processes { .. } => plan::still_runs(run, run_to_delete.is_unfinished),
        error @ DiscardError::MayBeStarting(_) => plan::too_young(&error),
        error @ DiscardError::Changed(_) => {
            Failure::usage(error.to_string()).hint(format!("raymond status {run}"))
        }
        error @ (DiscardError::NotADirectory(_) | DiscardError::Foreign { .. }) => {
            Failure::environment(format!("could not delete {run}: {error}"))
        }
    }
}

/// `deleted review-20260102-3c0f9a   completed    2026-01-02 10:00 CET  1.2 MiB`
fn line(verb: &str, run_to_delete: &RunToDelete) -> String {
    let RunToDelete { run, status, last, size, .. } = run_to_delete;
    let last = last.map(date_time).unwrap_or_default();
    let size = bytes(*size);
    format!("{verb} {run:<40} {status:<13} {last:<20}  {size}\n")
}

/// Prints the totals, and how to delete more.
fn report(plan: &PrunePlan, flags: &Prune) {
    let total = bytes(plan.to_delete.iter().map(|run_to_delete| run_to_delete.size).sum());
    match (plan.to_delete.len() as u64, flags.dry_run) {
        (0, _) => crate::say!("nothing to delete"),
        (runs, false) => crate::say!("deleted {}, freed {total}", counted(runs, "run")),
        (runs, true) => crate::say!("would delete {}, and free {total}", counted(runs, "run")),
    }
    if let Some(youngest) = plan.youngest {
        let what = if flags.unfinished { "" } else { "finished " };
        let mut text = format!("{} younger than {}", runs_are(plan.young, what), flags.age());
        let them = if plan.young == 1 { "it" } else { "them" };
        write!(text, "; --older-than {} takes {them}", rule::reach(youngest)).ok();
        crate::say!("{text}");
    }
    if plan.unfinished > 0 {
        let many = runs_are(plan.unfinished, "unfinished ");
        crate::say!("{many} kept; --unfinished takes those older than {}", flags.age());
    }
    for (run, why) in &plan.stays {
        crate::say!("{run} stays: {why}");
    }
}

/// `1 run is`, `3 finished runs are`
fn runs_are(many: u64, what: &str) -> String {
    let is = if many == 1 { "is" } else { "are" };
    format!("{} {is}", counted(many, &format!("{what}run")))
}

fn object(plan: &PrunePlan, flags: &Prune) -> serde_json::Value {
    let deleted = plan.to_delete.iter().map(|run_to_delete| {
        json!({
            "run_id": run_to_delete.run, "status": run_to_delete.status, "bytes": run_to_delete.size,
            "updated_at": run_to_delete.last.map(|last| last.to_string()),
        })
    });
    let kept = plan.stays.iter().map(|(run, why)| json!({ "run_id": run, "why": why }));
    json!({
        "version": crate::json::VERSION,
        "dry_run": flags.dry_run,
        "deleted": deleted.collect::<Vec<_>>(),
        "freed_bytes": plan.to_delete.iter().map(|run_to_delete| run_to_delete.size).sum::<u64>(),
        "younger": plan.young,
        "unfinished": plan.unfinished,
        "kept": kept.collect::<Vec<_>>(),
    })
}
