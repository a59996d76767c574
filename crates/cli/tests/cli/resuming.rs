//! `resume`: which turns continue, with which states and which budget.

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Project, until};

#[test]
fn stale_state_file_is_updated() {
    let project = Project::of(&[("wf/START.sh", "echo '<result>x</result>'")]);
    project.raymond("run wf --run-id r").prints("x\n");
    let state = project.state("r");
    project.write(".raymond/state/r.json", r#"{"status":"running"}"#);
    project.raymond("resume r").prints("x\n");
    assert_eq!(project.state("r"), state);
}

#[test]
fn plan_of_an_ended_run_writes_nothing() {
    for script in ["echo '<result>x</result>'", "exit 1"] {
        let project = Project::of(&[("wf/START.sh", script)]);
        project.raymond("run wf --run-id r");
        let gone = [".raymond/state/r.json", ".raymond/runs/r/lock"];
        for file in gone {
            std::fs::remove_file(project.path(file)).unwrap();
        }
        let unfinished =
            [".raymond/state/.temporary-0-r.json", ".raymond/runs/r/.temporary-0-lock"];
        for file in unfinished {
            project.write(file, "half");
        }
        project.raymond("resume r --plan").mentions(0, &[]);
        assert!(!gone.iter().any(|file| project.path(file).exists()), "{script}");
        assert_eq!(unfinished.map(|file| project.read(file)), ["half"; 2], "{script}");
    }
}

#[test]
fn completed_run_only_prints_its_result_again() {
    let project = Project::of(&[("wf/START.sh", "echo '<result>once</result>'")]);
    project.raymond("run wf --run-id r").prints("once\n");
    let before = project.read(".raymond/runs/r/journal.jsonl");
    project.raymond("resume r").prints("once\n").says(0, "r: already completed; nothing was run");
    assert_eq!(project.raymond("resume r --json").json()["results"], json!({ "main": "once" }));
    assert_eq!(project.read(".raymond/runs/r/journal.jsonl"), before);
    project.raymond("resume").says(2, "raymond: no run is unfinished\nhint: see `raymond list`");
}

#[test]
fn plan_reports_what_would_prevent_the_resume() {
    let project = Project::of(&[
        ("wf/START.sh", "exit 1"),
        ("wf/NEXT.md", "next"),
        ("replies.yaml", "NEXT: <result>x</result>\n"),
    ]);
    project.raymond("run wf --replies replies.yaml --run-id r").mentions(1, &[]);
    project.raymond("resume r --plan").mentions(0, &[]);
    std::fs::remove_file(project.path("replies.yaml")).unwrap();
    for words in ["resume r --plan", "resume r"] {
        project.raymond(words).mentions(2, &["could not read", "replies.yaml"]);
    }
}

/// Fails at its second state until a file says otherwise.
fn failed() -> Project {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<goto>CHECK</goto>'"),
        ("wf/CHECK.sh", "test -e ready && echo '<result>done</result>'"),
        ("wf/OTHER.sh", "echo '<result>other</result>'"),
    ]);
    project.raymond("run wf --run-id r").mentions(1, &["to continue, first fix CHECK.sh or what it needs, then: raymond resume r --with-current"]);
    project
}

#[test]
fn failed_run_continues_at_the_failed_visit() {
    let project = failed();
    project.write("ready", "");
    project
        .raymond("resume --plan")
        .says(0, "")
        .prints("r: reused 1 turn ($0.00), continuing 0, repeating 1\n  main             CHECK.sh: repeating\n");
    assert_eq!(
        project.raymond("resume r --plan --json").json(),
        json!({
            "version": 1, "run_id": "r", "reused_turns": 1, "reused_usd": 0.0, "finished_meanwhile": 0, "adopting": 0, "continuing": 0, "waiting": 0, "repeating": 1,
            "turns": [{ "turn": "main.2.1", "agent": "main", "state": "CHECK.sh", "backend": null, "what": "repeating" }],
            "states": null, "backends": [],
        })
    );
    project.raymond("resume r").prints("done\n").says(
        0,
        "r: reused 1 turn ($0.00), continuing 0, repeating 1
        main             CHECK.sh: continues after its failure
        main             ended
        completed: main ended with a result
        path     START → CHECK
        look     raymond show r · raymond logs r
        spent $0.00 of $10.00",
    );
    assert_eq!(project.events("r", "turn_settled").len(), 2);
}

#[test]
fn start_flags_are_rejected_on_resume() {
    let project = failed();
    for flag in ["--input x", "--var a=b", "--with-current --var a=b"] {
        let name = if flag.contains("--var") { "--var" } else { "--input" };
        project.raymond(&format!("resume r {flag}")).says(
            2,
            &format!(
                "raymond: {name} can be set only when a run starts
                hint: start a new run with `raymond run`"
            ),
        );
    }
}

#[test]
fn resume_needs_a_name_for_several_runs() {
    let project = failed();
    project.raymond("run wf --run-id s").mentions(1, &[]);
    project.raymond("resume").says(2, "raymond: 2 runs are unfinished\nhint: name one of s, r");
}

#[test]
fn failed_run_with_changed_states_needs_a_flag() {
    let project = failed();
    project.write("wf/CHECK.sh", "echo '<result>edited</result>'");
    project.write("wf/NEW.sh", "true");
    std::fs::remove_file(project.path("wf/OTHER.sh")).unwrap();
    let before = project.read(".raymond/runs/r/journal.jsonl");
    let changed = "CHECK.sh (edited, already visited), NEW.sh (added), OTHER.sh (removed)";
    let refusal = format!(
        "raymond: states changed since r started: {changed}
        hint: use the edit with `raymond resume r --with-current`, or the pinned states with \
        `raymond resume r --pinned`"
    );
    project.raymond("resume r").says(2, &refusal);
    project.raymond("resume r --plan").says(2, &refusal);
    assert_eq!(project.read(".raymond/runs/r/journal.jsonl"), before);
    project.raymond("resume r --pinned").mentions(
        1,
        &[&format!("raymond: continuing with the pinned states; changed since: {changed}\n")],
    );
    project.raymond("resume r --with-current --plan").prints(&format!(
        "using the current states: {changed}\n\
         r: reused 1 turn ($0.00), continuing 0, repeating 1\n  \
         main             CHECK.sh: repeating\n"
    ));
    project
        .raymond("resume r --with-current")
        .prints("edited\n")
        .mentions(0, &[&format!("raymond: using the current states: {changed}\n")]);
    project.raymond("resume r --with-current --pinned").mentions(2, &["cannot be used with"]);
}

#[test]
fn failed_run_with_broken_workflow_needs_a_flag() {
    let project = failed();
    let hint = "hint: fix it and run `raymond resume r --with-current`, or use the pinned \
                states with `raymond resume r --pinned`";
    let before = project.read(".raymond/runs/r/journal.jsonl");
    let refused = |said: &str| {
        for words in ["resume r", "resume r --plan", "run wf --run-id r --or-resume"] {
            project.raymond(words).says(2, &format!("{said}\n{hint}"));
        }
        assert_eq!(project.read(".raymond/runs/r/journal.jsonl"), before);
        project.raymond("resume r --pinned --plan").mentions(0, &[]);
        project.raymond("resume r --with-current --plan").mentions(2, &[]);
    };
    project.write("wf/1_START.sh", "");
    refused(
        "/project/wf: error: there are several entry states: 1_START.sh, START.sh [several-entries]
        hint: keep one of them, or name the state to start with (not in an archive)
        raymond: the workflow has a mistake",
    );
    std::fs::remove_dir_all(project.path("wf")).unwrap();
    refused("raymond: could not find /project/wf");
    project.write("ready", "");
    project.raymond("resume r --pinned").prints("done\n").mentions(0, &[]);
}

#[test]
fn states_of_ended_agents_count_as_visited() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"CHECK\">WORKER</fork>'"),
        ("wf/WORKER.sh", "echo '<result>w</result>'"),
        ("wf/CHECK.sh", "exit 1"),
        ("wf/OTHER.sh", "exit 1"),
    ]);
    project.raymond("run wf --run-id r").mentions(1, &[]);
    assert_eq!(project.events("r", "agent_ended").len(), 1);
    project.write("wf/WORKER.sh", "echo edited");
    project.write("wf/OTHER.sh", "echo edited");
    let changed = "r started: OTHER.sh (edited), WORKER.sh (edited, already visited)\n";
    project.raymond("resume r").mentions(2, &[changed]);
}

#[test]
fn failed_attempt_of_prompt_is_continued() {
    let check = |reply: &str, flags: &str| {
        let replies = format!("START: {reply}\n");
        let project = Project::of(&[("wf/START.md", "go"), ("r.yaml", &replies)]);
        let running = project.start(&format!("run wf --replies r.yaml --run-id r {flags}"));
        until("it failed once", || !project.events("r", "turn_failed").is_empty());
        running.signal(Signal::INT);
        running.wait();
        project.raymond("resume r --plan").prints(
            "r: reused 0 turns ($0.00), continuing 1, repeating 0
  main             START.md: continuing in its session\n",
        );
    };
    check("{ fail: transient }", "");
    check("{ fail: quota }", "--no-wait");
}

#[test]
fn edits_that_remove_a_needed_state_are_rejected() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<call return=\"BACK\">SUB</call>'"),
        ("wf/SUB.sh", "exit 1"),
        ("wf/BACK.sh", "echo '<result>x</result>'"),
    ]);
    project.raymond("run wf --run-id r").mentions(1, &[]);
    let without = |state: &str| {
        let (here, away) = (project.path(&format!("wf/{state}")), project.path("away"));
        std::fs::rename(&here, &away).unwrap();
        project.raymond("resume r --with-current").says(
            2,
            &format!(
                "raymond: main needs {state}, which the edited workflow does not have
                hint: restore it, or run `raymond resume r --pinned`"
            ),
        );
        std::fs::rename(&away, &here).unwrap();
    };
    without("SUB.sh");
    without("BACK.sh");
    assert_eq!(project.events("r", "definition_adopted"), [json!(null); 0]);
}

#[test]
fn run_over_budget_continues_with_pinned_states() {
    let project = Project::of(&[
        ("wf/START.md", "a"),
        ("wf/NEXT.md", "b"),
        ("r.yaml", "START: { text: '<goto>NEXT</goto>', cost: 1 }\nNEXT: '<result>ok</result>'\n"),
    ]);
    project.raymond("run wf --replies r.yaml --budget 1 --run-id r").mentions(5, &[]);
    project.write("wf/NEXT.md", "---\nbudget: nonsense\n---\n");
    project.raymond("resume r --budget 2").prints("ok\n").mentions(
        0,
        &["raymond: continuing with the pinned states: could not read the workflow\n"],
    );
}

#[test]
fn over_budget_call_continues_without_repeating_turns() {
    let project = Project::of(&[
        ("wf/START.md", "a"),
        ("wf/SUB.md", "b"),
        ("wf/BACK.md", "got {{result}}"),
        (
            "r.yaml",
            "START: { text: '<call return=\"BACK\">SUB</call>', cost: 0.5 }
SUB: { text: '<result>sub</result>', cost: 0.6 }
BACK: { text: '<result>got it</result>', cost: 0.2, expect: 'got sub' }
",
        ),
    ]);
    project.raymond("run wf --replies r.yaml --budget 1 --run-id r").says(
        5,
        "r: cap $1.00 · 4 at a time · scripted · 3 states pinned
        main             starts at START.md
        main             START.md → SUB.md (call) · $0.50
        ·                50 % of the cap is spent
        main             SUB.md → BACK.md (result) · $0.60
        ·                110 % of the cap is spent
        over_budget: $1.10 of the $1.00 cap is spent; 1 turn waits for a higher budget
        path     START → SUB → BACK
        look     raymond show r · raymond logs r
        spent $1.10 of $1.00 (rehearsal); SUB took 55 %; to continue: raymond resume r --budget 3",
    );
    project.raymond("resume r").mentions(5, &["--budget is the new total"]);
    project.raymond("resume r --budget 2").prints("got it\n").mentions(
        0,
        &["r: reused 2 turns ($1.10), continuing 0, repeating 0\n", "spent $1.30 of $2.00"],
    );
    assert_eq!(project.events("r", "turn_started").len(), 3);
    assert_eq!(project.events("r", "turn_settled").len(), 3);
}

#[test]
fn resume_uses_the_start_directory_from_anywhere() {
    let project = Project::of(&[
        ("wf/START.sh", "test -e ready && echo \"<result>$PWD</result>\""),
        (".git/HEAD", ""),
        ("sub/x", ""),
    ]);
    project.raymond("run wf --run-id r").mentions(1, &[]);
    project.write("ready", "");
    let binary = env!("CARGO_BIN_EXE_raymond");
    let line = format!("cd sub && {binary} resume r");
    let output = project.spawn("bash", &["-c", &line]).wait();
    assert_eq!((output.code(), output.stdout.as_str()), (0, "/project\n"), "{output:?}");
}
