//! `raymond prune`: deletes runs that are over.
//!
//! What goes is decided first, and named runs are refused together before any of them is touched. A run
//! that somebody drives, whose processes still run, or that is not this user's own, stays.

mod plan;

use std::fmt::Write as _;

use raymond_core::view::{bytes, counted, pruning};
use raymond_engine::clock;
use raymond_engine::discard::{DiscardError, discard};
use raymond_engine::project::Project;
use serde_json::json;

use crate::args::Prune;
use crate::failure::Failure;
use crate::runs;

use super::{print_json, print_out};
use plan::{Doomed, Plan};

pub(crate) fn prune(flags: &Prune) -> Result<u8, Failure> {
    let project = runs::project()?;
    let mut plan = if flags.runs.is_empty() {
        Plan::by_age(&project, flags.rule(), clock::now())?
    } else {
        Plan::of_named(&project, &flags.runs)?
    };
    let mut trouble = None;
    if !flags.dry_run {
        // Whoever holds a lock may be poked.
        let _runtime = crate::runtime()?;
        trouble = carry_out(&project, &mut plan);
        // With what an interrupted one left. The runs are gone, whatever stays of their files.
        if let Err(error) = project.root.sweep(project.disk.as_ref()) {
            crate::say!("some files of deleted runs stay: {}", Failure::from(error).told().0);
        }
    }
    if flags.json {
        print_json(object(&plan, flags))?;
    } else {
        let verb = if flags.dry_run { "would delete" } else { "deleted" };
        print_out(&plan.goes.iter().map(|doomed| line(verb, doomed)).collect::<String>())?;
        tell(&plan, flags);
    }
    trouble.map_or(Ok(0), Err)
}

/// Deletes what goes, and keeps in the plan what is gone. The first trouble is returned, the others are
/// told.
fn carry_out(project: &Project, plan: &mut Plan) -> Option<Failure> {
    let mut trouble: Option<Failure> = None;
    plan.goes.retain(|doomed| match discard(project, &doomed.run, doomed.seq) {
        Ok(()) => true,
        Err(error) => {
            let failure = refused(error, doomed);
            match &trouble {
                None => trouble = Some(failure),
                Some(_) => failure.print(),
            }
            false
        }
    });
    trouble
}

/// Why a run stays.
fn refused(error: DiscardError, doomed: &Doomed) -> Failure {
    let Doomed { run, .. } = doomed;
    match error {
        DiscardError::Lock(error) => error.into(),
        DiscardError::Inspect(error) => Failure::from(error).about(run),
        DiscardError::Disk(error) => error.into(),
        DiscardError::GitTracked(error) => error.into(),
        error @ DiscardError::ActiveCopy(_) => Failure::environment(error.to_string()),
        DiscardError::Processes { .. } => plan::still_runs(run, doomed.is_unfinished),
        error @ DiscardError::MayBeStarting(_) => plan::young(&error),
        error @ DiscardError::Changed(_) => {
            Failure::usage(error.to_string()).hint(format!("raymond status {run}"))
        }
        error @ (DiscardError::NotADirectory(_) | DiscardError::Foreign { .. }) => {
            Failure::environment(format!("{run} was not deleted: {error}"))
        }
    }
}

/// `deleted review-20260102-k3f9   completed    2026-01-02T10:00  1.2 MiB`
fn line(verb: &str, doomed: &Doomed) -> String {
    let Doomed { run, status, last, size, .. } = doomed;
    let last = last.map(|last| last.to_string()[..16].to_owned()).unwrap_or_default();
    let size = bytes(*size);
    format!("{verb} {run:<40} {status:<13} {last:<16}  {size}\n")
}

/// How much it was, and what stays.
fn tell(plan: &Plan, flags: &Prune) {
    let total = bytes(plan.goes.iter().map(|doomed| doomed.size).sum());
    match (plan.goes.len() as u64, flags.dry_run) {
        (0, _) => crate::say!("nothing to delete"),
        (runs, false) => crate::say!("deleted {}, freed {total}", counted(runs, "run")),
        (runs, true) => crate::say!("would delete {}, and free {total}", counted(runs, "run")),
    }
    if let Some(youngest) = plan.youngest {
        let mut text = format!("{} younger than {}", runs_are(plan.young, "finished"), flags.age());
        let them = if plan.young == 1 { "it" } else { "them" };
        write!(text, "; --older-than {} takes {them}", pruning::reach(youngest)).ok();
        crate::say!("{text}");
    }
    if plan.unfinished > 0 {
        let many = runs_are(plan.unfinished, "unfinished");
        crate::say!("{many} kept; --unfinished takes those older than {}", flags.age());
    }
    for (run, why) in &plan.stays {
        crate::say!("{run} stays: {why}");
    }
}

/// `1 finished run is`, `3 finished runs are`
fn runs_are(many: u64, what: &str) -> String {
    let is = if many == 1 { "is" } else { "are" };
    format!("{} {is}", counted(many, &format!("{what} run")))
}

fn object(plan: &Plan, flags: &Prune) -> serde_json::Value {
    let deleted = plan.goes.iter().map(|doomed| {
        json!({
            "run_id": doomed.run, "status": doomed.status, "bytes": doomed.size,
            "updated_at": doomed.last.map(|last| last.to_string()),
        })
    });
    let kept = plan.stays.iter().map(|(run, why)| json!({ "run_id": run, "why": why }));
    json!({
        "version": crate::json::VERSION,
        "dry_run": flags.dry_run,
        "deleted": deleted.collect::<Vec<_>>(),
        "freed_bytes": plan.goes.iter().map(|doomed| doomed.size).sum::<u64>(),
        "younger": plan.young,
        "unfinished": plan.unfinished,
        "kept": kept.collect::<Vec<_>>(),
    })
}
