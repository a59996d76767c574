//! The pinned form of a document of steps: with its variables, and with schemas that refer to no
//! other file.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::crayfish::reading::{self, Holds};
use crate::crayfish::{self, Document, Problem, StepsDefinition};
use crate::diagnostic::Diagnostic;
use crate::ids::StateName;
use crate::value::Hash;

use super::{Definition, Parsed, SourceFile, State};
use crate::extension::{Platform, StateKind};

/// The name of the only file.
pub const FILE: &str = "flow.json";

/// Returns the text that a run of steps is pinned to.
pub fn pinned(document: &Value, vars: &Map<String, Value>) -> String {
    json!({ "document": document, "vars": vars }).to_string()
}

/// Parses the pinned text.
pub(super) fn parse(files: &[SourceFile], platform: Platform) -> Result<Parsed, Vec<Diagnostic>> {
    let broken = |problems: Vec<Problem>| {
        let diagnostic =
            |problem: Problem| Diagnostic::error(problem.code.as_str(), problem.to_string());
        problems.into_iter().map(|problem| diagnostic(problem).in_file(FILE)).collect::<Vec<_>>()
    };
    let bytes = files.first().map(|file| &*file.bytes).unwrap_or_default();
    let pinned = reading::read_as(Holds::Record, bytes).map_err(|why| broken(vec![why.into()]))?;
    let document = Document::parse(&pinned["document"]).map_err(broken)?;
    let vars = pinned["vars"].as_object().cloned().unwrap_or_default();
    let entry = StateName::new(FILE);
    let asking = asking(&document);
    let steps = Some(Box::new(StepsDefinition { document, vars }));
    let definition = Definition { entry, states: BTreeMap::new(), platform, steps, asking };
    Ok(Parsed { definition, warnings: Vec::new() })
}

/// Returns the agent steps as prompts without settings of their own.
fn asking(document: &Document) -> Vec<State> {
    let is_agent = |step: &&crayfish::Step| matches!(step.kind, crayfish::StepKind::Agent(_));
    let nothing: Arc<[u8]> = [].into();
    let prompt = |step: &crayfish::Step| State {
        name: StateName::new(step.id.as_str()),
        kind: StateKind::Prompt,
        front: Arc::default(),
        body: "".into(),
        source: SourceFile { name: FILE.to_owned(), bytes: nothing.clone(), executable: false },
        hash: Hash::of(b""),
    };
    document.steps().iter().filter(is_agent).map(prompt).collect()
}

#[cfg(test)]
mod tests {
    use super::super::EntryPoint;
    use super::*;

    #[test]
    fn pinned_document_is_read_back() {
        let document = json!({ "steps": [
            { "id": "a", "kind": "exec", "shell": "true" },
            { "id": "v", "kind": "agent", "prompt": "?", "schema": {} },
        ] });
        let vars = Map::from_iter([("who".to_owned(), json!("world"))]);
        let file = SourceFile {
            name: FILE.to_owned(),
            bytes: pinned(&document, &vars).into_bytes().into(),
            executable: false,
        };
        let parsed = Definition::parse(vec![file], &EntryPoint::Steps, Platform::Unix).unwrap();
        let Definition { steps, asking, .. } = parsed.definition;
        let steps = steps.unwrap();
        assert_eq!((steps.document.steps().len(), steps.vars), (2, vars));
        let asking: Vec<&str> = asking.iter().map(|state| state.name.as_str()).collect();
        assert_eq!(asking, ["v"]);
    }
}
