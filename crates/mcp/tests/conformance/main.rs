//! The official conformance suite, against this server over HTTP.
//!
//! Most of its scenarios call tools, prompts and resources that only a test server has:
//! [`fixtures`] adds them to those of the product. Expected failures are in `expected-*.yaml`, each
//! with its reason. `cargo xtask test mcp` installs the suite and runs this.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod fixtures;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};

use raymond_core::crayfish::envelope::CallReply;
use raymond_core::ids::RunId;
use raymond_core::run::Settings;
use raymond_engine::call::{CallChannels, RawRequest, Tool, Workspaces};
use raymond_engine::project::Project;
use raymond_mcp::{Server, ToolHost, http};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use fixtures::Fixtures;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Serves the tool in a directory, without journals.
struct Bare(PathBuf);

impl ToolHost for Bare {
    fn call(&self, sent: RawRequest, channels: CallChannels) -> CallReply {
        let workspaces = Workspaces { given: Some(self.0.clone()), ..Workspaces::default() };
        let tool = Tool { workspaces, settings: Settings::default(), registry: None };
        runtime().block_on(tool.call(sent, channels))
    }

    fn project(&self, _agent: Option<&str>) -> Result<Project, String> {
        Project::locate(&self.0).map_err(|error| error.to_string())
    }

    fn summary(&self, run: &RunId) -> String {
        run.to_string()
    }

    fn record(&self, _run: &RunId) -> Result<Option<Json>, String> {
        Ok(None)
    }
}

/// Returns the directory in which `cargo xtask test mcp` installs the suite.
fn clients() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place =
        env::var_os("RAYMOND_TEST_MCP").map_or_else(|| workspace.join("target/mcp"), PathBuf::from);
    assert!(place.exists(), "{} is missing; install with cargo xtask test mcp", place.display());
    place.canonicalize().unwrap()
}

fn expected(revision: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    here.join(format!("expected-{revision}.yaml"))
}

#[expect(clippy::disallowed_methods, reason = "a test starts the suite")]
fn suite(revision: &str, address: &str, home: &Path) -> Command {
    let script = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let mut command = Command::new(clients().join("bin/node"));
    command.env_clear().env("HOME", home).current_dir(home).stdin(Stdio::null());
    command.arg(clients().join(script)).args(["server", "--url", address]);
    command.args(["--requirements", revision, "--output-dir", "results", "--expected-failures"]);
    command.arg(expected(revision));
    command
}

/// Runs the suite of a revision: exactly the expected scenarios fail.
fn play(revision: &'static str) {
    let home = tempfile::tempdir().unwrap();
    let ending = CancellationToken::new();
    let server = Server::new(Arc::new(Bare(home.path().to_owned())), ending.clone());
    let (listens, listening) = mpsc::channel();
    let serving = ending.clone();
    let served = std::thread::spawn(move || {
        runtime().block_on(async move {
            let listener = http::listen("127.0.0.1:0".parse().unwrap(), &[]).await.unwrap();
            listens.send(listener.local_addr().unwrap()).unwrap();
            http::serve(Fixtures::new(server), listener, &[], serving).await;
        });
    });
    let address = format!("http://{}{}", listening.recv().unwrap(), http::PATH);
    let output = suite(revision, &address, home.path()).output().unwrap();
    ending.cancel();
    served.join().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("passed"), "{said}");
}

#[test]
#[ignore = "needs the conformance suite: cargo xtask test mcp"]
fn older_protocol_version_conforms() {
    play("2025-11-25");
}

#[test]
#[ignore = "needs the conformance suite: cargo xtask test mcp"]
fn newer_protocol_version_conforms() {
    play("2026-07-28");
}

#[test]
fn every_expected_failure_has_its_reason() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let text = std::fs::read_to_string(expected(revision)).unwrap();
        for line in text.lines().filter(|line| line.trim_start().starts_with("- ")) {
            let reason = line.split_once(" # ").map_or("", |(_, reason)| reason);
            assert!(reason.split_whitespace().count() > 3, "{revision}: {line:?} has no reason");
        }
    }
}
