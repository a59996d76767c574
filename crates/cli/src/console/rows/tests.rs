//! Rows for each activity and each size of the terminal.

use raymond_core::agent::{Session, SessionPlan};
use raymond_core::budget::{Basis, Charge};
use raymond_core::few::Few;
use raymond_core::ids::StateName;
use raymond_core::ids::TurnId;
use raymond_core::protocol::ResultStatus;
use raymond_core::run::Event;
use raymond_core::run::stop::{StopMode, StopOrigin};
use raymond_core::scheduler::Hold;
use raymond_core::scheduler::{Lane, Prompt};

use super::*;

/// A minute after everything began.
const NOW: u64 = 60_000;

fn turn(agent: &str) -> TurnId {
    TurnId { agent: agent.into(), visit: 1, turn: 1 }
}

/// Agents that have just begun, each at a state, with a turn in flight.
fn working(agents: &[(&str, &str, u32)]) -> RunView {
    let mut view = RunView::default();
    view.settings.budget = Some(Micros(10_000_000));
    for (agent, state, count) in agents {
        spawn(&mut view, agent, state, *count);
        start(&mut view, agent);
    }
    view
}

fn spawn(view: &mut RunView, agent: &str, state: &str, count: u32) {
    let cwd = "/home/me".to_owned();
    let (parent, attributes) = (None, Few::default());
    let spawned = Event::AgentSpawned { agent: agent.into(), parent, cwd, attributes };
    view.note(Timestamp(0), &spawned);
    let (agent, input) = (agent.into(), None);
    let location = StateName::new(state).into();
    view.note(
        Timestamp(0),
        &Event::VisitEntered {
            agent,
            location,
            visit: 1,
            count,
            input,
            result_status: ResultStatus::Ok,
        },
    );
}

fn queue(view: &mut RunView, agent: &str) {
    let (lane, prompt, plan) = (Lane::Prompt("claude".into()), Prompt::Body, SessionPlan::Carry);
    let queued =
        Event::TurnQueued { turn: turn(agent), lane, prompt, plan, order: 0, notice: None };
    view.note(Timestamp(0), &queued);
}

fn start(view: &mut RunView, agent: &str) {
    queue(view, agent);
    let (share, plan) = (None, SessionPlan::Carry);
    view.note(Timestamp(0), &Event::TurnStarted { turn: turn(agent), attempt: 1, share, plan });
}

fn spend(view: &mut RunView, agent: &str, micros: u64) {
    let charge = Charge { amount: Micros(micros), basis: Basis::Reported };
    let (attempt, session, model) = (1, Session::Fresh, None);
    view.note(
        Timestamp(0),
        &Event::TurnSettled { turn: turn(agent), attempt, charge, session, model },
    );
    start(view, agent);
}

fn drawn(view: &RunView, columns: usize, rows: usize) -> Vec<String> {
    let scene = Scene {
        now: Timestamp(NOW),
        zone: TimeZone::UTC,
        size: Size { columns, rows },
        interrupt: Interrupt::Stops,
    };
    let drawn = super::rows(view, &scene);
    let text = |row: &Drawn| row.pieces.iter().map(|(_, text)| text.as_str()).collect::<String>();
    for row in &drawn {
        assert!(row.width() < columns, "{:?} is too wide", text(row));
    }
    drawn.iter().map(|row| text(row).trim_end().to_owned()).collect()
}

/// Three workers: one uses a tool, one has written, one has printed nothing yet.
fn three() -> RunView {
    let mut view = working(&[
        ("main_check1", "CHECK.md", 1),
        ("main_check2", "CHECK.md", 12),
        ("main_transl3", "TRANSLATE.md", 1),
    ]);
    spend(&mut view, "main_check1", 120_000);
    spend(&mut view, "main_check2", 40_000);
    view.see(Timestamp(NOW - 12_500), &turn("main_check1"), "Bash(cargo test --all)");
    view.see(Timestamp(NOW - 3_000), &turn("main_check2"), "writes");
    view
}

#[test]
fn row_shows_agent_state_activity_age_and_cost() {
    assert_eq!(
        drawn(&three(), 80, 24),
        [
            "▸ main_check1   CHECK      Bash(cargo test --all)                    12s  $0.12",
            "▸ main_check2   CHECK #12  writes                                     3s  $0.04",
            "▸ main_transl3  TRANSLATE  works                                   1m00s",
            "  $0.16 of $10.00 · 3 running · 1m 00s · 0 of 2 workers done · Ctrl-C stops",
        ]
    );
}

#[test]
fn run_without_records_has_no_rows() {
    assert_eq!(drawn(&RunView::default(), 80, 24), [""; 0]);
}

#[test]
fn narrow_terminal_keeps_names_distinguishable() {
    assert_eq!(
        drawn(&three(), 40, 24),
        [
            "▸ …n_check1  CHECK      Bash(ca…    12s",
            "▸ …n_check2  CHECK #12  writes       3s",
            "▸ …_transl3  TRANSLATE  works     1m00s",
            "  $0.16 of $10.00 · 3 running · 1m 00s",
        ]
    );
    assert_eq!(
        drawn(&three(), 24, 24),
        ["▸ …_check1  CHECK", "▸ …_check2  CHECK…", "▸ …transl3  TRANS…", "  $0.16 of $10.00",]
    );
}

#[test]
fn wide_characters_take_two_columns() {
    let mut view = working(&[("main", "検査する.md", 1), ("main_w1", "W.md", 1)]);
    view.see(Timestamp(NOW), &turn("main"), "Bash(echo 検査 && echo e\u{301})");
    assert_eq!(
        drawn(&view, 40, 24),
        [
            "▸ main     検査する  Bash(echo …     0s",
            "▸ main_w1  W         works        1m00s",
            "  $0.00 of $10.00 · 2 running · 1m 00s",
        ]
    );
}

#[test]
fn agents_that_have_no_row_are_counted() {
    let names: Vec<String> = (1..=30).map(|n| format!("main_w{n}")).collect();
    let agents: Vec<(&str, &str, u32)> =
        names.iter().map(|name| (name.as_str(), "W.md", 1)).collect();
    let view = working(&agents);
    let most = drawn(&view, 80, 24);
    let start: Vec<&str> = most.iter().filter_map(|row| row.split("  W  ").next()).collect();
    assert_eq!(
        start,
        [
            "▸ main_w1",
            "▸ main_w2",
            "▸ main_w3",
            "▸ main_w4",
            "▸ main_w5",
            "▸ main_w6",
            "▸ main_w7",
            "  … and 23 more agents",
            "  $0.00 of $10.00 · 30 running · 1m 00s · 0 of 29 workers done · Ctrl-C stops",
        ]
    );
    assert_eq!(drawn(&view, 80, 4).len(), 3);
    let two = working(&agents[..2]);
    assert_eq!(drawn(&two, 80, 4)[1], "  … and 1 more agent");
}

#[test]
fn waiting_agent_shows_the_reason() {
    let check = |change: &dyn Fn(&mut RunView), expected: &str, footer: &str| {
        let mut view = working(&[]);
        spawn(&mut view, "main", "A.md", 1);
        queue(&mut view, "main");
        change(&mut view);
        let footer = format!("  $0.00 of $10.00 · {footer}1m 00s · Ctrl-C stops");
        let row = drawn(&view, 70, 24);
        let squeezed: Vec<String> =
            row.iter().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let mut wanted = vec![footer.trim().to_owned()];
        if !expected.is_empty() {
            wanted.insert(0, format!("· main A {expected} 1m00s"));
        }
        assert_eq!(squeezed, wanted);
    };
    let held = |view: &mut RunView, hold: Hold| {
        view.note(Timestamp(0), &Event::BackendHeld { backend: "claude".into(), hold });
    };
    check(&|_| {}, "", "1 queued · ");
    let quota =
        |until| move |view: &mut RunView| held(view, Hold::Quota { until, why: "x".into() });
    check(&quota(Timestamp(5 * 3_600_000)), "usage limit of claude until 05:00", "1 waiting · ");
    check(
        &quota(Timestamp(30 * 86_400_000)),
        "usage limit of claude until Jan 31 00:00",
        "1 waiting · ",
    );
    check(
        &|view| held(view, Hold::Auth { why: "x".into() }),
        "waits for a login to claude",
        "1 waiting · ",
    );
    check(
        &|view| {
            let (turn, until) = (turn("main"), Timestamp(NOW + 4_000));
            view.note(Timestamp(0), &Event::RetryAt { turn, until, retry: 1, of: None });
        },
        "tries again in 4s",
        "1 waiting · ",
    );
}

#[test]
fn activity_is_one_sanitized_line() {
    let check = |seen: &str, expected: &str| {
        let mut view = working(&[("main", "A.md", 1)]);
        view.see(Timestamp(NOW), &turn("main"), seen);
        let row = drawn(&view, 80, 24).remove(0);
        let shown = row.strip_prefix("▸ main  A  ").and_then(|row| row.strip_suffix("0s"));
        assert_eq!(shown.map(str::trim_end), Some(expected));
    };
    check("Bash(a\n\tb\u{1b}[2J)", "Bash(a b\u{fffd}[2J)");
    check("Edit(/home/me/src/lib.rs)", "Edit(src/lib.rs)");
    check("Edit(/home/other/lib.rs)", "Edit(/home/other/lib.rs)");
    check("Bash(curl -H 'x: sk-ant-api03-0123456789abcdef')", "Bash(curl -H 'x: [redacted]')");
}

#[test]
fn last_row_shows_the_effect_of_ctrl_c() {
    let check = |view: &RunView, interrupt: Interrupt, expected: &str| {
        let (now, zone) = (Timestamp(NOW), TimeZone::UTC);
        let scene = Scene { now, zone, size: Size { columns: 80, rows: 24 }, interrupt };
        assert_eq!(footer(view, &scene, 79), expected);
    };
    let mut view = working(&[]);
    check(&view, Interrupt::Leaves, "  $0.00 of $10.00 · 1m 00s · Ctrl-C leaves it running");
    view.settings.budget = None;
    check(&view, Interrupt::Stops, "  $0.00 spent · 1m 00s · Ctrl-C stops");
    view.note(
        Timestamp(0),
        &Event::StopRequested { mode: StopMode::Now, by: StopOrigin::Command, key: "k".into() },
    );
    check(&view, Interrupt::Stops, "  $0.00 spent · 1m 00s · stopping");
}
