//! Reads exec steps, which run a program.
//!
//! `shell` is a text for bash, and `run` is a program with arguments. The output of a step must not
//! be a part of `shell` or `cmd`, where it would run: it reaches the program through `env`, the
//! arguments, stdin or a file.

use std::sync::Arc;

use serde_json::Value;

use super::fields::{Fields, expected, leaving};
use super::keys;
use super::text::{Reader, Use};
use crate::crayfish::document::{
    Cap, Contract, ExecStep, InputSource, Invocation, Io, StreamInput,
};
use crate::crayfish::path::{BadPath, ValuePath};
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::template::{Part, Template};
use crate::time::Span;

/// The longest timeout in milliseconds, about 24 days: a signed 32-bit number, the most that hosts
/// can wait for.
const LONGEST_TIMEOUT: u64 = 2_147_483_647;

/// The longest name of a file contract in bytes.
const LONGEST_CONTRACT: usize = 255;

/// Receives the id of a step that is read, and the pointer below the reading step.
pub(super) type Want<'w> = &'w mut dyn FnMut(&'static str, String);

pub(super) fn read(
    text: &mut Reader<'_, '_>,
    fields: &Fields<'_>,
    want: Want<'_>,
) -> Option<ExecStep> {
    let fields = fields.known(text.report, "an exec step", keys::EXEC);
    let invocation = invocation(text, &fields);
    let timeout = fields.whole(text.report, "timeoutMs", &(1..=LONGEST_TIMEOUT));
    let retries = text.cap(&fields, "retries");
    let env = fields.object(text.report, "env");
    let env = env.map(|env| text.under("env", |text| text.env(env, Use::Program)));
    let io = match fields.get("io") {
        None => Some(Io::None),
        Some(value) => text.under("io", |text| io(text, value, want)),
    };
    Some(ExecStep {
        invocation: invocation?,
        timeout: timeout.map_or(ExecStep::TIMEOUT, Span),
        retries: retries.unwrap_or(Cap::EXEC),
        env: env.unwrap_or_default(),
        io: io?,
    })
}

fn invocation(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> Option<Invocation> {
    match (fields.get("shell"), fields.get("run")) {
        (Some(_), Some(_)) => {
            let message = "an exec step has either `shell` or `run`, not both";
            text.report.add(ProblemCode::ConflictingKeys, message);
        }
        (None, None) => {
            text.report.add(ProblemCode::MissingKey, "an exec step needs `shell` or `run`");
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    // Read both even if only one can stay, so that the problems of both are reported.
    let shell = text.field(fields, "shell", Use::Run("shell")).map(Invocation::Shell);
    let run = fields.get("run").and_then(|run| text.under("run", |text| cmd(text, run)));
    shell.or(run)
}

fn cmd(text: &mut Reader<'_, '_>, run: &Value) -> Option<Invocation> {
    let fields = Fields::open(text.report, run, "`run`")?.known(text.report, "`run`", keys::RUN);
    if fields.required(text.report, "kind").is_some() {
        fields.choice(text.report, "kind", &["cmd"]);
    }
    let cmd = text.required(&fields, "cmd", Use::Run("cmd"));
    if cmd.as_ref().is_some_and(|cmd| cmd.parts().is_empty()) {
        text.report.add_at("cmd", ProblemCode::BadName, "the name of a program cannot be empty");
    }
    let args = fields.array(text.report, "args").unwrap_or_default();
    let args = text.under("args", |text| text.list(args));
    Some(Invocation::Cmd { cmd: cmd?, args })
}

fn io(text: &mut Reader<'_, '_>, value: &Value, want: Want<'_>) -> Option<Io> {
    let fields = Fields::open(text.report, value, "`io`")?.known(text.report, "`io`", keys::IO);
    let has = |keys: &[&'static str]| -> Vec<&'static str> {
        keys.iter().copied().filter(|key| fields.get(key).is_some()).collect()
    };
    let (files, streams) =
        (has(&["in", "out"]), has(&["inputFrom", "inputSchema", "outputSchema"]));
    let mode = match fields.get("mode") {
        Some(_) => fields.choice(text.report, "mode", &Io::MODES)?,
        // Files imply their mode; a stream has to be asked for (docs/crayfish.md).
        None if !files.is_empty() => "file",
        None => "none",
    };
    let misplaced = |text: &mut Reader<'_, '_>, keys: Vec<&str>, wanted: &str| {
        for key in keys {
            let message =
                format!("`{key}` needs the mode `{wanted}`, and the mode here is `{mode}`");
            text.report.add_at(key, ProblemCode::ConflictingKeys, message);
        }
    };
    if mode != "file" {
        misplaced(text, files, "file");
    }
    if mode != "stream" {
        misplaced(text, streams, "stream");
    }
    match mode {
        "file" => Some(Io::File {
            inputs: contracts(text, &fields, "in"),
            outputs: contracts(text, &fields, "out"),
        }),
        "stream" => stream(text, &fields, want),
        _ => Some(Io::None),
    }
}

fn contracts(text: &mut Reader<'_, '_>, fields: &Fields<'_>, key: &str) -> Vec<Contract> {
    let Some(contracts) = fields.object(text.report, key) else { return Vec::new() };
    text.under(key, |text| {
        let read =
            |(name, value): (&String, &Value)| text.under(name, |text| contract(text, name, value));
        contracts.iter().filter_map(read).collect()
    })
}

fn contract(text: &mut Reader<'_, '_>, name: &str, value: &Value) -> Option<Contract> {
    if name.is_empty() || name.len() > LONGEST_CONTRACT {
        let length = name.len();
        let message = format!(
            "the name of a file has from 1 to {LONGEST_CONTRACT} bytes, this one has {length}"
        );
        text.report.add(ProblemCode::BadName, message);
        return None;
    }
    let fields =
        Fields::open(text.report, value, "a file")?.known(text.report, "a file", keys::CONTRACT);
    let path = text.required(&fields, "path", Use::Program);
    if let Some(message) = path.as_ref().and_then(escaping) {
        text.report.add_at("path", ProblemCode::EscapingPath, message);
    }
    let schema = fields.schema(text.report, "schema").cloned().map(Arc::new);
    Some(Contract { name: name.to_owned(), path: path?, schema })
}

/// Returns the problem of a path that leaves the workspace for any value of its expressions.
fn escaping(path: &Template) -> Option<&'static str> {
    let mut text = String::new();
    for part in path.parts() {
        text.push_str(match part {
            Part::Text(text) => text,
            // A placeholder, because `{{vars.x}}..` is not the parent directory.
            Part::Value(_) => "x",
        });
    }
    leaving(&text)
}

fn stream(text: &mut Reader<'_, '_>, fields: &Fields<'_>, want: Want<'_>) -> Option<Io> {
    let output_schema = fields.schema(text.report, "outputSchema").cloned().map(Arc::new);
    let schema = fields.schema(text.report, "inputSchema").cloned().map(Arc::new);
    let input = match fields.get("inputFrom") {
        Some(value) => {
            let from = text.under("inputFrom", |text| source(text, value, want))?;
            Some(StreamInput { from, schema })
        }
        None => {
            if schema.is_some() {
                let message = "`inputSchema` needs `inputFrom`: without it stdin is empty";
                text.report.add_at("inputSchema", ProblemCode::ConflictingKeys, message);
            }
            None
        }
    };
    Some(Io::Stream { input, output_schema })
}

fn source(text: &mut Reader<'_, '_>, value: &Value, want: Want<'_>) -> Option<InputSource> {
    let (at, id, path) = match value {
        Value::String(id) => ("/io/inputFrom", Some(id.as_str()), Some(ValuePath::default())),
        Value::Object(_) => {
            let fields = Fields::open(text.report, value, "`inputFrom`")?;
            let fields = fields.known(text.report, "`inputFrom`", keys::INPUT_FROM);
            let id = fields.required_string(text.report, "stepId");
            let path = match fields.string(text.report, "jsonPath").map(str::parse) {
                None => Some(ValuePath::default()),
                Some(Ok(path)) => Some(path),
                Some(Err(bad)) => {
                    let bad: BadPath = bad;
                    text.report.add_at("jsonPath", bad.code(), bad.to_string());
                    None
                }
            };
            ("/io/inputFrom/stepId", id, path)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            let message = expected("a step id, or an object with `stepId`,", value);
            text.report.add(ProblemCode::WrongType, message);
            return None;
        }
    };
    // Only noted, because the step may come later in the document.
    want(at, id?.to_owned());
    Some(InputSource { step: id?.parse().ok()?, path: path? })
}
