//! Other settings of a turn: model, effort, cap, directory, environment.

use std::os::unix::fs::PermissionsExt as _;

use raymond_testkit::fake_claude::Invocation;

use crate::stage::{Stage, client};

/// The value of a flag at every start of the client, by the label of its prompt.
fn flags(stage: &Stage, flag: &str) -> Vec<String> {
    let shown = |invocation: Invocation| {
        let label = invocation.stdin.as_deref().unwrap().lines().next().unwrap();
        format!("{label} {}", invocation.values(flag).join(" "))
    };
    stage.invocations().into_iter().map(shown).collect()
}

#[test]
fn model_comes_from_state_then_call_then_flag() {
    let states = [
        ("START", "fake: say <call return='BACK' model='haiku'>SUB</call>"),
        ("SUB", "fake: say <function return='MIDDLE'>DEEP</function>"),
        ("DEEP", "model: opus\n---\nfake: say <goto>DEEPER</goto>"),
        ("DEEPER", "fake: say <result>x</result>"),
        ("MIDDLE", "fake: say <result>x</result>"),
        ("BACK", "fake: say <fork next='END'>WORKER</fork>"),
        ("WORKER", "fake: say <result>x</result>"),
        ("END", "fake: say <result>done</result>"),
    ];
    let check = |run: &str, model: &str| {
        let stage = Stage::prompts(&states);
        stage.run(&format!("--max-parallel 1 {run}")).prints("done\n").mentions(0, &[]);
        assert_eq!(
            flags(&stage, "--model"),
            [
                format!("START {model}"),
                "SUB haiku".into(),
                "DEEP opus".into(),
                "DEEPER haiku".into(),
                "MIDDLE haiku".into(),
                format!("BACK {model}"),
                format!("END {model}"),
                format!("WORKER {model}"),
            ]
        );
    };
    check("", "");
    check("--model sonnet", "sonnet");
}

// proves: A16, S26
#[test]
fn reply_and_state_values_never_become_flags() {
    const FLAG: &str = "--dangerously-skip-permissions";
    let start = format!("fake: say <call return='END' model='{FLAG}'>SUB</call>");
    let front = format!("add_dirs: ['{FLAG}']\nappend_system_prompt: '{FLAG}'\nallow: ['{FLAG}']");
    let sub = format!("{front}\n---\nfake: say <result>x</result>");
    let end = "fake: say <result>done</result>";
    let stage = Stage::prompts(&[("START", &start), ("SUB", &sub), ("END", end)]);
    stage.run("").prints("done\n").mentions(0, &[]);
    let sent = stage.invocations();
    for invocation in &sent {
        assert!(!invocation.argv.iter().any(|word| word == FLAG), "{:?}", invocation.argv);
    }
    let joined = |word: &&String| word.ends_with(FLAG);
    let given: Vec<&String> = sent[1].argv.iter().filter(joined).collect();
    let flags = ["--allowedTools", "--model", "--add-dir", "--append-system-prompt"];
    assert_eq!(given, flags.map(|flag| format!("{flag}={FLAG}")).each_ref());
    assert_eq!(sent[1].values("--permission-mode"), ["acceptEdits"]);
}

#[test]
fn effort_comes_from_state_then_flag() {
    let stage = Stage::prompts(&[
        ("START", "effort: high\n---\nfake: say <goto>END</goto>"),
        ("END", "fake: say <result>done</result>"),
    ]);
    stage.run("--effort low").prints("done\n");
    assert_eq!(flags(&stage, "--effort"), ["START high", "END low"]);
}

#[test]
fn state_overrides_flag_and_flag_overrides_configuration() {
    let check = |front: &str, run: &str, expected: [&str; 3]| {
        let lines = format!("{front}fake: say <result>done</result>");
        let stage = Stage::prompts(&[("START", &lines)]);
        let config = "model = 'haiku'\neffort = 'low'\npermission_mode = 'plan'\n";
        stage.project.write("raymond.toml", config);
        stage.run(run).prints("done\n").mentions(0, &[]);
        let [only] = stage.invocations().try_into().unwrap();
        let given = ["--model", "--effort", "--permission-mode"].map(|flag| only.values(flag));
        assert_eq!(given, expected.map(|value| vec![value]), "{front} {run}");
    };
    let flags = "--model sonnet --effort high --permission-mode dontAsk";
    let front = "model: opus\neffort: max\npermission_mode: acceptEdits\n---\n";
    check("", "", ["haiku", "low", "plan"]);
    check("", flags, ["sonnet", "high", "dontAsk"]);
    check(front, flags, ["opus", "max", "acceptEdits"]);
}

#[test]
fn configured_client_is_used() {
    let prompt = "fake: say <result>done</result>";
    let stage = Stage::without_client(&[("wf/START.md", prompt)]);
    let ours = stage.configure("claude = 'tools/our-claude'\n").join("tools/our-claude");
    std::fs::create_dir(ours.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(client(), ours).unwrap();
    stage.run("").prints("done\n").mentions(0, &[]);
    assert_eq!(stage.prompts_sent(), [prompt]);
}

#[test]
fn client_gets_its_budget_share_as_cap() {
    let states = [
        ("START", "fake: cost 0.5\nfake: say <goto>END</goto>"),
        ("END", "budget: 0.25\n---\nfake: say <result>done</result>"),
    ];
    let check = |run: &str, caps: [&str; 2]| {
        let stage = Stage::prompts(&states);
        stage.run(run).prints("done\n");
        let given: Vec<Option<f64>> = stage
            .invocations()
            .iter()
            .map(|sent| sent.values("--max-budget-usd").first().map(|cap| cap.parse().unwrap()))
            .collect();
        let expected: Vec<Option<f64>> = caps.iter().map(|cap| cap.parse().ok()).collect();
        assert_eq!(given, expected, "{run}");
    };
    check("--budget 2", ["2", "0.25"]);
    check("", ["10", "0.25"]);
    check("--budget none", ["none", "0.25"]);
}

#[test]
fn client_runs_in_the_directory_of_its_agent() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <reset cd='sub'>THERE</reset>"),
        ("THERE", "fake: say <call return='BACK'>AWAY</call>"),
        ("AWAY", "fake: say <reset cd='..'>UP</reset>"),
        ("UP", "fake: say <result>x</result>"),
        ("BACK", "fake: say <fork next='END' cd='deep'>WORKER</fork>"),
        ("WORKER", "fake: say <result>x</result>"),
        ("END", "fake: say <result>done</result>"),
    ]);
    std::fs::create_dir_all(stage.project.path("sub/deep")).unwrap();
    stage.run("--max-parallel 1").prints("done\n").mentions(0, &[]);
    let root = stage.project.root();
    let cwds: Vec<_> = stage.invocations().into_iter().map(|sent| sent.cwd).collect();
    let expected = ["", "sub", "sub", "", "sub", "sub", "sub/deep"]
        .map(|cwd| root.join(cwd).components().collect::<std::path::PathBuf>());
    assert_eq!(cwds, expected);
}

#[test]
fn client_gets_environment_and_few_retries() {
    let stage = Stage::prompts(&[("START", "fake: say <result>done</result>")]).with("COLOUR=red");
    stage.run("").prints("done\n");
    let [only] = stage.invocations().try_into().unwrap();
    assert_eq!(only.environment["COLOUR"], "red");
    assert!(only.environment["RAYMOND_TURN"].ends_with("/main.1.1.1"), "{:?}", only.environment);
    let retries: u32 = only.environment["CLAUDE_CODE_MAX_RETRIES"].parse().unwrap();
    assert!(retries <= 3, "{retries}");
}

#[test]
fn environment_can_be_limited_to_a_list() {
    let stage = Stage::prompts(&[("START", "fake: say <result>done</result>")])
        .with("COLOUR=red")
        .with("SECRET_TOKEN=hush");
    let listed = "environment = ['PATH', 'HOME', 'CLAUDE_CONFIG_DIR', 'COLOUR']\n";
    stage.project.write("raymond.toml", listed);
    stage.run("").prints("done\n").mentions(0, &[]);
    let [only] = stage.invocations().try_into().unwrap();
    assert_eq!(only.environment["COLOUR"], "red");
    assert!(!only.environment.contains_key("SECRET_TOKEN"), "{:?}", only.environment);
    assert!(only.environment.contains_key("RAYMOND_TURN"));
}

#[test]
fn scripts_get_the_environment_and_their_variables() {
    let stage = Stage::of(&[(
        "wf/START.sh",
        "echo \"<result>${COLOUR-none} ${SECRET_TOKEN-none} $RAYMOND_STATE</result>\"",
    )]);
    let stage = stage.with("COLOUR=red").with("SECRET_TOKEN=hush");
    stage.run("").prints("red hush START.sh\n");
    stage.project.write("raymond.toml", "environment = ['PATH', 'COLOUR']\n");
    stage.raymond("run wf").prints("red none START.sh\n");
}

// proves: S53
#[test]
fn run_files_are_private() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <goto>NEXT</goto>"),
        ("NEXT", "fake: pad 20000\nfake: more <result>done</result>"),
    ]);
    stage.project.write("raymond.toml", "config_home = 'per-agent'\n");
    stage.raymond("run wf --run-id r -d").mentions(0, &[]);
    stage.raymond("wait r").mentions(0, &[]);
    let mut places = vec![stage.project.path(".raymond")];
    let mut files = 0;
    while let Some(place) = places.pop() {
        let found = std::fs::metadata(&place).unwrap();
        let mode = found.permissions().mode() & 0o777;
        if !found.is_dir() {
            assert_eq!(mode, 0o600, "{}", place.display());
            files += 1;
            continue;
        }
        assert_eq!(mode, 0o700, "{}", place.display());
        // Modes of files inside a client's own directory are not checked.
        if place.parent().is_none_or(|parent| !parent.ends_with("homes")) {
            places.extend(std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(files > 10, "{files} files");
}

#[test]
fn agents_can_have_separate_configuration_directories() {
    let stage = Stage::prompts(&[
        ("START", "fake: say <fork next='NEXT'>WORKER</fork>"),
        ("NEXT", "fake: say <call return='END'>SUB</call>"),
        ("SUB", "fake: say <result>x</result>"),
        ("END", "fake: say <result>done</result>"),
        ("WORKER", "fake: say <result>worker</result>"),
    ]);
    stage.project.write("raymond.toml", "config_home = 'per-agent'\n");
    stage.run("").prints("done\n").mentions(0, &[]);
    assert_eq!(stage.invocations().len(), 0, "no agent uses the shared one");
    let home = |agent: &str| stage.project.path(&format!(".raymond/runs/r/homes/{agent}"));
    let count = |agent: &str| Invocation::all(&home(agent)).len();
    assert_eq!((count("main"), count("main_worker1")), (4, 1));
    let mode = std::fs::metadata(home("main")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "logins may lie there");
}
