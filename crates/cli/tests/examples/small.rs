//! The examples that fit on a page.

use std::fs;

use crate::stage::{ExampleRun, examples, top};

#[test]
fn title_is_judged() {
    ExampleRun::of("title", "replies.yaml").go();
}

#[test]
fn release_needs_the_answer_of_a_person() {
    let stage = ExampleRun::of("release-gate", "replies.yaml").go();
    assert_eq!(stage.prints("git tag"), "v1\n");
    let published = stage.run("raymond answer demo publish --quiet");
    published.prints("v2 is published\n");
    assert_eq!(stage.prints("git tag"), "v1\nv2\n");

    let stage = ExampleRun::of("release-gate", "replies.yaml").go();
    let rejected = stage.run("raymond answer demo reject");
    rejected.prints("").mentions(1, &["DECIDE.sh: failed: a person rejected the release"]);
    assert_eq!(stage.prints("git tag"), "v1\n");
}

#[test]
fn every_research_worker_writes_its_answer() {
    let stage = ExampleRun::of("research", "replies.yaml").go();
    let answers = stage.read("answers-demo.tsv");
    let mut answers: Vec<&str> = answers.lines().collect();
    answers.sort_unstable();
    let expected = [
        "main_answer1\tWhy is the build slow?\tone crate is built twice",
        "main_answer2\tWhich tests are flaky?\ttwo, both wait for a port",
        "main_answer3\tWhat does nobody use?\tthe export to CSV",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn each_iteration_starts_a_fresh_session() {
    let stage = ExampleRun::of("ralph", "replies.yaml").go();
    assert!(!stage.read("try/TODO.md").contains("- [ ]"));
    assert_eq!(stage.run("./test.sh && ls tests").stdout, "bye.sh\nhello.sh\nnight.sh\n");
    let events = stage.events();
    let plans = events.iter().filter_map(|event| event.get("turn_started")?["plan"].as_object());
    let kinds: Vec<_> = plans.flat_map(|plan| plan.keys()).collect();
    assert_eq!(kinds, ["fresh", "fresh", "fresh"]);
}

#[test]
fn claude_keeps_its_conversation_beside_codex() {
    let stage = ExampleRun::of("claude-calls-codex", "replies.yaml").go();
    let years = "for year in 1900 2000 2023 2024; do sh leap.sh $year; done";
    assert_eq!(stage.prints(years), "no\nyes\nno\nyes\n");
    let events = stage.events();
    let turns = events.iter().filter_map(|event| event.get("turn_queued")).map(|queued| {
        let plan = queued["plan"].as_object().unwrap().iter().next().unwrap();
        (queued["lane"]["prompt"].as_str().unwrap(), plan.0.as_str(), plan.1.as_str().unwrap())
    });
    let turns: Vec<_> = turns.collect();
    let [first, opinion, answer, again, end] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((first.0, first.1), ("claude", "fresh"));
    assert_eq!((opinion.0, opinion.1), ("codex", "fresh"));
    assert_eq!(*answer, ("claude", "resume", first.2));
    assert_eq!((again.0, again.1), ("codex", "fresh"));
    assert_ne!(again.2, opinion.2);
    assert_eq!(*end, ("claude", "resume", first.2));
}

#[test]
fn last_objections_are_returned_after_three_rounds() {
    let stage = ExampleRun::of("claude-calls-codex", "stubborn.yaml").go();
    let events = stage.events();
    let queued = events.iter().filter_map(|event| event.get("turn_queued"));
    let of_codex = queued.filter(|queued| queued["lane"]["prompt"] == "codex").count();
    assert_eq!(of_codex, 3);
}

#[test]
fn readme_shows_its_example_unchanged() {
    let readme = fs::read_to_string(top().join("README.md")).unwrap();
    let example = examples().join("title");
    for file in ["workflow/START.md", "workflow/JUDGE.md", "workflow/DONE.sh", "replies.yaml"] {
        let content = fs::read_to_string(example.join(file)).unwrap();
        assert!(readme.contains(content.trim_end()), "README.md has another {file}");
    }
}
