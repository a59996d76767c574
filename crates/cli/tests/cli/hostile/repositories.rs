//! A cloned or unpacked repository that an attacker made.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::{LOOKS, everything, forge, is_plain};
use crate::harness::{Output, Project};

const FLOW: (&str, &str) = ("wf/START.sh", "echo '<result>x</result>'");

/// A program that leaves a mark when it is run.
fn trap(project: &Project, name: &str) {
    project.write(name, "#!/bin/sh\ntouch sprung\necho 2.1.325\n");
    fs::set_permissions(project.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Whether the command that starts a run names the link.
#[derive(PartialEq)]
enum LinkReport {
    ByName,
    Otherwise,
}

// proves: P12, S6
#[test]
fn links_in_raymond_directory_are_never_followed() {
    let check = |link: &str, to: &str, report: &LinkReport| {
        for command in ["run wf --run-id nightly", "run wf -d --run-id nightly", "resume nightly"] {
            let project = Project::of(&[FLOW, ("home/.bashrc", "precious")]);
            let before = everything(&project.path("home"));
            let link = project.path(&format!(".raymond/{link}"));
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(project.path(to), link.components().as_path()).unwrap();
            let output = project.raymond(command);
            assert!(matches!(output.code(), 2 | 7), "{output:?}");
            assert_eq!(everything(&project.path("home")), before, "{command}");
            if *report == LinkReport::ByName && command.ends_with("wf --run-id nightly") {
                output.mentions(
                    7,
                    &["raymond: could not write into /project/.raymond", ": it is a link\n"],
                );
            }
        }
    };
    for directory in ["", "state", "runs"] {
        check(directory, "home", &LinkReport::ByName);
    }
    check("runs/nightly/lock", "home/.bashrc", &LinkReport::ByName);
    // The existing or unreadable run is reported first.
    for directory in ["runs/nightly", "runs/nightly/transcripts"] {
        check(directory, "home", &LinkReport::Otherwise);
    }
    for file in ["console.log", "journal.jsonl", "transcripts/main.1.1.1.jsonl"] {
        check(&format!("runs/nightly/{file}"), "home/.bashrc", &LinkReport::Otherwise);
    }
}

/// An ended run whose id is the name of a file in `home`, and a link from `.raymond/state` to
/// `home`.
fn ended_beside_a_link(script: &str) -> Project {
    let project = Project::of(&[("wf/START.sh", script), ("home/settings.json", "precious")]);
    project.raymond("run wf --run-id settings");
    fs::remove_dir_all(project.path(".raymond/state")).unwrap();
    symlink("../home", project.path(".raymond/state")).unwrap();
    project
}

// proves: P12, S6, S7
#[test]
fn ended_run_is_never_changed_through_links() {
    for script in [FLOW.1, "exit 1"] {
        let project = ended_beside_a_link(script);
        let before = everything(&project.root());
        for command in ["resume settings --plan", "resume settings", "doctor --fix"] {
            project.raymond(command);
            assert_eq!(everything(&project.root()), before, "{command}");
        }
        let link =
            "could not delete settings: could not write into /project/.raymond/state: it is a link";
        project.raymond("prune settings").prints("").mentions(7, &[link]);
        project.raymond("prune --older-than 0s --unfinished").prints("");
        assert_eq!(everything(&project.root()), before, "prune");
    }
}

// proves: S7
#[test]
fn target_of_linked_runs_is_left_alone() {
    let project = Project::of(&[(".raymond/runs/.removed-0-all/letter", "precious")]);
    project.never_started("Mail");
    fs::rename(project.path(".raymond/runs"), project.path("home")).unwrap();
    symlink("../home", project.path(".raymond/runs")).unwrap();
    let before = everything(&project.root());
    let output = project.raymond("doctor --fix").says(7, "").stdout.clone();
    let link = "could not write into /project/.raymond/runs: it is a link";
    assert!(output.contains(link) && !output.contains("Mail"), "{output}");
    let refused = format!("could not delete Mail: {link}");
    project.raymond("prune Mail").prints("").mentions(7, &[&refused]);
    project.raymond("prune").prints("").mentions(0, &[link]);
    assert_eq!(everything(&project.root()), before);
}

// proves: S6
#[test]
fn ballast_is_never_written_through_a_link() {
    let project = Project::of(&[FLOW, ("home/.bashrc", "precious"), (".raymond/x", "")]);
    symlink(project.path("home/.bashrc"), project.path(".raymond/ballast")).unwrap();
    project.raymond("run wf").prints("x\n");
    assert_eq!(project.read("home/.bashrc"), "precious");
}

// proves: S3
#[test]
fn project_configuration_cannot_choose_programs() {
    for client in ["claude", "codex"] {
        let project = Project::of(&[("wf/START.md", "go")]);
        trap(&project, "trap");
        project.write("raymond.toml", format!("budget = 5\n{client} = './trap'\n"));
        let mistake = format!(
            "raymond.toml:2:1: error: {client}: a project cannot choose the programs that Raymond runs"
        );
        for command in ["run wf", "config"] {
            project.raymond(&format!("{command} ")).prints("").mentions(2, &[&mistake]);
        }
        let doctor = project.raymond("doctor");
        assert!(doctor.stdout.contains(&mistake), "{doctor:?}");
        assert!(!project.path("sprung").exists());
    }
}

// proves: S4
#[test]
fn no_file_of_a_project_skips_permissions() {
    let project = Project::of(&[("wf/START.md", "go"), ("r.yaml", "START: <result>x</result>")]);
    project.write("raymond.toml", "permission_mode = 'bypassPermissions'\nreplies = 'r.yaml'\n");
    let refused = "the permission mode bypassPermissions skips all checks";
    project.raymond("run wf").prints("").mentions(2, &[refused]);
    project.write("raymond.toml", "dangerously_skip_permissions = true\n");
    project.raymond("run wf").prints("").mentions(2, &["unknown key"]);
}

// proves: S5
#[test]
fn git_starts_nothing_that_the_repository_names() {
    for (key, value, program) in
        [("core.fsmonitor", "trap", "trap"), ("core.hooksPath", "hooks", "hooks/post-index-change")]
    {
        let project = Project::of(&[FLOW]);
        trap(&project, program);
        let value = project.path(value).display().to_string();
        for words in [&["init", "-q"][..], &["add", "wf"], &["config", key, &value]] {
            assert_eq!(project.spawn("git", words).wait().code(), 0);
        }
        // A comparison by git would update the index.
        project.write(FLOW.0, FLOW.1);
        let doctor = project.raymond("doctor");
        assert!(doctor.stdout.contains("git"), "{doctor:?}");
        assert!(!project.path("sprung").exists(), "{key}");
        assert_eq!(project.spawn("git", &["status"]).wait().code(), 0);
        assert!(project.path("sprung").exists(), "git alone would have started it: {key}");
    }
}

/// An unfinished run, as it is in a clone.
fn planted() -> Project {
    let project = Project::of(&[("wf/START.sh", "touch sprung; exit 1")]);
    assert_eq!(project.raymond("run wf --run-id r").code(), 1);
    fs::remove_file(project.path("sprung")).unwrap();
    fs::remove_dir_all(project.path("wf")).unwrap();
    project
}

// proves: S1
#[test]
fn inspecting_runs_and_changes_nothing() {
    let project = planted();
    let before = everything(&project.root());
    for look in LOOKS {
        let output = project.raymond(look);
        assert!(output.status.code().is_some(), "{look}: {output:?}");
        assert_eq!(everything(&project.root()), before, "{look}");
    }
}

fn git(project: &Project, words: &[&str]) {
    let settings = ["user.name=a", "user.email=a@b.c", "protocol.file.allow=always"];
    let settings = settings.iter().flat_map(|setting| ["-c", setting]);
    let words: Vec<&str> = settings.chain(words.iter().copied()).collect();
    let output = project.spawn("git", &words).wait();
    assert_eq!(output.code(), 0, "{output:?}");
}

/// Moves all runs into the repository `theirs`, which tracks them, and clones it as `clone`.
fn given_away(project: &Project) {
    git(project, &["init", "-q", "theirs"]);
    fs::rename(project.path(".raymond"), project.path("theirs/.raymond")).unwrap();
    git(project, &["-C", "theirs", "add", "-f", ".raymond"]);
    git(project, &["-C", "theirs", "commit", "-q", "-m", "a present"]);
    git(project, &["clone", "-q", "theirs", "clone"]);
}

fn within(project: &Project, directory: &str, words: &str) -> Output {
    let line = format!("cd {directory} && exec {} {words}", env!("CARGO_BIN_EXE_raymond"));
    project.spawn("bash", &["-c", &line]).wait()
}

// proves: S2
#[test]
fn ended_run_tracked_by_git_is_only_read() {
    for script in [FLOW.1, "exit 1"] {
        let project = ended_beside_a_link(script);
        given_away(&project);
        fs::rename(project.path("home"), project.path("clone/home")).unwrap();
        let looked_at = || {
            let before = everything(&project.path("clone"));
            for command in ["resume settings --plan", "resume settings", "doctor --fix"] {
                within(&project, "clone", command);
                assert_eq!(everything(&project.path("clone")), before, "{command}");
            }
            before
        };
        looked_at();
        fs::remove_file(project.path("clone/.raymond/state")).unwrap();
        fs::create_dir(project.path("clone/.raymond/state")).unwrap();
        let before = looked_at();
        let refused = "settings came with the repository: git tracks its files";
        within(&project, "clone", "prune settings").prints("").mentions(2, &[refused]);
        assert_eq!(everything(&project.path("clone")), before, "prune");
    }
}

// proves: S2
#[test]
fn run_from_a_repository_is_not_continued() {
    let project = planted();
    let git = |words: &[&str]| git(&project, words);
    given_away(&project);
    let within = |words: &str| within(&project, "clone", words);
    assert!(within("list").stdout.contains("failed"));
    for command in ["resume", "resume r --pinned", "stop r", "cancel r"] {
        within(command)
            .prints("")
            .mentions(2, &["r came with the repository: git tracks its files"]);
    }
    assert!(!project.path("sprung").exists() && !project.path("clone/sprung").exists());
    git(&["-C", "clone", "rm", "-rq", "--cached", ".raymond"]);
    assert_eq!(within("resume r --pinned").code(), 1);
    assert!(project.path("sprung").exists(), "the user can confirm the run, and it continues");
}

// proves: P12, S2
#[test]
fn run_from_submodule_or_worktree_is_not_continued() {
    let project = planted();
    given_away(&project);
    git(&project, &["clone", "-q", "--bare", "theirs", "bare.git"]);
    git(&project, &["-C", "bare.git", "worktree", "add", "-q", "../worktree", "HEAD"]);
    git(&project, &["init", "-q", "outer"]);
    let theirs = project.path("theirs").display().to_string();
    git(&project, &["-C", "outer", "submodule", "--quiet", "add", &theirs, "inner"]);
    for place in ["worktree", "outer/inner"] {
        assert!(project.path(place).join(".git").is_file());
        for command in ["resume", "stop r", "cancel r", "prune r"] {
            let output = within(&project, place, command);
            output.prints("").mentions(2, &["r came with the repository: git tracks its files"]);
        }
        assert!(!project.path(place).join("sprung").exists());
    }
    fs::rename(project.path("bare.git"), project.path("moved")).unwrap();
    let untold =
        "could not check whether r came with the repository: /project/worktree/.git: there is no";
    let output = within(&project, "worktree", "resume r --pinned");
    output.prints("").mentions(7, &[untold, "hint: repair the repository"]);
    assert!(!project.path("sprung").exists() && !project.path("worktree/sprung").exists());
}

// proves: S2
#[test]
fn tracked_run_is_found_in_every_index_format() {
    let shorten: &[&str] = &["update-index", "--index-version", "4"];
    for (format, forms) in [
        ("sha1", &[shorten] as &[&[&str]]),
        ("sha1", &[&["update-index", "--split-index"]]),
        ("sha1", &[shorten, &["update-index", "--split-index"]]),
        ("sha1", &[shorten, &["update-index", "--skip-worktree", ".raymond/runs/a"]]),
        ("sha256", &[]),
        ("sha256", &[shorten]),
    ] {
        let project = planted();
        let within = |words: &[&str]| git(&project, &[&["-C", "."], words].concat());
        within(&["init", "-q", "--object-format", format]);
        // Paths that share their beginning with those of the run, and come before them.
        project.write(".raymond/runs/a", "");
        project.write(&format!(".raymond/runs/{}", "q".repeat(200)), "");
        within(&["add", "-f", ".raymond"]);
        for form in forms {
            within(form);
        }
        let refused = ["r came with the repository: git tracks its files"];
        project.raymond("resume r --pinned").prints("").mentions(2, &refused);
        within(&["update-index", "--no-split-index"]);
        within(&["rm", "-q", "--cached", "-r", ".raymond/runs/r"]);
        assert_eq!(project.raymond("resume r --pinned").code(), 1, "{format} {forms:?}");
    }
}

// proves: S19
#[test]
fn names_in_a_journal_are_sanitized() {
    let project = planted();
    forge(&project, |line| {
        let line = line.replace("START.sh", "ST\\u001b[2JART.sh");
        line.replace("/wf\"", "/w\\u001b]0;owned\\u0007f\"")
            .replace("\"main\"", "\"ma\\u001b[31min\"")
    });
    for look in LOOKS {
        is_plain(&project.raymond(look));
    }
    is_plain(&project.raymond("resume r"));
}

// proves: S13
#[test]
fn file_names_are_sanitized() {
    let project = Project::of(&[
        ("w\u{1b}[2Jf/START.sh", "echo '<goto>N\u{1b}]0;x\u{7}</goto>'"),
        ("w\u{1b}[2Jf/N\u{1b}]0;x\u{7}.sh", "exit 1"),
    ]);
    let run =
        project.spawn(env!("CARGO_BIN_EXE_raymond"), &["run", "w\u{1b}[2Jf", "--run-id", "r"]);
    is_plain(&run.wait());
    for look in LOOKS {
        is_plain(&project.raymond(look));
    }
}

// proves: S8
#[test]
fn run_id_is_never_a_path() {
    let project = Project::of(&[FLOW, ("secret/journal.jsonl", "{}")]);
    project.raymond("run wf --run-id r").prints("x\n");
    let before = everything(&project.root());
    for id in ["../../secret", "r/../r", "/etc", ".", "..", "r\u{1b}[2J", ""] {
        for words in [
            &["status"][..],
            &["show"],
            &["resume"],
            &["stop"],
            &["logs"],
            &["run", "wf", "--run-id"],
        ] {
            let words: Vec<&str> = words.iter().copied().chain([id]).collect();
            let output = project.spawn(env!("CARGO_BIN_EXE_raymond"), &words).wait();
            assert_eq!(output.code(), 2, "{words:?}: {output:?}");
            is_plain(&output);
        }
    }
    assert_eq!(everything(&project.root()), before);
}

// proves: S11
#[test]
fn sparse_terabyte_file_is_rejected() {
    let project = Project::of(&[FLOW]);
    let huge = |name: &str| {
        project.write(name, "");
        fs::OpenOptions::new()
            .write(true)
            .open(project.path(name))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
    };
    huge("raymond.toml");
    project
        .raymond("run wf")
        .mentions(7, &["could not read raymond.toml: it is larger than 1 MiB"]);
    fs::remove_file(project.path("raymond.toml")).unwrap();
    huge("wf/BIG.sh");
    project.raymond("run wf").mentions(2, &["have more than 64 MiB"]);
    fs::remove_file(project.path("wf/BIG.sh")).unwrap();
    project.raymond("run wf --run-id r").prints("x\n");
    huge(".raymond/runs/r/journal.jsonl");
    for command in ["status r", "resume r", "list"] {
        let output = project.raymond(command);
        assert!(matches!(output.code(), 0 | 7), "{command}: {output:?}");
    }
}
