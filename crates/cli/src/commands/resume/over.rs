//! Runs that do not go on: they are over, or only their caller goes on with them.

use raymond_core::ids::RunId;
use raymond_core::run::{Ending, Phase, Program, Ralph, Run, Settings};
use raymond_core::view::{self, Plan, States, Status};
use raymond_engine::driver::Head;
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;
use raymond_engine::{request, statefile};
use raymond_store::lock::Takeover;

use crate::console::Said;
use crate::failure::Failure;
use crate::place::Place;
use crate::{backends, json as shapes, runs};

use super::super::report::report;
use super::super::{print_json, print_out, result};
use super::{Wish, end_strays};

/// A run that is over prints its result, or is refused.
pub(super) fn is_over(
    project: &Project,
    seen: &Inspection,
    wish: &Wish<'_>,
) -> Result<Option<u8>, Failure> {
    let run = &seen.head.run;
    if is_left_to_caller(run) {
        let takes_over = wish.how.takeover == Takeover::OtherHost && !wish.plan;
        if takes_over && seen.driven_elsewhere().is_some() {
            return let_go(project, seen, wish).map(Some);
        }
        let message = format!("{} is a run of the tool crayfish: only its caller goes on", run.id);
        return Err(Failure::usage(message).hint(call_again(&run.id)));
    }
    if matches!(run.phase, Phase::Ended(_)) && !wish.plan {
        end_strays(project, seen)?;
        catch_up(project, &seen.head, wish)?;
    }
    match run.phase {
        Phase::Ended(Ending::Completed) => {
            check_iterations(&seen.head, wish)?;
            let blobs = project.blobs(&project.paths(&run.id));
            report(&seen.head, Status::Completed, &blobs, &Said::nothing(wish.talk))?;
            Ok(Some(0))
        }
        Phase::Ended(Ending::Cancelled) => {
            Err(Failure::usage(format!("{} was cancelled, which is final", run.id)).code(8).hint(
                format!(
                    "start anew with `{}`",
                    Place::of(&seen.head, Status::Cancelled).next_command
                ),
            ))
        }
        Phase::Ended(Ending::Failed) if view::is_final(run) => {
            let place = Place::of(&seen.head, Status::Failed);
            let message = format!("{} cannot go on: {}", run.id, place.why);
            Err(Failure::usage(message).code(Status::Failed.exit_code()).hint(format!(
                "it would end in the same way again; mend the document, and start anew: {}",
                place.next_command
            )))
        }
        Phase::Unborn | Phase::Open | Phase::Stopping(_) | Phase::Ended(_) => Ok(None),
    }
}

/// A run that was asked to cancel does not go on: what its owner did not live to end is ended.
pub(super) fn end_cancelled(
    project: &Project,
    seen: &Inspection,
    wish: &Wish<'_>,
) -> Result<u8, Failure> {
    let run = &seen.header.run;
    if wish.plan {
        seen.check_free(project, wish.how.takeover)?;
        return plan_cancelled(&seen.head, wish);
    }
    let known = |settings: &Settings| backends::known(project, settings);
    let ending = request::end_cancelled(project, run, wish.how.takeover, &known);
    let ended = crate::runtime()?.block_on(ending);
    ended.map_err(|error| Failure::from(error).about(run))?;
    let over = is_over(project, &runs::look(project, run)?, wish)?;
    over.ok_or_else(|| {
        Failure::environment(format!("{run} was asked to cancel, and what was left did not end"))
            .hint(format!("raymond status {run} shows it"))
    })
}

/// `--plan` of such a run: no turn goes on.
fn plan_cancelled(head: &Head, wish: &Wish<'_>) -> Result<u8, Failure> {
    let Head { run, ledger, .. } = head;
    if wish.talk.json {
        let mut plan = Plan::of(run, ledger, &run.settings);
        plan.open.clear();
        print_json(shapes::plan(&run.id, &plan, None))?;
    } else {
        print_out(&format!("{}: was asked to cancel: what was left is ended\n", run.id))?;
    }
    Ok(0)
}

fn call_again(run: &RunId) -> String {
    format!("call the tool again with \"runId\": \"{run}\"")
}

/// Whether a run that was cut has nothing more to do here.
pub(super) fn is_done(run: &Run) -> bool {
    let is_final = matches!(run.phase, Phase::Ended(Ending::Completed | Ending::Cancelled));
    is_final || view::is_of_caller(run)
}

fn is_completed(run: &Run) -> bool {
    run.phase == Phase::Ended(Ending::Completed)
}

/// A loop that had enough is over: more iterations are another loop.
fn check_iterations(head: &Head, wish: &Wish<'_>) -> Result<(), Failure> {
    let Head { run, ledger, .. } = head;
    let (Some(most), Some(ralph)) = (wish.max_iterations, run.settings.program.ralph()) else {
        return Ok(());
    };
    if ledger.exhausted.is_none() || most == ralph.max_iterations {
        return Ok(());
    }
    let mut anew = run.clone();
    let program = Ralph { max_iterations: most, ..ralph.clone() };
    anew.settings.program = Program::Ralph(program);
    let why = view::why(run, ledger, Status::Completed);
    Err(Failure::usage(format!("{} is completed: {why}", run.id))
        .hint(format!("begin anew: {}", view::Command::Run.line(&anew, ledger, States::AsPinned))))
}

/// A run that does not go on from here, although something was cut away of it.
pub(super) fn after_cut(
    project: &Project,
    seen: &Inspection,
    wish: &Wish<'_>,
) -> Result<u8, Failure> {
    if is_left_to_caller(&seen.head.run) {
        return let_go(project, seen, wish);
    }
    is_over(project, seen, wish).map(Option::unwrap_or_default)
}

/// Leaves a run of the tool to its caller, with nobody else in the way.
fn let_go(project: &Project, seen: &Inspection, wish: &Wish<'_>) -> Result<u8, Failure> {
    let Head { run, .. } = &seen.head;
    let status = catch_up(project, &seen.head, wish)?;
    if wish.talk.json {
        let blobs = project.blobs(&project.paths(&run.id));
        result::print_run(&seen.head, &Place::of(&seen.head, status), &blobs)?;
    }
    crate::say!("raymond: only its caller goes on: {}", call_again(&run.id));
    Ok(0)
}

/// Brings the state file up to date, and takes away a lock that nobody holds any more.
fn catch_up(project: &Project, head: &Head, wish: &Wish<'_>) -> Result<Status, Failure> {
    // Whoever holds a lock may be poked.
    let _runtime = crate::runtime()?;
    let status = view::status(&head.run, view::Owner::Gone);
    statefile::refresh(project, head, status, wish.how.takeover);
    Ok(status)
}

/// Whether it is a run of the tool that has not come to its end.
fn is_left_to_caller(run: &Run) -> bool {
    view::is_of_caller(run) && !is_completed(run)
}
