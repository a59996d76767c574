use super::*;
use crate::budget::Cost;
use crate::decide::tests::play::{Play, prompts, turn, workflow};
use crate::failure::TurnFailure;
use crate::time::Timestamp;

fn plan(play: &Play) -> Plan {
    let mut ledger = Ledger::default();
    play.story.iter().for_each(|event| ledger.note(Timestamp(0), event));
    Plan::of(&play.run, &ledger, &play.settings)
}

/// Returns the continued and the repeated turns.
#[track_caller]
fn check(play: &Play, continuing: usize, repeating: usize) {
    let plan = plan(play);
    let found = (plan.prompts(Fate::Continued).count(), plan.repeating());
    assert_eq!(found, (continuing, repeating), "{plan}");
}

fn scripts() -> Play {
    Play::new(workflow(&[("S.sh", "true"), ("T.sh", "true"), ("A.md", "text")]))
}

#[test]
fn every_fate_has_one_word() {
    let fates = [Fate::Finished, Fate::Adopted, Fate::Continued, Fate::Repeated];
    let words = fates.map(Fate::as_str).join(" ");
    assert_eq!(words, "finished_meanwhile adopting continuing repeating");
}

#[test]
fn only_earlier_attempts_are_continued() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    play.halt();
    // The worker's turn never began.
    check(&play, 1, 0);
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.stumbles("main");
    check(&play, 1, 0);
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.no_wait = true).started();
    play.fails("main", TurnFailure::Quota { until: None, why: "limit".into() });
    check(&play, 1, 0);
}

#[test]
fn interrupted_script_runs_again_unless_configured_to_fail() {
    let mut play = scripts().started();
    play.halt();
    check(&play, 0, 1);
    play.settings.interrupted_scripts = InterruptedScripts::Fail;
    check(&play, 0, 0);
}

#[test]
fn an_agent_that_failed_is_asked_again_once() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.reminders = 0).started();
    play.says("main", "no tag");
    check(&play, 1, 0);
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.fails("main", TurnFailure::Task { why: "no".into() });
    check(&play, 1, 0);
    let mut play = scripts().started();
    play.says("main", r#"<fork next="S">T</fork>"#);
    play.says("main_t1", "no tag");
    // One turn failed, and one is in flight.
    check(&play, 0, 2);
}

#[test]
fn turns_finished_meanwhile_are_listed_not_continued() {
    let play = Play::new(prompts(&["A.md"])).started();
    let said = play.finished("main", "<result>x</result>", |_| {});
    assert_eq!(
        plan(&play).knowing(&play.run, &[said]).to_string(),
        "reused 0 turns ($0.00), 1 finished meanwhile, continuing 0, repeating 0"
    );
}

// proves: A46
#[test]
fn finished_turns_are_charged_before_comparing_shares() {
    // $0.10 is spent, and three turns have a budget share of $3.30 each.
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    play.says("main", &r#"<fork next="A">W</fork>"#.repeat(2));
    let mut check = |budget: &str, told: TranscriptCost, expected: Fate| {
        play.settings.budget = Some(budget.parse().unwrap());
        let ended = ["main.2.1", "main_w1.1.1"].map(|id| (turn(id), told));
        let plan = plan(&play).paying(&play.run, ended);
        let plan = plan.finding([(turn("main_w2.1.1"), Fate::Adopted)]);
        assert_eq!(plan.open[2].fate, expected, "{budget} {told:?}");
    };
    let paid = Cost::Reported(Micros(500_000));
    check("4.40", paid.into(), Fate::Adopted);
    check("4.39", paid.into(), Fate::Recalled);
    let capped = TranscriptCost { cost: paid, capped: true };
    check("9.99", capped, Fate::Recalled);
    check("10", capped, Fate::Adopted);
}

#[test]
fn turns_are_listed_with_outcome_or_counted() {
    let states = [("A.md", "text"), ("S.sh", "true"), ("W.md", "text")];
    let mut play = Play::new(workflow(&states)).with(|s| s.reminders = 0).started();
    play.says(
        "main",
        r#"<fork next="A">W</fork><fork next="A">W</fork><fork next="A">W</fork><fork next="A">S</fork>"#,
    );
    play.says("main_w3", "no tag");
    let found = [("main_w1.1.1", Fate::Finished), ("main_w2.1.1", Fate::Adopted)];
    let found = found.map(|(id, fate)| (turn(id), fate));
    let found =
        plan(&play).finding(found.into_iter().chain([(turn("main_s4.1.1"), Fate::Adopted)]));
    assert_eq!(
        found.lines(),
        [
            "main             A.md: continuing in its session",
            "main_s4          S.sh: repeating",
            "main_w1          W.md: finished meanwhile",
            "main_w2          W.md: adopting its client, which still runs",
            "main_w3          W.md: continuing in its session",
        ]
    );
    let turns: Vec<String> = found.open.iter().map(|open| open.turn.to_string()).collect();
    assert_eq!(turns, ["main.2.1", "main_s4.1.1", "main_w1.1.1", "main_w2.1.1", "main_w3.1.1"]);
    let open = vec![found.open[0].clone(); 12];
    let lines = Plan { open, ..found }.lines();
    assert_eq!((lines.len(), lines[10].as_str()), (11, "and 2 more"));
}

#[test]
fn single_backend_is_not_counted_separately() {
    let check = |backends: &[&str], expected: &str| {
        let prompts: PromptCounts = backends.iter().map(|name| BackendName::new(*name)).collect();
        assert_eq!(prompts.describe(BackendLabels::Shown), expected);
        assert_eq!(prompts.describe(BackendLabels::Hidden), backends.len().to_string());
    };
    check(&[], "0");
    check(&["codex"], "1 (codex)");
    check(&["codex", "codex"], "2 (codex)");
    check(&["codex", "claude"], "2 (claude, codex)");
    check(&["codex", "claude", "codex"], "3 (1 claude, 2 codex)");
}
