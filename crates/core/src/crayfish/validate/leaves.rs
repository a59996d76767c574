//! The result fields of every step, known before any step is read, because a path may lead to a
//! later step.
//!
//! A malformed step may have any field: its mistake is reported at its own place and only there.
//! Whether a step has run before a path is evaluated is not checked: a result that does not exist
//! yet is a missing value, which the language allows.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::crayfish::path::{ITEMS, Namespace, Path, Segment};
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
    /// A loop: its items, and its failure if a loop around it collects failures.
    Items {
        kind: &'static str,
        around: Around,
    },
    /// The step cannot be read, so its fields are unknown.
    Unknown,
}

/// A step, as the paths to it know it.
#[derive(Debug, Clone, Copy)]
struct KnownStep<'a> {
    leaves: Leaves,
    /// The loop directly around it.
    within: Option<&'a str>,
}

/// The result fields of all steps, by id.
#[derive(Debug, Default)]
pub(super) struct Known<'a>(BTreeMap<&'a str, KnownStep<'a>>);

/// A list of steps that is still to be looked at.
struct OpenSteps<'a> {
    steps: &'a [Value],
    around: Around,
    within: Option<&'a str>,
}

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
        let mut tasks = vec![OpenSteps { steps, around: Around::Fails, within: None }];
        while let Some(OpenSteps { steps, around, within }) = tasks.pop() {
            for step in steps {
                let id = step.get("id").and_then(Value::as_str);
                if let Some(id) = id {
                    let found = KnownStep { leaves: leaves(step, around), within };
                    let of_another = known.insert(id, found);
                    // Two steps with one id: the duplicate is reported elsewhere, so accept any
                    // field here.
                    if of_another.is_some() {
                        known.insert(id, KnownStep { leaves: Leaves::Unknown, within });
                    }
                }
                let collects = step.get("onError").and_then(Value::as_str) == Some("collect");
                let around = if collects { Around::Collects } else { around };
                let inside = |list: &str| {
                    let steps = step.get(list)?.as_array()?;
                    let within = if list == "body" { id } else { within };
                    Some(OpenSteps { steps, around, within })
                };
                tasks.extend(["then", "else", "body"].into_iter().filter_map(inside));
            }
        }
        Self(known)
    }

    /// Returns the problem of a path to a field that no step ever has.
    pub(super) fn fault(&self, path: &Path, report: &mut Report) -> Option<(ProblemCode, String)> {
        if path.root != Namespace::Results {
            return None;
        }
        let (mut name, mut rest) = (path.name.as_str(), path.rest.as_slice());
        // A path into the items of a loop leads to the steps of its body, one loop after the other.
        loop {
            let Some(step) = self.0.get(name) else {
                let meant = report.meant(name, self.0.keys().copied());
                let message = format!("there is no step {}{meant}", quoted(name));
                return Some((ProblemCode::UnknownStep, message));
            };
            let Leaves::Items { .. } = step.leaves else {
                return field_fault(name, step.leaves, rest, report);
            };
            let [Segment::Key(items), inside @ ..] = rest else {
                return loop_fault(name, step.leaves, rest);
            };
            if items != ITEMS {
                return loop_fault(name, step.leaves, rest);
            }
            (name, rest) = match inside {
                [] | [Segment::Index(_)] => return None,
                [Segment::Index(_), Segment::Key(step), rest @ ..] => {
                    let known = self.0.get(step.as_str());
                    if known.is_some_and(|known| known.within != Some(name)) {
                        let message = format!(
                            "the items of the loop {} have no step {}: it is not directly in the \
                             body",
                            quoted(name),
                            quoted(step)
                        );
                        return Some((ProblemCode::UnknownResult, message));
                    }
                    (step.as_str(), rest)
                }
                [Segment::Key(_), ..] => {
                    let name = quoted(name);
                    let message = format!(
                        "the `items` of {name} are a list: name one by its index, such as `items[0]`"
                    );
                    return Some((ProblemCode::UnknownResult, message));
                }
                [Segment::Index(_), Segment::Index(_), ..] => {
                    let name = quoted(name);
                    let message =
                        format!("an item of {name} has the results of its steps by their ids");
                    return Some((ProblemCode::UnknownResult, message));
                }
            };
        }
    }
}

/// Returns the problem of a path into the result of an exec or agent step.
fn field_fault(
    name: &str,
    leaves: Leaves,
    rest: &[Segment],
    report: &mut Report,
) -> Option<(ProblemCode, String)> {
    let name = quoted(name);
    match (leaves, rest.first()) {
        (Leaves::Nothing(reason), _) => {
            let message = format!("the step {name} leaves nothing: {reason}");
            Some((ProblemCode::UnknownResult, message))
        }
        (Leaves::Unknown | Leaves::Items { .. }, _) | (Leaves::Fields(..), None) => None,
        (Leaves::Fields(fields, reason), Some(segment)) => {
            let field = field(segment);
            // A path may read the failure of a step whose loop collects failures.
            let mut all = fields.iter().chain(&OF_FAILURES);
            if all.any(|known| *known == field) {
                return None;
            }
            let there = fields.iter().map(|field| format!("`{field}`"));
            let there = there.collect::<Vec<_>>().join(", ");
            let meant = report.meant(&field, fields.iter().copied());
            let field = quoted(&field);
            let message =
                format!("the step {name} leaves no {field}: {reason}, it leaves {there}{meant}");
            Some((ProblemCode::UnknownResult, message))
        }
    }
}

/// Returns the problem of a path to a loop that does not lead to its items.
fn loop_fault(name: &str, leaves: Leaves, rest: &[Segment]) -> Option<(ProblemCode, String)> {
    let Leaves::Items { kind, around } = leaves else { return None };
    let is_failure = |segment: &Segment| {
        ["ok", "error", "errors", "message"].iter().any(|field| segment.is_key(field))
    };
    // A failed loop inside a collected iteration has a result with the reason.
    if around == Around::Collects && rest.first().is_none_or(is_failure) {
        return None;
    }
    let name = quoted(name);
    let no_field = rest.first().map(|segment| format!("no {}", quoted(&field(segment))));
    let no_field = no_field.unwrap_or_else(|| "no result of its own".to_owned());
    let message =
        format!("the step {name} leaves {no_field}: its kind is `{kind}`, it leaves `items`");
    Some((ProblemCode::UnknownResult, message))
}

fn field(segment: &Segment) -> String {
    match segment {
        Segment::Key(key) => key.clone(),
        Segment::Index(index) => format!("[{index}]"),
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
        (Some("forEach"), around) => Leaves::Items { kind: "forEach", around },
        (Some("while"), around) => Leaves::Items { kind: "while", around },
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
