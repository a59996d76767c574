//! An agent of the reference, and the effect of each transition on it.
//!
//! It is written differently from core's agent on purpose: one struct that changes in place,
//! without events, ids or a scheduler. A conversation is named by the turn that opened it, and a
//! frame is a plain copy of the caller's state. So the two implementations have no data structure
//! in common in which both could make the same mistake.

use std::collections::BTreeMap;

use raymond_core::ids::{AgentId, StateName};
use raymond_core::protocol::TagName;

use super::history::{Failure, Fault, HandedEnd, Line, Plan, TurnName, VisitName};
use super::names;
use super::tags::{Move, NextConversation, PendingReturns, Transition, Worker};
use super::workflow::{InterpreterSettings, State, Workflow};

#[derive(Debug, Clone)]
pub(super) enum Session {
    Fresh,
    At(Conversation),
    BranchOf(Conversation),
}

/// A conversation, named by the turn that opened it, with the backend of that turn.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    opened: TurnName,
    backend: Option<String>,
}

/// Why a transition is not taken.
pub(super) enum Rejection {
    /// The agent gets a reminder, if any is left.
    Fault(Fault),
    Fails(Failure),
}

/// The state of a caller, restored by its callee's result.
#[derive(Debug)]
struct Frame {
    state: StateName,
    session: Session,
    cwd: String,
    model: Option<Model>,
}

/// A model that a tag named.
#[derive(Debug, Clone)]
struct Model {
    name: String,
    scope: ModelScope,
}

/// The states that a model applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ModelScope {
    /// Not decided yet: the next prompt's backend.
    FirstBackend,
    /// Prompts of the backend of the first prompt that was entered with the model; `None` is the
    /// default backend.
    Backend(Option<String>),
}

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) id: AgentId,
    /// The current or next state, and its input.
    pub(super) state: StateName,
    pub(super) input: Option<String>,
    /// Whether the input is the result of a callee that failed.
    input_is_failure: bool,
    pub(super) cwd: String,
    session: Session,
    stack: Vec<Frame>,
    /// The model of the innermost call or function that named one.
    model: Option<Model>,
    counts: BTreeMap<StateName, u32>,
    visits: u32,
    forks: u32,
    /// The workers whose ends the next visit starts with.
    pub(super) handed: Vec<(AgentId, HandedEnd)>,
}

/// The next step of an agent at the end of a visit.
pub(super) enum Next {
    /// Enters another state, and starts these workers.
    Enters(Vec<Agent>),
    Over(End),
}

/// The end of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Ended(String),
    Failed,
    /// It waits for a login, or for a worker that failed.
    Waits,
}

impl Agent {
    pub(super) fn new(id: AgentId, state: StateName, cwd: String, input: Option<String>) -> Self {
        Self {
            id,
            state,
            input,
            input_is_failure: false,
            cwd,
            session: Session::Fresh,
            stack: Vec::new(),
            model: None,
            counts: BTreeMap::new(),
            visits: 0,
            forks: 0,
            handed: Vec::new(),
        }
    }

    pub(super) fn visit(&self) -> VisitName {
        VisitName { agent: self.id.clone(), number: self.visits }
    }

    /// Returns how often the agent has entered its current state.
    pub(super) fn count(&self) -> u32 {
        self.entered(&self.state)
    }

    fn entered(&self, state: &StateName) -> u32 {
        self.counts.get(state).copied().unwrap_or(0)
    }

    /// Starts a visit of the agent's state.
    pub(super) fn enter(&mut self, workflow: &Workflow, settings: &InterpreterSettings) -> Line {
        self.visits += 1;
        *self.counts.entry(self.state.clone()).or_insert(0) += 1;
        let model = match &workflow.states[&self.state] {
            State::Script => None,
            State::Prompt(prompt) => {
                // Even if the prompt has its own model: entering a prompt decides the backend of
                // the named model.
                let named =
                    self.model.as_mut().and_then(|model| model.name_for(prompt.backend.as_ref()));
                // The order of precedence: the file, then the tag, then the settings.
                [&prompt.model, &named, &settings.model].into_iter().find_map(Clone::clone)
            }
        };
        Line::Enter {
            visit: self.visit(),
            state: self.state.clone(),
            count: self.count(),
            input: self.input.clone(),
            is_failure: self.input_is_failure,
            cwd: self.cwd.clone(),
            model,
            depth: self.stack.len(),
        }
    }

    /// Starts a turn. A conversation that it opens becomes the agent's own.
    pub(super) fn begin(&mut self, turn: &TurnName, state: &State) -> Plan {
        if *state == State::Script {
            return Plan::Carry;
        }
        // Named by the turn instead of an id: the engine's ids depend on its nonce, and the history
        // must not.
        let opened = Conversation { opened: turn.clone(), backend: backend(state) };
        match std::mem::replace(&mut self.session, Session::At(opened)) {
            Session::Fresh => Plan::Fresh,
            Session::BranchOf(conversation) => Plan::Branch(conversation.opened),
            Session::At(conversation) => {
                self.session = Session::At(conversation.clone());
                Plan::Resume(conversation.opened)
            }
        }
    }

    /// Checks that a transition can be taken: a prompt that continues a conversation must have the
    /// backend that opened it.
    pub(super) fn check(
        &self,
        transition: &Transition,
        workflow: &Workflow,
    ) -> Result<(), Rejection> {
        let own = &self.session;
        let (to, session, back) = match transition {
            Transition::Move(Move { to, conversation, returns, .. }) => {
                let session = match conversation {
                    NextConversation::Same | NextConversation::Branch => own,
                    NextConversation::Fresh => &Session::Fresh,
                };
                let back = match returns {
                    PendingReturns::Push(state) => Some(state),
                    PendingReturns::Keep | PendingReturns::Clear => None,
                };
                (to, session, back)
            }
            Transition::Return { .. } => {
                let Some(frame) = self.stack.last() else { return Ok(()) };
                let to = self.destination(&frame.state, workflow)?;
                if frame.session.can_continue_at(&workflow.states[&to]) {
                    return Ok(());
                }
                // The callee cannot change where its caller wanted to return, so a reminder would
                // not help.
                return Err(Rejection::Fails(Failure::OtherBackend));
            }
        };
        let parks = matches!(transition, Transition::Move(Move { parks: true, .. }));
        // Limits count when a wait is over.
        let instead = if parks { to.clone() } else { self.destination(to, workflow)? };
        let refused = Err(Rejection::Fault(Fault::OtherBackend));
        if !session.can_continue_at(&workflow.states[to]) {
            return refused;
        }
        // The agent named a valid state; `max_visits` led it elsewhere. So a reminder would not
        // help.
        if !session.can_continue_at(&workflow.states[&instead]) {
            return Err(Rejection::Fails(Failure::OtherBackend));
        }
        match back {
            // Checked at the call, because the return resumes this conversation and would otherwise
            // fail after the callee was paid.
            Some(state) if !own.can_continue_at(&workflow.states[state]) => refused,
            Some(_) | None => Ok(()),
        }
    }

    /// Takes a transition. On failure nothing has changed.
    pub(super) fn take(
        &mut self,
        transition: Transition,
        workflow: &Workflow,
        settings: &InterpreterSettings,
    ) -> Result<(Vec<Line>, Next), Failure> {
        let moved = match transition {
            Transition::Move(moved) => moved,
            Transition::Return { payload, is_failure } => {
                return self.give_back(payload, is_failure, workflow);
            }
        };
        // First, because after `check` only this part can fail.
        let workers = self.name_workers(moved.workers, settings)?;
        let line = self.move_to(moved.tag, moved.to, workflow)?;
        let next = match moved.conversation {
            NextConversation::Same => self.session.clone(),
            NextConversation::Fresh => Session::Fresh,
            NextConversation::Branch => self.session.branch_for_callee(),
        };
        // The frame has the conversation, the directory and the model of the caller, so it is
        // pushed before they change.
        self.change_stack(moved.returns);
        self.session = next;
        self.cwd = moved.cwd.unwrap_or_else(|| self.cwd.clone());
        if let Some(name) = moved.model {
            self.model = Some(Model { name, scope: ModelScope::FirstBackend });
        }
        // Also without an input: the old input belongs to the visit that ends.
        self.input = moved.input;
        self.input_is_failure = false;
        Ok(self.spawn(line, workers))
    }

    /// Starts the workers of a transition that waits. The rest of it is taken later.
    pub(super) fn park(
        &mut self,
        moved: &mut Move,
        settings: &InterpreterSettings,
    ) -> Result<(Vec<Line>, Vec<Self>), Failure> {
        moved.parks = false;
        let workers = self.name_workers(std::mem::take(&mut moved.workers), settings)?;
        let parked = Line::Park { visit: self.visit(), to: moved.to.clone() };
        let joins = moved.joins.is_some();
        let (mut lines, next) = self.spawn(parked, workers);
        if joins {
            // Its workers exist before it waits for them.
            lines.rotate_left(1);
        }
        match (lines, next) {
            (lines, Next::Enters(workers)) => Ok((lines, workers)),
            (lines, Next::Over(_)) => Ok((lines, Vec::new())),
        }
    }

    /// Returns to the caller, or ends.
    fn give_back(
        &mut self,
        payload: String,
        is_failure: bool,
        workflow: &Workflow,
    ) -> Result<(Vec<Line>, Next), Failure> {
        let Some(frame) = self.stack.pop() else {
            if is_failure {
                return Err(Failure::Declared);
            }
            let agent = self.id.clone();
            let end = End::Ended(payload.clone());
            return Ok((vec![Line::End { agent, payload }], Next::Over(end)));
        };
        let line = self.move_to(TagName::Result, frame.state, workflow)?;
        self.session = frame.session;
        self.cwd = frame.cwd;
        self.model = frame.model;
        self.input = Some(payload);
        self.input_is_failure = is_failure;
        Ok((vec![line], Next::Enters(Vec::new())))
    }

    /// Moves to the state, or to its `then` if `max_visits` is reached.
    fn move_to(
        &mut self,
        tag: TagName,
        emitted: StateName,
        workflow: &Workflow,
    ) -> Result<Line, Failure> {
        let to = self.destination(&emitted, workflow)?;
        let instead_of = self.is_exhausted(&emitted, workflow).then_some(emitted);
        self.state = to.clone();
        Ok(Line::Move { visit: self.visit(), tag, to, instead_of })
    }

    fn destination(&self, emitted: &StateName, workflow: &Workflow) -> Result<StateName, Failure> {
        match &workflow.states[emitted] {
            State::Prompt(prompt) if self.is_exhausted(emitted, workflow) => prompt
                .then
                .as_ref()
                .and_then(|then| names::resolve(workflow, then))
                // Only one step: if `then` is exhausted as well, the agent fails.
                .filter(|then| !self.is_exhausted(then, workflow))
                .ok_or(Failure::Visits),
            State::Prompt(_) | State::Script => Ok(emitted.clone()),
        }
    }

    fn is_exhausted(&self, state: &StateName, workflow: &Workflow) -> bool {
        match &workflow.states[state] {
            State::Prompt(prompt) => {
                prompt.max_visits.is_some_and(|most| self.entered(state) >= most)
            }
            State::Script => false,
        }
    }

    fn change_stack(&mut self, returns: PendingReturns) {
        match returns {
            PendingReturns::Keep => {}
            PendingReturns::Clear => {
                self.stack.clear();
                // The model belonged to a pending call, and no call is pending any more.
                self.model = None;
            }
            PendingReturns::Push(state) => self.stack.push(Frame {
                state,
                session: self.session.clone(),
                cwd: self.cwd.clone(),
                model: self.model.clone(),
            }),
        }
    }

    /// Names the workers, and counts them as forks.
    fn name_workers(
        &mut self,
        workers: Vec<Worker>,
        settings: &InterpreterSettings,
    ) -> Result<Vec<(AgentId, Worker)>, Failure> {
        // No end of other agents could ever make room for these. Smaller forks would only wait,
        // which the reference leaves out.
        if workers.len() > settings.max_agents as usize {
            return Err(Failure::TooManyAgents);
        }
        let mut named = Vec::new();
        for worker in workers {
            self.forks += 1;
            let id = names::worker(&self.id, &worker.state, self.forks);
            if id.as_str().len() > AgentId::MAX {
                return Err(Failure::TooDeep);
            }
            named.push((id, worker));
        }
        Ok(named)
    }

    fn spawn(&self, moved: Line, workers: Vec<(AgentId, Worker)>) -> (Vec<Line>, Next) {
        let mut lines = vec![moved];
        let mut spawned = Vec::new();
        for (id, worker) in workers {
            lines.push(Line::Fork {
                parent: self.id.clone(),
                worker: id.clone(),
                state: worker.state.clone(),
                cwd: worker.cwd.clone(),
                attributes: worker.attributes,
            });
            spawned.push(Self::new(id, worker.state, worker.cwd, worker.input));
        }
        (lines, Next::Enters(spawned))
    }
}

impl Model {
    /// Returns the model's name if it applies to this backend.
    fn name_for(&mut self, backend: Option<&String>) -> Option<String> {
        let asked = ModelScope::Backend(backend.cloned());
        if self.scope == ModelScope::FirstBackend {
            // A model name means nothing to another backend, so the first prompt decides for which
            // one it counts.
            self.scope = asked.clone();
        }
        (self.scope == asked).then(|| self.name.clone())
    }
}

impl Session {
    /// Returns whether the session can continue at a state. Scripts only carry it.
    fn can_continue_at(&self, state: &State) -> bool {
        match (self, state) {
            (Self::Fresh, _) | (_, State::Script) => true,
            (Self::At(conversation) | Self::BranchOf(conversation), state) => {
                conversation.backend == backend(state)
            }
        }
    }

    /// Returns the session of a callee, which never writes into its caller's conversation.
    fn branch_for_callee(&self) -> Self {
        match self {
            Self::Fresh => Self::Fresh,
            Self::At(conversation) | Self::BranchOf(conversation) => {
                Self::BranchOf(conversation.clone())
            }
        }
    }
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Self {
        Self::Fails(failure)
    }
}

fn backend(state: &State) -> Option<String> {
    match state {
        State::Prompt(prompt) => prompt.backend.clone(),
        State::Script => None,
    }
}
