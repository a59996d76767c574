//! The client of the Python library: callbacks, progress, and calls that are given up.
//!
//! Its half of each test is a function in `client.py`, which fails by itself.

use std::path::Path;

use crate::stage::{CARRIERS, Carrier, Stage, clients, minimal, printed};

/// Plays one function against a server, in both eras.
fn play(name: &str) {
    for (carrier, mode) in CARRIERS.into_iter().flat_map(|c| ["legacy", "auto"].map(|m| (c, m))) {
        let stage = Stage::new();
        let server = (carrier == Carrier::Http).then(|| stage.listening());
        let target = match &server {
            None => serde_json::json!({ "command": stage.command_line() }),
            Some(server) => serde_json::json!({ "url": server.address }),
        };
        let told = serde_json::json!({
            "target": target,
            "mode": mode,
            "workspace": stage.workspace(),
            "minimal": minimal(),
        });
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
        let mut command = stage.program(clients().join("python/bin/python"));
        let output = command.arg(script).arg(name).arg(told.to_string()).output().unwrap();
        assert_eq!(printed(&output), format!("{name}: fine\n"), "{carrier:?} {mode}");
    }
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn a_caller_answers_in_its_own_calls() {
    play("needs_agent");
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn progress_is_told() {
    play("progress");
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn a_call_that_is_given_up_leaves_no_process() {
    play("cancel");
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn a_model_answers_in_rounds() {
    play("sampling");
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn a_person_answers_in_rounds() {
    play("elicitation");
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn handles_that_are_not_ours_are_refused() {
    play("handles");
}
