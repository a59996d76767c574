//! Configuration, seen from outside.

use serde_json::json;

use crate::harness::Project;

const SCRIPT: (&str, &str) = ("wf/START.sh", "echo '<result>x</result>'");
const PROMPT: [(&str, &str); 2] =
    [("wf/START.md", "go"), ("replies.yaml", "START: '<result>x</result>'")];

/// The recorded settings of a run.
fn settings(project: &Project, run: &str) -> serde_json::Value {
    let started = project.events(run, "run_started");
    started[0]["settings"].clone()
}

#[test]
fn flags_override_variables_and_variables_override_files() {
    let project = Project::of(&[
        SCRIPT,
        ("home/raymond/config.toml", "budget = 1\nretries = 1\nmax_parallel = 1\nallow = ['A']"),
        ("raymond.toml", "retries = 2\nmax_parallel = 2\nallow = ['B']"),
    ]);
    let home = project.path("home").display().to_string();
    let project = project.with("XDG_CONFIG_HOME", home).with("RAYMOND_MAX_PARALLEL", "3");
    project
        .raymond("run wf --run-id r --max-agents 4 --allow C --allow A --deny D")
        .mentions(0, &["cap $1.00 · 3 at a time · 1 state pinned"]);
    let found = settings(&project, "r");
    assert_eq!(
        json!([found["budget"], found["retries"], found["max_parallel"], found["max_agents"]]),
        json!([1_000_000, 2, 3, 4])
    );
    assert_eq!(found["permissions"]["allow"], json!(["A", "B", "C"]));
    assert_eq!(found["permissions"]["deny"], json!(["D"]));
}

#[test]
fn mistake_in_configuration_starts_nothing() {
    let project = Project::of(&[SCRIPT, ("raymond.toml", "# caps\nbudgte = 5\nretries = 'x'\n")]);
    let project = project.with("RAYMOND_BUDGET", "much");
    let mistakes = "raymond.toml:2:1: error: unknown key \"budgte\" [configuration]
          hint: did you mean budget?
        raymond.toml:3:11: error: retries: \"x\" is not a whole number of at least 0 [configuration]
        RAYMOND_BUDGET: error: \"much\" is not an amount of dollars such as 10 or 2.50, or none [configuration]
        raymond: the configuration has 3 mistakes";
    project.raymond("run wf").says(2, mistakes);
    project.raymond("config").says(2, mistakes).prints("");
    assert!(!project.path(".raymond").exists());
    // Commands that only read do not need it.
    project.raymond("list").mentions(0, &["no runs"]);
}

#[test]
fn project_configuration_applies_to_its_subdirectories() {
    let files = [SCRIPT, ("raymond.toml", "retries = 9"), ("sub/x", ""), (".git/HEAD", "")];
    let project = Project::of(&files);
    let words = "cd sub && \"$0\" config --json";
    let output = project.spawn("bash", &["-c", words, env!("CARGO_BIN_EXE_raymond")]).wait();
    let rows = output.json();
    let retries = rows["settings"].as_array().unwrap().iter().find(|row| row["key"] == "retries");
    assert_eq!(
        retries,
        Some(&json!({ "key": "retries", "value": 9, "origin": "/project/raymond.toml:1" }))
    );
}

#[test]
fn resume_keeps_settings_and_adds_flags() {
    let project = Project::of(&[("wf/START.sh", "exit 1"), ("raymond.toml", "allow = ['A']")]);
    assert_eq!(project.raymond("run wf --run-id r --budget 5").code(), 1);
    project.write("raymond.toml", "budget = 50\nno_wait = true");
    assert_eq!(project.raymond("resume r --allow B --permission-mode plan").code(), 1);
    let resumed = &project.events("r", "run_resumed")[0]["settings"];
    assert_eq!((&resumed["budget"], &resumed["no_wait"]), (&json!(5_000_000), &json!(true)));
    assert_eq!(resumed["permissions"]["allow"], json!(["A", "B"]));
    assert_eq!(resumed["permissions"]["mode"], json!("plan"));
    project.write("raymond.toml", "budgte = 1");
    project.raymond("resume r").mentions(2, &["did you mean budget?"]);
}

#[test]
fn replies_path_is_relative_to_configuration_file() {
    let project = Project::of(&PROMPT);
    project.write("raymond.toml", "replies = 'replies.yaml'");
    project.raymond("run wf").prints("x\n").mentions(0, &["· scripted ·"]);
    project.raymond("run wf --backend claude").mentions(7, &["could not find the client"]);
}

#[test]
fn config_shows_every_value_with_its_origin() {
    let project = Project::of(&[("raymond.toml", "timeout = '10m'\nallow = ['Bash(make:*)']\n")]);
    let home = project.path("home").display().to_string();
    let project = project.with("RAYMOND_BUDGET", "2.5").with("XDG_CONFIG_HOME", home);
    let files = "files (a later one wins): home/raymond/config.toml (missing), raymond.toml";
    let sought = project.raymond("config --json").json()["files"].clone();
    assert_eq!(
        sought,
        json!([
            { "path": "home/raymond/config.toml", "exists": false },
            { "path": "raymond.toml", "exists": true },
        ])
    );
    project.raymond("config").says(0, files).prints(
        "budget               $2.50                    RAYMOND_BUDGET
strict_budget        false                    default
model                -                        default
effort               -                        default
backend              claude                   default
replies              -                        default
max_parallel         4                        default
max_agents           1000                     default
reminders            3                        default
retries              5                        default
timeout              10m                      raymond.toml:1
idle_timeout         30m                      default
no_wait              false                    default
on_lost_session      fail                     default
interrupted_scripts  rerun                    default
permission_mode      acceptEdits              default
allow                Bash(make:*)             raymond.toml:2
deny                 -                        default
environment          inherit                  default
config_home          shared                   default
registry             true                     default
claude               no-such-client           RAYMOND_CLAUDE
codex                codex                    default
",
    );
}

// proves: S11
#[test]
fn pipe_instead_of_configuration_never_blocks() {
    let project = Project::of(&[SCRIPT]);
    assert_eq!(project.spawn("mkfifo", &["raymond.toml"]).wait().code(), 0);
    project
        .raymond("run wf")
        .mentions(7, &["raymond: could not read raymond.toml: it is not a file"]);
}
