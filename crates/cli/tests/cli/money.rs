//! The costs of runs, and their denied tools.

use serde_json::json;

use crate::harness::Project;

const REPLIES: &str = "
START: { text: '<goto>REVIEW</goto>', cost: 0.30, denied: ['Bash(cargo test --all)', WebFetch] }
REVIEW:
  - { text: '<goto>REVIEW</goto>', cost: unknown }
  - { text: '<result>x</result>', cost: 0.40, denied: ['Bash(cargo test)'] }
";

fn reviewed() -> Project {
    let project = Project::of(&[
        ("wf/START.md", "go"),
        ("wf/REVIEW.md", "look"),
        ("free/START.sh", "echo '<result>x</result>'"),
        ("r.yaml", REPLIES),
    ]);
    project.raymond("run wf --run-id r --replies r.yaml").mentions(0, &[]);
    project.raymond("run free --run-id f").mentions(0, &[]);
    project
}

#[test]
fn every_screen_shows_a_partly_known_cost() {
    let replies = "START: { text: <result>x</result>, cost: at least 0.20 }";
    let project = Project::of(&[("wf/START.md", "go"), ("r.yaml", replies)]);
    let run = project.raymond("run wf --run-id r --replies r.yaml");
    run.mentions(0, &["ended · $0.20 + unpriced", "spent $0.20 of", "1 attempt is unpriced"]);
    let check = |command: &str, parts: &[&str]| {
        let shown = project.raymond(command).stdout;
        assert!(parts.iter().all(|part| shown.contains(part)), "{command}: {shown}");
    };
    check("cost r", &["$0.20", "1 attempt is unpriced"]);
    check("status r", &["$0.20", "1 attempt is unpriced"]);
    check("show r", &["$0.20 + unpriced"]);
    check("logs r", &["$0.20 + unpriced"]);
    let turn = &project.raymond("logs r --json").json()["turns"][0];
    assert_eq!((&turn["spent_usd"], &turn["basis"]), (&json!(0.2), &json!("unpriced")));
    for command in ["cost r --json", "status r --json"] {
        let mut output = project.raymond(command).json();
        if command.starts_with("cost") {
            output = output["rehearsed"].take();
        }
        let spent = (&output["spent_usd"], &output["unpriced_attempts"]);
        assert_eq!(spent, (&json!(0.2), &json!(1)), "{output}");
    }
}

// proves: P5
#[test]
fn costs_in_discarded_records_stay_spent() {
    let project = Project::of(&[
        ("wf/START.md", "Work."),
        ("r.yaml", "START: { text: <goto>START</goto>, cost: 0.40 }"),
    ]);
    let budget =
        |words: &str| project.raymond(words).mentions(5, &["of the $1.00 cap is spent"]).code();
    budget("run wf --run-id r --replies r.yaml --budget 1");
    let spent = || project.raymond("status r --json").json()["spent_usd"].as_f64().unwrap();
    let before = spent();
    assert!(before > 1.1, "{before}");
    // The second rewind also discards the record of the first, an unreadable line, and a second
    // record that starts the run.
    for unread in [0, 1] {
        if unread == 1 {
            let journal = ".raymond/runs/r/journal.jsonl";
            let text = project.read(journal);
            let first = text.lines().nth(1).unwrap();
            project.write(journal, format!("{text}garbage\n{first}\n"));
        }
        let output = project.raymond("resume r --truncate-to 1");
        assert_eq!(output.code(), 5, "{output:?}");
        assert!((spent() - before).abs() < 1e-9, "{}", spent());
    }
    let cost = project.raymond("cost r --json").json();
    let rehearsed = &cost["rehearsed"];
    assert_eq!(rehearsed["rows"][0]["name"], "discarded", "it stays a rehearsal: {cost}");
    assert_eq!((&cost["rows"], &cost["spent_usd"]), (&json!([]), &json!(0.0)), "{cost}");
}

// proves: P5
#[test]
fn cap_in_discarded_records_stays_set() {
    let project = Project::of(&[("wf/START.sh", "exit 1")]);
    assert_eq!(project.raymond("run wf --run-id r --budget 5").code(), 1);
    assert_eq!(project.raymond("resume r --budget 2").code(), 1);
    assert_eq!(project.raymond("resume r --truncate-to 2").code(), 1);
    let cap = || project.raymond("status r --json").json()["budget_usd"].clone();
    assert_eq!(cap(), 2.0);
    // The cap holds although the resume is rejected, and although the record is damaged.
    project.raymond("resume r --truncate-to 2 --max-iterations 3").mentions(2, &["is not a loop"]);
    assert_eq!(cap(), 2.0);
    assert_eq!(project.raymond("resume r --budget 1").code(), 1);
    let journal = ".raymond/runs/r/journal.jsonl";
    let text = project.read(journal);
    let third = text.lines().nth(3).unwrap();
    project.write(journal, text.replace(third, &third.replacen('1', "2", 1)));
    assert_eq!(project.raymond("resume r --truncate-to 2").code(), 1);
    assert_eq!(cap(), 1.0);
}

#[test]
fn resume_plan_is_rejected_like_the_resume() {
    let project = Project::of(&[
        ("wf/START.md", "Work."),
        ("r.yaml", "START: { text: <goto>START</goto>, cost: 0.40 }"),
    ]);
    assert_eq!(project.raymond("run wf --run-id r --replies r.yaml --budget 1").code(), 5);
    for flags in ["", " --budget 1.1"] {
        let said = project.raymond(&format!("resume r{flags}"));
        assert_eq!(said.code(), 5, "{said:?}");
        project.raymond(&format!("resume r --plan{flags}")).prints("").says(5, &said.stderr);
    }
    project.raymond("resume r --plan --budget 9").mentions(0, &[]);
}

// proves: P5
#[test]
fn turn_with_discarded_end_is_paid_again() {
    let project = Project::of(&[
        ("wf/START.md", "Begin."),
        ("wf/NEXT.md", "Go on."),
        (
            "r.yaml",
            "START: { text: <goto>NEXT</goto>, cost: 0.10 }
NEXT: { text: <result>done</result>, cost: 5 }",
        ),
    ]);
    project.raymond("run wf --run-id r --replies r.yaml --budget 12").prints("done\n");
    for spent in ["$10.10", "$15.10"] {
        project.raymond("resume r --truncate-to 2").prints("done\n");
        let seen = project.raymond("status r");
        assert!(seen.stdout.contains(spent), "{seen:?}");
    }
    project.raymond("resume r --truncate-to 2").mentions(5, &["$15.10 of the $12.00 cap is spent"]);
}

#[test]
fn run_cost_is_listed_by_state_and_model() {
    let project = reviewed();
    project.raymond("cost r").says(0, "").prints(
        "r: $1.00 (rehearsal), $0.30 of it estimated
REVIEW.md                           2 turns      $0.70   70 %  $0.30 of it estimated
START.md                             1 turn      $0.30   30 %
",
    );
    project.raymond("cost r --by model").says(0, "").prints(
        "r: $1.00 (rehearsal), $0.30 of it estimated
unknown model                       3 turns      $1.00  100 %  $0.30 of it estimated
",
    );
    project.raymond("cost f").says(0, "").prints("f: $0.00 (list prices)\n");
    project.raymond("cost nobody").mentions(2, &["there is no run"]);
    let seen = project.raymond("status r");
    assert!(seen.stdout.contains("3 visits · $0.30 of it estimated\n"), "{seen:?}");
}

#[test]
fn cost_of_a_project_sums_all_its_runs() {
    let project = reviewed();
    project.raymond("run wf --run-id s --replies r.yaml").mentions(0, &[]);
    project.write(".raymond/runs/broken/journal.jsonl", "not ours\n");
    let broken = "broken: unreadable; see `raymond status broken`";
    project.raymond("cost --since 7d").says(0, broken).prints(
        "3 runs in the last 7d: $2.00 (rehearsal), $0.60 of it estimated
wf                                  6 turns      $2.00  100 %  $0.60 of it estimated
",
    );
    let object = project.raymond("cost --by state --json").json();
    assert_eq!(
        object,
        json!({
            "version": 1, "run_id": null, "since": null, "by": "state", "prices": "list",
            "prices_as_of": raymond_core::prices::PRICES_AS_OF,
            "turns": 0, "spent_usd": 0.0, "estimated_usd": 0.0, "unpriced_attempts": 0, "rows": [],
            "rehearsed": {
                "turns": 6, "spent_usd": 2.0, "estimated_usd": 0.6, "unpriced_attempts": 0,
                "rows": [
                    { "name": "REVIEW.md", "backend": "scripted", "turns": 4, "spent_usd": 1.4, "estimated_usd": 0.6, "unpriced_attempts": 0 },
                    { "name": "START.md", "backend": "scripted", "turns": 2, "spent_usd": 0.6, "estimated_usd": 0.0, "unpriced_attempts": 0 },
                ],
            },
        })
    );
    Project::of(&[]).raymond("cost").says(0, "").prints("0 runs: $0.00 (list prices)\n");
}

#[test]
fn sums_remain_after_prune() {
    let project = reviewed();
    let before = project.raymond("cost --by state").stdout;
    let rows = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    project.raymond("prune r").mentions(0, &["deleted 1 run"]);
    let after = project.raymond("cost --by state").stdout;
    assert!(after.starts_with("1 run and 1 deleted run: $1.00 (rehearsal)"), "{after}");
    assert_eq!(rows(&after), rows(&before));
    // A run of the same name is another run, and its costs are added.
    project.raymond("run wf --run-id r --replies r.yaml").mentions(0, &[]);
    let both = project.raymond("cost --since 1d").stdout;
    assert!(
        both.starts_with("2 runs and 1 deleted run in the last 1d: $2.00 (rehearsal)"),
        "{both}"
    );
}

#[test]
fn summary_lists_denied_tools_and_the_allow_flags() {
    let project = reviewed();
    project.write(
        "bad.yaml",
        REPLIES
            .replace("text: '<result>x</result>'", "fail: task")
            .replace(", denied: ['Bash(cargo test)']", ""),
    );
    let output = project.raymond("run wf --run-id s --replies bad.yaml");
    output.mentions(
        1,
        &["  denied   2 tool calls (cargo test, WebFetch); allow them: \
             raymond resume s --allow 'Bash(cargo test:*)' --allow WebFetch\n",
             "\nspent $1.00 of $10.00 (rehearsal); REVIEW took 70 %; $0.30 of it estimated; to continue: raymond resume s\n"],
    );
    let output = project.raymond("run wf --run-id t --replies r.yaml");
    output.mentions(
        0,
        &[
            "  denied   3 tool calls (cargo test, WebFetch); \
             to allow them next time: --allow 'Bash(cargo test:*)' --allow WebFetch\n",
            "\nspent $1.00 of $10.00 (rehearsal); REVIEW took 70 %; $0.30 of it estimated\n",
        ],
    );
    let denied = json!([
        { "tool": "cargo test", "calls": 2, "allow": "Bash(cargo test:*)" },
        { "tool": "WebFetch", "calls": 1, "allow": "WebFetch" },
    ]);
    for words in ["status t --json", "why t --json"] {
        assert_eq!(project.raymond(words).json()["denied"], denied);
    }
}
