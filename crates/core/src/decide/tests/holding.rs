//! `--max-agents`: forks that wait for room.

use insta::assert_snapshot;

use super::play::{Play, prompts};
use crate::ids::StateName;

const TWO: &str = r#"<fork next="A">W</fork><fork next="A">W</fork>"#;
const ONE: &str = r#"<fork next="A">W</fork>"#;

/// Returns a run with at most two workers, which both live.
fn full() -> Play {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_agents = 2).started();
    play.says("main", TWO);
    play
}

#[test]
fn failed_agent_takes_no_room() {
    let mut play =
        Play::new(prompts(&["A.md", "B.md", "W.md"])).with(|s| s.reminders = 0).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    play.says("main_w1", r#"<call return="B">A</call>"#);
    let check = |play: &Play| {
        assert_eq!(play.run.live_workers(), 1);
        let places: Vec<&str> = play.run.places().map(StateName::as_str).collect();
        assert_eq!(places, ["A.md", "A.md", "B.md"]);
    };
    check(&play);
    play.says("main", "no tag");
    check(&play);
}

#[test]
fn fork_without_room_holds_its_parent() {
    let mut play = full();
    assert_snapshot!(play.says("main", TWO), @"
    settle main.2.1 #1 $0.10: at main.1.1
    hold main
    ");
    assert_snapshot!(play.says("main_w1", "<result>x</result>"), @r#"
    settle main_w1.1.1 #1 $0.10: at main_w1.1.1
    main_w1 ends: "x"
    "#);
    assert_snapshot!(play.scene(), @"
    Open: $0.30 spent, $3.30 reserved
    main at A.md: held
    main_w2 at W.md: runs with $3.30
    ");
    assert_snapshot!(play.says("main_w2", "<result>x</result>"), @r#"
    settle main_w2.1.1 #1 $0.10: at main_w2.1.1
    main_w2 ends: "x"
    main fork: at main.1.1, forks 4
    main enters A.md (3) as visit 3
    queue main.3.1 at 4 for claude: resume main.1.1
    spawn main_w3 in /home
    main_w3 enters W.md (1) as visit 1
    queue main_w3.1.1 at 5 for claude: fresh main_w3.1.1
    spawn main_w4 in /home
    main_w4 enters W.md (1) as visit 1
    queue main_w4.1.1 at 6 for claude: fresh main_w4.1.1
    start main.3.1 #1 with $3.20: resume main.1.1
    start main_w3.1.1 #1 with $3.20: fresh main_w3.1.1
    start main_w4.1.1 #1 with $3.20: fresh main_w4.1.1
    "#);
    assert_eq!(play.run.held.len(), 0);
}

#[test]
fn a_goto_beside_the_forks_takes_no_room() {
    let mut play = full();
    play.says("main", "<fork>W</fork><goto>A</goto>");
    assert_eq!(play.run.held.len(), 1);
    play.says("main_w1", "<result>x</result>");
    assert_eq!((play.run.held.len(), play.run.live), (0, 3));
}

#[test]
fn held_forks_are_released_the_oldest_first() {
    let mut play = full();
    play.says("main_w1", ONE);
    play.says("main", ONE);
    assert_eq!(format!("{:?}", play.run.held), r#"["main_w1", "main"]"#);
    play.says("main_w2", "<result>x</result>");
    assert_eq!(format!("{:?}", play.run.held), r#"["main"]"#);
    play.says("main_w1_w1", "<result>x</result>");
    assert_eq!(play.run.held.len(), 0);
}

#[test]
fn a_failed_worker_makes_room_too() {
    let mut play = full().with(|s| s.reminders = 0);
    play.run.settings.reminders = 0;
    play.says("main", ONE);
    let events = play.says("main_w1", "no tag");
    assert!(events.contains("spawn main_w3"), "{events}");
}

#[test]
fn oldest_held_agent_fails_when_none_runs() {
    let mut play = full();
    play.says("main_w1", ONE);
    play.says("main_w2", ONE);
    assert_snapshot!(play.says("main", ONE), @"
    settle main.2.1 #1 $0.10: at main.1.1
    hold main
    main_w1 fails: cannot fork: the limit is 2 agents and no running agent can finish, kept
    main_w2 fork: at main_w2.1.1, forks 1
    main_w2 enters A.md (1) as visit 2
    queue main_w2.2.1 at 4 for claude: resume main_w2.1.1
    spawn main_w2_w1 in /home
    main_w2_w1 enters W.md (1) as visit 1
    queue main_w2_w1.1.1 at 5 for claude: fresh main_w2_w1.1.1
    start main_w2.2.1 #1 with $3.20: resume main_w2.1.1
    start main_w2_w1.1.1 #1 with $3.20: fresh main_w2_w1.1.1
    ");
    assert_snapshot!(play.scene(), @"
    Open: $0.40 spent, $6.40 reserved
    main at A.md: held
    main_w1 at W.md: failed: cannot fork: the limit is 2 agents and no running agent can finish
    main_w2 at A.md: runs with $3.20
    main_w2_w1 at W.md: runs with $3.20
    ");
}

#[test]
fn fork_larger_than_the_bound_fails() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_agents = 1).started();
    assert_snapshot!(play.says("main", TWO), @"
    settle main.1.1 #1 $0.10: at main.1.1
    main fails: one message asks for 2 workers, and the limit is 1 agent, kept
    ended: Failed
    ");
    // More room takes the fork without another turn.
    play.settings.max_agents = 2;
    assert_snapshot!(play.resume(), @"
    resumed
    revive main
    main fork: at main.1.1, forks 2
    main enters A.md (2) as visit 2
    queue main.2.1 at 1 for claude: resume main.1.1
    spawn main_w1 in /home
    main_w1 enters W.md (1) as visit 1
    queue main_w1.1.1 at 2 for claude: fresh main_w1.1.1
    spawn main_w2 in /home
    main_w2 enters W.md (1) as visit 1
    queue main_w2.1.1 at 3 for claude: fresh main_w2.1.1
    start main.2.1 #1 with $3.30: resume main.1.1
    start main_w1.1.1 #1 with $3.30: fresh main_w1.1.1
    start main_w2.1.1 #1 with $3.30: fresh main_w2.1.1
    ");
}

#[test]
fn lowered_bound_fails_a_too_large_fork() {
    let mut play = full();
    play.says("main", TWO);
    play.halt();
    play.settings.max_agents = 1;
    let events = play.resume();
    assert!(events.contains("main fails: one message asks for 2 workers"), "{events}");
}

#[test]
fn one_kept_fork_takes_the_nexts_room() {
    let mut play = full();
    for agent in ["main_w1", "main_w2"] {
        play.says(agent, &format!("{TWO}{ONE}"));
    }
    play.says("main", "<result>x</result>");
    play.settings.max_agents = 5;
    play.resume();
    assert_eq!(format!("{:?}", play.run.held), r#"["main_w2"]"#);
    assert_eq!(play.run.live, 5);
}

#[test]
fn revived_workers_count_before_a_kept_fork() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).with(|s| s.max_agents = 2).started();
    play.run.settings.reminders = 0;
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork><fork next="A">W</fork>"#);
    play.settings.max_agents = 3;
    play.settings.reminders = 0;
    play.resume();
    for worker in ["main_w1", "main_w2", "main_w3"] {
        play.says(worker, "no tag");
    }
    play.says("main", &format!("{TWO}{TWO}"));
    assert_snapshot!(play.scene(), @r#"
    Ended(Failed): $0.50 spent
    main at A.md: failed: one message asks for 4 workers, and the limit is 3 agents
    main_w1 at W.md: failed: no tag: the output ends with "no tag"; write <goto>STATE</goto> or <result>YOUR RESULT</result>
    main_w2 at W.md: failed: no tag: the output ends with "no tag"; write <goto>STATE</goto> or <result>YOUR RESULT</result>
    main_w3 at W.md: failed: no tag: the output ends with "no tag"; write <goto>STATE</goto> or <result>YOUR RESULT</result>
    "#);
    play.settings.max_agents = 5;
    play.resume();
    assert_snapshot!(play.scene(), @"
    Open: $0.50 spent, $7.1250 reserved
    main at A.md: held
    main_w1 at W.md: runs with $2.3750
    main_w2 at W.md: runs with $2.3750
    main_w3 at W.md: runs with $2.3750
    ");
}
