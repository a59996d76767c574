//! A document of steps, as a run is pinned to it: with its variables, and with schemas that need no other.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::crayfish::{Document, Problem, Work, reading};
use crate::diagnostic::Diagnostic;
use crate::ids::StateName;

use super::{Definition, Parsed, Platform, SourceFile};

/// The name of the one file.
pub const FILE: &str = "flow.json";

/// The text that a run of steps is pinned to.
pub fn pinned(document: &Value, vars: &Map<String, Value>) -> String {
    json!({ "document": document, "vars": vars }).to_string()
}

/// Reads it back.
pub(super) fn parse(files: &[SourceFile], platform: Platform) -> Result<Parsed, Vec<Diagnostic>> {
    let broken = |problems: Vec<Problem>| {
        let told = |problem: Problem| Diagnostic::error("bad-step", problem.to_string());
        problems.into_iter().map(|problem| told(problem).in_file(FILE)).collect::<Vec<_>>()
    };
    let bytes = files.first().map(|file| &*file.bytes).unwrap_or_default();
    let pinned = reading::read(bytes).map_err(|why| broken(vec![why.into()]))?;
    let document = Document::parse(&pinned["document"]).map_err(broken)?;
    let vars = pinned["vars"].as_object().cloned().unwrap_or_default();
    let entry = StateName::new(FILE);
    let work = Some(Box::new(Work { document, vars }));
    let definition = Definition { entry, states: BTreeMap::new(), platform, work };
    Ok(Parsed { definition, warnings: Vec::new() })
}
