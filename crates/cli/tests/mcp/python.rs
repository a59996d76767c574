//! The client of the Python library: callbacks, progress, and cancelled calls.
//!
//! The client side of each test is a function in `client.py` with its own assertions.

use std::path::Path;

use serde_json::json;

use crate::stage::{CARRIERS, Carrier, Stage, clients, minimal, printed};

/// Plays one function against a server over each carrier and in each era, in one process, because
/// the library loads slowly.
fn play(name: &str) {
    let modes = ["legacy", "auto"];
    let stages: Vec<(Stage, Carrier, &str)> = CARRIERS
        .into_iter()
        .flat_map(|carrier| modes.map(|mode| (Stage::new(), carrier, mode)))
        .collect();
    let mut servers = Vec::new();
    let mut plays = Vec::new();
    for (stage, carrier, mode) in &stages {
        let target = match carrier {
            Carrier::Streams => json!({ "command": stage.command_line() }),
            Carrier::Http => {
                servers.push(stage.listening());
                json!({ "url": servers.last().unwrap().address })
            }
        };
        plays.push(json!({ "target": target, "mode": mode, "workspace": stage.workspace() }));
    }
    let settings = json!({ "plays": plays, "minimal": minimal() });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
    let mut command = stages[0].0.program(clients().join("python/bin/python"));
    let output = command.arg(script).arg(name).arg(settings.to_string()).output().unwrap();
    assert_eq!(printed(&output), format!("{name}: fine 4 times\n"));
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn caller_answers_in_later_calls() {
    play("needs_agent");
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn progress_is_reported() {
    play("progress");
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn abandoned_call_leaves_no_process() {
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
fn foreign_handles_are_rejected() {
    play("handles");
}
