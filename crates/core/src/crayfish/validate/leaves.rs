//! What every step of a document can leave, known before the first of them is read: a path may lead
//! to a step that stands later.
//!
//! Steps are taken as they are written. One that is not written as it should be may leave anything:
//! what is wrong with it is told at its own place, and only there. Whether a step has run by the time
//! that a path is followed is not asked: what is not there yet is a missing value, as the language
//! knows it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::crayfish::path::{Path, Root, Segment};
use crate::crayfish::problem::{Report, quoted};
use crate::crayfish::problem_code::ProblemCode;

/// What a failure leaves, beside what its step leaves otherwise.
const OF_FAILURES: [&str; 3] = ["error", "errors", "message"];

/// What a step can leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// These, and what a failure leaves; the reason is what the step says of itself.
    Fields(&'static [&'static str], &'static str),
    /// Nothing at all.
    Nothing(&'static str),
    /// It cannot be read, so nobody knows.
    Unknown,
}

/// All steps of a document by their ids.
#[derive(Debug, Default)]
pub(super) struct Known<'a>(BTreeMap<&'a str, Leaves>);

/// What a failed iteration around a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// It ends the run.
    Fails,
    /// It is collected, and leaves what failed in it.
    Collects,
}

impl<'a> Known<'a> {
    /// Those of a list, and all inside them.
    pub(super) fn new(steps: &'a [Value]) -> Self {
        let mut known = BTreeMap::new();
        let mut tasks = vec![(steps, Around::Fails)];
        while let Some((steps, around)) = tasks.pop() {
            for step in steps {
                if let Some(id) = step.get("id").and_then(Value::as_str) {
                    let of_another = known.insert(id, leaves(step, around));
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

    /// What is wrong with a path, if it leads to what no step ever leaves.
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
        // A loop that fails in an iteration that is collected leaves why.
        (Some("forEach" | "while"), Around::Collects) => {
            Leaves::Fields(&["ok", "error", "message"], "it is a loop")
        }
        (Some(_) | None, _) => Leaves::Unknown,
    }
}

/// The mode of an exec step, as far as it can be read.
fn mode(step: &Value) -> Option<&str> {
    let Some(io) = step.get("io") else { return Some("none") };
    let io = io.as_object()?;
    match io.get("mode") {
        Some(mode) => mode.as_str(),
        None if io.contains_key("in") || io.contains_key("out") => Some("file"),
        None => Some("none"),
    }
}
