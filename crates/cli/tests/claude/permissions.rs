//! Permissions of the client, and the handling of denied tools.

use rustix::process::getuid;
use serde_json::json;

use crate::stage::Stage;

const END: &str = "fake: say <result>done</result>";

/// The values of a flag at the only start of the client.
fn values(stage: &Stage, flag: &str) -> Vec<String> {
    let [only] = stage.invocations().try_into().unwrap();
    only.values(flag).into_iter().map(str::to_owned).collect()
}

#[test]
fn edits_are_accepted_by_default() {
    let check = |front: &str, flags: &str, mode: &str| {
        let stage = Stage::prompts(&[("START", &format!("{front}{END}"))]);
        stage.run(flags).prints("done\n").mentions(0, &[]);
        assert_eq!(values(&stage, "--permission-mode"), [mode], "{front} {flags}");
    };
    check("", "", "acceptEdits");
    check("", "--permission-mode plan", "plan");
    check("permission_mode: dontAsk\n---\n", "--permission-mode plan", "dontAsk");
}

#[test]
fn allow_and_deny_lists_of_all_sources_merge() {
    let front = "allow: ['Bash(cargo test:*)', Edit]\ndeny: ['Bash(rm:*)']\n---\n";
    let stage = Stage::prompts(&[("START", &format!("{front}{END}"))]);
    stage.project.write("raymond.toml", "allow = ['Read', 'Edit']\ndeny = ['WebFetch']\n");
    let words = ["run", "wf", "--run-id", "r", "--allow", "Bash(git log:*)", "--deny", "Write"];
    stage.start_words(&words).wait().prints("done\n").mentions(0, &[]);
    let mut allowed = values(&stage, "--allowedTools");
    let mut denied = values(&stage, "--disallowedTools");
    allowed.sort();
    denied.sort();
    assert_eq!(allowed, ["Bash(cargo test:*)", "Bash(git log:*)", "Edit", "Read"]);
    assert_eq!(denied, ["Bash(rm:*)", "WebFetch", "Write"]);
}

#[test]
fn client_gets_directories_servers_and_system_prompt() {
    let front = "add_dirs: [../shared, /tmp]\nmcp_config: mcp.json\n\
                 append_system_prompt: Be brief.\n---\n";
    let stage = Stage::prompts(&[
        ("START", &format!("{front}fake: say <goto>NEXT</goto>")),
        ("NEXT", "append_system_prompt: Be kind.\n---\nfake: say <goto>LAST</goto>"),
        ("LAST", END),
    ]);
    stage.project.write("mcp.json", "{\"mcpServers\":{}}");
    stage.run("").prints("done\n").mentions(0, &[]);
    let sent = stage.invocations();
    assert_eq!(sent[0].values("--add-dir"), ["../shared", "/tmp"]);
    assert_eq!(sent[0].values("--mcp-config"), ["mcp.json"]);
    let prompts: Vec<Option<&str>> =
        sent.iter().map(|sent| sent.system_prompt.as_deref()).collect();
    // The client really uses them. A state without one gets the system prompt of the start of its
    // conversation.
    assert_eq!(prompts, [Some("Be brief."), Some("Be kind."), Some("Be brief.")]);
}

#[test]
fn denied_tools_are_warned_about_with_remedy() {
    let stage = Stage::prompts(&[(
        "START",
        &format!(
            "fake: tool Bash cargo test --all\nfake: tool Bash git commit -m x\nfake: tool WebFetch https://example.org\n{END}"
        ),
    )]);
    stage
        .run("")
        .prints("done\n")
        .mentions(0, &["the client denied Bash(cargo test --all)", "3 tool calls (", "--allow"]);
    let denied: Vec<_> =
        stage.warnings().into_iter().map(|w| w["tool_denied"]["tool"].clone()).collect();
    assert_eq!(
        denied,
        [json!("Bash(cargo test --all)"), json!("Bash(git commit -m x)"), json!("WebFetch")]
    );
}

#[test]
fn allowed_tools_are_not_denied() {
    let stage = Stage::prompts(&[("START", &format!("fake: tool Bash cargo test --all\n{END}"))]);
    let words = ["run", "wf", "--run-id", "r", "--allow", "Bash(cargo test:*)"];
    let output = stage.start_words(&words).wait();
    output.prints("done\n").mentions(0, &[]);
    assert!(!output.stderr.contains("denied"), "{output:?}");
    assert!(stage.warnings().is_empty(), "{:?}", stage.warnings());
}

#[test]
fn state_can_fail_on_denied_tools() {
    let lines =
        format!("fake: deny Bash make\n{END}\nfake[reminder]: say <result>without</result>");
    let check = |on_denied: &str, code: i32, stdout: &str| {
        let stage = Stage::prompts(&[("START", &format!("on_denied: {on_denied}\n---\n{lines}"))]);
        let output = stage.run("");
        output.prints(stdout).mentions(code, &[]);
        stage.prompts_sent()
    };
    assert_eq!(check("warn", 0, "done\n").len(), 1);
    assert_eq!(check("fail", 1, "").len(), 1);
    let sent = check("remind", 0, "without\n");
    assert!(sent[1].starts_with("You were denied these tools: Bash(make)."), "{sent:?}");
}

#[test]
fn resume_can_change_permissions() {
    let stage = Stage::prompts(&[(
        "START",
        "on_denied: fail\n---\nfake: tool Bash cargo test\nfake: say <result>done</result>",
    )]);
    stage.run("").mentions(1, &["Bash(cargo test:*)"]);
    let words = ["resume", "r", "--allow", "Bash(cargo test:*)"];
    stage.start_words(&words).wait().prints("done\n").mentions(0, &[]);
}

#[test]
fn root_cannot_skip_permissions() {
    let stage = Stage::prompts(&[("START", END)]);
    let output = stage.run("--dangerously-skip-permissions");
    if getuid().is_root() {
        output.prints("").mentions(7, &["root", "IS_SANDBOX=1"]);
        assert_eq!(stage.invocations().len(), 0);
    } else {
        output.prints("done\n").mentions(0, &[]);
    }
}

#[test]
fn sandbox_may_skip_permissions() {
    let stage = Stage::prompts(&[("START", &format!("fake: tool Bash cargo test\n{END}"))]);
    let stage = stage.with("IS_SANDBOX=1");
    stage.run("--dangerously-skip-permissions").prints("done\n").mentions(0, &[]);
    let [only] = stage.invocations().try_into().unwrap();
    assert!(only.argv.iter().any(|word| word == "--dangerously-skip-permissions"));
    assert_eq!(only.values("--permission-mode"), [""; 0]);
    assert!(stage.warnings().is_empty(), "{:?}", stage.warnings());
}

#[test]
fn missing_client_is_reported_before_the_start() {
    let stage = Stage::without_client(&[("wf/START.md", END)]);
    stage.run("").prints("").mentions(7, &["claude"]);
}

#[test]
fn denied_tools_of_failed_turns_are_reported() {
    let stage = Stage::prompts(&[("START", "fake: deny Bash make all\nfake: error 400")]);
    stage
        .run("")
        .mentions(1, &["1 tool call (make all)", "raymond resume r --allow 'Bash(make all:*)'"]);
}
