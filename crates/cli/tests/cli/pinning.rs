//! A pinned run uses the pinned text of its scripts, even if their files change.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::Project;

/// Three visits, and the name of the directory beside the script that each of them read.
const PINNED: &str = "\
read -r beside < \"$(dirname \"${BASH_SOURCE[0]}\")/data\"
read -r above < \"$(dirname \"$0\")/../lib/above\"
echo \"pinned $beside $above\" >> log
if [ \"$(wc -l < log)\" -ge 3 ]; then echo '<result>done</result>'; else echo '<goto>START</goto>'; fi
";

/// Text that must never run.
const EDITED: &str = "echo edited >> log; echo '<result>edited</result>'";

/// A program that replaces the shell: it edits the script when Raymond starts it, and then becomes
/// the shell. An edit cannot be closer to the start of a script.
fn editor(edit: &str) -> String {
    format!(
        "#!/bin/sh\nfile=\"$RAYMOND_SCOPE/START.sh\"\ntext=\"{}\"\n{edit}\nexec /bin/bash \"$@\"\n",
        EDITED.replace('"', "\\\"")
    )
}

const EDITS: [(&str, &str); 3] = [
    ("in place", "printf '%s\\n' \"$text\" > \"$file\""),
    ("by rename", "printf '%s\\n' \"$text\" > \"$file.new\"; mv \"$file.new\" \"$file\""),
    ("by removal", "rm -f \"$file\""),
];

fn executable(project: &Project, name: &str, text: &str) {
    project.write(name, text);
    fs::set_permissions(project.path(name), Permissions::from_mode(0o755)).unwrap();
}

fn project(edit: &str) -> Project {
    let project = Project::of(&[("flows/wf/data", "beside\n"), ("flows/lib/above", "above\n")]);
    fs::create_dir(project.path(".git")).unwrap();
    executable(&project, "bin/bash", &editor(edit));
    project
}

fn runs_what_was_pinned(project: &Project, how: &str) {
    project.raymond("run flows/wf --run-id r").prints("done\n").mentions(0, &[]);
    assert_eq!(project.read("log"), "pinned beside above\n".repeat(3), "edited {how}");
}

// proves: A14
#[test]
fn edit_before_bash_reads_it_is_ignored() {
    for (how, edit) in EDITS {
        let project = project(edit);
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", project.path("bin").display());
        let project = project.with("PATH", path);
        project.write("flows/wf/START.sh", PINNED);
        runs_what_was_pinned(&project, how);
    }
}

#[test]
fn edit_before_an_interpreter_reads_it_is_ignored() {
    for (how, edit) in EDITS {
        let project = project(edit);
        let interpreter = project.path("bin/bash");
        let text = format!("#!{}\n{PINNED}", interpreter.display());
        executable(&project, "flows/wf/START.sh", &text);
        runs_what_was_pinned(&project, how);
    }
}

#[test]
fn script_that_edits_itself_runs_unchanged() {
    let text = "echo one >> log\necho 'echo two >> log' >> \"$RAYMOND_SCOPE/START.sh\"\n\
                echo '<result>done</result>'\n";
    let project = Project::of(&[("wf/START.sh", text)]);
    project.raymond("run wf --run-id r").prints("done\n").mentions(0, &[]);
    assert_eq!(project.read("log"), "one\n");
    assert!(project.read("wf/START.sh").ends_with("echo two >> log\n"));
}

#[test]
fn messages_of_a_script_name_its_own_file() {
    let start = "source \"$(dirname \"$0\")/lib\"\nno-such-tool\nexit 3";
    let project = Project::of(&[("wf/START.sh", start), ("wf/lib", "no-such-lib")]);
    project.raymond("run wf --run-id r").mentions(
        1,
        &["/project/wf/lib: line 1: no-such-lib", "/project/wf/START.sh: line 2: no-such-tool"],
    );
    let stderr = project.raymond("logs r").stdout;
    assert!(stderr.contains("/wf/START.sh: line 2") && !stderr.contains("definition"), "{stderr}");
}

#[test]
fn unpinned_run_starts_the_script_itself() {
    let text = "echo \"<result>$0</result>\"";
    let project = Project::of(&[("wf/START.sh", text)]);
    project.raymond("run wf --unpinned").prints("/project/wf/START.sh\n").mentions(0, &[]);
}
