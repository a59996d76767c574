//! `doctor`: its findings, its fixes, and that it changes nothing without `--fix`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use rustix::process::{Signal, geteuid};
use serde_json::{Value, json};

use crate::harness::{Project, until};

/// Returns the findings of one check: the verdict, the text and the remedy.
#[track_caller]
fn found(project: &Project, check: &str) -> Vec<(String, String, Option<String>)> {
    let output = project.raymond("doctor --json");
    let object = output.json();
    let checks = object["checks"].as_array().unwrap();
    let fails = checks.iter().any(|found| found["verdict"] == "fail");
    assert_eq!(output.code(), if fails { 7 } else { 0 }, "{output:?}");
    assert_eq!((&object["version"], &object["fixed"]), (&json!(1), &json!([])));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let about = checks.iter().filter(|found| found["check"] == check);
    let parts = |found: &Value| {
        (text(&found["verdict"]).unwrap(), text(&found["text"]).unwrap(), text(&found["remedy"]))
    };
    about.map(parts).collect()
}

/// The verdict and the text.
#[track_caller]
fn check(project: &Project, check: &str, expected: &[(&str, &str)]) {
    let found: Vec<(String, String)> =
        found(project, check).into_iter().map(|(verdict, text, _)| (verdict, text)).collect();
    let found: Vec<(&str, &str)> =
        found.iter().map(|(verdict, text)| (verdict.as_str(), text.as_str())).collect();
    assert_eq!(found, expected);
}

fn program(project: &Project, name: &str, script: &str) -> String {
    project.write(name, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(project.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    project.path(name).to_str().unwrap().to_owned()
}

/// A project whose client is this script.
fn with_client(script: &str) -> Project {
    let project = Project::of(&[]);
    let path = program(&project, "client", script);
    project.with("RAYMOND_CLAUDE", path)
}

const NO_CODEX: (&str, &str) = ("ok", "codex: not installed (only needed for `backend: codex`)");

#[test]
fn client_is_asked_only_for_its_version() {
    let project = with_client("echo \"$@\" >> \"$0.asked\"; echo '2.1.325 (Claude Code)'");
    check(&project, "client", &[("ok", "claude 2.1.325 (/project/client)"), NO_CODEX]);
    assert_eq!(project.read("client.asked"), "--version\n");
}

#[test]
fn client_without_an_answer_is_a_failure() {
    let project = Project::of(&[]);
    let missing = "could not find the client no-such-client on PATH";
    check(&project, "client", &[("fail", missing), NO_CODEX]);
    assert!(found(&project, "client")[0].2.as_ref().unwrap().starts_with("install Claude Code"));
    let project = project.with("RAYMOND_BACKEND", "scripted");
    check(&project, "client", &[("warn", missing), NO_CODEX]);
    let project = with_client("echo no node >&2; exit 3");
    let silent = "claude (/project/client) does not answer: exit status 3: no node";
    check(&project, "client", &[("fail", silent), NO_CODEX]);
    let project = with_client("yes");
    let endless = "claude (/project/client) does not answer: it printed more than 1 MiB";
    check(&project, "client", &[("fail", endless), NO_CODEX]);
}

#[test]
fn codex_is_checked_when_found_or_configured() {
    let claude = ("ok", "claude 2.1.325 (/project/client)");
    let with_codex = |version: &str| {
        let project = with_client("echo 2.1.325");
        program(&project, "bin/codex", &format!("echo codex-cli {version}"));
        let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").unwrap());
        project.with("PATH", path)
    };
    let found = ("ok", "codex 0.166.0 (/project/bin/codex)");
    check(&with_codex("0.166.0"), "client", &[claude, found]);
    let old = "the client codex (/project/bin/codex) is version 0.55.0, but Raymond needs 0.166.0 or later";
    check(&with_codex("0.55.0"), "client", &[claude, ("warn", old)]);
    let chosen = with_codex("0.55.0").with("RAYMOND_BACKEND", "codex");
    check(&chosen, "client", &[claude, ("fail", old)]);
    let missing = |name, value| with_client("echo 2.1.325").with(name, value);
    check(&missing("RAYMOND_BUDGET", "1"), "client", &[claude, NO_CODEX]);
    // A wrong path is reported in the same words as by a run.
    let nowhere = ("warn", "could not find a program at /nowhere");
    check(&missing("RAYMOND_CODEX", "/nowhere"), "client", &[claude, nowhere]);
    let misspelt = ("warn", "could not find the client codexx on PATH");
    check(&missing("RAYMOND_CODEX", "codexx"), "client", &[claude, misspelt]);
    let chosen = ("fail", "could not find the client codex on PATH");
    check(&missing("RAYMOND_BACKEND", "codex"), "client", &[claude, chosen]);
}

#[test]
fn missing_codex_home_is_reported() {
    let claude = ("ok", "claude 2.1.325 (/project/client)");
    let project = with_client("echo 2.1.325");
    let codex = program(&project, "codex", "echo codex-cli 0.166.0");
    let project = project.with("RAYMOND_CODEX", codex).with("CODEX_HOME", "/nowhere");
    let message = ("warn", "CODEX_HOME is /nowhere, but that directory does not exist");
    check(&project, "client", &[claude, message]);
    let chosen = project.with("RAYMOND_BACKEND", "codex");
    check(&chosen, "client", &[claude, ("fail", message.1)]);
    // Agents with a home each do not use it.
    chosen.write("raymond.toml", "config_home = \"per-agent\"");
    check(&chosen, "client", &[claude, ("ok", "codex 0.166.0 (/project/codex)")]);
}

#[test]
fn client_output_is_sanitized() {
    let project = with_client("printf '\\033[2J9\\033[1m\\n'");
    let output = project.raymond("doctor");
    let message = r#"does not answer: "\u{1b}[2J9\u{1b}[1m" is not a version of claude"#;
    assert!(output.stdout.contains(message), "{output:?}");
    let project = with_client("printf '\\033[2Jno node\\n' >&2; exit 3");
    let output = project.raymond("doctor");
    assert!(output.stdout.contains("exit status 3: \u{fffd}[2Jno node"), "{output:?}");
}

#[test]
fn missing_bash_or_git_is_reported() {
    let project = with_client("echo 9").with("PATH", "/nowhere");
    let bash = "bash is not on PATH, so scripts cannot run";
    check(&project, "bash", &[("fail", bash)]);
    let git = "git is not on PATH, so edits by agents cannot be distinguished from other changes";
    check(&project, "git", &[("warn", git)]);
}

#[test]
fn all_mistakes_of_the_configuration_are_named() {
    let project = with_client("echo 9");
    let home = project.path("home").display().to_string();
    let project = project.with("XDG_CONFIG_HOME", home);
    check(
        &project,
        "config",
        &[("ok", "home/raymond/config.toml (missing), raymond.toml (missing)")],
    );
    project.write("raymond.toml", "budget = 5\n");
    check(&project, "config", &[("ok", "home/raymond/config.toml (missing), raymond.toml")]);
    project.write("raymond.toml", "bugdet = 5\nmodel = 3\n");
    let mistakes = "raymond.toml:1:1: error: unknown key \"bugdet\" (did you mean budget?)\n\
                    raymond.toml:2:9: error: model: 3 is not a text in quotes";
    check(&project, "config", &[("fail", mistakes)]);
    let output = project.raymond("doctor");
    assert_eq!(output.code(), 7);
    let lines = "FAIL  config     raymond.toml:1:1: error: unknown key \"bugdet\" (did you mean budget?)\n                 raymond.toml:2:9";
    assert!(output.stdout.contains(lines), "{output:?}");
}

#[test]
fn runs_directory_must_be_ours_and_private() {
    let project = with_client("echo 9");
    check(&project, "storage", &[("ok", "/project can be written")]);
    assert!(!project.path(".raymond").exists(), "looking creates nothing");
    fs::create_dir(project.path(".raymond")).unwrap();
    let mode =
        |mode| fs::set_permissions(project.path(".raymond"), fs::Permissions::from_mode(mode));
    mode(0o700).unwrap();
    check(&project, "storage", &[("ok", ".raymond/ can be written")]);
    mode(0o755).unwrap();
    check(&project, "storage", &[("warn", ".raymond/ can be read by others (mode 755)")]);
    mode(0o500).unwrap();
    if geteuid().is_root() {
        chown(project.path(".raymond"), Some(12345), None).unwrap();
        let refused = "could not use /project/.raymond: it belongs to another user (12345)";
        project.raymond("doctor").prints("").mentions(7, &[refused]);
        chown(project.root(), Some(12345), None).unwrap();
        check(&project, "storage", &[("fail", ".raymond/ belongs to user 12345")]);
    } else {
        check(&project, "storage", &[("fail", ".raymond/ cannot be written")]);
    }
}

#[test]
fn missing_temporary_directory_is_a_failure() {
    let project = with_client("echo 9").with("TMPDIR", "/nowhere");
    check(&project, "temporary", &[("fail", "/nowhere cannot be written")]);
}

#[test]
fn root_is_warned_about_claude() {
    let text = "running as root: claude refuses --dangerously-skip-permissions";
    let warning: &[_] = &[("warn", text)];
    let expected = if geteuid().is_root() { warning } else { &[] };
    let project = || with_client("echo 9").with("IS_SANDBOX", "0");
    check(&project(), "root", expected);
    check(&project().with("RAYMOND_BACKEND", "codex"), "root", expected);
    check(&project().with("IS_SANDBOX", "1"), "root", &[]);
    // A variable that is not passed on does not help.
    let alone = project().with("IS_SANDBOX", "1").with("RAYMOND_ENVIRONMENT", "PATH");
    check(&alone, "root", expected);
    check(&Project::of(&[]).with("IS_SANDBOX", "0"), "root", &[]);
}

#[test]
fn machine_for_codex_alone_needs_no_claude() {
    let machine = |programs: &[&str]| {
        let project = Project::of(&[]);
        for name in programs {
            program(&project, &format!("bin/{name}"), "echo codex-cli 0.166.0");
        }
        let path = format!("{}:/bin:/usr/bin", project.path("bin").display());
        project.with("PATH", path).with("RAYMOND_CLAUDE", "claude").with("RAYMOND_BACKEND", "codex")
    };
    let no_claude = ("ok", "claude: not installed (only needed for `backend: claude`)");
    let codex = ("ok", "codex 0.166.0 (/project/bin/codex)");
    check(&machine(&["codex"]), "client", &[no_claude, codex]);
    let nothing = machine(&["other"]);
    check(&nothing, "client", &[no_claude, ("fail", "could not find the client codex on PATH")]);
    let remedy = found(&nothing, "client")[1].2.clone().unwrap();
    assert!(remedy.starts_with("install Codex"), "{remedy}");
    let played = nothing.with("RAYMOND_BACKEND", "scripted");
    check(&played, "client", &[no_claude, NO_CODEX]);
}

#[test]
fn configured_backend_must_exist() {
    let project = with_client("echo 2.1.325");
    let files = found(&project, "config").remove(0);
    let wrong = |origin: &str| {
        let text = format!("there is no backend \"codx\" ({origin})");
        ("fail".to_owned(), text, Some("did you mean `codex`?".to_owned()))
    };
    let project = project.with("RAYMOND_BACKEND", "codx");
    assert_eq!(found(&project, "config"), [files, wrong("RAYMOND_BACKEND")]);
    let project = with_client("echo 2.1.325");
    project.write("raymond.toml", "\nbackend = \"codx\"\n");
    assert_eq!(found(&project, "config")[1], wrong("raymond.toml:2"));
}

fn git(project: &Project, words: &str) {
    let set = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "init.defaultBranch=main"];
    let words: Vec<&str> = set.into_iter().chain(words.split_whitespace()).collect();
    assert_eq!(project.spawn("git", &words).wait().code(), 0, "{words:?}");
}

#[test]
fn uncommitted_edits_are_reported() {
    let project = with_client("echo 9");
    let none = "not a git repository: edits of agents cannot be distinguished from earlier files";
    check(&project, "git", &[("warn", none)]);
    project.write("wf/START.sh", "echo '<result>x</result>'");
    git(&project, "init -q");
    git(&project, "add .");
    git(&project, "commit -qm x");
    check(&project, "git", &[("ok", "clean")]);
    project.raymond("run wf --run-id r").prints("x\n");
    check(&project, "git", &[("ok", "clean")]);
    project.write("client", "changed");
    project.write("new", "");
    let dirty = "2 files not committed: edits of agents cannot be distinguished from these";
    check(&project, "git", &[("warn", dirty)]);
    fs::remove_file(project.path(".raymond/.gitignore")).unwrap();
    check(&project, "git", &[("warn", ".raymond/ is not ignored: runs would be committed")]);
}

/// A run whose owner was killed, and whose script continues.
fn orphaned() -> Project {
    let script = "touch held; sleep 301";
    let project = with_client("echo 9");
    project.write("wf/START.sh", script);
    let running = project.start("run wf --run-id r");
    until("the script runs", || project.path("held").exists());
    running.signal(Signal::KILL);
    running.wait();
    project
}

// proves: P6
#[test]
fn leftovers_are_ended_only_with_fix() {
    let project = orphaned();
    let [(verdict, text, remedy)] = &found(&project, "processes")[..] else {
        panic!("nothing left")
    };
    assert_eq!(verdict, "warn");
    assert!(text.starts_with("2 processes of r, which has no owner: bash "), "{text}");
    let way = "raymond resume r continues the run; raymond doctor --fix ends them";
    assert_eq!(remedy.as_deref(), Some(way));
    let (_, text, remedy) = &found(&project, "runs")[1];
    let way = (text.as_str(), remedy.as_deref());
    let interrupted = "r: interrupted: its owner died with 1 unfinished turn";
    assert_eq!(way, (interrupted, Some("raymond resume r")));
    assert_eq!(project.processes("r").len(), 2, "looking ends nothing");
    let records = project.records("r").len();
    project.raymond("doctor --fix").mentions(0, &["ended 2 processes of r"]);
    assert_eq!(project.processes("r"), [0; 0]);
    assert_eq!(project.records("r").len(), records, "nothing is recorded");
    check(&project, "processes", &[]);
    project
        .raymond("resume r --plan")
        .mentions(0, &[])
        .prints("r: reused 0 turns ($0.00), continuing 0, repeating 1\n  main             START.sh: repeating\n");
}

#[test]
fn driven_run_is_left_alone() {
    let project = with_client("echo 9");
    project.write("wf/START.sh", "touch held; sleep 301");
    let running = project.start("run wf --run-id r");
    until("the script runs", || project.path("held").exists());
    project.raymond("doctor --fix").says(0, "");
    check(&project, "processes", &[]);
    check(&project, "runs", &[("ok", "1 run: 1 running")]);
    assert_eq!(project.processes("r").len(), 2);
    project.raymond("stop r").mentions(0, &["stopped"]);
    running.wait();
}

#[test]
fn unreadable_and_never_started_runs_are_named() {
    let project = with_client("echo 9");
    project.write("wf/START.sh", "echo '<result>x</result>'");
    for run in ["good", "damaged"] {
        project.raymond(&format!("run wf --run-id {run}")).prints("x\n");
    }
    let journal = project.read(".raymond/runs/damaged/journal.jsonl");
    project.write(".raymond/runs/damaged/journal.jsonl", format!("{journal}junk\n"));
    project.write(".raymond/runs/header/journal.jsonl", "");
    project.write(".raymond/runs/header/console.log", "said");
    fs::create_dir(project.path(".raymond/runs/header/inbox")).unwrap();
    project.never_started("header");
    project.never_started("empty");
    project.write(".raymond/runs/foreign/journal.jsonl", "not ours\n");
    let runs = [("ok", "5 runs: 2 completed"), ("warn", "never started: empty, header")];
    check(&project, "runs", &runs);
    let journals = found(&project, "journal");
    let about = |place: usize| (journals[place].0.as_str(), journals[place].2.as_deref());
    assert_eq!(journals.len(), 2);
    assert!(journals[0].1.starts_with("damaged: its journal is damaged: record "), "{journals:?}");
    assert_eq!(about(0).0, "fail");
    assert!(about(0).1.unwrap().starts_with("raymond resume damaged --truncate-to "));
    assert!(journals[1].1.starts_with("foreign: this is not the journal"), "{journals:?}");
    let fixed = project.raymond("doctor --fix --json");
    let deeds = ["removed empty, which never started", "removed header, which never started"];
    assert_eq!(fixed.json()["fixed"], json!(deeds));
    check(&project, "runs", &[("ok", "3 runs: 2 completed")]);
    assert!(
        project.path(".raymond/runs/foreign").exists()
            && !project.path(".raymond/runs/empty").exists()
    );
}

#[test]
fn remote_owner_is_named_with_the_next_command() {
    let project = orphaned();
    let lock = ".raymond/runs/r/lock";
    let mut owner: Value = serde_json::from_str(&project.read(lock)).unwrap();
    owner["host"] = "elsewhere".into();
    owner["boot"] = "another".into();
    project.write(lock, format!("{owner}\n"));
    let (verdict, text, remedy) = &found(&project, "runs")[1];
    assert_eq!(verdict, "warn");
    assert!(text.ends_with("on elsewhere, which cannot be seen from here"), "{text}");
    assert!(remedy.as_ref().unwrap().ends_with("raymond resume r --takeover"), "{remedy:?}");
    project.raymond("doctor --fix").says(0, "");
    assert_eq!(project.processes("r").len(), 2, "their owner may still run");
    fs::remove_file(project.path(lock)).unwrap();
    project.raymond("doctor --fix").mentions(0, &["ended 2 processes of r"]);
}

#[test]
fn missing_ballast_is_reported() {
    let project = with_client("echo 9");
    project.write("wf/START.sh", "echo '<result>x</result>'");
    project.raymond("run wf").prints("x\n");
    let disk = || found(&project, "disk").into_iter().map(|(_, text, _)| text).collect::<Vec<_>>();
    assert!(disk().contains(&"transcripts take 0 bytes".to_owned()), "{:?}", disk());
    assert_eq!(disk().len(), 2);
    fs::remove_file(project.path(".raymond/ballast")).unwrap();
    let gone = "the ballast file is missing, so a full disk could lose an outcome".to_owned();
    assert!(disk().contains(&gone), "{:?}", disk());
}

/// A project and a copy of it. The copy was made while its run had no owner; now it has one again.
fn driven_with_a_copy() -> (Project, Project, crate::harness::Running) {
    let project = orphaned();
    let copy = with_client("echo 9");
    let (from, to) = (project.path(".raymond"), copy.path(".raymond"));
    let words = ["-a", from.to_str().unwrap(), to.to_str().unwrap()];
    assert_eq!(copy.spawn("cp", &words).wait().code(), 0);
    fs::remove_file(project.path("held")).unwrap();
    let running = project.start("resume r");
    until("the script runs again", || project.path("held").exists());
    (project, copy, running)
}

#[test]
fn run_of_a_copied_project_is_left_alone() {
    let (project, copy, running) = driven_with_a_copy();
    let place = project.path(".raymond/runs/r");
    let why = format!("process {} drives a copy of r: {}", running.pid(), place.display());
    copy.raymond("doctor --fix").says(0, "");
    check(&copy, "processes", &[("warn", &format!("r: leaving its processes alone: {why}"))]);
    let hint =
        "Raymond cannot distinguish its processes from those of this copy: end it there first";
    for words in ["resume r", "stop r"] {
        copy.raymond(words).says(6, &format!("raymond: {why}\nhint: {hint}"));
    }
    assert_eq!(project.processes("r").len(), 2);
    project.raymond("stop r").mentions(0, &["stopped"]);
    running.wait();
    copy.raymond("stop r").mentions(0, &["stopped"]);
}

#[test]
fn leftovers_of_linked_run_are_not_ended() {
    let project = orphaned();
    let other = with_client("echo 9");
    fs::create_dir_all(other.path(".raymond/runs")).unwrap();
    symlink(project.path(".raymond/runs/r"), other.path(".raymond/runs/r")).unwrap();
    other.raymond("doctor --fix").says(0, "");
    let why =
        "r: leaving its processes alone: /project/.raymond/runs/r is a link or not a directory";
    check(&other, "processes", &[("warn", why)]);
    assert_eq!(project.processes("r").len(), 2);
    project.raymond("doctor --fix").mentions(0, &["ended 2 processes of r"]);
}

#[test]
fn started_run_is_never_removed() {
    let project = with_client("echo 9");
    project.write("wf/START.sh", "echo '<result>x</result>'");
    let directory = project.path(".raymond/runs/r");
    let journal = directory.join("journal.jsonl");
    let change = |change: &dyn Fn(&str)| {
        project.raymond("run wf --run-id r").prints("x\n");
        let content = fs::read_to_string(&journal).unwrap();
        fs::remove_file(&journal).unwrap();
        change(&content);
        fs::File::open(&directory).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let (place, fixed) = ("/project/.raymond/runs/r", project.raymond("doctor --fix --json"));
        assert_eq!((fixed.code(), &fixed.json()["fixed"]), (7, &json!([])));
        check(&project, "journal", &[("fail", "r: the journal is missing or empty")]);
        let hint = format!(
            "hint: restore {place}/journal.jsonl from a copy; if there is none, check and delete {place}"
        );
        for words in ["prune r", "resume r", "status r"] {
            let said = format!("raymond: r: the journal is missing or empty\n{hint}");
            project.raymond(words).says(7, &said);
        }
        assert!(directory.join("inbox").exists());
        fs::remove_dir_all(&directory).unwrap();
        fs::remove_file(project.path(".raymond/state/r.json")).unwrap();
    };
    change(&|_| {});
    change(&|_| fs::write(&journal, "").unwrap());
    change(&|_| symlink("/nowhere", &journal).unwrap());
    let header = |content: &str| content.split_inclusive('\n').next().unwrap().to_owned();
    change(&|content| fs::write(&journal, header(content)).unwrap());
}

#[test]
fn starting_run_is_not_removed() {
    let project = with_client("echo 9");
    fs::create_dir_all(project.path(".raymond/runs/young")).unwrap();
    project.raymond("doctor --fix").says(0, "");
    assert!(project.path(".raymond/runs/young").exists());
    project.never_started("young");
    project.raymond("doctor --fix").says(0, "removed young, which never started");
}
