//! The flags of the real program, as far as Raymond uses them.
//!
//! Unknown flags and impossible combinations are errors, as in the real program. So a test notices
//! when Raymond builds a command line that the real program would refuse.

#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct Arguments {
    pub(super) session: Option<String>,
    pub(super) resume: Option<String>,
    pub(super) fork: bool,
    pub(super) model: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) allowed: Vec<String>,
    pub(super) disallowed: Vec<String>,
    pub(super) cap: Option<f64>,
    pub(super) append_system_prompt: Option<String>,
    pub(super) snapshot: Snapshot,
    pub(super) skip_permissions: bool,
    print: bool,
    verbose: bool,
    format: Option<String>,
}

/// Whether a resumed session keeps the system prompt that it began with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Snapshot {
    #[default]
    On,
    Off,
}

/// How many values a flag takes.
enum Arity {
    None,
    One,
    /// All following values, even a prompt.
    Many,
}

const MODES: [&str; 7] =
    ["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan"];

fn arity(flag: &str) -> Option<Arity> {
    Some(match flag {
        "-p"
        | "--print"
        | "--verbose"
        | "--fork-session"
        | "--dangerously-skip-permissions"
        | "--include-partial-messages"
        | "--strict-mcp-config" => Arity::None,
        "--output-format"
        | "--input-format"
        | "--session-id"
        | "--resume"
        | "-r"
        | "--model"
        | "--fallback-model"
        | "--effort"
        | "--permission-mode"
        | "--max-budget-usd"
        | "--max-turns"
        | "--system-prompt"
        | "--append-system-prompt"
        | "--system-prompt-snapshot"
        | "--settings"
        | "--setting-sources"
        | "--json-schema" => Arity::One,
        "--allowedTools" | "--disallowedTools" | "--tools" | "--add-dir" | "--mcp-config" => {
            Arity::Many
        }
        _ => return None,
    })
}

impl Arguments {
    /// Parses the flags; errors have the wording of the real program.
    pub(super) fn parse(words: &[String]) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut rest = words.iter().map(String::as_str).peekable();
        while let Some(word) = rest.next() {
            let (flag, given) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
                _ => (word, None),
            };
            let mut values: Vec<&str> = given.into_iter().collect();
            match arity(flag) {
                None if flag.starts_with('-') => {
                    return Err(format!("error: unknown option '{flag}'"));
                }
                // The real program also takes a prompt as an argument, but Raymond always uses
                // stdin.
                None => return Err("the fake reads its prompt from stdin only".to_owned()),
                Some(Arity::None) => {}
                Some(Arity::One) => {
                    if values.is_empty() {
                        let value = rest.next().filter(|value| !value.is_empty());
                        let missing = || format!("error: option '{flag}' argument missing");
                        values.push(value.ok_or_else(missing)?);
                    }
                }
                Some(Arity::Many) => {
                    while let Some(value) = rest.next_if(|word| !word.starts_with('-')) {
                        values.push(value);
                    }
                }
            }
            arguments.take(flag, &values)?;
        }
        arguments.check()?;
        Ok(arguments)
    }

    fn take(&mut self, flag: &str, values: &[&str]) -> Result<(), String> {
        let first = || values.first().map(|value| (*value).to_owned());
        match flag {
            "-p" | "--print" => self.print = true,
            "--verbose" => self.verbose = true,
            "--fork-session" => self.fork = true,
            "--dangerously-skip-permissions" => self.skip_permissions = true,
            "--output-format" => self.format = first(),
            "--session-id" => self.session = first(),
            "--resume" | "-r" => self.resume = first(),
            "--model" => self.model = first(),
            "--append-system-prompt" => self.append_system_prompt = first(),
            "--permission-mode" => {
                let mode = first().filter(|mode| MODES.contains(&mode.as_str()));
                self.mode = Some(mode.ok_or_else(|| {
                    format!(
                        "error: option '--permission-mode <mode>' argument {values:?} is invalid"
                    )
                })?);
            }
            "--system-prompt-snapshot" => {
                self.snapshot = if values == ["off"] { Snapshot::Off } else { Snapshot::On };
            }
            "--max-budget-usd" => {
                let cap = first().and_then(|cap| cap.parse().ok()).filter(|cap| *cap > 0.0);
                let wrong = "error: --max-budget-usd must be a positive number";
                self.cap = Some(cap.ok_or(wrong)?);
            }
            "--allowedTools" => self.allowed.extend(tools(values)),
            "--disallowedTools" => self.disallowed.extend(tools(values)),
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let invalid = |id: &&String| !is_uuid(id);
        if !self.print || self.format.as_deref() != Some("stream-json") {
            return Err("the fake only speaks -p --output-format stream-json".to_owned());
        }
        if !self.verbose {
            let needs = "Error: When using --print, --output-format=stream-json requires --verbose";
            return Err(needs.to_owned());
        }
        if self.session.as_ref().is_some_and(|id| invalid(&id)) {
            return Err("Error: Invalid session ID. Must be a valid UUID.".to_owned());
        }
        if self.session.is_some() && self.resume.is_some() && !self.fork {
            return Err("Error: --session-id can only be used with --continue or --resume if \
                        --fork-session is also specified."
                .to_owned());
        }
        if let Some(id) = self.resume.as_ref().filter(invalid) {
            return Err(format!("Error: --resume requires a valid session ID, not {id}"));
        }
        Ok(())
    }

    /// Returns whether the flags allow a tool call.
    pub(super) fn allows(&self, tool: &str, input: &str) -> bool {
        let any = |rules: &[String]| rules.iter().any(|rule| covers(rule, tool, input));
        !any(&self.disallowed) && (self.skip_permissions || any(&self.allowed))
    }
}

/// Returns whether a rule covers a tool call.
///
/// `Bash(cargo test:*)` and `Bash(cargo test *)` cover inputs with this prefix, `Bash(cargo test)`
/// covers only this input, `Bash` covers all inputs.
fn covers(rule: &str, tool: &str, input: &str) -> bool {
    let Some((name, pattern)) = rule.strip_suffix(')').and_then(|rule| rule.split_once('(')) else {
        return rule == tool;
    };
    let matches = match pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix('*')) {
        Some(prefix) => input.starts_with(prefix),
        None => input == pattern,
    };
    name == tool && matches
}

/// Splits lists of tools at commas outside parentheses.
fn tools(values: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for value in values {
        let (mut depth, mut current) = (0_u32, String::new());
        for letter in value.chars() {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if letter == ',' && depth == 0 {
                found.push(std::mem::take(&mut current));
            } else {
                current.push(letter);
            }
        }
        found.push(current);
    }
    found.iter().map(|tool| tool.trim().to_owned()).filter(|tool| !tool.is_empty()).collect()
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}
