//! Settings in the environment, such as `RAYMOND_BUDGET` for `budget`.
//!
//! Other variables that start with `RAYMOND_` are ignored, because Raymond itself sets some for
//! scripts.

use std::ffi::OsString;
use std::path::Path;

use raymond_core::diagnostic::Diagnostic;

use super::keys::{KEYS, Layer};
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
        let key = KEYS.iter().find(|key| key.variable().as_deref() == Some(name));
        let Some(key) = key else { continue };
        let Some(value) = value.to_str() else {
            mistakes.push(mistake("it is not UTF-8").in_file(name));
            continue;
        };
        let given = ConfigValue { value: RawValue::Text(value), base: Path::new("") };
        let origin = Origin::Environment(name.to_owned());
        if let Err(wrong) = (key.read)(&mut layer, given, "", &origin) {
            mistakes.push(mistake(wrong).in_file(name));
        }
    }
    layer
}
