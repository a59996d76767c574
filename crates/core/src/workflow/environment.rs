//! Environment variables of scripts.
//!
//! Attributes and variables are exported under a prefix and never under their own names, because a
//! name such as `BASH_ENV` would execute code. Two names that become one variable are an error,
//! because one value would replace the other. The caller removes inherited variables ([`is_ours`]),
//! so that a script never sees the result of an outer run.

use std::collections::BTreeMap;

use crate::ids::RunId;
use crate::value::{BlobRef, Value};

use super::template::Bindings;

/// Largest value of a variable, in bytes: half of the 128 KiB that Linux allows for one string of a
/// new process.
pub const LARGEST: u64 = 64 * 1024;

/// Why an environment cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError<E> {
    /// Two names become the same variable.
    #[error(transparent)]
    Collision(#[from] Collision),
    /// A value is too large for a variable.
    #[error("{variable} has {length} bytes, and a script takes at most {LARGEST}")]
    TooLarge { variable: String, length: u64 },
    /// A value contains a NUL, which a variable cannot.
    #[error("{0} holds a NUL, and an environment variable cannot")]
    Nul(String),
    /// A stored value could not be read.
    #[error("could not read the value of {variable}")]
    Load { variable: String, source: E },
}

/// Two names that become the same variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{first:?} and {second:?} would both be {variable} in the environment of scripts")]
pub struct Collision {
    pub first: String,
    pub second: String,
    pub variable: String,
}

/// The parts of a script's environment that are not bindings.
#[derive(Debug, Clone, Copy)]
pub struct ScriptVisit<'a> {
    /// `RAYMOND_VISIT`, which is the same on every attempt.
    pub key: &'a str,
    /// The file with the result, used only if there is a result.
    pub result_file: &'a str,
}

/// A function that reads a stored text.
pub type LoadText<'l, E> = &'l mut dyn FnMut(&BlobRef) -> Result<String, E>;

/// Returns the environment variables of a script, ordered by name within each kind.
pub fn environment<E>(
    bindings: &Bindings<'_>,
    visit: &ScriptVisit<'_>,
    load: LoadText<'_, E>,
) -> Result<Vec<(String, String)>, EnvironmentError<E>> {
    // Checked here and not at the fork, because only scripts get variables: prompts can use both
    // names.
    check_attributes(bindings.attributes.keys().map(String::as_str))?;
    check_vars(bindings.vars)?;
    let mut variables: Vec<(String, String)> = run_variables(bindings.run).collect();
    variables.extend([
        named("AGENT_ID", bindings.agent.as_str()),
        named("STATE", bindings.state.as_str()),
        named("SCOPE", bindings.scope),
        named("VISIT", visit.key),
    ]);
    for (name, value) in bindings.attributes {
        let variable = variable("ATTR", name);
        let text = text(&variable, value, load)?;
        variables.push((variable, text));
    }
    for (name, value) in bindings.vars {
        let variable = variable("VAR", name);
        fits(&variable, value)?;
        variables.push((variable, value.clone()));
    }
    if let Some(result) = bindings.result {
        variables.push(named("RESULT_FILE", visit.result_file));
        variables.push(named("RESULT_STATUS", bindings.result_status.as_str()));
        match text("RAYMOND_RESULT", result, load) {
            Ok(text) => variables.extend([named("RESULT", &text), named("INPUT", &text)]),
            // A result that does not fit a variable is not an error: the script can read the result
            // file.
            Err(EnvironmentError::TooLarge { .. } | EnvironmentError::Nul(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(variables)
}

/// Returns the variables of scripts that `exec` steps also have: two names for the id of the run.
pub fn run_variables(run: &RunId) -> impl Iterator<Item = (String, String)> {
    ["RUN_ID", "WORKFLOW_ID"].into_iter().map(|name| named(name, run.as_str()))
}

/// Returns whether [`environment`] sets this variable. An inherited one must not reach a script.
pub fn is_ours(variable: &str) -> bool {
    let Some(rest) = variable.strip_prefix("RAYMOND_") else {
        return false;
    };
    rest.starts_with("ATTR_")
        || rest.starts_with("VAR_")
        || matches!(
            rest,
            "RUN_ID"
                | "WORKFLOW_ID"
                | "AGENT_ID"
                | "STATE"
                | "SCOPE"
                | "VISIT"
                | "RESULT"
                | "INPUT"
                | "RESULT_FILE"
                | "RESULT_STATUS"
        )
}

/// Rejects variables of the run that become the same variable. Called before a run starts.
pub fn check_vars(vars: &BTreeMap<String, String>) -> Result<(), Collision> {
    check_distinct("VAR", vars.keys().map(String::as_str))
}

/// Rejects fork attributes that become the same variable.
pub fn check_attributes<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), Collision> {
    check_distinct("ATTR", names)
}

/// Returns the environment variable of a variable of the run.
pub fn variable_of(name: &str) -> String {
    variable("VAR", name)
}

fn check_distinct<'a>(
    kind: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), Collision> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for name in names {
        let variable = variable(kind, name);
        if let Some(first) = seen.insert(variable.clone(), name) {
            return Err(Collision { first: first.to_owned(), second: name.to_owned(), variable });
        }
    }
    Ok(())
}

fn named(name: &str, value: &str) -> (String, String) {
    (format!("RAYMOND_{name}"), value.to_owned())
}

fn variable(kind: &str, name: &str) -> String {
    let folded = name.chars().map(|c| match c.to_ascii_uppercase() {
        // Shells accept only ASCII letters, digits and `_` in the name of a variable.
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    });
    format!("RAYMOND_{kind}_{}", folded.collect::<String>())
}

fn text<E>(
    variable: &str,
    value: &Value,
    load: LoadText<'_, E>,
) -> Result<String, EnvironmentError<E>> {
    // Before the load: a stored text may have megabytes, and its length is known without reading
    // it.
    if value.len() > LARGEST {
        return Err(EnvironmentError::TooLarge {
            variable: variable.to_owned(),
            length: value.len(),
        });
    }
    let text = match value {
        Value::Inline(text) => text.clone(),
        Value::Blob(blob) => load(blob)
            .map_err(|source| EnvironmentError::Load { variable: variable.to_owned(), source })?,
    };
    fits(variable, &text)?;
    Ok(text)
}

fn fits<E>(variable: &str, text: &str) -> Result<(), EnvironmentError<E>> {
    let variable = || variable.to_owned();
    if text.len() as u64 > LARGEST {
        let length = text.len() as u64;
        Err(EnvironmentError::TooLarge { variable: variable(), length })
    } else if text.contains('\0') {
        Err(EnvironmentError::Nul(variable()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::ResultStatus;
    use crate::value::Hash;

    use super::*;

    type Attributes<'a> = &'a [(&'a str, Value)];

    fn build(
        result: Option<&Value>,
        attributes: Attributes<'_>,
        vars: &[(&str, &str)],
        stored: &str,
    ) -> Result<Vec<(String, String)>, EnvironmentError<String>> {
        let attributes = attributes.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        let vars = vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let bindings = Bindings {
            run: &"flow-1".into(),
            agent: &"main".into(),
            state: &"BUILD.sh".into(),
            visit: 2,
            scope: "/flows",
            result,
            result_status: ResultStatus::Failed,
            attributes: &attributes,
            vars: &vars,
        };
        let visit = ScriptVisit { key: "nonce.main.7", result_file: "/runs/result" };
        environment(&bindings, &visit, &mut |_| Ok(stored.to_owned()))
    }

    fn blob(length: usize) -> Value {
        Value::Blob(BlobRef { hash: Hash::of(b""), length: length as u64 })
    }

    fn after_builtins(variables: &[(String, String)]) -> Vec<(&str, &str)> {
        variables[6..].iter().map(|(k, v)| (k.as_str(), v.as_str())).collect()
    }

    // proves: S27
    #[test]
    fn script_environment_names_visit_and_values() {
        let variables = build(
            Some(&"payload".into()),
            &[("BASH_ENV", "x".into()), ("item-no", "7".into())],
            &[("größe", "L"), ("Target", "prod")],
            "",
        );
        let lines: Vec<_> = variables.unwrap().iter().map(|(k, v)| format!("{k}={v}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        RAYMOND_RUN_ID=flow-1
        RAYMOND_WORKFLOW_ID=flow-1
        RAYMOND_AGENT_ID=main
        RAYMOND_STATE=BUILD.sh
        RAYMOND_SCOPE=/flows
        RAYMOND_VISIT=nonce.main.7
        RAYMOND_ATTR_BASH_ENV=x
        RAYMOND_ATTR_ITEM_NO=7
        RAYMOND_VAR_TARGET=prod
        RAYMOND_VAR_GR__E=L
        RAYMOND_RESULT_FILE=/runs/result
        RAYMOND_RESULT_STATUS=failed
        RAYMOND_RESULT=payload
        RAYMOND_INPUT=payload
        ");
    }

    #[test]
    fn result_is_a_file_and_often_a_variable() {
        let file = ("RAYMOND_RESULT_FILE", "/runs/result");
        let check = |result: Option<&Value>, stored: &str, expected: &[(&str, &str)]| {
            let mut variables = build(result, &[], &[], stored).unwrap();
            variables.retain(|(name, _)| name != "RAYMOND_RESULT_STATUS");
            assert_eq!(after_builtins(&variables), expected);
        };
        let largest = "x".repeat(64 * 1024);
        check(None, "", &[]);
        check(Some(&"".into()), "", &[file, ("RAYMOND_RESULT", ""), ("RAYMOND_INPUT", "")]);
        check(
            Some(&blob(64 * 1024)),
            &largest,
            &[file, ("RAYMOND_RESULT", &largest), ("RAYMOND_INPUT", &largest)],
        );
        check(Some(&blob(64 * 1024 + 1)), "never loaded", &[file]);
        check(Some(&"a\0b".into()), "", &[file]);
        check(Some(&blob(17_000)), "a\0b", &[file]);
    }

    #[test]
    fn names_that_fold_onto_one_variable_are_refused() {
        let attributes = [("a-b", "1".into()), ("a_b", "2".into())];
        let error = build(None, &attributes, &[], "").unwrap_err();
        insta::assert_snapshot!(error, @r#""a-b" and "a_b" would both be RAYMOND_ATTR_A_B in the environment of scripts"#);
        let vars = BTreeMap::from(["Item", "item"].map(|name| (name.to_owned(), String::new())));
        insta::assert_snapshot!(check_vars(&vars).unwrap_err(), @r#""Item" and "item" would both be RAYMOND_VAR_ITEM in the environment of scripts"#);
        assert!(build(None, &[("a", "1".into())], &[("a", "2")], "").is_ok());
    }

    // proves: S27
    #[test]
    fn attributes_that_no_variable_can_hold_are_refused() {
        let error = |value: Value| build(None, &[("a", value)], &[], "").unwrap_err().to_string();
        insta::assert_snapshot!(error(blob(70_000)), @"RAYMOND_ATTR_A has 70000 bytes, and a script takes at most 65536");
        insta::assert_snapshot!(error("a\0".into()), @"RAYMOND_ATTR_A holds a NUL, and an environment variable cannot");
    }

    #[test]
    fn inherited_variables_of_an_outer_run_are_known() {
        let variables = build(Some(&"x".into()), &[("a", "1".into())], &[("b", "2")], "").unwrap();
        assert!(variables.iter().all(|(name, _)| is_ours(name)));
        for other in ["PATH", "RAYMOND_HOME", "ATTR_A"] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
