//! Settings in the environment, such as `RAYMOND_BUDGET` for `budget`.
//!
//! Other variables that start with `RAYMOND_` are ignored, because Raymond itself sets some for
//! scripts.

use std::ffi::OsString;
use std::path::Path;

use raymond_core::diagnostic::Diagnostic;

use super::keys::{Layer, NamedKey};
use super::layer::Origin;
use super::mistake;
use super::value::{ConfigValue, RawValue};

pub(super) fn read(
    variables: impl Iterator<Item = (OsString, OsString)>,
    mistakes: &mut Vec<Diagnostic>,
) -> Layer {
    let mut layer = Layer::default();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with("RAYMOND_")) else {
            continue;
        };
        let named = NamedKey::all().find(|named| named.variable().as_deref() == Some(name));
        let Some(NamedKey { name: key_name, key }) = named else { continue };
        let Some(value) = value.to_str() else {
            // Not ignored: a lost value could be a budget.
            mistakes.push(mistake("it is not UTF-8").in_file(name));
            continue;
        };
        let given = ConfigValue { value: RawValue::Text(value), base: Path::new("") };
        let origin = Origin::Environment(name.to_owned());
        if let Err(wrong) = (key.read)(&mut layer, given, key_name, &origin) {
            mistakes.push(mistake(wrong).in_file(name));
        }
    }
    layer
}
