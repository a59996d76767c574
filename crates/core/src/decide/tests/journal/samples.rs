//! One sample of everything that a journal may contain.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::{CancelReason, Frame, PendingTransition, Session, SessionPlan};
use crate::budget::{Basis, Charge, Cost, Micros};
use crate::failure::{AgentFailure, Clock, TurnFailure};
use crate::few::Few;
use crate::ids::StateName;
use crate::prices::Price;
use crate::protocol::Notice;
use crate::protocol::tags::Invoke;
use crate::protocol::{
    AskTimeout, Fault, Malformed, Need, Otherwise, Question, ResultStatus, Stack, Tag, TagName,
    Untagged, When,
};
use crate::run::event::{Ending, Event, StackChange};
use crate::run::input::{Input, Resume};
use crate::run::outcome::{Finished, Outcome, ReadReply};
use crate::run::permissions::{Checks, Permissions};
use crate::run::program::{Program, Ralph};
use crate::run::settings::{ConfigHome, InterruptedScripts, OnLostSession, Pinning, Settings};
use crate::run::start::Start;
use crate::run::stop::{Interruption, StopMode, StopOrigin};
use crate::run::warning::Warning;
use crate::run::{DiscardedCost, WaitEnd};
use crate::scheduler::Hold;
use crate::scheduler::{Lane, Prompt};
use crate::time::{Span, Timestamp};
use crate::value::{BlobRef, Hash, Value};

use super::super::play::turn;

pub(super) const INPUT_KINDS: [&str; 11] = [
    "start",
    "resume",
    "settled",
    "due",
    "stop",
    "answer",
    "adopt",
    "rewind",
    "call",
    "now",
    "cancel_agent",
];

pub(super) const EVENT_KINDS: [&str; 39] = [
    "run_started",
    "run_resumed",
    "definition_adopted",
    "run_rewound",
    "stop_requested",
    "run_ended",
    "turn_queued",
    "turn_requeued",
    "turn_started",
    "turn_settled",
    "turn_continues",
    "turn_failed",
    "turn_interrupted",
    "retry_at",
    "backend_held",
    "backend_released",
    "session_lost",
    "asked",
    "ask_answered",
    "ask_expired",
    "agent_spawned",
    "visit_entered",
    "reminded",
    "moved",
    "agent_ended",
    "agent_failed",
    "agent_held",
    "agent_revived",
    "warned",
    "stepped",
    "turn_recalled",
    "agent_waits",
    "agent_joins",
    "wait_over",
    "joined",
    "cancel_requested",
    "agent_cancelling",
    "agent_cancelled",
    "agent_asks",
];

/// A new variant needs a kind, and with it a sample.
pub(super) const fn input_kind(input: &Input) -> &'static str {
    let [start, resume, settled, due, stop, answer, adopt, rewind, call, now, cancel_agent] =
        INPUT_KINDS;
    match input {
        Input::Start(_) => start,
        Input::Resume(_) => resume,
        Input::Settled { .. } => settled,
        Input::Due => due,
        Input::Now => now,
        Input::Stop { .. } => stop,
        Input::CancelAgent { .. } => cancel_agent,
        Input::Answer { .. } => answer,
        Input::Adopt { .. } => adopt,
        Input::Rewind { .. } => rewind,
        Input::Call(_) => call,
    }
}

/// A new variant needs a kind, and with it a sample.
pub(super) const fn event_kind(event: &Event) -> &'static str {
    let index = match event {
        Event::RunStarted(_) => 0,
        Event::RunResumed { .. } => 1,
        Event::DefinitionAdopted { .. } => 2,
        Event::RunRewound { .. } => 3,
        Event::StopRequested { .. } => 4,
        Event::RunEnded { .. } => 5,
        Event::TurnQueued { .. } => 6,
        Event::TurnRequeued { .. } => 7,
        Event::TurnStarted { .. } => 8,
        Event::TurnSettled { .. } => 9,
        Event::TurnContinues { .. } => 10,
        Event::TurnFailed { .. } => 11,
        Event::TurnInterrupted { .. } => 12,
        Event::RetryAt { .. } => 13,
        Event::BackendHeld { .. } => 14,
        Event::BackendReleased { .. } => 15,
        Event::SessionLost { .. } => 16,
        Event::Asked { .. } => 17,
        Event::AskAnswered { .. } => 18,
        Event::AskExpired { .. } => 19,
        Event::AgentSpawned { .. } => 20,
        Event::VisitEntered { .. } => 21,
        Event::Reminded { .. } => 22,
        Event::Moved { .. } => 23,
        Event::AgentEnded { .. } => 24,
        Event::AgentFailed { .. } => 25,
        Event::AgentHeld { .. } => 26,
        Event::AgentRevived { .. } => 27,
        Event::Warned { .. } => 28,
        Event::Stepped { .. } => 29,
        Event::TurnRecalled { .. } => 30,
        Event::AgentWaits { .. } => 31,
        Event::AgentJoins { .. } => 32,
        Event::WaitOver { .. } => 33,
        Event::Joined { .. } => 34,
        Event::CancelRequested { .. } => 35,
        Event::AgentCancelling { .. } => 36,
        Event::AgentCancelled { .. } => 37,
        Event::AgentAsks { .. } => 38,
    };
    EVENT_KINDS[index]
}

fn blob() -> Value {
    Value::Blob(BlobRef { hash: Hash::of(b"large"), length: 20_000 })
}

fn settings() -> Settings {
    Settings {
        budget: None,
        strict_budget: true,
        replies: Some("/flow/replies.jsonl".into()),
        model: Some("opus".into()),
        effort: Some("high".into()),
        timeout: Some(Span::minutes(10)),
        idle_timeout: Some(Span::seconds(90)),
        no_wait: true,
        on_lost_session: OnLostSession::Fresh,
        interrupted_scripts: InterruptedScripts::Fail,
        definition: Pinning::Unpinned,
        vars: BTreeMap::from([("goal".to_owned(), "win".to_owned())]),
        ..Settings::default()
    }
}

pub(super) fn start(input: Option<Value>, settings: Settings) -> Box<Start> {
    Box::new(Start {
        run: "flow-1".into(),
        nonce: "c0ffee".into(),
        workflow: "/flow/START.md".into(),
        scope: "/flow".into(),
        manifest: blob(),
        cwd: "/home".into(),
        input,
        program: Program::States,
        settings,
        backends: BTreeSet::new(),
    })
}

pub(super) fn inputs() -> Vec<Input> {
    let outcomes = outcomes().into_iter();
    let settled =
        outcomes.map(|outcome| Input::Settled { turn: turn("main_w1.3.2"), attempt: 2, outcome });
    let stop = |mode| Input::Stop { mode, by: StopOrigin::Command, key: "k".into() };
    let mut inputs = vec![
        Input::Start(start(None, Settings::default())),
        Input::Start(start(Some("hello".into()), settings())),
        Input::Resume(Box::new(Resume { settings: settings(), is_wake: false })),
    ];
    inputs.extend(settled);
    inputs.push(Input::Due);
    inputs.extend([StopMode::AfterTurn, StopMode::Now, StopMode::Cancel].map(stop));
    inputs.push(Input::Answer {
        ask: turn("main.1.1"),
        value: "yes".into(),
        by: "ann".into(),
        key: "k".into(),
    });
    inputs.push(Input::Adopt { manifest: blob(), changed: Vec::new() });
    inputs.push(Input::Rewind {
        kept: 7,
        nonce: "beef".into(),
        discarded: DiscardedCost::default(),
        again: Vec::new(),
        governed: None,
    });
    inputs
}

fn plain() -> Finished {
    Finished::new(Value::from("<result>x</result>").into(), Cost::Free)
}

fn outcomes() -> Vec<Outcome> {
    let plain = plain();
    let full = Finished {
        reply: ReadReply {
            directories: BTreeMap::from([("sub".to_owned(), "/home/sub".to_owned())]),
            stderr: "oh".into(),
            ..blob().into()
        },
        cost: Cost::Reported(Micros(1_500)),
        capped: true,
        session: Some("s1".into()),
        denied: vec!["Bash".into()],
        warnings: vec![Warning::InvalidUtf8],
        ..plain.clone()
    };
    let interrupted =
        |by, cost, progressed| Outcome::Interrupted { by, cost, progressed, session: None };
    let failure = TurnFailure::Transient { why: "overloaded".into() };
    vec![
        Outcome::Finished(Box::new(plain)),
        Outcome::Finished(Box::new(full)),
        Outcome::Capped {
            cost: Cost::Estimated(Micros(7)),
            progressed: true,
            denied: Vec::new(),
            session: None,
        },
        Outcome::Failed { failure, cost: Cost::Unknown, denied: Vec::new(), session: None },
        interrupted(Interruption::Crash, Cost::Unknown, true),
        interrupted(Interruption::Stop, Cost::Free, false),
    ]
}

/// Samples that were added after the first lines of the fixture.
pub(super) fn added() -> (Vec<Input>, Vec<Event>) {
    let permissions = Permissions {
        mode: Some("plan".into()),
        allow: vec!["Read".into()],
        deny: vec!["Bash(rm:*)".into()],
        checks: Checks::Skipped,
    };
    let settings = Settings {
        permissions,
        config_home: ConfigHome::PerAgent,
        environment: Some(vec!["PATH".into()]),
        ..settings()
    };
    let model = || Some("opus".to_owned());
    let (turn, attempt) = (turn("main_w1.3.2"), 2);
    let finished = Finished { model: model(), ..plain() };
    let outcome = Outcome::Finished(Box::new(finished));
    let settled = Event::TurnSettled {
        turn: turn.clone(),
        attempt,
        charge: Charge { amount: Micros(1_500), basis: Basis::Reported },
        session: Session::At("s1".into()),
        model: model(),
    };
    let resume = Input::Resume(Box::new(Resume { settings, is_wake: false }));
    (vec![resume, Input::Settled { turn, attempt, outcome }], vec![settled])
}

/// Samples that were added after these.
pub(super) fn denied() -> [Input; 2] {
    let denied = || vec!["Bash(make)".to_owned()];
    let failure = TurnFailure::Task { why: "no".into() };
    let outcomes = [
        Outcome::Capped { cost: Cost::Unknown, progressed: true, denied: denied(), session: None },
        Outcome::Failed { failure, cost: Cost::Unknown, denied: denied(), session: None },
    ];
    outcomes.map(|outcome| Input::Settled { turn: turn("main_w1.3.2"), attempt: 2, outcome })
}

/// Added with runs of several backends.
pub(super) fn mixed() -> Vec<Event> {
    let crossing = Fault::OtherBackend {
        tag: TagName::Function,
        state: "R.md".into(),
        answers: "codex".into(),
        holds: "claude".into(),
    };
    let reminded = |fault| Event::Reminded { agent: "main".into(), fault, reminder: 1 };
    let failure = AgentFailure::OtherBackend {
        state: "R.md".into(),
        answers: "codex".into(),
        holds: "claude".into(),
        instead_of: None,
    };
    let settings = Settings { no_branch: ["linear".into()].into(), ..settings() };
    vec![
        Event::RunResumed { settings: Box::new(settings) },
        reminded(crossing),
        reminded(Fault::NoBranch { backend: "linear".into() }),
        Event::AgentFailed { agent: "main".into(), failure, kept: None },
    ]
}

/// Added with clients that choose the ids of their sessions.
pub(super) fn opened() -> (Vec<Input>, Vec<Event>) {
    let (turn, attempt, session) = (turn("main_w1.3.2"), 2, || Some("t1".into()));
    let charge = Charge { amount: Micros(1_500), basis: Basis::Estimated };
    let failure = TurnFailure::Task { why: "no".into() };
    let (by, cost) = (Interruption::Crash, Cost::Unknown);
    let outcomes = [
        Outcome::Capped { cost, progressed: true, denied: Vec::new(), session: session() },
        Outcome::Failed { failure: failure.clone(), cost, denied: Vec::new(), session: session() },
        Outcome::Interrupted { by, cost, progressed: true, session: session() },
    ];
    let settled = |outcome| Input::Settled { turn: turn.clone(), attempt, outcome };
    let inputs = outcomes.into_iter().map(settled).collect();
    let (id, crashes) = (|| turn.clone(), 1);
    let events = vec![
        Event::TurnContinues { turn: id(), attempt, charge, stalls: 0, session: session() },
        Event::TurnFailed { turn: id(), attempt, charge, failure, session: session() },
        Event::TurnInterrupted { turn: id(), attempt, charge, by, crashes, session: session() },
    ];
    (inputs, events)
}

/// Added with caps that bind adopted clients, costs that are known in part, and failures of the
/// machine.
pub(super) fn capped() -> (Vec<Input>, Vec<Event>) {
    let (turn, attempt) = (turn("main_w1.3.2"), 2);
    let why = || "no room for the transcript".to_owned();
    let failure = || TurnFailure::Environment { why: why() };
    let (denied, session) = (Vec::new, None);
    let outcomes = [
        Outcome::Capped { cost: Cost::Unknown, progressed: false, denied: denied(), session },
        Outcome::Failed {
            failure: failure(),
            cost: Cost::AtLeast(Micros(1_500)),
            denied: denied(),
            session: None,
        },
    ];
    let settled = |outcome| Input::Settled { turn: turn.clone(), attempt, outcome };
    let inputs = outcomes.map(settled).into();
    let (id, unpriced) = (|| turn.clone(), Charge { amount: Micros(9), basis: Basis::Unpriced });
    let failed = |failure| Event::AgentFailed { agent: "main".into(), failure, kept: None };
    let (charge, session) = (unpriced, None);
    let events = vec![
        Event::TurnRecalled { turn: id(), attempt },
        Event::TurnContinues { turn: id(), attempt, charge, stalls: 5, session },
        Event::TurnFailed { turn: id(), attempt, charge, failure: failure(), session: None },
        Event::BackendHeld { backend: "claude".into(), hold: Hold::Environment { why: why() } },
        failed(AgentFailure::Stalled { count: 5 }),
        Event::RunEnded { ending: Ending::Environment },
    ];
    (inputs, events)
}

/// Added with `ralph`.
pub(super) fn ralph() -> (Input, Vec<Event>) {
    let until = || Some("make check".to_owned());
    let settings = Settings { max_iterations: 3, ..Settings::default() };
    let started = |until| Start {
        program: Program::Ralph(Ralph { until }),
        ..*start(None, Settings::default())
    };
    let warned = |warning| Event::Warned { agent: Some("main".into()), warning };
    let failure = AgentFailure::Turn(TurnFailure::Task { why: "no".into() });
    let events = vec![
        Event::RunStarted(Box::new(started(None))),
        Event::RunResumed { settings: Box::new(settings) },
        warned(Warning::IterationFailed { iteration: 2, failure }),
        warned(Warning::ResultRefused { iteration: 2, why: "exit status 1".into() }),
        warned(Warning::NotPassed { iteration: 2, why: "exit status 1".into() }),
        warned(Warning::Exhausted { iterations: 50, until: None }),
        warned(Warning::Exhausted { iterations: 50, until: until() }),
    ];
    (Input::Start(Box::new(started(until()))), events)
}

pub(super) fn events() -> Vec<Event> {
    [run_events(), turn_events(), desk_events(), agent_events(), warnings()].concat()
}

fn run_events() -> Vec<Event> {
    let stop = |mode| Event::StopRequested { mode, by: StopOrigin::Command, key: "k".into() };
    let ended = |ending| Event::RunEnded { ending };
    let mut events = vec![
        Event::RunStarted(start(Some("hello".into()), Settings::default())),
        Event::RunResumed { settings: Box::new(settings()) },
        Event::DefinitionAdopted { manifest: "[]".into() },
        Event::RunRewound {
            kept: 7,
            nonce: "beef".into(),
            discarded: DiscardedCost::default(),
            governed: None,
        },
    ];
    events.extend([StopMode::AfterTurn, StopMode::Now, StopMode::Cancel].map(stop));
    let endings = [
        Ending::Completed,
        Ending::Failed,
        Ending::OverBudget,
        Ending::Stopped,
        Ending::Cancelled,
        Ending::NeedsPerson,
        Ending::NoQuota,
    ];
    events.extend(endings.map(ended));
    events
}

fn turn_events() -> Vec<Event> {
    let id = || turn("main_w1.3.2");
    let charge = |amount, basis| Charge { amount: Micros(amount), basis };
    let queued = |lane, prompt, plan, notice| Event::TurnQueued {
        turn: id(),
        lane,
        prompt,
        plan,
        order: 12,
        notice,
    };
    let claude = || Lane::Prompt("claude".into());
    let branch = SessionPlan::Branch { from: "s1".into(), to: "s2".into() };
    let requeued = |notice| Event::TurnRequeued { turn: id(), order: 13, notice };
    let started = |share, plan| Event::TurnStarted { turn: id(), attempt: 2, share, plan };
    let settled = |charge, session| Event::TurnSettled {
        turn: id(),
        attempt: 2,
        charge,
        session,
        model: None,
    };
    let failed = |failure| Event::TurnFailed {
        turn: id(),
        attempt: 2,
        charge: charge(0, Basis::Unpriced),
        failure,
        session: None,
    };
    let continues =
        |charge| Event::TurnContinues { turn: id(), attempt: 2, charge, stalls: 0, session: None };
    let cut = |by, crashes| Event::TurnInterrupted {
        turn: id(),
        attempt: 2,
        charge: charge(5, Basis::Estimated),
        by,
        crashes,
        session: None,
    };
    let mut events = vec![
        queued(Lane::Script, Prompt::Body, SessionPlan::Carry, None),
        queued(claude(), Prompt::Reminder(no_tag()), SessionPlan::Resume("s1".into()), None),
        queued(claude(), Prompt::Body, SessionPlan::Fresh("s1".into()), Some(Notice::Revived)),
    ];
    let notices = [Notice::Interrupted, Notice::Retried, Notice::NewShare, Notice::SessionLost];
    events.extend(notices.map(requeued));
    let or_else = Box::new(branch.clone());
    events.extend([
        started(None, SessionPlan::Carry),
        started(Some(Micros(2_500_000)), branch),
        started(Some(Micros(1)), SessionPlan::Continue { session: "s2".into(), or_else }),
        settled(charge(0, Basis::Free), Session::Fresh),
        settled(charge(1_500, Basis::Reported), Session::At("s1".into())),
        settled(charge(1_500, Basis::Estimated), Session::BranchOf("s1".into())),
        continues(charge(9, Basis::Reported)),
    ]);
    events.extend(turn_failures().into_iter().map(failed));
    events.extend([cut(Interruption::Crash, 3), cut(Interruption::Stop, 0)]);
    events
}

fn turn_failures() -> Vec<TurnFailure> {
    let why = || "because".to_owned();
    let timeout = |clock| TurnFailure::Timeout { clock, after: Span::minutes(2) };
    vec![
        TurnFailure::Transient { why: why() },
        timeout(Clock::FirstOutput),
        timeout(Clock::Idle),
        timeout(Clock::Wall),
        TurnFailure::Quota { until: None, why: why() },
        TurnFailure::Quota { until: Some(Timestamp(9)), why: why() },
        TurnFailure::Auth { why: why() },
        TurnFailure::Task { why: why() },
        TurnFailure::LostSession { session: "s1".into() },
        TurnFailure::Script { status: "exit status 1".into(), stderr: "oh".into(), tag: None },
        TurnFailure::Script {
            status: "exit status 1".into(),
            stderr: String::new(),
            tag: Some(TagName::Goto),
        },
        TurnFailure::OutputTooLarge { limit: 67_108_864, head: String::new(), tail: String::new() },
        TurnFailure::NotStarted { why: why() },
    ]
}

fn desk_events() -> Vec<Event> {
    let ask = || turn("main.1.1");
    let held = |hold| Event::BackendHeld { backend: "claude".into(), hold };
    vec![
        Event::RetryAt { turn: ask(), until: Timestamp(2_100), retry: 1, of: None },
        held(Hold::Quota { until: Timestamp(9), why: "limit".into() }),
        held(Hold::Auth { why: "log in".into() }),
        Event::BackendReleased { backend: "claude".into() },
        Event::SessionLost {
            turn: ask(),
            lost: "s1".into(),
            plan: SessionPlan::Fresh("s2".into()),
        },
        Event::Asked { ask: ask(), question: "may I?".into(), due: None },
        Event::Asked { ask: ask(), question: "may I?".into(), due: Some(Timestamp(9)) },
        Event::AskAnswered { ask: ask(), value: "yes".into(), by: "ann".into(), key: "k".into() },
        Event::AskExpired { ask: ask() },
    ]
}

fn agent_events() -> Vec<Event> {
    let attributes = Few::from([("item".to_owned(), Value::from("1"))]);
    let spawned = |agent: &str, parent: Option<&str>, attributes| Event::AgentSpawned {
        agent: agent.into(),
        parent: parent.map(Into::into),
        cwd: "/home".into(),
        attributes,
    };
    let entered = |input| Event::VisitEntered {
        agent: "main".into(),
        location: StateName::new("A.md").into(),
        visit: 3,
        count: 2,
        input,
        result_status: ResultStatus::Ok,
    };
    let reminded = |fault| Event::Reminded { agent: "main".into(), fault, reminder: 1 };
    let failed = |failure| Event::AgentFailed { agent: "main".into(), failure, kept: None };
    let mut events = vec![
        spawned("main", None, Few::default()),
        spawned("main_w1", Some("main"), attributes),
        entered(None),
        entered(Some(blob())),
    ];
    events.extend(faults().into_iter().map(reminded));
    events.extend(transition());
    events.push(Event::AgentEnded { agent: "main".into(), result: blob() });
    events.extend(failures().into_iter().map(failed));
    let kept = PendingTransition {
        tags: tags(),
        directories: BTreeMap::from([("sub".to_owned(), "/home/sub".to_owned())]),
    };
    let failure = AgentFailure::Visits { state: "A.md".into(), limit: 2 };
    let agent = "main".into();
    events.push(Event::AgentFailed { agent, failure, kept: Some(kept.clone()) });
    events.push(Event::AgentHeld { agent: "main".into(), kept });
    events.push(Event::AgentRevived { agent: "main".into() });
    if let Event::VisitEntered { agent, location, visit, count, .. } = entered(None) {
        let (input, result_status) = (Some("why".into()), ResultStatus::Failed);
        events.push(Event::VisitEntered { agent, location, visit, count, input, result_status });
    }
    let gave_up = vec![Tag::Result { payload: "why".into(), status: ResultStatus::Failed }];
    let kept = PendingTransition { tags: gave_up, directories: BTreeMap::new() };
    events.push(Event::AgentHeld { agent: "main".into(), kept });
    events
}

fn transition() -> Vec<Event> {
    let moved = |tag, stack, session| Event::Moved {
        agent: "main".into(),
        tag,
        stack,
        session,
        cwd: None,
        model: None,
        model_of: None,
        forks: 0,
        instead_of: None,
        implicit: false,
    };
    let frame = |model| Frame {
        state: "R.md".into(),
        session: Session::At("s1".into()),
        holder: None,
        cwd: "/home".into(),
        model,
        model_of: None,
    };
    let push = |model| StackChange::Push(frame(model));
    let branched = || Session::BranchOf("s1".into());
    vec![
        moved(TagName::Goto, StackChange::Keep, Session::At("s1".into())),
        moved(TagName::Reset, StackChange::Clear, Session::Fresh),
        moved(TagName::Call, push(None), branched()),
        moved(TagName::Function, push(Some("opus".into())), Session::Fresh),
        moved(TagName::Result, StackChange::Pop, Session::At("s1".into())),
        Event::Moved {
            agent: "main".into(),
            tag: TagName::Fork,
            stack: StackChange::Keep,
            session: Session::Fresh,
            cwd: Some("/tmp".into()),
            model: Some("opus".into()),
            model_of: None,
            forks: 3,
            instead_of: Some("LOOP.md".into()),
            implicit: true,
        },
    ]
}

fn tags() -> Vec<Tag> {
    let (target, input) = ("A".to_owned(), Some(Value::from("x")));
    let invoke = Invoke {
        target: target.clone(),
        return_to: "R".into(),
        input: input.clone(),
        model: Some("opus".into()),
    };
    let plain = Invoke { input: None, model: None, ..invoke.clone() };
    let cd = Some("sub".to_owned());
    let attributes = Few::from([("item".to_owned(), Value::from("1"))]);
    let fork =
        |next, cd, input, attributes| Tag::Fork { target: "A".into(), next, cd, input, attributes };
    vec![
        Tag::Goto { target: target.clone(), input: None },
        Tag::Goto { target: target.clone(), input: input.clone() },
        Tag::Reset { target: target.clone(), input: None, cd: None, stack: Stack::Keep },
        Tag::Reset { target, input: input.clone(), cd: cd.clone(), stack: Stack::Clear },
        Tag::Call(invoke),
        Tag::Function(plain),
        fork(None, None, None, Few::default()),
        fork(Some("N".into()), cd, input, attributes),
        Tag::Result { payload: "raw\n".into(), status: ResultStatus::Ok },
    ]
}

fn malformed() -> Malformed {
    Malformed { tag: TagName::Call, why: "it needs a return".into() }
}

/// The tags of the first release. The list is fixed, because the recorded format is.
fn first_tags() -> Vec<TagName> {
    use TagName::{Call, Fork, Function, Goto, Reset, Result};
    vec![Goto, Reset, Call, Function, Fork, Result]
}

fn no_tag() -> Fault {
    Fault::NoTag(Untagged {
        in_code: true,
        resembles: Some("GOTO".into()),
        last_line: "Done.".into(),
    })
}

fn faults() -> Vec<Fault> {
    vec![
        no_tag(),
        Fault::SeveralTags { tags: first_tags(), count: 9 },
        Fault::Malformed(vec![malformed()]),
        Fault::Unresolved {
            tag: TagName::Goto,
            attribute: None,
            target: "X".into(),
            why: "no such".into(),
        },
        Fault::Unresolved {
            tag: TagName::Call,
            attribute: Some("return".into()),
            target: "X".into(),
            why: "no such".into(),
        },
        Fault::NextDiffers { states: vec!["A.md".into(), "B.md".into()] },
        Fault::NoDirectory { tag: TagName::Reset, cd: "sub".into() },
        Fault::Forbidden { tag: TagName::Goto, target: None, follower: None },
        Fault::Forbidden { tag: TagName::Goto, target: Some("X.md".into()), follower: None },
        Fault::Forbidden {
            tag: TagName::Call,
            target: Some("X.md".into()),
            follower: Some("Y.md".into()),
        },
        Fault::Denied { tools: vec!["Bash".into()] },
    ]
}

fn failures() -> Vec<AgentFailure> {
    let protocol = |stderr: &str| AgentFailure::Protocol {
        fault: Box::new(no_tag()),
        stderr: stderr.into(),
        accepted: vec!["<goto>A</goto>".into()],
    };
    vec![
        AgentFailure::Turn(TurnFailure::Task { why: "no".into() }),
        protocol(""),
        protocol("oh"),
        AgentFailure::Visits { state: "A.md".into(), limit: 2 },
        AgentFailure::VisitBudget { budget: Micros(5) },
        AgentFailure::TooManyAgents { asked: 9, limit: 3 },
        AgentFailure::HeldForGood { limit: 3 },
        AgentFailure::TooDeep { parent: "main_w1".into() },
        AgentFailure::Crashes { count: 5 },
        AgentFailure::InterruptedScript,
        AgentFailure::Denied { tools: vec!["Bash".into()] },
        AgentFailure::Unanswered,
        AgentFailure::Declared { reason: "tests fail".into() },
        AgentFailure::Exhausted { iterations: 50, until: Some("make".into()) },
    ]
}

fn warnings() -> Vec<Event> {
    let warnings = [
        Warning::MalformedTag(malformed()),
        Warning::UnknownAttribute { tag: TagName::Goto, name: "colour".into() },
        Warning::InvalidUtf8,
        Warning::UnknownVariable { name: "x".into(), nearest: None },
        Warning::UnknownVariable { name: "x".into(), nearest: Some("y".into()) },
        Warning::ReturnsDropped { frames: 2 },
        Warning::ToolDenied { tool: "Bash".into() },
        Warning::Other { message: "look".into() },
    ];
    let agent = || Some("main".into());
    let warned = |warning| Event::Warned { agent: agent(), warning };
    let run = Event::Warned { agent: None, warning: Warning::Spent { percent: 80 } };
    warnings.into_iter().map(warned).chain([run]).collect()
}

/// Added later: the versions of clients.
pub(super) fn versions() -> Event {
    let clients = [("claude".into(), "2.1.325".to_owned())].into();
    Event::RunResumed { settings: Box::new(Settings { clients, ..Settings::default() }) }
}

/// Added later: the user's own prices.
pub(super) fn priced() -> Event {
    let one = Micros(1_000_000);
    let price = Price { input: one, output: one, cache_write: one, cache_read: one };
    let prices = Some([("house-model".to_owned(), price)].into());
    Event::RunResumed { settings: Box::new(Settings { prices, ..Settings::default() }) }
}

/// Added later: the backends that the states of a run may use.
pub(super) fn backends() -> (Input, Event) {
    let backends = ["claude".into(), "codex".into()].into();
    let start = Box::new(Start { backends, ..*start(None, Settings::default()) });
    (Input::Start(start.clone()), Event::RunStarted(start))
}

/// Added later: the backend of a model, and the state that a limit replaced.
pub(super) fn named() -> Vec<Event> {
    let (opus, claude) = (|| Some("opus".to_owned()), || Some("claude".into()));
    let frame = Frame {
        state: "R.md".into(),
        session: Session::At("s1".into()),
        holder: None,
        cwd: "/home".into(),
        model: opus(),
        model_of: claude(),
    };
    let moved = Event::Moved {
        agent: "main".into(),
        tag: TagName::Function,
        stack: StackChange::Push(frame),
        session: Session::Fresh,
        cwd: None,
        model: opus(),
        model_of: claude(),
        forks: 0,
        instead_of: None,
        implicit: false,
    };
    let failure = AgentFailure::OtherBackend {
        state: "X.md".into(),
        answers: "codex".into(),
        holds: "claude".into(),
        instead_of: Some("LOOP.md".into()),
    };
    vec![moved, Event::AgentFailed { agent: "main".into(), failure, kept: None }]
}

/// The end of a turn in flight was discarded.
pub(super) fn again() -> Input {
    let (nonce, discarded) = ("c0ffee~beef".into(), DiscardedCost::default());
    Input::Rewind { kept: 7, nonce, discarded, again: vec![turn("main.1.1")], governed: None }
}

/// The discarded records had a cost.
pub(super) fn rewound() -> (Input, Event) {
    let discarded =
        DiscardedCost { amount: Micros(800_000), unpriced: 1, ..DiscardedCost::default() };
    (
        Input::Rewind {
            kept: 7,
            nonce: "beef".into(),
            discarded: discarded.clone(),
            again: Vec::new(),
            governed: None,
        },
        Event::RunRewound { kept: 7, nonce: "beef".into(), discarded, governed: None },
    )
}

/// Added later: the part of the discarded cost that counts for kept visits.
pub(super) fn paid_by_visit() -> (Input, Event) {
    let visits = [("main".into(), Micros(300_000))].into();
    let discarded = DiscardedCost { amount: Micros(800_000), unpriced: 0, visits };
    let rewound = Event::RunRewound {
        kept: 7,
        nonce: "beef".into(),
        discarded: discarded.clone(),
        governed: None,
    };
    (
        Input::Rewind {
            kept: 7,
            nonce: "beef".into(),
            discarded,
            again: Vec::new(),
            governed: None,
        },
        rewound,
    )
}

/// The discarded records had other settings.
pub(super) fn governed() -> (Input, Event) {
    let (nonce, discarded) = (crate::ids::Nonce::from("beef"), DiscardedCost::default());
    let governed = Some(Box::new(Settings { budget: Some(Micros(5)), ..Settings::default() }));
    let rewound = Event::RunRewound {
        kept: 7,
        nonce: nonce.clone(),
        discarded: discarded.clone(),
        governed: governed.clone(),
    };
    (Input::Rewind { kept: 7, nonce, discarded, again: Vec::new(), governed }, rewound)
}

pub(super) fn waits() -> (Input, Vec<Event>) {
    let goto = Tag::Goto { target: "A.md".into(), input: Some("again".into()) };
    let later = |when| Tag::Later { tag: Box::new(goto.clone()), when };
    let tags = vec![later(When::After(Span::minutes(5))), later(When::At(Timestamp(7)))];
    let kept = PendingTransition { tags, directories: BTreeMap::new() };
    let held = Event::AgentHeld { agent: "main".into(), kept };
    let kept = PendingTransition { tags: vec![goto], directories: BTreeMap::new() };
    let waits = |span, forks| Event::AgentWaits {
        agent: "main".into(),
        kept: kept.clone(),
        until: Timestamp(300_000),
        span,
        forks,
    };
    let warned = |warning| Event::Warned { agent: None, warning };
    let events = vec![
        held,
        waits(None, 0),
        waits(Some(Span::minutes(5)), 2),
        warned(Warning::ClockSetBack { until: Timestamp(7) }),
        warned(Warning::LongWait { backend: "claude".into() }),
        Event::RunEnded { ending: Ending::Sleeping },
    ];
    (Input::Now, events)
}

pub(super) fn joins() -> (Input, Vec<Event>) {
    let gather = |need, timeout, then| Tag::Gather { target: "M.md".into(), need, timeout, then };
    let tags = vec![
        gather(Need::All, None, None),
        gather(Need::Done, Some(Span::minutes(5)), Some("LATE.md".to_owned())),
        gather(Need::Count(3), None, Some("M.md".to_owned())),
    ];
    let held = PendingTransition { tags: tags.clone(), directories: BTreeMap::new() };
    let joins = |need, until| Event::AgentJoins {
        agent: "main".into(),
        kept: PendingTransition { tags: tags[..1].to_vec(), directories: BTreeMap::new() },
        workers: vec!["main_w1".into(), "main_w2".into()],
        need,
        until,
        forks: 2,
    };
    let over = |end| Event::WaitOver { agent: "main".into(), end };
    let cancelled = |why| Event::AgentCancelled { agent: "main_w2".into(), why };
    let requested = CancelReason::Requested { by: "ada".to_owned() };
    let events = vec![
        Event::AgentHeld { agent: "main".into(), kept: held },
        joins(Need::All, None),
        joins(Need::Count(1), Some(Timestamp(300_000))),
        over(WaitEnd::Met),
        over(WaitEnd::Unmet),
        over(WaitEnd::TimedOut),
        Event::Joined { agent: "main".into(), failed: Vec::new() },
        Event::Joined { agent: "main".into(), failed: vec!["main_w1".into()] },
        Event::CancelRequested { agent: "main_w2".into(), by: "ada".into(), key: "k".into() },
        Event::AgentCancelling { agent: "main_w2".into(), why: requested.clone() },
        cancelled(requested),
        cancelled(CancelReason::EnoughEnded),
        cancelled(CancelReason::TimedOut),
        cancelled(CancelReason::Failed("main_w1".into())),
    ];
    (Input::CancelAgent { agent: "main_w2".into(), by: "ada".into(), key: "k".into() }, events)
}

pub(super) fn questions() -> Vec<Event> {
    let ask = |options: &[&str], timeout| {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Tag::Ask(Question { next: "D.md".into(), text: "Why?".into(), options, timeout })
    };
    let timeout = |otherwise| Some(AskTimeout { after: Span::minutes(5), otherwise });
    let tags = vec![
        ask(&[], None),
        ask(&["yes", "no"], timeout(Otherwise::Then("LATE.md".to_owned()))),
        ask(&["yes", "no"], timeout(Otherwise::Default("no".to_owned()))),
        Tag::Answered { next: "D.md".into(), answer: "yes".into() },
    ];
    let kept =
        |tags: &[Tag]| PendingTransition { tags: tags.to_vec(), directories: BTreeMap::new() };
    vec![
        Event::AgentHeld { agent: "main".into(), kept: kept(&tags) },
        Event::AgentAsks {
            agent: "main".into(),
            kept: kept(&tags[..1]),
            ask: "main.1.1".parse().unwrap(),
            at: Timestamp(7),
        },
        Event::Warned {
            agent: None,
            warning: Warning::AnswerIsNoOption { answer: "x".into(), options: vec!["y".into()] },
        },
    ]
}
