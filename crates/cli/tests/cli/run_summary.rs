//! The warnings before a run and the summary after it: complete, and without repetition.

use crate::harness::Project;

/// Workers that all fail.
fn failing(workers: usize) -> Project {
    let forks = "<fork next=\"END\">BAD</fork>".repeat(workers);
    Project::of(&[
        ("wf/START.sh", &format!("echo '{forks}'")),
        ("wf/BAD.sh", "echo 'no way' >&2; exit 1"),
        ("wf/END.sh", "echo '<result>mine</result>'"),
    ])
}

#[test]
fn reason_in_the_log_is_not_repeated() {
    let check = |workers: usize, expected: &str| {
        let output = failing(workers).raymond("run wf --run-id r");
        assert_eq!(output.stderr.matches("no way").count(), workers, "{output:?}");
        output.mentions(1, &[&format!("\nfailed: {expected}\n  path")]);
        output.mentions(1, &["look     raymond why r · raymond show r · raymond logs r\n"]);
    };
    check(1, "main_bad1 failed at BAD.sh");
    check(2, "2 agents failed: main_bad1 at BAD.sh, main_bad2 at BAD.sh");
    let named: Vec<String> = (1..=6).map(|worker| format!("main_bad{worker} at BAD.sh")).collect();
    check(8, &format!("8 agents failed: {} and 2 more", named.join(", ")));
}

#[test]
fn unwatched_run_lists_reasons() {
    let project = failing(1);
    project
        .raymond("run wf --run-id one --quiet")
        .says(1, "main_bad1        BAD.sh: failed: script: exit status 1: no way");
    project.raymond("attach one").mentions(
        1,
        &[
            "failed: main_bad1 failed at BAD.sh: script: exit status 1: no way\n",
            "look     raymond show one",
        ],
    );
    project
        .raymond("attach one --quiet")
        .says(1, "failed: main_bad1 failed at BAD.sh: script: exit status 1: no way");
    let project = failing(2);
    project.raymond("run wf --run-id two").mentions(1, &[]);
    project.raymond("attach two --quiet").says(
        1,
        "failed: 2 agents failed
         main_bad1 failed at BAD.sh: script: exit status 1: no way
         main_bad2 failed at BAD.sh: script: exit status 1: no way",
    );
}

#[test]
fn missing_input_is_warned_about_once() {
    let check = |prompt: &str, words: &str, expected: Option<&str>| {
        let project = Project::of(&[
            ("wf/START.md", prompt),
            ("wf/NEXT.md", "Go on with {{input}}."),
            ("replies.yaml", "START: <goto>NEXT</goto>\nNEXT: <result>x</result>\n"),
        ]);
        let output = project.raymond(&format!("run wf --replies replies.yaml {words}"));
        output.mentions(0, &[]);
        let warnings: Vec<&str> =
            output.stderr.lines().take_while(|line| line.starts_with("warning")).collect();
        assert_eq!(warnings, expected.into_iter().collect::<Vec<_>>(), "{output:?}");
        assert_eq!(output.stderr.matches("--input").count(), warnings.len(), "{output:?}");
    };
    let input = "warning: START.md has {{input}} but no --input was given, so it will be empty";
    let result = "warning: START.md has {{result}} but no --input was given, so it will be empty";
    check("Do {{input}}, {{ result }}.", "", Some(input));
    check("Do {{ result }}.", "", Some(result));
    check("Do {{input}}.", "--input x", None);
    check("Do {{input}}.", "--input=", None);
    check("Do {{input}}.", "--quiet", Some(input));
    check("Do {{visit}}, { {input} }.", "", None);
    let unused = "warning: START.md has no {{input}}, so --input has no effect";
    check("Do it.", "--input x", Some(unused));
}
