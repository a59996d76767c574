//! A workspace, the clients, and the server.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use raymond_testkit::private_command::bare_command;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Where the clients are, as `cargo xtask test mcp` installs them.
pub(crate) fn clients() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place =
        env::var_os("RAYMOND_TEST_MCP").map_or_else(|| workspace.join("target/mcp"), PathBuf::from);
    assert!(place.exists(), "{} is missing; install with cargo xtask test mcp", place.display());
    place.canonicalize().unwrap()
}

/// A workspace with a home of its own.
pub(crate) struct Stage {
    directory: TempDir,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Streams,
    Http,
}

pub(crate) const CARRIERS: [Carrier; 2] = [Carrier::Streams, Carrier::Http];

/// A server over HTTP, ended with this value.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl Stage {
    pub(crate) fn new() -> Self {
        let stage = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(stage.workspace()).unwrap();
        fs::create_dir(stage.directory.path().join("home")).unwrap();
        stage
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    /// The command line of the server over streams.
    pub(crate) fn command_line(&self) -> Vec<String> {
        let workspace = self.workspace().display().to_string();
        [env!("CARGO_BIN_EXE_raymond"), "mcp", "--workspace", &workspace]
            .map(str::to_owned)
            .to_vec()
    }

    /// A program with a clean environment, started away from the workspace.
    pub(crate) fn program(&self, path: impl AsRef<Path>) -> Command {
        let mut command = bare_command(path.as_ref(), &self.directory.path().join("home"));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// A server that listens.
    pub(crate) fn listening(&self) -> Server {
        let line = self.command_line();
        let mut command = self.program(&line[0]);
        command.args(&line[1..]).args(["--http", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let address = said.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{said}"));
        Server { process, address: address.to_owned() }
    }
}

/// Returns the stdout of a successful command.
#[track_caller]
pub(crate) fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The workflow of the specification: a program, a question, a program.
pub(crate) fn minimal() -> Value {
    json!({
        "name": "agent-test",
        "version": 1,
        "steps": [
            { "id": "a", "kind": "exec", "shell": "echo pre >> ran; echo pre" },
            {
                "id": "v",
                "kind": "agent",
                "prompt": "Return STRICT JSON {foo:string} only.",
                "input": { "x": 1 },
                "schema": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["foo"],
                    "properties": { "foo": { "type": "string" } },
                },
                "retries": 3,
            },
            { "id": "b", "kind": "exec", "shell": "echo post >> ran; echo post" },
        ],
    })
}
