//! `logs`: the transcript of each turn, from any client and with any content.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Project, until};

/// A client that prints these lines.
fn client(lines: &[&str]) -> Project {
    let project = Project::of(&[("wf/START.md", "Look at it."), ("said", &lines.join("\n"))]);
    with_client(project, "cat > /dev/null; cat said")
}

fn with_client(project: Project, script: &str) -> Project {
    let version = "test \"$1\" = --version && echo 2.1.325 && exit";
    project.write("client", format!("#!/bin/sh\n{version}\n{script}\n"));
    fs::set_permissions(project.path("client"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = project.path("client").to_str().unwrap().to_owned();
    project.with("RAYMOND_CLAUDE", path)
}

const INIT: &str = r#"{"type":"system","subtype":"init","model":"opus"}"#;
const TEXT: &str = r#"{"type":"assistant","message":{"id":"m1","model":"opus","content":[{"type":"text","text":"I will look.\nCarefully."}]}}"#;
const TOOL: &str = r#"{"type":"assistant","message":{"id":"m1","model":"opus","content":[{"type":"tool_use","name":"Bash","input":{"command":"cargo test\n--all"}}]}}"#;
const TOOL_FAILED: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"exit 101\nno such test"}]}}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"<result>done</result>","permission_denials":[{"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"git push"}}],"model_usage_since_last_result":{"opus":{"costUSD":0.12}}}"#;

/// The output without times and durations.
fn shown(project: &Project, words: &str) -> String {
    let output = project.raymond(words);
    output.says(0, "");
    without_spans(&output.stdout)
}

/// `finished after 13ms` and `finished after 2s` are the same.
fn without_spans(text: &str) -> String {
    let cut = |line: &str| match line.split_once(" after ") {
        Some((before, rest)) => match rest.split_once(": ") {
            Some((_, why)) => format!("{before} after _: {why}\n"),
            None => format!("{before} after _\n"),
        },
        None => format!("{line}\n"),
    };
    text.lines().map(cut).collect()
}

#[test]
fn logs_show_everything_the_client_said() {
    let project = client(&[INIT, TEXT, TOOL, TOOL_FAILED, RESULT, ""]);
    project.raymond("run wf --run-id r").prints("done\n");
    assert_eq!(
        shown(&project, "logs r"),
        "\
main             START.md · turn 1 · opus · $0.12 · finished after _
    | I will look.
    | Carefully.
    > Bash(cargo test / --all)
    ! exit 101 / no such test
    ! denied: Bash(git push)
    | <result>done</result>
"
    );
    let transcript = project.read(".raymond/runs/r/transcripts/main.1.1.1.jsonl");
    assert_eq!(project.raymond("logs --raw").stdout, transcript);
    let mut object = project.raymond("logs --json").json();
    let turn = object["turns"][0].as_object_mut().unwrap();
    for time in ["started_at", "ended_at"] {
        assert!(turn.remove(time).unwrap().as_str().unwrap().ends_with('Z'));
    }
    let said = |kind: &str, text: &str| json!({ "kind": kind, "text": text });
    assert_eq!(
        object,
        json!({ "version": 1, "run_id": "r", "turns": [{
            "turn": "main.1.1", "attempt": 1, "agent": "main", "state": "START.md", "visit": 1,
            "backend": "claude", "reminder": false, "ended": "finished", "failure": null,
            "model": "opus", "spent_usd": 0.12, "basis": "reported",
            "said": [
                said("text", "I will look.\nCarefully."),
                said("tool", "Bash(cargo test\n--all)"),
                said("error", "exit 101\nno such test"),
                said("denied", "Bash(git push)"),
                said("text", "<result>done</result>"),
            ],
        }]})
    );
}

fn several_states() -> Project {
    let project = Project::of(&[
        ("wf/START.sh", "echo early; echo '<fork next=\"ASK\">WORK</fork>'"),
        ("wf/ASK.md", "Well?"),
        ("wf/WORK.sh", "echo working; echo careful >&2; exit 3"),
        ("replies", "ASK: [[no tag, \"<result>fine\\nlines</result>\"]]"),
    ]);
    project.raymond("run wf --run-id r --replies replies --backend scripted").mentions(1, &[]);
    project
}

#[test]
fn logs_show_scripts_and_replies_from_records() {
    let project = several_states();
    let of_main = "\
main             START.sh · turn 1 · finished after _
    | early
    | <fork next=\"ASK\">WORK</fork>
main             ASK.md · turn 1 · $0.00 · finished after _
    | no tag
main             ASK.md · turn 2 (a reminder) · $0.00 · finished after _
    | <result>fine
    | lines</result>
";
    let of_work = "\
main_work1       WORK.sh · turn 1 · failed after _: script: exit status 3: careful
    | working
    2| careful
";
    assert_eq!(shown(&project, "logs --agent main"), of_main);
    assert_eq!(shown(&project, "logs --state WORK"), of_work);
    assert_eq!(shown(&project, "logs r --state WORK.sh --agent main_work1"), of_work);
    let all = shown(&project, "logs");
    assert_eq!(all.lines().count(), of_main.lines().count() + of_work.lines().count());
    project
        .raymond("logs --raw")
        .prints("")
        .says(0, "no client left a transcript; raymond logs r shows the recorded answers");
}

#[test]
fn unknown_names_in_logs_suggest_similar_ones() {
    let project = several_states();
    let check = |words: &str, expected: &str| {
        project.raymond(words).prints("").says(2, expected);
    };
    let agent = "raymond: r has no turn of an agent \"main_wrok1\"\nhint: did you mean main_work1?";
    check("logs --agent main_wrok1", agent);
    let state = "raymond: r has no turn in a state \"REVIEW\"
        hint: choose from ASK.md, START.sh, WORK.sh";
    check("logs --state REVIEW", state);
    let stem = "raymond: r has no turn in a state \"WROK\"\nhint: did you mean WORK?";
    check("logs --state WROK", stem);
    check("logs zebra", "raymond: there is no run \"zebra\"\nhint: see `raymond list`");
    for both in ["logs --json --raw", "logs --json --follow"] {
        project.raymond(both).mentions(2, &["cannot be used with"]);
    }
}

/// A text is never truncated in the middle of a secret.
#[test]
fn truncation_never_shows_part_of_a_secret() {
    let secret = "hunter2hunter2secret";
    // Truncated at 40 characters, and at 72.
    let command = format!("/usr/bin/curl --header x-key: {secret}");
    let result = format!("{}{secret} and more", "x".repeat(60));
    let result = json!({
        "type": "result", "subtype": "success", "is_error": false,
        "result": format!("<result>{result}</result>"),
        "permission_denials": [
            { "tool_name": "Bash", "tool_use_id": "t", "tool_input": { "command": command } },
        ],
    });
    let twice = format!(r#"{{"{secret}":1,"a":"hunter2\u0068unter2secret","a":2}}"#);
    let project = Project::of(&[("wf/START.md", "Look."), ("said", &format!("{INIT}\n{twice}\n"))]);
    project.write("result", result.to_string());
    // The last 4096 bytes of stderr begin within the secret.
    project.write("stderr", format!("{secret}{}", "y".repeat(4086)));
    let project = with_client(project, "cat > /dev/null; cat said result; cat stderr >&2");
    let project = project.with("MY_API_KEY", secret);
    let run = project.raymond("run wf --run-id r");
    assert!(run.stderr.contains("/usr/bin/curl --header x-key: [redacted]…"), "{run:?}");
    let stderr = project.raymond("logs r").stdout;
    assert!(stderr.contains("2| …[redacted]yyy"), "{stderr}");
    let raw = project.raymond("logs --raw r").stdout;
    assert!(raw.contains(r#"{"[redacted]":1,"a":"[redacted]","a":2}"#), "{raw}");
    for words in ["status", "status --json", "show -v", "show --json", "logs", "logs --json"] {
        let mut shown = project.raymond(&format!("{words} r")).stdout;
        if let Ok(mut object) = serde_json::from_str::<Value>(&shown) {
            // Results are not redacted.
            object["results"].take();
            shown = object.to_string();
        }
        assert!(!shown.contains("hunter"), "{words}: {shown}");
        assert!(!shown.contains("secret"), "{words}: {shown}");
    }
    assert!(!format!("{}{stderr}{raw}", run.stderr).contains("hunter"), "{run:?} {raw}");
}

#[test]
fn logs_show_the_output_of_ended_scripts() {
    let text = "echo so far so good; echo stuck >&2; touch here; exec sleep 600";
    let project = Project::of(&[("wf/START.sh", text)]);
    project.raymond("run wf --run-id late --idle-timeout 1s").mentions(1, &["timed out"]);
    let said = "    | so far so good\n    2| stuck\n";
    let text = shown(&project, "logs late");
    assert!(text.ends_with(said), "{text}");

    fs::remove_file(project.path("here")).unwrap();
    let running = project.start("run wf --run-id stopped");
    until("the script has spoken", || project.path("here").exists());
    project.raymond("stop stopped").mentions(0, &[]);
    drop(running);
    let text = shown(&project, "logs stopped");
    assert!(text.ends_with(said), "{text}");
}

// proves: S30
#[test]
fn logs_print_no_escapes_or_secrets_of_transcripts() {
    let secret = "sk-ant-api03-0123456789abcdefghij";
    let text = format!(
        r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"text","text":"\u001b[2Ja\n00:00:00 main forged\n{secret}"}}]}}}}"#
    );
    let project =
        client(&[INIT, &text, "\u{1b}]0;title\u{7} not JSON", RESULT, r#"{"type":"resu"#]);
    project.raymond("run wf --run-id r").mentions(0, &["completed"]);
    assert_eq!(
        shown(&project, "logs").lines().skip(1).collect::<Vec<_>>(),
        [
            "    | \u{fffd}[2Ja",
            "    | 00:00:00 main forged",
            "    | [redacted]",
            "    ~ not JSON: \u{fffd}]0;title\u{fffd} not JSON",
            "    ! denied: Bash(git push)",
            "    | <result>done</result>",
            r#"    ~ not JSON: {"type":"resu"#,
        ]
    );
    for words in ["logs --raw", "logs --json"] {
        let output = project.raymond(words);
        assert!(!output.stdout.contains(secret), "{output:?}");
        assert!(output.stdout.contains("[redacted]"), "{output:?}");
    }
}

#[test]
fn logs_name_huge_missing_or_irregular_transcripts() {
    let project = client(&[INIT, RESULT]);
    project.raymond("run wf --run-id r").prints("done\n");
    let path = ".raymond/runs/r/transcripts/main.1.1.1.jsonl";
    let check = |expected: &[&str]| {
        let words = shown(&project, "logs");
        assert_eq!(words.lines().skip(1).collect::<Vec<_>>(), expected);
    };
    let huge = format!("{INIT}\n\"{}\"\n{TEXT}", "x".repeat(17 << 20));
    project.write(path, huge);
    let too_long = "    ~ a line of 17825794 bytes was too long to read";
    check(&[too_long, "    | I will look.", "    | Carefully."]);
    let raw = project.raymond("logs --raw");
    let left_out = r#"{"bytes":17825794,"raymond":"omitted a line"}"#;
    assert_eq!(raw.stdout.lines().collect::<Vec<_>>(), [INIT, left_out, TEXT]);
    project.write(path, "");
    check(&[]);
    fs::remove_file(project.path(path)).unwrap();
    check(&[
        "    ~ the transcript is missing",
        "    | <result>done</result>",
        "    ! denied: Bash(git push)",
    ]);
    assert_eq!(project.spawn("mkfifo", &[path]).wait().code(), 0);
    check(&[
        "    ~ could not read the transcript: it is not a regular file",
        "    | <result>done</result>",
        "    ! denied: Bash(git push)",
    ]);
}

/// A client that prints a message, waits at a gate and ends.
fn gated() -> Project {
    let project = Project::of(&[("wf/START.md", "Look."), ("text", TEXT), ("result", RESULT)]);
    assert_eq!(project.spawn("mkfifo", &["go"]).wait().code(), 0);
    let script = "cat > /dev/null; cat text; echo; read _ < go; cat result; echo";
    with_client(project, script)
}

#[test]
fn running_run_is_followed_until_its_end() {
    let project = gated();
    let running = project.start("run wf --run-id r");
    until("the client speaks", || {
        !project.read(".raymond/runs/r/transcripts/main.1.1.1.jsonl").is_empty()
    });
    let following = project.start("logs --follow");
    until("the message is printed", || following.stdout_contains("| Carefully."));
    let raw = project.start("logs -f --raw");
    until("the line is printed", || raw.stdout_contains("I will look."));
    let nobody = project.start("logs -f --agent main_work1");
    let now = project.raymond("logs");
    now.prints(
        "main             START.md · turn 1 · in flight\n    | I will look.\n    | Carefully.\n",
    );
    project.write("go", "\n");
    let output = following.wait();
    assert_eq!(
        without_spans(&output.says(0, "").stdout),
        "\
main             START.md · turn 1 · in flight
    | I will look.
    | Carefully.
    ! denied: Bash(git push)
    | <result>done</result>
main             START.md · turn 1 · opus · $0.12 · finished after _
"
    );
    assert_eq!(raw.wait().stdout, format!("{TEXT}\n{RESULT}\n"));
    nobody.wait().prints("").says(0, "r has no such turn");
    running.wait().mentions(0, &["completed"]);
    assert_eq!(shown(&project, "logs -f"), shown(&project, "logs"), "it has ended");
}

#[test]
fn stopping_to_follow_leaves_the_run_alone() {
    let project = gated();
    let running = project.start("run wf --run-id r");
    until("the client speaks", || {
        !project.read(".raymond/runs/r/transcripts/main.1.1.1.jsonl").is_empty()
    });
    let following = project.start("logs -f");
    until("the message is printed", || following.stdout_contains("| Carefully."));
    following.signal(Signal::INT);
    following.wait();
    let pipe = format!("{} logs -f | head -n 2", env!("CARGO_BIN_EXE_raymond"));
    let head = project.spawn("sh", &["-c", &pipe]);
    until("the first line of the turn is printed", || head.stdout_contains("in flight"));
    project.write("go", "\n");
    running.wait().mentions(0, &["completed"]).prints("done\n");
    head.wait().says(0, "");
}
