//! The MCP Inspector as a command that sends one request and prints the answer.

use std::process::Output;

use serde_json::{Value, json};

use crate::stage::{CARRIERS, Carrier, Server, Stage, clients, minimal, printed};

const ERAS: [&str; 2] = ["legacy", "modern"];

struct Inspector<'s> {
    stage: &'s Stage,
    server: Option<Server>,
    era: &'static str,
}

impl<'s> Inspector<'s> {
    fn new(stage: &'s Stage, carrier: Carrier, era: &'static str) -> Self {
        let server = (carrier == Carrier::Http).then(|| stage.listening());
        Self { stage, server, era }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let script = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        let bin = clients().join("bin");
        let mut command = self.stage.program(bin.join("node"));
        // The Inspector starts further processes.
        command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        command.arg(clients().join(script)).arg("--cli");
        match &self.server {
            None => command.args(self.stage.command_line()),
            Some(server) => command.args([&server.address, "--transport", "http"]),
        };
        command.args(["--protocol-era", self.era]).args(arguments).output().unwrap()
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        let text = printed(&output);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The steps of the run, with their states.
    fn steps(&self) -> Value {
        let uri = "raymond://runs/inspected";
        let read = self.ask(&["--method", "resources/read", "--uri", uri]);
        let text = read["contents"][0]["text"].as_str().unwrap();
        let record: Value = serde_json::from_str(text).unwrap();
        let steps = record["steps"].as_array().unwrap_or_else(|| panic!("{record:#}"));
        steps.iter().map(|step| json!([step["key"], step["state"]])).collect()
    }

    fn call(&self, arguments: &Value) -> Output {
        let pairs = arguments.as_object().unwrap().iter();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            })
            .collect();
        let mut words = vec!["--method", "tools/call", "--tool-name", "crayfish"];
        for pair in &pairs {
            words.extend(["--tool-arg", pair]);
        }
        self.run(&words)
    }
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn strict_inspection_finds_no_problems() {
    let stage = Stage::new();
    for (carrier, era) in CARRIERS.into_iter().flat_map(|c| ERAS.map(|era| (c, era))) {
        let inspector = Inspector::new(&stage, carrier, era);
        let output = inspector.run(&["--method", "tools/list", "--strict"]);
        let listed: Value = serde_json::from_str(&printed(&output)).unwrap();
        assert_eq!(listed["tools"][0]["name"], "crayfish");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{carrier:?} {era}");
    }
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn workflow_continues_after_its_question() {
    for (carrier, era) in CARRIERS.into_iter().flat_map(|c| ERAS.map(|era| (c, era))) {
        let stage = Stage::new();
        let inspector = Inspector::new(&stage, carrier, era);
        let mut request = json!({ "workflow": minimal(), "runId": "inspected" });
        let asked = printed(&inspector.call(&request));
        let asked: Value = serde_json::from_str(&asked).unwrap();
        let requests = &asked["structuredContent"]["requests"];
        assert_eq!(requests[0]["requestId"], "inspected:v:1", "{asked:#}");
        assert_eq!(inspector.steps(), json!([["a", "done"], ["v", "asked"]]));
        request["agentOutputs"] = json!({ "inspected:v:1": { "foo": "bar" } });
        let done: Value = serde_json::from_str(&printed(&inspector.call(&request))).unwrap();
        assert_eq!(done["structuredContent"]["status"], "done", "{done:#}");
        let ran = std::fs::read_to_string(stage.workspace().join("ran")).unwrap();
        assert_eq!(ran, "pre\npost\n", "nothing runs twice");

        let resources = inspector.ask(&["--method", "resources/list"]);
        assert_eq!(resources["resources"][0]["uri"], "raymond://runs/inspected");
        assert_eq!(inspector.steps(), json!([["a", "done"], ["v", "done"], ["b", "done"]]));
    }
}

#[test]
#[ignore = "needs the MCP clients: cargo xtask test mcp"]
fn failures_and_prompts_look_right() {
    let stage = Stage::new();
    for era in ERAS {
        let inspector = Inspector::new(&stage, Carrier::Streams, era);
        let failed = inspector.call(&json!({ "workflow": { "steps": [{ "id": "a" }] } }));
        let text = String::from_utf8_lossy(&failed.stdout);
        let failed: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert_eq!(failed["isError"], true);
        assert_eq!(failed["structuredContent"]["error"], "invalid_workflow");

        let prompts = inspector.ask(&["--method", "prompts/list"]);
        assert_eq!(prompts["prompts"][0]["name"], "crayfish");
        let arguments = ["--method", "prompts/get", "--prompt-name", "crayfish", "--prompt-args"];
        let prompt = inspector.ask(&[&arguments[..], &["task=count sheep"]].concat());
        let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.ends_with("count sheep\n"), "{text}");
        let templates = inspector.ask(&["--method", "resources/templates/list"]);
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "raymond://runs/{run}");
    }
}
