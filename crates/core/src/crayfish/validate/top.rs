//! Reads the top level of a document, without its steps.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::fields::{Fields, expected};
use super::keys;
use super::scope::ValidationScope;
use super::text::{Reader, Use};
use crate::crayfish::problem::Report;
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::template::{Shape, Template};

/// The top level of a document, without its steps.
pub(super) struct DocumentHead {
    pub(super) name: Option<String>,
    pub(super) version: Option<Number>,
    pub(super) vars: Map<String, Value>,
    pub(super) env: BTreeMap<String, Template>,
    pub(super) output: Option<Shape>,
}

/// Reads the top level of a document, and returns its list of steps.
pub(super) fn head<'a>(
    report: &mut Report,
    value: &'a Value,
) -> (Option<DocumentHead>, &'a [Value]) {
    let Some(fields) = Fields::open(report, value, "a workflow") else {
        return (None, &[]);
    };
    let fields = fields.known(report, "a workflow", keys::DOCUMENT);
    // For editors: only its type is checked.
    fields.string(report, "$schema");
    // For readers of the document.
    fields.string(report, "description");
    let name = fields.string(report, "name").map(str::to_owned);
    let version = fields.get("version").and_then(|version| {
        let number = version.as_number().cloned();
        if number.is_none() {
            report.add_at("version", ProblemCode::WrongType, expected("a number", version));
        }
        number
    });
    let vars = fields.object(report, "vars").cloned().unwrap_or_default();
    let env = fields.object(report, "env").map(|env| {
        report.under("env", |report| {
            // No scope is needed: `Use::Beforehand` refuses everything but `vars`.
            Reader { report, scope: &ValidationScope::default() }.env(env, Use::Beforehand)
        })
    });
    let steps = match fields.required(report, "steps") {
        Some(_) => fields.array(report, "steps").unwrap_or_default(),
        None => &[],
    };
    // Its paths may lead to all steps, and to no local.
    let output = fields.get("output").and_then(|output| {
        let scope = ValidationScope::of(steps);
        report.under("output", |report| Reader { report, scope: &scope }.shape(output))
    });
    (Some(DocumentHead { name, version, vars, env: env.unwrap_or_default(), output }), steps)
}
