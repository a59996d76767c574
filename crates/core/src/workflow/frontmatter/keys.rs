//! Reads the keys of a frontmatter, one by one.
//!
//! A key with a mistake is reported and left at its default, so that the other keys are still read
//! and a user sees all mistakes at once. The keys of policies are in [`super::policies`]. Whether a
//! backend supports a value is checked in [`crate::run::requirements`].

use std::ops::Range;

use crate::budget::Micros;
use crate::diagnostic::{Diagnostic, yaml_hint};
use crate::ids::BackendName;
use crate::time::Span;

use super::reader::{Entry, Reader};
use super::{Frontmatter, FrontmatterKey, OnDenied, Role};
use crate::text::nearest;
use crate::yaml::{self, Content, Node};

/// Largest frontmatter, in bytes. It is checked before the YAML is parsed, so that a hostile file
/// costs nothing.
pub(super) const LARGEST: usize = 64 * 1024;

/// All known keys.
pub const KEYS: [&str; 19] = [
    "allowed_tags",
    "allowed_targets",
    "allowed_transitions",
    "model",
    "effort",
    "backend",
    "permission_mode",
    "allow",
    "deny",
    "on_denied",
    "add_dirs",
    "mcp_config",
    "append_system_prompt",
    "timeout",
    "idle_timeout",
    "max_visits",
    "then",
    "budget",
    "description",
];

impl Reader<'_> {
    /// Reads the frontmatter in these bytes of the text.
    pub(super) fn block(&mut self, block: &Range<usize>) -> Frontmatter {
        let mut front = Frontmatter::default();
        if block.len() > LARGEST {
            let message = format!("the frontmatter is larger than {} KiB", LARGEST / 1024);
            self.error(&(block.start..block.start), "frontmatter-too-large", message);
            return front;
        }
        let root = match yaml::parse(self.text(), block) {
            Ok(root) => root,
            Err(problem) => {
                let message = format!("the frontmatter is not YAML: {}", problem.message);
                let hint = yaml_hint(
                    &problem.message,
                    self.text().get(..problem.span.start).unwrap_or_default(),
                );
                self.error_with_hint(&problem.span, "invalid-yaml", message, hint);
                return front;
            }
        };
        // A block that is empty or contains only comments is as good as none.
        let Some(root) = root.filter(|root| root.content != Content::Null) else {
            return front;
        };
        let entries = self.entries("the frontmatter", &root).unwrap_or_default();
        for entry in &entries {
            self.keys.push(FrontmatterKey { name: entry.key.to_owned(), span: entry.span.clone() });
            self.key(entry, &mut front);
        }
        self.check_together(&entries, &front);
        front
    }

    fn key(&mut self, entry: &Entry<'_>, front: &mut Frontmatter) {
        let node = entry.value;
        let what = format!("`{}`", entry.key);
        match entry.key {
            "allowed_tags" => front.policy.tags = self.tags(node),
            "allowed_targets" => front.policy.targets = self.targets(node),
            "allowed_transitions" => front.policy.transitions = self.transitions(node),
            "model" => front.model = self.string(&what, node),
            "effort" => front.effort = self.string(&what, node),
            "backend" => front.backend = self.string(&what, node).map(BackendName::new),
            "permission_mode" => front.permission_mode = self.string(&what, node),
            "allow" => front.allow = self.strings(&what, node),
            "deny" => front.deny = self.strings(&what, node),
            "on_denied" => front.on_denied = self.on_denied(node).unwrap_or_default(),
            "add_dirs" => front.add_dirs = self.strings(&what, node),
            "mcp_config" => front.mcp_config = self.string(&what, node),
            "append_system_prompt" => front.append_system_prompt = self.string(&what, node),
            "timeout" => front.timeout = self.duration(&what, node),
            "idle_timeout" => front.idle_timeout = self.duration(&what, node),
            "max_visits" => front.max_visits = self.max_visits(node),
            "then" => front.then = self.name(&what, node, Role::Then),
            "budget" => front.budget = self.budget(node),
            "description" => front.description = self.description(node),
            _ => self.unknown_key(entry, "", &KEYS),
        }
    }

    /// Reports mistakes that involve several keys.
    fn check_together(&mut self, entries: &[Entry<'_>], front: &Frontmatter) {
        let place = |keys: &[&str]| entries.iter().rfind(|entry| keys.contains(&entry.key));
        if front.max_visits.is_none()
            // A `max_visits` with a mistake was reported already, and the `then` is right.
            && place(&["max_visits"]).is_none()
            && let Some(then) = place(&["then"])
        {
            let message = "`then` has no effect without `max_visits`";
            let warning = Diagnostic::warning("unused-then", message);
            self.report(warning, then.span);
        }
        let forms = ["allowed_tags", "allowed_targets", "allowed_transitions"];
        if let Some(form) = place(&forms)
            // After another mistake the policy may be incomplete, so an empty one proves nothing.
            && self.diagnostics.is_empty()
            && front.policy.allowances().is_empty()
        {
            let message = "the policy allows no transition at all: the state could never end";
            self.error(form.span, "empty-policy", message.to_owned());
        }
    }

    fn on_denied(&mut self, node: &Node) -> Option<OnDenied> {
        let word = self.string("`on_denied`", node)?;
        match word.as_str() {
            "warn" => Some(OnDenied::Warn),
            "remind" => Some(OnDenied::Remind),
            "fail" => Some(OnDenied::Fail),
            _ => {
                let message = format!("`on_denied` is warn, remind or fail, not {word:?}");
                let hint = nearest(&word, ["warn", "remind", "fail"])
                    .map(|word| format!("did you mean `{word}`?"));
                self.error_with_hint(&node.span, "unknown-word", message, hint);
                None
            }
        }
    }

    fn duration(&mut self, what: &str, node: &Node) -> Option<Span> {
        let text = match &node.content {
            // `timeout: 90` is a number in YAML. It is read as a text, so that the error can
            // suggest `90s`.
            Content::Text(text) | Content::Number(text) => text,
            Content::Null | Content::Bool(_) | Content::List(_) | Content::Map(_) => {
                self.wrong_type(what, "a duration such as 250ms, 90s, 10m, 2h or 7d", node, None);
                return None;
            }
        };
        match text.parse() {
            Ok(span) => Some(span),
            Err(bad) => {
                let seconds = text.parse::<u32>().ok().filter(|seconds| *seconds > 0);
                let hint = seconds.map(|seconds| format!("write the unit: {seconds}s"));
                self.error_with_hint(&node.span, "bad-duration", format!("{what}: {bad}"), hint);
                None
            }
        }
    }

    fn max_visits(&mut self, node: &Node) -> Option<u32> {
        let Content::Number(number) = &node.content else {
            self.wrong_type("`max_visits`", "a whole number", node, None);
            return None;
        };
        match number.parse::<u32>() {
            Ok(visits) if visits > 0 => Some(visits),
            _ => {
                let most = u32::MAX;
                let message =
                    format!("`max_visits` is a whole number from 1 to {most}, not {number}");
                self.error(&node.span, "bad-number", message);
                None
            }
        }
    }

    fn budget(&mut self, node: &Node) -> Option<Micros> {
        // `$2.50` is a text in YAML, and `2.50` a number.
        let (Content::Number(text) | Content::Text(text)) = &node.content else {
            self.wrong_type("`budget`", "an amount of dollars such as 2.50", node, None);
            return None;
        };
        match text.parse() {
            Ok(Micros::ZERO) => {
                let message = "`budget` is zero: no turn of the state could ever start";
                self.error(&node.span, "bad-amount", message.to_owned());
                None
            }
            Ok(amount) => Some(amount),
            Err(bad) => {
                self.error(&node.span, "bad-amount", format!("`budget`: {bad}"));
                None
            }
        }
    }

    fn description(&mut self, node: &Node) -> Option<String> {
        let text = self.string("`description`", node)?;
        let mut lines = text.trim().lines();
        let first = lines.next().map(|line| line.trim_end().to_owned());
        if lines.next().is_some() {
            let message = "`description` must be one line; only the first line is used";
            let warning = Diagnostic::warning("long-description", message);
            self.report(warning, &node.span);
        }
        first
    }
}
