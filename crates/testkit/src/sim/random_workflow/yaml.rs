//! Writes the frontmatter of a prompt.

use std::fmt::Write as _;

use raymond_core::protocol::TagName;

use crate::reference::{Allowed, Prompt};

/// Returns the lines between the fences; empty without any setting.
pub(super) fn front(prompt: &Prompt, on_denied: Option<&str>) -> String {
    let mut front = String::new();
    let mut line = |line: String| {
        let _written = writeln!(front, "{line}");
    };
    if let Some(tags) = &prompt.policy.tags {
        let tags: Vec<&str> = tags.iter().map(|tag| tag.as_str()).collect();
        line(format!("allowed_tags: [{}]", tags.join(", ")));
    }
    if !prompt.policy.targets.is_empty() {
        line("allowed_targets:".to_owned());
    }
    for (tag, list) in &prompt.policy.targets {
        let entries: Vec<String> = list.iter().map(|allowed| target(*tag, allowed)).collect();
        line(format!("  {tag}: [{}]", entries.join(", ")));
    }
    if let Some(list) = &prompt.policy.transitions {
        line("allowed_transitions:".to_owned());
        for (tag, allowed) in list {
            line(format!("  - {{{}}}", fields(*tag, allowed)));
        }
    }
    if let Some(model) = &prompt.model {
        line(format!("model: {model}"));
    }
    if let Some(most) = prompt.max_visits {
        line(format!("max_visits: {most}"));
    }
    if let Some(then) = &prompt.then {
        line(format!("then: {then}"));
    }
    if let Some(budget) = prompt.budget {
        line(format!("budget: {}.{:06}", budget.0 / 1_000_000, budget.0 % 1_000_000));
    }
    if let Some(what) = on_denied {
        line(format!("on_denied: {what}"));
    }
    if let Some(backend) = &prompt.backend {
        line(format!("backend: {backend}"));
    }
    front
}

/// `NAME`, or `{child: NAME, next: OTHER}`.
fn target(tag: TagName, allowed: &Allowed) -> String {
    match (&allowed.target, &allowed.then) {
        (Some(target), None) => target.clone(),
        (Some(target), Some(then)) => format!("{{child: {target}, {}: {then}}}", then_key(tag)),
        (None, Some(then)) => format!("{{{}: {then}}}", then_key(tag)),
        (None, None) => "{}".to_owned(),
    }
}

fn fields(tag: TagName, allowed: &Allowed) -> String {
    let mut text = format!("tag: {tag}");
    if let Some(target) = &allowed.target {
        let _written = write!(text, ", target: {target}");
    }
    if let Some(then) = &allowed.then {
        let _written = write!(text, ", {}: {then}", then_key(tag));
    }
    text
}

fn then_key(tag: TagName) -> &'static str {
    tag.spec().follower.map_or("return", |follower| follower.attribute)
}
