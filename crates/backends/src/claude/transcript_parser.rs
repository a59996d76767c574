//! Readable items from a transcript of Claude Code.

use super::turn::ClaudeTurn;
use crate::headless::TurnReader;

/// Creates a reader for the transcript of one turn.
pub(crate) fn transcript_reader() -> Box<dyn TurnReader> {
    Box::new(ClaudeTurn::default())
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, bash, init, success, text, user};
    use super::*;
    use crate::headless::{Speaker, TranscriptItem};
    use crate::process::StreamEvent;

    fn said(lines: &[String]) -> Vec<TranscriptItem> {
        let mut parser = transcript_reader();
        let event = lines.iter().map(|line| StreamEvent::Line(line.clone().into_bytes()));
        event.flat_map(|event| parser.read_event(&event)).collect()
    }

    fn by(speaker: Speaker, text: &str) -> TranscriptItem {
        TranscriptItem::Text { by: speaker, text: text.into() }
    }

    #[test]
    fn every_item_appears_once_and_in_order() {
        let check =
            |lines: &[String], expected: &[TranscriptItem]| assert_eq!(said(lines), expected);
        let agent = |text: &str| by(Speaker::Agent, text);
        let client = |text: &str| by(Speaker::Client, text);
        let last = |by, text: &str| TranscriptItem::Final { by, text: text.into() };
        let tool = TranscriptItem::Tool { name: "Bash(cargo test)".into() };
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
    fn tool_results_are_shown_only_if_failed() {
        let check = |content: &str, expected: &[&str]| {
            let answer = r#"{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"#;
            let line = format!(
                r#"{{"type":"user","message":{{"content":[{answer}{content}}},{{"type":"text"}}]}}}}"#
            );
            let failed = |why: &&str| TranscriptItem::ToolFailed { why: (*why).into() };
            assert_eq!(said(&[line]), expected.iter().map(failed).collect::<Vec<_>>());
        };
        check(r#""exit 1\nno""#, &["exit 1\nno"]);
        check(r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, &["a\nb"]);
        check("17", &[""]);
        assert_eq!(said(&[user()]), []);
    }

    #[test]
    fn denied_call_is_listed_once() {
        let more = r#""is_error":false,"result":"","permission_denials":[{"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"rm x"}}]"#;
        let line = sample::result("success", more);
        let denied = TranscriptItem::Denied { tool: "Bash(rm x)".into() };
        assert_eq!(said(&[line.clone(), line]), [denied]);
    }

    #[test]
    fn unreadable_lines_are_items() {
        let check = |event: StreamEvent, expected: &str| {
            let unread = TranscriptItem::Unread { what: expected.into() };
            assert_eq!(transcript_reader().read_event(&event), [unread]);
        };
        let line = |text: &str| StreamEvent::Line(text.as_bytes().to_vec());
        check(line("Segmentation fault"), "not JSON: Segmentation fault");
        check(line(r#"{"type":"result","subt"#), r#"not JSON: {"type":"result","subt"#);
        check(line(r#"{"type":"novelty"}"#), "a line of unknown type \"novelty\"");
        check(
            StreamEvent::LongLine { length: 20_000_000 },
            "a line of 20000000 bytes was too long to read",
        );
    }
}
