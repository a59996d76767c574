//! Events and runs as short texts. Sessions are named after the turn that opened them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::agent::{Agent, AgentStatus, Frame, Session, SessionPlan};
use crate::budget::{Basis, Charge, Micros};
use crate::ids::{AgentId, Nonce, SessionId};
use crate::protocol::ResultStatus;
use crate::run::event::StackChange;
use crate::run::{Event, Run};
use crate::scheduler::Hold;
use crate::scheduler::{Lane, Prompt, Turn, TurnPhase};
use crate::value::Value;

use super::play::Play;

/// Short names of sessions.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<SessionId, String>);

impl Names {
    /// Learns the sessions that these events may open.
    pub(crate) fn learn(&mut self, nonce: &Nonce, events: &[Event]) {
        for event in events {
            if let Event::TurnQueued { turn, .. } = event {
                for generation in 0..8 {
                    let lost =
                        if generation > 0 { format!("/{generation}") } else { String::new() };
                    self.0.insert(turn.session(nonce, generation), format!("{turn}{lost}"));
                }
            }
        }
    }

    fn of(&self, session: &SessionId) -> String {
        self.0.get(session).cloned().unwrap_or_else(|| session.to_string())
    }

    pub(crate) fn session(&self, session: &Session) -> String {
        match session {
            Session::Fresh => "fresh".to_owned(),
            Session::At(id) => format!("at {}", self.of(id)),
            Session::BranchOf(id) => format!("branch of {}", self.of(id)),
        }
    }

    pub(crate) fn plan(&self, plan: &SessionPlan) -> String {
        match plan {
            SessionPlan::Fresh(id) => format!("fresh {}", self.of(id)),
            SessionPlan::Resume(id) => format!("resume {}", self.of(id)),
            SessionPlan::Branch { from, to } => {
                format!("branch {} to {}", self.of(from), self.of(to))
            }
            SessionPlan::Continue { session, or_else } => {
                format!("continue {} or {}", self.of(session), self.plan(or_else))
            }
            SessionPlan::Carry => "carry".to_owned(),
        }
    }

    fn frame(&self, frame: &Frame) -> String {
        let Frame { state, session, holder: _, cwd, model, model_of: _ } = frame;
        let model = model.as_deref().map(|model| format!(", {model}")).unwrap_or_default();
        format!("{state} ({}, {cwd}{model})", self.session(session))
    }

    fn opened(&self, session: Option<&SessionId>) -> String {
        session.map(|id| format!(" in {}", self.of(id))).unwrap_or_default()
    }

    /// An event in a line.
    #[expect(clippy::too_many_lines, reason = "one flat table of all events")]
    pub(crate) fn event(&self, event: &Event) -> String {
        match event {
            Event::RunStarted(start) => format!("started {}", start.run),
            Event::RunResumed { .. } => "resumed".to_owned(),
            Event::DefinitionAdopted { manifest } => format!("adopted {}", text(manifest)),
            Event::RunRewound { kept, .. } => format!("rewound to {kept}"),
            Event::StopRequested { mode, key, .. } => format!("stop {mode:?} by {key}"),
            Event::RunEnded { ending } => format!("ended: {ending:?}"),
            Event::TurnQueued { turn, lane, prompt, plan, order, notice } => {
                let reminder = match prompt {
                    Prompt::Body => "",
                    Prompt::Reminder(_) => " reminder",
                };
                let notice = notice.map(|notice| format!(" {notice:?}")).unwrap_or_default();
                let plan = self.plan(plan);
                format!("queue {turn}{reminder}{notice} at {order} for {}: {plan}", place(lane))
            }
            Event::TurnRequeued { turn, order, notice } => {
                format!("queue {turn} again at {order}: {notice:?}")
            }
            Event::TurnStarted { turn, attempt, share, plan } => {
                let share = share.map(|share| format!(" with {share}")).unwrap_or_default();
                format!("start {turn} #{attempt}{share}: {}", self.plan(plan))
            }
            Event::TurnSettled { turn, attempt, charge, session, .. } => {
                format!("settle {turn} #{attempt}{}: {}", money(*charge), self.session(session))
            }
            Event::TurnRecalled { turn, attempt } => format!("recall {turn} #{attempt}"),
            Event::TurnContinues { turn, attempt, charge, stalls, session } => {
                let stalled = match stalls {
                    0 => String::new(),
                    times => format!(", stalled {times}"),
                };
                let (money, opened) = (money(*charge), self.opened(session.as_ref()));
                format!("cap {turn} #{attempt}{money}{opened}{stalled}")
            }
            Event::TurnFailed { turn, attempt, charge, failure, session } => {
                let opened = self.opened(session.as_ref());
                format!("fail {turn} #{attempt}{}{opened}: {failure}", money(*charge))
            }
            Event::TurnInterrupted { turn, attempt, charge, by, crashes, session } => {
                let (money, opened) = (money(*charge), self.opened(session.as_ref()));
                format!("interrupted {turn} #{attempt}{money}{opened} by {by:?}, {crashes} crashes")
            }
            Event::RetryAt { turn, retry, .. } => format!("retry {retry} of {turn}"),
            Event::BackendHeld { backend, hold } => format!("hold {backend}: {}", held(hold)),
            Event::BackendReleased { backend } => format!("release {backend}"),
            Event::SessionLost { turn, lost, plan } => {
                format!("lost {} in {turn}: {}", self.of(lost), self.plan(plan))
            }
            Event::Asked { ask, question, .. } => format!("ask {ask}: {}", text(question)),
            Event::AskAnswered { ask, value, .. } => format!("answer {ask}: {}", text(value)),
            Event::AskExpired { ask } => format!("{ask} expires"),
            Event::AgentSpawned { agent, cwd, attributes, .. } => {
                let mut line = format!("spawn {agent} in {cwd}");
                for (name, value) in attributes {
                    write!(line, " {name}={}", text(value)).unwrap();
                }
                line
            }
            Event::VisitEntered { agent, location, visit, count, input, result_status } => {
                let input = input.as_ref().map(|value| format!(" with {:?}", text(value)));
                let input = input.unwrap_or_default();
                let status = match result_status {
                    ResultStatus::Ok => "",
                    ResultStatus::Failed => " of a failure",
                };
                format!("{agent} enters {location} ({count}) as visit {visit}{input}{status}")
            }
            Event::Reminded { agent, fault, reminder } => {
                format!("remind {agent} ({reminder}): {fault}")
            }
            Event::Moved { agent, tag, stack, session, cwd, model, forks, instead_of, .. } => {
                let mut line = format!("{agent} {tag}: {}", self.session(session));
                match stack {
                    StackChange::Keep => {}
                    StackChange::Push(frame) => {
                        write!(line, ", push {}", self.frame(frame)).unwrap();
                    }
                    StackChange::Pop => line.push_str(", pop"),
                    StackChange::Clear => line.push_str(", clear"),
                }
                let forks = (*forks > 0).then(|| forks.to_string());
                let instead_of = instead_of.as_ref().map(ToString::to_string);
                let parts = [("in", cwd), ("model", model), ("forks", &forks)];
                for (name, value) in parts.into_iter().chain([("instead of", &instead_of)]) {
                    if let Some(value) = value {
                        write!(line, ", {name} {value}").unwrap();
                    }
                }
                line
            }
            Event::AgentEnded { agent, result } => format!("{agent} ends: {:?}", text(result)),
            Event::AgentFailed { agent, failure, kept } => {
                let kept = if kept.is_some() { ", kept" } else { "" };
                format!("{agent} fails: {failure}{kept}")
            }
            Event::AgentHeld { agent, .. } => format!("hold {agent}"),
            Event::AgentWaits { agent, kept, until, forks, .. } => {
                let forks = if *forks > 0 { format!(", forks {forks}") } else { String::new() };
                let target = kept.target();
                format!("{agent} waits until {}s to enter {target}{forks}", until.0 / 1_000)
            }
            Event::AgentJoins { agent, kept, workers, need, until, forks } => {
                let until = until.map(|until| format!(" until {}s", until.0 / 1_000));
                let (until, target) = (until.unwrap_or_default(), kept.target());
                let workers: Vec<&str> = workers.iter().map(AgentId::as_str).collect();
                let workers = workers.join(", ");
                format!(
                    "{agent} waits for {need} of {workers}{until} to enter {target}, forks {forks}"
                )
            }
            Event::AgentAsks { agent, kept, ask, .. } => {
                format!("{agent} asks {ask} to enter {}", kept.target())
            }
            Event::WaitOver { agent, end } => format!("the wait of {agent} is over: {end:?}"),
            Event::Joined { agent, failed } => {
                let failed: Vec<&str> = failed.iter().map(AgentId::as_str).collect();
                let without = if failed.is_empty() {
                    String::new()
                } else {
                    format!(", failed {}", failed.join(", "))
                };
                format!("hand the list to {agent}{without}")
            }
            Event::CancelRequested { agent, by, .. } => format!("{by} cancels {agent}"),
            Event::AgentCancelling { agent, why } => format!("end {agent}: {why}"),
            Event::AgentCancelled { agent, why } => format!("cancel {agent}: {why}"),
            Event::AgentRevived { agent } => format!("revive {agent}"),
            Event::Stepped { agent, event } => format!("{agent} {event:?}"),
            Event::Warned { agent, warning } => {
                let whom = agent.as_ref().map_or("run", AgentId::as_str);
                format!("warn {whom}: {warning}")
            }
        }
    }
}

impl Play {
    /// An agent in a line: where it is, and what it carries.
    pub(crate) fn shows(&self, id: &str) -> String {
        let Agent { visit, session, stack, cwd, model, .. } = self.agent(id);
        let names = self.names();
        let mut line = format!("{} | {} | {cwd}", visit.location, names.session(session));
        if let Some(model) = model {
            write!(line, " | {model}").unwrap();
        }
        for frame in stack.iter().rev() {
            write!(line, " < {}", names.frame(frame)).unwrap();
        }
        line
    }

    /// How the agent's turn gets its conversation.
    pub(crate) fn plan_of(&self, id: &str) -> String {
        let turn = &self.run.scheduler.turns[&AgentId::from(id)];
        self.names().plan(turn.current.as_ref().unwrap_or(&turn.plan))
    }

    /// The whole run in a few lines.
    pub(crate) fn scene(&self) -> String {
        scene(&self.run)
    }
}

/// Describes every agent, and the money.
fn scene(run: &Run) -> String {
    let mut lines = vec![format!("{:?}: {} spent", run.phase, run.spent)];
    if run.scheduler.reserved > Micros::ZERO {
        write!(lines[0], ", {} reserved", run.scheduler.reserved).unwrap();
    }
    let mut agents: Vec<&Agent> = run.agents.values().collect();
    agents.sort_by_key(|agent| agent.born);
    for agent in agents {
        let status = match &agent.status {
            AgentStatus::Live => {
                run.scheduler.turns.get(&agent.id).map_or_else(|| "waits".to_owned(), status)
            }
            AgentStatus::Held(_) => "held".to_owned(),
            AgentStatus::Parked(parked) => format!("parked until {}s", parked.until.0 / 1_000),
            AgentStatus::Joining(joining) => {
                let group = &run.groups[&agent.id];
                let until = joining.until.map(|until| format!(" until {}s", until.0 / 1_000));
                let until = until.unwrap_or_default();
                format!(
                    "waits for {} workers{until} ({} ended, {} failed)",
                    group.left, group.ended, group.failed
                )
            }
            AgentStatus::Asking(asking) => match &asking.answer {
                None => "asks".to_owned(),
                Some(answer) => format!("has the answer {answer:?}"),
            },
            AgentStatus::Cancelling(why) => format!("is being cancelled: {why}"),
            AgentStatus::Failed { failure, .. } => format!("failed: {failure}"),
        };
        lines.push(format!("{} at {}: {status}", agent.id, agent.visit.location));
    }
    lines.join("\n")
}

fn status(turn: &Turn) -> String {
    match turn.phase {
        TurnPhase::Queued => "queued".to_owned(),
        TurnPhase::Running { share: None } => "runs".to_owned(),
        TurnPhase::Running { share: Some(share) } => format!("runs with {share}"),
        TurnPhase::Retrying { .. } => "retries".to_owned(),
        TurnPhase::Idle => "interrupted".to_owned(),
    }
}

fn money(charge: Charge) -> String {
    match charge.basis {
        Basis::Free => String::new(),
        Basis::Reported => format!(" {}", charge.amount),
        Basis::Estimated => format!(" about {}", charge.amount),
        Basis::Unpriced if charge.amount > Micros::ZERO => format!(" {} unpriced", charge.amount),
        Basis::Unpriced => " unpriced".to_owned(),
    }
}

fn held(hold: &Hold) -> String {
    match hold {
        Hold::Quota { until, why } => format!("{why} until {}", until.0 / 1000),
        Hold::Auth { why } | Hold::Environment { why } => why.clone(),
    }
}

fn place(lane: &Lane) -> &str {
    match lane {
        Lane::Script => "script",
        Lane::Prompt(backend) => backend.as_str(),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Inline(text) => text.clone(),
        Value::Blob(blob) => format!("blob of {}", blob.length),
    }
}
