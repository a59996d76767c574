//! Runs that a resume does not continue: they have ended, or only their caller may continue them.

use raymond_core::ids::RunId;
use raymond_core::run::{Ending, Phase, Run, Settings};
use raymond_core::view::{self, NextCommand, Plan, States, Status};
use raymond_engine::driver::Head;
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;
use raymond_engine::{request, statefile};
use raymond_store::lock::Takeover;

use crate::failure::Failure;
use crate::status_summary::StatusSummary;
use crate::{backends, cause, exit_code, json as shapes, next_command, runs};

use super::super::report::report_result;
use super::super::{print_json, print_text, result};
use super::edits::ResumeEdits;
use super::{ResumeOptions, end_leftover_processes};

/// Prints the result of a completed run, or refuses a run that cannot continue. Returns `None` if
/// the run can continue.
pub(super) fn report_if_over(
    project: &Project,
    seen: &Inspection,
    options: &ResumeOptions<'_>,
) -> Result<Option<u8>, Failure> {
    let run = &seen.head.run;
    if is_left_to_caller(run) {
        // `--takeover` frees the lock of a dead host, which the caller of the tool cannot do
        // itself.
        let takes_over = options.how.takeover == Takeover::OtherHost && !options.plan;
        if takes_over && seen.driven_elsewhere().is_some() {
            return leave_to_caller(project, seen, options).map(Some);
        }
        let message =
            format!("{} is a run of the tool crayfish: only its caller can continue it", run.id);
        return Err(Failure::usage(message).hint(call_again(&run.id)));
    }
    // The owner may have been killed after the last record but before it ended processes and wrote
    // the state file.
    if matches!(run.phase, Phase::Ended(_)) && !options.plan {
        end_leftover_processes(project, seen)?;
        catch_up(project, &seen.head, options)?;
    }
    match run.phase {
        Phase::Ended(Ending::Completed) => {
            check_iterations(&seen.head, options)?;
            let blobs = project.blobs(&project.paths(&run.id));
            if !options.output.quiet {
                crate::say!("{}: already completed; nothing was run", run.id);
            }
            report_result(&seen.head, Status::Completed, &blobs, options.output)?;
            Ok(Some(0))
        }
        Phase::Ended(Ending::Cancelled) => {
            Err(Failure::usage(format!("{} was cancelled", run.id)).code(8).hint(format!(
                "start a new run with `{}`",
                StatusSummary::of(&seen.head, Status::Cancelled).next_command
            )))
        }
        // With an edited document it can continue.
        Phase::Ended(Ending::Failed)
            if view::is_final(run) && options.edits != ResumeEdits::Adopt =>
        {
            let place = StatusSummary::of(&seen.head, Status::Failed);
            let message = format!("cannot continue {}: {}", run.id, place.why);
            Err(Failure::usage(message).code(exit_code::of_run(Status::Failed)).hint(format!(
                "it would end in the same way again; {}, then run: {}",
                place.needed_edit.as_deref().unwrap_or("fix the cause"),
                place.next_command
            )))
        }
        Phase::Unborn | Phase::Open | Phase::Stopping(_) | Phase::Ended(_) => Ok(None),
    }
}

/// Ends a run that was asked to cancel and whose owner was killed before it finished.
pub(super) fn end_cancelled(
    project: &Project,
    seen: &Inspection,
    options: &ResumeOptions<'_>,
) -> Result<u8, Failure> {
    let run = &seen.header.run;
    if options.plan {
        seen.check_free(project, options.how.takeover)?;
        return plan_cancelled(&seen.head, options);
    }
    let known = |settings: &Settings| backends::known(project, settings);
    let ending = request::end_cancelled(project, run, options.how.takeover, &known);
    let ended = crate::runtime::runtime()?.block_on(ending);
    ended.map_err(|error| Failure::from(error).naming_run(run))?;
    // Read again: `report_if_over` must see the end that was just recorded.
    let over = report_if_over(project, &runs::look(project, run)?, options)?;
    over.ok_or_else(|| {
        Failure::environment(format!("could not end all processes of the cancelled run {run}"))
            .hint(format!("run raymond status {run} to list them"))
    })
}

/// Prints the plan for such a run: no turn continues.
fn plan_cancelled(head: &Head, options: &ResumeOptions<'_>) -> Result<u8, Failure> {
    let Head { run, ledger, .. } = head;
    if options.output.json {
        let mut plan = Plan::of(run, ledger, &run.settings);
        // The general plan would list running turns as continued, but a cancel ends them.
        plan.open.clear();
        print_json(shapes::plan(&run.id, &plan, None))?;
    } else {
        print_text(&format!(
            "{}: cancel requested; a resume ends the leftover processes\n",
            run.id
        ))?;
    }
    Ok(0)
}

fn call_again(run: &RunId) -> String {
    format!("call the tool again with \"runId\": \"{run}\"")
}

/// Whether a rewound run has nothing more to do here.
pub(super) fn is_done(run: &Run) -> bool {
    let is_final = matches!(run.phase, Phase::Ended(Ending::Completed | Ending::Cancelled));
    is_final || view::is_of_caller(run)
}

fn is_completed(run: &Run) -> bool {
    run.phase == Phase::Ended(Ending::Completed)
}

/// Refuses another number of iterations for an exhausted loop, which is over.
fn check_iterations(head: &Head, options: &ResumeOptions<'_>) -> Result<(), Failure> {
    let Head { run, ledger, .. } = head;
    let Some(most) = options.max_iterations else { return Ok(()) };
    if ledger.exhausted.is_none() || most == run.settings.max_iterations {
        return Ok(());
    }
    // The suggested command must contain the new number of iterations, so it is made from a changed
    // copy.
    let mut anew = run.clone();
    anew.settings.max_iterations = most;
    let why = cause::sentence(run, ledger, Status::Completed, States::AsPinned);
    Err(Failure::usage(format!("{} is completed: {why}", run.id)).hint(format!(
        "start a new run: {}",
        next_command::line(&NextCommand::Start, Takeover::Never, &anew, ledger)
    )))
}

/// Reports a run that cannot continue after a rewind.
pub(super) fn after_rewind(
    project: &Project,
    seen: &Inspection,
    options: &ResumeOptions<'_>,
) -> Result<u8, Failure> {
    if is_left_to_caller(&seen.head.run) {
        return leave_to_caller(project, seen, options);
    }
    report_if_over(project, seen, options).map(Option::unwrap_or_default)
}

/// Leaves a run of the tool to its caller, and takes over the lock of a dead owner on another host.
fn leave_to_caller(
    project: &Project,
    seen: &Inspection,
    options: &ResumeOptions<'_>,
) -> Result<u8, Failure> {
    let Head { run, .. } = &seen.head;
    let status = catch_up(project, &seen.head, options)?;
    if options.output.json {
        let blobs = project.blobs(&project.paths(&run.id));
        result::print_run(&seen.head, &StatusSummary::of(&seen.head, status), &blobs)?;
    }
    crate::say!("raymond: only its caller can continue it: {}", call_again(&run.id));
    Ok(0)
}

/// Updates the state file, and removes the lock of an owner that is gone.
fn catch_up(
    project: &Project,
    head: &Head,
    options: &ResumeOptions<'_>,
) -> Result<Status, Failure> {
    // The holder of a lock may receive SIGUSR1: the runtime handles it.
    let _runtime = crate::runtime::runtime()?;
    let status = view::status(&head.run, view::OwnerState::Gone);
    statefile::refresh(project, head, status, options.how.takeover);
    Ok(status)
}

/// Whether it is an unfinished run of the tool.
fn is_left_to_caller(run: &Run) -> bool {
    view::is_of_caller(run) && !is_completed(run)
}
