//! What the client said in a turn, for people who read it.

use super::shape::Conclusion;
use super::turn::Turn;
use crate::headless::{Fold as _, Said, Speaker};
use crate::process::Heard;

/// What a client concludes with, where that was not among its messages.
pub(super) fn unheard(conclusion: &Conclusion, last: &str) -> Vec<Said> {
    let by = if conclusion.is_error { Speaker::Client } else { Speaker::Agent };
    let result = conclusion.result.iter().filter(|result| !last.ends_with(result.as_str()));
    let result = result.map(|text| Said::Final { by, text: text.clone() });
    let errors = conclusion.errors.iter();
    let errors = errors.map(|text| Said::Final { by: Speaker::Client, text: text.clone() });
    result.chain(errors).collect()
}

/// Reads a transcript again, line by line.
#[derive(Debug, Default)]
pub(crate) struct Recount(Turn);

impl Recount {
    /// What this line says.
    pub(crate) fn hear(&mut self, heard: &Heard) -> Vec<Said> {
        self.0.hear(heard)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, bash, init, success, text, user};
    use super::*;

    fn said(lines: &[String]) -> Vec<Said> {
        let mut recount = Recount::default();
        let heard = lines.iter().map(|line| Heard::Line(line.clone().into_bytes()));
        heard.flat_map(|heard| recount.hear(&heard)).collect()
    }

    fn by(speaker: Speaker, text: &str) -> Said {
        Said::Text { by: speaker, text: text.into() }
    }

    #[test]
    fn everything_that_was_said_is_told_once_and_in_order() {
        let check = |lines: &[String], expected: &[Said]| assert_eq!(said(lines), expected);
        let agent = |text: &str| by(Speaker::Agent, text);
        let client = |text: &str| by(Speaker::Client, text);
        let last = |by, text: &str| Said::Final { by, text: text.into() };
        let tool = Said::Tool { name: "Bash(cargo test)".into() };
        check(
            &[
                init(),
                text("m", "a"),
                bash("m", "cargo test"),
                user(),
                text("n", "b"),
                success("b"),
            ],
            &[agent("a"), tool, agent("b")],
        );
        check(&[init(), success("only here")], &[last(Speaker::Agent, "only here")]);
        let sub = text("m", "x");
        let sub = sub.replace(r#""parent_tool_use_id":null"#, r#""parent_tool_use_id":"t""#);
        check(&[sub], &[by(Speaker::Subagent, "x")]);
        let twice = [sample::error("server_error"), sample::api_error("529")];
        check(&twice, &[client("API Error")]);
        check(&[sample::api_error("529")], &[last(Speaker::Client, "API Error: scripted")]);
        let lost = "No conversation found with session ID: s";
        check(&[sample::lost("s")], &[last(Speaker::Client, lost)]);
    }

    #[test]
    fn what_tools_answer_is_told_only_when_it_is_an_error() {
        let check = |content: &str, expected: &[&str]| {
            let answer = r#"{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"#;
            let line = format!(
                r#"{{"type":"user","message":{{"content":[{answer}{content}}},{{"type":"text"}}]}}}}"#
            );
            let failed = |why: &&str| Said::ToolFailed { why: (*why).into() };
            assert_eq!(said(&[line]), expected.iter().map(failed).collect::<Vec<_>>());
        };
        check(r#""exit 1\nno""#, &["exit 1\nno"]);
        check(r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, &["a\nb"]);
        check("17", &[""]);
        assert_eq!(said(&[user()]), []);
    }

    #[test]
    fn a_call_that_was_denied_is_told_once_however_often_the_client_tells() {
        let more = r#""is_error":false,"result":"","permission_denials":[{"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"rm x"}}]"#;
        let line = sample::result("success", more);
        let denied = Said::Denied { tool: "Bash(rm x)".into() };
        assert_eq!(said(&[line.clone(), line]), [denied]);
    }

    #[test]
    fn what_cannot_be_read_is_told_as_such() {
        let check = |heard: Heard, expected: &str| {
            let unread = Said::Unread { what: expected.into() };
            assert_eq!(Recount::default().hear(&heard), [unread]);
        };
        let line = |text: &str| Heard::Line(text.as_bytes().to_vec());
        check(line("Segmentation fault"), "not JSON: Segmentation fault");
        check(line(r#"{"type":"result","subt"#), r#"not JSON: {"type":"result","subt"#);
        check(line(r#"{"type":"novelty"}"#), "a line of unknown type \"novelty\"");
        check(
            Heard::Cut { length: 20_000_000 },
            "a line of 20000000 bytes was too long to be read",
        );
    }
}
