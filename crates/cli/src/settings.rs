//! Turns flags and configuration into the settings of a run.
//!
//! A new run uses all layers. A resumed run keeps its recorded settings, and only flags change
//! them. Layers and their origins are in `config`; what a setting does is in `raymond_core::run`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::health::{self, Finding};
use raymond_core::capability::Capability;
use raymond_core::crayfish::reading;
use raymond_core::ids::BackendName;
use raymond_core::run::Settings;
use raymond_core::workflow::environment;
use raymond_core::workflow::template::bindings::BUILT_IN;
use serde_json::{Map, Value};

use crate::backends;
use crate::config::{Layer, Sourced};
use crate::failure::Failure;
use crate::paths::{self, absolute};
use crate::workflows;

/// Applies the values of a layer to the settings.
pub(crate) fn apply_config(mut settings: Settings, asked: &Layer) -> Result<Settings, Failure> {
    // Not kept from an earlier start: each resume decides again whether to wait for a usage limit.
    settings.no_wait = false;
    asked.apply(&mut settings);
    if let Some(file) = &asked.replies {
        // A pipe has no path that a later process could open; a new run keeps a copy.
        let is_kept = !paths::is_read_once(&file.value);
        if !file.value.exists() && is_kept {
            return Err(no_replies(&file.value));
        }
        settings.replies = is_kept.then(|| absolute(&file.value)).transpose()?;
    }
    // Recorded in the run, so that a replay decides the same even if a later release changes the
    // catalog.
    settings.no_branch = backends::catalog().without(Capability::Branch).cloned().collect();
    Ok(settings)
}

fn no_replies(file: &Path) -> Failure {
    let hint = match workflows::nearest_file(file) {
        Some(near) => format!("did you mean {}?", near.display()),
        None => "name a file that exists: --replies FILE".to_owned(),
    };
    Failure::usage(format!("could not find the replies {}", file.display())).hint(hint)
}

/// Returns a finding if the chosen backend does not exist.
pub(crate) fn unknown_backend(asked: &Layer) -> Option<Finding> {
    let Sourced { value, origin } = asked.backend.as_ref()?;
    let name = BackendName::new(value.as_str());
    health::backend(&name, &origin.to_string(), &backends::catalog())
}

/// Refuses an unknown backend.
pub(crate) fn check_backend(asked: &Layer) -> Result<(), Failure> {
    match unknown_backend(asked) {
        None => Ok(()),
        Some(Finding { text, remedy, .. }) => {
            Err(Failure::usage(text).hint(remedy.unwrap_or_default()))
        }
    }
}

/// Returns the layers of a new run: flags over the configuration.
pub(crate) fn layers_of_run(config: Layer, flags: &Layer) -> Layer {
    flags.clone().over(config)
}

/// Returns the layers of a resumed run: only flags, and `no_wait` of the configuration.
///
/// The run keeps the settings of its start, because a file must not undo a flag that was given
/// then.
pub(crate) fn layers_of_resume(config: Layer, flags: &Layer) -> Layer {
    // The only value that each start decides again, so the run has no recorded one to keep.
    let waiting = Layer { no_wait: config.no_wait, ..Layer::default() };
    flags.clone().over(waiting)
}

/// The variables of a document, as typed and as JSON values.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct DocumentVars {
    /// By name; the name of a JSON value ends with a colon, so that the text can be parsed again.
    pub(crate) typed: BTreeMap<String, String>,
    pub(crate) values: Map<String, Value>,
}

/// Parses `--var NAME=TEXT` and `--var NAME:=JSON`; each name may occur once.
pub(crate) fn document_vars(pairs: &[String]) -> Result<DocumentVars, Failure> {
    let mut vars = DocumentVars::default();
    for pair in pairs {
        let Some((typed, text)) = pair.split_once('=') else {
            let message = format!("--var {pair:?} is not of the form NAME=TEXT or NAME:=JSON");
            return Err(Failure::usage(message));
        };
        let (name, value) = match typed.strip_suffix(':') {
            None => (typed, Value::from(text)),
            Some(name) => {
                let value = reading::read_text(text).map_err(|why| {
                    Failure::usage(format!("--var {typed}=: {why}"))
                        .hint(format!("omit the colon for a text: --var {name}=TEXT"))
                })?;
                (name, value)
            }
        };
        if !is_path_key(name) {
            return Err(Failure::usage(format!("{name:?} is not the name of a variable"))
                .hint("names are letters, digits, `-` and `_`"));
        }
        if vars.values.insert(name.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("--var {name} is given twice")));
        }
        vars.typed.insert(typed.to_owned(), text.to_owned());
    }
    Ok(vars)
}

/// Whether a path such as `$.vars.name` can contain this name.
fn is_path_key(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(is_part)
}

/// Parses `--var K=V`; each name may occur once.
pub(crate) fn vars(pairs: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut vars = BTreeMap::new();
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failure::usage(format!("--var {pair:?} is not of the form K=V")));
        };
        if !raymond_core::workflow::template::is_name(name) {
            let message = format!("{name:?} is not the name of a variable");
            return Err(Failure::usage(message)
                .hint("names are letters, digits, `-` and `_`, and do not start with a digit"));
        }
        if BUILT_IN.contains(&name) {
            return Err(Failure::usage(format!("{{{{{name}}}}} is reserved"))
                .hint("choose another name for the variable"));
        }
        if vars.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::usage(format!("--var {name} is given twice")));
        }
    }
    environment::check_vars(&vars).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(vars)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn document_variable_is_text_unless_marked_json() {
        let check = |pairs: &[&str], expected: Result<Value, &str>| {
            let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
            let vars = document_vars(&pairs).map_err(|failure| failure.message_and_hint().0);
            let expected = expected.map_err(str::to_owned);
            assert_eq!(vars.map(|vars| Value::Object(vars.values)), expected, "{pairs:?}");
        };
        check(&[], Ok(json!({})));
        check(&["n=3", "t=a=b", "e="], Ok(json!({ "n": "3", "t": "a=b", "e": "" })));
        check(&["n:=3", "l:=[1, \"x\"]"], Ok(json!({ "n": 3, "l": [1, "x"] })));
        check(&["input=x", "1a=y"], Ok(json!({ "input": "x", "1a": "y" })));
        check(&["n"], Err("--var \"n\" is not of the form NAME=TEXT or NAME:=JSON"));
        check(&["=x"], Err("\"\" is not the name of a variable"));
        check(&["a.b=x"], Err("\"a.b\" is not the name of a variable"));
        check(&["n=1", "n:=2"], Err("--var n is given twice"));
        check(
            &["n:={"],
            Err(
                "--var n:=: line 1, column 2: the text ends where a key in double quotes is expected",
            ),
        );
    }
}
