//! `raymond stop` and `raymond cancel`: ask a run to end, and wait until it has.

use raymond_core::decide::Refusal;
use raymond_core::ids::{AgentId, RunId};
use raymond_core::run::stop::StopMode;
use raymond_core::run::{Ending, Phase};
use raymond_core::view::{OwnerState, Status, status as status_of};
use raymond_engine::owned::{OwnError, end_leftover_processes};
use raymond_engine::request::{self, AgentCancellation, RequestError, StopOutcome};
use raymond_store::lock::Owner as Process;

use crate::args::{Cancel, Stop};
use crate::failure::{Failure, LOCKED};
use crate::status_summary::StatusSummary;
use crate::suspended_owner;
use crate::{backends, runs};

use super::{result, resume};

pub(crate) fn stop(flags: &Stop) -> Result<u8, Failure> {
    let mode = if flags.after_turn { StopMode::AfterTurn } else { StopMode::Now };
    ask(&flags.run, mode, Ending::Stopped, flags.json)
}

pub(crate) fn cancel(flags: &Cancel) -> Result<u8, Failure> {
    if let Some(agent) = &flags.agent {
        return cancel_agent(flags, &AgentId::from(agent.as_str()));
    }
    ask(&flags.run, StopMode::Cancel, Ending::Cancelled, flags.json)
}

fn ask(wanted: &str, mode: StopMode, ending: Ending, as_json: bool) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::find(&project, wanted)?;
    let seen = runs::look(&project, &run)?;
    let answered = match seen.head.run.phase {
        // An ended run takes no request, but its owner may have been killed before it ended all
        // processes.
        before @ Phase::Ended(was) if was == Ending::Completed || was == ending => {
            resume::end_leftover_processes(&project, &seen)?;
            StopOutcome::Ended(before)
        }
        _ => {
            let runtime = crate::runtime::runtime()?;
            let stopped = runtime.block_on(request::stop(&project, &run, mode, &|settings| {
                backends::known(&project, settings)
            }));
            stopped.map_err(|error| {
                if let RequestError::Suspended(owner) = &error {
                    return suspended(&run, mode, owner);
                }
                // The request cannot be recorded, but leftover processes can be ended anyway. Only
                // an unreadable transcript is different: its client may still finish, and the file
                // may become readable again.
                let is_refused = matches!(error, RequestError::Own(OwnError::Unreadable { .. }));
                if !is_refused
                    && let Ok((left, survivors)) =
                        runtime.block_on(end_leftover_processes(&project, &run))
                {
                    resume::report_leftovers(&left, &survivors);
                }
                Failure::from(error).naming_run(&run)
            })?
        }
    };
    // Read again: the owner, or `request::stop` in its place, has recorded the end meanwhile.
    let head = runs::look(&project, &run)?.head;
    let status = status_of(&head.run, OwnerState::Gone);
    match answered {
        StopOutcome::Ended(phase) if phase == Phase::Ended(ending) => {
            if as_json {
                let blobs = project.blobs(&project.paths(&run));
                result::print_run(&head, &StatusSummary::of(&head, status), &blobs)?;
            }
            crate::say!("{run}: {status}");
            Ok(0)
        }
        StopOutcome::Ended(_) | StopOutcome::Refused(_)
            if matches!(status, Status::Waiting(..)) =>
        {
            let message = format!("{run} is {status}, and no process drives it");
            Err(Failure::usage(message)
                .hint(format!("raymond why {run}; to end it for good: raymond cancel {run}")))
        }
        StopOutcome::Ended(_) | StopOutcome::Refused(_) => {
            Err(Failure::usage(format!("{run} had already ended: {status}"))
                .hint(format!("raymond why {run}")))
        }
    }
}

/// Cancels one worker, and waits until it has left the run.
fn cancel_agent(flags: &Cancel, agent: &AgentId) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::find(&project, &flags.run)?;
    runs::look(&project, &run)?;
    let by = super::login_name();
    let request = AgentCancellation { agent, by: &by };
    let runtime = crate::runtime::runtime()?;
    let asked = runtime.block_on(request::cancel_agent(&project, &run, request, &|settings| {
        backends::known(&project, settings)
    }));
    let refused = asked.map_err(|error| match &error {
        RequestError::Suspended(owner) => suspended(&run, StopMode::Cancel, owner),
        _ => Failure::from(error).naming_run(&run),
    })?;
    match refused {
        None => {}
        Some(Refusal::OnlyWorkers(_)) => {
            return Err(Failure::usage(format!(
                "could not cancel `{agent}`: only workers can be cancelled"
            ))
            .hint(format!("to end the run: raymond cancel {run}")));
        }
        Some(Refusal::NoSuchAgent(_)) => {
            return Err(Failure::usage(format!(
                "could not cancel `{agent}`: `{run}` has no live or failed agent with this name"
            ))
            .hint(format!("raymond status {run} lists the agents")));
        }
        Some(refusal) => {
            return Err(Failure::usage(format!("could not cancel `{agent}`: {refusal}"))
                .hint(format!("raymond why {run}")));
        }
    }
    let seen = runs::look(&project, &run)?;
    let summary = StatusSummary::seen(&project, &seen);
    if flags.json {
        result::print_run(&seen.head, &summary, &project.blobs(&project.paths(&run)))?;
    }
    crate::say!("{run}: {agent} is cancelled");
    if summary.status.is_unfinished() && seen.owner.is_none() {
        crate::say!("→ {}", summary.advice());
    }
    Ok(0)
}

/// The failure for a suspended owner, which does not read the request until someone continues it.
fn suspended(run: &RunId, mode: StopMode, owner: &Process) -> Failure {
    let verb = match mode {
        StopMode::Now | StopMode::AfterTurn => "stop",
        StopMode::Cancel => "cancel",
    };
    let message = format!("could not {verb} {run}: {}", suspended_owner::describe(owner));
    Failure::environment(message).code(LOCKED).hint(format!(
        "continue the owner with `{}`, or `fg` in its terminal; the owner then ends the run",
        suspended_owner::continue_command(owner)
    ))
}
