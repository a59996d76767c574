//! `run`: its flags, its streams, its exit codes and the state file.

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Project, Running, until};

/// A prompt, a script and a prompt.
const FLOW: [(&str, &str); 4] = [
    ("wf/START.md", "Look at {{input}}."),
    ("wf/WORK.sh", "echo '<goto>DONE</goto>'"),
    ("wf/DONE.md", "Say so."),
    (
        "replies.yaml",
        "START: { text: '<goto>WORK</goto>', cost: 0.02 }\nDONE: '<result>all good</result>'\n",
    ),
];

#[test]
fn log_on_stderr_result_on_stdout() {
    let project = Project::of(&FLOW);
    let output = project.raymond("run wf --replies replies.yaml --run-id r --input it");
    output.prints("all good\n").says(
        0,
        "r: cap $10.00 · 4 at a time · scripted · 3 states pinned
        main             starts at START.md
        main             START.md → WORK.sh (goto) · $0.02
        main             WORK.sh → DONE.md (goto)
        main             ended
        completed: main ended with a result
        path     START → WORK → DONE
        look     raymond show r · raymond logs r
        spent $0.02 of $10.00 (rehearsal); START took 100 %",
    );
}

#[test]
fn word_run_is_optional() {
    let project = Project::of(&FLOW);
    for words in ["wf", "wf/START.md", "./wf"] {
        let output = project.raymond(&format!("{words} --replies replies.yaml --input x --quiet"));
        output.says(0, "").prints("all good\n");
    }
}

#[test]
fn verbose_prints_more_and_quiet_only_failures() {
    let project = Project::of(&FLOW);
    let verbose = project.raymond("run wf --replies replies.yaml --verbose");
    verbose.mentions(0, &["main             WORK.sh: turn 1\n"]);
    project.write("wf/WORK.sh", "echo oops >&2; exit 3");
    project
        .raymond("run wf --replies replies.yaml --input x --quiet")
        .prints("")
        .says(1, "main             WORK.sh: failed: script: exit status 3: oops");
}

#[test]
fn json_is_one_value_on_stdout() {
    let project = Project::of(&FLOW);
    let output = project.raymond("run wf --replies replies.yaml --run-id r --json");
    let mut object = output.json();
    for time in ["started_at", "updated_at"] {
        assert!(object[time].as_str().unwrap().ends_with('Z'));
        object[time] = json!("");
    }
    assert_eq!(
        object,
        json!({
            "version": 1, "run_id": "r", "workflow": "/project/wf", "status": "completed",
            "why": "main ended with a result", "next_command": "raymond show r", "left_running": [],
            "spent_usd": 0.02, "budget_usd": 10.0, "started_at": "", "updated_at": "",
            "visits": 3, "turns": 3, "paid_turns": 2, "unpriced_attempts": 0, "estimated_usd": 0.0, "denied": [], "agents": [], "ended": 1, "questions": [],
            "rehearsed_usd": 0.02, "reserved_usd": 0.0, "owner": null,
            "tally": { "running": 0, "queued": 0, "waiting": 0, "interrupted": 0, "stopped": 0, "workers": { "done": 0, "failed": 0, "cancelled": 0, "total": 0 } },
            "backends": [{ "backend": "scripted", "turns": 2, "spent_usd": 0.02 }],
            "results": { "main": "all good" },
        })
    );
    project.write("wf/WORK.sh", "exit 1");
    let failed = project.raymond("run wf --replies replies.yaml --json");
    assert_eq!((failed.code(), &failed.json()["status"]), (1, &json!("failed")));
}

#[test]
fn events_are_json_lines_on_stdout() {
    let project = Project::of(&FLOW);
    let output = project.raymond("run wf --replies replies.yaml --events --run-id r");
    let events: Vec<serde_json::Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event"]["run_started"]["run"], "r");
    assert_eq!(events.last().unwrap()["event"], json!({ "run_ended": { "ending": "completed" } }));
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted());
    project.raymond("run wf --replies replies.yaml --events --json").mentions(2, &["--json"]);
}

#[test]
fn result_is_printed_exactly_with_final_newline() {
    let check = |payload: &str, expected: &str| {
        let script = format!("printf '<result>{payload}</result>'");
        let project = Project::of(&[("wf/START.sh", &script)]);
        project.raymond("run wf").prints(expected);
    };
    check("", "\n");
    check("plain", "plain\n");
    check("line\\n", "line\n");
    check("  two\\n\\n", "  two\n\n");
}

#[test]
fn input_and_variables_reach_the_first_state() {
    let script = "echo \"<result>$RAYMOND_INPUT $RAYMOND_VAR_WHO</result>\"";
    let project = Project::of(&[("wf/START.sh", script)]);
    project.raymond("run wf --input seven --var who=all").prints("seven all\n");
    let check = |words: &str, message: &str| {
        project.raymond(&format!("run wf {words}")).mentions(2, &[message]);
    };
    check("--var who", "--var \"who\" is not of the form K=V");
    check("--var 1x=2", "\"1x\" is not the name of a variable");
    check("--var a=1 --var a=2", "--var a is given twice");
    check("--var a-b=1 --var a_b=2", "RAYMOND_VAR_A_B");
}

#[test]
fn taken_run_id_is_rejected_or_continued() {
    let project = Project::of(&FLOW);
    project.raymond("run wf --replies replies.yaml --input x --run-id r --quiet").says(0, "");
    let before = project.records("r");
    project.raymond("run wf --replies replies.yaml --run-id r").says(
        2,
        "raymond: run r already exists
        hint: choose another --run-id, or see it: raymond show r",
    );
    let again = "run wf --replies replies.yaml --run-id r --or-resume";
    project.raymond(again).prints("all good\n").says(0, "r: already completed; nothing was run");
    assert_eq!(project.records("r"), before);
    project.raymond("run wf --replies replies.yaml --run-id new --or-resume").prints("all good\n");
    project.raymond("run wf --or-resume").mentions(2, &["--run-id <ID>"]);
    project
        .raymond("run wf --run-id a/b")
        .says(2, "raymond: --run-id: a run id has letters, digits, `-` and `_` only, not '/'");
}

#[test]
fn run_that_never_started_can_be_started() {
    let project = Project::of(&FLOW);
    project.write(".raymond/runs/r/journal.jsonl", "");
    project.raymond("run wf --replies replies.yaml --run-id r --or-resume").prints("all good\n");
}

#[test]
fn exit_codes_show_how_a_run_ended() {
    let check = |reply: &str, flags: &str, code: i32| {
        let replies = format!("START: {reply}\n");
        let project = Project::of(&[("wf/START.md", "go"), ("replies.yaml", &replies)]);
        let output = project.raymond(&format!("run wf --replies replies.yaml {flags}"));
        assert_eq!(output.code(), code, "{output:?}");
    };
    check("'<result>x</result>'", "", 0);
    check("{ fail: task }", "", 1);
    check("'no tag'", "--reminders 1", 1);
    check("{ fail: auth }", "", 3);
    check("{ fail: quota }", "--no-wait", 4);
    check("{ text: '<goto>START</goto>', cost: 0.6 }", "--budget 1", 5);
    check("'<result>x</result>'", "--backend claude", 2);
}

#[test]
fn worst_of_several_ends_decides_the_exit_code() {
    let check = |main: &str, worker: &str, flags: &str, code: i32| {
        let fork = "<fork next=\"MAIN\">WORKER</fork>";
        let replies = format!("START: '{fork}'\nMAIN: {main}\nWORKER: {worker}\n");
        let project = Project::of(&[
            ("wf/START.md", "go"),
            ("wf/MAIN.md", "go"),
            ("wf/WORKER.md", "go"),
            ("replies.yaml", &replies),
        ]);
        let output = project.raymond(&format!("run wf --replies replies.yaml {flags}"));
        assert_eq!(output.code(), code, "{main} {worker}: {output:?}");
    };
    let (done, fails) = ("<result>x</result>", "{ fail: task }");
    let (login, limit) = ("{ fail: auth }", "{ fail: quota }");
    let dear = "{ text: '<goto>START</goto>', cost: 1 }";
    check(done, fails, "", 1);
    check(fails, limit, "--no-wait", 4);
    check(limit, fails, "--no-wait", 4);
    check(fails, login, "", 3);
    check(limit, login, "--no-wait", 3);
    check(login, limit, "--no-wait", 3);
    check(fails, dear, "--budget 1", 5);
    check(login, dear, "--budget 1", 5);
    check(limit, dear, "--budget 1", 5);
}

#[test]
fn prompt_without_a_backend_is_rejected_early() {
    let project = Project::of(&FLOW);
    project.raymond("run wf").says(
        7,
        "raymond: could not use claude for DONE.md: could not find the client no-such-client on PATH
        hint: install Claude Code (npm install -g @anthropic-ai/claude-code), or set `claude` in the configuration to its path; or play replies from a file with --replies FILE",
    );
    assert!(!project.path(".raymond").exists());
}

#[test]
fn failed_sibling_is_named_and_stops_nothing() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"END\">BAD</fork><fork next=\"END\">BAD</fork>'"),
        ("wf/BAD.sh", "exit 1"),
        ("wf/END.sh", "echo '<result>mine</result>'"),
    ]);
    project.raymond("run wf").prints("").mentions(
        1,
        &[
            "main_bad1        BAD.sh: failed: script: exit status 1\n",
            "main_bad2        BAD.sh: failed: script: exit status 1\n",
            "failed: 2 agents failed: main_bad1 at BAD.sh, main_bad2 at BAD.sh\n",
            "  results  main  mine\n",
        ],
    );
}

#[test]
fn state_file_has_the_documented_fields() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"CALL\" item=\"7\">WORKER</fork>'"),
        ("wf/WORKER.sh", "echo '<result>w</result>'"),
        ("wf/CALL.sh", "echo '<call return=\"BACK\">SUB</call>'"),
        ("wf/SUB.sh", "exit 1"),
        ("wf/BACK.sh", "echo '<result>x</result>' # $RAYMOND_VAR_K"),
    ]);
    project.raymond("run wf --run-id r --var k=v --budget 5");
    let mut state = project.state("r");
    for time in ["started_at", "updated_at"] {
        assert!(state[time].as_str().unwrap().ends_with('Z'));
        state[time] = json!("");
    }
    let here = project.root();
    let here = here.to_str().unwrap();
    assert_eq!(
        state,
        json!({
            "workflow_id": "r", "scope": format!("{here}/wf"), "status": "failed",
            "started_at": "", "updated_at": "", "budget_usd": 5.0, "total_cost_usd": 0.0,
            "iteration_count": 4, "metadata": { "k": "v" }, "fork_counters": { "main": 1 },
            "agents": [{
                "id": "main", "current_state": "SUB.sh", "session_id": null,
                "stack": [{ "session": null, "state": "BACK.sh" }], "cwd": here,
                "fork_attributes": {}, "status": "failed",
                "failure": "script: exit status 1",
                "visits": { "START.sh": 1, "CALL.sh": 1, "SUB.sh": 1 },
            }],
            "results": { "main_worker1": "w" },
        })
    );
}

#[test]
fn unpinned_run_reads_states_at_every_visit() {
    let project = Project::of(&[
        (
            "wf/START.sh",
            "echo 'echo \"<result>edited</result>\"' > wf/NEXT.sh; echo '<goto>NEXT</goto>'",
        ),
        ("wf/NEXT.sh", "echo '<result>pinned</result>'"),
    ]);
    project
        .raymond("run wf --unpinned")
        .prints("edited\n")
        .mentions(0, &["2 states read at every visit", "uses the edited workflow from here on"]);
    project.write("wf/NEXT.sh", "echo '<result>pinned</result>'");
    project.raymond("run wf").prints("pinned\n");
}

#[test]
fn adopted_states_are_warned_about() {
    let prompt = "---\nthen: START\n---\nGo.";
    let project = Project::of(&[
        ("wf/START.sh", "cp new.md wf/NEXT.md; echo '<goto>NEXT</goto>'"),
        ("wf/NEXT.md", "Go."),
        ("new.md", prompt),
        ("r.yaml", "NEXT: [<result>x</result>]"),
        ("none.yaml", "NEXT: { fail: { kind: task, message: no } }"),
    ]);
    let warning = "NEXT.md:2:1: warning: `then` has no effect";
    project.raymond("run wf --unpinned --replies r.yaml").prints("x\n").mentions(0, &[warning]);
    project.write("wf/NEXT.md", "Go.");
    assert_eq!(project.raymond("run wf --run-id r --replies none.yaml").code(), 1);
    project.raymond("resume r --with-current --plan").mentions(0, &[warning]);
    project
        .raymond("resume r --with-current --replies r.yaml")
        .prints("x\n")
        .mentions(0, &[&format!("wf/{warning}")]);
}

#[test]
fn unpinned_run_continues_with_last_valid_states() {
    let project = Project::of(&[
        ("wf/START.sh", "rm wf/START.sh; echo '<goto>NEXT</goto>'"),
        ("wf/NEXT.sh", "echo '<result>still here</result>'"),
    ]);
    project.raymond("run wf --unpinned").prints("still here\n").mentions(
        0,
        &["raymond: continuing with the earlier states: error: there is no entry state"],
    );
}

#[test]
fn every_command_has_help_with_an_example() {
    let project = Project::of(&[]);
    for command in [
        "run", "resume", "status", "show", "why", "wait", "attach", "stop", "cancel", "list",
        "cost", "config", "demo",
    ] {
        let output = project.raymond(&format!("{command} --help"));
        assert_eq!(output.code(), 0);
        assert!(output.stdout.contains(&format!("Example:\n  raymond {command}")), "{output:?}");
    }
    for command in ["run", "resume"] {
        let help = project.raymond(&format!("{command} --help")).stdout;
        assert!(help.contains("at most one model request for each running turn"), "{help}");
    }
    project.raymond("").mentions(2, &["Usage: raymond <COMMAND>"]);
    assert!(project.raymond("--version").stdout.starts_with("raymond "));
}

#[test]
fn failed_result_fails_the_run() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<call return=\"DECIDE\">TRY</call>'"),
        ("wf/TRY.sh", "echo '<result status=\"failed\">no way</result>'"),
        (
            "wf/DECIDE.sh",
            "echo \"<result status='$RAYMOND_RESULT_STATUS'>after $RAYMOND_RESULT</result>\"",
        ),
    ]);
    project
        .raymond("run wf --run-id r")
        .prints("")
        .mentions(1, &["DECIDE.sh: failed: after no way\n", "failed: main failed at DECIDE.sh\n"]);
    let why = project.raymond("why r").stdout;
    let hint = "main failed at DECIDE.sh: after no way (fix the reason first; a resume only \
                repeats DECIDE.sh)\n→ raymond run /project/wf\n";
    assert!(why.ends_with(hint), "{why}");
    let status = project.raymond("run wf --json");
    assert_eq!(status.code(), 1);
    let object = status.json();
    assert_eq!(
        (&object["status"], &object["results"]["main"]),
        (&json!("failed"), &json!("after no way"))
    );
    // The script runs again, and decides again.
    project.raymond("resume r").prints("").mentions(1, &["failed: after no way"]);
}

#[test]
fn only_a_completed_run_prints_its_result() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"END\">W</fork>'"),
        ("wf/W.sh", "until test -s go; do sleep 0.01; done; . ./go"),
        ("wf/END.sh", "echo '<result>half</result>'"),
    ]);
    let is_half_done = |run: &str| project.events(run, "agent_ended").len() == 1;
    let check_silent = |run: &str, code: i32, commands: &[&str]| {
        for command in commands {
            project.raymond(&format!("{command} {run}")).prints("").mentions(code, &[]);
        }
        let object = project.raymond(&format!("wait {run} --json")).json();
        assert_eq!(object["results"]["main"], "half", "{run}");
    };
    let start = |run: &str| {
        let running = project.start(&format!("run wf --run-id {run}"));
        until("main has ended", || is_half_done(run));
        running
    };
    let stopped = start("stopped");
    project.raymond("stop stopped").mentions(0, &[]);
    stopped.wait().prints("").mentions(130, &["stopped", "  results  main  half\n"]);
    check_silent("stopped", 130, &["wait", "attach"]);
    let killed = start("killed");
    killed.signal(Signal::KILL);
    killed.wait();
    check_silent("killed", 130, &["wait", "attach"]);
    let cancelled = start("cancelled");
    project.raymond("cancel cancelled").mentions(0, &[]);
    cancelled.wait().prints("").mentions(8, &["cancelled"]);
    check_silent("cancelled", 8, &["wait", "attach", "resume"]);
    project.write("go", "exit 1");
    let failed = project.raymond("run wf --run-id failed");
    failed.prints("").mentions(1, &["failed", "  results  main  half\n"]);
    check_silent("failed", 1, &["wait", "attach", "resume --quiet"]);
    project.write("go", "echo '<result>w</result>'");
    for run in ["stopped", "killed", "failed"] {
        project.raymond(&format!("resume {run}")).prints("half\n").mentions(0, &["completed"]);
        project.raymond(&format!("wait {run}")).prints("half\n");
        project.raymond(&format!("attach {run}")).prints("half\n");
    }
}

#[test]
fn scripts_find_raymond_without_path() {
    let script = "case $PATH in /usr/bin:/bin:*) raymond emit result \"$(type -p bash)\" ;; esac";
    let project = Project::of(&[("wf/START.sh", script)]).with("PATH", "/usr/bin:/bin");
    project.raymond("run wf --quiet").prints("/usr/bin/bash\n");
}

#[test]
fn only_one_of_several_background_starts_succeeds() {
    let project = Project::of(&[("wf/START.sh", "echo \"<result>$RAYMOND_INPUT</result>\"")]);
    let starts: Vec<_> =
        (1..=3).map(|n| project.start(&format!("run wf --run-id r --input {n} -d"))).collect();
    let ended: Vec<_> = starts.into_iter().map(Running::wait).collect();
    let started: Vec<usize> = (0..3).filter(|n| ended[*n].code() == 0).collect();
    assert_eq!(started.len(), 1, "{ended:?}");
    project.raymond("wait r").prints(&format!("{}\n", started[0] + 1));
}
