//! Parses a page into the actions of its test, from top to bottom.

use crate::compare::{in_words_of, matches};
use crate::play::Stage;

/// A page, and the steps of its test.
pub(crate) struct Page {
    lines: Vec<String>,
    steps: Vec<Step>,
}

/// One action. Lines are counted from 0.
struct Step {
    line: usize,
    action: Action,
}

enum Action {
    /// Write a file.
    File { path: String, text: String },
    /// Run a script, which must succeed.
    Script(String),
    /// Run a command, which prints the lines from `line + 1` up to `end`.
    Command { command: String, shown: Vec<String>, end: usize },
}

/// The output of each command of a page, in order.
pub(crate) type Played = Vec<Vec<String>>;

impl Page {
    /// Reads a page; the error names its line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut steps = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            if let Some(rest) = lines[at].trim_start().strip_prefix("<!-- setup:") {
                let end = (at..lines.len()).find(|line| lines[*line].contains("-->"));
                let end = end.ok_or_else(|| format!("{}: the comment has no end", at + 1))?;
                let mut script = vec![rest];
                script.extend(lines[at + 1..=end].iter().map(String::as_str));
                let script = script.join("\n").replace("-->", "");
                steps.push(Step { line: at, action: Action::Script(script) });
                at = end;
            } else if let Some(fence) = Fence::open(&lines[at]) {
                let end = (at + 1..lines.len()).find(|line| fence.closes(&lines[*line]));
                let end = end.ok_or_else(|| format!("{}: the fence has no end", at + 1))?;
                steps.extend(fence.steps(&lines, at, end)?);
                at = end;
            }
            at += 1;
        }
        Ok(Self { lines, steps })
    }

    /// Runs all actions; the error names the line of the failure.
    pub(crate) fn play(&self, stage: &Stage) -> Result<Played, String> {
        let mut played = Vec::new();
        for Step { line, action } in &self.steps {
            match action {
                Action::File { path, text } => stage.write(path, text),
                Action::Script(script) => {
                    let (code, printed) = stage.run(script);
                    if code != 0 {
                        let printed = printed.join("\n");
                        return Err(format!("{}: exit {code}: {script}\n{printed}", line + 1));
                    }
                }
                Action::Command { command, .. } => {
                    let (code, mut printed) = stage.run(command);
                    if code != 0 {
                        printed.push(format!("[exit {code}]"));
                    }
                    played.push(printed);
                }
            }
        }
        Ok(played)
    }

    /// The commands, each with its line, the shown output and the end of that output.
    fn commands(&self) -> impl Iterator<Item = (usize, &str, &[String], usize)> {
        self.steps.iter().filter_map(|step| match &step.action {
            Action::Command { command, shown, end } => {
                Some((step.line, command.as_str(), shown.as_slice(), *end))
            }
            Action::File { .. } | Action::Script(_) => None,
        })
    }

    /// Returns the differences between the page and the output.
    pub(crate) fn differences(&self, played: &Played) -> Vec<String> {
        let differs = self.commands().zip(played);
        let differs = differs.filter(|((_, _, shown, _), printed)| !matches(shown, printed));
        let tell =
            |((line, command, shown, _), printed): ((usize, &str, &[String], _), &Vec<_>)| {
                let bar = |lines: &[String]| format!("  | {}", lines.join("\n  | "));
                let (shown, printed) = (bar(shown), bar(printed));
                format!("{}: $ {command}\nshows\n{shown}\nprints\n{printed}", line + 1)
            };
        differs.map(tell).collect()
    }

    /// Returns the page with the real output wherever it differs.
    pub(crate) fn with(&self, played: &Played) -> String {
        let mut lines = self.lines.clone();
        let commands: Vec<_> = self.commands().zip(played).collect();
        for ((_, _, shown, end), printed) in commands.into_iter().rev() {
            if !matches(shown, printed) {
                lines.splice(end - shown.len()..end, in_words_of(shown, printed));
            }
        }
        lines.join("\n") + "\n"
    }
}

/// The head of a fence.
struct Fence<'a> {
    ticks: &'a str,
    language: &'a str,
    file: Option<&'a str>,
    skipped: bool,
}

impl<'a> Fence<'a> {
    fn open(line: &'a str) -> Option<Self> {
        let rest = line.trim_start_matches('`');
        let ticks = &line[..line.len() - rest.len()];
        if ticks.len() < 3 {
            return None;
        }
        let mut words = rest.split_whitespace();
        let mut fence = Self { ticks, language: "", file: None, skipped: false };
        fence.language = words.next().unwrap_or_default();
        for word in words {
            match word.split_once('=') {
                Some(("file", path)) => fence.file = Some(path),
                Some(("skip", _)) => fence.skipped = true,
                _ => panic!("a fence says {word:?}: file=PATH and skip=REASON are known"),
            }
        }
        Some(fence)
    }

    fn closes(&self, line: &str) -> bool {
        line.trim_end() == self.ticks
    }

    fn steps(&self, lines: &[String], start: usize, end: usize) -> Result<Vec<Step>, String> {
        let body = &lines[start + 1..end];
        let text = || body.join("\n") + "\n";
        let action = match (self.skipped, self.file, self.language) {
            (false, Some(path), _) => Action::File { path: path.to_owned(), text: text() },
            (false, None, "sh" | "bash") => Action::Script(text()),
            (false, None, "console") => return commands(lines, start, end),
            (true, ..) | (false, None, "" | "text") => return Ok(Vec::new()),
            (false, None, language) => {
                let fault =
                    format!("a fence of {language:?} is neither a file=PATH nor a skip=REASON");
                return Err(format!("{}: {fault}", start + 1));
            }
        };
        Ok(vec![Step { line: start, action }])
    }
}

/// The commands of a `console` fence.
fn commands(lines: &[String], start: usize, end: usize) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut at = start + 1;
    while at < end {
        let first = lines[at].strip_prefix("$ ");
        let first = first.ok_or_else(|| format!("{}: no command before this", at + 1))?;
        let mut command = first.to_owned();
        let line = at;
        at += 1;
        while let Some(more) = lines[at].strip_prefix("> ").filter(|_| at < end) {
            command.push('\n');
            command.push_str(more);
            at += 1;
        }
        let from = at;
        while at < end && !lines[at].starts_with("$ ") {
            at += 1;
        }
        let shown = lines[from..at].iter().map(|line| line.trim_end().to_owned()).collect();
        steps.push(Step { line, action: Action::Command { command, shown, end: at } });
    }
    Ok(steps)
}
