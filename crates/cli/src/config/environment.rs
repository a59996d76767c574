//! Settings in the environment, such as `RAYMOND_BUDGET` for `budget`.
//!
//! Other variables that start with `RAYMOND_` are ignored, because Raymond itself sets some for
//! scripts.

use std::ffi::OsString;
use std::path::Path;

use raymond_core::diagnostic::Diagnostic;

use super::layer::{Layer, Origin};
use super::mistake;
use super::value::{ConfigValue, RawValue};

pub(super) fn read(
    variables: impl Iterator<Item = (OsString, OsString)>,
    mistakes: &mut Vec<Diagnostic>,
) -> Layer {
    let mut layer = Layer::default();
    for (name, value) in variables {
        let Some(name) = name.to_str() else { continue };
        let Some(key) = name.strip_prefix("RAYMOND_").and_then(key) else { continue };
        let Some(value) = value.to_str() else {
            mistakes.push(mistake("it is not UTF-8").in_file(name));
            continue;
        };
        let given = ConfigValue { value: RawValue::Text(value), base: Path::new("") };
        let origin = Origin::Environment(name.to_owned());
        if let Some(Err(wrong)) = layer.set(key, given, &origin) {
            mistakes.push(mistake(wrong).in_file(name));
        }
    }
    layer
}

fn key(name: &str) -> Option<&'static str> {
    Layer::KEYS.into_iter().find(|key| key.to_ascii_uppercase() == name)
}
