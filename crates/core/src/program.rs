//! The decisions that differ between the languages of a run.
//!
//! A run asks its program here how it begins, what follows from a finished or failed turn, what it
//! does without any input, and how a failed agent is revived. Each answer is in the module of its
//! language: [`crate::machine`] for states and loops, [`crate::steps`] for documents. Queues,
//! slots, budget shares and retries are the same for all of them and are decided in
//! [`crate::decide`]. Other code asks for the language only to choose words, commands and files.

use crate::agent::{Agent, PendingTransition, Session};
use crate::crayfish::name::StepId;
use crate::failure::{AgentFailure, TurnFailure};
use crate::ids::AgentId;
use crate::machine::{self, ralph, revival, states};
use crate::protocol::ResultStatus;
use crate::run::decision::{Decision, EndedTurn, VisitEntry};
use crate::run::event::{Ending, Event};
use crate::run::outcome::Finished;
use crate::run::program::Program;
use crate::run::state::Run;
use crate::run::turn_spec::Work;
use crate::scheduler::Turn;
use crate::steps;
use crate::value::Value;
use crate::workflow::Definition;

/// Lets `main` begin.
pub(crate) fn begin(decision: &mut Decision<'_>, main: &AgentId, input: Option<Value>) {
    match &decision.run.program {
        Program::States | Program::Ralph(_) => decision.enter(VisitEntry {
            agent: main,
            state: &decision.definition.entry,
            visit: 1,
            count: 1,
            input,
            result_status: ResultStatus::Ok,
            session: &Session::Fresh,
        }),
        Program::Steps(_) => steps::decide::begin(decision, main),
    }
}

/// Decides what follows from a turn that ended with a text and was charged.
pub(crate) fn finished(
    decision: &mut Decision<'_>,
    ended: &EndedTurn<'_>,
    session: &Session,
    outcome: &Finished,
) {
    match &decision.run.program {
        Program::States => states::finished(decision, ended, session, outcome),
        Program::Ralph(ralph) => ralph::finished(decision, ralph, ended.agent, outcome),
        Program::Steps(_) => steps::decide::finished(decision, ended.agent, session, outcome),
    }
}

/// Decides what follows from a failed script, or from the failed program of a step.
pub(crate) fn script_failed(
    decision: &mut Decision<'_>,
    ended: &EndedTurn<'_>,
    failure: &TurnFailure,
) {
    match &decision.run.program {
        Program::States | Program::Ralph(_) => {
            fail(decision, ended.agent, AgentFailure::Turn(failure.clone()));
        }
        Program::Steps(_) => steps::decide::failed(decision, ended.agent, ended.turn, failure),
    }
}

/// Fails an agent, unless its program continues: a loop with its next iteration, a document behind
/// a loop that collects failures.
pub(crate) fn fail(decision: &mut Decision<'_>, agent: &Agent, failure: AgentFailure) {
    match &decision.run.program {
        Program::Ralph(ralph) if ralph::survives(&failure) => {
            ralph::failed(decision, ralph, agent, failure);
        }
        Program::States | Program::Ralph(_) => {
            // Without a finished turn there is no transition to keep.
            decision.push(Event::AgentFailed { agent: agent.id.clone(), failure, kept: None });
        }
        Program::Steps(_) => steps::decide::break_off(decision, agent, failure),
    }
}

/// Returns the work of a turn in flight.
pub(crate) fn work(run: &Run, definition: &Definition, agent: &Agent, turn: &Turn) -> Option<Work> {
    match &run.program {
        Program::States | Program::Ralph(_) => machine::work::work(run, definition, agent, turn),
        Program::Steps(program) => steps::work::work(run, &program.state, definition, agent, turn),
    }
}

/// Decides what the program does next without any input; `None` if it waits.
pub(crate) fn advance(decision: Decision<'_>) -> Option<Vec<Event>> {
    match &decision.run.program {
        // States and loops continue only when a turn ends; a document has steps that need no turn.
        Program::States | Program::Ralph(_) => None,
        Program::Steps(_) => steps::decide::advance(decision),
    }
}

/// Returns how a run ends in which nothing can start; `None` if the rules for all runs decide it.
pub(crate) fn ending(run: &Run) -> Option<Ending> {
    match &run.program {
        Program::States | Program::Ralph(_) => None,
        Program::Steps(program) => steps::decide::ending(run, program.answers),
    }
}

/// Returns whether a resume revives an agent with this failure.
pub(crate) fn is_revived(run: &Run, failure: &AgentFailure) -> bool {
    match &run.program {
        Program::States | Program::Ralph(_) => true,
        Program::Steps(_) => steps::decide::is_revived(run, failure),
    }
}

/// Returns whether a user may cancel an agent on its own. `main` is the run itself. The workers of
/// a document are its branches, and the document needs their results.
pub(crate) fn is_cancellable(run: &Run, agent: &AgentId) -> bool {
    match &run.program {
        Program::States | Program::Ralph(_) => *agent != AgentId::main(),
        Program::Steps(_) => false,
    }
}

/// Returns whether agents continue where they are when the definition is edited, so that their
/// places must still exist. A document begins again at its top instead (see [`adopted`]).
pub(crate) fn keeps_places(run: &Run) -> bool {
    match &run.program {
        Program::States | Program::Ralph(_) => true,
        Program::Steps(_) => false,
    }
}

/// Decides what follows from an edited definition. States are looked up by name, so their agents
/// continue where they are.
pub(crate) fn adopted(decision: &mut Decision<'_>, changed: &[StepId]) {
    match &decision.run.program {
        Program::States | Program::Ralph(_) => {}
        Program::Steps(_) => steps::decide::begin_again(decision, changed),
    }
}

/// Revives a failed agent at the visit that failed.
pub(crate) fn revive(decision: &mut Decision<'_>, agent: &Agent, kept: Option<&PendingTransition>) {
    match &decision.run.program {
        Program::States => revival::revive(decision, agent, kept),
        Program::Ralph(ralph) => ralph::revive(decision, ralph, agent),
        Program::Steps(_) => steps::decide::revive(decision, agent),
    }
}
