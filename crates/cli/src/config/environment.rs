//! Settings in the environment, such as `RAYMOND_BUDGET` for `budget`.
//!
//! Other variables that start with `RAYMOND_` are ignored, because Raymond itself sets some for
//! scripts. But a name that resembles a setting is a mistake: it could be a lost budget.

use std::ffi::OsString;
use std::path::Path;

use raymond_core::diagnostic::Diagnostic;
use raymond_core::text::nearest;
use raymond_core::workflow::environment::is_ours;

use super::keys::{Layer, NamedKey};
use super::layer::SettingOrigin;
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
        let Some(NamedKey { name: key_name, key }) = named else {
            mistakes.extend(misspelt(name));
            continue;
        };
        let Some(value) = value.to_str() else {
            // Not ignored: a lost value could be a budget.
            mistakes.push(mistake("it is not UTF-8").in_file(name));
            continue;
        };
        let given = ConfigValue { value: RawValue::Text(value), base: Path::new("") };
        let origin = SettingOrigin::Environment(name.to_owned());
        if let Err(wrong) = (key.read)(&mut layer, given, key_name, &origin) {
            mistakes.push(mistake(wrong).in_file(name));
        }
    }
    layer
}

/// Returns the mistake of a variable that resembles the variable of a setting.
fn misspelt(name: &str) -> Option<Diagnostic> {
    // Without the prefix: beside it, the names of all settings would be similar.
    let word = name.strip_prefix("RAYMOND_").filter(|_| !is_ours(name))?;
    let keys = NamedKey::all().filter(|named| named.variable().is_some());
    let keys: Vec<String> = keys.map(|named| named.name.to_ascii_uppercase()).collect();
    let near = nearest(word, keys.iter().map(String::as_str))?;
    let mistake = mistake("no setting has this variable").in_file(name);
    Some(mistake.hint(format!("did you mean RAYMOND_{near}?")))
}
