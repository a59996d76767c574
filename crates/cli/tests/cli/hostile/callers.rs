//! A client of the tool that sends more than Raymond can answer.

use std::fs::{self, File};
use std::io::Write as _;

use serde_json::{Value, json};

use crate::harness::{Project, until};

/// How many calls run or wait at a time, as docs/mcp.md says.
const TAKEN: usize = 32 + 64;

fn call(id: usize) -> Value {
    let steps = json!([{ "id": "a", "kind": "exec", "shell": "sleep 600" }]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({ "workflow": { "steps": steps } });
    let params = json!({ "name": "crayfish", "arguments": arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

// proves: S44
#[test]
fn many_calls_take_bounded_memory() {
    let sent = 1_000;
    let project = Project::of(&[]);
    let (input, mut calls) = std::io::pipe().unwrap();
    let answers = File::create(project.path("answers")).unwrap();
    let server = project.start_between(input, answers, "mcp");
    for id in 0..sent {
        writeln!(calls, "{}", call(id)).unwrap();
    }
    let answered = || project.read("answers").lines().count();
    until("all others are refused", || answered() == sent - TAKEN);
    for line in project.read("answers").lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert_eq!(answer["error"]["code"], -32050, "{answer}");
    }
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    // Without optimisation a running call takes up to 3 MB, and a thousand of them took 2 GB.
    assert!(peak < 500_000, "{peak} kB");
    drop(calls);
    assert_eq!(server.wait().code(), 0);
}
