//! Builds the history of every agent from records, in the line format of [`crate::reference`].
//!
//! The lines contain no times: interruptions, shares and holds leave no line. So a run with any
//! number of crashes has the same history as a run without.

use std::collections::BTreeMap;

use raymond_core::agent::{Agent, AgentStatus, SessionPlan, WorkerEnd};
use raymond_core::crayfish::StepEvent;
use raymond_core::extension::Kind;
use raymond_core::failure::{self, TurnFailure};
use raymond_core::ids::{AgentId, SessionId, StateName, TurnId};
use raymond_core::protocol::ResultStatus;
use raymond_core::protocol::{self, TagName};
use raymond_core::run::warning::Warning;
use raymond_core::run::{Event, Record, Run, apply};
use raymond_core::value::Value;
use raymond_core::workflow::Definition;

use crate::reference::{Failure, FailureKind, Fault, HandedEnd, Line, Plan, TurnName, VisitName};

/// The lines of each agent, in its own order.
pub type History = BTreeMap<AgentId, Vec<String>>;

/// Builds the history of records. `text` reads a value, which may be a blob.
pub fn history(
    records: &[Record],
    definition: &Definition,
    text: &dyn Fn(&Value) -> String,
) -> History {
    let mut builder = HistoryBuilder {
        definition,
        text,
        run: Run::default(),
        sessions: BTreeMap::new(),
        failures: BTreeMap::new(),
        moving: BTreeMap::new(),
        waiting: BTreeMap::new(),
        spawned: BTreeMap::new(),
        history: History::new(),
    };
    for event in records.iter().flat_map(|record| &record.steps).flat_map(|step| &step.events) {
        // Applying the move changes the visit, but the line names the visit that it ends.
        let before = match event {
            Event::Moved { agent, .. } => {
                builder.run.agents.get(agent).map_or(0, |agent| agent.visit.number)
            }
            _ => 0,
        };
        // A wait that begins again, because the clock was set back, is the same wait.
        if let Event::AgentWaits { agent, .. } = event
            && builder.run.agents.get(agent).is_some_and(is_parked)
        {
            apply(&mut builder.run, event);
            continue;
        }
        apply(&mut builder.run, event);
        builder.event(event, before);
    }
    builder.history
}

struct HistoryBuilder<'a> {
    definition: &'a Definition,
    text: &'a dyn Fn(&Value) -> String,
    run: Run,
    /// The turn that opened each session.
    sessions: BTreeMap<SessionId, TurnName>,
    /// The number of failed attempts of each turn.
    failures: BTreeMap<TurnId, u32>,
    /// Transitions whose destination is not recorded yet.
    moving: BTreeMap<AgentId, (VisitName, TagName, Option<StateName>)>,
    /// Agents that wait for a login or for disk space.
    waiting: BTreeMap<AgentId, FailureKind>,
    /// Workers whose first state is not recorded yet.
    spawned: BTreeMap<AgentId, Line>,
    history: History,
}

impl HistoryBuilder<'_> {
    #[expect(clippy::too_many_lines, reason = "one flat table of all events reads best")]
    fn event(&mut self, event: &Event, visit_before: u32) {
        match event {
            Event::AgentSpawned { agent, parent: Some(parent), cwd, attributes } => {
                let attributes =
                    attributes.iter().map(|(key, value)| (key.clone(), (self.text)(value)));
                let line = Line::Fork {
                    parent: parent.clone(),
                    worker: agent.clone(),
                    state: "".into(),
                    cwd: cwd.clone(),
                    attributes: attributes.collect(),
                };
                self.spawned.insert(agent.clone(), line);
            }
            Event::Moved { agent, tag, instead_of, .. } => {
                let visit = VisitName { agent: agent.clone(), number: visit_before };
                // The event of a move does not name the destination. `VisitEntered`, which follows,
                // does.
                self.moving.insert(agent.clone(), (visit, *tag, instead_of.clone()));
            }
            Event::AgentWaits { agent, kept, .. } | Event::AgentJoins { agent, kept, .. } => {
                let line = Line::Park { visit: self.visit(agent), to: kept.target().into() };
                self.push_line(agent, line.to_string());
            }
            Event::AgentCancelled { agent, why } => {
                self.push_line(agent, format!("cancelled {agent}: {why}"));
            }
            Event::Joined { agent, .. } => {
                let handed = self.run.agents.get(agent).map(|agent| agent.visit.handed.clone());
                let end = |end: &WorkerEnd| match end {
                    WorkerEnd::Ended(result) => HandedEnd::Ended((self.text)(result)),
                    WorkerEnd::Failed(_) => HandedEnd::Failed,
                    WorkerEnd::Cancelled => HandedEnd::Cancelled,
                };
                let workers = handed.unwrap_or_default();
                let workers = workers.iter().map(|worker| (worker.agent.clone(), end(&worker.end)));
                let line = Line::Handed { agent: agent.clone(), workers: workers.collect() };
                self.push_line(agent, line.to_string());
            }
            Event::VisitEntered { agent, location, .. } => {
                self.entered(agent, &StateName::new(location.to_string()));
            }
            Event::TurnStarted { turn, attempt, plan, .. } => self.started(turn, *attempt, plan),
            // The turn continues in a session of its own. Later resumes of that session are named
            // after it.
            Event::SessionLost { turn, plan, .. } => {
                if let Some(opened) = plan.session() {
                    self.sessions.insert(opened.clone(), turn_name(turn));
                }
            }
            Event::TurnFailed { turn, failure, .. } => self.failed(turn, failure),
            // Here and not at the failure: if the visit's budget is used up, the agent fails
            // instead of waiting.
            Event::TurnRequeued { turn, .. } => self.requeued(&turn.agent),
            Event::Reminded { agent, fault, .. } => {
                let visit = self.visit(agent);
                let line = match fault_of(fault) {
                    Some(fault) => Line::Remind { visit, fault }.to_string(),
                    // Faults without a counterpart in the reference still need a line, because the
                    // sweep compares two histories of the engine.
                    None => format!("remind {visit} {}", extra_fault_name(fault)),
                };
                self.push_line(agent, line);
            }
            Event::AgentEnded { agent, result } => {
                let payload = (self.text)(result);
                self.push_line(agent, Line::End { agent: agent.clone(), payload }.to_string());
            }
            Event::AgentFailed { agent, failure, .. } => {
                self.waiting.remove(agent);
                let line = match failure_of(failure) {
                    Some(failure) => Line::Fail { agent: agent.clone(), failure }.to_string(),
                    None => format!("fail {agent} {failure}"),
                };
                self.push_line(agent, line);
            }
            Event::Warned {
                agent: Some(agent),
                warning:
                    warning @ (Warning::IterationFailed { .. }
                    | Warning::ResultRefused { .. }
                    | Warning::NotPassed { .. }
                    | Warning::Exhausted { .. }),
            } => self.push_line(agent, warning.to_string()),
            Event::Stepped { agent, event } => self.stepped(agent, event),
            Event::AgentRevived { agent } => self.push_line(agent, format!("revive {agent}")),
            _ => {}
        }
    }

    /// Writes finished steps with their results, and requests with their attempts.
    fn stepped(&mut self, agent: &AgentId, fact: &StepEvent) {
        match fact {
            StepEvent::Asked { key, attempt, .. } => {
                self.push_line(agent, format!("asks {key} {attempt}"));
            }
            StepEvent::Done { key, stored }
            | StepEvent::Failed { key, stored: Some(stored), .. } => {
                let left = (self.text)(&stored.value);
                self.push_line(agent, format!("leaves {key} {left}"));
            }
            StepEvent::Reused { key } => self.push_line(agent, format!("knows {key}")),
            StepEvent::Begun { .. }
            | StepEvent::Parked { .. }
            | StepEvent::Called(_)
            | StepEvent::OutputTaken { .. }
            | StepEvent::OutputIgnored { .. }
            | StepEvent::Entered { .. }
            | StepEvent::ConversationKept { .. }
            | StepEvent::LoopEntered { .. }
            | StepEvent::IterationBegun { .. }
            | StepEvent::LoopSplit
            | StepEvent::LoopLeft
            | StepEvent::Failed { .. }
            | StepEvent::Revived
            | StepEvent::Concluded
            | StepEvent::Ended => {}
        }
    }

    fn entered(&mut self, id: &AgentId, state: &StateName) {
        if let Some((visit, tag, instead_of)) = self.moving.remove(id) {
            let line = Line::Move { visit, tag, to: state.clone(), instead_of };
            self.push_line(id, line.to_string());
        }
        if let Some(Line::Fork { parent, worker, cwd, attributes, .. }) = self.spawned.remove(id) {
            let line = Line::Fork {
                parent: parent.clone(),
                worker,
                state: state.clone(),
                cwd,
                attributes,
            };
            // A parent that does not wait has already entered its next state; the line of a fork
            // goes before that.
            let lines = self.history.entry(parent).or_default();
            let enters = lines.last().is_some_and(|line| line.starts_with("enter "));
            let place = lines.len() - usize::from(enters);
            lines.insert(place, line.to_string());
        }
        let Some(agent) = self.run.agents.get(id) else { return };
        let known = self.definition.states.get(state);
        let model = match known {
            Some(known) if known.kind == Kind::Prompt => {
                let backend = self.run.settings.backend_of(&known.front);
                // The order of precedence is written out again instead of asking core for the
                // effective model, because a mistake in that function would otherwise be on both
                // sides.
                let own = known.front.model.as_ref().or_else(|| agent.model_for(backend));
                own.or(self.run.settings.model.as_ref()).cloned()
            }
            Some(_) | None => None,
        };
        let line = Line::Enter {
            visit: self.visit(id),
            state: state.clone(),
            count: agent.visits.get(state).copied().unwrap_or(0),
            input: agent.visit.input.as_ref().map(|input| (self.text)(input)),
            is_failure: agent.visit.result_status == ResultStatus::Failed,
            cwd: agent.cwd.clone(),
            model,
            depth: agent.stack.len(),
        };
        self.push_line(id, line.to_string());
    }

    fn started(&mut self, turn: &TurnId, attempt: u32, plan: &SessionPlan) {
        // One line for each turn: crashes and retries add attempts, and histories with and without
        // crashes must be equal.
        if attempt > 1 {
            return;
        }
        let name = turn_name(turn);
        let plan = match plan {
            SessionPlan::Fresh(id) => {
                self.sessions.insert(id.clone(), name.clone());
                Plan::Fresh
            }
            SessionPlan::Branch { from, to } => {
                self.sessions.insert(to.clone(), name.clone());
                Plan::Branch(self.opener(from))
            }
            // A revived agent continues in the session that its failed turn may have opened.
            SessionPlan::Resume(id) | SessionPlan::Continue { session: id, .. } => {
                Plan::Resume(self.opener(id))
            }
            SessionPlan::Carry => Plan::Carry,
        };
        self.push_line(&turn.agent, Line::Turn { turn: name, plan }.to_string());
    }

    /// Returns the turn that opened a session. An unknown session gets a visible name, so that the
    /// comparison fails.
    fn opener(&self, session: &SessionId) -> TurnName {
        let visit = VisitName { agent: AgentId::new(format!("?{session}")), number: 0 };
        self.sessions.get(session).cloned().unwrap_or(TurnName { visit, number: 0 })
    }

    fn requeued(&mut self, agent: &AgentId) {
        if let Some(kind) = self.waiting.remove(agent) {
            self.push_line(agent, Line::Wait { agent: agent.clone(), kind }.to_string());
        }
    }

    fn failed(&mut self, turn: &TurnId, failure: &TurnFailure) {
        // The attempt in the event also counts interrupted attempts, which depend on crashes. So
        // failures are counted here.
        let failures = self.failures.entry(turn.clone()).or_default();
        *failures += 1;
        let attempt = *failures;
        let line = match failure_kind(failure) {
            Some(kind) => Line::Failed { turn: turn_name(turn), attempt, kind }.to_string(),
            None => format!("failed {} attempt={attempt} {failure}", turn_name(turn)),
        };
        self.push_line(&turn.agent, line);
        if let Some(kind @ (FailureKind::Auth | FailureKind::Environment)) = failure_kind(failure) {
            self.waiting.insert(turn.agent.clone(), kind);
        }
    }

    fn visit(&self, agent: &AgentId) -> VisitName {
        let number = self.run.agents.get(agent).map_or(0, |agent| agent.visit.number);
        VisitName { agent: agent.clone(), number }
    }

    fn push_line(&mut self, agent: &AgentId, line: String) {
        self.history.entry(agent.clone()).or_default().push(line);
    }
}

const fn is_parked(agent: &Agent) -> bool {
    matches!(agent.status, AgentStatus::Parked(_))
}

fn turn_name(turn: &TurnId) -> TurnName {
    let visit = VisitName { agent: turn.agent.clone(), number: turn.visit };
    TurnName { visit, number: turn.turn }
}

fn failure_kind(failure: &TurnFailure) -> Option<FailureKind> {
    Some(match failure {
        TurnFailure::Transient { .. } => FailureKind::Transient,
        TurnFailure::Timeout { .. } => FailureKind::Timeout,
        TurnFailure::Quota { .. } => FailureKind::Quota,
        TurnFailure::Auth { .. } => FailureKind::Auth,
        TurnFailure::Environment { .. } => FailureKind::Environment,
        TurnFailure::Task { .. } => FailureKind::Task,
        TurnFailure::LostSession { .. } => FailureKind::LostSession,
        TurnFailure::Script { .. } => FailureKind::Script,
        // No run that is compared with the reference has these.
        TurnFailure::OutputTooLarge { .. }
        | TurnFailure::NotStarted { .. }
        | TurnFailure::Step { .. } => return None,
    })
}

fn fault_of(fault: &protocol::Fault) -> Option<Fault> {
    Some(match fault {
        protocol::Fault::NoTag(_) => Fault::NoTag,
        protocol::Fault::SeveralTags { .. } => Fault::SeveralTags,
        protocol::Fault::Malformed(_) => Fault::Malformed,
        protocol::Fault::Unresolved { .. } => Fault::Unresolved,
        protocol::Fault::NextDiffers { .. } => Fault::NextDiffers,
        protocol::Fault::NoDirectory { .. } => Fault::NoDirectory,
        protocol::Fault::Forbidden { .. } => Fault::Forbidden,
        protocol::Fault::OtherBackend { .. } => Fault::OtherBackend,
        protocol::Fault::NoBranch { .. } | protocol::Fault::Denied { .. } => return None,
    })
}

/// Returns the name of a fault that the reference does not have.
fn extra_fault_name(fault: &protocol::Fault) -> &'static str {
    if matches!(fault, protocol::Fault::NoBranch { .. }) { "no_branch" } else { "denied" }
}

fn failure_of(failure: &failure::Failure) -> Option<Failure> {
    Some(match failure {
        failure::Failure::Turn(failure) => Failure::Turn(failure_kind(failure)?),
        failure::Failure::Protocol { fault, .. } => Failure::Protocol(fault_of(fault)?),
        failure::Failure::Visits { .. } => Failure::Visits,
        failure::Failure::OtherBackend { .. } => Failure::OtherBackend,
        failure::Failure::VisitBudget { .. } => Failure::VisitBudget,
        failure::Failure::TooManyAgents { .. } => Failure::TooManyAgents,
        failure::Failure::TooDeep { .. } => Failure::TooDeep,
        failure::Failure::Declared { .. } => Failure::Declared,
        failure::Failure::HeldForGood { .. }
        | failure::Failure::Crashes { .. }
        | failure::Failure::Stalled { .. }
        | failure::Failure::InterruptedScript
        | failure::Failure::Denied { .. }
        | failure::Failure::Step { .. }
        | failure::Failure::Exhausted { .. }
        | failure::Failure::Unanswered => return None,
    })
}
