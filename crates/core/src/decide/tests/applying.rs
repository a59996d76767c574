//! `apply` stores what an event contains, computes nothing, and accepts any event.

use proptest::prelude::*;

use super::arbitrary::{event, events};
use super::play::{Play, prompts, turn, usd};
use crate::agent::{Agent, AgentStatus, Joining, Session, SessionPlan};
use crate::budget::{Basis, Charge};
use crate::decide::advance;
use crate::ids::StateName;
use crate::protocol::{Fault, ResultStatus, Untagged};
use crate::run::event::{Event, StackChange};
use crate::run::start::Start;
use crate::run::{Input, Phase, Run, apply};
use crate::scheduler::{Hold, TurnPhase};
use crate::time::Timestamp;
use crate::view::{Ledger, OwnerState, States, next_command, status, why};

fn running() -> Run {
    Play::new(prompts(&["A.md"])).started().run
}

#[test]
fn start_event_initializes_the_run() {
    let Input::Start(start) = Play::new(prompts(&["A.md"])).with(|s| s.max_parallel = 7).begin()
    else {
        panic!("it begins otherwise");
    };
    let start = Start { scope: "/elsewhere".into(), ..*start };
    let mut run = Run::default();
    apply(&mut run, &Event::RunStarted(Box::new(start.clone())));
    let expected = Run {
        id: start.run,
        nonce: start.nonce,
        workflow: start.workflow,
        scope: start.scope,
        manifest: start.manifest,
        settings: start.settings,
        phase: Phase::Open,
        ..Run::default()
    };
    assert_eq!(run, expected);
}

#[test]
fn settled_turns_are_counted() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    for settled in 1..=3 {
        play.says("main", "<goto>A</goto>");
        assert_eq!(play.run.settled, settled);
    }
}

#[test]
fn agents_that_ended_are_counted() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    assert_eq!(play.run.ended.len(), 0);
    play.says("main_w1", "<result>x</result>");
    assert_eq!(play.run.ended.len(), 1);
    play.says("main", "<result>x</result>");
    assert_eq!(play.run.ended.len(), 2);
}

#[test]
fn numbers_are_stored_exactly_as_they_are_written() {
    let mut run = running();
    let agent = || "main".into();
    let state: StateName = "ELSEWHERE.md".into();
    let (visit, count) = (77, 42);
    apply(
        &mut run,
        &Event::VisitEntered {
            agent: agent(),
            location: state.clone().into(),
            visit,
            count,
            input: None,
            result_status: ResultStatus::Ok,
        },
    );
    apply(
        &mut run,
        &Event::Moved {
            agent: agent(),
            tag: crate::protocol::TagName::Goto,
            stack: StackChange::Pop,
            session: Session::At("odd".into()),
            cwd: None,
            model: Some("odd".into()),
            model_of: Some("strange".into()),
            forks: 9,
            instead_of: None,
            implicit: true,
        },
    );
    apply(
        &mut run,
        &Event::Reminded { agent: agent(), fault: Fault::NoTag(Untagged::default()), reminder: 31 },
    );
    apply(
        &mut run,
        &Event::RetryAt { turn: turn("main.1.1"), until: Timestamp(5), retry: 17, of: None },
    );
    let main = &run.agents[&"main".into()];
    let visited =
        (main.visits.get(&state), main.visit.number, main.visit.reminders, main.visit.retries);
    assert_eq!(visited, (Some(&42), 77, 31, 17));
    assert_eq!((main.forks, main.model.as_deref()), (9, Some("odd")));
    assert_eq!(main.model_of, Some("strange".into()));
    assert_eq!(main.session, Session::At("odd".into()));
    assert_eq!((run.visits, run.scheduler.timers.retries().count()), (2, 1));
}

#[test]
fn apply_stores_recorded_values_unchecked() {
    let mut run = running();
    let plan = SessionPlan::Resume("odd".into());
    let notice = crate::protocol::Notice::Retried;
    apply(&mut run, &Event::TurnRequeued { turn: turn("main.1.1"), order: 900, notice });
    assert_eq!(
        (run.scheduler.next_order, run.scheduler.in_flight.len(), run.scheduler.reserved),
        (901, 0, usd("0"))
    );
    let share = Some(usd("123"));
    apply(
        &mut run,
        &Event::TurnStarted { turn: turn("main.1.1"), attempt: 8, share, plan: plan.clone() },
    );
    let current = &run.scheduler.turns[&"main".into()];
    assert_eq!((current.attempt, current.current.as_ref()), (8, Some(&plan)));
    assert_eq!(current.phase, TurnPhase::Running { share });
    assert_eq!(run.scheduler.reserved, usd("123"));
    let charge = Charge { amount: usd("456"), basis: Basis::Reported };
    apply(
        &mut run,
        &Event::TurnContinues {
            turn: turn("main.1.1"),
            attempt: 3,
            charge,
            stalls: 0,
            session: None,
        },
    );
    assert_eq!(
        (run.spent, run.most_expensive, run.scheduler.reserved),
        (usd("456"), usd("456"), usd("0"))
    );
}

#[test]
fn events_about_unknown_agents_change_nothing() {
    for kind in 0..super::arbitrary::KINDS {
        let mut run = running();
        let before = run.clone();
        let stranger = event(kind, 9, 3);
        let creates = matches!(
            stranger,
            Event::AgentSpawned { .. } | Event::TurnQueued { .. } | Event::RunStarted(_)
        );
        apply(&mut run, &stranger);
        if !creates {
            let agents = (run.agents, run.live, run.failed, run.held, run.scheduler.turns);
            let known =
                (before.agents, before.live, before.failed, before.held, before.scheduler.turns);
            assert_eq!(agents, known, "{stranger:?}");
        }
    }
}

#[test]
fn counters_saturate() {
    let mut run = running();
    let (agent, state) = ("main".into(), StateName::new("A.md"));
    let (visit, count) = (u32::MAX, u32::MAX);
    apply(
        &mut run,
        &Event::VisitEntered {
            agent,
            location: state.into(),
            visit,
            count,
            input: None,
            result_status: ResultStatus::Ok,
        },
    );
    let (turn, notice) = (turn("main.1.1"), crate::protocol::Notice::Retried);
    apply(&mut run, &Event::TurnRequeued { turn, order: u64::MAX, notice });
    let mut play = Play::new(prompts(&["A.md"]));
    play.run = run;
    assert!(play.resume().contains("start main.1.1"));
    play.says("main", "<goto>A</goto>");
    assert_eq!(play.agent("main").visits.get(&StateName::new("A.md")), Some(&u32::MAX));
}

/// Checks the invariants that hold after any events.
fn consistent(run: &Run) -> Result<(), TestCaseError> {
    let scheduler = &run.scheduler;
    let live = run.agents.keys().filter(|id| !run.failed.contains(*id)).count();
    prop_assert_eq!(run.live as usize, live);
    let flying = scheduler.turns.values().filter(|t| matches!(t.phase, TurnPhase::Running { .. }));
    prop_assert_eq!(scheduler.in_flight.len(), flying.count());
    prop_assert!(scheduler.paid_in_flight as usize <= scheduler.in_flight.len());
    let retrying =
        scheduler.turns.values().filter(|t| matches!(t.phase, TurnPhase::Retrying { .. }));
    prop_assert!(scheduler.queues.values().all(|queue| !queue.is_empty()));
    let expiring = scheduler.asks.values().filter(|due| due.is_some());
    let limits = scheduler.holds.values().filter(|hold| matches!(hold, Hold::Quota { .. }));
    let is_parked = |agent: &&Agent| matches!(agent.status, AgentStatus::Parked(_));
    let is_joining = |agent: &&Agent| matches!(agent.status, AgentStatus::Joining(_));
    let parked = run.agents.values().filter(is_parked).count();
    let joining = run.agents.values().filter(is_joining).count();
    let is_asking = |agent: &&Agent| matches!(agent.status, AgentStatus::Asking(_));
    let asking = run.agents.values().filter(is_asking).count();
    prop_assert_eq!(run.parked as usize, parked + joining + asking);
    let is_bounded = |agent: &&Agent| {
        matches!(agent.status, AgentStatus::Joining(Joining { until: Some(_), .. }))
    };
    let parked = parked + run.agents.values().filter(is_bounded).count();
    let is_cancelling = |agent: &&Agent| matches!(agent.status, AgentStatus::Cancelling(_));
    let cancelling = run.agents.values().filter(is_cancelling).count();
    prop_assert!(run.cancelling.len() >= cancelling);
    let timers = scheduler.timers.due(Timestamp(u64::MAX)).count();
    prop_assert_eq!(timers, retrying.count() + expiring.count() + limits.count() + parked);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_events_in_any_order_apply(events in events()) {
        let definition = prompts(&["A.md", "B.md"]);
        let (mut run, mut ledger) = (Run::default(), Ledger::default());
        for event in &events {
            apply(&mut run, event);
            ledger.note(Timestamp(1), event);
            consistent(&run)?;
            for owner in [OwnerState::Alive, OwnerState::Gone] {
                let status = status(&run, owner);
                next_command(&run, status, States::AsPinned);
                prop_assert!(!why(&run, &ledger, status, |at| at.to_string()).text.is_empty());
            }
            run.next_due();
            run.live_workers();
        }
        // The next step can be decided after any events.
        for _ in 0..20 {
            for event in advance(&run, &definition, Timestamp(3)) {
                apply(&mut run, &event);
            }
        }
        prop_assert!(matches!(run.phase, Phase::Unborn | Phase::Open | Phase::Stopping(_) | Phase::Ended(_)));
    }
}
