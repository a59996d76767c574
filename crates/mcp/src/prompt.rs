//! The prompt that teaches how to write workflows: the skill, and the user's task.

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};

const NAME: &str = "crayfish";
const TASK: &str = "task";
const SKILL: &str = include_str!("../../../docs/skills/crayfish/SKILL.md");

/// Returns the prompt for the list.
pub(crate) fn definition() -> Prompt {
    let task =
        PromptArgument::new(TASK).with_description("The task of the workflow").with_required(false);
    Prompt::new(NAME, Some("How to write and run a Crayfish workflow"), Some(vec![task]))
        .with_title("Write a Crayfish workflow")
}

/// Returns the prompt with its argument filled in.
pub(crate) fn filled(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    if request.name != NAME {
        let message = format!("there is no prompt {:?}; the only one is {NAME:?}", request.name);
        return Err(ErrorData::invalid_params(message, None));
    }
    let given = request.arguments.iter().flatten();
    if let Some((unknown, _)) = given.clone().find(|(name, _)| *name != TASK) {
        let message = format!("the prompt {NAME:?} has no argument {unknown:?}; it has {TASK:?}");
        return Err(ErrorData::invalid_params(message, None));
    }
    let mut text = body();
    for (_, task) in given {
        let Some(task) = task.as_str() else {
            let message = format!("the argument {TASK:?} is not a string");
            return Err(ErrorData::invalid_params(message, None));
        };
        text.push_str("\n## What is wanted now\n\n");
        text.push_str(task);
        text.push('\n');
    }
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description("How to write a Crayfish workflow"))
}

/// Returns the skill without the parts for other readers: its frontmatter, comments and fence
/// attributes for tests, and shell commands, because a model that receives this prompt has the
/// tool.
fn body() -> String {
    let behind = SKILL.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    let body = behind.map_or(SKILL, |(_, body)| body.trim_start());
    let mut kept = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, behind)| behind.trim_start());
    }
    kept.push_str(rest);
    let kept = without_shell(&kept);
    let line = |line: &str| match line.split_once(' ') {
        Some((fence, _)) if fence.starts_with("```") => format!("{fence}\n"),
        Some(_) | None => format!("{line}\n"),
    };
    kept.lines().map(line).collect()
}

fn without_shell(text: &str) -> String {
    let mut parts = text.split("```console\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| {
        kept + part.split_once("\n```\n").map_or("", |(_, rest)| rest.trim_start())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_contains_nothing_for_other_readers() {
        let body = body();
        assert!(body.starts_with("# Writing and running Crayfish workflows\n"), "{body}");
        let is_other =
            |line: &&str| line.contains("<!--") || line.starts_with("```") && line.contains(' ');
        assert_eq!(body.lines().filter(is_other).collect::<Vec<_>>(), Vec::<&str>::new());
        assert!(body.contains("\n```json\n{"), "{body}");
        assert!(!body.contains("\n$ ") && body.contains("\n## When it fails\n"), "{body}");
    }
}
