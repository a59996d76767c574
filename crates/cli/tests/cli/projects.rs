//! The registry of projects: `raymond projects` and `raymond list --all`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Output, Project, until};

/// A project with a workflow that succeeds and one that fails.
fn project() -> Project {
    Project::of(&[
        ("good/START.sh", "echo '<result>fine</result>'"),
        ("bad/START.sh", "exit 1"),
        ("PROMPT.md", "Say it."),
        ("replies.yaml", "PROMPT: <result>said</result>"),
    ])
}

/// Another project of the same user.
fn beside(user: &Project) -> Project {
    project().with("XDG_STATE_HOME", state_of(user).display().to_string())
}

fn state_of(user: &Project) -> PathBuf {
    user.home().join("state")
}

/// The files of the registry.
fn entries(user: &Project) -> Vec<PathBuf> {
    let directory = state_of(user).join("raymond/projects");
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// The registered directories.
fn registered(user: &Project) -> Vec<PathBuf> {
    let path = |entry: &PathBuf| {
        let entry: Value = serde_json::from_slice(&fs::read(entry).unwrap()).unwrap();
        PathBuf::from(entry["path"].as_str().unwrap())
    };
    entries(user).iter().map(path).collect()
}

/// The words of each line of stdout.
fn table(output: &Output) -> Vec<Vec<&str>> {
    output.stdout.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn project_is_registered_only_in_the_private_home() {
    let project = project();
    project.raymond("run good").prints("fine\n");
    assert_eq!(registered(&project), [project.root()]);
    let entry = &entries(&project)[0];
    assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // The registry of the developer who runs this test.
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    for directory in state.into_iter().chain(home) {
        let theirs = directory.join("raymond/projects").join(entry.file_name().unwrap());
        assert!(!theirs.exists(), "{}", theirs.display());
    }
}

#[test]
fn every_command_that_owns_runs_registers_its_project() {
    let check = |words: &str| {
        let project = project();
        let code = project.raymond(words).code();
        assert_eq!((code, registered(&project)), (0, vec![project.root()]), "{words}");
    };
    check("ralph PROMPT.md --replies replies.yaml");
    check("init");
    check("init --from title");
    let project = project();
    project.raymond("run bad --run-id r").mentions(1, &[]);
    fs::remove_dir_all(state_of(&project)).unwrap();
    project.raymond("resume r").mentions(1, &[]);
    assert_eq!(registered(&project), [project.root()]);
    fs::remove_dir_all(state_of(&project)).unwrap();
    project.raymond("run good --run-id s -d").prints("s\n");
    project.raymond("wait s").prints("fine\n");
    until("it is registered", || registered(&project) == [project.root()]);
    fs::remove_dir_all(state_of(&project)).unwrap();
    let step = json!({ "id": "a", "kind": "exec", "shell": "true" });
    let mut request = json!({ "workflow": { "steps": [step] } });
    project.sends(request.to_string(), "crayfish").mentions(0, &[]);
    assert_eq!(entries(&project), [""; 0].map(PathBuf::from), "a call without a run");
    request["runId"] = json!("call");
    project.sends(request.to_string(), "crayfish").mentions(0, &[]);
    assert_eq!(registered(&project), [project.root()]);
}

#[test]
fn commands_that_start_nothing_register_nothing() {
    let project = project();
    let words = [
        "run nowhere",
        "run good --backend nobody",
        "list",
        "list --all",
        "projects",
        "config",
        "init --list",
        "init --dry-run",
    ];
    for words in words {
        project.raymond(words);
        assert!(!state_of(&project).exists(), "{words}");
    }
}

#[test]
fn registry_is_switched_off_by_the_configuration() {
    let quiet = project();
    quiet.write("raymond.toml", "registry = false");
    quiet.raymond("run good --run-id r").prints("fine\n");
    quiet.raymond("init").mentions(0, &[]);
    assert!(!state_of(&quiet).exists());
    // An explicit command still registers it.
    quiet.raymond("projects add").mentions(0, &["registered "]);
    assert_eq!(registered(&quiet), [quiet.root()]);
    let quiet = project().with("RAYMOND_REGISTRY", "false");
    quiet.raymond("run good --run-id r").prints("fine\n");
    assert!(!state_of(&quiet).exists());
    let rows = quiet.raymond("config --json").json();
    let rows = rows["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == "registry").unwrap();
    assert_eq!(row, &json!({ "key": "registry", "value": false, "origin": "RAYMOND_REGISTRY" }));
}

#[test]
fn unwritable_home_is_a_note_of_verbose_runs() {
    let project = project();
    project.write("file", "");
    let state = project.path("file").display().to_string();
    let project = project.with("XDG_STATE_HOME", state);
    let quiet = project.raymond("run good");
    quiet.prints("fine\n").mentions(0, &[]);
    assert!(!quiet.stderr.contains("list --all"), "{quiet:?}");
    let note = "raymond: `raymond list --all` may not list this project: could not ";
    project.raymond("run good --verbose").prints("fine\n").mentions(0, &[note]);
    project.raymond("projects").prints("").mentions(0, &["no project is registered"]);
    project.raymond("projects add").prints("").mentions(7, &["raymond: could not "]);
}

#[test]
fn projects_are_listed_by_activity() {
    let (one, empty) = (project(), project());
    let two = beside(&one);
    let empty = empty.with("XDG_STATE_HOME", state_of(&one).display().to_string());
    one.raymond("run good --run-id a").mentions(0, &[]);
    two.raymond("run good --run-id b").mentions(0, &[]);
    two.raymond("run bad --run-id c").mentions(1, &[]);
    two.never_started("d");
    empty.raymond("projects add").mentions(0, &["registered /project\n"]);
    let output = one.raymond("projects");
    let (lines, [one_root, two_root, empty_root]) =
        (table(&output), [&one, &two, &empty].map(|p| p.root().display().to_string()));
    assert_eq!(lines[0], ["PROJECT", "RUNS", "LAST", "ACTIVITY", "AGE"]);
    let shown: Vec<_> = lines[1..].iter().map(|line| (line[0], line[1])).collect();
    assert_eq!(shown, [(&*two_root, "2"), ("/project", "1"), (&*empty_root, "0")]);
    assert_eq!(lines[3][2..], ["-", "-"]);
    let object = two.raymond("projects --json").json();
    assert_eq!(object["version"], 1);
    let projects = object["projects"].as_array().unwrap();
    assert_eq!(
        (&projects[1]["project"], &projects[1]["runs"]),
        (&json!(one_root), &json!(1)),
        "{object}"
    );
    let last = one.raymond("status a --json").json()["updated_at"].clone();
    assert_eq!((&projects[1]["updated_at"], &projects[2]["updated_at"]), (&last, &Value::Null));
}

#[test]
fn projects_are_added_and_forgotten() {
    let project = project();
    project.write(".git/HEAD", "");
    project.write("sub/x", "");
    project.raymond("projects add sub").says(0, "registered /project");
    assert_eq!(registered(&project), [project.root()]);
    let forgot = "forgot /project; its runs are kept
        a new run registers it again, unless its raymond.toml has registry = false";
    project.raymond("projects forget sub/").says(0, forgot);
    assert!(entries(&project).is_empty());
    project.raymond("projects forget .").says(
        2,
        "raymond: . is not a registered project
        hint: see `raymond projects`",
    );
    project.raymond("projects add nowhere").says(2, "raymond: could not find nowhere");
    project.raymond("projects add PROMPT.md").mentions(2, &["PROMPT.md is not a directory"]);
    // A directory that no longer exists.
    let gone = beside(&project);
    gone.raymond("projects add").mentions(0, &[]);
    let root = gone.root().display().to_string();
    drop(gone);
    project.raymond("projects").prints("").mentions(0, &["no project is registered"]);
    assert_eq!(entries(&project).len(), 1);
    project.raymond(&format!("projects forget {root}")).mentions(0, &["forgot "]);
    assert!(entries(&project).is_empty());
}

#[test]
fn list_all_shows_runs_of_all_projects() {
    let one = project();
    let two = beside(&one);
    one.raymond("run good --run-id a").mentions(0, &[]);
    two.raymond("run bad --run-id b").mentions(1, &[]);
    one.raymond("run bad --run-id c").mentions(1, &[]);
    let output = two.raymond("list --all");
    let lines = table(&output);
    let titles = ["RUN", "STATUS", "STARTED", "AGE", "COST", "PROJECT", "WORKFLOW", "REASON"];
    assert_eq!(lines[0], titles);
    let root = one.root().display().to_string();
    // The time is three words.
    let shown: Vec<_> =
        lines[1..].iter().map(|line| (line[0], line[1], line[7], line[8])).collect();
    let (elsewhere, here) = (root.as_str(), "/project");
    assert_eq!(
        shown,
        [
            ("c", "failed", elsewhere, "bad"),
            ("b", "failed", here, "bad"),
            ("a", "completed", elsewhere, "good"),
        ]
    );
    let ids = |flags: &str| -> Vec<String> {
        let runs = two.raymond(&format!("list {flags} --json")).json();
        let runs = runs.as_array().unwrap().iter();
        runs.map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("--all --status failed"), ["c", "b"]);
    assert_eq!(ids("-a --workflow good --since 1h"), ["a"]);
    assert_eq!(ids(""), ["b"]);
    two.raymond("list --all --status running").says(0, "no run matches");
    let runs = two.raymond("list --all --json").json();
    assert_eq!((&runs[0]["project"], &runs[1]["project"]), (&json!(root), &json!("/project")));
}

#[test]
fn list_all_includes_an_unregistered_current_project() {
    let project = project().with("RAYMOND_REGISTRY", "false");
    project
        .raymond("list --all")
        .says(0, "the projects of this user have no runs; raymond run WORKFLOW starts one");
    project.raymond("run good --run-id a").mentions(0, &[]);
    assert_eq!(table(&project.raymond("list --all"))[1][0], "a");
    // A directory without a home has no registry.
    let homeless = project.spawn(
        "env",
        &["-u", "XDG_STATE_HOME", "-u", "HOME", env!("CARGO_BIN_EXE_raymond"), "list", "--all"],
    );
    assert_eq!(table(&homeless.wait())[1][0], "a");
}

#[test]
fn problem_of_one_project_does_not_hide_others() {
    let one = project();
    let (two, gone) = (beside(&one), beside(&one));
    for project in [&one, &two, &gone] {
        project.raymond("run good --run-id r").mentions(0, &[]);
    }
    let root = two.root();
    fs::remove_dir_all(two.path(".raymond/runs")).unwrap();
    // A loop of links cannot be listed, even by root.
    symlink(two.path(".raymond/runs"), two.path(".raymond/runs")).unwrap();
    drop(gone);
    one.write(".raymond/runs/broken/journal.jsonl", "not ours\n");
    one.never_started("new");
    let output = one.raymond("list --all");
    assert_eq!(table(&output).len(), 2, "{output:?}");
    output.mentions(
        0,
        &[
            &format!("{}: could not list {}", root.display(), root.join(".raymond/runs").display()),
            "/project: broken: unreadable; see `raymond status broken`\n",
            "/project: new: never started\n",
        ],
    );
    let projects = one.raymond("projects");
    assert_eq!(table(&projects).len(), 2, "{projects:?}");
    projects.mentions(0, &["could not list "]);
}

#[test]
fn damaged_entry_is_reported_and_repaired() {
    let one = project();
    let two = beside(&one);
    one.raymond("run good --run-id r").mentions(0, &[]);
    let entry = entries(&one).remove(0);
    two.raymond("run good --run-id s").mentions(0, &[]);
    fs::write(&entry, "garbage").unwrap();
    fs::write(entry.with_file_name("notes.txt"), "").unwrap();
    let note = format!("the entry {} does not contain a project; delete it", entry.display());
    let output = two.raymond("list --all");
    assert_eq!(table(&output)[1][0], "s");
    output.says(0, &note);
    let output = two.raymond("projects --json");
    assert_eq!(output.says(0, &note).json()["projects"].as_array().unwrap().len(), 1);
    one.raymond("projects add").mentions(0, &[]);
    let output = two.raymond("list --all");
    output.says(0, "");
    assert_eq!(table(&output).len(), 3);
}
