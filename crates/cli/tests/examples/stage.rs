//! A copy of an example, set up as its README says, and the commands that are run in it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Output, Project, Running};

/// One file of replies of an example, with the expected result.
pub(crate) struct ExampleRun {
    pub(crate) example: &'static str,
    pub(crate) replies: &'static str,
    flags: &'static str,
    pub(crate) expected: Expected,
}

/// How an example ends.
#[derive(Clone, Copy)]
pub(crate) enum Expected {
    /// A workflow prints a result.
    Prints(&'static str),
    /// A workflow gives up: it fails on purpose, for this reason.
    GivesUp(&'static str),
    /// A workflow asks a person.
    Asks(&'static str),
    /// A document of steps leaves files.
    Completes,
}

const fn states(
    example: &'static str,
    replies: &'static str,
    flags: &'static str,
    prints: &'static str,
) -> ExampleRun {
    ExampleRun { example, replies, flags, expected: Expected::Prints(prints) }
}

const fn gives_up(
    example: &'static str,
    replies: &'static str,
    flags: &'static str,
    reason: &'static str,
) -> ExampleRun {
    ExampleRun { example, replies, flags, expected: Expected::GivesUp(reason) }
}

const fn asks(
    example: &'static str,
    replies: &'static str,
    flags: &'static str,
    question: &'static str,
) -> ExampleRun {
    ExampleRun { example, replies, flags, expected: Expected::Asks(question) }
}

const fn steps(example: &'static str, replies: &'static str) -> ExampleRun {
    ExampleRun { example, replies, flags: "", expected: Expected::Completes }
}

/// Every file of replies, with its result.
pub(crate) const EXAMPLE_RUNS: [ExampleRun; 25] = [
    states("title", "replies.yaml", "--input text", "A night at sea (8)"),
    states("research", "replies.yaml", "", "the answers are in answers-demo.tsv"),
    states("ralph", "replies.yaml", "", "say.sh says goodbye and good night"),
    states("fix-until-green", "replies.yaml", "", "green, commits: 2"),
    states("fix-until-green", "cheating.yaml", "", "green, commits: 1"),
    states("fix-until-green", "stuck.yaml", "", "green, commits: 1"),
    gives_up("fix-until-green", "hopeless.yaml", "", "gave up, commits: 1, still failing: shorten"),
    states("issue-to-pr", "replies.yaml", "", "opened https://example.org/pull/1"),
    states("issue-to-pr", "rejected.yaml", "--input 12", "opened https://example.org/pull/1"),
    gives_up("issue-to-pr", "hopeless.yaml", "", "issue 12 needs a person"),
    gives_up("issue-to-pr", "unclear.yaml", "", "issue 12 needs a person"),
    states("migrate-batch", "replies.yaml", "", "items: 3, report: .work/demo/report"),
    asks("release-gate", "replies.yaml", "--no-wait", "asks: Shall I publish this release?"),
    states("review-pr", "replies.yaml", "--input 7", "commented on pull request 7"),
    states("review-pr", "clean.yaml", "--input 7", "commented on pull request 7"),
    states(
        "nightly-dispatcher",
        "replies.yaml",
        "--var looks=3 --var every=1s",
        "looks: 3, issues: 12 15",
    ),
    states(
        "claude-calls-codex",
        "replies.yaml",
        "--input 'leap.sh YEAR says yes or no'",
        "leap.sh knows the centuries now",
    ),
    gives_up(
        "claude-calls-codex",
        "stubborn.yaml",
        "--input x",
        "after two corrections there are still objections: still wrong",
    ),
    states(
        "eight-steps",
        "replies.yaml",
        "",
        "closed 195: stats.sh counts words, too (closes #195)",
    ),
    gives_up("eight-steps", "hopeless.yaml", "", "not done: no test passes"),
    steps("crayfish-minimal", "replies.yaml"),
    steps("daily-digest", "replies.yaml"),
    steps("repair-loop", "replies.yaml"),
    steps("repair-loop", "hopeless.yaml"),
    steps("upgrade-dependencies", "replies.yaml"),
];

impl Expected {
    #[track_caller]
    pub(crate) fn check(&self, output: &Output) {
        assert_eq!(output.code(), self.exit_code(), "{output:?}");
        match self {
            Self::Prints(text) => {
                output.prints(&format!("{text}\n"));
            }
            // Only a completed run prints its result.
            Self::GivesUp(reason) => {
                output.mentions(1, &[reason]).prints("");
            }
            Self::Asks(question) => {
                output.mentions(3, &[question]).prints("");
            }
            Self::Completes => {}
        }
    }

    pub(crate) const fn exit_code(&self) -> i32 {
        match self {
            Self::GivesUp(_) => 1,
            Self::Asks(_) => 3,
            Self::Prints(_) | Self::Completes => 0,
        }
    }
}

impl ExampleRun {
    pub(crate) fn of(example: &str, replies: &str) -> &'static Self {
        let is_it = |run: &&Self| run.example == example && run.replies == replies;
        EXAMPLE_RUNS.iter().find(is_it).unwrap()
    }

    /// Runs the example to its end.
    #[track_caller]
    pub(crate) fn go(&self) -> Stage {
        let stage = Stage::of(self.example);
        let output = stage.start(self).wait();
        self.expected.check(&output);
        stage
    }
}

/// An example in a directory of its own.
pub(crate) struct Stage {
    project: Project,
}

impl Stage {
    /// Sets up an example as its README does.
    pub(crate) fn of(example: &str) -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_raymond")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let project = Project::of(&[])
            .with("GIT_CONFIG_GLOBAL", "/dev/null")
            .with("GIT_CONFIG_NOSYSTEM", "1")
            .with("LC_ALL", "C.UTF-8");
        let bin = project.path("try/bin");
        let path = format!("{}:{}:{path}", bin.display(), binary.display());
        let stage = Self { project: project.with("PATH", path) };
        copy(&examples().join(example), &stage.project.root());
        if stage.project.path("setup.sh").exists() {
            let output = stage.project.spawn("bash", &["setup.sh"]).wait();
            assert_eq!(output.code(), 0, "{output:?}");
        }
        stage
    }

    /// The directory of its commands, relative to the example.
    fn place(&self) -> &'static str {
        let places = ["try/project", "try"];
        places.into_iter().find(|place| self.project.path(place).exists()).unwrap_or(".")
    }

    /// Starts the example as the run `demo`.
    pub(crate) fn start(&self, run: &ExampleRun) -> Running {
        let top = self.project.root();
        let (top, replies, flags) = (top.display(), run.replies, run.flags);
        let command = match run.example {
            "ralph" => format!("ralph {top}/PROMPT.md --until 'bash {top}/done.sh'"),
            _ if self.project.path("flow.json").exists() => format!("run {top}/flow.json"),
            _ => format!("run {top}/workflow"),
        };
        self.bash(&format!(
            "exec raymond {command} --replies {top}/{replies} --run-id demo {flags}"
        ))
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, command: &str) -> Output {
        self.bash(command).wait()
    }

    fn bash(&self, command: &str) -> Running {
        let script = format!("cd {} && {command}", self.place());
        self.project.spawn("bash", &["-c", &script])
    }

    /// Returns the output of a command, which must succeed.
    #[track_caller]
    pub(crate) fn prints(&self, command: &str) -> String {
        let output = self.run(command);
        assert_eq!((output.code(), output.stderr.as_str()), (0, ""), "{command}");
        output.stdout
    }

    /// The subjects of the commits of a branch, the oldest first.
    #[track_caller]
    pub(crate) fn commits(&self, branch: &str) -> Vec<String> {
        let log = self.prints(&format!("git log --reverse --format=%s {branch} --"));
        log.lines().map(str::to_owned).collect()
    }

    /// A file, from the top of the example.
    pub(crate) fn read(&self, name: &str) -> String {
        self.project.read(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.project.write(name, text);
    }

    /// Writes a file that can be run.
    pub(crate) fn program(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project.path(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.project.path(name).exists()
    }

    /// The events of the run.
    pub(crate) fn events(&self) -> Vec<Value> {
        let journal = self.read(&format!("{}/.raymond/runs/demo/journal.jsonl", self.place()));
        let records = journal.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
        let steps = records.flat_map(|record: Value| record["steps"].as_array().unwrap().clone());
        steps.flat_map(|step| step["events"].as_array().unwrap().clone()).collect()
    }

    /// The results of all agents.
    pub(crate) fn results(&self) -> Value {
        let output = self.run("raymond show demo --json");
        output.json()["results"].clone()
    }
}

pub(crate) fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) fn examples() -> PathBuf {
    top().join("examples")
}

/// Every file of the project below a directory, without the files that a tried example left.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if matches!(name, "try" | ".raymond") {
            continue;
        }
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

pub(crate) fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, &target).unwrap();
    }
}
