//! Output redacts secrets; results and records do not.

use serde_json::json;

use crate::harness::Project;

const VALUE: &str = "hunter2-and-more";
const KEY: &str = "sk-ant-api03-0123456789abcdef";

/// A run that prints its secrets everywhere, and fails.
fn failed() -> Project {
    let script = "echo \"$DEPLOY_TOKEN $AUTHOR sk-ant-api03-0123456789abcdef\" >&2; exit 3";
    let project = Project::of(&[("wf/START.sh", script)]);
    project.with("DEPLOY_TOKEN", VALUE).with("AUTHOR", "somebody-else")
}

// proves: S31
#[test]
fn output_never_contains_a_secret() {
    let project = failed();
    let run = project.raymond("run wf --run-id r");
    run.mentions(1, &["script: exit status 3: [redacted] somebody-else [redacted]\n"]);
    let events = project.raymond("run wf --events");
    assert!(events.stdout.contains("\"stderr\":\"[redacted] somebody-else [redacted]"));
    let looks = ["status", "status --json", "why", "why --json", "show", "show --json", "list"];
    let looks = looks.map(|command| project.raymond(&format!("{command} r")));
    let others = ["list --json", "resume r", "resume r --json", "wait r --json"];
    let others = others.map(|words| project.raymond(words));
    for output in [run, events].into_iter().chain(looks).chain(others) {
        for secret in [VALUE, KEY] {
            assert!(!output.stdout.contains(secret), "{output:?}");
            assert!(!output.stderr.contains(secret), "{output:?}");
        }
    }
    let journal = project.read(".raymond/runs/r/journal.jsonl");
    assert!(journal.contains(VALUE) && journal.contains(KEY), "the journal is the truth");
}

// A message quotes the end of the output, with escapes.
#[test]
fn secret_with_quotes_is_redacted_in_a_quotation() {
    const QUOTED: &str = r#"hunter"2"\and-more"#;
    let project = Project::of(&[("wf/START.sh", "printf '%s' \"$DEPLOY_TOKEN\"")]);
    let project = project.with("DEPLOY_TOKEN", QUOTED);
    let run = project.raymond("run wf --run-id r");
    run.mentions(1, &["no tag", "[redacted]"]);
    let events = project.raymond("run wf --events");
    let looks = ["why r", "why r --json", "show r", "show r --json", "list", "list --json"];
    let looks = looks.map(|command| project.raymond(command));
    for output in [run, events].into_iter().chain(looks) {
        let shown = format!("{}{}", output.stdout, output.stderr);
        assert!(!shown.contains("and-more"), "{output:?}");
    }
}

#[test]
fn result_is_printed_unredacted() {
    let project = Project::of(&[("wf/START.sh", "echo \"<result>$DEPLOY_TOKEN</result>\"")]);
    let project = project.with("DEPLOY_TOKEN", VALUE);
    let run = project.raymond("run wf --run-id r");
    run.prints(&format!("{VALUE}\n")).mentions(0, &[]);
    let shown = project.raymond("show r").stdout;
    assert!(shown.contains("ended: [redacted]"), "{shown}");
    let object = project.raymond("run wf --json").json();
    assert_eq!(object["results"], json!({ "main": VALUE }));
    project.raymond("resume r").prints(&format!("{VALUE}\n"));
}

#[test]
fn errors_redact_secrets_in_arguments() {
    let project = Project::of(&[]);
    for words in [format!("status {KEY}"), format!("run {KEY}"), format!("run x --budget {KEY}")] {
        let output = project.raymond(&words);
        assert_eq!(output.code(), 2, "{output:?}");
        assert!(output.stderr.contains("[redacted]") && !output.stderr.contains(KEY), "{output:?}");
    }
}
