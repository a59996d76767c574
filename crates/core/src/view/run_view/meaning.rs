//! The meaning of an event, from the state before it.
//!
//! An event alone lacks what its reader needs: the place of the agent, the bill of the visit that
//! ends, the failure that a retry follows. The view before the event still has them. Nothing
//! changes here.

use crate::agent::Location;
use crate::budget::{Basis, Charge, Micros};
use crate::crayfish::call::Output;
use crate::crayfish::key::StepKey;
use crate::crayfish::problem::Problem;
use crate::crayfish::state::StepEvent;
use crate::crayfish::stored::Stored;
use crate::crayfish::verdict::Verdict;
use crate::ids::{AgentId, TurnId};
use crate::protocol::ResultStatus;
use crate::run::Event;
use crate::run::warning::Warning;
use crate::scheduler::Lane;
use crate::time::Timestamp;
use crate::value::Value;

use crate::view::attempt::{Attempt, CallerAnswer, End, How, Sent};
use crate::view::summary::{AnsweredQuestion, StepAttempt};
use crate::view::view_event::{
    AgentCost, AgentPlace, AttemptCause, JoinCounts, RetryLimit, ViewEvent,
};

use super::{AgentRow, RunView};

impl RunView {
    /// Returns the meaning of an event that is not folded in yet.
    #[expect(clippy::too_many_lines, reason = "one flat table of all events reads best")]
    pub(super) fn meaning(&self, at: Timestamp, event: &Event) -> Option<ViewEvent> {
        Some(match event {
            Event::RunStarted(start) => ViewEvent::RunStarted {
                workflow: start.workflow.clone(),
                backends: start.backends.clone(),
            },
            Event::RunResumed { .. } => ViewEvent::RunResumed,
            Event::DefinitionAdopted { .. } => ViewEvent::DefinitionAdopted,
            Event::RunRewound { kept, discarded, .. } => {
                ViewEvent::RunRewound { kept: *kept, discarded: discarded.clone() }
            }
            Event::StopRequested { mode, by, .. } => {
                ViewEvent::StopRequested { mode: *mode, by: *by }
            }
            Event::RunEnded { ending } => ViewEvent::RunEnded(*ending),
            Event::BackendHeld { backend, hold } => {
                ViewEvent::BackendHeld { backend: backend.clone(), hold: hold.clone() }
            }
            Event::BackendReleased { backend } => ViewEvent::BackendReleased(backend.clone()),
            Event::Warned { agent, warning } => self.warned(agent.as_ref(), warning),

            Event::TurnStarted { turn, attempt, share, .. } => {
                let row = self.agents.get(&turn.agent)?;
                let cause =
                    if row.awaits_share { AttemptCause::NewShare } else { AttemptCause::Turn };
                let attempt = Attempt { share: *share, ..row.begin(at, turn, *attempt) };
                ViewEvent::AttemptBegan { attempt, cause }
            }
            Event::TurnSettled { turn, charge, model, .. } => {
                let (charge, model, how) = (*charge, model.clone(), How::Finished);
                self.ended(turn, End { at, charge, model, how })?
            }
            Event::TurnContinues { turn, charge, .. } => {
                self.ended(turn, end(at, *charge, How::ShareUsedUp))?
            }
            Event::TurnFailed { turn, charge, failure, .. } => {
                self.ended(turn, end(at, *charge, How::Failed(failure.clone())))?
            }
            Event::TurnInterrupted { turn, charge, by, .. } => {
                self.ended(turn, end(at, *charge, How::Interrupted(*by)))?
            }
            Event::TurnRecalled { turn, .. } => ViewEvent::TurnRecalled(self.place(&turn.agent)),
            Event::RetryAt { turn, retry, of, .. } => ViewEvent::RetryScheduled {
                place: self.place(&turn.agent),
                failure: self.row(&turn.agent).and_then(|row| row.summary.turn_failure.clone()),
                retry: *retry,
                limit: of.map_or(RetryLimit::Settings(self.settings.retries), RetryLimit::Step),
            },
            Event::SessionLost { turn, lost, .. } => ViewEvent::SessionLost {
                place: self.place(&turn.agent),
                lost: lost.clone(),
                failure: self.row(&turn.agent).and_then(|row| row.summary.turn_failure.clone()),
            },
            // The question of a state has a line of its own, and so has its answer.
            Event::Asked { ask, .. } | Event::AskAnswered { ask, .. }
                if self.row(&ask.agent).is_some_and(|row| row.question.is_some()) =>
            {
                return None;
            }
            Event::Asked { ask, .. } => ViewEvent::Asked(self.place(&ask.agent)),
            Event::AskAnswered { ask, by, .. } => {
                ViewEvent::AskAnswered { place: self.place(&ask.agent), by: by.clone() }
            }

            Event::VisitEntered { agent, location, count, result_status, .. } => {
                self.entered(agent, location, *count, *result_status)?
            }
            Event::Reminded { agent, fault, reminder } => ViewEvent::Reminded {
                place: self.place(agent),
                fault: fault.clone(),
                reminder: *reminder,
            },
            Event::AgentEnded { agent, result } => self.agent_ended(agent, result)?,
            Event::AgentFailed { agent, failure, kept } => ViewEvent::AgentFailed {
                place: self.place(agent),
                failure: failure.clone(),
                keeps_transition: kept.is_some(),
            },
            Event::AgentHeld { agent, .. } => ViewEvent::AgentHeld(self.place(agent)),
            Event::AgentWaits { agent, kept, until, span, .. } => ViewEvent::AgentWaits {
                agent: agent.clone(),
                at: self.row(agent).map(AgentRow::place_name).unwrap_or_default(),
                until: *until,
                span: *span,
                then: kept.target().to_owned(),
            },
            Event::AgentJoins { agent, kept, workers, need, .. } => ViewEvent::AgentJoins {
                agent: agent.clone(),
                at: self.row(agent).map(AgentRow::place_name).unwrap_or_default(),
                need: *need,
                workers: workers.len(),
                then: kept.target().to_owned(),
            },
            Event::AgentAsks { agent, kept, .. } => {
                let question = kept.question()?;
                ViewEvent::AgentAsks {
                    agent: agent.clone(),
                    at: self.row(agent).map(AgentRow::place_name).unwrap_or_default(),
                    question: question.text.clone(),
                    options: question.options.clone(),
                }
            }
            Event::AgentCancelled { agent, why } => {
                ViewEvent::AgentCancelled { agent: agent.clone(), why: why.clone() }
            }
            Event::AgentRevived { agent } => ViewEvent::AgentRevived(self.place(agent)),
            Event::Stepped { agent, event } => self.stepped(at, agent, event)?,

            // Their consequences have a meaning: the start of a turn, the next visit.
            Event::TurnQueued { .. }
            | Event::TurnRequeued { .. }
            | Event::AskExpired { .. }
            | Event::AgentSpawned { .. }
            | Event::WaitOver { .. }
            | Event::Joined { .. }
            | Event::CancelRequested { .. }
            | Event::AgentCancelling { .. }
            | Event::Moved { .. } => return None,
        })
    }

    fn row(&self, agent: &AgentId) -> Option<&AgentRow> {
        self.agents.get(agent)
    }

    fn place(&self, agent: &AgentId) -> AgentPlace {
        let unknown = || AgentPlace { agent: agent.clone(), location: None, backend: None };
        self.row(agent).map_or_else(unknown, |row| row.agent_place(agent))
    }

    fn bill(&self, agent: &AgentId) -> AgentCost {
        self.row(agent).map_or(AgentCost { cost: None, backend: None }, AgentRow::bill)
    }

    fn warned(&self, agent: Option<&AgentId>, warning: &Warning) -> ViewEvent {
        let is_spent = matches!(warning, Warning::Spent { .. });
        // 128 bits, because 100 times an amount in millionths overflows 64 bits. Rounded down:
        // 100 % means that the whole cap is spent.
        let percent = |cap: Micros| u128::from(self.spent.0) * 100 / u128::from(cap.0.max(1));
        let spent_percent = self.cap().filter(|_| is_spent).map(percent);
        ViewEvent::Warned { agent: agent.cloned(), warning: warning.clone(), spent_percent }
    }

    fn ended(&self, turn: &TurnId, end: End) -> Option<ViewEvent> {
        let attempt = self.row(&turn.agent)?.attempt.clone()?;
        Some(ViewEvent::AttemptEnded(Attempt { end: Some(end), ..attempt }))
    }

    fn entered(
        &self,
        agent: &AgentId,
        location: &Location,
        count: u32,
        result: ResultStatus,
    ) -> Option<ViewEvent> {
        let row = self.row(agent)?;
        // A step that is repeated after its failure, which has had its line.
        if row.summary.is_at_step(location) {
            return None;
        }
        Some(ViewEvent::VisitEntered {
            agent: agent.clone(),
            from: row.summary.place(),
            item: row.item().filter(|_| row.summary.location.is_none()),
            to: location.clone(),
            count,
            transition: row.summary.transition.clone(),
            result,
            joined: row.group.as_ref().and_then(|group| {
                let (ended, workers) = (group.ended, group.members.len());
                Some(JoinCounts { end: group.over?, ended, workers })
            }),
            closed: row.summary.closed.clone(),
            bill: row.bill(),
        })
    }

    /// Returns the meaning of an end. The branch of an iteration without a visit only reused
    /// results, or had nothing to do.
    fn agent_ended(&self, agent: &AgentId, result: &Value) -> Option<ViewEvent> {
        let has_visits = self.row(agent).is_none_or(|row| row.summary.location.is_some());
        (has_visits || *agent == AgentId::main()).then(|| ViewEvent::AgentEnded {
            agent: agent.clone(),
            result: result.clone(),
            program: self.program.clone(),
            bill: self.bill(agent),
        })
    }

    /// Returns the meaning of a step that did not simply succeed. A success shows when the next
    /// step begins.
    fn stepped(&self, at: Timestamp, agent: &AgentId, event: &StepEvent) -> Option<ViewEvent> {
        if let StepEvent::Asked { key, attempt, errors, .. } = event
            && !errors.is_empty()
        {
            return self.refused(agent, key, *attempt, errors);
        }
        if let StepEvent::Done { key, stored } = event
            && !stored.ok
        {
            // Collected, and shown, before the document was edited.
            if self.settled.contains(key) {
                return None;
            }
            let failure = self.row(agent).and_then(|row| row.summary.turn_failure.as_ref());
            let why = failure.map(ToString::to_string).or_else(|| message(stored));
            return Some(ViewEvent::FailureCollected { place: self.place(agent), why });
        }
        if let StepEvent::OutputTaken { name } = event {
            return self.taken(at, agent, name);
        }
        let StepEvent::OutputIgnored { name } = event else { return None };
        let Output { stored, .. } = self.offers.get(name)?;
        let attempt = answer(at, self.question(agent)?, CallerAnswer::Stale);
        Some(ViewEvent::Answered { attempt, value: stored.value.clone() })
    }

    fn refused(
        &self,
        agent: &AgentId,
        key: &StepKey,
        attempt: u32,
        errors: &[Problem],
    ) -> Option<ViewEvent> {
        let asked = StepAttempt { key: key.clone(), number: attempt };
        // A resume asks for the same attempt again, with errors that have had their line.
        if self.row(agent)?.summary.refused.as_ref() == Some(&asked) {
            return None;
        }
        let place = self.place(agent);
        Some(ViewEvent::OutputRefused { place, errors: errors.to_vec(), attempt })
    }

    fn taken(&self, at: Timestamp, agent: &AgentId, name: &str) -> Option<ViewEvent> {
        let Output { stored, verdict } = self.offers.get(name)?;
        let fate = match verdict {
            Verdict::Valid => CallerAnswer::Taken,
            Verdict::Invalid(errors) => CallerAnswer::Invalid(errors.clone()),
        };
        let answered = self.row(agent)?.summary.answered.clone();
        let question = answered.or_else(|| self.question(agent))?;
        Some(ViewEvent::Answered {
            attempt: answer(at, question, fate),
            value: stored.value.clone(),
        })
    }

    /// Returns the question that the step of an agent asks now.
    fn question(&self, agent: &AgentId) -> Option<AnsweredQuestion> {
        let row = self.row(agent)?;
        let attempt = row.summary.requested.clone()?;
        // Without a question, the turn that would have run.
        let first = || TurnId { agent: agent.clone(), visit: row.visit, turn: 1 };
        let turn = row.summary.question.clone().unwrap_or_else(first);
        Some(AnsweredQuestion { turn, attempt })
    }
}

const fn end(at: Timestamp, charge: Charge, how: How) -> End {
    End { at, charge, model: None, how }
}

/// Returns the attempt that stands for a caller's answer: it has no client and no cost.
fn answer(at: Timestamp, question: AnsweredQuestion, answer: CallerAnswer) -> Attempt {
    let charge = Charge { amount: Micros::ZERO, basis: Basis::Free };
    Attempt {
        turn: question.turn,
        number: question.attempt.number,
        location: question.attempt.key.into(),
        visit: 1,
        lane: Lane::Script,
        sent: Sent::Body,
        started: at,
        share: None,
        end: Some(end(at, charge, How::Answered(answer))),
    }
}

/// Returns the message in the result of a failed step.
fn message(stored: &Stored) -> Option<String> {
    let Value::Inline(text) = &stored.value else { return None };
    let result: serde_json::Value = serde_json::from_str(text).ok()?;
    let message = result.get("message").or_else(|| result.get("error"))?;
    message.as_str().map(str::to_owned)
}
