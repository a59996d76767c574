//! Names of tool calls, for permission rules and for display.

use raymond_core::text::excerpt_bytes;

use super::wire::ToolInput;

/// Returns the call as a permission rule: `Bash(cargo test --all)`, `WebFetch`.
pub(super) fn permission_rule(tool: &str, input: &ToolInput) -> String {
    // Only rules for `Bash` name the command; other tools are named as a whole.
    let detail = input.command.as_deref().filter(|_| tool == "Bash");
    format_call(tool, detail)
}

/// Returns the call for display, with its file, address or pattern.
pub(super) fn display_call(tool: &str, input: &ToolInput) -> String {
    let details = [&input.command, &input.file_path, &input.url, &input.pattern];
    format_call(tool, details.into_iter().find_map(|detail| detail.as_deref()))
}

fn format_call(tool: &str, detail: Option<&str>) -> String {
    // In bytes, because commands and patterns may be of any length.
    const MAX_LENGTH: usize = 2000;
    let tool = &tool[..tool.floor_char_boundary(MAX_LENGTH)];
    match detail.map(str::trim) {
        None | Some("") => tool.to_owned(),
        Some(detail) => format!("{tool}({})", excerpt_bytes(detail, MAX_LENGTH)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_is_formatted_as_permission_rule() {
        let check = |tool: &str, input: &str, rule: &str, seen: &str| {
            let input: ToolInput = serde_json::from_str(input).unwrap();
            assert_eq!(
                (permission_rule(tool, &input), display_call(tool, &input)),
                (rule.into(), seen.into())
            );
        };
        let test = "Bash(cargo test --all)";
        check("Bash", r#"{"command":"cargo test --all","description":"x"}"#, test, test);
        check("Bash", r#"{"command":["no","text"]}"#, "Bash", "Bash");
        check("Bash", r#"{"command":" "}"#, "Bash", "Bash");
        check("Edit", r#"{"file_path":"/a.rs","old_string":"x"}"#, "Edit", "Edit(/a.rs)");
        check("WebFetch", r#"{"url":"https://x.y"}"#, "WebFetch", "WebFetch(https://x.y)");
        check("Grep", r#"{"pattern":"fn .*"}"#, "Grep", "Grep(fn .*)");
        check("mcp__db__run", r#"{"command":"drop"}"#, "mcp__db__run", "mcp__db__run(drop)");
        check("Task", "{}", "Task", "Task");
        let long = format!(r#"{{"command":"{}€"}}"#, "x".repeat(1999));
        let cut = format!("Bash({}…)", "x".repeat(1999));
        check("Bash", &long, &cut, &cut);
    }
}
