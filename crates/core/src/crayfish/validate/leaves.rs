//! The result fields of every step, known before any step is read, because a path may lead to a
//! later step.
//!
//! A malformed step may have any field: its mistake is reported at its own place and only there.
//! Whether a step has run before a path is evaluated is not checked: a result that does not exist
//! yet is a missing value, which the language allows.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::crayfish::path::{Path, Root, Segment};
use crate::crayfish::problem::{Report, quoted};
use crate::crayfish::problem_code::ProblemCode;

/// The fields of a failed result, in addition to those of the step.
const OF_FAILURES: [&str; 3] = ["error", "errors", "message"];

/// The result fields of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// These and those of a failure; the text is the reason for messages.
    Fields(&'static [&'static str], &'static str),
    Nothing(&'static str),
    /// The step cannot be read, so its fields are unknown.
    Unknown,
}

/// The result fields of all steps, by id.
#[derive(Debug, Default)]
pub(super) struct Known<'a>(BTreeMap<&'a str, Leaves>);

/// The effect of a failed iteration around a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    Fails,
    /// The failure is collected as a result.
    Collects,
}

impl<'a> Known<'a> {
    pub(super) fn new(steps: &'a [Value]) -> Self {
        let mut known = BTreeMap::new();
        let mut tasks = vec![(steps, Around::Fails)];
        while let Some((steps, around)) = tasks.pop() {
            for step in steps {
                if let Some(id) = step.get("id").and_then(Value::as_str) {
                    let of_another = known.insert(id, leaves(step, around));
                    // Two steps with one id: the duplicate is reported elsewhere, so accept any
                    // field here.
                    if of_another.is_some() {
                        known.insert(id, Leaves::Unknown);
                    }
                }
                let collects = step.get("onError").and_then(Value::as_str) == Some("collect");
                let inside = if collects { Around::Collects } else { around };
                let lists = ["then", "else", "body"];
                let lists = lists.iter().filter_map(|list| step.get(*list)?.as_array());
                tasks.extend(lists.map(|list| (list.as_slice(), inside)));
            }
        }
        Self(known)
    }

    /// Returns the problem of a path to a field that no step ever has.
    pub(super) fn fault(&self, path: &Path, report: &mut Report) -> Option<(ProblemCode, String)> {
        if path.root != Root::Results {
            return None;
        }
        let name = quoted(&path.name);
        let Some(leaves) = self.0.get(path.name.as_str()) else {
            let meant = report.meant(&path.name, self.0.keys().copied());
            return Some((ProblemCode::UnknownStep, format!("there is no step {name}{meant}")));
        };
        match (leaves, path.rest.first()) {
            (Leaves::Nothing(reason), _) => {
                let message = format!("the step {name} leaves nothing: {reason}");
                Some((ProblemCode::UnknownResult, message))
            }
            (Leaves::Unknown, _) | (Leaves::Fields(..), None) => None,
            (Leaves::Fields(fields, reason), Some(segment)) => {
                let field = match segment {
                    Segment::Key(key) => key.clone(),
                    Segment::Index(index) => format!("[{index}]"),
                };
                // A path may read the failure of a step whose loop collects failures.
                let mut all = fields.iter().chain(&OF_FAILURES);
                if all.any(|known| *known == field) {
                    return None;
                }
                let there = fields.iter().map(|field| format!("`{field}`"));
                let there = there.collect::<Vec<_>>().join(", ");
                let meant = report.meant(&field, fields.iter().copied());
                let field = quoted(&field);
                let message = format!(
                    "the step {name} leaves no {field}: {reason}, it leaves {there}{meant}"
                );
                Some((ProblemCode::UnknownResult, message))
            }
        }
    }
}

fn leaves(step: &Value, around: Around) -> Leaves {
    match (step.get("kind").and_then(Value::as_str), around) {
        (Some("exec"), _) => match mode(step) {
            Some("none") => Leaves::Fields(
                &["ok", "mode", "stdout", "stderr", "attempts"],
                "its mode is `none`",
            ),
            Some("file") => Leaves::Fields(
                &["ok", "mode", "stdout", "stderr", "outputs", "attempts"],
                "its mode is `file`",
            ),
            Some("stream") => Leaves::Fields(
                &["ok", "mode", "json", "stderr", "attempts"],
                "its mode is `stream`",
            ),
            Some(_) | None => Leaves::Unknown,
        },
        (Some("agent"), _) => Leaves::Fields(&["ok", "json"], "its kind is `agent`"),
        (Some("if"), _) => Leaves::Nothing("its kind is `if`"),
        (Some("forEach"), Around::Fails) => Leaves::Nothing("its kind is `forEach`"),
        (Some("while"), Around::Fails) => Leaves::Nothing("its kind is `while`"),
        // A failed loop inside a collected iteration has a result with the reason.
        (Some("forEach" | "while"), Around::Collects) => {
            Leaves::Fields(&["ok", "error", "message"], "it is a loop")
        }
        (Some(_) | None, _) => Leaves::Unknown,
    }
}

/// Returns the mode of an exec step, if it can be read.
fn mode(step: &Value) -> Option<&str> {
    let Some(io) = step.get("io") else { return Some("none") };
    let io = io.as_object()?;
    match io.get("mode") {
        Some(mode) => mode.as_str(),
        None if io.contains_key("in") || io.contains_key("out") => Some("file"),
        None => Some("none"),
    }
}
