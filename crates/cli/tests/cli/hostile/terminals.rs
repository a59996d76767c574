//! Names and arguments with control characters, which no message may print.

use crate::harness::{Output, Project};

/// Sets a title, hides and clears, deletes, returns to the start of the line, and turns the
/// direction of writing.
const HOSTILE: &str = "ev\u{1b}]0;x\u{7}\u{1b}[8m\u{1b}[2J\u{7f}\r\u{9b}2J\u{202e}\u{2066}il";

/// Colours are forced, because a stream without them drops escape sequences by itself.
fn project(files: &[(&str, &str)]) -> Project {
    Project::of(files).with("CLICOLOR_FORCE", "1")
}

fn raymond(project: &Project, words: &[&str]) -> Output {
    project.spawn(env!("CARGO_BIN_EXE_raymond"), words).wait()
}

/// Removes the styles that Raymond and its parser of arguments print themselves.
fn without_own_styles(text: &str) -> String {
    let codes = [0, 1, 2, 4, 31, 32, 33, 35, 36];
    codes.iter().fold(text.to_owned(), |text, code| text.replace(&format!("\u{1b}[{code}m"), ""))
}

/// Whether the hostile word is in the output, in a form that no terminal obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hostile {
    Shown,
    NotShown,
}

/// Checks that the output is safe on a terminal.
#[track_caller]
fn check(words: &[&str], output: &Output) -> Hostile {
    for text in [&output.stdout, &output.stderr] {
        let text = without_own_styles(text);
        let is_obeyed = |c: char| {
            (c.is_control() && c != '\n' && c != '\t')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!text.contains(is_obeyed), "{words:?}: {text:?}");
    }
    // As a mark, or as an escape in a quotation.
    let is_shown = |text: &String| text.contains("ev\u{fffd}") || text.contains("ev\\u{1b}");
    if [&output.stdout, &output.stderr].into_iter().any(is_shown) {
        Hostile::Shown
    } else {
        Hostile::NotShown
    }
}

/// `@` stands for the hostile word.
const COMMANDS: [&str; 35] = [
    "@",
    "--@",
    "run @",
    "run @.md",
    "run @.zip",
    "run @.json",
    "run wf/@.md",
    "run wf --replies @",
    "run wf --run-id @",
    "run wf --budget @",
    "run wf --var @",
    "run wf --@",
    "run wf --permission-mode @",
    "run wf --max-parallel @",
    "run wf --backend @",
    "ralph @",
    "resume @",
    "status @",
    "show @",
    "why @",
    "replay @",
    "wait @",
    "attach @",
    "stop @",
    "cancel @",
    "logs @",
    "logs r @",
    "cost --by @",
    "config @",
    "prune @",
    "init @ --from @",
    "completions @",
    "crayfish validate @",
    "crayfish explain @",
    "crayfish @",
];

// proves: A15, S13
#[test]
fn no_command_prints_control_characters_of_an_argument() {
    let project = project(&[("wf/START.sh", "echo '<result>x</result>'")]);
    assert_eq!(project.raymond("run wf --run-id r").code(), 0);
    let mut shown = 0;
    for command in COMMANDS {
        let words: Vec<String> =
            command.split(' ').map(|word| word.replace('@', HOSTILE)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        shown += usize::from(check(&words, &raymond(&project, &words)) == Hostile::Shown);
    }
    // Some messages do not repeat the word; a table in which few do would show nothing.
    assert!(shown > COMMANDS.len() / 2, "{shown}");
}

// proves: S13
#[test]
fn no_command_prints_control_characters_of_file_names() {
    let start = format!("{HOSTILE}/START.md");
    let files: [(&str, &str); 4] = [
        (&start, "---\nbudget: -3\n---\ngo"),
        (&format!("{HOSTILE}.json"), "{"),
        (&format!("{HOSTILE}.yaml"), "["),
        ("wf/START.md", "go"),
    ];
    let project = project(&files);
    let check = |words: &[&str]| {
        assert_eq!(check(words, &raymond(&project, words)), Hostile::Shown, "{words:?}");
    };
    check(&["run", HOSTILE]);
    check(&["run", &start]);
    check(&["run", &format!("{HOSTILE}.json")]);
    check(&["crayfish", "validate", &format!("{HOSTILE}.json")]);
    check(&["crayfish", "explain", &format!("{HOSTILE}.json")]);
    check(&["run", "wf", "--replies", &format!("{HOSTILE}.yaml")]);
}

#[test]
fn no_command_prints_control_characters_of_a_file() {
    let escape = |c: char| format!("\\u{:04x}", u32::from(c));
    let escaped = HOSTILE.chars().map(escape).collect::<Vec<_>>().concat();
    let front = format!("---\n\"{escaped}\": x\n---\ngo");
    let config = format!("\"{escaped}\" = 1\n");
    let stated = project(&[("wf/START.md", &front), ("r.yaml", "START: <result>x</result>")]);
    let configured = project(&[("raymond.toml", &config)]);
    for (project, words) in
        [(stated, &["run", "wf", "--replies", "r.yaml"][..]), (configured, &["config"])]
    {
        assert_eq!(check(words, &raymond(&project, words)), Hostile::Shown, "{words:?}");
    }
}

#[test]
fn no_command_prints_control_characters_of_its_directory() {
    let project = project(&[(&format!("{HOSTILE}/wf/START.sh"), "exit 3")]);
    let at = project.path(HOSTILE);
    for line in ["run wf --run-id r", "status r", "why r", "show r", "list", "doctor", "config"] {
        let line = format!("cd \"$1\" && exec \"$0\" {line}");
        let words = ["-c", &line, env!("CARGO_BIN_EXE_raymond"), at.to_str().unwrap()];
        let output = project.spawn("bash", &words).wait();
        for text in [&output.stdout, &output.stderr] {
            let text = without_own_styles(text);
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{line}: {text:?}");
        }
    }
}
