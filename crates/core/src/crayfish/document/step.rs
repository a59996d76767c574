//! The five kinds of steps, with their defaults and limits.
//!
//! A step is data that [`super::super::validate`] has checked: optional keys have their defaults,
//! and keys that exclude each other are variants of an enum. Templates and paths in it are parsed
//! but not filled in; [`super::super::render`] does that when the step is reached.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::StepIndex;
use crate::budget::Micros;
use crate::crayfish::condition::Condition;
use crate::crayfish::name::StepId;
use crate::crayfish::path::{ITEMS, Namespace, Namespaces, Path, Segment, ValuePath};
use crate::crayfish::template::{Shape, Template};
use crate::text::push_pointer_token;
use crate::time::Span;

/// The kind of a step, with its data.
#[derive(Debug, Clone, PartialEq)]
pub enum StepKind {
    /// Runs a program.
    Exec(ExecStep),
    /// Asks the caller for JSON.
    Agent(AgentStep),
    /// Chooses between two lists.
    If(If),
    /// Repeats its body for every item of a list.
    ForEach(ForEach),
    /// Repeats its body until a condition is true.
    While(While),
}

impl StepKind {
    /// The kinds as a document spells them.
    pub const NAMES: [&'static str; 5] = ["exec", "agent", "if", "forEach", "while"];

    pub fn name(&self) -> &'static str {
        match self {
            Self::Exec(_) => "exec",
            Self::Agent(_) => "agent",
            Self::If(_) => "if",
            Self::ForEach(_) => "forEach",
            Self::While(_) => "while",
        }
    }
}

impl StepKind {
    pub fn is_loop(&self) -> bool {
        match self {
            Self::ForEach(_) | Self::While(_) => true,
            Self::Exec(_) | Self::Agent(_) | Self::If(_) => false,
        }
    }

    /// Returns the step or the loop that the step reads by `inputFrom`.
    pub fn input_source(&self) -> Option<&InputSource> {
        match self {
            Self::Exec(ExecStep { io: Io::Stream { input, .. }, .. }) => {
                input.as_ref().map(|input| &input.from)
            }
            Self::Exec(_) | Self::Agent(_) | Self::If(_) | Self::ForEach(_) | Self::While(_) => {
                None
            }
        }
    }

    /// Returns its JSON Schemas, with pointers relative to the step.
    pub fn schemas(&self) -> Vec<(String, &Value)> {
        match self {
            Self::Exec(exec) => exec.io.schemas(),
            Self::Agent(agent) => vec![("/schema".to_owned(), &*agent.schema)],
            Self::If(_) | Self::ForEach(_) | Self::While(_) => Vec::new(),
        }
    }
}

/// A limit of attempts or iterations: 1 to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cap(u8);

impl Cap {
    /// The highest limit of the language; its JSON Schema says the same.
    pub const MOST: u8 = 5;
    /// Default attempts of an exec step.
    pub const EXEC: Self = Self(1);
    /// Default attempts of an agent step.
    pub const AGENT: Self = Self(3);

    /// Returns the limit, or `None` outside 1 to 5.
    pub fn new(n: u64) -> Option<Self> {
        u8::try_from(n).ok().filter(|n| (1..=Self::MOST).contains(n)).map(Self)
    }

    pub fn get(self) -> u32 {
        self.0.into()
    }
}

/// A step that runs a program.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecStep {
    pub invocation: Invocation,
    /// The time limit of one attempt.
    pub timeout: Span,
    /// The number of attempts in all, including the first.
    pub retries: Cap,
    /// Environment variables; they replace those of the document.
    pub env: BTreeMap<String, Template>,
    /// The input and output contract.
    pub io: Io,
}

impl ExecStep {
    /// Default time limit of one attempt.
    // `timeoutMs` in docs/crayfish.md.
    pub const TIMEOUT: Span = Span::seconds(180);
}

/// The command of an exec step.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// A text for `bash -c`.
    Shell(Template),
    /// A program and its arguments.
    Cmd { cmd: Template, args: Vec<Template> },
}

/// The way an exec step passes data.
#[derive(Debug, Clone, PartialEq)]
pub enum Io {
    /// No contract: the output is text.
    None,
    /// JSON files in the workspace.
    File {
        /// Checked before the program runs.
        inputs: Vec<Contract>,
        /// Checked after the program has run.
        outputs: Vec<Contract>,
    },
    /// JSON on stdin and stdout.
    Stream {
        /// The value on stdin; without it stdin is empty.
        input: Option<StreamInput>,
        /// The schema of stdout.
        output_schema: Option<Arc<Value>>,
    },
}

impl Io {
    /// The modes as a document spells them.
    pub const MODES: [&'static str; 3] = ["none", "file", "stream"];

    pub fn mode(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::File { .. } => "file",
            Self::Stream { .. } => "stream",
        }
    }
}

impl Io {
    fn schemas(&self) -> Vec<(String, &Value)> {
        match self {
            Self::None => Vec::new(),
            Self::File { inputs, outputs } => {
                let inputs = inputs.iter().filter_map(|file| file.schema_under("/io/in"));
                let outputs = outputs.iter().filter_map(|file| file.schema_under("/io/out"));
                inputs.chain(outputs).collect()
            }
            Self::Stream { input, output_schema } => {
                let input = input.iter().filter_map(|input| input.schema.as_deref());
                let input = input.map(|schema| ("/io/inputSchema".to_owned(), schema));
                let output = output_schema.as_deref().into_iter();
                input.chain(output.map(|schema| ("/io/outputSchema".to_owned(), schema))).collect()
            }
        }
    }
}

impl Contract {
    fn schema_under(&self, list: &str) -> Option<(String, &Value)> {
        let mut pointer = list.to_owned();
        push_pointer_token(&mut pointer, &self.name);
        self.schema.as_deref().map(|schema| (pointer + "/schema", schema))
    }
}

/// A JSON file of the workspace that a step reads or writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Contract {
    pub name: String,
    /// The path relative to the workspace.
    pub path: Template,
    /// The schema of the file; without it any JSON is valid.
    pub schema: Option<Arc<Value>>,
}

/// The value that a stream step reads from stdin.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamInput {
    pub from: InputSource,
    pub schema: Option<Arc<Value>>,
}

/// A part of the `json` of another step's result, or of the items of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSource {
    pub step: StepId,
    /// The path inside its `json` or its items.
    pub path: ValuePath,
}

impl InputSource {
    /// Returns the value, if that step has a result with `json`, or that loop has ended.
    pub fn lookup<'a>(&self, names: &'a dyn Namespaces) -> Option<Cow<'a, Value>> {
        // A failed step may have a result without `json`.
        let result = names.named(Namespace::Results, self.step.as_str());
        if let Some(json) = result.and_then(|result| result.get("json")) {
            return self.path.lookup(json).map(Cow::Borrowed);
        }
        let items = std::iter::once(Segment::Key(ITEMS.to_owned()));
        let rest = items.chain(self.path.0.iter().cloned()).collect();
        names.lookup(&Path { root: Namespace::Results, name: self.step.to_string(), rest })
    }
}

/// A step that asks the caller for JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentStep {
    pub prompt: Template,
    /// Data for the task.
    pub input: Option<Shape>,
    /// The schema of the answer.
    // Shared, because every attempt of every iteration sends it.
    pub schema: Arc<Value>,
    /// The number of attempts in all, including the first.
    pub retries: Cap,
    /// The agent that should answer; advice to the caller.
    pub assignee: Option<String>,
    pub session: Option<SessionChoice>,
    pub settings: AgentSettings,
}

/// The settings of an agent step. Only a run whose steps a backend answers uses them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSettings {
    pub model: Option<String>,
    /// Tools that are allowed in addition to those of the run.
    pub allow: Vec<String>,
    /// The budget of all attempts.
    pub budget: Option<Micros>,
}

/// The conversation in which an agent step should be answered; advice to the caller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionChoice {
    /// Whether the conversation is kept; the caller decides if absent.
    pub mode: Option<SessionMode>,
    /// The name of a conversation that is kept.
    pub label: Option<String>,
    /// Whether the conversation starts again from the beginning.
    pub reset: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionMode {
    /// A new conversation for this step.
    Ephemeral,
    /// A conversation kept under its label.
    Sticky,
}

impl SessionMode {
    /// The modes as a document spells them.
    pub const NAMES: [&'static str; 2] = ["ephemeral", "sticky"];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ephemeral => "ephemeral",
            Self::Sticky => "sticky",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct If {
    pub condition: Condition,
    pub then: Vec<StepIndex>,
    pub otherwise: Vec<StepIndex>,
}

/// A step that repeats its body for every item of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ForEach {
    pub list: Path,
    /// The local variable that an item is bound to.
    pub item: String,
    pub order: Order,
    pub body: Vec<StepIndex>,
}

/// The order in which the items of a list run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Sequential,
    Parallel {
        /// How many programs run at a time.
        max_parallel: u32,
        /// The effect of one failure on the others.
        on_error: OnError,
    },
}

impl Order {
    /// Default number of programs that a parallel loop runs at a time.
    // `maxParallel` in docs/crayfish.md.
    pub const MAX_PARALLEL: u32 = 4;
    /// The highest number that a document may set.
    pub const MOST_PARALLEL: u32 = 1_000;
}

/// The effect of one failed item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The loop fails once the started iterations have ended.
    Fail,
    /// The failure becomes the item's result, and the loop continues.
    Collect,
}

impl OnError {
    /// The choices as a document spells them.
    pub const NAMES: [&'static str; 2] = ["fail", "collect"];
}

/// A step that repeats its body until something is true.
#[derive(Debug, Clone, PartialEq)]
pub struct While {
    /// The condition that ends the loop.
    pub until: Condition,
    /// How often the body may run.
    pub max_iters: Cap,
    /// The effect of reaching `max_iters`.
    pub on_max_iters: OnMaxIters,
    pub body: Vec<StepIndex>,
}

/// The effect of a loop that has not converged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMaxIters {
    /// The workflow fails.
    Fail,
    /// The workflow continues after the loop.
    Continue,
}

impl OnMaxIters {
    /// The choices as a document spells them.
    pub const NAMES: [&'static str; 2] = ["fail", "continue"];
}
