//! One row for each kind of value and each kind of mistake.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use raymond_core::run::Settings;

use super::keys::SettingKey;
use super::setting::FlagDefault;
use super::*;

/// A file of this text, with its mistakes as they are printed.
fn file(text: &str) -> (Layer, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raymond.toml");
    std::fs::write(&path, text).unwrap();
    let mut mistakes = Vec::new();
    let layer = file::read(&path, ConfigScope::User, &mut mistakes).unwrap();
    let here = format!("{}/", directory.path().display());
    (layer, printed(&mistakes).iter().map(|line| line.replace(&here, "")).collect())
}

#[test]
fn a_project_names_no_programs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raymond.toml");
    std::fs::write(&path, "retries = 1\nclaude = 'x'\ncodex = './y'\n").unwrap();
    let mut mistakes = Vec::new();
    let layer = file::read(&path, ConfigScope::Project, &mut mistakes).unwrap();
    assert_eq!(set_rows(&layer).len(), 1, "{:?}", set_rows(&layer));
    let said = printed(&mistakes).concat();
    for client in ["claude", "codex"] {
        let expected = format!("error: {client}: a project cannot choose the programs");
        assert!(said.contains(&expected), "{said}");
    }
}

fn environment(variables: &[(&str, &str)]) -> (Layer, Vec<String>) {
    let variables = variables.iter().map(|(name, value)| (OsString::from(name), value.into()));
    let mut mistakes = Vec::new();
    let layer = environment::read(variables, &mut mistakes);
    (layer, printed(&mistakes))
}

fn printed(mistakes: &[Diagnostic]) -> Vec<String> {
    let hint = |found: &Diagnostic| {
        found.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default()
    };
    mistakes.iter().map(|found| format!("{found}{}", hint(found))).collect()
}

/// Returns `key = value  origin` for each setting that is not a default.
fn set_rows(layer: &Layer) -> Vec<String> {
    let rows = rows(layer).into_iter().filter(|row| row.origin != "default");
    rows.map(|SettingRow { key, text, origin, .. }| format!("{key} = {text}  {origin}")).collect()
}

const EVERY_KEY: &str = r#"budget = 2.50
strict_budget = true
model = "opus"
effort = "high"
backend = "claude"
max_parallel = 8
max_agents = 0x10
reminders = 0
retries = 1_0
timeout = "10m"
idle_timeout = "90s"
no_wait = true
on_lost_session = "fresh"
interrupted_scripts = "fail"
permission_mode = "plan"
allow = ["Bash(cargo test:*)", "Edit"]
deny = ["WebFetch"]
environment = ["PATH", "HOME"]
config_home = "per-agent"
claude = "claude-next"

[prices."house-model"]
input = 1
output = "2.5"
cache_read = 0.1
"#;

#[test]
fn every_key_is_read_with_its_line() {
    let (layer, mistakes) = file(EVERY_KEY);
    assert_eq!(mistakes, [""; 0]);
    let texts: Vec<String> = set_rows(&layer)
        .iter()
        .map(|line| {
            let (said, place) = line.split_once("  ").unwrap();
            format!("{said} @{}", place.rsplit_once(':').unwrap().1)
        })
        .collect();
    assert_eq!(
        texts,
        [
            "budget = $2.50 @1",
            "strict_budget = true @2",
            "model = opus @3",
            "effort = high @4",
            "backend = claude @5",
            "max_parallel = 8 @6",
            "max_agents = 16 @7",
            "reminders = 0 @8",
            "retries = 10 @9",
            "timeout = 10m @10",
            "idle_timeout = 90s @11",
            "no_wait = true @12",
            "on_lost_session = fresh @13",
            "interrupted_scripts = fail @14",
            "permission_mode = plan @15",
            "allow = Bash(cargo test:*) @16",
            "allow = Edit @16",
            "deny = WebFetch @17",
            "environment = PATH, HOME @18",
            "config_home = per-agent @19",
            "claude = claude-next @20",
            "prices.house-model = input $1.00, output $2.50, cache_write $1.00, cache_read $0.10 @22",
        ]
    );
}

#[test]
fn path_is_relative_to_its_file() {
    let (layer, _) = file("replies = 'r.yaml'\nclaude = 'bin/claude'");
    let replies = layer.replies.unwrap().value;
    let directory = replies.parent().unwrap();
    assert_eq!(replies, directory.join("r.yaml"));
    assert_eq!(Path::new(&layer.clients["claude"].value), directory.join("bin/claude"));
    let (layer, _) = file("replies = '/r.yaml'");
    assert_eq!(layer.replies.unwrap().value, Path::new("/r.yaml"));
}

/// Checks the mistakes of a file.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let expected: Vec<String> =
        expected.iter().map(|line| format!("raymond.toml:{line}")).collect();
    assert_eq!(file(text).1, expected, "{text}");
}

#[test]
fn every_mistake_in_a_file_has_its_place() {
    check(
        "model = \"m\"\nbudgte = 5\n",
        &["2:1: error: unknown key \"budgte\" (did you mean budget?)"],
    );
    check("budget = true", &["1:10: error: budget: true is not an amount of dollars"]);
    check(
        "budget = -1",
        &["1:10: error: budget: \"-1\" is negative; an amount of dollars is zero or more"],
    );
    check(
        "budget = 0",
        &["1:10: error: budget: a budget of zero starts nothing; use an amount or `none`"],
    );
    check(
        "budget = \"much\"",
        &["1:10: error: budget: \"much\" is not an amount of dollars such as 10 or 2.50, or none"],
    );
    check("strict_budget = \"yes\"", &["1:17: error: strict_budget: \"yes\" is not true or false"]);
    check("model = 5", &["1:9: error: model: 5 is not a text in quotes"]);
    check("model = ' '", &["1:9: error: model: it is empty"]);
    check(
        "max_parallel = 0",
        &["1:16: error: max_parallel: 0 is not a whole number of at least 1"],
    );
    check("retries = 1.5", &["1:11: error: retries: 1.5 is not a whole number of at least 0"]);
    check("retries = -1", &["1:11: error: retries: -1 is not a whole number of at least 0"]);
    check(
        "timeout = '5'",
        &["1:11: error: timeout: \"5\" is not a duration such as 250ms, 90s, 10m, 2h or 7d"],
    );
    check("on_lost_session = 'x'", &["1:19: error: on_lost_session: \"x\" is not fail or fresh"]);
    check(
        "allow = 'Edit'",
        &["1:9: error: allow: \"Edit\" is not a list of texts, such as [\"a\", \"b\"]"],
    );
    check("deny = [1]", &["1:8: error: deny: 1 is not a text in quotes"]);
    check(
        "environment = 1",
        &["1:15: error: environment: 1 is not \"inherit\", or a list of names"],
    );
}

#[test]
fn mistakes_are_in_file_order() {
    check(
        "model = 1\nbudget = true\nagents = 2\n",
        &[
            "1:9: error: model: 1 is not a text in quotes",
            "2:10: error: budget: true is not an amount of dollars",
            "3:10: error: agents is not a table (write [agents.\"id\"] with workspace)",
        ],
    );
}

#[test]
fn prices_are_tables() {
    check(
        "prices = 1",
        &["1:10: error: prices is not a table (write [prices.\"model\"] with input and output)"],
    );
    check(
        "[prices]\na = 1\nb = { input = 1 }\nc = { input = 1, ouput = 2 }",
        &[
            "2:5: error: prices.\"a\" is not a table (write [prices.\"model\"] with input and output)",
            "3:5: error: prices.\"b\": output is missing",
            "4:5: error: prices.\"c\": unknown price \"ouput\"; did you mean output?",
        ],
    );
    // All of them at once, in the order of the file.
    check(
        "retries = 'x'\nbackend = 1\n",
        &[
            "1:11: error: retries: \"x\" is not a whole number of at least 0",
            "2:11: error: backend: 1 is not a text in quotes",
        ],
    );
    check(
        "dangerously_skip_permissions = true",
        &[
            "1:1: error: unknown key \"dangerously_skip_permissions\" (the keys are budget, strict_budget, model, effort, backend, replies, max_parallel, max_agents, reminders, retries, timeout, idle_timeout, no_wait, on_lost_session, interrupted_scripts, permission_mode, allow, deny, environment, config_home, registry, claude, codex, prices, agents)",
        ],
    );
}

#[test]
fn agents_are_tables_with_a_workspace() {
    check(
        "agents = 1",
        &["1:10: error: agents is not a table (write [agents.\"id\"] with workspace)"],
    );
    check(
        "[agents]\na = \"work\"\nb = {}\nc = { workspace = 1 }\nd = { workspce = \"x\" }\ne = { workspace = \"\" }",
        &[
            "2:5: error: agents.\"a\" is not a table (write [agents.\"id\"] with workspace)",
            "3:5: error: agents.\"b\": workspace is missing",
            "4:5: error: agents.\"c\": workspace: 1 is not a text in quotes",
            "5:5: error: agents.\"d\": unknown key \"workspce\": the only key of an agent is workspace",
            "6:5: error: agents.\"e\": workspace: it is empty",
        ],
    );
    let (layer, mistakes) =
        file("[agents.musk]\nworkspace = \"work\"\n[agents.ada]\nworkspace = \"/srv/ada\"\n");
    assert_eq!(mistakes, Vec::<String>::new());
    let workspaces: Vec<(&str, bool)> = layer
        .agents
        .iter()
        .map(|(id, workspace)| (id.as_str(), workspace.value.is_absolute()))
        .collect();
    assert_eq!(workspaces, [("ada", true), ("musk", true)], "a path of a file is relative to it");
    // The later place wins, agent by agent.
    let (project, _) = file("[agents.musk]\nworkspace = \"/elsewhere\"\n");
    let both = project.over(layer);
    let found: Vec<String> =
        both.agents.values().map(|agent| agent.value.display().to_string()).collect();
    assert_eq!(found, ["/srv/ada", "/elsewhere"]);
}

#[test]
fn invalid_toml_is_reported_with_its_position() {
    let (layer, mistakes) = file("model = \"m\"\nbudget 5\n");
    assert_eq!(layer, Layer::default());
    assert_eq!(mistakes.len(), 1);
    assert!(mistakes[0].starts_with("raymond.toml:2:"), "{mistakes:?}");
}

#[test]
fn variables_match_keys_and_others_are_ignored() {
    let (layer, mistakes) = environment(&[
        ("RAYMOND_BUDGET", "none"),
        ("RAYMOND_NO_WAIT", "true"),
        ("RAYMOND_ALLOW", "Bash(git add, commit), Edit,"),
        ("RAYMOND_ENVIRONMENT", "PATH,HOME"),
        ("RAYMOND_RUN_ID", "r"),
        ("RAYMOND_VAR_BUDGET", "x"),
        ("RAYMOND_OF_MINE", "x"),
        ("BUDGET", "x"),
    ]);
    assert_eq!(mistakes, [""; 0]);
    assert_eq!(
        set_rows(&layer),
        [
            "budget = none  RAYMOND_BUDGET",
            "no_wait = true  RAYMOND_NO_WAIT",
            "allow = Bash(git add, commit)  RAYMOND_ALLOW",
            "allow = Edit  RAYMOND_ALLOW",
            "environment = PATH, HOME  RAYMOND_ENVIRONMENT",
        ]
    );
    let (_, mistakes) =
        environment(&[("RAYMOND_BUDGET", "much"), ("RAYMOND_MODEL", ""), ("RAYMOND_BUGDET", "3")]);
    assert_eq!(
        mistakes,
        [
            "RAYMOND_BUDGET: error: \"much\" is not an amount of dollars such as 10 or 2.50, or none",
            "RAYMOND_MODEL: error: it is empty",
            "RAYMOND_BUGDET: error: no setting has this variable (did you mean RAYMOND_BUDGET?)",
        ]
    );
}

#[test]
fn a_later_layer_wins_and_lists_add_up() {
    let (low, _) =
        file("model = 'low'\nretries = 1\nallow = ['A']\n[prices.m]\ninput = 1\noutput = 1");
    let (high, _) = environment(&[("RAYMOND_MODEL", "high"), ("RAYMOND_ALLOW", "B")]);
    let both = high.over(low);
    assert_eq!(both.model.unwrap().value, "high");
    assert_eq!(both.retries.unwrap().value, 1);
    let tools: Vec<&str> = both.allow.iter().map(|tool| tool.value.as_str()).collect();
    assert_eq!(tools, ["A", "B"]);
    assert!(both.prices.contains_key("m"));
}

#[test]
fn replies_imply_the_scripted_backend() {
    let check = |low: &str, high: &str, expected: &str| {
        let layer = file(high).0.over(file(low).0.over(Layer::default()));
        assert_eq!(layer.backend.unwrap().value, expected, "{low} {high}");
    };
    check("backend = 'claude'", "replies = 'r'", "scripted");
    check("replies = 'r'", "model = 'm'", "scripted");
    check("replies = 'r'", "backend = 'claude'", "claude");
    check("", "replies = 'r'\nbackend = 'claude'", "claude");
}

#[test]
fn next_command_repeats_every_setting() {
    let mut settings = Settings::default();
    file(EVERY_KEY).0.apply(&mut settings);
    // The commands that start a run add these two to its settings.
    settings.replies = Some("/replies.yaml".to_owned());
    settings.start_flags.backend = Some("codex".into());
    let names: BTreeSet<String> =
        repeated_flags(&settings).into_iter().map(|flag| flag.name.replace('-', "_")).collect();
    let with_flag = |key: &&SettingKey| (key.argument)(FlagDefault::NewRun).is_some();
    let expected = KEYS.iter().filter(with_flag).filter(|key| key.is_in_files());
    assert_eq!(names, expected.map(|key| key.name.to_owned()).collect());
}
