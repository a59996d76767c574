//! How a workflow, a project and the text of a flag are found.

use rustix::process::Signal;

use crate::harness::{Output, Project, until};

const START: (&str, &str) =
    ("workflows/change/START.sh", "echo \"<result>$RAYMOND_INPUT</result>\"");

/// Runs `raymond` in a directory of the project.
fn inside(project: &Project, directory: &str, words: &str) -> Output {
    let command = format!("cd {directory} && exec \"$0\" {words}");
    project.spawn("bash", &["-c", &command, env!("CARGO_BIN_EXE_raymond")]).wait()
}

#[test]
fn bare_name_starts_a_workflow_of_the_project() {
    let project = Project::of(&[START]);
    project.raymond("run change --input a --run-id one").prints("a\n").mentions(0, &[]);
    project.raymond("change --input b").prints("b\n").mentions(0, &[]);
    let meant =
        "raymond: could not find a workflow chnage\nhint: did you mean `raymond run change`?\n";
    project.raymond("run chnage").says(2, meant);
    let meant = "hint: did you mean `raymond run change`?";
    project.raymond("chnage").mentions(2, &["unknown command or workflow `chnage`", meant]);
    // A path is never looked up by name.
    project.raymond("run ./change").mentions(2, &["could not find ./change"]);
}

#[test]
fn run_without_a_name_lists_the_workflows() {
    let project = Project::of(&[START, ("other/1_START.md", ""), ("notes/IDEA.md", "")]);
    project.raymond("run").says(
        2,
        "workflows here:\n  change\n  other\nraymond: no workflow is named\n\
         hint: `raymond run NAME` starts one\n",
    );
    Project::of(&[]).raymond("run").mentions(2, &["there is none here", "raymond init"]);
}

#[test]
fn state_without_extension_is_named_with_its_neighbours() {
    let project = Project::of(&[START, ("workflows/change/FIX.md", "")]);
    let hint = "hint: did you mean workflows/change/START.sh? \
                the states of workflows/change are FIX.md, START.sh";
    project.raymond("run workflows/change/START").mentions(2, &[hint]);
    let hint = "hint: did you mean START.sh? the states here are FIX.md, START.sh; \
                `raymond run .` starts this workflow";
    inside(&project, "workflows/change", "run START").mentions(2, &[hint]);
}

#[test]
fn every_command_works_from_a_subdirectory() {
    let project = Project::of(&[START, ("a/b/file", "")]);
    project.raymond("run change --input x --run-id one").prints("x\n").mentions(0, &[]);
    inside(&project, "a/b", "status one").mentions(0, &[]);
    inside(&project, "a/b", "run change --input y").prints("y\n").mentions(0, &[]);
    assert!(!project.path("a/b/.raymond").exists());
    let meant = "did you mean `raymond run /project/workflows/change`?";
    inside(&project, "a", "run workflows/change").mentions(2, &[meant]);
    // Settings make a project, too, before its first run.
    let settings = Project::of(&[("raymond.toml", "budget = 3\n"), ("a/file", "")]);
    let shown = inside(&settings, "a", "config --json").json();
    assert!(shown["settings"][0]["value"] == 3.0, "{shown}");
}

#[test]
fn input_comes_from_a_file_or_a_pipe() {
    let project = Project::of(&[START, ("note.txt", "from a file")]);
    project.raymond("run change --input @note.txt").prints("from a file\n").mentions(0, &[]);
    project.raymond("run change --input @@note").prints("@note\n").mentions(0, &[]);
    project.sends("from a pipe", "run change --input -").prints("from a pipe\n").mentions(0, &[]);
    for form in ["", "@"] {
        let words = format!("run change --input {form}<(echo from a command)");
        inside(&project, ".", &words).prints("from a command\n").mentions(0, &[]);
    }
    let empty = project.sends("", "run change --input -");
    empty.mentions(0, &["warning: --input -: standard input is empty"]);
    project.raymond("run change --input @missing --run-id no").says(
        2,
        "raymond: --input: missing: No such file or directory (os error 2)\n\
         hint: to pass this text itself: --input '@@missing'\n",
    );
    project.never_started("no");
}

#[test]
fn background_run_gets_the_text_of_a_pipe() {
    let project = Project::of(&[START]);
    project.sends("from a pipe", "run change --input - -d --run-id one").mentions(0, &[]);
    project.raymond("wait one").prints("from a pipe\n").mentions(0, &[]);
    let again = project.sends("from a pipe", "run change --input - --run-id one --or-resume -d");
    again.mentions(0, &[]);
    let other = project.sends("another", "run change --input - --run-id one --or-resume -d");
    other.mentions(2, &["one started with a different --input"]);
}

#[test]
fn replies_from_a_pipe_survive_a_stop() {
    let prompts = [("wf/START.md", "Go on."), ("wf/END.md", "{{result}}")];
    let project = Project::of(&prompts);
    let replies = "START: { text: <goto>END</goto> }\nEND: { hang: true }\n";
    let running = project.start_sending(replies, "run wf --replies - --run-id one");
    until("END is asked", || running.stderr_contains("START.md → END.md"));
    running.signal(Signal::INT);
    assert_eq!(running.wait().code(), 130);
    assert_eq!(project.read(".raymond/runs/one/replies.yaml"), replies);
    project.sends("END: x", "resume one --replies -").mentions(2, &["not a pipe"]);
    let other = project.sends("END: x", "run wf --replies - --run-id one --or-resume");
    other.mentions(2, &["one started with different --replies"]);
    // The kept copy answers; the user may edit it.
    project.write(".raymond/runs/one/replies.yaml", "END: <result>done</result>\n");
    project.raymond("resume one").prints("done\n").mentions(0, &[]);
    let wrong = project.sends("START: { txt: x }", "run wf --replies - --run-id two");
    wrong.mentions(2, &["replies:1:"]);
    project.never_started("two");
}

#[test]
fn flags_of_the_first_raymond_lead_to_todays() {
    let project = Project::of(&[START]);
    let check = |words: &str, hint: &str| {
        project.raymond(words).mentions(2, &["there is no flag", hint]);
    };
    check("--list", "`raymond list`");
    check("--resume abc", "`raymond resume RUN`");
    check("run change --workflow-id x", "--run-id ID");
    check("run change --cap 5", "the cap is --budget USD");
}

#[test]
fn files_that_are_not_read_are_mentioned() {
    let project = Project::of(&[START, ("workflows/change/workflow.yaml", "budget: 1")]);
    let warning = "warning: workflows/change/workflow.yaml is not read";
    project.raymond("run change --input x").mentions(0, &[warning]);
    project.write(".raymond/config.toml", "budget = 1");
    let warning = "warning: .raymond/config.toml is not read";
    project.raymond("run change --input x").mentions(0, &[warning]);
    project.write("a/file", "");
    let warning = "warning: /project/.raymond/config.toml is not read";
    inside(&project, "a", "run change --input x").mentions(0, &[warning]);
}
