//! `status`, `show`, `why`, `list`, and how a run is named.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Project, Running, until};

fn two_runs() -> Project {
    let project = Project::of(&[
        ("good/START.sh", "echo '<result>fine</result>'"),
        ("bad/START.sh", "echo why >&2; exit 1"),
    ]);
    project.raymond("run good --run-id one-good").prints("fine\n");
    project.raymond("run bad --run-id one-bad").mentions(1, &[]);
    project
}

#[test]
fn run_is_found_by_id_prefix_or_last() {
    let project = two_runs();
    let check = |words: &str, expected: &str| {
        let output = project.raymond(words);
        assert_eq!(output.code(), 0, "{output:?}");
        assert!(output.stdout.starts_with(expected), "{output:?}");
    };
    check("status one-good", "one-good  completed\n");
    check("status one-g", "one-good  completed\n");
    check("status @last", "one-bad  failed\n");
    check("status", "one-bad  failed\n");
    project.raymond("status one").says(
        2,
        "raymond: \"one\" could be 2 runs
        hint: one of one-bad, one-good",
    );
    project.raymond("status one-goood").says(
        2,
        "raymond: there is no run \"one-goood\"
        hint: did you mean one-good?",
    );
    project.raymond("resume zebra").says(
        2,
        "raymond: there is no run \"zebra\"
        hint: see `raymond list`",
    );
}

#[test]
fn project_without_runs_is_reported() {
    let project = Project::of(&[]);
    let none = "the project /project has no runs; raymond run WORKFLOW starts one";
    project.raymond("list").says(0, none).prints("");
    assert_eq!(project.raymond("list --json").json(), json!([]));
    let nothing = "raymond: the project /project has no runs
        hint: `raymond run WORKFLOW` starts one; `raymond list --all` shows the runs of your other projects";
    project.raymond("status").says(2, nothing);
    project.raymond("stop @last").says(2, nothing);
    project.raymond("why x").says(
        2,
        "raymond: there is no run \"x\"
        hint: the project /project has no runs; `raymond list --all` shows the runs of your other projects",
    );
    project.raymond("resume").says(2, nothing);
    assert!(!project.path(".raymond").exists(), "looking creates nothing");
}

// proves: P10
#[test]
fn status_shows_agents_and_next_command() {
    let project = two_runs();
    project.raymond("status one-bad").says(0, "").prints(
        "one-bad  failed
  main failed at START.sh: script: exit status 1: why
  → first fix START.sh or what it needs, then: raymond resume one-bad --with-current
  spent $0.00 of $10.00 · 1 turn · 1 visit
  main             START.sh #1  failed: script: exit status 1: why
",
    );
    let object = project.raymond("status one-bad --json").json();
    let expected = json!({
        "id": "main", "parent": null, "state": "START.sh", "visit": 1, "depth": 0, "stack": [],
        "backend": null, "cwd": "/project", "status": "failed", "failure": "script: exit status 1: why",
        "doing": null, "attributes": {}, "spent_usd": 0.0, "waits_until": null, "waits_for": null, "turn": null,
    });
    let agent = object["agents"][0].as_object().unwrap();
    let known = agent.iter().filter(|(field, _)| *field != "since");
    assert_eq!(Value::Object(known.map(|(k, v)| (k.clone(), v.clone())).collect()), expected);
    assert_eq!((&object["run_id"], &object["status"]), (&json!("one-bad"), &json!("failed")));
    assert_eq!((&object["spent_usd"], &object["budget_usd"]), (&json!(0.0), &json!(10.0)));
}

#[test]
fn json_shows_parents_and_return_stacks() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"END\">WORKER</fork>'"),
        ("wf/WORKER.sh", "echo '<function return=\"REPORT\">CHECK</function>'"),
        ("wf/CHECK.sh", "exit 1"),
        ("wf/REPORT.sh", "echo '<result>fine</result>'"),
        ("wf/END.sh", "echo '<result>done</result>'"),
    ]);
    project.raymond("run wf --run-id r").mentions(1, &[]);
    let mut agents = project.raymond("status r --json").json()["agents"].take();
    let at = agents[0]["stack"][0]["at"].take();
    assert!(at.as_str().is_some_and(|at| at.ends_with('Z')), "{at}");
    let frame = json!({ "state": "REPORT.sh", "by": "WORKER.sh", "visit": 1, "tag": "function", "at": null });
    assert_eq!(agents[0]["stack"], json!([frame]));
    assert_eq!(agents[0]["parent"], "main");
    assert_eq!(agents[0]["state"], "CHECK.sh");
}

// proves: P10
#[test]
fn why_prints_one_sentence_and_next_command() {
    let project = two_runs();
    project
        .raymond("why one-good")
        .prints("completed: main ended with a result\n→ raymond show one-good\n");
    assert_eq!(
        project.raymond("why one-bad --json").json(),
        json!({
            "version": 1, "run_id": "one-bad", "status": "failed", "next_command": "raymond resume one-bad --with-current",
            "why": "main failed at START.sh: script: exit status 1: why", "left_running": [], "denied": [],
            "failed": [{ "id": "main", "state": "START.sh", "failure": "script: exit status 1: why" }],
        })
    );
}

#[test]
fn why_names_every_failed_agent() {
    let forks = "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo '<fork next=\"END\">W</fork>'; done";
    let project = Project::of(&[
        ("flow/START.sh", forks),
        ("flow/W.sh", "case $RAYMOND_AGENT_ID in *_w12) exit 2;; *) exit 1;; esac"),
        ("flow/END.sh", "echo '<result>done</result>'"),
    ]);
    project.raymond("run flow --run-id r -q").mentions(1, &[]);
    project.raymond("why r").prints(
        "failed: main_w1 failed at W.sh: script: exit status 1 \
         (its output: raymond logs r --agent main_w1 --state W)\n\
         12 agents failed:\n  main_w1, main_w2, main_w3, main_w4, main_w5, main_w6, main_w7, \
         main_w8, main_w9, main_w10, main_w11 at W.sh: script: exit status 1\n  \
         main_w12 at W.sh: script: exit status 2\n→ first fix W.sh or what it needs, then: \
         raymond resume r --with-current\n",
    );
    let failed = &project.raymond("why r --json").json()["failed"];
    assert_eq!(failed.as_array().unwrap().len(), 12, "{failed}");
    let last = json!({ "id": "main_w12", "state": "W.sh", "failure": "script: exit status 2" });
    assert_eq!(failed[11], last);
}

#[test]
fn show_prints_the_recorded_events() {
    let project = two_runs();
    project.raymond("show one-good").prints(
        "main             starts at START.sh
main             ended: fine
·                completed
",
    );
    let verbose = project.raymond("show one-good --verbose");
    assert!(verbose.stdout.contains("START.sh: turn 1\n"), "{verbose:?}");
    assert!(verbose.stdout.contains("    | <result>"), "{verbose:?}");
    let object = project.raymond("show one-good --json").json();
    assert_eq!(object["results"], json!({ "main": "fine" }));
    assert_eq!(object["records"].as_array().unwrap().len(), project.records("one-good").len());
}

#[test]
fn list_shows_last_run_first_and_names_unreadable() {
    let project = two_runs();
    project.write(".raymond/runs/broken/journal.jsonl", "not ours\n");
    let output = project.raymond("list");
    output.says(0, "broken: unreadable; see `raymond status broken`");
    let lines: Vec<Vec<&str>> =
        output.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["RUN", "STATUS", "STARTED", "AGE", "COST", "WORKFLOW", "REASON"]);
    assert_eq!((lines[1][0], lines[1][1]), ("one-bad", "failed"));
    assert_eq!((lines[2][0], lines[2][1]), ("one-good", "completed"));
    let output = project.raymond("list --json");
    output.says(0, "broken: unreadable; see `raymond status broken`");
    let ids: Vec<String> = output
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["run_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, ["one-bad", "one-good"]);
}

#[test]
fn list_shows_until_when_a_run_waits() {
    let project = Project::of(&[
        ("flow/START.md", "Work."),
        ("replies.yaml", "START: { fail: { kind: quota, for: 2h } }"),
    ]);
    let words = "run flow --run-id r --replies replies.yaml --no-wait";
    project.raymond(words).mentions(4, &["usage limit"]);
    let list = project.raymond("list").stdout;
    let row: Vec<&str> = list.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..2], ["r", "waiting"]);
    let why = project.raymond("why r").stdout;
    let reason = why.lines().next().unwrap().strip_prefix("waiting: ").unwrap();
    assert!(reason.contains(" is reached until "), "{why}");
    assert!(list.contains(reason), "{list}");
}

#[test]
fn list_is_filtered_by_status_workflow_and_age() {
    let project = two_runs();
    let check = |flags: &str, expected: &[&str]| {
        let output = project.raymond(&format!("list {flags}"));
        let ids: Vec<&str> =
            output.stdout.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(ids, expected, "{flags}: {output:?}");
    };
    check("--status failed", &["one-bad"]);
    check("--status failed --status completed", &["one-bad", "one-good"]);
    check("--workflow good", &["one-good"]);
    check("--since 1h", &["one-bad", "one-good"]);
    check("--since 1h --status failed --workflow good", &[]);
    project.raymond("list --status failed --workflow good").says(0, "no run matches");
    project.raymond("list --status broken").mentions(2, &["over_budget"]);
}

#[test]
fn status_shows_the_item_of_each_worker() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"END\" area=\"parser\">CHECK</fork>'"),
        (
            "wf/CHECK.sh",
            "touch began; until test -e quick; do sleep 0.01; done; echo '<result>w</result>'",
        ),
        ("wf/END.md", "---\ndescription: Collects the findings\n---\nwait"),
        ("r.yaml", "END: { hang: true }"),
    ]);
    let running = project.start("run wf --replies r.yaml --run-id r");
    until("both work", || project.events("r", "turn_started").len() == 3);
    let seen = project.raymond("status r").stdout;
    assert!(seen.contains("  2 running · 0 of 1 workers done\n"), "{seen}");
    assert!(seen.contains("  main_check1      CHECK.sh #1  area=parser  runs for "), "{seen}");
    assert!(seen.contains("(Collects the findings)\n"), "{seen}");
    let object = project.raymond("status r --json").json();
    let worker = &object["agents"][1];
    assert_eq!(worker["attributes"], json!({ "area": "parser" }));
    assert_eq!((&worker["doing"], &worker["parent"]), (&json!("working"), &json!("main")));
    assert_eq!(worker["turn"]["attempt"], 1);
    assert_eq!(object["tally"]["running"], 2);
    assert_eq!(
        object["tally"]["workers"],
        json!({ "done": 0, "failed": 0, "cancelled": 0, "total": 1 })
    );
    assert_eq!(object["reserved_usd"], 5.0);
    assert!(object["owner"]["pid"].is_u64(), "{object}");
    project.raymond("stop r").mentions(0, &[]);
    drop(running);
    assert_eq!(project.raymond("status r --json").json()["owner"], json!(null));
}

#[test]
fn agents_of_a_killed_owner_were_interrupted() {
    let wait = "touch \"$RAYMOND_AGENT_ID\"; until test -e go; do sleep 0.01; done";
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"END\">W</fork><fork next=\"END\">W</fork>'"),
        ("wf/W.sh", wait),
        ("wf/END.sh", wait),
    ]);
    let running = project.start("run wf --run-id r");
    let agents = ["main", "main_w1", "main_w2"];
    until("all work", || agents.iter().all(|agent| project.path(agent).exists()));
    let seen = project.raymond("status r").stdout;
    assert!(seen.contains("  3 running · 0 of 2 workers done\n"), "{seen}");
    running.signal(Signal::KILL);
    running.wait();
    let seen = project.raymond("status r").stdout;
    assert!(seen.starts_with("r  interrupted\n"), "{seen}");
    assert!(seen.contains("  3 interrupted · 0 of 2 workers done\n"), "{seen}");
    assert!(seen.contains("  main_w1          W.sh #1  interrupted\n"), "{seen}");
    assert!(!seen.contains("running\n") && !seen.contains(" runs for "), "{seen}");
    for words in ["status r --json", "list --json"] {
        let object = project.raymond(words).json();
        let object = object.get(0).unwrap_or(&object);
        let tally = &object["tally"];
        assert_eq!((&tally["running"], &tally["interrupted"]), (&json!(0), &json!(3)), "{words}");
        assert_eq!(object["agents"][0]["doing"], "interrupted", "{words}");
    }
    project.raymond("cancel r").mentions(0, &[]);
}

#[test]
fn run_that_never_started_cannot_be_resumed() {
    let project = two_runs();
    project.raymond("run bad --run-id header").mentions(1, &[]);
    let journal = project.read(".raymond/runs/header/journal.jsonl");
    let header = journal.split_inclusive('\n').next().unwrap();
    fs::remove_dir_all(project.path(".raymond/runs/header")).unwrap();
    fs::remove_file(project.path(".raymond/state/header.json")).unwrap();
    project.write(".raymond/runs/header/journal.jsonl", header);
    // Blobs are stored between the header and the first record.
    project.write(".raymond/runs/header/blobs/definition", "x");
    project.write(".raymond/runs/empty/journal.jsonl", "");
    fs::create_dir(project.path(".raymond/runs/nothing")).unwrap();
    let names = ["empty", "header", "nothing"];
    let named = names.map(|name| format!("{name}: never started\n")).concat();
    for words in ["list", "list --json"] {
        let output = project.raymond(words);
        output.says(0, &named);
        assert!(!names.iter().any(|name| output.stdout.contains(name)), "{output:?}");
    }
    for name in names {
        let refusal = format!(
            "raymond: {name} never started: it has no records
            hint: raymond run WORKFLOW --run-id {name}"
        );
        for verb in ["status", "why", "show", "wait", "stop", "cancel", "resume", "resume --plan"] {
            project.raymond(&format!("{verb} {name}")).says(2, &refusal);
        }
        project.raymond(&format!("resume {name} --truncate-to 1")).says(2, &refusal);
    }
    let last = project.raymond("status @last");
    assert!(last.stdout.starts_with("one-bad  failed\n"), "{last:?}");
    project
        .raymond("resume --plan")
        .prints("one-bad: reused 0 turns ($0.00), continuing 0, repeating 1\n  main             START.sh: repeating\n");
    for name in names {
        project.raymond(&format!("run good --run-id {name}")).prints("fine\n");
    }
}

#[test]
fn status_shows_held_agents_and_unpriced_attempts() {
    let project = Project::of(&[
        ("wf/START.md", "one"),
        ("wf/MORE.md", "two"),
        ("wf/WORKER.sh", "until test -e quick; do sleep 0.01; done; echo '<result>w</result>'"),
        ("wf/END.sh", "echo '<result>done</result>'"),
        (
            "r.yaml",
            "START: { text: '<fork next=\"MORE\">WORKER</fork>', cost: unknown }
MORE: { text: '<fork next=\"END\">WORKER</fork>', cost: 0 }
",
        ),
    ]);
    let running = project.start("run wf --replies r.yaml --max-agents 1 --run-id r");
    until("main waits", || !project.events("r", "agent_held").is_empty());
    let seen = project.raymond("status r");
    assert!(seen.stdout.contains("  main             MORE.md #1  waiting: agents\n"), "{seen:?}");
    assert!(seen.stdout.contains("3 visits · 1 attempt is unpriced\n"), "{seen:?}");
    let object = project.raymond("status r --json").json();
    let standings: Vec<_> = object["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| (agent["id"].as_str().unwrap(), agent["status"].as_str().unwrap()))
        .collect();
    assert_eq!(standings, [("main", "waiting: agents"), ("main_worker1", "live")]);
    assert_eq!(object["unpriced_attempts"], 1);
    project.write("quick", "");
    running.wait().prints("done\n").mentions(0, &["; 1 attempt is unpriced"]);
}

#[test]
fn mistyped_command_suggests_similar_commands_and_workflows() {
    let project = Project::of(&[("ruin/START.sh", ""), ("good/START.sh", "")]);
    let check = |words: &str, hint: &str| {
        let word = words.split_whitespace().last().unwrap();
        let missing = format!("raymond: unknown command or workflow `{word}`\n{hint}");
        project.raymond(words).says(2, &missing);
    };
    check("resme", "hint: did you mean `raymond resume`?");
    check("goood", "hint: did you mean `raymond run good`?");
    check("rui", "hint: did you mean `raymond run` or `raymond run ruin`?");
    check("xyzzyplugh", "hint: see `raymond --help`");
    check("help resme", "hint: did you mean `raymond resume`?");
    let missing = "raymond: unknown command or workflow `resme`";
    for words in ["resme r --json", "resme --help", "resme --budgt 3"] {
        let hint = "hint: did you mean `raymond resume`?";
        project.raymond(words).says(2, &format!("{missing}\n{hint}"));
    }
    let missing = "raymond: could not find ./goood\nhint: did you mean ./good?";
    project.raymond("./goood").says(2, missing);
    project.raymond("run ./goood").says(2, missing);
    project.raymond("run good/STRAT.sh").says(
        2,
        "raymond: could not find good/STRAT.sh
        hint: did you mean good/START.sh?",
    );
}

#[test]
fn next_command_after_an_edit_works() {
    let project = Project::of(&[("wf/START.sh", "exit 1")]);
    assert_eq!(project.raymond("run wf --run-id r").code(), 1);
    let next_command =
        || project.raymond("why r --json").json()["next_command"].as_str().unwrap().to_owned();
    assert_eq!(next_command(), "raymond resume r --with-current");
    project.write("wf/START.sh", "echo '<result>mended</result>'");
    for command in ["why r", "status r"] {
        let said = project.raymond(command).stdout;
        assert!(said.contains("→ raymond resume r --with-current\n"), "{said}");
    }
    let next_command = next_command();
    project
        .raymond(next_command.strip_prefix("raymond ").unwrap())
        .prints("mended\n")
        .mentions(0, &[]);
}

#[test]
fn next_command_with_deleted_states_works() {
    let check = |remove: &str| {
        let script = "test -f good && echo '<result>done</result>'";
        let project = Project::of(&[("wf/START.sh", "echo '<goto>B</goto>'"), ("wf/B.sh", script)]);
        assert_eq!(project.raymond("run wf --run-id r").code(), 1);
        project.write("good", "");
        let gone = project.path(remove);
        if gone.is_dir() {
            fs::remove_dir_all(gone).unwrap();
        } else {
            fs::remove_file(gone).unwrap();
        }
        let next_command = project.raymond("why r --json").json()["next_command"].clone();
        assert_eq!(next_command, "raymond resume r --pinned");
        project.raymond("resume r --with-current").mentions(2, &["raymond resume r --pinned"]);
        project.raymond("resume r --pinned").prints("done\n");
    };
    check("wf/B.sh");
    check("wf");
}

#[test]
fn next_command_for_visit_limit_names_the_edit() {
    let prompt = |visits: u32| format!("---\nmax_visits: {visits}\n---\ngo on");
    let project = Project::of(&[("r.yaml", "START: [<goto>START</goto>, <result>x</result>]")]);
    project.write("wf/START.md", prompt(1));
    assert_eq!(project.raymond("run wf --run-id r --replies r.yaml").code(), 1);
    let why = project.raymond("why r").stdout;
    assert!(why.contains("(first raise `max_visits` in START.md, or add `then`)"), "{why}");
    project.write("wf/START.md", prompt(2));
    // The edit is made, so nothing asks for it again.
    let why = project.raymond("why r").stdout;
    assert!(!why.contains("first raise"), "{why}");
    assert!(why.ends_with("→ raymond resume r --with-current\n"), "{why}");
    project.raymond("resume r --with-current").prints("x\n").mentions(0, &[]);
}

#[test]
fn reply_without_tag_is_to_be_corrected() {
    let project = Project::of(&[("wf/START.md", "go on"), ("r.yaml", "START: no tag")]);
    assert_eq!(project.raymond("run wf --run-id r --replies r.yaml").code(), 1);
    let why = project.raymond("why r").stdout;
    let advice =
        "\n→ first correct the reply for START.md in the replies, then: raymond resume r\n";
    assert!(why.ends_with(advice), "{why}");
    project.write("r.yaml", "START: <result>x</result>");
    project.raymond("resume r").prints("x\n");
}

#[test]
fn interrupted_script_without_repetition_needs_a_check() {
    let project = Project::of(&[("wf/START.sh", "touch began; sleep 600")]);
    let owner = project.start("run wf --run-id r --interrupted-scripts fail");
    until("the script runs", || project.path("began").exists());
    owner.signal(Signal::KILL);
    owner.wait();
    assert_eq!(project.raymond("resume r").code(), 1);
    let why = project.raymond("why r").stdout;
    assert!(why.contains("(check first what it did; a resume runs START.sh again)"), "{why}");
}

#[test]
fn next_command_of_cancelled_run_repeats_its_arguments() {
    let project = Project::of(&[("wf/START.md", "{{input}}"), ("r.yaml", "START: { hang: true }")]);
    let start = ["run", "wf", "--run-id", "r", "--replies", "r.yaml", "--input", "it's new", "-d"];
    assert_eq!(project.spawn(env!("CARGO_BIN_EXE_raymond"), &start).wait().code(), 0);
    assert_eq!(project.raymond("cancel r").code(), 0);
    let next_command =
        project.raymond("why r --json").json()["next_command"].as_str().unwrap().to_owned();
    let expected = r"raymond run /project/wf --replies /project/r.yaml --input 'it'\''s new'";
    assert_eq!(next_command, expected);
}

// proves: P10
#[test]
fn next_command_completes_a_run_in_every_status() {
    let check = |status: &str, bring: fn(&Project) -> Option<Running>| {
        let project = Project::of(&[
            ("wf/START.sh", "echo begun >> log; until [ -s go ]; do sleep 0.01; done; cat go"),
            ("hasty/START.sh", "cat go"),
            ("asks/START.md", "Work."),
        ]);
        let _running = bring(&project);
        let why = project.raymond("why r --json").json();
        assert_eq!(why["status"], status, "{why}");
        let next_command = why["next_command"].as_str().unwrap();
        project.write("go", "<result>done</result>");
        let words = next_command.strip_prefix("raymond ").unwrap();
        let output = project.raymond(&words.replace("/project", project.root().to_str().unwrap()));
        assert_eq!(output.code(), 0, "{next_command}: {output:?}");
        let after = project.raymond("status @last --json").json();
        assert_eq!(after["status"], "completed", "{next_command}: {after}");
    };
    check("running", |project| Some(begun(project)));
    check("stopped", |project| {
        let running = begun(project);
        assert_eq!(project.raymond("stop r").code(), 0);
        Some(running)
    });
    check("cancelled", |project| {
        let running = begun(project);
        assert_eq!(project.raymond("cancel r").code(), 0);
        Some(running)
    });
    check("interrupted", |project| {
        let running = begun(project);
        running.signal(Signal::KILL);
        running.wait();
        None
    });
    check("failed", |project| {
        assert_eq!(project.raymond("run hasty --run-id r").code(), 1);
        None
    });
    check("waiting", |project| asks(project, "{ fail: auth }", ""));
    check("over_budget", |project| asks(project, "{ capped: true, cost: 2 }", "--budget 1"));
    check("completed", |project| asks(project, "<result>done</result>", ""));
}

/// A run whose script waits for the file `go`.
fn begun(project: &Project) -> Running {
    let running = project.start("run wf --run-id r");
    until("the script runs", || project.read("log") == "begun\n");
    running
}

/// A run whose first reply is this, and whose second one is its result.
fn asks(project: &Project, first: &str, flags: &str) -> Option<Running> {
    project.write("r.yaml", format!("START: {{ attempts: [{first}, <result>done</result>] }}"));
    project.raymond(&format!("run asks --run-id r --replies r.yaml {flags}"));
    None
}
