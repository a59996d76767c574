//! `ralph`: a repeated prompt, and the ends of its loop.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Output, Project, Running, until};

/// A project with a prompt and its replies.
fn prompted(replies: &str) -> Project {
    Project::of(&[("PROMPT.md", "Mend it.\n{{input}}\n"), ("r.yaml", replies)])
}

/// Starts the loop as the run `r`.
fn start(project: &Project, flags: &str, command: Option<&str>) -> Running {
    let words = format!("ralph PROMPT.md --replies r.yaml --run-id r {flags}");
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.extend(command.map(|_| "--until"));
    words.extend(command);
    project.spawn(env!("CARGO_BIN_EXE_raymond"), &words)
}

fn ralph(project: &Project, flags: &str, command: Option<&str>) -> Output {
    start(project, flags, command).wait()
}

/// The visits of a run, in order: the state, and how often it had been entered.
fn visits(project: &Project) -> Vec<String> {
    let entered = project.events("r", "visit_entered");
    let shown = |event: &Value| {
        format!("{} {}", event["location"]["state"].as_str().unwrap(), event["count"])
    };
    entered.iter().map(shown).collect()
}

#[test]
fn prompt_is_repeated_until_it_has_a_result() {
    let project = prompted(
        "PROMPT:
  - not yet
  - { text: 'a <goto>NOWHERE</goto> is text', cost: 0.10 }
  - I will write <result> when it is done
  - { text: <result>fixed</result>, cost: 0.05 }
",
    );
    ralph(&project, "", None).prints("fixed\n").says(
        0,
        "r: cap $10.00 · scripted · PROMPT.md up to 50 times
        main             starts at PROMPT.md
        main             PROMPT.md → PROMPT.md #2 (reset)
        main             PROMPT.md → PROMPT.md #3 (reset) · $0.10
        main             ignored malformed <result>: it has no `</result>`
        main             PROMPT.md → PROMPT.md #4 (reset)
        main             ended · $0.05
        completed: main ended with a result
        path     PROMPT ×4
        look     raymond show r · raymond logs r
        spent $0.15 of $10.00 (rehearsal); PROMPT took 100 %",
    );
    assert_eq!(project.events("r", "reminded"), [json!(null); 0]);
    let plans = project.events("r", "turn_started");
    assert!(plans.iter().all(|started| started["plan"]["fresh"].is_string()), "{plans:?}");
    let seen = project.raymond("status r --json").json();
    assert_eq!(seen["ralph"], json!({ "max_iterations": 50, "until": null, "exhausted": false }));
}

#[test]
fn loop_without_success_fails() {
    let project = prompted("PROMPT:\n  - not yet\n  - not yet\n  - <result>fixed</result>\n");
    ralph(&project, "--max-iterations 2", None).prints("").says(
        1,
        "r: cap $10.00 · scripted · PROMPT.md up to 2 times
        main             starts at PROMPT.md
        main             PROMPT.md → PROMPT.md #2 (reset)
        main             PROMPT.md: failed: 2 iterations without a result
        failed: main failed at PROMPT.md
        path     PROMPT ×2
        look     raymond why r · raymond show r · raymond logs r
        spent $0.00 of $10.00; to continue: raymond resume r --max-iterations 4",
    );
    let why = "failed: main failed at PROMPT.md: 2 iterations without a result";
    project.raymond("why r").prints(&format!("{why}\n→ raymond resume r --max-iterations 4\n"));
    let status = project.raymond("status r --json").json();
    assert_eq!(status["ralph"], json!({ "max_iterations": 2, "until": null, "exhausted": true }));
    // Nothing is paid again, with or without a higher limit.
    project.raymond("resume r").prints("").mentions(1, &["2 iterations without a result"]);
    let resumed = project.raymond("resume r --max-iterations 4 --json");
    resumed.mentions(0, &["completed: main ended with a result\n"]);
    assert_eq!(resumed.json()["results"], json!({ "main": "fixed" }));
    assert_eq!(visits(&project), ["PROMPT.md 1", "PROMPT.md 2", "PROMPT.md 3"]);
}

#[test]
fn loop_ends_as_soon_as_the_command_passes() {
    let project = prompted("PROMPT: I did a part of it.\n");
    let command = "echo x >> log; test $(wc -l < log) = 3";
    ralph(&project, "", Some(command)).prints("\n").mentions(0, &["path     (PROMPT → UNTIL) ×3"]);
    let project = prompted("PROMPT: x\n");
    ralph(&project, "", Some("if")).prints("").mentions(
        2,
        &["raymond: bash cannot read the command of --until: exit status 2: ", "syntax error"],
    );
    ralph(&project, "--reminders 2", None).says(
        2,
        "raymond: --reminders has no effect on a loop: \
         each iteration is one agent in a fresh conversation",
    );
    ralph(&project, "", Some("no-such-program --all")).prints("").says(
        2,
        "raymond: could not find the program `no-such-program` of --until
        hint: install it, or correct the command: the loop could never end with success",
    );
    assert!(!project.path(".raymond").exists());
}

#[test]
fn agent_can_give_up_the_loop() {
    let project = prompted("PROMPT: <result status=\"failed\">no way</result>\n");
    ralph(&project, "", Some("true"))
        .prints("")
        .mentions(1, &["PROMPT.md: failed: no way\n", "failed: main failed at PROMPT.md\n"]);
}

#[test]
fn result_counts_once_the_command_passes() {
    let project = prompted(
        "PROMPT:
  - { text: <result>one</result>, expect: \"Mend it.\\n\\n\" }
  - { text: <result>two</result>, expect: ['` did not pass: exit status 3', 'saw one', 'on stderr'] }
  - { text: <result>three</result>, expect: 'saw two' }
",
    );
    let command = "echo \"saw $(cat $RAYMOND_RESULT_FILE)\"; echo on stderr >&2; echo $PWD >> log
        test $RAYMOND_RESULT = three || exit 3";
    let first = "r: cap $10.00 · scripted · PROMPT.md up to 50 times, until \
                 `echo \"saw $(cat $RAYMOND_RESULT_FILE)\"; echo on stderr >&2; …` passes";
    ralph(&project, "", Some(command)).prints("three\n").says(
        0,
        &format!(
            "{first}
            main             starts at PROMPT.md
            main             PROMPT.md → UNTIL.sh (result)
            main             the result of iteration 1 does not count: exit status 3: on stderr
            main             UNTIL.sh → PROMPT.md #2 (reset)
            main             PROMPT.md → UNTIL.sh #2 (result)
            main             the result of iteration 2 does not count: exit status 3: on stderr
            main             UNTIL.sh → PROMPT.md #3 (reset)
            main             PROMPT.md → UNTIL.sh #3 (result)
            main             ended
            completed: main ended with a result
            path     (PROMPT → UNTIL) ×3
            look     raymond show r · raymond logs r
            spent $0.00 of $10.00"
        ),
    );
    let here = project.root().display().to_string();
    assert_eq!(project.read("log"), format!("{here}\n").repeat(3));
}

#[test]
fn loop_ends_without_a_passing_result() {
    let project = prompted("PROMPT: <result>x</result>\n");
    ralph(&project, "--max-iterations 2", Some("exit 9"))
        .prints("")
        .mentions(1, &["UNTIL.sh: failed: 2 iterations, and `exit 9` never passed\n"]);
}

#[test]
fn prompt_is_read_again_unless_pinned() {
    let edit = "echo 'Mend that.' > PROMPT.md; test $RAYMOND_RESULT = two";
    let check = |flags: &str, expected: &str| {
        let replies = format!(
            "PROMPT:\n  - <result>one</result>\n  - {{ text: <result>two</result>, expect: {expected} }}\n"
        );
        let project = prompted(&replies);
        ralph(&project, flags, Some(edit)).prints("two\n").mentions(0, &[]);
        project
    };
    let unpinned = check("", "Mend that.");
    assert_eq!(unpinned.events("r", "definition_adopted").len(), 1);
    let pinned = check("--pinned", "Mend it.");
    assert_eq!(pinned.events("r", "definition_adopted"), [json!(null); 0]);
    // The prompts as they were sent, also after the next edit.
    unpinned.write("PROMPT.md", "Later.");
    for (project, second) in [(unpinned, "Mend that."), (pinned, "Mend it.")] {
        let logs = project.raymond("logs r --prompts").stdout;
        let sent: Vec<&str> = logs.lines().filter(|line| line.contains('<')).collect();
        let sent: Vec<&str> = sent.iter().filter_map(|line| line.split("< ").nth(1)).collect();
        // The last line is the report about the command.
        assert_eq!(sent[..2], ["Mend it.", second], "{logs}");
    }
    // If the prompt cannot be read, Raymond prints a note and keeps the earlier one.
    let project = prompted("PROMPT:\n  - <result>one</result>\n  - <result>two</result>\n");
    let remove = "rm -f PROMPT.md; test $RAYMOND_RESULT = two";
    ralph(&project, "", Some(remove)).prints("two\n").mentions(
        0,
        &["raymond: continuing with the earlier states: could not find /project/PROMPT.md\n"],
    );
}

#[test]
fn failed_iteration_counts_and_the_loop_continues() {
    let project = prompted(
        "PROMPT:
  - { fail: task }
  - { fail: transient }
  - <result>fixed</result>
",
    );
    ralph(&project, "--retries 0", None).prints("fixed\n").mentions(
        0,
        &[
            "main             iteration 1 failed: the client reports failure: scripted task failure\n",
            "main             iteration 2 failed: transient failure: scripted transient failure\n",
            "completed: main ended with a result\n",
        ],
    );
    assert_eq!(visits(&project), ["PROMPT.md 1", "PROMPT.md 2", "PROMPT.md 3"]);
}

#[test]
fn missing_login_waits_and_uses_no_iteration() {
    let project = prompted(
        "PROMPT: { attempts: [{ fail: { kind: auth, message: log in first } }, <result>in</result>] }\n",
    );
    ralph(&project, "", None).mentions(3, &["needs a person to log in: log in first\n"]);
    project.raymond("resume r").prints("in\n").mentions(0, &[]);
    assert_eq!(visits(&project), ["PROMPT.md 1"]);
}

#[test]
fn loop_over_budget_waits_for_more() {
    let project = prompted(
        "PROMPT:\n  - { text: not yet, cost: 1 }\n  - { text: <result>x</result>, cost: 1 }\n",
    );
    ralph(&project, "--budget 1", None).prints("").mentions(
        5,
        &["over_budget: $1.00 of the $1.00 cap is spent; 1 turn waits for a higher budget\n"],
    );
    project.raymond("resume r --budget 3").prints("x\n").mentions(0, &["spent $2.00 of $3.00"]);
    assert_eq!(project.events("r", "turn_started").len(), 2);
}

#[test]
fn killed_loop_continues_where_it_was() {
    let project = prompted(
        "PROMPT:
  - { text: not yet, cost: 0.10 }
  - { attempts: [{ hang: true }, { text: <result>x</result>, cost: 0.10 }] }
  - { text: <result>y</result>, cost: 0.10 }
",
    );
    let command = "test -n \"$RAYMOND_RESULT\" || exit 1; \
                   echo $RAYMOND_VISIT $RAYMOND_RESULT >> log; test -e go || sleep 300; \
                   test $RAYMOND_RESULT = y";
    let running = start(&project, "", Some(command));
    until("it hangs", || project.events("r", "turn_started").len() == 3);
    running.signal(Signal::KILL);
    running.wait();
    project
        .raymond("why r")
        .prints("interrupted: its owner died with 1 unfinished turn\n→ raymond resume r\n");
    let running = project.start("resume r");
    until("the command runs", || project.read("log").lines().count() == 1);
    let why = project.raymond("why r").stdout;
    assert!(why.contains("main is in turn 1 of UNTIL.sh, iteration 2 of 50\n"), "{why}");
    running.signal(Signal::KILL);
    running.wait();
    project.write("go", "");
    project.raymond("resume r").prints("y\n").mentions(
        0,
        &[
            "r: reused 2 turns ($0.20), continuing 0, repeating 1\n",
            "spent $0.40 of $10.00 (rehearsal); PROMPT took 100 %; $0.10 of it estimated\n",
        ],
    );
    assert_eq!(
        visits(&project),
        ["PROMPT.md 1", "UNTIL.sh 1", "PROMPT.md 2", "UNTIL.sh 2", "PROMPT.md 3", "UNTIL.sh 3"]
    );
    assert_eq!(project.events("r", "turn_settled").len(), 4, "the refused one failed");
    let log = project.read("log");
    let runs: Vec<&str> = log.lines().collect();
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[0], runs[1], "the same visit, the same payload");
    assert_eq!(project.processes("r"), [0; 0]);
}

#[test]
fn resume_can_change_the_number_of_iterations() {
    let project = prompted(
        "PROMPT:\n  - not yet\n  - { attempts: [{ hang: true }, not yet] }\n  - <result>x</result>\n",
    );
    let running = start(&project, "--max-iterations 2", None);
    until("it hangs", || project.events("r", "turn_started").len() == 2);
    running.signal(Signal::INT);
    running.wait();
    project.raymond("resume r --max-iterations 3").prints("x\n").mentions(0, &[]);
    // Only a loop has iterations.
    project.write("wf/START.sh", "exit 1");
    project.raymond("run wf --run-id w").mentions(1, &[]);
    project.raymond("resume w --max-iterations 3").says(
        2,
        "raymond: w is not a loop; --max-iterations is for `raymond ralph`
        hint: to limit the visits of a state, set its `max_visits`",
    );
}

#[test]
fn cancelled_loop_names_the_command_to_restart_it() {
    let project = prompted("PROMPT: { hang: true }\n");
    let running = start(&project, "--max-iterations 7", Some("cargo test"));
    until("it hangs", || project.events("r", "turn_started").len() == 1);
    project.raymond("cancel r").mentions(0, &[]);
    running.wait();
    let anew = "raymond ralph /project/PROMPT.md --max-iterations 7 --until 'cargo test' --replies /project/r.yaml";
    project.raymond("resume r").says(
        8,
        &format!(
            "raymond: r was cancelled
            hint: start a new run with `{anew}`"
        ),
    );
    assert_eq!(project.raymond("why r --json").json()["next_command"], json!(anew));
}

#[test]
fn loop_is_resumed_only_with_its_own_options() {
    let project = prompted("PROMPT:\n  - { text: not yet, cost: 1 }\n  - <result>x</result>\n");
    ralph(&project, "--budget 1", None).mentions(5, &[]);
    let words = "PROMPT.md --run-id r --replies r.yaml --budget 2 --or-resume";
    project.raymond(&format!("run {words}")).says(
        2,
        "raymond: r is a loop without --until
        hint: continue it unchanged with raymond resume r, or choose another --run-id",
    );
    project.raymond(&format!("ralph {words} --until true")).mentions(2, &["without --until"]);
    project.raymond(&format!("ralph {words} --max-iterations 2 -d")).mentions(0, &[]);
    project.raymond("wait r").mentions(0, &[]);
    let begun = prompted("PROMPT:\n  - { text: not yet, cost: 1 }\n  - not yet\n");
    ralph(&begun, "--budget 1 --max-iterations 2", None).mentions(5, &[]);
    // Without the flag, the number stays the same.
    begun.raymond(&format!("ralph {words}")).mentions(1, &["2 iterations without a result\n"]);
}

#[test]
fn only_prompts_can_be_repeated() {
    let project = Project::of(&[
        ("wf/START.md", "go"),
        ("fix.sh", "true"),
        ("notes.txt", "text"),
        ("README.md", "text"),
        ("PROMPT.md", "go"),
        ("BAD.md", "---\nbudget: much\n---\ngo"),
    ]);
    let check = |words: &str, expected: &str| {
        project.raymond(&format!("ralph {words}")).prints("").says(2, expected);
    };
    check(
        "wf",
        "raymond: wf is a directory, but `ralph` repeats one prompt
        hint: pass the prompt in it: `raymond ralph wf/PROMPT.md`; to start a workflow: `raymond run wf`",
    );
    check(
        "fix.sh",
        "raymond: fix.sh is not a prompt: `ralph` repeats a .md file
        hint: start it with `raymond run fix.sh`",
    );
    check(
        "notes.txt",
        "raymond: notes.txt is not a prompt: `ralph` repeats a .md file
        hint: the name of a prompt ends in .md",
    );
    check("README.md", "raymond: README.md is not a state: a README describes a workflow");
    check(
        "zebra.md",
        "raymond: could not find zebra.md
        hint: ralph repeats one prompt: pass a .md file",
    );
    project.raymond("ralph PROMPT.md --timeout 0s").mentions(2, &["must be longer than nothing"]);
    check("PROMT.md", "raymond: could not find PROMT.md\nhint: did you mean PROMPT.md?");
    check(
        "BAD.md",
        "BAD.md:2:9: error: `budget`: \"much\" is not an amount of dollars such as 10 or 2.50 [bad-amount]
        raymond: the workflow has a mistake",
    );
    check(
        "PROMPT.md --input x",
        "raymond: --input would reach only the first iteration
        hint: use --var K=V, which reaches every iteration as {{K}}",
    );
    project.raymond("ralph PROMPT.md --max-iterations 0").mentions(2, &["--max-iterations"]);
    let blank = project
        .spawn(env!("CARGO_BIN_EXE_raymond"), &["ralph", "PROMPT.md", "--until", " "])
        .wait();
    blank.says(
        2,
        "raymond: --until needs a command
        hint: for example --until 'cargo test'; without --until, Raymond accepts every result",
    );
    assert!(!project.path(".raymond").exists());
}

#[test]
fn other_files_and_transition_rules_are_ignored() {
    let project = Project::of(&[
        ("OTHER.md", "---\nnonsense\n---\n"),
        ("PROMPT.md", "---\nallowed_targets: {goto: [REVIEW]}\nmax_visits: 1\n---\ngo"),
        ("r.yaml", "PROMPT:\n  - <goto>REVIEW</goto>\n  - <result>{{visit}}</result>\n"),
    ]);
    ralph(&project, "", None).mentions(
        0,
        &["PROMPT.md:2:1: warning: `allowed_targets` has no effect in ralph: only <result> counts [not-for-ralph]
  hint: a workflow of several states is run by `raymond run`
PROMPT.md:3:1: warning: `max_visits` has no effect in ralph [not-for-ralph]
  hint: use --max-iterations
r: cap"],
    );
    assert_eq!(visits(&project), ["PROMPT.md 1", "PROMPT.md 2"]);
}

#[test]
fn detached_loop_is_named_after_its_prompt() {
    let project = prompted("PROMPT: <result>x</result>\n");
    let begun = project.raymond("ralph PROMPT.md --replies r.yaml -d");
    assert!(begun.stdout.starts_with("ralph-prompt-2"), "{begun:?}");
    project.raymond("wait @last").mentions(0, &[]);
}
