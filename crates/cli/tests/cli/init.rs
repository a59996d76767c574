//! `raymond init`: its workflow runs at once, in every kind of project.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::harness::{Output, Project};

const STATES: [&str; 8] = [
    "workflows/change/START.md",
    "workflows/change/CHECK.sh",
    "workflows/change/FIX.md",
    "workflows/change/REVIEW.md",
    "workflows/change/DECIDE.sh",
    "workflows/change/GIVE_UP.sh",
    "workflows/change/replies.yaml",
    "workflows/change/README.md",
];

/// Runs the rehearsal that `init` printed.
#[track_caller]
fn rehearse(project: &Project) -> Output {
    let words = "run workflows/change --replies workflows/change/replies.yaml --run-id r --input x";
    let output = project.raymond(words);
    assert!(!output.stderr.contains("warning"), "{output:?}");
    output
}

/// Checks that `init` chooses this command for these files, and that the rehearsal has this result.
#[track_caller]
fn check(files: &[(&str, &str)], command: &str, result: &str) -> Project {
    let target = tempfile::tempdir().unwrap();
    let project = Project::of(files).with("CARGO_TARGET_DIR", target.path().to_str().unwrap());
    rehearsed(project, command, result)
}

#[track_caller]
fn rehearsed(project: Project, command: &str, result: &str) -> Project {
    let output = project.raymond("init --json");
    output.says(0, "");
    assert_eq!(output.json()["check"], json!(command));
    assert_eq!(output.json()["written"], json!(STATES));
    let output = rehearse(&project);
    if result.starts_with("not done") {
        let reason = format!("GIVE_UP.sh: failed: {result}\n");
        output.prints("").mentions(1, &[&reason, "spent $0."]);
    } else {
        output.prints(&format!("{result}\n")).mentions(0, &["spent $0."]);
    }
    project
}

/// A project in which this script replaces a program, installed or not.
fn with_fake_program(files: &[(&str, &str)], program: &str, script: &str) -> Project {
    let project = Project::of(files);
    let path = format!(".programs/{program}");
    project.write(&path, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(project.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
    let usual = std::env::var("PATH").unwrap();
    let programs = project.path(".programs").display().to_string();
    project.with("PATH", format!("{programs}:{usual}"))
}

fn passes(command: &str) -> String {
    format!("done: this was a rehearsal; nothing was changed, and {command} passes")
}

fn fails(command: &str) -> String {
    format!("not done: this was a rehearsal; nothing was changed, and {command} fails as it is")
}

#[test]
fn make_project_is_rehearsed_with_any_test_result() {
    let makefile = |recipe: &str| format!("check:\n\t{recipe}\ntest:\n\t{recipe}\n");
    check(&[("Makefile", &makefile("true"))], "make test", &passes("make test"));
    let project =
        check(&[("Makefile", &makefile("@echo 5 < 6; false"))], "make test", &fails("make test"));
    let moved = project.events("r", "moved");
    assert_eq!(moved.len(), 3, "START, CHECK, FIX: {moved:?}");
}

#[test]
fn cargo_project_is_rehearsed_with_any_test_result() {
    let manifest = "[package]\nname = \"play\"\nedition = \"2021\"\n[workspace]\n";
    let project = |body: &str| {
        [("Cargo.toml", manifest), ("src/lib.rs", body)].map(|(name, text)| (name, text.to_owned()))
    };
    let command = "cargo test --workspace";
    for (body, result) in [
        ("#[test]\nfn holds() {}\n", passes(command)),
        ("#[test]\nfn breaks() { panic!(\"<result>no</result>\") }\n", fails(command)),
        ("this is no Rust", fails(command)),
    ] {
        let files = project(body);
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        check(&files, command, &result);
    }
}

#[test]
fn npm_project_is_rehearsed_without_its_modules() {
    /// Runs the script `test` of `package.json`, as npm does.
    const NPM: &str =
        r#"test "$1" = test && exec sh -c "$(sed 's/.*"test": "\([^"]*\)".*/\1/' package.json)""#;
    let project = |test: &str| {
        let package = format!("{{\"scripts\": {{\"test\": \"{test}\"}}}}");
        with_fake_program(&[("package.json", &package)], "npm", NPM)
    };
    rehearsed(project("exit 0"), "npm test", &passes("npm test"));
    rehearsed(project("exit 1"), "npm test", &fails("npm test"));
    let project = project("no-such-runner");
    project.raymond("init").mentions(0, &["`npm test` is really executed"]);
    let output = rehearse(&project);
    let reason = "failed: not done: a program that the check needs is missing:";
    output.prints("").mentions(1, &[reason, "no-such-runner"]);
}

#[test]
fn python_project_is_rehearsed() {
    /// A python without pytest, which finds unit tests.
    const PYTHON: &str = r#"case "$*" in
  '-m unittest discover -s tests') ! grep -q 'self.fail' tests/test_*.py ;;
  *) echo "No module named $2" >&2; exit 1 ;;
esac"#;
    let test = |body: &str| {
        format!("import unittest\nclass T(unittest.TestCase):\n  def test_it(self): {body}\n")
    };
    let command = "python3 -m unittest discover -s tests";
    for (body, result) in [("pass", passes(command)), ("self.fail('<no>')", fails(command))] {
        let (declared, test) = (("pyproject.toml", "[project]\n"), test(body));
        let files = [("tests/test_it.py", test.as_str()), declared];
        rehearsed(with_fake_program(&files, "python3", PYTHON), command, &result);
        // Without other signs, the tests alone make it a Python project.
        rehearsed(with_fake_program(&files[..1], "python3", PYTHON), command, &result);
    }
    let command = "python3 -m pytest";
    let project = with_fake_program(&[("pytest.ini", "[pytest]\n")], "python3", PYTHON);
    rehearsed(project, command, &fails(command));
}

#[test]
fn missing_tool_ends_the_rehearsal() {
    // The answer of a shell for a missing program, even if it is installed.
    let absent = "echo 'tox: command not found' >&2; exit 127";
    let project = with_fake_program(&[("tox.ini", "[tox]\n")], "tox", absent);
    project.raymond("init").mentions(0, &["`tox` is really executed"]);
    let output = rehearse(&project);
    let reason = "missing: tox: command not found\n";
    output.prints("").mentions(1, &["CHECK.sh → GIVE_UP.sh (goto)", reason]);
}

#[test]
fn project_without_a_check_gets_a_hint() {
    let project = Project::of(&[]);
    project.raymond("init").mentions(0, &["add one to workflows/change/CHECK.sh"]);
    assert!(
        project
            .read("workflows/change/CHECK.sh")
            .contains("Replace this line with the project's own")
    );
    let result = "done: this was a rehearsal; nothing was changed, and nothing was checked: CHECK.sh \
                  has no command yet\n";
    rehearse(&project).prints(result).mentions(0, &["completed"]);
    // In a subdirectory, the hint names the top of the repository.
    let project = Project::of(&[(".git/HEAD", ""), ("deep/x", "")]);
    let line = format!("cd deep && {} init", env!("CARGO_BIN_EXE_raymond"));
    let output = project.spawn("bash", &["-c", &line]).wait();
    output.mentions(0, &["The repository starts in /project; to search there, run init there."]);
}

#[test]
fn first_tool_is_used_others_are_comments() {
    let project = Project::of(&[
        ("package.json", "{\"scripts\": {\"test\": \"true\", \"lint\": \"true\"}}"),
        ("Makefile", "check:\n\ttrue\n"),
        ("requirements.txt", "pytest\n"),
        (".git/HEAD", ""),
    ]);
    let output = project.raymond("init");
    let found = "found\n  package.json: npm test, npm run lint\n  Makefile: make check\n  \
                 requirements.txt: python3 -m pytest\n  git\nwrote\n";
    assert!(output.stdout.starts_with(found), "{output:?}");
    let script = project.read("workflows/change/CHECK.sh");
    let body = "check() {\n  npm test\n  # Also found here. With several lines, the first that fails \
                ends the check:\n  # make check # Makefile\n  # python3 -m pytest # requirements.txt\n}\n";
    assert!(script.contains(body), "{script}");
    for state in ["START", "FIX"] {
        let text = project.read(&format!("workflows/change/{state}.md"));
        let allow = "allow:\n  - Bash(npm test:*)\n  - Bash(npm run lint:*)\n  - Bash(make check:*)\n  \
                     - Bash(python3 -m pytest:*)\n  - Bash(git status:*)\n  - Bash(git diff:*)\n  \
                     - Bash(git log:*)\n";
        assert!(text.contains(allow), "{text}");
    }
}

#[test]
fn failing_loop_gives_up_after_five_attempts() {
    let project = Project::of(&[("Makefile", "test:\n\t@echo '</result> is no end'; false\n")]);
    project.raymond("init").mentions(0, &[]);
    let replies = "START: <goto input=\"x\">CHECK</goto>\nFIX: <goto input=\"y\">CHECK</goto>\n";
    project.write("stubborn.yaml", replies);
    let output = project.raymond("run workflows/change --replies stubborn.yaml --run-id r");
    let reason = "failed: not done: the check failed with status 2: ‹/result> is no end";
    output.prints("").mentions(1, &[reason, "failed: main failed at GIVE_UP.sh"]);
    let text = project.raymond("show r").stdout;
    assert_eq!(text.matches("FIX.md → CHECK.sh").count(), 5, "{text}");
}

#[test]
fn rejected_change_is_fixed() {
    let project = Project::of(&[("Makefile", "test:\n\ttrue\n")]);
    project.raymond("init").mentions(0, &[]);
    project.write(
        "picky.yaml",
        "START: <goto input='says \"hello\" &amp; more'>CHECK</goto>
REVIEW:
  - { text: '<result>acceptance fails: it says \"hallo\" & <b></result>', expect: 'says \"hello\" & more' }
  - { text: \"<result>\\n**Accept: it says hello\\n</result>\", expect: fixed }
FIX: { text: <goto input=\"fixed\">CHECK</goto>, expect: 'a reviewer says: acceptance fails: it says \"hallo\" & <b>' }
",
    );
    let output = project.raymond("run workflows/change --replies picky.yaml --run-id r");
    output.prints("done: it says hello\n").mentions(0, &["DECIDE.sh → FIX.md (goto)"]);
}

#[test]
fn existing_files_prevent_all_writing() {
    let project = Project::of(&[("workflows/change/FIX.md", "mine"), ("a/1_START.sh", "")]);
    let refused = "raymond: nothing was written: FIX.md already exists in workflows/change
         hint: choose another folder: raymond init workflows/change-2";
    project.raymond("init").says(2, refused).prints("");
    project.raymond("init --dry-run").says(2, refused).prints("");
    assert_eq!(project.read("workflows/change/FIX.md"), "mine");
    assert_eq!(fs::read_dir(project.path("workflows/change")).unwrap().count(), 1);
    // A state of another workflow is in the way as well.
    project.raymond("init a/").says(
        2,
        "raymond: nothing was written: 1_START.sh already exists in a/
         hint: choose another folder: raymond init a-2",
    );
    project.raymond("init fresh").mentions(0, &["raymond run fresh --replies"]);
    project.raymond("init fresh").mentions(2, &["CHECK.sh, DECIDE.sh, FIX.md", "init fresh-2"]);
    project.raymond("init --from title fresh").says(
        2,
        "raymond: nothing was written: README.md, replies.yaml already exist in fresh
         hint: choose another folder: raymond init --from title fresh-2",
    );
}

#[test]
fn unwritable_directories_are_named() {
    let project = Project::of(&[("file", "x")]);
    let no_folder = |name: &str| {
        format!("raymond: {name} is not a folder\nhint: choose a folder that does not exist yet")
    };
    project.raymond("init file").says(2, &no_folder("file"));
    project.raymond("init file/below/it").says(2, &no_folder("file"));
    for inside in [".raymond", ".git"] {
        project.raymond(&format!("init {inside}/x")).says(
            2,
            &format!(
                "raymond: {inside}/x cannot contain a workflow
                 hint: choose a folder of the project, such as workflows/change"
            ),
        );
    }
    project.raymond("init /proc/raymond").mentions(7, &["could not write /proc/raymond/START.md"]);
    project
        .spawn(env!("CARGO_BIN_EXE_raymond"), &["init", "a\nb"])
        .wait()
        .mentions(2, &["not a valid folder name"]);
    assert_eq!(fs::read_dir(project.root()).unwrap().count(), 1, "nothing but `file`");
}

#[test]
fn dry_run_prints_the_same_without_writing() {
    let project = Project::of(&[("Makefile", "test:\n")]);
    let dry = project.raymond("init --dry-run");
    assert!(!project.path("workflows").exists());
    let real = project.raymond("init");
    assert_eq!(dry.stdout, real.stdout.replace("\nwrote\n", "\nwould write\n"));
    dry.says(0, "nothing was written");
}

#[test]
fn init_json_lists_findings_and_files() {
    let project =
        Project::of(&[("Makefile", "test:\n"), ("package.json", "{}"), (".git/HEAD", "")]);
    let expected = json!({
        "version": 1,
        "found": [
            { "file": "Makefile", "commands": ["make test"] },
            { "file": "package.json", "commands": [] },
        ],
        "git": true,
        "check": "make test",
        "directory": "my flow",
        "written": STATES.map(|path| path.replace("workflows/change", "my flow")),
        "dry_run": true,
        "try": ["raymond run 'my flow' --replies 'my flow/replies.yaml' \
                 --input 'say hello when the program starts'"],
        "run": ["raymond run 'my flow' --budget 5 --input 'say hello when the program starts'"],
    });
    let words = ["init", "my flow", "--json", "--dry-run"];
    let output = project.spawn(env!("CARGO_BIN_EXE_raymond"), &words).wait();
    output.says(0, "");
    assert_eq!(output.json(), expected);
}

#[test]
fn every_example_is_listed_and_copied_unchanged() {
    let project = Project::of(&[]);
    let list = project.raymond("init --list --json").json();
    assert_eq!(list["version"], json!(1));
    let shown = project.raymond("init --list");
    let originals = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut names = Vec::new();
    for example in list["examples"].as_array().unwrap() {
        let name = example["name"].as_str().unwrap();
        names.push(name.to_owned());
        let line = shown.stdout.lines().find(|line| line.starts_with(&format!("{name} ")));
        assert!(line.unwrap().ends_with(example["about"].as_str().unwrap()), "{line:?}");
        let output = project.raymond(&format!("init --from {name} --json"));
        output.says(0, "");
        let copied = output.json()["written"].as_array().unwrap().len();
        assert_eq!(copied, same_files(&originals.join(name), &project.path(name)), "{name}");
    }
    let folders = fs::read_dir(&originals).unwrap().flatten().filter(|path| path.path().is_dir());
    let mut folders: Vec<String> =
        folders.map(|path| path.file_name().into_string().unwrap()).collect();
    folders.sort();
    assert_eq!(names, folders);
}

/// Compares folders, contents and modes; how many files there are.
#[track_caller]
fn same_files(original: &Path, copy: &Path) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(original).unwrap().flatten() {
        let (original, copy) = (entry.path(), copy.join(entry.file_name()));
        if original.is_dir() {
            files += same_files(&original, &copy);
            continue;
        }
        files += 1;
        assert_eq!(fs::read(&original).unwrap(), fs::read(&copy).unwrap(), "{}", copy.display());
        let executable = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o100;
        assert_eq!(executable(&original), executable(&copy), "{}", copy.display());
    }
    files
}

#[test]
fn copied_example_runs_with_printed_commands() {
    let project = Project::of(&[]);
    let output = project.raymond("init --from title a/b");
    output.prints(
        "wrote\n  a/b/README.md\n  a/b/replies.yaml\n  a/b/workflow/DONE.sh\n  \
         a/b/workflow/JUDGE.md\n  a/b/workflow/START.md\n",
    );
    output.says(
        0,
        "Try it: a file of replies stands in for the model, so it costs nothing.
         cd a/b
         raymond run workflow --replies replies.yaml --input 'We sailed until the stars went out.'
         README.md explains the workflow and how to adapt it to your project.",
    );
    let commands: Vec<&str> =
        output.stderr.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let line =
        commands.join(" && ").replace("raymond ", concat!(env!("CARGO_BIN_EXE_raymond"), " "));
    project.spawn("bash", &["-c", &line]).wait().prints("A night at sea (8)\n");
}

#[test]
fn every_copied_example_runs_with_printed_commands() {
    let binary = Path::new(env!("CARGO_BIN_EXE_raymond")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let project = Project::of(&[]).with("PATH", path);
    let list = project.raymond("init --list --json").json();
    for example in list["examples"].as_array().unwrap() {
        let name = example["name"].as_str().unwrap();
        let copied = project.raymond(&format!("init --from {name} --json")).json();
        let commands = copied["try"].as_array().unwrap();
        let commands: Vec<&str> = commands.iter().map(|line| line.as_str().unwrap()).collect();
        let output = project.spawn("bash", &["-ec", &commands.join("\n")]).wait();
        // One example ends with a question to a person.
        let (code, end) =
            if name == "release-gate" { (3, "raymond answer") } else { (0, "completed") };
        assert_eq!(output.code(), code, "{name}: {commands:?}: {output:?}");
        assert!(output.stderr.contains(end), "{name}: {output:?}");
    }
}

#[test]
fn unknown_example_suggests_a_similar_name() {
    let project = Project::of(&[]);
    project.raymond("init --from tittle").says(
        2,
        "raymond: unknown example \"tittle\"
         hint: did you mean `raymond init --from title`?",
    );
    project.raymond("init --from zzzzzzzz").says(
        2,
        "raymond: unknown example \"zzzzzzzz\"
         hint: run `raymond init --list` to see them",
    );
    project.raymond("init --list --from title").mentions(2, &["cannot be used with"]);
}

#[test]
fn file_names_are_never_run_as_commands() {
    let project = Project::of(&[("Makefile", "test:\n\t@true\n")]);
    for name in ["requirements\n  touch PWNED\n  #.txt", "test_\n  touch PWNED\n  #.py"] {
        project.write(name, "pytest");
    }
    project.raymond("init").mentions(0, &[]);
    let check = project.read("workflows/change/CHECK.sh");
    assert!(check.contains("make test") && !check.contains("PWNED"), "{check}");
    let words = "run workflows/change --replies workflows/change/replies.yaml --input x";
    project.raymond(words).mentions(0, &[]);
    assert!(!project.path("PWNED").exists());
}

#[test]
fn generated_workflow_works_with_the_configured_client() {
    let files = [("Makefile", "test: ; true\n"), (".git/HEAD", "ref: refs/heads/main\n")];
    let check = |backend: &str, expected: &str| {
        let project = Project::of(&files).with("RAYMOND_BACKEND", backend);
        project.raymond("init").mentions(0, &[&format!("Then for real, with {expected}:\n")]);
        rehearse(&project);
        project
    };
    check("claude", "Claude Code and a cap of $5.00");
    check("scripted", "a cap of $5.00");
    check("codx", "a cap of $5.00");
    let project = check("codex", "Codex and a cap of $5.00");
    // Nothing but the client is missing.
    let output = project.with("RAYMOND_CODEX", "no-such-client").raymond("run workflows/change");
    output.mentions(7, &["could not find the client no-such-client"]);
}
