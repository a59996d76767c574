//! Several forks in one message, the names of workers, and their initial values.

use insta::assert_snapshot;

use super::play::{Play, prompts, workflow};
use crate::ids::AgentId;

const STATES: [&str; 5] = ["A.md", "N.md", "WORKER.md", "ANALYZE.md", "M.md"];

#[test]
fn parent_queues_before_its_workers() {
    let mut play = Play::new(prompts(&STATES)).with(|s| s.max_parallel = 2).started();
    let text = r#"<fork next="N" item="1">WORKER</fork> and <fork next="N.md" cd="sub" input="in">
        WORKER</fork><fork next="N">ANALYZE</fork>"#;
    assert_snapshot!(play.says("main", text), @r#"
    settle main.1.1 #1 $0.10: at main.1.1
    main fork: at main.1.1, forks 3
    main enters N.md (1) as visit 2
    queue main.2.1 at 1 for claude: resume main.1.1
    spawn main_worker1 in /home item=1
    main_worker1 enters WORKER.md (1) as visit 1
    queue main_worker1.1.1 at 2 for claude: fresh main_worker1.1.1
    spawn main_worker2 in /home/sub
    main_worker2 enters WORKER.md (1) as visit 1 with "in"
    queue main_worker2.1.1 at 3 for claude: fresh main_worker2.1.1
    spawn main_analyz3 in /home
    main_analyz3 enters ANALYZE.md (1) as visit 1
    queue main_analyz3.1.1 at 4 for claude: fresh main_analyz3.1.1
    start main.2.1 #1 with $4.95: resume main.1.1
    start main_worker1.1.1 #1 with $4.95: fresh main_worker1.1.1
    "#);
    assert_snapshot!(play.scene(), @"
    Open: $0.10 spent, $9.90 reserved
    main at N.md: runs with $4.95
    main_worker1 at WORKER.md: runs with $4.95
    main_worker2 at WORKER.md: queued
    main_analyz3 at ANALYZE.md: queued
    ");
}

#[test]
fn goto_beside_forks_leads_the_parent() {
    let check = |text: &str| {
        let mut play = Play::new(prompts(&STATES)).started();
        play.says("main", text);
        let main = play.agent("main");
        let shown = (main.visit.location.to_string(), main.visit.input.clone(), main.forks);
        assert_eq!(shown, ("N.md".to_owned(), Some("mine".into()), 2), "{text}");
        assert_eq!(play.agent("main_worker1").visit.input, Some("theirs".into()), "{text}");
        assert_eq!(play.agent("main_worker2").visit.input, None, "{text}");
    };
    let (one, two) = (r#"<fork input="theirs">WORKER</fork>"#, "<fork>WORKER</fork>");
    let goto = r#"<goto input="mine">N</goto>"#;
    check(&format!("{one}{two}{goto}"));
    check(&format!("{goto}{one}{two}"));
    check(&format!(r#"{one}{goto}<fork next="N">WORKER</fork>"#));
}

#[test]
fn one_bad_tag_refuses_the_whole_message() {
    let check = |text: &str, fault: &str| {
        let policy = "---\nallowed_targets:\n  fork: [WORKER, ANALYZE]\n---\ntext";
        let mut files = STATES.map(|name| (name, "text"));
        files[0].1 = policy;
        let mut play = Play::new(workflow(&files)).started();
        let events = play.says("main", text);
        let reminded = events.lines().find(|line| line.starts_with("remind")).unwrap_or(&events);
        assert_eq!(reminded, format!("remind main (1): {fault}"), "{text}");
        assert_eq!((play.run.agents.len(), play.agent("main").forks), (1, 0), "{text}");
    };
    let good = r#"<fork next="N">WORKER</fork>"#;
    check(
        &format!(r#"{good}<fork next="N">WORKR</fork>"#),
        r#"<fork>: there is no state "WORKR"; did you mean "WORKER.md"?"#,
    );
    check(&format!(r#"{good}<fork next="N">M</fork>"#), r#"<fork> to "M.md" is not allowed here"#);
    check(
        &format!(r#"{good}<fork next="M">WORKER</fork>"#),
        "forks continue at different states: N.md, M.md",
    );
    check(&format!("{good}<goto>M</goto>"), "forks continue at different states: N.md, M.md");
    check(
        &format!(r#"{good}<fork next="N" cd="nowhere">WORKER</fork>"#),
        r#"<fork>: no directory "nowhere""#,
    );
    check(
        &format!("{good}<goto>N</goto><goto>N</goto>"),
        "3 tags where one is expected: fork, goto, goto",
    );
    check(&format!("{good}<result>x</result>"), "2 tags where one is expected: fork, result");
}

#[test]
fn policy_checks_every_tag_of_a_fork() {
    let check = |policy: &str, text: &str, allowed: bool| {
        let start = format!("---\n{policy}\n---\ntext");
        let mut files = STATES.map(|name| (name, "text"));
        files[0].1 = &start;
        let mut play = Play::new(workflow(&files)).started();
        play.says("main", text);
        assert_eq!(play.run.agents.len() > 1, allowed, "{policy}: {text}");
    };
    let next = "allowed_targets: {fork: [{child: WORKER, next: N}]}";
    check(next, r#"<fork next="N">WORKER</fork>"#, true);
    check(next, r#"<fork next="M">WORKER</fork>"#, false);
    check(next, "<fork>WORKER</fork><goto>N</goto>", true);
    check(next, "<fork>WORKER</fork><goto>M</goto>", false);
    check("allowed_tags: [fork]", "<fork>WORKER</fork><goto>N</goto>", false);
    check("allowed_tags: [fork, goto]", "<fork>WORKER</fork><goto>N</goto>", true);
    check("allowed_targets: {goto: [M]}", "<fork>WORKER</fork><goto>N</goto>", false);
}

#[test]
fn a_worker_starts_empty_where_its_parent_is() {
    let mut play = Play::new(prompts(&STATES)).started();
    play.says("main", r#"<reset cd="sub">A</reset>"#);
    play.says("main", r#"<call return="M" model="opus">A</call>"#);
    play.says(
        "main",
        r#"<fork next="N" a="1" b="2">WORKER</fork><fork next="N" cd="/tmp">ANALYZE</fork>"#,
    );
    assert_eq!(play.shows("main_worker1"), "WORKER.md | fresh | /home/sub");
    assert_eq!(play.shows("main_analyz2"), "ANALYZE.md | fresh | /tmp");
    let attributes = &play.agent("main_worker1").attributes;
    assert_eq!(format!("{attributes:?}"), r#"{"a": Inline("1"), "b": Inline("2")}"#);
    // Attributes are for the worker's whole life, and not for its own workers.
    play.says("main_worker1", "<goto>A</goto>");
    assert_eq!(play.agent("main_worker1").attributes.len(), 2);
    play.says("main_worker1", r#"<fork next="N">WORKER</fork>"#);
    assert_eq!(play.agent("main_worker1_worker1").attributes.len(), 0);
}

#[test]
fn worker_names_are_never_reused() {
    let mut play = Play::new(prompts(&STATES)).started();
    let three =
        r#"<fork next="N">WORKER</fork><fork next="N">WORKER</fork><fork next="N">ANALYZE</fork>"#;
    play.says("main", three);
    let names = |play: &Play| {
        let names: Vec<&str> = play.run.agents.keys().map(AgentId::as_str).collect();
        names.join(" ")
    };
    assert_eq!(names(&play), "main main_analyz3 main_worker1 main_worker2");
    for worker in ["main_worker1", "main_worker2", "main_analyz3"] {
        play.says(worker, "<result>done</result>");
    }
    assert_eq!(names(&play), "main");
    play.says("main", r#"<fork next="N">WORKER</fork>"#);
    assert_eq!(names(&play), "main main_worker4");
    play.says("main_worker4", r#"<fork next="N">ANALYZE</fork>"#);
    assert_eq!(names(&play), "main main_worker4 main_worker4_analyz1");
    // The counter survives other transitions, and a worker's own counter starts at 1.
    play.says("main", "<reset>N</reset>");
    play.says("main", r#"<fork next="N">ANALYZE</fork>"#);
    assert_eq!(names(&play), "main main_analyz5 main_worker4 main_worker4_analyz1");
}

#[test]
fn too_long_worker_name_fails_the_parent() {
    let check = |first: &str, worker: &str, longest: usize| {
        let play = Play::new(prompts(&["WORKER.md", "WW.md", "WWW.md"]));
        let play = play.with(|s| s.max_parallel = 100);
        let mut play = play.with(|s| s.budget = None).started();
        play.says("main", &format!(r#"<fork next="WORKER">{first}</fork>"#));
        let mut agent = worker.to_owned();
        while !play.run.failed.contains(&AgentId::from(agent.as_str())) {
            play.says(&agent, r#"<fork next="WORKER">WORKER</fork>"#);
            let failed = play.run.failed.first().map(ToString::to_string);
            agent = failed.unwrap_or_else(|| format!("{agent}_worker1"));
        }
        assert_eq!(agent.len(), longest, "{first}");
        assert_eq!(play.run.failed.len(), 1);
        assert!(play.run.agents.keys().all(|name| name.as_str().len() <= longest));
    };
    check("WW", "main_ww1", 200);
    check("WWW", "main_www1", 201 - "_worker1".len());
}

#[test]
fn an_ended_worker_leaves_only_its_result() {
    let mut play = Play::new(prompts(&STATES)).with(|s| s.budget = None).started();
    let after = |play: &mut Play, rounds: u32| {
        for _ in 0..rounds {
            play.says("main", r#"<fork next="N">WORKER</fork>"#);
            let worker = format!("main_worker{}", play.agent("main").forks);
            play.says(&worker, "<result>done</result>");
        }
        serde_json::to_string(&play.run).unwrap().len()
    };
    let (few, many) = (after(&mut play, 10), after(&mut play, 990));
    // One entry for each worker: its name, its parent and its result, 54 bytes here. Nothing else
    // of an ended agent may stay, such as its visits or its turn.
    assert!(many < few + 990 * 60, "{few} bytes grew to {many}");
    assert_eq!((play.run.born, play.run.ended.len(), play.run.live), (1001, 1000, 1));
}
