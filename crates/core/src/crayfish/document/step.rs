//! The five kinds of steps.

use std::collections::BTreeMap;

use serde_json::Value;

use super::StepIndex;
use crate::crayfish::condition::Condition;
use crate::crayfish::name::StepId;
use crate::crayfish::path::{Namespaces, Path, Root, ValuePath};
use crate::crayfish::problem::push_token;
use crate::crayfish::template::{Shape, Template};
use crate::time::Span;

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Runs a program.
    Exec(Exec),
    /// Asks the caller for JSON.
    Agent(Agent),
    /// Chooses between two lists.
    If(If),
    /// Repeats its body for every item of a list.
    ForEach(ForEach),
    /// Repeats its body until something is true.
    While(While),
}

impl Kind {
    /// The kinds as they are written.
    pub const NAMES: [&'static str; 5] = ["exec", "agent", "if", "forEach", "while"];

    /// As it is written.
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

impl Kind {
    /// Its JSON Schemas, with pointers below the step.
    pub fn schemas(&self) -> Vec<(String, &Value)> {
        match self {
            Self::Exec(exec) => exec.io.schemas(),
            Self::Agent(agent) => vec![("/schema".to_owned(), &agent.schema)],
            Self::If(_) | Self::ForEach(_) | Self::While(_) => Vec::new(),
        }
    }
}

/// A cap of attempts or iterations: 1 to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cap(u8);

impl Cap {
    /// The highest cap there is.
    pub const MOST: u8 = 5;
    /// Attempts of an exec step that says nothing.
    pub const EXEC: Self = Self(1);
    /// Attempts of an agent step that says nothing.
    pub const AGENT: Self = Self(3);

    /// A cap, if it is one.
    pub fn new(n: u64) -> Option<Self> {
        u8::try_from(n).ok().filter(|n| (1..=Self::MOST).contains(n)).map(Self)
    }

    /// As a number.
    pub fn get(self) -> u32 {
        self.0.into()
    }
}

/// A step that runs a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Exec {
    /// What is run.
    pub invocation: Invocation,
    /// How long one attempt may take.
    pub timeout: Span,
    /// How many attempts there are in all.
    pub retries: Cap,
    /// Environment variables, over those of the document.
    pub env: BTreeMap<String, Template>,
    /// What goes in and what must come out.
    pub io: Io,
}

impl Exec {
    /// How long one attempt may take when the step says nothing.
    pub const TIMEOUT: Span = Span::seconds(180);
}

/// What an exec step runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// A text for `bash -c`.
    Shell(Template),
    /// A program and its arguments.
    Cmd {
        /// The program.
        cmd: Template,
        /// Its arguments.
        args: Vec<Template>,
    },
}

/// How an exec step passes data.
#[derive(Debug, Clone, PartialEq)]
pub enum Io {
    /// Not at all: its output is text.
    None,
    /// In files of the workspace.
    File {
        /// Checked before it runs.
        inputs: Vec<Contract>,
        /// Checked after it ran.
        outputs: Vec<Contract>,
    },
    /// JSON on stdin and stdout.
    Stream {
        /// What stdin is; empty without it.
        input: Option<StreamInput>,
        /// What stdout must be.
        output_schema: Option<Value>,
    },
}

impl Io {
    /// The modes as they are written.
    pub const MODES: [&'static str; 3] = ["none", "file", "stream"];

    /// The mode as it is written.
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
                let input = input.iter().filter_map(|input| input.schema.as_ref());
                let input = input.map(|schema| ("/io/inputSchema".to_owned(), schema));
                let output = output_schema.iter();
                input.chain(output.map(|schema| ("/io/outputSchema".to_owned(), schema))).collect()
            }
        }
    }
}

impl Contract {
    fn schema_under(&self, list: &str) -> Option<(String, &Value)> {
        let mut pointer = list.to_owned();
        push_token(&mut pointer, &self.name);
        self.schema.as_ref().map(|schema| (pointer + "/schema", schema))
    }
}

/// A JSON file of the workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Contract {
    /// What the step calls it.
    pub name: String,
    /// Where it is, relative to the workspace.
    pub path: Template,
    /// What it must be, beyond JSON.
    pub schema: Option<Value>,
}

/// What a stream step reads.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamInput {
    /// Where it comes from.
    pub from: Source,
    /// What it must be.
    pub schema: Option<Value>,
}

/// A part of what another step left as `json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The other step.
    pub step: StepId,
    /// The way from its `json`.
    pub path: ValuePath,
}

impl Source {
    /// The value, if that step left one.
    pub fn lookup<'a>(&self, names: &'a dyn Namespaces) -> Option<&'a Value> {
        let result = names.named(Root::Results, self.step.as_str())?;
        self.path.lookup(result.get("json")?)
    }
}

/// A step that asks the caller for JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// What to do.
    pub prompt: Template,
    /// What to do it with.
    pub input: Option<Shape>,
    /// What the output must be.
    pub schema: Value,
    /// How many attempts there are in all.
    pub retries: Cap,
    /// Who should do it.
    pub assignee: Option<String>,
    /// In which conversation.
    pub session: Option<Session>,
}

/// In which conversation an agent step should be answered; advice to the caller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    /// A new one, or one that is kept; the caller decides when it is not said.
    pub mode: Option<SessionMode>,
    /// The name of one that is kept.
    pub label: Option<String>,
    /// Whether it is begun anew.
    pub reset: Option<bool>,
}

/// Whether a conversation is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionMode {
    /// One for this step.
    Ephemeral,
    /// One that is kept under its label.
    Sticky,
}

impl SessionMode {
    /// The modes as they are written.
    pub const NAMES: [&'static str; 2] = ["ephemeral", "sticky"];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ephemeral => "ephemeral",
            Self::Sticky => "sticky",
        }
    }
}

/// A step that chooses between two lists.
#[derive(Debug, Clone, PartialEq)]
pub struct If {
    /// What it looks at.
    pub condition: Condition,
    /// What is done when it holds.
    pub then: Vec<StepIndex>,
    /// What is done when it does not.
    pub otherwise: Vec<StepIndex>,
}

/// A step that repeats its body for every item of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ForEach {
    /// The list.
    pub list: Path,
    /// The local that an item is bound to.
    pub item: String,
    /// One item after the other, or several at once.
    pub order: Order,
    /// What is done with each.
    pub body: Vec<StepIndex>,
}

/// How the items of a list are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    Sequential,
    /// All at once.
    Parallel {
        /// How many programs run at a time.
        max_parallel: u32,
        /// What one failure means for the others.
        on_error: OnError,
    },
}

impl Order {
    /// How many programs a parallel loop runs at a time when it says nothing.
    pub const MAX_PARALLEL: u32 = 4;
    /// The most that it may say.
    pub const MOST_PARALLEL: u32 = 1_000;
}

/// What the failure of one item means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The loop fails, after the iterations that were started.
    Fail,
    /// It is kept as the item's result, and the loop goes on.
    Collect,
}

impl OnError {
    /// The choices as they are written.
    pub const NAMES: [&'static str; 2] = ["fail", "collect"];
}

/// A step that repeats its body until something is true.
#[derive(Debug, Clone, PartialEq)]
pub struct While {
    /// What ends it.
    pub until: Condition,
    /// How often the body may run.
    pub max_iters: Cap,
    /// What happens when that was not enough.
    pub on_max_iters: OnMaxIters,
    /// What is repeated.
    pub body: Vec<StepIndex>,
}

/// What happens when a loop has not converged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMaxIters {
    /// The workflow fails.
    Fail,
    /// It goes on behind the loop.
    Continue,
}

impl OnMaxIters {
    /// The choices as they are written.
    pub const NAMES: [&'static str; 2] = ["fail", "continue"];
}
