//! A step with its expressions filled in.
//!
//! Everything that one step fills in shares one size budget ([`LIMIT`](super::template::LIMIT)).
//! An error names the place in the step, as a JSON pointer, and the expression. Nothing runs here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::document::{AgentStep, Contract, ExecStep, InputSource, Invocation, Io};
use super::path::{Namespace, Namespaces};
use super::template::{Room, Template, Unfilled};
use crate::text::push_pointer_token;
use crate::time::Span;

#[cfg(test)]
mod tests;

/// The three namespaces as plain objects.
#[derive(Debug, Clone, Copy)]
pub struct Visible<'a> {
    /// `$.vars`
    pub vars: &'a Map<String, Value>,
    /// `$.results`
    pub results: &'a Map<String, Value>,
    /// `$.locals`
    pub locals: &'a Map<String, Value>,
}

impl Namespaces for Visible<'_> {
    fn named(&self, root: Namespace, name: &str) -> Option<&Value> {
        match root {
            Namespace::Vars => self.vars.get(name),
            Namespace::Results => self.results.get(name),
            Namespace::Locals => self.locals.get(name),
        }
    }
}

/// An exec step with its expressions filled in: everything that one attempt needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecCall {
    pub command: StepCommand,
    /// Environment variables; those of the step replace those of the document.
    pub env: BTreeMap<String, String>,
    pub io: CallIo,
    /// The time limit of the attempt.
    pub timeout: Span,
}

/// The way a program passes data, with its paths and values filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIo {
    None,
    File {
        inputs: Vec<CallFile>,
        outputs: Vec<CallFile>,
    },
    Stream {
        /// The value for stdin; without it stdin is empty. `null` is a value, so absence is a
        /// missing field.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        input: Option<Value>,
        input_schema: Option<Arc<Value>>,
        output_schema: Option<Arc<Value>>,
    },
}

/// Reads a field that is there, even if it is `null`, which serde would take for `None`.
fn present<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(field).map(Some)
}

/// A JSON file that a program reads or writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFile {
    pub name: String,
    /// The path relative to the workspace.
    pub path: String,
    pub schema: Option<Arc<Value>>,
}

impl CallIo {
    /// Returns the mode as a document spells it.
    pub const fn mode(&self) -> &'static str {
        match self {
            Self::None => Io::MODES[0],
            Self::File { .. } => Io::MODES[1],
            Self::Stream { .. } => Io::MODES[2],
        }
    }
}

impl ExecCall {
    /// Returns the pointer of the first text with a NUL byte. The operating system ends arguments
    /// and variables at NUL, so a program would receive less than was written.
    pub fn nul(&self) -> Option<String> {
        let is_cut = |text: &String| text.contains('\0');
        let command = match &self.command {
            StepCommand::Shell(text) => is_cut(text).then(|| "/shell".to_owned()),
            StepCommand::Cmd { cmd, .. } if is_cut(cmd) => Some("/run/cmd".to_owned()),
            StepCommand::Cmd { args, .. } => {
                args.iter().position(is_cut).map(|index| format!("/run/args/{index}"))
            }
        };
        let variable = || self.env.iter().find(|(_, value)| is_cut(value));
        command.or_else(|| variable().map(|(name, _)| pointer("/env", name)))
    }
}

/// The command of an exec step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepCommand {
    /// A text for `bash -c`.
    Shell(String),
    /// A program and its arguments.
    Cmd { cmd: String, args: Vec<String> },
}

/// The request of an agent step, with its expressions filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedRequest {
    pub prompt: String,
    pub input: Option<Value>,
}

/// A step that has to run, with its expressions filled in.
#[derive(Debug, Clone, PartialEq)]
pub enum RenderedStep {
    Exec(ExecCall),
    Agent(RenderedRequest),
}

/// The error for a step whose expressions cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {at}: {cause}")]
pub struct Unrendered {
    /// The JSON pointer.
    pub at: String,
    pub below: Below,
    pub cause: Unfilled,
}

/// The value that a pointer starts at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    Step,
    Document,
}

impl Unrendered {
    /// Returns the error with a pointer from the document; `step` is the pointer of the step.
    #[must_use]
    pub fn of_document(self, step: &str) -> Self {
        match self.below {
            Below::Document => self,
            Below::Step => {
                Self { at: format!("{step}{}", self.at), below: Below::Document, ..self }
            }
        }
    }
}

/// Fills in the expressions of an exec step; `env` belongs to its document.
pub fn exec(
    exec: &ExecStep,
    env: &BTreeMap<String, Template>,
    names: &dyn Namespaces,
) -> Result<ExecCall, Unrendered> {
    let mut filler = Filler { names, room: Room::new() };
    let command = match &exec.invocation {
        Invocation::Shell(text) => StepCommand::Shell(filler.text(text, || "/shell".into())?),
        Invocation::Cmd { cmd, args } => {
            let cmd = filler.text(cmd, || "/run/cmd".into())?;
            let mut filled = Vec::with_capacity(args.len());
            for (index, argument) in args.iter().enumerate() {
                filled.push(filler.text(argument, || format!("/run/args/{index}"))?);
            }
            StepCommand::Cmd { cmd, args: filled }
        }
    };
    // Those of the document first, so that those of the step replace them.
    let mut variables = BTreeMap::new();
    for (name, value) in env {
        let filled = filler.text(value, || pointer("/env", name));
        // The document's `env` is not inside the step, so its pointer must not get the step's
        // prefix.
        let of_document = |unrendered| Unrendered { below: Below::Document, ..unrendered };
        variables.insert(name.clone(), filled.map_err(of_document)?);
    }
    for (name, value) in &exec.env {
        variables.insert(name.clone(), filler.text(value, || pointer("/env", name))?);
    }
    let io = match &exec.io {
        Io::None => CallIo::None,
        Io::File { inputs, outputs } => CallIo::File {
            inputs: filler.files("/io/in", inputs)?,
            outputs: filler.files("/io/out", outputs)?,
        },
        Io::Stream { input, output_schema } => CallIo::Stream {
            // Not counted against the size budget: nothing is filled in, and results are bounded
            // already.
            input: input.as_ref().map(|input| read(&input.from, names)).transpose()?,
            input_schema: input.as_ref().and_then(|input| input.schema.clone()),
            output_schema: output_schema.clone(),
        },
    };
    Ok(ExecCall { command, env: variables, io, timeout: exec.timeout })
}

fn read(from: &InputSource, names: &dyn Namespaces) -> Result<Value, Unrendered> {
    let nothing = || {
        // Distinguish a step that has not run from one without a value at the path.
        let is_done = names.named(Namespace::Results, from.step.as_str()).is_some();
        Unfilled::NoInput { step: from.step.clone(), path: is_done.then(|| from.path.to_string()) }
    };
    let unread = || Unrendered { at: "/io/inputFrom".into(), below: Below::Step, cause: nothing() };
    from.lookup(names).map(Cow::into_owned).ok_or_else(unread)
}

/// Fills in the expressions of an agent step.
pub fn agent(agent: &AgentStep, names: &dyn Namespaces) -> Result<RenderedRequest, Unrendered> {
    let mut filler = Filler { names, room: Room::new() };
    let prompt = filler.text(&agent.prompt, || "/prompt".into())?;
    let input = match &agent.input {
        None => None,
        Some(shape) => {
            Some(shape.fill_into(names, &mut filler.room).map_err(|cause| Unrendered {
                at: "/input".into(),
                below: Below::Step,
                cause,
            })?)
        }
    };
    Ok(RenderedRequest { prompt, input })
}

struct Filler<'a> {
    names: &'a dyn Namespaces,
    room: Room,
}

impl Filler<'_> {
    fn text(
        &mut self,
        template: &Template,
        // A closure, because a pointer is needed only for an error.
        at: impl FnOnce() -> String,
    ) -> Result<String, Unrendered> {
        let filled = template.fill_into(self.names, &mut self.room);
        filled.map_err(|cause| Unrendered { at: at(), below: Below::Step, cause })
    }

    fn files(&mut self, list: &str, contracts: &[Contract]) -> Result<Vec<CallFile>, Unrendered> {
        let file = |Contract { name, path, schema }: &Contract| {
            let path = self.text(path, || pointer(list, name) + "/path")?;
            Ok(CallFile { name: name.clone(), path, schema: schema.clone() })
        };
        contracts.iter().map(file).collect()
    }
}

fn pointer(list: &str, key: &str) -> String {
    let mut pointer = list.to_owned();
    push_pointer_token(&mut pointer, key);
    pointer
}
