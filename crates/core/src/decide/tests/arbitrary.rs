//! Random events: any kind, about any agent, with any number.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::agent::{CancelReason, PendingTransition, Session, SessionPlan};
use crate::budget::{Basis, Charge, Micros};
use crate::failure::{AgentFailure, TurnFailure};
use crate::few::Few;
use crate::ids::{AgentId, StateName, TurnId};
use crate::protocol::Notice;
use crate::protocol::{Fault, Need, ResultStatus, Tag, TagName, Untagged};
use crate::run::event::{Ending, Event, StackChange};
use crate::run::settings::Settings;
use crate::run::start::Start;
use crate::run::stop::{Interruption, StopMode, StopOrigin};
use crate::run::warning::Warning;
use crate::run::{DiscardedCost, Program, WaitEnd};
use crate::scheduler::Hold;
use crate::scheduler::{Lane, Prompt};
use crate::time::Timestamp;
use crate::value::Value;

/// The number of kinds of events.
pub(super) const KINDS: u8 = 36;

/// Generates many events, most of them without sense.
pub(super) fn events() -> impl Strategy<Value = Vec<Event>> {
    let number = prop_oneof![6 => 0..6_u64, 1 => Just(u64::MAX), 1 => any::<u64>()];
    // A start is rare, because it resets everything before it.
    let kind = prop_oneof![40 => 1..KINDS, 1 => Just(0)];
    let event = (kind, 0..4_u8, number).prop_map(|(kind, who, n)| event(kind, who, n));
    prop::collection::vec(event, 1..120)
}

/// Returns one event of a kind, about an agent, with a number in every numeric field.
#[expect(clippy::too_many_lines, reason = "one flat table of all events")]
pub(super) fn event(kind: u8, who: u8, n: u64) -> Event {
    let agent: AgentId = ["main", "main_w1", "main_w2", "main_w1_w1"]
        .get(usize::from(who))
        .map_or_else(|| "stranger".into(), |name| (*name).into());
    let small = u32::try_from(n).unwrap_or(u32::MAX);
    let turn = TurnId { agent: agent.clone(), visit: small, turn: small };
    let amount = Micros(n.saturating_mul(50_000));
    let basis =
        [Basis::Free, Basis::Reported, Basis::Estimated, Basis::Unpriced][small as usize % 4];
    let charge = Charge { amount, basis };
    let lane = if n.is_multiple_of(2) { Lane::Script } else { Lane::Prompt("claude".into()) };
    let plan = SessionPlan::Fresh("s".into());
    let attempt = small;
    let kept = PendingTransition { tags: vec![goto()], directories: BTreeMap::new() };
    let fault = Fault::NoTag(Untagged::default());
    match kind {
        0 => Event::RunStarted(start()),
        1 => Event::RunResumed {
            settings: Box::new(Settings { max_parallel: small, ..Settings::default() }),
        },
        2 => Event::DefinitionAdopted { manifest: "v".into() },
        3 => Event::RunRewound {
            kept: n,
            nonce: "n".into(),
            discarded: DiscardedCost { amount, unpriced: n, visits: [(agent, amount)].into() },
            governed: None,
        },
        4 => Event::StopRequested {
            mode: StopMode::AfterTurn,
            by: StopOrigin::Command,
            key: n.to_string(),
        },
        5 => Event::RunEnded { ending: Ending::Failed },
        6 => Event::TurnQueued { turn, lane, prompt: Prompt::Body, plan, order: n, notice: None },
        7 => Event::TurnRequeued { turn, order: n, notice: Notice::Retried },
        8 => Event::TurnStarted { turn, attempt, share: Some(amount), plan },
        9 => Event::TurnSettled { turn, attempt, charge, session: Session::Fresh, model: None },
        10 => Event::TurnContinues { turn, attempt, charge, stalls: small, session: None },
        11 => Event::TurnFailed { turn, attempt, charge, failure: transient(), session: None },
        12 => Event::TurnInterrupted {
            turn,
            attempt,
            charge,
            by: Interruption::Crash,
            crashes: small,
            session: None,
        },
        13 => Event::RetryAt { turn, until: Timestamp(n), retry: small, of: None },
        14 => {
            let hold = Hold::Quota { until: Timestamp(n), why: "limit".into() };
            Event::BackendHeld { backend: "claude".into(), hold }
        }
        15 => Event::BackendReleased { backend: "claude".into() },
        16 => Event::SessionLost { turn, lost: "s".into(), plan },
        17 => Event::Asked { ask: turn, question: "?".into(), due: Some(Timestamp(n)) },
        18 => {
            Event::AskAnswered { ask: turn, value: "!".into(), by: "ann".into(), key: "k".into() }
        }
        19 => Event::AskExpired { ask: turn },
        20 => {
            Event::AgentSpawned { agent, parent: None, cwd: "/".into(), attributes: Few::default() }
        }
        21 => Event::VisitEntered {
            agent,
            location: StateName::new("A.md").into(),
            visit: small,
            count: small,
            input: None,
            result_status: ResultStatus::Ok,
        },
        22 => Event::Reminded { agent, fault, reminder: small },
        23 => Event::Moved {
            agent,
            tag: TagName::Result,
            stack: StackChange::Pop,
            session: Session::Fresh,
            cwd: None,
            model: None,
            model_of: None,
            forks: small,
            instead_of: None,
            implicit: false,
        },
        24 => Event::AgentEnded { agent, result: Value::from("x") },
        25 => Event::AgentFailed { agent, failure: AgentFailure::Unanswered, kept: Some(kept) },
        26 => Event::AgentHeld { agent, kept },
        27 => Event::AgentRevived { agent },
        28 => Event::AgentWaits { agent, kept, until: Timestamp(n), span: None, forks: small },
        29 => {
            let workers = vec![AgentId::from("main_w1"), agent.clone()];
            let (need, until) = (Need::All, Some(Timestamp(n)));
            Event::AgentJoins { agent, kept, workers, need, until, forks: small }
        }
        30 => Event::WaitOver { agent, end: WaitEnd::Met },
        31 => Event::Joined { agent, failed: vec!["main_w1".into()] },
        32 => Event::CancelRequested { agent, by: "ann".into(), key: n.to_string() },
        33 => Event::AgentCancelling { agent, why: CancelReason::TimedOut },
        34 => Event::AgentCancelled { agent, why: CancelReason::EnoughEnded },
        35 => Event::AgentAsks { agent, kept, ask: turn, at: Timestamp(n) },
        _ => Event::Warned { agent: Some(agent), warning: Warning::Spent { percent: small } },
    }
}

fn goto() -> Tag {
    Tag::Goto { target: "A".into(), input: None }
}

fn transient() -> TurnFailure {
    TurnFailure::Transient { why: "x".into() }
}

fn start() -> Box<Start> {
    Box::new(Start {
        run: "r".into(),
        nonce: "n".into(),
        workflow: "/f".into(),
        scope: "/f".into(),
        manifest: "[]".into(),
        cwd: "/".into(),
        input: None,
        program: Program::States,
        settings: Settings::default(),
        backends: BTreeSet::new(),
    })
}
