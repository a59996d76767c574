//! Texts name the backend in runs with several backends, and only there.

use insta::assert_snapshot;

use super::*;
use crate::budget::Cost;
use crate::decide::tests::play::{Play, usd, workflow};
use crate::run::stop::{Interruption, StopMode};
use crate::time::{Span, Timestamp};
use crate::view::costs::{By, Counter};
use crate::view::plan::Fate;
use crate::view::run_view::{AgentActivity, TurnActivity};
use crate::view::{Costs, Ledger, OwnerState, Plan, RunView, ViewEvent, status, why, words};

const CODEX: &str = "---\nbackend: codex\n---\ntext";

/// Returns a workflow: claude answers `A`, codex answers `X`, and `S` is a script.
fn stage() -> Play {
    Play::new(workflow(&[("A.md", "text"), ("X.md", CODEX), ("S.sh", "true")])).started()
}

/// Returns a workflow in which no state leads to `X`, so codex is unreachable.
fn alone() -> Play {
    let policy =
        "---\nallowed_transitions:\n  - { tag: goto, target: A }\n  - { tag: result }\n---\ntext";
    Play::new(workflow(&[("A.md", policy), ("X.md", CODEX)])).started()
}

/// Plays a worker of codex beside `main` of claude.
fn forked() -> Play {
    let mut play = stage();
    play.says("main", r#"<fork next="A">X</fork>"#);
    play
}

fn ledger(play: &Play) -> Ledger {
    let mut ledger = Ledger::default();
    for event in &play.story {
        ledger.note(Timestamp(0), event);
    }
    ledger
}

#[track_caller]
fn check_why(play: &Play, owner: OwnerState, expected: &str) {
    assert_eq!(
        why(&play.run, &ledger(play), status(&play.run, owner), |at| at.to_string()).text,
        expected
    );
}

#[test]
fn sentences_name_backends_if_there_are_several() {
    check_why(&alone(), OwnerState::Alive, "main is in turn 1 of A.md");
    check_why(&alone(), OwnerState::Gone, "its owner died with 1 unfinished turn");
    check_why(&stage(), OwnerState::Alive, "main is in turn 1 of A.md (claude)");
    check_why(&stage(), OwnerState::Gone, "its owner died with 1 unfinished turn (claude)");
    let mut play = stage();
    play.says("main", "<reset>X</reset>");
    check_why(&play, OwnerState::Alive, "main is in turn 1 of X.md (codex)");
    check_why(&play, OwnerState::Gone, "its owner died with 1 unfinished turn (codex)");
    play.stumbles("main");
    let retry = "main tries its failed turn (codex) again at 1970-01-01T00:00:02.074Z";
    check_why(&play, OwnerState::Alive, retry);
    play.after(Span::minutes(5));
    play.says("main", "<goto>S</goto>");
    check_why(&play, OwnerState::Alive, "main is in turn 1 of S.sh");
    check_why(&play, OwnerState::Gone, "its owner died with 1 unfinished turn");
    let play = forked();
    check_why(&play, OwnerState::Alive, "main is in turn 1 of A.md (claude); 1 more agent works");
    check_why(&play, OwnerState::Gone, "its owner died with 2 unfinished turns (claude, codex)");
}

#[test]
fn a_failure_names_the_backend_that_was_asked() {
    let task = || crate::failure::TurnFailure::Task { why: "refused".into() };
    let mut play = forked();
    play.says("main", "<result>x</result>");
    play.fails("main_x1", task());
    let told = "main_x1 failed at X.md (codex): the client reports failure: refused";
    check_why(&play, OwnerState::Gone, told);
    let mut play = alone();
    play.fails("main", task());
    let told = "main failed at A.md: the client reports failure: refused";
    check_why(&play, OwnerState::Gone, told);
}

#[test]
fn idle_agent_has_the_backend_of_its_session() {
    let check = |play: &Play, expected: Option<&str>| {
        let found = answering(&play.run, play.agent("main"));
        assert_eq!(found.map(BackendName::as_str), expected);
    };
    let mut play = stage().with(|s| s.reminders = 0);
    check(&play, Some("claude"));
    play.says("main", "<reset>X</reset>");
    check(&play, Some("codex"));
    play.says("main", "<goto>S</goto>");
    check(&play, None);
    let mut play = Play::new(workflow(&[("X.md", CODEX)])).with(|s| s.reminders = 0).started();
    play.says("main", "no tag");
    assert!(play.run.scheduler.turns.is_empty());
    check(&play, Some("codex"));
}

#[test]
fn history_names_backends_and_their_costs() {
    let mut play = forked();
    play.costs(Cost::Free).stumbles("main_x1");
    play.after(Span::minutes(5));
    play.says("main_x1", "<goto>S</goto>");
    play.says("main_x1", "<result>x</result>");
    play.costs(Cost::Reported(usd("0.20"))).says("main", "<result>y</result>");
    let told = past_lines(&play, ledger(&play).naming());
    assert_snapshot!(told.join("\n"), @"
    starts at A.md
    A.md (claude): turn 1
    A.md → A.md #2 (fork) · claude $0.10
    starts at X.md
    A.md (claude): turn 1
    X.md (codex): turn 1
    X.md (codex): transient failure: overloaded; retry 1 of 5 follows
    X.md (codex): turn 1, attempt 2
    X.md → S.sh (goto) · codex
    S.sh: turn 1
    ended: x
    ended: y · claude $0.20
    completed
    ");
}

#[test]
fn later_viewer_sees_backends_added_later() {
    let told = |naming: BackendLabels| past_lines(&alone(), naming);
    assert_eq!(told(BackendLabels::Hidden), ["starts at A.md", "A.md: turn 1"]);
    assert_eq!(told(BackendLabels::Shown), ["starts at A.md", "A.md (claude): turn 1"]);
}

#[test]
fn watcher_does_not_repeat_start_and_result() {
    let mut play = alone();
    play.says("main", "<goto>A</goto>");
    play.halt();
    play.resume();
    play.says("main", "<result>x</result>");
    let ends = |mut lines: Vec<String>| lines.split_off(5).join(" | ");
    assert_eq!(ends(live_lines(&play)), "A.md: stopped | A.md: turn 1, attempt 2 | ended · $0.20");
    assert_eq!(
        ends(past_lines(&play, BackendLabels::Hidden)),
        "A.md: stopped | stopped | resumed | A.md: turn 1, attempt 2 | ended: x · $0.20 | completed"
    );
    // The result of a worker is new to viewers of a live run.
    let mut play = forked();
    play.says("main_x1", "<result>y</result>");
    let last = live_lines(&play).pop();
    assert_eq!(last.as_deref(), Some("ended: y · codex $0.10"));
}

/// Returns the lines for viewers of a live run.
fn live_lines(play: &Play) -> Vec<String> {
    let mut view = RunView::default();
    let lines = play.story.iter().filter_map(|event| {
        let told = view.note(Timestamp(0), event)?;
        words(&told, view.naming(), |at| at.to_string())?.live()
    });
    lines.map(|line| line.text).collect()
}

/// Returns the lines for readers of a past run.
fn past_lines(play: &Play, naming: BackendLabels) -> Vec<String> {
    let events = view_events(play).into_iter();
    events
        .filter_map(|event| words(&event, naming, |at| at.to_string()))
        .map(|line| line.text)
        .collect()
}

fn view_events(play: &Play) -> Vec<ViewEvent> {
    let mut view = RunView::default();
    play.story.iter().filter_map(|event| view.note(Timestamp(0), event)).collect()
}

fn count(play: &Play, by: By) -> Costs {
    let mut counter = Counter::new(Timestamp(0));
    for event in view_events(play) {
        counter.note(Timestamp(0), &event, &RunView::default());
    }
    counter.finish().grouped(by)
}

#[test]
fn watcher_names_backends_from_the_first_line() {
    let of_codex = |play: Play| play.with(|settings| settings.backend = "codex".into());
    let check = |mut play: Play, goes: &str, expected: &[&str]| {
        play.says("main", goes);
        play.says("main", "<result>x</result>");
        let bills = |lines: Vec<String>| -> Vec<String> {
            let lines = lines.into_iter();
            lines.filter_map(|line| Some(line.split_once(" · ")?.1.to_owned())).collect()
        };
        assert_eq!(bills(live_lines(&play)), expected);
        assert_eq!(bills(past_lines(&play, ledger(&play).naming())), expected);
    };
    check(stage(), "<reset>X</reset>", &["claude $0.10", "codex $0.10"]);
    // A state may use it, but no turn has.
    check(stage(), "<goto>A</goto>", &["claude $0.10", "claude $0.10"]);
    check(alone(), "<goto>A</goto>", &["$0.10", "$0.10"]);
    // A single backend is not named, whichever it is.
    let codex = Play::new(workflow(&[("X.md", CODEX)]));
    check(codex.started(), "<goto>X</goto>", &["$0.10", "$0.10"]);
    let codex = of_codex(Play::new(workflow(&[("A.md", "text"), ("X.md", CODEX)])));
    check(codex.started(), "<goto>X</goto>", &["$0.10", "$0.10"]);
}

#[test]
fn money_names_the_backend_where_states_ask_several() {
    let check = |mut play: Play, expected: &str| {
        play.says("main", "<result>x</result>");
        let costs = count(&play, By::State);
        let titles: Vec<String> =
            costs.money.rows.keys().map(|row| row.title(costs.naming())).collect();
        assert_eq!(titles, [expected]);
    };
    check(stage(), "A.md (claude)");
    check(alone(), "A.md");
}

#[test]
fn live_rows_name_backends_if_several() {
    let backend = |play: &Play| {
        let mut view = RunView::default();
        for event in &play.story {
            view.note(Timestamp(0), event);
        }
        let activity = view.busy().swap_remove(0).2;
        let AgentActivity::Working(TurnActivity::Prompt(backend)) = activity else {
            panic!("{activity:?}")
        };
        backend
    };
    assert_eq!(backend(&stage()), Some("claude".into()));
    assert_eq!(backend(&alone()), None);
    assert_eq!(backend(&Play::new(workflow(&[("X.md", CODEX)])).started()), None);
}

#[test]
fn turns_name_backends_without_known_model() {
    let mut play = forked();
    play.says_so("main", "<goto>S</goto>", |said| said.model = Some("opus".into()));
    play.crashes(true);
    let mut view = RunView::default();
    let mut titles = Vec::new();
    for event in &play.story {
        if let Some(ViewEvent::AttemptEnded(attempt)) = view.note(Timestamp(0), event) {
            titles.push(attempt.title(BackendLabels::Shown));
        }
    }
    titles.extend(view.in_flight().map(|attempt| attempt.title(BackendLabels::Shown)));
    assert_snapshot!(titles.join("\n"), @"
    A.md · turn 1 · claude · $0.10 · finished after 0ms
    A.md #2 · turn 1 · claude · opus · $0.10 · finished after 0ms
    S.sh · turn 1 · interrupted when its owner died
    X.md · turn 1 · codex · $0.10 · interrupted when its owner died
    S.sh · turn 1, attempt 2 · in flight
    X.md · turn 1, attempt 2 · codex · in flight
    ");
}

#[test]
fn plan_names_backends_of_continued_turns() {
    let told = |play: &Play| Plan::of(&play.run, &ledger(play), &play.settings);
    assert_eq!(told(&alone()).to_string(), "reused 0 turns ($0.00), continuing 1, repeating 0");
    let mut play = forked();
    let plan = told(&play);
    assert_eq!(
        plan.to_string(),
        "reused 1 turn ($0.10), continuing 2 (claude, codex), repeating 0"
    );
    let (claude, codex) = (BackendName::new("claude"), BackendName::new("codex"));
    let adopted = plan.open.iter().filter(|open| open.backend.as_ref() == Some(&codex));
    let found = plan.clone().finding(adopted.map(|open| (open.turn.clone(), Fate::Adopted)));
    assert_eq!(
        found.to_string(),
        "reused 1 turn ($0.10), adopting 1 (codex), continuing 1 (claude), repeating 0"
    );
    assert_eq!(found.prompts(Fate::Adopted).of(&codex), 1);
    assert_eq!(found.prompts(Fate::Continued).of(&codex), 0);
    let line = "main_x1          X.md (codex): adopting its client, which still runs";
    assert_eq!(found.lines()[1], line);
    assert_eq!(found.backends(), [&claude, &codex].into());
    let cut = play.interruptions(Interruption::Crash, true);
    assert_eq!(plan.clone().knowing(&play.run, &cut).open, plan.open);
    assert_eq!(plan.knowing(&play.run, &cut[..1]).open, found.open);
    play.says("main", r#"<fork next="A">X</fork>"#);
    assert_eq!(
        told(&play).to_string(),
        "reused 2 turns ($0.20), continuing 3 (1 claude, 2 codex), repeating 0"
    );
    // With other states or another backend, the backend of a turn is not known.
    let unnamed = "reused 2 turns ($0.20), continuing 3, repeating 0";
    let edited = told(&play).unnamed();
    assert_eq!((edited.to_string().as_str(), edited.backends()), (unnamed, [].into()));
    play.settings.backend = codex;
    let plan = told(&play);
    assert_eq!((plan.to_string().as_str(), plan.backends()), (unnamed, [].into()));
}

#[test]
fn every_view_counts_the_same_turns() {
    let mut play = forked();
    play.stumbles("main_x1");
    play.after(Span::minutes(5));
    play.says("main", "<goto>S</goto>");
    play.crashes(true);
    play.is_capped("main_x1");
    play.says("main", "<goto>A</goto>");
    play.stop(StopMode::AfterTurn);
    let ledger = ledger(&play);
    let is_end = |told: &&ViewEvent| matches!(told, ViewEvent::AttemptEnded(_));
    let ended = view_events(&play).iter().filter(is_end).count() as u64;
    let costs = count(&play, By::Backend);
    // Two turns of claude, a turn of codex with three attempts, one of them with a used-up budget
    // share of $4.80, and a script that was interrupted once.
    assert_eq!((ended, ledger.turns()), (7, 4));
    assert_eq!((costs.money.total.turns, ledger.paid.turns), (3, 3));
    assert_eq!((costs.money.total.amount, ledger.paid.amount), (usd("5.20"), usd("5.20")));
    let by_ledger: Vec<_> =
        ledger.backends.iter().map(|(name, s)| (name.as_str(), s.turns, s.amount)).collect();
    let by_costs: Vec<_> =
        costs.money.rows.iter().map(|(row, t)| (row.name.as_str(), t.turns, t.amount)).collect();
    assert_eq!(by_ledger, [("claude", 2, usd("0.20")), ("codex", 1, usd("5"))]);
    assert_eq!(by_costs, by_ledger);
}
