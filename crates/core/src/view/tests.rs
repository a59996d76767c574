//! The texts for people: status, cause, next command, and whole stories.

use std::collections::BTreeMap;

use insta::assert_snapshot;

use crate::budget::Cost;
use crate::decide::tests::play::{Play, prompts, turn, usd, workflow};
use crate::failure::{Clock, TurnFailure};
use crate::ids::AgentId;
use crate::protocol::Notice;
use crate::run::event::Ending;
use crate::run::input::Input;
use crate::run::stop::{StopMode, StopOrigin};
use crate::run::{Event, Program, Ralph, Run, apply};
use crate::scheduler::Hold;
use crate::time::{Span, Timestamp};
use crate::value::{BlobRef, Hash, Value};
use crate::view::words::{ending_words, preview};
use crate::view::{
    BackendLabels, Cause, Change, Hint, Ledger, LogLine, NextCommand, OwnerState, RunView, States,
    Status, Waiting, Weight, needed_edit, next_command, status, why, words,
};

mod failures;
mod questions;
mod steps;
mod watching;

/// Returns status, cause and next command.
fn shown(play: &Play, owner: OwnerState) -> String {
    let status = status(&play.run, owner);
    let command = next_command(&play.run, status, States::AsPinned);
    let cause = why(&play.run, &ledger(play), status, |at| at.to_string());
    let Cause { text, hint, rest, others } = cause;
    let hint = hint.map(|hint| format!(" ({hint:?})")).unwrap_or_default();
    format!("{status}: {text}{hint}{rest}{others}: {command:?}")
}

/// Returns the ledger of the story so far, with an event each millisecond from 10 on.
fn ledger(play: &Play) -> Ledger {
    let mut ledger = Ledger::default();
    for (at, event) in (10..).zip(&play.story) {
        ledger.note(Timestamp(at), event);
    }
    ledger
}

fn started() -> Play {
    Play::new(prompts(&["A.md", "W.md"])).started()
}

fn forked() -> Play {
    let mut play = started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    play
}

fn quota(minutes: u64) -> TurnFailure {
    let until = Some(Timestamp(0) + Span::minutes(minutes));
    TurnFailure::Quota { until, why: "resets at noon".into() }
}

fn auth() -> TurnFailure {
    TurnFailure::Auth { why: "run claude login".into() }
}

/// Returns the lines of the story so far, for readers of a past run.
fn past_lines(play: &Play, naming: BackendLabels) -> Vec<LogLine> {
    let mut view = RunView::default();
    let lines = play.story.iter().filter_map(|event| {
        let told = view.note(Timestamp(0), event)?;
        // A reader knows the backends of the whole run, but at least those of the events so far.
        let naming = if naming == BackendLabels::Shown { naming } else { view.naming() };
        words(&told, naming, |at| at.to_string())
    });
    lines.collect()
}

/// Returns the story so far, a line each, with a mark for its importance.
fn lines_of(play: &Play) -> String {
    watching::check("a play", &play.records);
    let lines = past_lines(play, BackendLabels::Hidden).into_iter().map(|line| {
        let who = line.agent.map_or_else(|| "-".to_owned(), |agent| agent.to_string());
        let mark = match line.weight {
            Weight::Detail => ".",
            Weight::Plain => " ",
            Weight::Warning => "!",
            Weight::Error => "x",
        };
        format!("{mark} {who:<11}{}", line.text)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_with_an_owner_runs_or_waits() {
    assert_snapshot!(shown(&Play::new(prompts(&["A.md"])), OwnerState::Alive), @"running: it is about to continue: Wait");
    assert_snapshot!(shown(&started(), OwnerState::Alive), @"running: main is in turn 1 of A.md: Wait");
    let mut play = forked();
    assert_snapshot!(shown(&play, OwnerState::Alive), @"running: main is in turn 1 of A.md; 2 more agents work: Wait");
    play.stop(StopMode::AfterTurn);
    assert_snapshot!(shown(&play, OwnerState::Alive), @"running: main is in turn 1 of A.md; 2 more agents work; the run was asked to end: Wait");
    let mut play = started();
    play.stumbles("main");
    assert_snapshot!(shown(&play, OwnerState::Alive), @"waiting: main tries its failed turn again at 1970-01-01T00:00:02.209Z: Wait");
    let mut play = forked();
    play.fails("main", quota(60));
    // Other agents still work.
    assert!(shown(&play, OwnerState::Alive).starts_with("running"));
    play.says("main_w1", "<result>x</result>");
    play.says("main_w2", "<result>x</result>");
    assert_snapshot!(shown(&play, OwnerState::Alive), @"waiting: the usage limit of claude is reached until 1970-01-01T01:00:00.000Z: resets at noon: Wait");
}

#[test]
fn idle_run_continues_unless_the_user_must_act() {
    let idle = || {
        let mut run = started().run;
        let (turn, notice) = (turn("main.1.1"), Notice::Interrupted);
        apply(&mut run, &Event::TurnRequeued { turn, order: 1, notice });
        run
    };
    let is = |run: &Run, expected: Status| assert_eq!(status(run, OwnerState::Alive), expected);
    is(&idle(), Status::Running);
    let mut asked = idle();
    let (ask, question) = (turn("main.1.1"), Value::from("may I?"));
    apply(&mut asked, &Event::Asked { ask, question, due: None });
    is(&asked, Status::Waiting(Waiting::Person, OwnerState::Alive));
    let mut held = idle();
    let (backend, hold) = ("claude".into(), Hold::Auth { why: "log in".into() });
    apply(&mut held, &Event::BackendHeld { backend, hold });
    is(&held, Status::Waiting(Waiting::Person, OwnerState::Alive));
}

#[test]
fn run_without_owner_ended_or_was_interrupted() {
    assert_snapshot!(shown(&forked(), OwnerState::Gone), @"interrupted: its owner died with 3 unfinished turns: Resume([])");
    let mut play = started();
    play.stumbles("main");
    assert_snapshot!(shown(&play, OwnerState::Gone), @"waiting: main tries its failed turn again at 1970-01-01T00:00:02.209Z: Resume([])");
    let mut play = forked();
    play.halt();
    assert_snapshot!(shown(&play, OwnerState::Gone), @"stopped: a user stopped it; 3 agents can continue: Resume([])");
    play.stop(StopMode::Cancel);
    assert_snapshot!(shown(&play, OwnerState::Gone), @"cancelled: a user cancelled it: Start");
    let mut play = started();
    play.fails("main", auth());
    assert_snapshot!(shown(&play, OwnerState::Gone), @"waiting: claude needs a person to log in: run claude login: Resume([])");
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.no_wait = true).started();
    play.fails("main", quota(60));
    assert_snapshot!(shown(&play, OwnerState::Gone), @"waiting: the usage limit of claude is reached until 1970-01-01T01:00:00.000Z: resets at noon: Resume([])");
    let mut play = started();
    play.costs(Cost::Reported(usd("12.50"))).says("main", "<goto>A</goto>");
    assert_snapshot!(shown(&play, OwnerState::Gone), @"over_budget: $12.50 of the $10.00 cap is spent; main repeated A 2 times; 1 turn waits for a higher budget: ResumeWithBudget { dollars: 32 }");
    let mut play = started();
    for _ in 0..4 {
        play.costs(Cost::Reported(usd("2.50"))).says("main", "<goto>A</goto>");
    }
    assert_snapshot!(shown(&play, OwnerState::Gone), @r#"over_budget: $10.00 of the $10.00 cap is spent; main repeated A 5 times (LimitLoop { state: "A.md" }); 1 turn waits for a higher budget: ResumeWithBudget { dollars: 25 }"#);
    let mut play = started();
    play.says("main", "<result>x</result>");
    assert_snapshot!(shown(&play, OwnerState::Gone), @"completed: main ended with a result: Show");
}

#[test]
fn completed_run_counts_failed_workers_that_were_handed() {
    let check = |failed: &[&str], expected: &str| {
        let mut play = started();
        let forks = "<fork>W</fork>".repeat(failed.len() + 1);
        play.says("main", &format!(r#"{forks}<goto wait="done">A</goto>"#));
        for worker in failed {
            play.fails(worker, TurnFailure::Task { why: "no".into() });
        }
        play.says(&format!("main_w{}", failed.len() + 1), "<result>x</result>");
        play.says("main", "<result>x</result>");
        let shown = shown(&play, OwnerState::Gone);
        let ended = "completed: main and 1 worker ended with a result";
        assert_eq!(shown, format!("{ended}; {expected}: Show"));
    };
    check(&["main_w1"], "1 failed worker was handed to its parent");
    check(&["main_w1", "main_w2"], "2 failed workers were handed to their parents");
}

#[test]
fn single_worker_is_not_called_all() {
    let joins = |forks: &str| {
        let mut play = started();
        play.says("main", &format!(r#"{forks}<goto wait="all">A</goto>"#));
        lines_of(&play)
    };
    let one = joins("<fork>W</fork>");
    assert!(one.contains("A.md waits for its worker, then A.md"), "{one}");
    let two = joins("<fork>W</fork><fork>W</fork>");
    assert!(two.contains("A.md waits for all 2 workers, then A.md"), "{two}");
}

#[test]
fn run_without_failed_agents_can_continue() {
    let cancelled = |tags: &str, workers: &[&str]| {
        let mut play = started();
        play.says("main", tags);
        let task = || TurnFailure::Task { why: "no".into() };
        if play.run.groups.is_empty() {
            play.says("main", "<result>x</result>");
        }
        for worker in workers {
            play.fails(worker, task());
        }
        for worker in workers {
            let (agent, by, key) = (AgentId::from(*worker), "ada".into(), (*worker).to_owned());
            play.feed(vec![Input::CancelAgent { agent, by, key }]);
        }
        shown(&play, OwnerState::Gone)
    };
    assert_snapshot!(cancelled(r#"<fork>W</fork><goto wait="all">A</goto>"#, &["main_w1"]), @"failed: main waits to continue; no agent is failed any more: Resume([])");
    assert_snapshot!(cancelled(r#"<fork next="A">W</fork>"#, &["main_w1"]), @"failed: the run waits to complete; no agent is failed any more: Resume([])");
}

// proves: P10
#[test]
fn next_command_does_not_repeat_the_failure() {
    let check = |play: &Play, expected: &[Change]| {
        let command =
            next_command(&play.run, status(&play.run, OwnerState::Gone), States::AsPinned);
        assert_eq!(command, NextCommand::Resume(expected.to_vec()));
    };
    let lost = || TurnFailure::LostSession { session: "main.1.1".into() };
    let mut play = forked();
    play.fails("main", TurnFailure::Task { why: "refused".into() });
    play.fails("main_w1", lost());
    check(&play, &[]);
    play.fails("main_w2", lost());
    check(&play, &[Change::FreshSessions]);

    let fork = r#"<fork next="A">W</fork>"#;
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_agents = 1).started();
    play.says("main", fork);
    play.says("main_w1", &fork.repeat(3));
    play.says("main", &fork.repeat(5));
    check(&play, &[Change::MaxAgents(5)]);
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_agents = 1).started();
    play.says("main", fork);
    play.says("main_w1", fork);
    play.says("main", "<result>x</result>");
    check(&play, &[Change::MaxAgents(2)]);

    let front = |line: &str| {
        let text = format!("---\n{line}\n---\ntext");
        Play::new(workflow(&[("A.md", text.as_str())])).started()
    };
    let mut play = front("on_denied: fail");
    play.says_so("main", "<goto>A</goto>", |said| said.denied.push("Bash(cargo test)".to_owned()));
    check(&play, &[Change::Allow(vec!["Bash(cargo test:*)".to_owned()])]);
    let wall = |after| TurnFailure::Timeout { clock: Clock::Wall, after };
    let timed = |play: Play| play.with(|s| (s.retries, s.timeout) = (0, Some(Span::minutes(10))));
    let mut play = timed(Play::new(prompts(&["A.md"]))).started();
    play.fails("main", wall(Span::minutes(10)));
    check(&play, &[Change::Timeout(Span::minutes(20))]);
    let mut play = timed(Play::new(prompts(&["A.md"]))).started();
    play.fails("main", wall(Span::minutes(2)));
    check(&play, &[]);
    let silent = |after| TurnFailure::Timeout { clock: Clock::Idle, after };
    let timed =
        |play: Play| play.with(|s| (s.retries, s.idle_timeout) = (0, Some(Span::minutes(10))));
    let mut play = timed(Play::new(prompts(&["A.md"]))).started();
    play.fails("main", silent(Span::minutes(10)));
    check(&play, &[Change::IdleTimeout(Span::minutes(20))]);
    let mut play = timed(Play::new(prompts(&["A.md"]))).started();
    play.fails("main", silent(Span::minutes(2)));
    check(&play, &[]);
    let mut play = front("max_visits: 1");
    play.says("main", "<goto>A</goto>");
    check(&play, &[Change::CurrentStates]);
    let mut play = front("budget: 0.10");
    play.says("main", "no tag");
    check(&play, &[Change::CurrentStates]);
}

#[test]
fn protocol_failure_is_shown_by_a_command() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.reminders = 0).started();
    play.says("main", "chatter");
    assert_snapshot!(shown(&play, OwnerState::Gone), @r#"failed: main failed at A.md: no tag: the output ends with "chatter"; write <goto>STATE</goto> or <result>YOUR RESULT</result> (Output { agent: Some("main"), location: "A" }): Resume([CurrentStates])"#);
}

#[test]
fn silent_script_failure_is_shown_by_a_command() {
    let fails = |stderr: &str| {
        let mut play = Play::new(workflow(&[("A.sh", "")])).started();
        let (status, stderr) = ("exit status 3".to_owned(), stderr.to_owned());
        play.fails("main", TurnFailure::Script { status, stderr, tag: None });
        shown(&play, OwnerState::Gone)
    };
    assert_snapshot!(fails(""), @r#"failed: main failed at A.sh: script: exit status 3 (Output { agent: Some("main"), location: "A" }): Resume([CurrentStates])"#);
    assert_snapshot!(fails("no file"), @"failed: main failed at A.sh: script: exit status 3: no file: Resume([CurrentStates])");
}

#[test]
fn script_that_would_fail_again_must_be_fixed() {
    let large = || TurnFailure::OutputTooLarge {
        limit: 64 << 20,
        head: String::new(),
        tail: String::new(),
    };
    let not_started = || TurnFailure::NotStarted { why: "no interpreter".into() };
    let check = |state: &str, failure: TurnFailure, edit: Option<Hint>, changes: &[Change]| {
        let mut play = Play::new(workflow(&[(state, "text")])).started();
        play.fails("main", failure);
        let status = status(&play.run, OwnerState::Gone);
        assert_eq!(needed_edit(&play.run), edit, "{state}");
        let command = next_command(&play.run, status, States::AsPinned);
        assert_eq!(command, NextCommand::Resume(changes.to_vec()), "{state}");
    };
    let script = || Some(Hint::FixScript { state: "A.sh".into() });
    check("A.sh", large(), script(), &[Change::CurrentStates]);
    check("A.sh", not_started(), script(), &[Change::CurrentStates]);
    check("A.md", large(), None, &[]);
    check("A.md", not_started(), Some(Hint::FixStart), &[]);
}

#[test]
fn edited_failed_run_names_both_versions() {
    let check = |play: &Play, states: States, expected: &[Change]| {
        let command = next_command(&play.run, status(&play.run, OwnerState::Gone), states);
        assert_eq!(command, NextCommand::Resume(expected.to_vec()));
    };
    let mut play = started();
    play.fails("main", TurnFailure::Task { why: "refused".into() });
    check(&play, States::AsPinned, &[]);
    check(&play, States::Edited, &[Change::CurrentStates]);
    check(&play, States::Unusable, &[Change::PinnedStates]);
    let mut play = Play::new(workflow(&[("A.md", "---\nmax_visits: 1\n---\nx")])).started();
    play.says("main", "<goto>A</goto>");
    check(&play, States::Edited, &[Change::CurrentStates]);
    check(&play, States::Unusable, &[Change::CurrentStates]);
}

#[test]
fn a_failed_run_names_every_agent_that_failed() {
    let task = || TurnFailure::Task { why: "no".into() };
    let mut play = forked();
    play.says("main", "<result>x</result>");
    play.fails("main_w2", task());
    play.says("main_w1", "<result>x</result>");
    assert_snapshot!(shown(&play, OwnerState::Gone), @"failed: main_w2 failed at W.md: the client reports failure: no: Resume([])");
    let mut play = forked();
    play.fails("main", task());
    play.fails("main_w2", task());
    play.fails("main_w1", task());
    assert_snapshot!(shown(&play, OwnerState::Gone), @"failed: main failed at A.md: the client reports failure: no; main_w1, main_w2 failed, too: Resume([])");
    let mut play = started();
    play.says("main", &r#"<fork next="A">W</fork>"#.repeat(13));
    while let Some(agent) = play.run.scheduler.in_flight.first().map(ToString::to_string) {
        play.fails(&agent, task());
    }
    assert_snapshot!(shown(&play, OwnerState::Gone), @"failed: main failed at A.md: the client reports failure: no; main_w1, main_w10, main_w11, main_w12, main_w13, main_w2, main_w3, main_w4, main_w5, main_w6 and 3 more failed, too: Resume([])");
}

#[test]
fn waiting_reason_is_shown_by_its_kind() {
    let other = "---\nbackend: another\n---\ntext";
    let files = [("A.md", "text"), ("O.md", other)];
    let mut play = Play::new(workflow(&files)).started();
    play.says("main", r#"<fork next="A">O</fork>"#);
    play.fails("main_o1", auth());
    play.fails("main", quota(60));
    assert_snapshot!(shown(&play, OwnerState::Alive), @"waiting: the usage limit of claude is reached until 1970-01-01T01:00:00.000Z: resets at noon: Wait");
    play.settings.no_wait = true;
    play.resume();
    play.fails("main_o1", auth());
    assert_snapshot!(shown(&play, OwnerState::Gone), @"waiting: another needs a person to log in: run claude login: Resume([])");
}

#[test]
fn a_whole_story_reads_well() {
    let plan = "---\nmax_visits: 2\nthen: DONE\n---\ntext";
    let files = [("PLAN.md", plan), ("WORK.md", "text"), ("TEST.sh", "true"), ("DONE.md", "text")];
    let play = Play::new(workflow(&files));
    let mut play = play.with(|s| s.budget = Some(usd("2"))).started();
    play.says("main", r#"<fork next="WORK" item="1">TEST</fork>"#);
    play.says("main", "I am done.");
    play.stumbles("main");
    play.after(Span::minutes(5));
    play.crashes(true);
    play.is_capped("main");
    play.fails(
        "main_test1",
        TurnFailure::Script { status: "exit status 1".into(), stderr: "no file".into(), tag: None },
    );
    play.says("main", "<goto>PLAN</goto>");
    play.fails("main", quota(60));
    play.after(Span::minutes(60));
    play.says("main", "<goto>PLAN</goto>");
    play.says("main", "<result>all\ngood</result>");
    play.resume();
    play.says("main_test1", "<result></result>");
    assert_snapshot!(lines_of(&play), @r#"
      main       starts at PLAN.md
    . main       PLAN.md: turn 1
      main       PLAN.md → WORK.md (fork) · $0.10
      main_test1 starts at TEST.sh · item=1
    . main       WORK.md: turn 1
    . main_test1 TEST.sh: turn 1
    ! main       WORK.md: reminder 1: no tag: the output ends with "I am done."
    . main       WORK.md: turn 2
    ! main       WORK.md: transient failure: overloaded; retry 1 of 5 follows
    . main       WORK.md: turn 2, attempt 2
    ! main       WORK.md: was interrupted when its owner died
    ! main_test1 TEST.sh: was interrupted when its owner died
      -          resumed
    . main       WORK.md: turn 2, attempt 3
    . main_test1 TEST.sh: turn 1, attempt 2
      main       WORK.md: budget share used up
    ! -          60 % of the cap is spent
      main       WORK.md: continues with a new budget share
    x main_test1 TEST.sh: failed: script: exit status 1: no file
      main       WORK.md → PLAN.md #2 (goto) · $1.20 estimated
    . main       PLAN.md: turn 1
    ! -          claude: usage limit, waits until 1970-01-01T01:00:00.000Z: resets at noon
      -          claude: tries again
    . main       PLAN.md: turn 1, attempt 2
      main       PLAN.md → DONE.md (goto; `max_visits` of PLAN.md reached) · $0.20
    . main       DONE.md: turn 1
      main       ended: all good · $0.10
    ! -          80 % of the cap is spent
      -          failed
      -          resumed
      main_test1 TEST.sh: continues after its failure
    . main_test1 TEST.sh: turn 2
      main_test1 ended: (empty)
      -          completed
    "#);
}

#[test]
fn ledger_keeps_agents_that_have_ended() {
    let mut play = forked();
    play.says_so("main_w1", "<result>one</result>", |said| said.denied.push("Bash".into()));
    play.stumbles("main");
    play.after(Span::minutes(5));
    play.says("main", "<goto>A</goto>");
    play.says("main_w2", "<result>two</result>");
    let ledger = ledger(&play);
    let results: Vec<String> =
        play.run.results().map(|(id, v)| format!("{id}={}", preview(v))).collect();
    assert_eq!(results, ["main_w1=one", "main_w2=two"]);
    assert_eq!(play.run.forks(), BTreeMap::from([(&AgentId::main(), 2)]));
    let parents = play.run.ended.values().map(|ended| ended.parent.clone());
    assert_eq!(parents.collect::<Vec<_>>(), vec![Some(AgentId::main()); 2]);
    assert_eq!((ledger.settled.turns, ledger.settled.amount), (4, usd("0.40")));
    let states: Vec<String> = ledger
        .spending
        .iter()
        .map(|(state, s)| format!("{state} {} {}", s.turns, s.amount))
        .collect();
    assert_eq!(states, ["A.md 2 $0.30", "W.md 2 $0.20"]);
    assert_eq!(
        ledger.most_expensive().map(|(state, amount)| (state.to_string(), amount)),
        Some(("A.md".to_owned(), usd("0.30")))
    );
    assert_eq!(ledger.denied["Bash"], 1);
    let last = Timestamp(9 + play.story.len() as u64);
    assert_eq!((ledger.started_at, ledger.updated_at), (Timestamp(10), last));
    assert_eq!(play.run.spent, usd("0.50"));
}

#[test]
fn ledger_does_not_invent_visits() {
    let mut play = started();
    play.costs(Cost::Free).says("main", "<goto>A</goto>");
    let seen = ledger(&play);
    assert_eq!((play.run.forks(), seen.estimated), (BTreeMap::new(), usd("0")));
    assert_eq!(ledger(&play).most_expensive(), None);
    play.costs(Cost::Reported(usd("0.10"))).says("main", "<goto>A</goto>");
    play.costs(Cost::Estimated(usd("0.20"))).says("main", "<goto>A</goto>");
    let seen = ledger(&play);
    assert_eq!((seen.paid.amount, seen.estimated), (usd("0.30"), usd("0.20")));
}

#[test]
fn stopping_user_is_named() {
    let stop = |mode, by| {
        let mut play = started();
        play.feed(vec![Input::Stop { mode, by, key: "k".to_owned() }]);
        let cut = play.interruptions(crate::run::stop::Interruption::Stop, false);
        play.feed(cut);
        let asked = lines_of(&play).lines().find(|line| line.contains("ing, ")).map(str::to_owned);
        format!("{} | {}", asked.unwrap_or_default().trim_start(), shown(&play, OwnerState::Gone))
    };
    assert_snapshot!(stop(StopMode::Now, StopOrigin::Signal), @"-          stopping, because of a signal | stopped: a signal to its owner stopped it; 1 agent can continue: Resume([])");
    assert_snapshot!(stop(StopMode::Now, StopOrigin::Trouble), @"-          stopping, because it cannot continue | stopped: trouble in its owner stopped it; 1 agent can continue: Resume([])");
    assert_snapshot!(stop(StopMode::Now, StopOrigin::Command), @"-          stopping, because a user asked | stopped: a user stopped it; 1 agent can continue: Resume([])");
    assert_snapshot!(stop(StopMode::Cancel, StopOrigin::Command), @"-          cancelling, because a user asked | cancelled: a user cancelled it: Start");
}

#[test]
fn warning_shows_the_spent_percentage() {
    let check = |cost: &str, expected: &str| {
        let play = Play::new(prompts(&["A.md"])).with(|s| s.budget = Some(usd("1")));
        let mut play = play.started();
        play.costs(Cost::Reported(usd(cost))).says("main", "<goto>A</goto>");
        let lines = lines_of(&play);
        let line = lines.lines().find(|line| line.contains('%')).unwrap_or_default();
        assert_eq!(line.trim_start_matches(['!', ' ', '-']), expected);
    };
    check("0.55", "55 % of the cap is spent");
    check("0.999999", "99 % of the cap is spent");
    check("0.65", "65 % of the cap is spent");
    check("2.50", "250 % of the cap is spent");
}

#[test]
fn share_is_renewed_only_if_the_turn_continues() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = Some(usd("1"))).started();
    play.costs(Cost::Reported(usd("1"))).is_capped("main");
    assert_snapshot!(lines_of(&play), @"
      main       starts at A.md
    . main       A.md: turn 1
      main       A.md: budget share used up
    ! -          100 % of the cap is spent
      -          over budget
    ");
}

#[test]
fn a_payload_is_shown_on_one_short_line() {
    let check = |value: Value, expected: &str| assert_eq!(preview(&value), expected);
    check("  two\nlines ".into(), "two lines");
    check(" \n".into(), "(empty)");
    check("\u{1b}[31mred".into(), " [31mred");
    check("é".repeat(100).as_str().into(), &format!("{}…", "é".repeat(72)));
    check(Value::Blob(BlobRef { hash: Hash::of(b""), length: 20_000 }), "(20000 bytes)");
}

#[test]
fn every_ending_has_words() {
    let endings = [
        Ending::Completed,
        Ending::Failed,
        Ending::OverBudget,
        Ending::Stopped,
        Ending::Cancelled,
        Ending::NeedsPerson,
        Ending::NoQuota,
    ];
    assert_snapshot!(endings.map(ending_words).join("; "), @"completed; failed; over budget; stopped; cancelled; waits for a person; usage limit reached, and the settings forbid waiting");
}

#[test]
fn loop_shows_its_iteration_and_restart_command() {
    let play = |max_iterations, until: Option<&str>| {
        let files = workflow(&[("P.md", "text"), ("UNTIL.sh", "make check")]);
        let ralph = Program::Ralph(Ralph { until: until.map(str::to_owned) });
        let play = Play::new(files).running(ralph);
        play.with(|s| s.max_iterations = max_iterations).started()
    };
    let mut looped = play(2, Some("make check"));
    assert_snapshot!(shown(&looped, OwnerState::Alive), @"running: main is in turn 1 of P.md, iteration 1 of 2: Wait");
    let script =
        TurnFailure::Script { status: "exit status 1".into(), stderr: "oh".into(), tag: None };
    looped.says("main", "not yet");
    looped.fails("main", script.clone());
    looped.says("main", "<result>x</result>");
    assert_snapshot!(shown(&looped, OwnerState::Alive), @"running: main is in turn 1 of UNTIL.sh, iteration 2 of 2: Wait");
    looped.fails("main", script);
    assert_snapshot!(shown(&looped, OwnerState::Gone), @"failed: main failed at UNTIL.sh: 2 iterations, and `make check` never passed: Resume([MaxIterations(4)])");
    assert_snapshot!(lines_of(&looped), @"
      main       starts at P.md
    . main       P.md: turn 1
      main       P.md → UNTIL.sh (reset) · $0.10
    . main       UNTIL.sh: turn 1
    ! main       after iteration 1 the command did not pass: exit status 1: oh
      main       UNTIL.sh → P.md #2 (reset)
    . main       P.md: turn 1
      main       P.md → UNTIL.sh #2 (result) · $0.10
    . main       UNTIL.sh: turn 1
    ! main       the result of iteration 2 does not count: exit status 1: oh
    x main       UNTIL.sh: failed: 2 iterations, and `make check` never passed
      -          failed
    ");
    let mut usual = play(50, None);
    usual.says("main", "<result></result>");
    assert_snapshot!(shown(&usual, OwnerState::Gone), @"completed: main ended with a result: Show");
    let mut cancelled = play(50, None);
    cancelled.halt();
    cancelled.stop(StopMode::Cancel);
    assert_snapshot!(shown(&cancelled, OwnerState::Gone), @"cancelled: a user cancelled it: Start");
    let mut cancelled = play(2, Some("make check"));
    cancelled.halt();
    cancelled.stop(StopMode::Cancel);
    assert_snapshot!(shown(&cancelled, OwnerState::Gone), @"cancelled: a user cancelled it: Start");
}

#[test]
fn failed_result_of_a_callee_is_shown() {
    let mut play = Play::new(prompts(&["A.md", "B.md", "C.md"])).started();
    play.says("main", r#"<call return="B">C</call>"#);
    play.says("main", r#"<result status="failed">no</result>"#);
    assert_snapshot!(lines_of(&play), @"
      main       starts at A.md
    . main       A.md: turn 1
      main       A.md → C.md (call) · $0.10
    . main       C.md: turn 1
      main       C.md → B.md (failed result) · $0.10
    . main       B.md: turn 1
    ");
}

#[test]
fn paid_backends_are_named_if_several() {
    let files = [
        ("A.md", "text"),
        ("X.md", "---\nbackend: codex\n---\ntext"),
        ("Z.md", "---\nmax_visits: 1\nthen: X\n---\ntext"),
    ];
    let mut play = Play::new(workflow(&files)).started();
    play.says("main", r#"<function return="Z">X</function>"#);
    play.says("main", "<result>fine</result>");
    play.says("main", r#"<function return="Z">X</function>"#);
    play.says("main", "<result>again</result>");
    assert_snapshot!(lines_of(&play), @"
      main       starts at A.md
    . main       A.md (claude): turn 1
      main       A.md → X.md (function) · claude $0.10
    . main       X.md (codex): turn 1
      main       X.md → Z.md (result) · codex $0.10
    . main       Z.md (claude): turn 1
      main       Z.md → X.md #2 (function) · claude $0.10
    . main       X.md (codex): turn 1
    x main       X.md (codex): failed: Z.md reached its visit limit, but its `then`, X.md, is answered by codex, and the conversation belongs to claude (its transition is kept)
      -          failed
    ");
    assert_snapshot!(shown(&play, OwnerState::Gone), @r#"
    failed: main failed at X.md (codex): Z.md reached its visit limit, but its `then`, X.md, is answered by codex, and the conversation belongs to claude (RedirectThen { limited: "Z.md", backend: "claude" }): Resume([CurrentStates])
    "#);
}
