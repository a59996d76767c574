//! Asks a run to end, with or without an owner.
//!
//! A living owner finds the request in its inbox and answers through the journal, which this
//! process follows. If the run has no owner, this process becomes the owner, records the stop and
//! gives the run up again. Requests carry a key, so that repeating one has no effect.

use std::sync::Arc;
use std::time::{Duration, Instant};

use raymond_core::decide::{Refusal, check_answer, check_cancellation};
use raymond_core::ids::{AgentId, RunId, TurnId};
use raymond_core::run::stop::{StopMode, StopOrigin};
use raymond_core::run::{Input, Phase, Run, Settings};
use raymond_core::value::Value;
use raymond_core::view;
use raymond_store::disk::DiskErrorKind;
use raymond_store::host::{Life, ThisHost};
use raymond_store::lock::{Owner, Takeover};
use raymond_store::{Inbox, Journal, Lock, inbox, journal, lock};
use rustix::process::{Pid, Signal, kill_process};

use crate::backends::Backends;
use crate::clock;
use crate::driver::{Driver, DriverError, RecordOnly};
use crate::fold::{self, FoldError};
use crate::inspect::{InspectError, check_here, inspect, owner, owner_and_life};
use crate::observe::with_stored_answer;
use crate::owned::{LeftoverClients, OnUnreadable, OpenOptions, OwnError, OwnedRun};
use crate::project::Project;
use crate::recovery;
use crate::statefile;
use crate::stop_key::stop_key;
use crate::suspension::Suspension;

/// The time between two reads of the journal: short enough that a user does not notice the wait.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The backends that may know what became of a turn in flight.
pub type Known<'a> = &'a dyn Fn(&Settings) -> Backends;

/// The most polls for the exit of the owner after its run has ended: half a minute at
/// [`POLL_INTERVAL`]. A caller may want to own the run next, but an owner that hangs must not block
/// it.
const MOST_EXIT_POLLS: u32 = 600;

/// The most tries for the lock of a run that another process is just about to own: two seconds at
/// [`POLL_INTERVAL`].
const MOST_LOCK_TRIES: u32 = 40;

/// The answer to a stop request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopOutcome {
    /// The run has ended, in this phase.
    Ended(Phase),
    /// The run had already ended.
    Refused(Refusal),
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error(transparent)]
    Inbox(#[from] inbox::Error),
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    Own(#[from] OwnError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error(transparent)]
    Lock(#[from] lock::Error),
    /// The owner is suspended. It finds the request in its inbox when it continues.
    #[error("its owner, process {}, is suspended", .0.process.pid)]
    Suspended(Box<Owner>),
}

/// Asks a run to end, and waits until it has ended.
///
/// A run whose owner is on another host is refused, because this process cannot see whether that
/// owner lives. A suspended owner is asked, but not waited for.
pub async fn stop(
    project: &Project,
    run: &RunId,
    mode: StopMode,
    backends: Known<'_>,
) -> Result<StopOutcome, RequestError> {
    let key = stop_key(mode);
    let (mut tries, never) = (MOST_LOCK_TRIES, Takeover::Never);
    loop {
        check_here(project, run)?;
        match owner(project, run)? {
            Some(_) => {
                let waited = ask_owner(project, run, mode, &key).await;
                // A suspended owner still has to read the request. In all other cases it is
                // removed, so that it does not stop the next owner.
                if !matches!(waited, Err(RequestError::Suspended(_))) {
                    inbox(project, run).remove(&key).ok();
                }
                match waited? {
                    // The run began to wait without an owner before its owner read the request. The
                    // next round records it.
                    Some(Phase::Ended(ending))
                        if ending.is_wait() && owner(project, run)?.is_none() => {}
                    Some(phase) => return Ok(StopOutcome::Ended(phase)),
                    // The owner died without answering: the next round stops the run without an
                    // owner.
                    None => {}
                }
            }
            None => match stop_without_owner(
                project,
                run,
                StopRequest { mode, key: &key },
                never,
                backends,
            )
            .await
            {
                // Another process has just become the owner. The next round asks that owner.
                Err(RequestError::Own(OwnError::Lock(lock::Error::Held {
                    owner: Some(_),
                    ..
                }))) if tries > 0 => {
                    tries -= 1;
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                answered => return answered,
            },
        }
    }
}

/// The request to cancel one agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentCancellation<'a> {
    pub agent: &'a AgentId,
    /// The name of the user.
    pub by: &'a str,
}

/// Cancels one agent, and waits until it has left the run. Returns why the run refused it.
///
/// A run whose owner died is stopped, as by [`stop`]: nothing else may record the ends of its
/// turns.
pub async fn cancel_agent(
    project: &Project,
    run: &RunId,
    request: AgentCancellation<'_>,
    backends: Known<'_>,
) -> Result<Option<Refusal>, RequestError> {
    let AgentCancellation { agent, by } = request;
    let key = format!("cancel-agent_{}", clock::nonce());
    let input = Input::CancelAgent { agent: agent.clone(), by: by.to_owned(), key: key.clone() };
    let delivery = Delivery {
        input: &input,
        key: &key,
        check: &|run| check_cancellation(run, agent),
        is_done: &|run| {
            !run.agents.contains_key(agent) && !agent.has_descendant_in(&run.cancelling)
        },
    };
    deliver(project, run, delivery, backends).await
}

/// The answer to a question.
#[derive(Debug, Clone, Copy)]
pub struct AnswerRequest<'a> {
    /// The id of the question.
    pub ask: &'a TurnId,
    pub text: &'a str,
    /// The name of the user.
    pub by: &'a str,
}

/// Answers a question, and waits until the answer is recorded. Returns why the run refused it.
///
/// A run whose owner died is stopped, as by [`cancel_agent`].
pub async fn answer(
    project: &Project,
    run: &RunId,
    request: AnswerRequest<'_>,
    backends: Known<'_>,
) -> Result<Option<Refusal>, RequestError> {
    let AnswerRequest { ask, text, by } = request;
    let key = format!("answer_{}", clock::nonce());
    let value = Value::Inline(text.to_owned());
    let input = Input::Answer {
        ask: ask.clone(),
        value: value.clone(),
        by: by.to_owned(),
        key: key.clone(),
    };
    // The inbox has this limit, and an answer without an owner should have the same.
    let length = serde_json::to_vec(&input).expect("a request is plain data").len();
    if length as u64 > inbox::MAX_REQUEST_BYTES {
        return Ok(Some(Refusal::LongAnswer(ask.agent.clone())));
    }
    let delivery = Delivery {
        input: &input,
        key: &key,
        check: &|run| check_answer(run, ask, &value, clock::now()),
        is_done: &|_| true,
    };
    deliver(project, run, delivery, backends).await
}

/// A request about one agent.
#[derive(Clone, Copy)]
struct Delivery<'a> {
    input: &'a Input,
    key: &'a str,
    /// Returns why the run refuses it.
    check: &'a dyn Fn(&Run) -> Result<(), Refusal>,
    /// Returns whether its effect is complete, once the request is recorded.
    is_done: &'a dyn Fn(&Run) -> bool,
}

/// Delivers a request to the owner, or records it without one. Returns why the run refused it.
async fn deliver(
    project: &Project,
    run: &RunId,
    delivery: Delivery<'_>,
    backends: Known<'_>,
) -> Result<Option<Refusal>, RequestError> {
    let Delivery { input, key, check, is_done } = delivery;
    let mut tries = MOST_LOCK_TRIES;
    loop {
        check_here(project, run)?;
        let seen = inspect(project, run)?.head.run;
        let is_recorded = seen.keys.contains(key);
        if is_recorded && is_done(&seen) {
            return Ok(None);
        }
        // Checked here, too, because the journal does not contain refused requests.
        if !is_recorded && let Err(refusal) = check(&seen) {
            return Ok(Some(refusal));
        }
        if owner(project, run)?.is_none() {
            match record_without_owner(project, run, input, backends).await {
                // Another process has just become the owner. The next round asks that owner.
                Err(RequestError::Own(OwnError::Lock(lock::Error::Held { .. }))) if tries > 0 => {
                    tries -= 1;
                    tokio::time::sleep(POLL_INTERVAL).await;
                    continue;
                }
                recorded => return recorded,
            }
        }
        let waited = ask_owner_for(project, run, delivery).await;
        // Also of a suspended owner: the user reads that the request has failed.
        inbox(project, run).remove(key).ok();
        if waited? {
            return Ok(None);
        }
        // The run has ended, but its owner may live a little longer.
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Asks the owner until the effect of the request is complete. Returns whether it is: the owner may
/// die, end the run, or refuse the request.
async fn ask_owner_for(
    project: &Project,
    run: &RunId,
    delivery: Delivery<'_>,
) -> Result<bool, RequestError> {
    let Delivery { input, key, check, is_done } = delivery;
    let json = serde_json::to_vec(input).expect("a request is plain data");
    let ballast = project.root.ballast(Arc::clone(&project.disk));
    let mut suspension = Suspension::default();
    let mut pauses = 0_u32;
    loop {
        let found = owner_and_life(project, run)?;
        let seen = inspect(project, run)?.head.run;
        let is_recorded = seen.keys.contains(key);
        if is_recorded && is_done(&seen) {
            return Ok(true);
        }
        let Some((owner, life)) = found else { return Ok(false) };
        if matches!(seen.phase, Phase::Ended(_)) || !is_recorded && check(&seen).is_err() {
            return Ok(false);
        }
        if suspension.is_news(life, Instant::now()) {
            return Err(RequestError::Suspended(Box::new(owner)));
        }
        // As in `ask_owner`: a new owner removes requests to the owner before it.
        if pauses.is_multiple_of(20) && !is_recorded {
            inbox(project, run).post_despite_full_disk(key, &json, &ballast)?;
            wake_owner(project, run);
        }
        pauses += 1;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn record_without_owner(
    project: &Project,
    run: &RunId,
    input: &Input,
    backends: Known<'_>,
) -> Result<Option<Refusal>, RequestError> {
    let how = OpenOptions {
        takeover: Takeover::Never,
        truncate_to: None,
        clients: LeftoverClients::Adopt,
    };
    let mut owned = OwnedRun::open(project, run, how, None).await?;
    let mut inputs = Vec::new();
    if !matches!(owned.head.run.phase, Phase::Ended(_)) {
        let backends = backends(&owned.head.run.settings);
        owned.check_readable(&backends)?;
        owned.end_clients().await;
        let reports = owned.report_inputs(&backends, OnUnreadable::Refuse).await?;
        let (mode, key) = (StopMode::Now, stop_key(StopMode::Now));
        inputs = recovery::stop_inputs(&owned.head.run, reports, mode, &key, &key);
    }
    // Before the end of the run, so that a turn in flight is already charged.
    inputs.push(with_stored_answer(input.clone(), &owned.blobs));
    let OwnedRun { head, definition, journal, lock, paths, .. } = owned;
    let mut driver = Driver::new(head, definition, journal, RecordOnly);
    let verdict = driver.handle(clock::now(), inputs)?.pop();
    let status = view::status(driver.run(), view::OwnerState::Gone);
    // The answer is in the journal; the state file is only derived from it.
    statefile::write(project.disk.as_ref(), &paths.state, driver.head(), status).ok();
    drop(lock);
    Ok(verdict.and_then(Result::err))
}

/// Ends a run whose owner died while it was cancelling.
pub async fn end_cancelled(
    project: &Project,
    run: &RunId,
    takeover: Takeover,
    backends: Known<'_>,
) -> Result<StopOutcome, RequestError> {
    let key = stop_key(StopMode::Cancel);
    stop_without_owner(
        project,
        run,
        StopRequest { mode: StopMode::Cancel, key: &key },
        takeover,
        backends,
    )
    .await
}

fn inbox(project: &Project, run: &RunId) -> Inbox {
    Inbox::new(Arc::clone(&project.disk), project.paths(run).inbox)
}

fn post(project: &Project, run: &RunId, mode: StopMode, key: &str) -> Result<(), RequestError> {
    let request = Input::Stop { mode, by: StopOrigin::Command, key: key.to_owned() };
    let json = serde_json::to_vec(&request).expect("a request is plain data");
    let ballast = project.root.ballast(Arc::clone(&project.disk));
    inbox(project, run).post_despite_full_disk(key, &json, &ballast)?;
    Ok(())
}

/// Signals the owner to read its inbox now instead of at its next tick.
fn wake_owner(project: &Project, run: &RunId) {
    // A process id may belong to another program by now, and SIGUSR1 kills most programs. Only a
    // process that is known to be the owner is signalled.
    let found = Lock::owner(project.disk.as_ref(), &ThisHost, &project.paths(run).lock);
    if let Ok(Some((owner, life))) = found
        && life.is_here()
        && let Some(pid) = i32::try_from(owner.process.pid).ok().and_then(Pid::from_raw)
    {
        kill_process(pid, Signal::USR1).ok();
    }
}

/// Asks the owner until the journal contains the request, and waits until the run has ended. A new
/// owner removes requests to the owner before it, so one request may not be enough.
async fn ask_owner(
    project: &Project,
    run: &RunId,
    mode: StopMode,
    key: &str,
) -> Result<Option<Phase>, RequestError> {
    // The request is repeated once a second: every 20 polls.
    const PAUSES: u32 = 20;
    let mut pauses = 0;
    let mut ask = |seen: &Run| {
        if pauses % PAUSES == 0 && !seen.keys.contains(key) {
            post(project, run, mode, key)?;
            wake_owner(project, run);
        }
        pauses += 1;
        Ok(())
    };
    let mut give_up = |owner: Owner| Err(RequestError::Suspended(Box::new(owner)));
    wait_with(project, run, WaitHooks { each_look: &mut ask, suspended: &mut give_up }).await
}

/// Waits until the run has ended. Returns `None` if its owner died before that. A suspended owner
/// is reported to `suspended` and waited for.
pub async fn wait(
    project: &Project,
    run: &RunId,
    suspended: &mut dyn FnMut(&Owner),
) -> Result<Option<Phase>, RequestError> {
    let mut report = |owner: Owner| {
        suspended(&owner);
        Ok(())
    };
    wait_with(project, run, WaitHooks { each_look: &mut |_| Ok(()), suspended: &mut report }).await
}

/// The reactions of a waiting process.
struct WaitHooks<'a> {
    each_look: &'a mut dyn FnMut(&Run) -> Result<(), RequestError>,
    suspended: &'a mut dyn FnMut(Owner) -> Result<(), RequestError>,
}

async fn wait_with(
    project: &Project,
    run: &RunId,
    meanwhile: WaitHooks<'_>,
) -> Result<Option<Phase>, RequestError> {
    let mut seen = inspect(project, run)?;
    let path = project.paths(run).journal;
    let mut exit_polls = 0;
    let mut suspension = Suspension::default();
    loop {
        let owner = owner_and_life(project, run)?;
        let gone = owner.is_none();
        let suspended = matches!(owner, Some((_, Life::Suspended)));
        if let Phase::Ended(_) = seen.head.run.phase {
            if gone
                || suspended
                || exit_polls >= MOST_EXIT_POLLS
                || check_here(project, run).is_err()
            {
                return Ok(Some(seen.head.run.phase));
            }
            // The caller may want to own the run next, so wait until the owner has released the
            // lock.
            exit_polls += 1;
        }
        let lines = Journal::follow(project.disk.as_ref(), &path, &mut seen.journal.cursor)?;
        for line in lines.iter() {
            seen.head.fold(&fold::record(line.body, line.seq)?);
        }
        // The owner was read before the journal, so a dead owner has written nothing after these
        // lines.
        if gone && lines.is_empty() {
            return Ok(None);
        }
        (meanwhile.each_look)(&seen.head.run)?;
        if let Some((owner, life)) = owner
            && suspension.is_news(life, Instant::now())
        {
            (meanwhile.suspended)(owner)?;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// A request to end a run.
#[derive(Clone, Copy)]
struct StopRequest<'a> {
    mode: StopMode,
    key: &'a str,
}

async fn stop_without_owner(
    project: &Project,
    run: &RunId,
    request: StopRequest<'_>,
    takeover: Takeover,
    backends: Known<'_>,
) -> Result<StopOutcome, RequestError> {
    let StopRequest { mode, key } = request;
    let how = OpenOptions { takeover, truncate_to: None, clients: LeftoverClients::Adopt };
    let mut owned = match OwnedRun::open(project, run, how, None).await {
        Err(OwnError::Lock(lock::Error::Disk(error))) if error.kind() == DiskErrorKind::Full => {
            // The lock file needs space for the owner. The stop is worth the ballast.
            project.root.ballast(Arc::clone(&project.disk)).free().ok();
            OwnedRun::open(project, run, how, None).await?
        }
        opened => opened?,
    };
    let backends = backends(&owned.head.run.settings);
    let on_unreadable = match mode {
        StopMode::Now | StopMode::AfterTurn => OnUnreadable::Refuse,
        // A cancelled run is never resumed, so an outcome that cannot be read is not needed.
        StopMode::Cancel => OnUnreadable::GiveUp,
    };
    // Checked before clients are ended: a refusal must leave everything as it was.
    if on_unreadable == OnUnreadable::Refuse {
        owned.check_readable(&backends)?;
    }
    owned.end_clients().await;
    let reports = owned.report_inputs(&backends, on_unreadable).await?;
    let new_key = clock::nonce().to_string();
    let inputs = recovery::stop_inputs(&owned.head.run, reports, mode, key, &new_key);
    let OwnedRun { head, definition, journal, lock, paths, .. } = owned;
    let mut driver = Driver::new(head, definition, journal, RecordOnly);
    let verdict = driver.handle(clock::now(), inputs)?.pop();
    let phase = driver.run().phase;
    let status = view::status(driver.run(), view::OwnerState::Gone);
    // The answer is in the journal; the state file is only derived from it.
    statefile::write(project.disk.as_ref(), &paths.state, driver.head(), status).ok();
    drop(lock);
    match verdict {
        Some(Err(refusal)) => Ok(StopOutcome::Refused(refusal)),
        Some(Ok(())) | None => Ok(StopOutcome::Ended(phase)),
    }
}

#[cfg(test)]
mod tests;
