//! A client that is missing, too old, or replaced while a run waits for it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;

use crate::clients;
use crate::kills::audit::{Lost, holds};
use crate::kills::scene::{FLAGS, Kind, Scene, kill_clients};
use crate::stage::Stage;

/// A client that reports another version, or the version of another program.
pub(crate) struct Other<'a> {
    pub(crate) client: &'a str,
    /// The output of `--version`.
    pub(crate) said: &'a str,
}

impl Other<'_> {
    /// Returns the entry of the environment that names it.
    pub(crate) fn install(&self, stage: &Stage) -> String {
        let Self { client, said } = self;
        let (path, real) = (stage.home().join(said.replace(' ', "-")), clients::installed(client));
        let script = format!(
            "#!/bin/sh\ntest \"$1\" = --version && echo '{said}' && exit\nexec {} \"$@\"\n",
            real.display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        format!("RAYMOND_{}={}", client.to_uppercase(), path.display())
    }
}

/// Installs a client that reports this version of Claude.
fn install_claude_version(stage: &Stage, version: &str) -> String {
    let said = format!("{version} (Claude Code)");
    Other { client: "claude", said: &said }.install(stage)
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn doctor_names_client_versions_without_a_request() {
    let stage = Stage::new();
    let doctor = stage.raymond("doctor --json");
    let checks = doctor.json()["checks"].take();
    let checks = checks.as_array().unwrap().iter();
    let found: Vec<(&str, &str)> = checks
        .filter(|check| check["check"] == "client")
        .map(|check| (check["verdict"].as_str().unwrap(), check["text"].as_str().unwrap()))
        .collect();
    let line = |name: &str| {
        format!("{name} {} ({})", clients::version(name), clients::installed(name).display())
    };
    let (claude, codex) = (line("claude"), line("codex"));
    assert_eq!(found, [("ok", claude.as_str()), ("ok", codex.as_str())]);
    doctor.mentions(0, &[]);
    assert_eq!(stage.model.requests(), []);
    stage.leaves_nothing();

    let silent = stage.home().join("silent");
    fs::write(&silent, "#!/bin/sh\nexit 3\n").unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).unwrap();
    let stage = stage.with(&format!("RAYMOND_CODEX={}", silent.display()));
    let doctor = stage.raymond("doctor");
    assert!(doctor.stdout.contains(&claude), "{doctor:?}");
    assert!(doctor.stdout.contains(&format!("codex ({}) does not answer", silent.display())));
}

const MISSING: &str = "could not find the client no-such-client on PATH";
const TOO_OLD: &str = ") is version 2.1.308, but Raymond needs 2.1.309 or later";

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn missing_or_old_client_is_rejected_before_spending() {
    let check = |entry: fn(&Stage) -> String, message: &str, hint: &str| {
        let stage = Stage::prompts(&[("START", "model: say <result>done</result>")]);
        let entry = entry(&stage);
        let stage = stage.with(&entry);
        let message = format!("{message}\n");
        stage
            .run("")
            .prints("")
            .mentions(7, &["raymond: could not use claude for START.md: ", &message, hint]);
        assert_eq!(stage.model.requests(), []);
        stage.raymond("status r").mentions(2, &[]);
    };
    let missing = |_: &Stage| "RAYMOND_CLAUDE=no-such-client".to_owned();
    check(missing, MISSING, "hint: install Claude Code (npm install -g");
    check(
        |stage| install_claude_version(stage, "2.1.308"),
        TOO_OLD,
        "hint: install a newer version (npm install",
    );
    let mixed_up = |_: &Stage| format!("RAYMOND_CLAUDE={}", clients::codex().display());
    let codex = clients::codex().display().to_string();
    let message = format!(
        "could not read the version of claude ({codex}): {:?} is not a version of claude",
        clients::printed_version("codex")
    );
    check(mixed_up, &message, &format!("hint: try `{codex} --version`, then set `claude`"));
}

#[test]
#[ignore = "needs the real clients: cargo xtask test real"]
fn changed_client_version_is_noted_on_resume() {
    let scene = Scene::new(Kind::Resumed);
    let running = scene.stage.start_run(FLAGS);
    scene.stage.reaches("first");
    running.signal(Signal::KILL);
    running.wait();
    kill_clients(&scene.stage);
    scene.open_all_gates();
    let scene = scene.with("RAYMOND_CLAUDE=no-such-client");
    scene.stage.raymond("resume r").prints("").mentions(7, &[MISSING]);
    let old = install_claude_version(&scene.stage, "2.1.308");
    let scene = scene.with(&old);
    scene.stage.raymond("resume r").prints("").mentions(7, &[TOO_OLD]);
    assert_eq!(scene.stage.events("run_resumed").len(), 0, "nothing was recorded");
    let newer = install_claude_version(&scene.stage, "99.0.0");
    let scene = scene.with(&newer);
    let output = scene.stage.raymond("resume r");
    let installed = clients::version("claude");
    let note = format!("raymond: claude changed from version {installed} to 99.0.0\n");
    output.mentions(0, &[&note]);
    holds(&scene, Lost::Known(0), &output);
    let recorded = |event: &str| scene.stage.events(event)[0]["settings"]["clients"].clone();
    assert_eq!(recorded("run_started")["claude"], *installed);
    assert_eq!(recorded("run_resumed")["claude"], "99.0.0");
}
