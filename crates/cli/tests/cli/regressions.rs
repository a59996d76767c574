//! Fixed bugs that must not come back.

use std::fs;

use crate::harness::{Project, until};

#[test]
fn failed_unpinned_run_uses_the_edited_state() {
    let project = Project::of(&[("wf/START.sh", "exit 1")]);
    assert_eq!(project.raymond("run wf --unpinned --run-id r").code(), 1);
    project.write("wf/START.sh", "echo '<result>mended</result>'");
    project.raymond("resume r").prints("mended\n").mentions(0, &[]);
}

// proves: S24
#[test]
fn always_capped_turn_ends_with_the_budget() {
    let project = Project::of(&[("wf/START.md", "go"), ("r.yaml", "START: { capped: true }")]);
    project
        .raymond("run wf --replies r.yaml --budget 1 --run-id r")
        .mentions(5, &["over_budget: $1.00 of the $1.00 cap is spent"]);
    project
        .raymond("run wf --replies r.yaml --budget none --retries 0 --run-id s")
        .mentions(1, &["the client stopped at a limit of its own"]);
}

#[test]
fn or_resume_rejects_another_workflow() {
    let one = "echo '<result>one</result>'";
    let project = Project::of(&[("a/START.sh", one), ("b/START.sh", one)]);
    project.raymond("run a --run-id r").mentions(0, &[]);
    project
        .raymond("run b --run-id r --or-resume")
        .prints("")
        .mentions(2, &["r is a run of ", "hint: pass that workflow, or choose another --run-id"]);
    project
        .raymond("run a --run-id r --or-resume --input x")
        .prints("")
        .mentions(2, &["r started with a different --input"]);
}

#[test]
fn or_resume_rejects_another_input() {
    let project = Project::of(&[("a/START.sh", "echo '<result>one</result>' # $RAYMOND_VAR_K")]);
    project.raymond("run a --run-id r --input x --var k=v").mentions(0, &[]);
    let check = |flags: &str, expected: &str| {
        let output = project.raymond(&format!("run a --run-id r --or-resume -q {flags}"));
        match expected {
            "" => output.prints("one\n").says(0, ""),
            other => output.prints("").says(
                2,
                &format!(
                    "raymond: r started with a different {other}
                    hint: continue it unchanged with raymond resume r, or choose another --run-id"
                ),
            ),
        };
    };
    check("", "");
    check("--input x", "");
    check("--var k=v", "");
    check("--input x --var k=v", "");
    check("--input y", "--input");
    check("--input x --var k=w", "--var");
    check("--input y --var l=v", "--input and --var");
}

#[test]
fn run_over_budget_needs_a_higher_budget() {
    let replies = "START: { text: '<goto>START</goto>', cost: 0.60 }";
    let project = Project::of(&[("wf/START.md", "go"), ("r.yaml", replies)]);
    project
        .raymond("run wf --replies r.yaml --budget 1 --run-id r -q")
        .mentions(5, &["over_budget: ", "to continue: raymond resume r --budget 3"]);
    let records = project.read(".raymond/runs/r/journal.jsonl");
    project.raymond("resume r --budget 1.10").mentions(
        5,
        &[
            "raymond: $1.20 is spent already, but the cap is $1.10",
            "hint: --budget is the new total: raymond resume r --budget 3\n",
        ],
    );
    assert_eq!(project.read(".raymond/runs/r/journal.jsonl"), records);
}

// proves: A47
#[test]
fn already_spent_cap_is_rejected() {
    let replies = "START: { text: '<goto>WAIT</goto>', cost: 0.50 }";
    let script = "until [ -e go ]; do sleep 0.01; done; echo '<result>done</result>'";
    let states = [("wf/START.md", "go"), ("wf/WAIT.sh", script), ("r.yaml", replies)];
    let project = Project::of(&states);
    let running = project.start("run wf --replies r.yaml --budget 1 --run-id r -q");
    until("it is paid", || project.records("r").iter().any(|r| r.to_string().contains("WAIT")));
    project.raymond("stop r").mentions(0, &["r: stopped"]);
    running.wait();
    let records = project.read(".raymond/runs/r/journal.jsonl");
    for flags in ["", "--plan", "--truncate-to 2"] {
        project.raymond(&format!("resume r --budget 0.3 {flags}")).mentions(
            5,
            &["raymond: $0.50 is spent already, but the cap is $0.30", "--budget is the new total"],
        );
        assert_eq!(project.read(".raymond/runs/r/journal.jsonl"), records, "{flags}");
    }
    fs::write(project.path("go"), "").unwrap();
    project.raymond("resume r --budget 0.6").prints("done\n");
}

#[test]
fn deleted_lock_file_never_allows_two_owners() {
    let script = "echo x >> log; sleep 0.05; echo '<goto>START</goto>'";
    let project = Project::of(&[("wf/START.sh", script)]);
    let mut first = project.start("run wf --run-id r");
    until("it runs", || project.read("log").lines().count() > 2);
    fs::remove_file(project.path(".raymond/runs/r/lock")).unwrap();
    let mut second = project.start("resume r");
    until("one of them gives up", || !(first.is_alive() && second.is_alive()));
    project.raymond("stop r").mentions(0, &[]);
    let mut codes = [first.wait().code(), second.wait().code()];
    codes.sort_unstable();
    assert_eq!(codes, [6, 130]);
    project.raymond("show r").mentions(0, &[]);
}

// proves: S11
#[test]
fn pipe_instead_of_a_file_never_blocks() {
    let start = "rm \"$RAYMOND_SCOPE/B.sh\"; mkfifo \"$RAYMOND_SCOPE/B.sh\"; echo '<goto>B</goto>'";
    let pinned = "mkfifo \".raymond/runs/$RAYMOND_RUN_ID/inbox/x.json\"; \
                  until test -e go; do test -d $PWD || exit 1; sleep 0.01; done; echo '<result>pinned</result>'";
    let project = Project::of(&[("wf/START.sh", start), ("wf/B.sh", pinned)]);
    let running = project.start("run wf --run-id r");
    until("the pipe is found", || running.stderr_contains("ignored x.json"));
    project.write("go", "");
    running.wait().prints("pinned\n").mentions(0, &[]);
    let state = ".raymond/state/r.json";
    fs::remove_file(project.path(state)).unwrap();
    assert_eq!(project.spawn("mkfifo", &[state]).wait().code(), 0);
    project.raymond("resume r").prints("pinned\n");
    assert!(project.read(state).contains("completed"));
}

#[test]
fn unread_messages_cost_no_result() {
    let project = Project::of(&[("wf/START.sh", "echo '<result>kept</result>'")]);
    let words = "exec \"$0\" run wf 2>/dev/full";
    let output = project.spawn("bash", &["-c", words, env!("CARGO_BIN_EXE_raymond")]).wait();
    output.prints("kept\n").mentions(0, &[]);
}

#[test]
fn script_output_is_sanitized() {
    let project =
        Project::of(&[("wf/START.sh", "printf '\\033]0;x\\007\\033[2J evil' >&2; exit 3")]);
    let run = project.raymond("run wf --run-id r");
    let (status, why) = (project.raymond("status r"), project.raymond("why r"));
    for text in [run.stderr, status.stdout, why.stdout] {
        assert!(text.contains("evil"), "{text:?}");
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}

#[test]
fn denied_tool_name_is_sanitized() {
    let replies = "START: { text: <result>x</result>, denied: [\"Bash(evil\\e]0;x\\a now)\"] }\n";
    let project =
        Project::of(&[("wf/START.md", "---\non_denied: fail\n---\ngo"), ("replies.yaml", replies)]);
    let run = project.raymond("run wf --run-id r --replies replies.yaml");
    let (status, why) = (project.raymond("status r"), project.raymond("why r"));
    for text in [run.stderr, status.stdout, why.stdout] {
        assert!(text.contains("raymond resume r --allow 'Bash(evil"), "{text:?}");
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}

#[test]
fn cancel_without_owner_updates_the_state_file() {
    let script = "echo x >> log; test -e quick || sleep 300; echo '<result>done</result>'";
    let project = Project::of(&[("wf/START.sh", script)]);
    let owner = project.start("run wf --run-id r");
    until("it runs", || project.read("log").lines().count() > 0);
    owner.signal(rustix::process::Signal::KILL);
    owner.wait();
    project.raymond("cancel r").mentions(0, &["r: cancelled"]);
    assert_eq!(project.state("r")["status"], "cancelled");
    assert_eq!(project.processes("r"), [0; 0]);
}
