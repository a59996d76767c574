//! Slots: first come, first served, in one queue (*lane*) for scripts and one for each backend.

use insta::assert_snapshot;

use super::play::{Play, prompts, workflow};
use crate::failure::TurnFailure;
use crate::run::Event;

/// The turns that the last input started.
fn started(play: &Play) -> String {
    let turns = play.last.iter().filter_map(|event| {
        if let Event::TurnStarted { turn, .. } = event { Some(turn.to_string()) } else { None }
    });
    turns.collect::<Vec<_>>().join(" ")
}

#[test]
fn one_at_a_time_is_a_round_robin() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    let mut order = vec![started(&play)];
    for agent in ["main", "main_w1", "main_w2", "main", "main_w1"] {
        play.says(agent, if agent == "main" { "<goto>A</goto>" } else { "<goto>W</goto>" });
        order.push(started(&play));
    }
    assert_eq!(
        order.join(" "),
        "main.2.1 main_w1.1.1 main_w2.1.1 main.3.1 main_w1.2.1 main_w2.2.1"
    );
}

#[test]
fn prompts_and_scripts_share_the_slots() {
    let files = [("A.md", "text"), ("RUN.sh", "true"), ("B.md", "text")];
    let mut play = Play::new(workflow(&files)).with(|s| s.max_parallel = 2).started();
    play.says(
        "main",
        r#"<fork next="A">RUN</fork><fork next="A">RUN</fork><fork next="A">B</fork>"#,
    );
    assert_snapshot!(play.scene(), @"
    Open: $0.10 spent, $4.95 reserved
    main at A.md: runs with $4.95
    main_run1 at RUN.sh: runs
    main_run2 at RUN.sh: queued
    main_b3 at B.md: queued
    ");
    play.says("main_run1", "<result>x</result>");
    assert_eq!(started(&play), "main_run2.1.1");
    play.says("main", "<goto>A</goto>");
    assert_eq!(started(&play), "main_b3.1.1");
}

#[test]
fn a_reminder_keeps_its_slot() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    play.says("main", "no tag");
    assert_eq!(started(&play), "main.2.2");
    play.says("main", "<goto>A</goto>");
    assert_eq!(started(&play), "main_w1.1.1");
}

#[test]
fn outcomes_of_one_batch_are_decided_together() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 2).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    let inputs = vec![
        play.finished("main_w1", "<goto>W</goto>", |_| {}),
        play.finished("main", "<goto>A</goto>", |_| {}),
    ];
    play.feed(inputs);
    assert_eq!(started(&play), "main_w2.1.1 main_w1.2.1");
}

#[test]
fn blocked_backend_blocks_no_other_lane() {
    let other = "---\nbackend: other\n---\ntext";
    let files = [("A.md", "text"), ("RUN.sh", "true"), ("OTHER.md", other)];
    let mut play = Play::new(workflow(&files)).with(|s| s.max_parallel = 1).started();
    play.says(
        "main",
        r#"<fork next="A">A</fork><fork next="A">RUN</fork><fork next="A">OTHER</fork>"#,
    );
    play.fails("main", TurnFailure::Quota { until: None, why: "limit".into() });
    assert_eq!(started(&play), "main_run2.1.1");
    play.says("main_run2", "<goto>RUN</goto>");
    assert_eq!(started(&play), "main_other3.1.1");
    play.says("main_other3", "<result>x</result>");
    assert_eq!(started(&play), "main_run2.2.1");
    play.says("main_run2", "<result>x</result>");
    assert_snapshot!(play.scene(), @"
    Open: $0.30 spent
    main at A.md: queued
    main_a1 at A.md: queued
    ");
}

#[test]
fn waiting_retry_holds_no_slot() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_parallel = 1).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork>"#);
    play.stumbles("main");
    assert_eq!(started(&play), "main_w1.1.1");
    play.after("1h".parse().unwrap());
    assert_eq!(started(&play), "");
    play.says("main_w1", "<result>x</result>");
    assert_eq!(started(&play), "main_w2.1.1");
    play.says("main_w2", "<result>x</result>");
    assert_eq!(started(&play), "main.2.1");
}

#[test]
fn at_least_one_turn_always_runs() {
    let play = Play::new(prompts(&["A.md"])).with(|s| s.max_parallel = 0).started();
    assert_eq!(started(&play), "main.1.1");
}
