//! `completions`: the candidates that a shell gets.

use crate::harness::Project;

/// Returns the completions of bash after these words; the last word may be incomplete.
#[track_caller]
fn offered(project: &Project, words: &[&str]) -> Vec<String> {
    let script = r#"
        PATH="${1%/*}:$PATH"; shift
        source <(raymond completions bash) || exit
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        _clap_complete_raymond raymond "${COMP_WORDS[COMP_CWORD]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut all = vec!["--norc", "-c", script, "bash", env!("CARGO_BIN_EXE_raymond"), "raymond"];
    all.extend(words);
    let output = project.spawn("bash", &all).wait();
    output.says(0, "");
    output.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn project() -> Project {
    let project = Project::of(&[
        ("flows/good/START.sh", "echo '<result>fine</result>'"),
        ("flows/good/MORE.sh", "more"),
        ("flows/good/README.md", "about it"),
        ("flows/bad/1_START.sh", "exit 1"),
        ("flows/old.zip", ""),
        ("flows/.hidden/START.md", ""),
        ("flows/notes.txt", ""),
        ("flows/notes.md", ""),
        ("two words/START.md", ""),
    ]);
    project.raymond("run flows/good --run-id good-1").mentions(0, &[]);
    project.raymond("run flows/bad --run-id bad-1").mentions(1, &[]);
    project.raymond("run flows/bad --run-id bad-2").mentions(1, &[]);
    project
}

#[test]
fn runs_are_offered_last_one_first() {
    let project = project();
    let check = |words: &[&str], expected: &[&str]| assert_eq!(offered(&project, words), expected);
    check(&["status", ""], &["bad-2", "bad-1", "good-1", "@last"]);
    check(&["show", "g"], &["good-1"]);
    check(&["logs", "@"], &["@last"]);
    check(&["logs", "@l"], &["@last"]);
    check(&["why", "x"], &[]);
    // Resumable runs come first; other runs are offered after their first letters.
    check(&["resume", ""], &["bad-2", "bad-1", "@last"]);
    check(&["resume", "--budget", "5", "bad-1"], &["bad-1"]);
    check(&["resume", "go"], &["good-1"]);
    check(&["stop", ""], &["bad-2", "bad-1", "good-1", "@last"]);
    check(&["status", "good-1", "--j"], &["--json"]);
}

#[test]
fn only_running_runs_are_offered_to_stop() {
    let project =
        Project::of(&[("wf/START.sh", "touch held; read < go"), ("x/START.sh", "exit 1")]);
    assert_eq!(project.spawn("mkfifo", &["go"]).wait().code(), 0);
    project.raymond("run x --run-id dead").mentions(1, &[]);
    let running = project.start("run wf --run-id alive");
    crate::harness::until("it runs", || project.path("held").exists());
    for command in ["stop", "cancel", "attach"] {
        assert_eq!(offered(&project, &[command, ""]), ["alive", "@last"], "{command}");
    }
    assert_eq!(offered(&project, &["resume", ""]), ["dead", "@last"]);
    project.raymond("stop alive").mentions(0, &[]);
    running.wait();
}

#[test]
fn registered_projects_are_offered_to_forget() {
    let project = project();
    assert_eq!(offered(&project, &["projects", "f"]), ["forget"]);
    assert_eq!(offered(&project, &["projects", "forget", ""]), ["/project"]);
    assert_eq!(offered(&project, &["projects", "forget", "x"]), [""; 0]);
    project.raymond("projects forget .").mentions(0, &[]);
    assert_eq!(offered(&project, &["projects", "forget", "/"]), [""; 0]);
}

#[test]
fn values_of_flags_and_prompts_are_completed() {
    let project = project();
    project.write("LOOP.md", "again");
    let check = |words: &[&str], expected: &[&str]| assert_eq!(offered(&project, words), expected);
    check(&["ralph", ""], &["LOOP.md", "flows/", "two words/"]);
    check(&["ralph", "flows/"], &["flows/bad/", "flows/good/", "flows/notes.md"]);
    check(&["logs", "--agent", ""], &["main"]);
    check(&["logs", "--state", ""], &["1_START"]);
    check(&["logs", "good-1", "--state", "S"], &["START"]);
    check(&["init", "--from", "tit"], &["title"]);
}

#[test]
fn workflows_are_offered_by_path() {
    let project = project();
    let check = |words: &[&str], expected: &[&str]| assert_eq!(offered(&project, words), expected);
    check(&["run", ""], &["flows/", "two words/"]);
    check(&["run", "flows/"], &["flows/bad/", "flows/good/", "flows/old.zip"]);
    check(&["run", "./flows/b"], &["./flows/bad/"]);
    check(&["run", "flows/good/"], &["flows/good/MORE.sh", "flows/good/START.sh"]);
    // A file outside of a workflow is offered only after its first letters.
    check(&["run", "flows/n"], &["flows/notes.md"]);
    check(&["run", "flows/.h"], &["flows/.hidden/"]);
    check(&["run", "nowhere/"], &[]);
    let absolute = format!("{}/flows/g", project.root().display());
    check(&["run", &absolute], &[&format!("{}/flows/good/", "/project")]);
    // `run` is optional.
    check(&["flows/go"], &["flows/good/"]);
    check(&["flows/good", "--bud"], &["--budget"]);
}

#[test]
fn documents_are_offered_after_their_first_letter() {
    let project = project();
    project.write("digest.json", "{}");
    project.write("flows/package.json", "{}");
    let check = |words: &[&str], expected: &[&str]| assert_eq!(offered(&project, words), expected);
    // A JSON file is offered only after its first letter: most of them are not workflows.
    check(&["run", ""], &["flows/", "two words/"]);
    check(&["run", "d"], &["digest.json"]);
    check(&["crayfish", "validate", ""], &["digest.json", "flows/", "two words/"]);
    check(&["crayfish", "explain", "flows/"], &["flows/bad/", "flows/good/", "flows/package.json"]);
    check(&["crayfish", "schema", ""], &["document", "request", "reply"]);
    check(&["crayfish", "v"], &["validate"]);
    check(&["run", "digest.json", "--sch"], &["--schema-path"]);
}

#[test]
fn hidden_flags_are_never_offered() {
    let project = project();
    let commands = offered(&project, &[""]);
    for command in ["run", "resume", "logs", "completions", "help", "two words/"] {
        assert!(commands.iter().any(|offer| offer == command), "{commands:?}");
    }
    assert!(!commands.iter().any(|offer| offer.starts_with('-')), "{commands:?}");
    assert_eq!(offered(&project, &["comp"]), ["completions"]);
    let shells = ["bash", "zsh", "fish", "elvish", "powershell"];
    assert_eq!(offered(&project, &["completions", ""]), shells);
    assert_eq!(offered(&project, &["cost", "--by", ""]), ["state", "model", "backend", "workflow"]);
    let flags = offered(&project, &["resume", "bad-1", "--"]);
    assert!(flags.contains(&"--with-current".to_owned()), "{flags:?}");
    assert!(!flags.contains(&"--detached-as".to_owned()), "{flags:?}");
    assert!(!flags.contains(&"--input".to_owned()), "{flags:?}");
}

#[test]
fn unreadable_runs_leave_only_flags_to_offer() {
    let project = Project::of(&[(".raymond/runs", "a file")]);
    let flags = offered(&project, &["resume", ""]);
    assert!(flags.iter().all(|offer| offer.starts_with("--")), "{flags:?}");
    let project = Project::of(&[(".raymond/runs/broken/journal.jsonl", "not ours\n")]);
    assert_eq!(offered(&project, &["resume", ""]), ["broken", "@last"]);
}

#[test]
fn completion_scripts_load_in_installed_shells() {
    let project = Project::of(&[]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = project.raymond(&format!("completions {shell}")).stdout;
        assert!(script.contains("RAYMOND_COMPLETE"), "{shell}: {script}");
        if ["bash", "zsh", "fish"].contains(&shell) && is_here(shell) {
            project.write("script", &script);
            let loaded = project.spawn(shell, &["-n", "script"]).wait();
            assert_eq!(loaded.code(), 0, "{shell}: {loaded:?}");
        }
    }
    project.raymond("completions tcsh").mentions(2, &["invalid value 'tcsh'"]);
}

fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|place| place.join(program).is_file())
}

#[test]
fn bash_quotes_inserted_text() {
    let project = Project::of(&[("a;touch PWNED;/START.sh", "x"), ("new\nline/START.sh", "x")]);
    let script = project.raymond("completions bash").stdout;
    let registered = script.lines().filter(|line| line.trim_start().starts_with("complete "));
    assert!(registered.clone().count() > 0);
    for line in registered {
        assert!(line.contains(" -o filenames "), "{line}");
    }
    assert_eq!(offered(&project, &["run", ""]), ["a;touch PWNED;/"]);
}
