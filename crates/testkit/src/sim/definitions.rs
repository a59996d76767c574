//! The definitions of a simulated run: its states may be edited while it has no owner.

use std::collections::BTreeMap;

use raymond_core::run::Run;
use raymond_core::value::Value;
use raymond_core::workflow::Definition;

/// Returns the definition that a run uses now.
pub(super) fn definition_of<'d>(
    definitions: &'d BTreeMap<Value, Definition>,
    run: &Run,
) -> &'d Definition {
    // Before the first record the run has no manifest yet.
    let first = || definitions.get(&Value::from("as written"));
    let known = definitions.get(&run.manifest).or_else(first);
    known.expect("the first definition is never removed")
}
