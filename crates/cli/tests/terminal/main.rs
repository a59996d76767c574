//! The real binary in a real terminal, with its screen read back.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../cli/harness.rs"]
mod harness;
mod picture;
mod screen;

use std::os::unix::fs::symlink;
use std::path::Path;

use anstream::adapter::strip_str;
use harness::{Project, until};
use screen::{Gate, Terminal};
use unicode_width::UnicodeWidthStr as _;

const RAYMOND: &str = env!("CARGO_BIN_EXE_raymond");
/// A script that waits for the file `go`, or for the end of a failed test, which removes the
/// directory.
const WAIT: &str = "until test -e go; do test -d $PWD || exit 1; sleep 0.01; done; echo \"<result>$RAYMOND_AGENT_ID</result>\"";

/// A run whose first state forks so many workers; all of them wait for the file `go`.
fn forking(workers: usize) -> Project {
    let forks = "<fork next=\"DONE\">W</fork>".repeat(workers);
    Project::of(&[
        ("wf/START.sh", &format!("echo '{forks}'")),
        ("wf/W.sh", WAIT),
        ("wf/DONE.sh", WAIT),
    ])
}

fn start(project: &Project, words: &str, variables: &[(&str, &str)]) -> Terminal {
    let words: Vec<&str> = [RAYMOND].into_iter().chain(words.split(' ')).collect();
    Terminal::start(&project.root(), &words, variables)
}

fn rows(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.starts_with('▸')).count()
}

#[test]
fn every_agent_has_a_row_below_the_log() {
    let project = forking(3);
    let terminal = start(&project, "run wf --run-id r", &[]);
    let log = [
        "r: cap $10.00 · 4 at a time · 3 states pinned",
        "0000-00-00 UTC",
        "00:00:00 main starts at START.sh",
        "00:00:00 main START.sh → DONE.sh (fork)",
        "00:00:00 main_w1 starts at W.sh",
        "00:00:00 main_w2 starts at W.sh",
        "00:00:00 main_w3 starts at W.sh",
    ];
    let live = [
        "▸ main DONE runs 0s",
        "▸ main_w1 W runs 0s",
        "▸ main_w2 W runs 0s",
        "▸ main_w3 W runs 0s",
        "$0.00 of $10.00 · 4 running · 0s · 0 of 3 workers done · Ctrl-C stops",
    ];
    assert_eq!(terminal.until_shown("4 running"), [&log[..], &live[..]].concat());
    project.write("go", "");
    let (code, lines, _) = terminal.end();
    let (start, end) = lines.split_at(log.len() + 4);
    assert_eq!((code, &start[..log.len()]), (0, &log.map(str::to_owned)[..]));
    assert!(start[log.len()..].iter().all(|line| line.contains(" ended")), "{lines:?}");
    assert_eq!(
        end,
        [
            "completed in 0s: main and 3 workers ended with a result",
            "path START → DONE",
            "results main_w1 main_w1",
            "main_w2 main_w2",
            "main_w3 main_w3",
            "look raymond show r · raymond logs r",
            "spent $0.00 of $10.00",
            "main",
        ]
    );
}

#[test]
fn mistake_is_shown_in_its_line() {
    let project = Project::of(&[("wf/START.md", "---\nmax_visits: many\n---\nWork.\n")]);
    let terminal = start(&project, "run wf", &[]);
    let (code, lines, _) = terminal.end();
    assert_eq!(code, 2);
    assert_eq!(
        lines,
        [
            "error[wrong-type]: `max_visits` must be a whole number, found a text",
            "--> wf/START.md:2:13",
            "|",
            "2 | max_visits: many",
            "| ^^^^",
            "",
            "raymond: the workflow has a mistake",
        ]
    );
}

// proves: S31
#[test]
fn line_with_a_secret_is_not_shown() {
    let check = |secret: &str, comment: &str| {
        let text = format!("---\nmax_visits: many # {comment}\n---\nWork.\n");
        let project = Project::of(&[("wf/START.md", &text)]);
        let (code, lines, bytes) = start(&project, "run wf", &[("MY_TOKEN", secret)]).end();
        assert_eq!((code, &*lines[1]), (2, "--> wf/START.md:2:13"), "{lines:?}");
        assert!(!bytes.contains("many #"), "{bytes}");
    };
    // The terminal has room for a part of it only.
    let secret = "hunter2-correct-horse-battery-staple-0987654321".repeat(3);
    check(&secret, &format!("{secret} and more"));
    let (first, second) = ("first line of a key", "second line of a key");
    check(&format!("{first}\n{second}"), second);
}

#[test]
fn resize_leaves_no_remains() {
    let project = forking(3);
    let terminal = start(&project, "run wf --run-id r", &[]);
    terminal.until_shown("4 running · 0s · 0 of 3 workers done · Ctrl-C stops");
    let check = |columns, height, footer: &str| {
        terminal.resize(columns, height);
        let is_last = |lines: &[String]| lines.last().is_some_and(|line| line == footer);
        let lines = terminal.until(footer, is_last);
        assert_eq!(rows(&lines), 4, "{lines:#?}");
        let footers = lines.iter().filter(|line| line.contains("of $10.00")).count();
        assert_eq!(footers, 1, "{lines:#?}");
    };
    check(40, 24, "$0.00 of $10.00 · 4 running · 0s");
    check(25, 24, "$0.00 of $10.00");
    check(100, 24, "$0.00 of $10.00 · 4 running · 0s · 0 of 3 workers done · Ctrl-C stops");
    // A screen without room shows no rows, and old rows are removed.
    terminal.resize(15, 24);
    terminal.until("no rows", |lines| rows(lines) == 0);
    check(60, 13, "$0.00 of $10.00 · 4 running · 0s · Ctrl-C stops");
    project.write("go", "");
    let (code, lines, _) = terminal.end();
    assert_eq!((code, rows(&lines)), (0, 0), "{lines:#?}");
}

#[test]
fn ctrl_c_stops_with_the_resume_command() {
    let project = forking(1);
    let mut terminal = start(&project, "run wf --run-id r", &[]);
    terminal.until_shown("2 running");
    terminal.press(b"\x03");
    let (code, lines, _) = terminal.end();
    let at = lines.iter().position(|line| line.contains("stopping")).unwrap();
    assert_eq!(lines[at], "00:00:00 · stopping; Ctrl-C again ends everything at once");
    let mut stopped = lines[at + 1..at + 3].to_vec();
    stopped.sort();
    assert_eq!(stopped, ["00:00:00 main DONE.sh: stopped", "00:00:00 main_w1 W.sh: stopped"]);
    assert_eq!(
        lines[at + 3..],
        [
            "stopped after 0s: a signal to its owner stopped it; 2 agents can continue",
            "path START → DONE",
            "look raymond show r · raymond logs r",
            "spent $0.00 of $10.00; to continue: raymond resume r",
        ]
    );
    assert_eq!((code, project.processes("r")), (130, vec![]));
}

#[test]
fn second_ctrl_c_ends_everything_at_once() {
    let project =
        Project::of(&[("wf/START.sh", "trap '' INT TERM; touch deaf; while :; do sleep 1; done")]);
    let mut terminal = start(&project, "run wf --run-id r", &[]);
    until("it is deaf", || project.path("deaf").exists());
    terminal.press(b"\x03");
    let is_stopping = |line: &String| {
        line.starts_with("$0.00 of $10.00 · 1 running · ") && line.ends_with("s · stopping")
    };
    terminal.until("it says that it stops", |lines| lines.last().is_some_and(is_stopping));
    terminal.press(b"\x03");
    let (code, lines, _) = terminal.end();
    assert_eq!((code, project.processes("r")), (130, vec![]), "{lines:#?}");
    assert!(lines.last().unwrap().ends_with("to continue: raymond resume r"), "{lines:#?}");
}

#[test]
fn thirty_agents_have_a_third_of_the_screen() {
    let project = forking(30);
    let terminal = start(&project, "run wf --run-id r --max-parallel 40", &[]);
    let lines = terminal.until_shown("31 running");
    assert_eq!((lines.len(), rows(&lines)), (23, 7), "{lines:#?}");
    assert_eq!(
        lines[21..],
        [
            "… and 24 more agents",
            "$0.00 of $10.00 · 31 running · 0s · 0 of 30 workers done · Ctrl-C stops"
        ]
    );
    project.write("go", "");
    let (code, lines, _) = terminal.end();
    assert_eq!((code, rows(&lines)), (0, 0), "{lines:#?}");
    assert!(lines.contains(&"… and 20 more".to_owned()), "{lines:#?}");
}

#[test]
fn wide_characters_stay_in_their_columns() {
    let project = Project::of(&[
        ("wf/START.sh", "echo '<fork next=\"検査する\">W</fork>'"),
        ("wf/W.sh", WAIT),
        ("wf/検査する.sh", WAIT),
    ]);
    let terminal = start(&project, "run wf --run-id r", &[]);
    terminal.until_shown("2 running");
    let lines = terminal.raw();
    let check = |beginning: &str| {
        let row = lines.iter().find(|line| line.starts_with(beginning));
        // Each row ends with its age, one column before the edge.
        assert_eq!(row.map(|row| row.width()), Some(79), "{beginning}: {lines:#?}");
    };
    check("▸ main     検査する  runs   ");
    check("▸ main_w1  W         runs   ");
    project.write("go", "");
    let (code, lines, _) = terminal.end();
    assert_eq!((code, rows(&lines)), (0, 0), "{lines:#?}");
    assert!(lines.contains(&"path START → 検査する".to_owned()), "{lines:#?}");
}

#[test]
fn dumb_terminal_and_quiet_print_no_escapes() {
    let check = |words: &str, variables: &[(&str, &str)], least: usize| {
        let project = forking(1);
        project.write("go", "");
        let (code, lines, bytes) = start(&project, words, variables).end();
        assert_eq!((code, bytes.contains('\u{1b}')), (0, false), "{words} {bytes}");
        assert!(lines.len() >= least, "{lines:#?}");
    };
    check("run wf --run-id r", &[("TERM", "dumb")], 10);
    check("run wf --run-id r --quiet", &[], 1);
    check("run wf --run-id r --quiet --json", &[], 1);
}

/// Whether there is an escape code that changes how text looks.
fn has_colours(bytes: &str) -> bool {
    let is_look = |code: &str| {
        code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    };
    bytes.split("\u{1b}[").skip(1).any(is_look)
}

#[test]
fn rows_stay_without_colours() {
    let check = |variables: &[(&str, &str)], colours: bool| {
        let project = Project::of(&[
            ("wf/START.md", "Begin {{nothing}}.\n"),
            ("wf/W.sh", "echo 'no way' >&2; exit 3"),
            ("wf/DONE.sh", WAIT),
            ("replies.yaml", "START: [['no tag', '<fork next=\"DONE\">W</fork>']]\n"),
        ]);
        let words = "run wf --replies replies.yaml --run-id r --max-parallel 1";
        let terminal = start(&project, words, variables);
        terminal.until("a row", |lines| rows(lines) == 1);
        project.write("go", "");
        let (code, lines, bytes) = terminal.end();
        assert_eq!((code, has_colours(&bytes)), (1, colours), "{bytes}");
        assert!(bytes.contains("\u{1b}[J"), "{bytes}");
        lines
    };
    let lines = check(&[("NO_COLOR", "1")], false);
    assert_eq!(lines, check(&[], true));
    for words in
        ["= hint: set the variable", "reminder 1: no tag", "W.sh: failed: ", "failed after"]
    {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {lines:#?}");
    }
}

#[test]
fn long_lines_wrap_below_their_text() {
    let project = Project::of(&[(
        "wf/START.sh",
        "echo 'the parser, the scanner and the printer were all asked and none of them knows' >&2\n\
         exit 3",
    )]);
    let words = "run wf --run-id a-run-that-somebody-gave-a-long-name";
    let (code, _, bytes) = start(&project, words, &[]).end();
    let text = strip_str(&bytes).to_string().replace('\r', "");
    // On a busy machine it lasts long enough for a live row.
    let lines = text.lines().filter(|line| !line.ends_with("Ctrl-C stops"));
    let printed: Vec<&str> = lines.skip_while(|line| !line.contains("failed:")).collect();
    let first = " main             START.sh: failed: script: exit status 3: the parser,";
    assert_eq!((code, printed[0].get(8..)), (1, Some(first)));
    assert!(printed[3].starts_with("failed after"), "{printed:#?}");
    assert_eq!(
        [&printed[1..3], &printed[4..]].concat(),
        [
            "                          the scanner and the printer were all asked and none",
            "                          of them knows",
            "  look     raymond why a-run-that-somebody-gave-a-long-name ·",
            "           raymond show a-run-that-somebody-gave-a-long-name ·",
            "           raymond logs a-run-that-somebody-gave-a-long-name",
            "spent $0.00 of $10.00; to continue, first fix START.sh or what it needs, then:",
            "  raymond resume a-run-that-somebody-gave-a-long-name --with-current",
        ]
    );
}

#[test]
fn examples_are_listed_in_two_columns() {
    let project = Project::of(&[]);
    let terminal = start(&project, "init --list", &[]);
    terminal.until_shown("to copy one");
    let lines = terminal.raw();
    let at = lines.iter().position(|line| line.starts_with("ralph ")).unwrap();
    assert_eq!(
        lines[at..at + 2],
        [
            "ralph                 Repeats one prompt in fresh conversations until a list is",
            "                      done.",
        ]
    );
}

#[test]
fn crayfish_on_a_terminal_prints_a_hint() {
    let project = Project::of(&[]);
    let (code, lines, _) = start(&project, "crayfish", &[]).end();
    assert_eq!(code, 2);
    let printed = lines.join(" ");
    assert!(printed.contains("raymond: crayfish reads a JSON request from stdin"), "{printed}");
    assert!(printed.contains("raymond crayfish < request.json"), "{printed}");
}

const DEEP: &str = r#"{ "vars": { "list": [] }, "steps": [
  { "id": "outer", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item", "body": [
    { "id": "judge", "kind": "agent", "prompt": "Say in one word whether this is worth the time that it takes.",
      "input": { "a": "{{locals.item.first}}", "b": "{{vars.list}}" },
      "schema": { "type": "object", "required": ["verdict"], "properties": { "verdict": { "enum": ["yes", "no"] } } } } ] } ] }"#;

#[test]
fn plan_wraps_on_a_narrow_terminal() {
    let project = Project::of(&[("flow.json", DEEP)]);
    let terminal = start(&project, "crayfish explain flow.json", &[]);
    let (code, lines, bytes) = terminal.end();
    assert_eq!(code, 0, "{lines:?}");
    assert!(has_colours(&bytes), "{bytes:?}");
    assert_eq!(
        lines,
        [
            "a workflow without a name: 2 steps",
            "vars list",
            "└ outer forEach item of $.vars.list",
            "│ one after the other",
            "└ judge agent Say in one word whether this is worth the time that it takes.",
            "reads locals.item.first, vars.list · answers object {verdict: \"yes\" |",
            "\"no\"} · 3 attempts",
        ]
    );
    let plain = start(&project, "crayfish explain flow.json", &[("NO_COLOR", "1")]);
    assert!(!has_colours(&plain.end().2));
}

#[test]
fn events_on_the_terminal_hide_the_rows() {
    let project = forking(1);
    project.write("go", "");
    let (code, _, bytes) = start(&project, "run wf --run-id r --events", &[]).end();
    assert_eq!((code, bytes.contains("\u{1b}[J"), bytes.contains('▸')), (0, false, false));
}

#[test]
fn row_names_the_running_tool() {
    let project = Project::of(&[(
        "wf/START.md",
        "START\nfake: tool Bash cargo test --all\nfake: wait gate\nfake: say <result>done</result>\n",
    )]);
    let programs = project.path("programs");
    std::fs::create_dir(&programs).unwrap();
    symlink(Path::new(RAYMOND).with_file_name("fake-claude"), programs.join("claude")).unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let config = programs.to_str().unwrap();
    let variables = [("PATH", path.as_str()), ("HOME", config), ("CLAUDE_CONFIG_DIR", config)];
    let check = |terminal: &Terminal, footer: &str| {
        let lines = terminal.until_shown("Bash(cargo");
        let row = lines.iter().find(|line| line.starts_with('▸')).unwrap();
        assert_eq!(row, "▸ main START Bash(cargo test --all) 0s");
        assert!(lines.last().unwrap().ends_with(footer), "{lines:#?}");
    };
    let words = "run wf --run-id r --allow Bash(cargo:*)";
    let terminal = start(&project, words, &variables);
    check(&terminal, "Ctrl-C stops");
    let attached = start(&project, "attach r", &variables);
    check(&attached, "Ctrl-C leaves it running");
    project.write("programs/gate", "");
    assert_eq!((terminal.end().0, attached.end().0), (0, 0));
}

#[test]
fn attach_shows_the_same_rows() {
    let project = forking(1);
    let running = project.start("run wf --run-id r");
    until("it waits", || project.events("r", "turn_started").len() == 3);
    let mut terminal = start(&project, "attach r", &[]);
    let lines = terminal.until_shown("2 running");
    assert_eq!(
        lines,
        [
            "r: running: main is in turn 1 of DONE.sh; 1 more agent works",
            "▸ main DONE runs 0s",
            "▸ main_w1 W runs 0s",
            "$0.00 of $10.00 · 2 running · 0s · Ctrl-C leaves it running",
        ]
    );
    terminal.press(b"\x03");
    let (code, lines, _) = terminal.end();
    let left = "r continues without being watched; to stop it: raymond stop r";
    assert_eq!((code, lines.last().unwrap().as_str(), rows(&lines)), (130, left, 0));
    project.write("go", "");
    running.wait().mentions(0, &[]);
}

/// A run that prints far more than the buffer of a terminal, and then reaches its last state.
fn talkative(last: &str) -> Project {
    let long = "L".repeat(240);
    let count = format!(
        "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n\n\
         if test $n -lt 200; then echo '<goto>{long}</goto>'; else echo '<goto>LAST</goto>'; fi"
    );
    Project::of(&[
        ("wf/START.sh", &format!("echo '<goto>{long}</goto>'")),
        (&format!("wf/{long}.sh"), &count),
        ("wf/LAST.sh", last),
    ])
}

#[test]
fn stuck_terminal_blocks_nothing() {
    let project = talkative(WAIT);
    let terminal = start(&project, "run wf --run-id r", &[]);
    terminal.until_shown("1 running");
    terminal.set(Gate::Shut);
    until("it is in its last state", || project.events("r", "turn_started").len() == 203);
    terminal.set(Gate::Open);
    terminal.until_shown("▸ main LAST");
    project.write("go", "");
    let (code, lines, _) = terminal.end();
    assert_eq!((code, lines.last().map(String::as_str)), (0, Some("main")), "{lines:#?}");
}

#[test]
fn run_ends_on_a_stuck_terminal() {
    let check = |words: &str| {
        // The first event contains the text of the script, so the script composes its result at run
        // time.
        let project = talkative("what=end; echo \"<result>the $what</result>\"");
        let mut terminal = start(&project, words, &[]);
        terminal.set(Gate::Shut);
        assert_eq!(terminal.code(), 0, "{words}");
        terminal.set(Gate::Open);
        let (_, _, said) = terminal.end();
        assert!(!said.contains("the end"), "{words}: it was never stuck");
    };
    check("run wf --run-id r");
    check("run wf --run-id r --events");
}
