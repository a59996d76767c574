//! Recovers the turns that an earlier owner left in flight, and ends its leftover processes.
//!
//! A client that still runs is adopted. A complete answer in the transcript of a dead client is the
//! outcome of its turn. All other processes with a marker of the run are ended, and Raymond waits
//! until they are dead. [`crate::recovery`] turns the findings into inputs.

use std::collections::BTreeSet;
use std::sync::Arc;

use raymond_backends::contract::{Answer, AttachResult, StartedTurn};
use raymond_backends::process::{
    Grace, Identity, Leftover, Marker, OutputFiles, leftovers, release_reserved_space,
    restarted_since,
};
use raymond_core::budget::Cost;
use raymond_core::decide::turn_spec;
use raymond_core::ids::RunId;
use raymond_core::protocol::Source;
use raymond_core::run::effect::in_flight;
use raymond_core::run::outcome::Outcome;
use raymond_core::run::stop::Interruption;
use raymond_core::run::{Header, Input, Run, Settings};
use raymond_core::scheduler::{Lane, Turn};
use raymond_store::lock::Takeover;
use raymond_store::{Blobs, RunPaths, blobs};

use super::{LeftoverClients, OwnError, OwnedRun};
use crate::agent_step::OutputCheck;
use crate::backends::Backends;
use crate::copied_run::check_no_active_copy;
use crate::discard::{DiscardError, check_own};
use crate::inspect::inspect;
use crate::observe::read_answer;
use crate::project::Project;
use crate::recovery::{self, ClientTraces};
use crate::run_lock::take_lock;
use crate::turn_files::{config_home, transcript};

/// What to do with a turn whose transcript cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnreadable {
    /// Record nothing: the transcript may contain the outcome, which must not be paid for twice.
    Refuse,
    /// Give up the turn, with an unknown cost.
    GiveUp,
}

impl OwnedRun {
    /// Returns the first inputs of a new owner: the outcomes of turns in flight, and the resume.
    pub async fn resume_inputs(
        &mut self,
        settings: Settings,
        backends: &Backends,
    ) -> Result<Vec<Input>, OwnError> {
        let reports = self.report_inputs(backends, OnUnreadable::Refuse).await?;
        Ok(recovery::resume_inputs(reports, settings))
    }

    /// Returns the outcomes of turns in flight. Ends the processes that dead clients left behind.
    pub async fn report_inputs(
        &mut self,
        backends: &Backends,
        on_unreadable: OnUnreadable,
    ) -> Result<Vec<Input>, OwnError> {
        let run = &self.head.run;
        let mut left = leftovers::find(&run.nonce);
        let (mut gone, mut answers) = (BTreeSet::new(), Vec::new());
        for turn in in_flight(run) {
            let marker = Marker::of(&run.nonce, turn);
            let mut processes = left.iter().chain(&self.found.ended);
            let has_lived = processes.any(|left| left.marker.as_ref() == Some(&marker));
            let answer = match find_turn(run, &self.paths, turn, backends) {
                AttachResult::Running => continue,
                AttachResult::Ended(answer) => {
                    recovery::with_possible_cost(answer, self.traces(turn, has_lived))
                }
                AttachResult::Unreadable { why } if on_unreadable == OnUnreadable::Refuse => {
                    return Err(OwnError::Unreadable { why });
                }
                // The client may have done and paid for anything.
                AttachResult::Unreadable { .. } => interrupted(Cost::Unknown, true),
            };
            gone.insert(marker);
            answers.push((turn.clone(), answer));
        }
        let mut inputs = Vec::new();
        // In a second loop, so that an unreadable transcript refuses the recovery before a reply is
        // stored.
        for (turn, answer) in answers {
            let (reader, blobs) = (AnswerReader::of(self, &turn), Arc::clone(&self.blobs));
            inputs.push(recovery::settled(&turn, reader.read(answer, &blobs).await?));
        }
        // Processes of clients that still run are not touched: they are adopted.
        left.retain(|left| left.marker.as_ref().is_some_and(|marker| gone.contains(marker)));
        self.found.survivors.extend(leftovers::end(&left, &Grace::default()).await);
        self.found.ended.extend(left);
        for turn in in_flight(run).filter(|turn| gone.contains(&Marker::of(&run.nonce, turn))) {
            // Errors are ignored: reserved space that stays reserved does no other harm.
            let transcript = transcript(&self.paths.transcripts, &turn.id, turn.attempt);
            release_reserved_space(&OutputFiles::for_turn(&transcript)).ok();
        }
        Ok(inputs)
    }

    /// Returns the traces of a client; `has_lived` if processes of it were found.
    fn traces(&self, turn: &Turn, has_lived: bool) -> ClientTraces {
        let transcript = transcript(&self.paths.transcripts, &turn.id, turn.attempt);
        ClientTraces {
            lost_transcript: has_lived && !transcript.exists(),
            // The transcript is better than the journal here: another turn or a stop may have
            // written to the journal since the restart.
            restarted: restarted_since(&transcript).unwrap_or(self.found.restarted),
        }
    }

    /// Checks that the outcome of every turn in flight can be read. Ends and changes nothing.
    pub fn check_readable(&self, backends: &Backends) -> Result<(), OwnError> {
        let run = &self.head.run;
        let unreadable =
            in_flight(run).find_map(|turn| match find_turn(run, &self.paths, turn, backends) {
                AttachResult::Unreadable { why } => Some(OwnError::Unreadable { why }),
                _ => None,
            });
        unreadable.map_or(Ok(()), Err)
    }

    /// Ends the clients that outlived their owner.
    pub async fn end_clients(&mut self) {
        let (left, survivors) = end_leftovers(&self.head.run, LeftoverClients::End).await;
        self.found.ended.extend(left);
        self.found.survivors.extend(survivors);
    }
}

fn interrupted(cost: Cost, progressed: bool) -> Answer {
    Outcome::Interrupted { by: Interruption::Crash, cost, progressed, session: None }
}

/// How the answer of a turn is read. It borrows nothing from the run, because checking the output
/// of a step may take long.
enum AnswerReader {
    /// The text has tags.
    Tags { source: Source, cwd: String },
    /// The text is the output of a step. Without the step there is no schema to check it.
    Output(Option<OutputCheck>),
}

impl AnswerReader {
    fn of(owned: &OwnedRun, turn: &Turn) -> Self {
        let run = &owned.head.run;
        if !run.program.reads_tags() {
            return Self::Output(output_check(owned, turn));
        }
        let cwd = run.agents.get(&turn.id.agent).map_or("/", |agent| agent.cwd.as_str());
        Self::Tags { source: run.program.messages(), cwd: cwd.to_owned() }
    }

    async fn read(self, answer: Answer, blobs: &Blobs) -> Result<Outcome, blobs::Error> {
        match self {
            Self::Tags { source, cwd } => read_answer(answer, source, cwd.as_ref(), blobs),
            Self::Output(Some(check)) => check.outcome(blobs, answer).await,
            Self::Output(None) => {
                // A reply that cannot be checked counts as interrupted, so that the step is asked
                // again. The program of an `exec` step has no reply, and stays free.
                Ok(match answer {
                    Outcome::Finished(_) => interrupted(Cost::Unknown, true).unread(),
                    unfinished => unfinished.unread(),
                })
            }
        }
    }
}

/// Returns the check for the answer of a turn that an earlier owner started.
fn output_check(owned: &OwnedRun, turn: &Turn) -> Option<OutputCheck> {
    let spec = turn_spec(&owned.head.run, &owned.definition, turn)?;
    OutputCheck::of(spec.prompt()?, &owned.schemas)
}

/// Finds out what became of a turn whose owner is dead. Changes nothing.
pub fn find_turn(run: &Run, paths: &RunPaths, turn: &Turn, backends: &Backends) -> AttachResult {
    let absent = |cost| AttachResult::without_answer(cost, false, None);
    // A script never outlives its owner, and it costs nothing.
    let Lane::Prompt(name) = &turn.lane else { return absent(Cost::Free) };
    let former = backends.former(name);
    let is_replaced = former.is_some();
    let (Some(backend), Some(plan)) = (former.or_else(|| backends.get(name)), turn.current.clone())
    else {
        return absent(Cost::Unknown);
    };
    let found = backend.attach(&StartedTurn {
        nonce: run.nonce.clone(),
        turn: turn.id.clone(),
        attempt: turn.attempt,
        plan,
        transcript: transcript(&paths.transcripts, &turn.id, turn.attempt),
        timeout: None,
        idle_timeout: None,
        cap: None,
        config_home: config_home(run.settings.config_home, &paths.homes, &turn.id.agent),
    });
    match found {
        // The user has replaced the backend, so this client is not adopted: it is ended, and the
        // new backend answers the turn.
        AttachResult::Running if is_replaced => absent(Cost::Unknown),
        found => found,
    }
}

/// Checks that this project may end the leftover processes of a run: its directory is not a link to
/// another project, and no process drives a copy of it.
pub fn check_endable(project: &Project, header: &Header) -> Result<(), DiscardError> {
    check_own(project, &header.run)?;
    Ok(check_no_active_copy(project, header)?)
}

/// Ends the leftover processes of a run without an owner, and records nothing. Returns the leftover
/// processes, and those of them that did not end.
pub async fn end_leftover_processes(
    project: &Project,
    run: &RunId,
) -> Result<(Vec<Leftover>, Vec<Identity>), DiscardError> {
    check_own(project, run)?;
    // The lock is held while processes are ended: a process that resumes the run now would adopt
    // some of them.
    let lock = take_lock(project, &project.paths(run), Takeover::Never)?;
    let seen = inspect(project, run)?;
    check_no_active_copy(project, &seen.header)?;
    let ended = end_leftovers(&seen.head.run, LeftoverClients::End).await;
    drop(lock);
    Ok(ended)
}

/// Ends the leftover processes that are not adopted.
pub(super) async fn end_leftovers(
    run: &Run,
    clients: LeftoverClients,
) -> (Vec<Leftover>, Vec<Identity>) {
    let adoptable: BTreeSet<Marker> = match clients {
        LeftoverClients::End => BTreeSet::new(),
        LeftoverClients::Adopt => in_flight(run)
            // Scripts are never adopted: they run again.
            .filter(|turn| turn.lane != Lane::Script)
            .map(|turn| Marker::of(&run.nonce, turn))
            .collect(),
    };
    let mut found = leftovers::find(&run.nonce);
    found.retain(|left| !left.marker.as_ref().is_some_and(|marker| adoptable.contains(marker)));
    let survivors = leftovers::end(&found, &Grace::default()).await;
    (found, survivors)
}

#[cfg(test)]
mod tests;
