//! Denied tools for people: their names, and the flags and keys that would allow them.
//!
//! The rules are made in `raymond_core::view::denied`.

use raymond_core::text::{counted, quoted};
use raymond_core::view::Denied;

/// How many names are listed; the rest is only counted.
const MOST_NAMED: usize = 5;

/// Returns `6 tool calls (cargo test, git commit)`.
pub(crate) fn named(denied: &Denied) -> String {
    let names: Vec<&str> =
        denied.groups.iter().take(MOST_NAMED).map(|group| group.name.as_str()).collect();
    let more = match denied.groups.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} ({}{more})", counted(denied.calls, "tool call"), names.join(", "))
}

/// Returns `--allow 'Bash(cargo test:*)' --allow 'Bash(git commit:*)'`.
pub(crate) fn allow_flags<'a>(rules: impl Iterator<Item = &'a String>) -> String {
    let flags: Vec<String> = rules.map(|rule| format!("--allow {}", quoted(rule))).collect();
    flags.join(" ")
}

/// Returns `allow: ["Bash(cargo test:*)", "Bash(git commit:*)"]`, for the frontmatter of a state.
pub(crate) fn allow_key(denied: &Denied) -> String {
    let rules: Vec<String> = denied.rules().map(|rule| format!("{rule:?}")).collect();
    format!("allow: [{}]", rules.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(tools: &[(&str, u32)]) -> Denied {
        let tools = tools.iter().map(|(tool, calls)| ((*tool).to_owned(), *calls)).collect();
        Denied::of(&tools, &[]).unwrap()
    }

    fn flags(denied: &Denied) -> String {
        allow_flags(denied.rules())
    }

    #[test]
    fn denied_calls_are_shown_by_frequency() {
        let found = denied(&[
            ("Bash(cargo test)", 4),
            ("Bash(git commit -m x)", 3),
            ("Bash(git commit -m y)", 2),
        ]);
        assert_eq!(named(&found), "9 tool calls (git commit, cargo test)");
        assert_eq!(flags(&found), "--allow 'Bash(git commit:*)' --allow 'Bash(cargo test:*)'");
        assert_eq!(allow_key(&found), r#"allow: ["Bash(git commit:*)", "Bash(cargo test:*)"]"#);
    }

    #[test]
    fn many_are_only_counted() {
        let names = ["A", "B", "C", "D", "E", "F", "G"].map(|name| (name, 1));
        let found = denied(&names);
        assert_eq!(named(&found), "7 tool calls (A, B, C, D, E and 2 more)");
        assert_eq!(flags(&found).matches("--allow").count(), 7);
        assert_eq!(named(&denied(&[("A", 1)])), "1 tool call (A)");
    }

    #[test]
    fn a_rule_is_one_word_for_a_shell() {
        let found = denied(&[("Bash(echo 'a' 'b')", 1)]);
        assert_eq!(flags(&found), r"--allow 'Bash(echo '\''a'\'' '\''b'\'')'");
    }
}
