//! A request as words of the client's command line.
//!
//! The prompt is never among them: other users can read a command line, and it is short. Flags that
//! take a list come last among the flags, and nothing follows them that they could swallow.

use std::ffi::OsString;

use raymond_core::budget::Micros;
use raymond_core::run::Permissions;
use raymond_core::run::permissions::Checks;

use super::steps::Step;
use crate::contract::Request;

/// The mode of a client that nothing else is said about.
pub const DEFAULT_MODE: &str = "acceptEdits";

/// The arguments of the client that takes this step of the request.
pub(super) fn arguments(request: &Request, step: &Step) -> Vec<OsString> {
    let mut words = Words::default();
    words.flags(&["-p", "--output-format", "stream-json", "--verbose"]);
    session(&mut words, step);
    words.value("--model", request.model.as_deref());
    words.value("--effort", request.effort.as_deref());
    words.value("--max-budget-usd", request.cap.map(dollars).as_deref());
    let extras = &request.extras;
    if let Some(text) = &extras.append_system_prompt {
        words.value("--append-system-prompt", Some(text));
        if step.needs().is_some() {
            // Otherwise a resumed conversation keeps the system prompt that it began with.
            words.flags(&["--system-prompt-snapshot", "off"]);
        }
    }
    permissions(&mut words, &request.permissions);
    words.list("--mcp-config", extras.mcp_config.as_slice());
    words.list("--add-dir", &extras.add_dirs);
    words.0
}

fn session(words: &mut Words, step: &Step) {
    match step {
        Step::Open(id) => words.value("--session-id", Some(id.as_str())),
        Step::Resume(id) => words.value("--resume", Some(id.as_str())),
        Step::Branch { from, to } => {
            words.value("--resume", Some(from.as_str()));
            words.flags(&["--fork-session"]);
            words.value("--session-id", Some(to.as_str()));
        }
    }
}

fn permissions(words: &mut Words, permissions: &Permissions) {
    match permissions.checks {
        Checks::Skipped => words.flags(&["--dangerously-skip-permissions"]),
        Checks::Kept => {
            let mode = permissions.mode.as_deref().unwrap_or(DEFAULT_MODE);
            words.value("--permission-mode", Some(mode));
        }
    }
    words.list("--allowedTools", &permissions.allow);
    words.list("--disallowedTools", &permissions.deny);
}

/// `0.495000`
fn dollars(cap: Micros) -> String {
    format!("{}.{:06}", cap.0 / 1_000_000, cap.0 % 1_000_000)
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn flags(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn value(&mut self, flag: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.flags(&[flag, value]);
        }
    }

    fn list(&mut self, flag: &str, values: &[String]) {
        if !values.is_empty() {
            self.flags(&[flag]);
            self.0.extend(values.iter().map(OsString::from));
        }
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::run::effect::Extras;

    use super::*;
    use crate::claude::tests::request;

    fn check(change: impl FnOnce(&mut Request), step: &Step, expected: &str) {
        let mut request = request("Do it.");
        change(&mut request);
        let words: Vec<_> =
            arguments(&request, step).into_iter().map(|word| word.into_string().unwrap()).collect();
        let always = "-p --output-format stream-json --verbose";
        assert_eq!(words.join(" "), format!("{always} {expected}"));
        assert!(!words.contains(&request.prompt));
    }

    #[test]
    fn every_plan_has_its_session_arguments() {
        let mode = "--permission-mode acceptEdits";
        let open = Step::Open("s".into());
        check(|_| {}, &open, &format!("--session-id s {mode}"));
        check(|_| {}, &Step::Resume("s".into()), &format!("--resume s {mode}"));
        let branch = Step::Branch { from: "c".into(), to: "s".into() };
        check(|_| {}, &branch, &format!("--resume c --fork-session --session-id s {mode}"));
    }

    #[test]
    fn every_wish_has_its_flag() {
        let open = Step::Open("s".into());
        let check = |change: fn(&mut Request), expected: &str| {
            check(change, &open, &format!("--session-id s {expected}"));
        };
        let mode = "--permission-mode acceptEdits";
        check(|request| request.model = Some("opus".into()), &format!("--model opus {mode}"));
        check(|request| request.effort = Some("high".into()), &format!("--effort high {mode}"));
        let cap = format!("--max-budget-usd 0.495000 {mode}");
        check(|request| request.cap = Some(Micros(495_000)), &cap);
        let cap = format!("--max-budget-usd 12.000001 {mode}");
        check(|request| request.cap = Some(Micros(12_000_001)), &cap);
        check(
            |request| {
                request.permissions.mode = Some("plan".into());
                request.permissions.allow = vec!["Bash(cargo test:*)".into(), "Read".into()];
                request.permissions.deny = vec!["WebFetch".into()];
            },
            "--permission-mode plan --allowedTools Bash(cargo test:*) Read --disallowedTools WebFetch",
        );
        check(
            |request| request.permissions.checks = Checks::Skipped,
            "--dangerously-skip-permissions",
        );
        check(
            |request| {
                request.extras = Extras {
                    add_dirs: vec!["../a".into(), "/b".into()],
                    mcp_config: Some("mcp.json".into()),
                    append_system_prompt: Some("Be brief.".into()),
                };
            },
            &format!(
                "--append-system-prompt Be brief. {mode} --mcp-config mcp.json --add-dir ../a /b"
            ),
        );
    }

    #[test]
    fn a_resumed_conversation_gets_the_system_prompt_of_its_state() {
        let expected = "--resume s --append-system-prompt x --system-prompt-snapshot off \
                        --permission-mode acceptEdits";
        let change = |request: &mut Request| request.extras.append_system_prompt = Some("x".into());
        check(change, &Step::Resume("s".into()), expected);
    }
}
