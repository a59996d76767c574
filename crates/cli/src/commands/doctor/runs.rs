//! Checks the runs of this project, one after the other, because together they may not fit into
//! memory.

use std::collections::BTreeMap;

use crate::health::{self, Finding};
use raymond_backends::process::leftovers::{MarkedProcess, find_marked};
use raymond_core::ids::RunId;
use raymond_core::text::counted;
use raymond_core::view::Status;
use raymond_engine::abandoned::{self, Abandoned};
use raymond_engine::discard::{Traces, may_be_starting, traces};
use raymond_engine::inspect::Inspection;
use raymond_engine::owned::check_endable;
use raymond_engine::project::Project;
use raymond_store::disk;
use raymond_store::journal::Tail;

use crate::failure::Failure;
use crate::runs::{Examined, examine};
use crate::sanitize::sanitized;
use crate::status_summary::StatusSummary;

pub(super) fn runs(project: &Project) -> Vec<Finding> {
    let all = match own_runs(project) {
        Ok(all) => all,
        Err(error) => {
            let (text, remedy) = Failure::from(error).message_and_hint();
            return vec![Finding::fail("runs", text, remedy)];
        }
    };
    // One scan of all processes for all runs, because the scan is slow.
    let processes = find_marked();
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    let (mut findings, mut never_started) = (Vec::new(), Vec::new());
    for run in &all {
        match examine(project, run) {
            Examined::Readable(seen) => {
                *counts.entry(seen.status.as_str()).or_default() += 1;
                findings.extend(of_run(project, &seen));
                findings.extend(left(project, &seen, &processes));
            }
            // The status of a run without an intact record is unknown, so it is not counted.
            Examined::Damaged(seen) => {
                findings.extend(of_run(project, &seen));
                findings.extend(left(project, &seen, &processes));
            }
            Examined::NeverStarted => never_started.push(run.as_str()),
            Examined::Lost => {
                let (text, remedy) = crate::runs::journal_missing(project, run).message_and_hint();
                findings.push(Finding::fail("journal", text, remedy));
            }
            Examined::Unreadable(error) => {
                let (text, remedy) = Failure::from(error).naming_run(run).message_and_hint();
                findings.push(Finding::fail("journal", format!("{run}: {text}"), remedy));
            }
        }
    }
    // The counts are complete only now, but the summary belongs above the details.
    findings.insert(0, summary(all.len(), &counts));
    if !never_started.is_empty() {
        let text = format!("never started: {}", never_started.join(", "));
        let remedy = "raymond doctor --fix removes empty runs that are older than a minute";
        findings.push(Finding::warn("runs", text, remedy.to_owned()));
    }
    findings.extend(deleted_run_files(project));
    findings.extend(left_by_calls(project));
    findings
}

/// Finds processes and files of killed stateless calls.
fn left_by_calls(project: &Project) -> Vec<Finding> {
    let Abandoned { processes, files } = abandoned::find(project);
    let commands: Vec<String> = processes.iter().map(|left| sanitized(&left.command)).collect();
    let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    health::left_by_calls(&commands, &files)
}

/// Returns all runs, unless the directory of runs is a link or belongs to another user.
fn own_runs(project: &Project) -> Result<Vec<RunId>, disk::Error> {
    project.root.refuse_links(project.disk.as_ref())?;
    project.runs()
}

/// Finds files of deleted runs.
fn deleted_run_files(project: &Project) -> Option<Finding> {
    let files = project.root.removed_runs(project.disk.as_ref()).unwrap_or_default();
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let text = format!("files of deleted runs remain: {}", names.join(", "));
    let remedy = "raymond prune removes them; if files remain, check their permissions";
    (!names.is_empty()).then(|| Finding::warn("runs", text, remedy.to_owned()))
}

fn summary(all: usize, counts: &BTreeMap<&'static str, u64>) -> Finding {
    let parts: Vec<String> = counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    let text = format!("{}{colon}{}", counted(all as u64, "run"), parts.join(", "));
    Finding::ok("runs", text)
}

/// Returns the problem of a run, if it has one.
fn of_run(project: &Project, seen: &Inspection) -> Option<Finding> {
    let run = &seen.header.run;
    let StatusSummary { why, next_command, .. } = StatusSummary::seen(project, seen);
    if let Tail::Damaged(_) = seen.journal.tail {
        return Some(Finding::fail("journal", format!("{run}: {why}"), next_command));
    }
    if let Some(owner) = seen.driven_elsewhere() {
        let (pid, host) = (owner.process.pid, &owner.process.host);
        let text =
            format!("{run}: driven by process {pid} on {host}, which cannot be seen from here");
        let remedy = format!("if that machine never comes back: raymond resume {run} --takeover");
        return Some(Finding::warn("runs", text, remedy));
    }
    (seen.status == Status::Interrupted)
        .then(|| Finding::warn("runs", format!("{run}: interrupted: {why}"), next_command))
}

/// Finds processes of a run that has no owner.
fn left(project: &Project, seen: &Inspection, processes: &[MarkedProcess]) -> Option<Finding> {
    let commands = commands(seen, processes);
    if commands.is_empty() {
        return None;
    }
    // A copy of this run may be in use elsewhere; its processes carry the same marker.
    Some(match check_endable(project, &seen.header) {
        Ok(()) => health::left_running(seen.header.run.as_str(), &commands),
        Err(why) => {
            let text = format!("{}: leaving its processes alone: {why}", seen.header.run);
            let remedy = "run raymond doctor in the project of that run";
            Finding::warn("processes", text, remedy.to_owned())
        }
    })
}

fn commands(seen: &Inspection, processes: &[MarkedProcess]) -> Vec<String> {
    if seen.owner.is_some() {
        return Vec::new();
    }
    let of_run = processes.iter().filter(|process| process.is_of(&seen.head.run.nonce));
    of_run.map(|process| sanitized(&process.command)).collect()
}

/// The runs that `--fix` can fix.
pub(super) struct Fixable {
    /// Runs with leftover processes.
    pub(super) left: Vec<RunId>,
    pub(super) never_started: Vec<RunId>,
}

pub(super) fn fixable(project: &Project) -> Fixable {
    let processes = find_marked();
    let mut fixable = Fixable { left: Vec::new(), never_started: Vec::new() };
    for run in own_runs(project).unwrap_or_default() {
        match examine(project, &run) {
            Examined::Readable(seen) | Examined::Damaged(seen) => {
                let is_left = !commands(&seen, &processes).is_empty();
                if is_left && check_endable(project, &seen.header).is_ok() {
                    fixable.left.push(run);
                }
            }
            // A run without records may be about to start, so only an old one is removed.
            Examined::NeverStarted if may_be_starting(project, &run) => {}
            Examined::NeverStarted if traces(project, &run) == Traces::None => {
                fixable.never_started.push(run);
            }
            Examined::NeverStarted | Examined::Lost | Examined::Unreadable(_) => {}
        }
    }
    fixable
}
