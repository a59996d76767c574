//! Tools: allowed ones really run, others do not.

use std::path::Path;

use raymond_testkit::model::{RecordedRequest, Role};
use rustix::process::getuid;

use crate::stage::Stage;

const TEST: &str = r#"model: tool Bash {"command":"cargo test --offline"}"#;
const END: &str = "model: say <result>done</result>";
/// The tool output for a command that was not allowed.
const REFUSED: &str = "This command requires approval";
/// The rule that the summary proposes for [`TEST`].
const RULE: &str = "Bash(cargo test:*)";

/// A stage whose project is a package with one test, which leaves the file `tested`.
fn package(states: &[(&str, &str)]) -> Stage {
    let stage = Stage::prompts(states);
    let manifest = "[package]\nname = \"tiny\"\nedition = \"2024\"\n\n[workspace]\n";
    stage.project.write("Cargo.toml", manifest);
    let test = "#[test]\nfn it_runs() {\n    std::fs::write(\"tested\", \"\").unwrap();\n}\n";
    stage.project.write("src/lib.rs", test);
    let toolchain = Path::new(env!("CARGO")).parent().unwrap();
    stage.with(&format!("PATH={}:/usr/local/bin:/usr/bin:/bin", toolchain.display()))
}

fn has(stage: &Stage, file: &str) -> bool {
    stage.project.path(file).exists()
}

/// The tool outputs of a request.
fn outcomes(seen: &RecordedRequest) -> Vec<&str> {
    let outcomes = seen.conversation.iter().filter(|said| said.role == Role::Outcome);
    outcomes.map(|said| said.text.as_str()).collect()
}

/// The calls that were denied, as the journal has them.
fn denied(stage: &Stage) -> Vec<String> {
    let warned = stage.events("warned").into_iter();
    let tool = |event: serde_json::Value| {
        Some(event["warning"]["tool_denied"]["tool"].as_str()?.to_owned())
    };
    warned.filter_map(tool).collect()
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn suggested_allow_flag_lets_a_denied_tool_run() {
    let stage = package(&[("START", &format!("on_denied: fail\n---\n{TEST}\n{END}"))]);
    let next_command = format!("to continue: raymond resume r --allow '{RULE}'");
    stage.run("").prints("").mentions(
        1,
        &[
            "the client denied Bash(cargo test --offline)",
            "1 tool call (cargo test)",
            &next_command,
        ],
    );
    assert!(!has(&stage, "tested"));
    assert_eq!(denied(&stage), ["Bash(cargo test --offline)"]);
    let resume = stage.start_words(&["resume", "r", "--allow", RULE]).wait();
    resume.prints("done\n").mentions(0, &[]);
    assert!(has(&stage, "tested"));
    let requests = stage.requests();
    let [before, after] = outcomes(requests.last().unwrap())[..] else { panic!("{requests:#?}") };
    assert_eq!(before, REFUSED);
    assert!(after.contains("test result: ok. 1 passed"), "{after}");
    assert_eq!(requests.len(), 4);
    assert_eq!(stage.spent(), stage.billed());
    stage.leaves_nothing();
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn allow_list_of_state_applies_to_it_alone() {
    let stage = package(&[
        ("START", &format!("allow: ['{RULE}']\n---\n{TEST}\nmodel: say <goto>NEXT</goto>")),
        ("NEXT", &format!("{TEST}\n{END}")),
    ]);
    let next_command = format!("1 tool call (cargo test); to allow it next time: --allow '{RULE}'");
    stage.run("").prints("done\n").mentions(0, &[&next_command]);
    assert_eq!(denied(&stage), ["Bash(cargo test --offline)"]);
    let requests = stage.requests();
    let [ran, refused] = outcomes(requests.last().unwrap())[..] else { panic!("{requests:#?}") };
    assert!(ran.contains("test result: ok. 1 passed"), "{ran}");
    assert_eq!(refused, REFUSED);
    assert!(has(&stage, "tested"));
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn deny_wins_over_allow() {
    let front = "deny: ['Bash(cargo test:*)', WebFetch]\n---\n";
    let stage = package(&[("START", &format!("{front}{TEST}\n{END}"))]);
    let words = ["run", "wf", "--run-id", "r", "--allow", RULE, "--allow", "WebFetch"];
    stage.start_words(&words).wait().prints("done\n").mentions(0, &[]);
    assert!(!has(&stage, "tested"));
    let requests = stage.requests();
    let [refused] = outcomes(requests.last().unwrap())[..] else { panic!("{requests:#?}") };
    assert!(refused.contains("denied"), "{refused}");
    let tools = &requests[0].tools;
    assert!(!tools.contains(&"WebFetch".to_owned()), "not even shown: {tools:?}");
    assert!(tools.contains(&"Bash".to_owned()), "{tools:?}");
    assert_eq!(denied(&stage), ["Bash(cargo test --offline)"]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn each_mode_lets_its_client_write_or_not() {
    let write =
        |name: &str| format!(r#"model: tool Write {{"file_path":"{name}.txt","content":"x"}}"#);
    let state = |mode: &str, next: &str| {
        format!("permission_mode: {mode}\n---\n{}\nmodel: say <reset>{next}</reset>", write(mode))
    };
    let stage = Stage::prompts(&[
        ("1_START", &state("plan", "DONT_ASK")),
        ("DONT_ASK", &state("dontAsk", "DEFAULT")),
        ("DEFAULT", &state("default", "EDITS")),
        ("EDITS", &format!("{}\n{END}", write("acceptEdits"))),
    ]);
    stage.run("").prints("done\n").mentions(0, &[]);
    let written = ["plan", "dontAsk", "default", "acceptEdits"]
        .map(|mode| has(&stage, &format!("{mode}.txt")));
    assert_eq!(written, [false, false, false, true]);
    assert_eq!(denied(&stage), ["Write"; 3]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn denied_tool_can_be_a_reminder() {
    let lines = format!(
        "on_denied: remind\n---\n{TEST}\n{END}\nmodel: then\nmodel: say <result>untested</result>"
    );
    let stage = package(&[("START", &lines)]);
    stage.run("").prints("untested\n").mentions(0, &["reminder 1"]);
    let [.., last] = &stage.requests()[..] else { panic!("no request") };
    let prompts = last.conversation.iter().filter(|said| said.role == Role::User);
    let [_, reminder] = &prompts.collect::<Vec<_>>()[..] else { panic!("{last:#?}") };
    let denial = "You were denied these tools: Bash(cargo test --offline).";
    assert!(reminder.text.starts_with(denial), "{reminder:?}");
    assert_eq!(stage.requests().len(), 3);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn root_skips_permissions_only_in_a_sandbox() {
    let stage = package(&[("START", &format!("{TEST}\n{END}"))]);
    if getuid().is_root() {
        let refused = stage.raymond("run wf --dangerously-skip-permissions");
        refused.prints("").mentions(7, &["root", "IS_SANDBOX=1"]);
        assert_eq!(stage.requests(), []);
    }
    let stage = stage.with("IS_SANDBOX=1");
    stage.run("--dangerously-skip-permissions").prints("done\n").mentions(0, &[]);
    assert!(has(&stage, "tested"));
    assert_eq!(denied(&stage), [""; 0]);
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn files_are_written_only_in_the_agents_directory() {
    let write = r#"model: tool Write {"file_path":"written.txt","content":"x"}
        model: tool Bash {"command":"pwd > where.txt"}"#;
    let stage = Stage::prompts(&[
        ("1_START", r#"model: say <fork next="MOVE" cd="one">WORK</fork>"#),
        ("MOVE", r#"model: say <reset cd="two/deep">WORK</reset>"#),
        ("WORK", &format!("{write}\n{END}")),
    ]);
    for place in ["one", "two/deep"] {
        stage.project.write(&format!("{place}/.keep"), "");
    }
    stage.run("").prints("done\n").mentions(0, &[]);
    let files = files(&stage.project.root());
    let places = ["one", "two/deep"];
    let expected: Vec<String> = places
        .iter()
        .flat_map(|place| ["where.txt", "written.txt"].map(|file| format!("{place}/{file}")))
        .collect();
    assert_eq!(files, expected);
    for place in places {
        let root = stage.project.path(place);
        assert_eq!(
            stage.project.read(&format!("{place}/where.txt")),
            format!("{}\n", root.display())
        );
    }
    stage.leaves_nothing();
}

/// The files of the project, except for the workflow and dot files.
fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut places = vec![root.to_owned()];
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let hidden = path.file_name().unwrap().to_str().unwrap().starts_with('.');
            match path.is_dir() {
                _ if hidden || name == "wf" => {}
                true => places.push(path),
                false => found.push(name),
            }
        }
    }
    found.sort();
    found
}
