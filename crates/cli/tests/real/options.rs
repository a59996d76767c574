//! Options of a state reach the model or the tools.

use raymond_testkit::model::{RecordedRequest, Role};
use serde_json::json;

use crate::stage::Stage;

const END: &str = "model: say <result>done</result>";

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn every_state_has_its_own_options() {
    let state = |model: &str, effort: &str, system: &str, next: &str| {
        format!(
            "model: {model}\neffort: {effort}\nappend_system_prompt: {system}\n---\nmodel: say {next}"
        )
    };
    let stage = Stage::prompts(&[
        ("1_START", &state("claude-opus-5", "low", "Be a start.", "<goto>NEXT</goto>")),
        (
            "NEXT",
            &state("claude-sonnet-5", "high", "Be a next.", "<call return=\"LAST\">SUB</call>"),
        ),
        ("SUB", &state("claude-opus-5", "max", "Be a callee.", "<goto>MORE</goto>")),
        ("MORE", "model: say <result>x</result>"),
        ("LAST", END),
    ]);
    stage.run("--model claude-sonnet-5 --effort medium").prints("done\n").mentions(0, &[]);
    let requests = stage.requests();
    let asked: Vec<_> = requests.iter().map(asked).collect();
    let expected = [
        ("claude-opus-5", "low", vec!["start"]),
        ("claude-sonnet-5", "high", vec!["next"]),
        ("claude-opus-5", "max", vec!["callee"]),
        // States without own options get the system prompt of the start of the conversation.
        ("claude-sonnet-5", "medium", vec!["start"]),
        ("claude-sonnet-5", "medium", vec!["start"]),
    ];
    assert_eq!(asked, expected);
    assert_eq!(stage.spent(), stage.billed());
}

/// The model, the effort, and the sentences `Be a …` in the system prompt.
fn asked(seen: &RecordedRequest) -> (&str, &str, Vec<&str>) {
    let words = ["start", "next", "callee"].into_iter();
    let words = words.filter(|word| seen.system.contains(&format!("Be a {word}."))).collect();
    (&seen.model, seen.body["output_config"]["effort"].as_str().unwrap_or_default(), words)
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn added_directory_may_be_written_to() {
    let stage = Stage::new();
    let shared = stage.home().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let write = |name: &str| {
        let input = json!({ "file_path": shared.join(name), "content": "x" });
        format!("model: tool Write {input}")
    };
    stage.prompt("1_START", &format!("{}\nmodel: say <reset>NEXT</reset>", write("before")));
    let front = format!("add_dirs: ['{}']\n---\n", shared.display());
    stage.prompt("NEXT", &format!("{front}{}\n{END}", write("after")));
    stage.run("").prints("done\n").mentions(0, &["1 tool call (Write)"]);
    let written = ["before", "after"].map(|name| shared.join(name).exists());
    assert_eq!(written, [false, true]);
}

/// An MCP server with one tool.
const SERVER: &str = r#"
while read -r line; do
    [[ $line =~ \"id\":([0-9]+) ]] || continue
    id=${BASH_REMATCH[1]}
    case $line in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}';;
        *'"tools/list"'*) result='{"tools":[{"name":"greet","description":"Greets.","inputSchema":{"type":"object"}}]}';;
        *'"tools/call"'*) result='{"content":[{"type":"text","text":"hello from the server"}]}';;
        *) result='{}';;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn missing_mcp_server_is_a_warning() {
    let front = "mcp_config: mcp.json\nallow: [mcp__tiny__greet]\n---\n";
    let stage =
        Stage::prompts(&[("START", &format!("{front}model: tool mcp__tiny__greet {{}}\n{END}"))]);
    stage.project.write("server.sh", SERVER);
    let servers = json!({ "mcpServers": {
        "tiny": { "command": "bash", "args": [stage.project.path("server.sh")] },
        "gone": { "command": "/no/such/server" },
    } });
    stage.project.write("mcp.json", servers.to_string());
    stage.run("").prints("done\n").mentions(0, &["the MCP server gone is not available"]);
    let requests = stage.requests();
    let [first, last] = &requests[..] else { panic!("two requests: {requests:#?}") };
    // The client shows such tools by name only, until the model looks for them.
    assert!(first.system.contains("mcp__tiny__greet"), "{}", first.system);
    let outcome = last.conversation.iter().find(|said| said.role == Role::Outcome).unwrap();
    assert_eq!(outcome.text, "hello from the server");
    stage.leaves_nothing();
}
