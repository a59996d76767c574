//! Tools that clients were denied: their names, and the rules that would allow them.
//!
//! A rule is as narrow as the call needs: `cargo test --all` becomes `cargo test` with any
//! arguments, because `test` is a command of `cargo`. Dangerous commands are named but never
//! offered as a rule: the user must write it. The same is true for clients without such rules,
//! which report a denial in prose.

use std::collections::BTreeMap;

/// The denied calls of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    pub calls: u64,
    /// The calls by rule, the most frequent first.
    pub groups: Vec<DeniedGroup>,
}

/// Calls that one rule would allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedGroup {
    /// The name for people: `cargo test`.
    pub name: String,
    /// The rule: `Bash(cargo test:*)`; `None` if it is not offered.
    pub allow: Option<String>,
    /// How many calls need the rule.
    pub calls: u64,
}

impl Denied {
    /// Groups denied tools, each with its count, except those that are `allowed` by now. Returns
    /// `None` if none is left.
    pub fn of(tools: &BTreeMap<String, u32>, allowed: &[String]) -> Option<Self> {
        let mut calls = 0;
        let mut rules: BTreeMap<String, DeniedGroup> = BTreeMap::new();
        for (tool, count) in tools {
            let count = u64::from(*count);
            let mut needed = rules_for(tool);
            needed.retain(|(_, rule)| !allowed.contains(rule));
            // A call with several commands counts once here, but in each of its groups.
            calls += if needed.is_empty() { 0 } else { count };
            for (name, rule) in needed {
                let allow = (is_rule(&rule) && !is_risky(&name)).then(|| rule.clone());
                let group = DeniedGroup { name, allow, calls: 0 };
                rules.entry(rule).or_insert(group).calls += count;
            }
        }
        let mut groups: Vec<DeniedGroup> = rules.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.calls));
        (calls > 0).then_some(Self { calls, groups })
    }

    /// Returns the rules that are offered, the most needed first.
    pub fn rules(&self) -> impl Iterator<Item = &String> {
        self.groups.iter().filter_map(|group| group.allow.as_ref())
    }
}

/// Returns the name and the rule for each part of a call.
fn rules_for(tool: &str) -> Vec<(String, String)> {
    if !is_rule(tool) {
        return vec![(shortened(tool), tool.to_owned())];
    }
    let call = tool.strip_suffix(')').and_then(|call| call.split_once('('));
    let command = match call {
        Some(("Bash", command)) => command,
        Some((tool, subject)) => return vec![(tool.to_owned(), rule_for_tool(tool, subject))],
        None => return vec![(tool.to_owned(), tool.to_owned())],
    };
    // Clients check each part of a command line separately; `cd` needs no permission.
    let parts = command.split(['\n', ';', '|', '&']).map(str::trim);
    let parts: Vec<&str> =
        parts.filter(|part| !part.is_empty() && !part.starts_with("cd ")).collect();
    if parts.is_empty() {
        return vec![(command.to_owned(), tool.to_owned())];
    }
    parts.into_iter().map(rule_for).collect()
}

/// Returns the rule for a tool other than `Bash`: for its host or file, if rules support those.
fn rule_for_tool(tool: &str, subject: &str) -> String {
    match tool {
        "WebFetch" => match subject.split_once("://") {
            Some((_, rest)) => {
                let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
                format!("WebFetch(domain:{host})")
            }
            None => format!("WebFetch({subject})"),
        },
        // A rule for an absolute path begins with two slashes.
        "Read" | "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => {
            // Clients apply a rule for `Edit` to every tool that writes files.
            let tool = if tool == "Read" { tool } else { "Edit" };
            let slash = if subject.starts_with('/') { "/" } else { "" };
            format!("{tool}({slash}{subject})")
        }
        _ => tool.to_owned(),
    }
}

/// Returns `cargo test` and `Bash(cargo test:*)`.
fn rule_for(command: &str) -> (String, String) {
    let mut words = command.split_whitespace();
    match (words.next(), words.next()) {
        (Some(program), Some(verb)) if is_name(program) && is_name(verb) => {
            let name = format!("{program} {verb}");
            let rule = format!("Bash({name}:*)");
            (name, rule)
        }
        _ => (shortened(command), format!("Bash({command})")),
    }
}

/// Returns whether a text is `Tool` or `Tool(…)`, and not prose about a call.
pub(super) fn is_rule(text: &str) -> bool {
    let name = text.split_once('(').map_or(text, |(name, _)| name);
    !name.contains(char::is_whitespace)
}

/// Returns whether a word is a name, and not a path, a flag, a pattern or an assignment.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

fn shortened(command: &str) -> String {
    const LONGEST: usize = 40;
    match command.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &command[..cut]),
        None => command.to_owned(),
    }
}

/// Returns whether a command is too dangerous to offer a rule for it.
fn is_risky(name: &str) -> bool {
    const RISKY: [&str; 12] = [
        "rm", "sudo", "su", "doas", "dd", "mkfs", "chmod", "chown", "kill", "pkill", "shutdown",
        "reboot",
    ];
    name.split_whitespace().next().is_some_and(|program| RISKY.contains(&program))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(tools: &[(&str, u32)]) -> Denied {
        let tools = tools.iter().map(|(tool, calls)| ((*tool).to_owned(), *calls)).collect();
        Denied::of(&tools, &[]).unwrap()
    }

    #[test]
    fn rule_is_as_narrow_as_the_call() {
        let check = |tool: &str, expected: &[(&str, &str)]| {
            let found = denied(&[(tool, 1)]).groups;
            let mut found: Vec<(&str, &str)> = found
                .iter()
                .map(|g| (g.name.as_str(), g.allow.as_deref().unwrap_or("-")))
                .collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{tool}");
        };
        check("Bash(cargo test --all)", &[("cargo test", "Bash(cargo test:*)")]);
        check("Bash(git commit -m 'x (y)')", &[("git commit", "Bash(git commit:*)")]);
        check("Bash(make)", &[("make", "Bash(make)")]);
        check("Bash(rm -rf build)", &[("rm -rf build", "-")]);
        check("Bash(make && sudo make install)", &[("make", "Bash(make)"), ("sudo make", "-")]);
        check("Bash(python x.py)", &[("python x.py", "Bash(python x.py)")]);
        check("Bash(./run it)", &[("./run it", "Bash(./run it)")]);
        check("Bash(A=1 make all)", &[("A=1 make all", "Bash(A=1 make all)")]);
        check(
            "Bash(cd sub && cargo build; git add .)",
            &[("cargo build", "Bash(cargo build:*)"), ("git add", "Bash(git add:*)")],
        );
        check("Bash(cd sub)", &[("cd sub", "Bash(cd sub)")]);
        check("Bash()", &[("", "Bash()")]);
        check("WebFetch", &[("WebFetch", "WebFetch")]);
        let web = ("WebFetch", "WebFetch(domain:example.org)");
        check("WebFetch(https://example.org/a?b)", &[web]);
        check("WebFetch(domain:example.org)", &[web]);
        check("WebSearch(some words)", &[("WebSearch", "WebSearch")]);
        check("Read(/etc/hosts)", &[("Read", "Read(//etc/hosts)")]);
        check("Write(../x.rs)", &[("Write", "Edit(../x.rs)")]);
        check("mcp__x__y", &[("mcp__x__y", "mcp__x__y")]);
        check("the command make", &[("the command make", "-")]);
        check("the command echo (a; b)", &[("the command echo (a; b)", "-")]);
        let long = format!("cat {}", "x/".repeat(30));
        let name = format!("{}…", &long[..40]);
        check(&format!("Bash({long})"), &[(&name, &format!("Bash({long})"))]);
    }

    #[test]
    fn calls_are_grouped_by_rule_and_frequency() {
        let found = denied(&[
            ("Bash(cargo test)", 4),
            ("Bash(git commit -m x)", 3),
            ("Bash(git commit -m y)", 2),
        ]);
        let groups: Vec<(&str, u64)> =
            found.groups.iter().map(|group| (group.name.as_str(), group.calls)).collect();
        assert_eq!((found.calls, groups), (9, vec![("git commit", 5), ("cargo test", 4)]));
        assert!(found.rules().eq(["Bash(git commit:*)", "Bash(cargo test:*)"]));
    }

    #[test]
    fn allowed_calls_are_not_offered_again() {
        let tools = BTreeMap::from([("Bash(make)".to_owned(), 2), ("WebSearch".to_owned(), 1)]);
        let found = Denied::of(&tools, &["Bash(make)".to_owned()]).unwrap();
        assert_eq!(found.calls, 1);
        assert!(found.rules().eq(["WebSearch"]));
        let all = ["Bash(make)".to_owned(), "WebSearch".to_owned()];
        assert_eq!(Denied::of(&tools, &all), None);
        assert_eq!(Denied::of(&BTreeMap::new(), &[]), None);
    }
}
