//! A document as a plan for people: the order of the steps and their limits.
//!
//! Every step is a line of a tree, with the facts that an author checks before a run: the values it
//! reads, the output it must have, its attempts and its time limit. Lines are produced one at a
//! time without recursion, so the largest document can be printed. The caller chooses the width.

use super::document::{
    AgentStep, Document, ExecStep, ForEach, If, Invocation, Io, OnError, OnMaxIters, Order,
    SessionChoice, SessionMode, StepIndex, StepKind, While,
};
use super::template::Template;
use crate::text::{counted, quoted};
use words::{condition, first_line, gist, list, source};

mod reads;
#[cfg(test)]
mod tests;
mod words;

/// One line of the tree, and the facts below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeLine {
    /// The step; `None` for a line that names a branch of an `if`.
    pub step: Option<StepIndex>,
    /// The tree characters before the line: `│ ├ `.
    pub lead: String,
    /// The tree characters before the facts of the line: `│ │ `.
    pub below: String,
    /// The id of the step, or `then` or `else`.
    pub name: String,
    /// The kind as a document spells it; empty for a branch.
    pub kind: &'static str,
    /// The command, prompt or condition, in one line.
    pub does: String,
    /// The `description` of the step.
    pub description: Option<String>,
    /// Facts of a few words each.
    pub facts: Vec<String>,
}

/// Returns the title of a document: `digest, version 2: 7 steps`.
pub fn title(document: &Document) -> String {
    let name = document.name.as_deref().unwrap_or("a workflow without a name");
    let version = document.version.as_ref().map(|version| format!(", version {version}"));
    let steps = counted(document.steps().len() as u64, "step");
    format!("{name}{}: {steps}", version.unwrap_or_default())
}

/// Lists the names of the variables and environment variables that all steps share, and the values
/// that the output reads.
pub fn shared(document: &Document) -> Vec<String> {
    let vars = list("vars", document.vars.keys());
    let env = list("env", document.env.keys());
    vars.into_iter().chain(env).chain(document.output.as_ref().map(reads::output)).collect()
}

/// Iterates over the steps as lines of a tree, in document order.
pub fn lines(document: &Document) -> impl Iterator<Item = TreeLine> {
    // An explicit stack instead of recursion: steps may be nested 500 levels deep.
    let mut waiting: Vec<Entry<'_>> = Vec::new();
    wait(&mut waiting, document.top(), 0);
    let mut open: Vec<bool> = Vec::new();
    std::iter::from_fn(move || {
        let Entry { node, depth, follows } = waiting.pop()?;
        // All deeper levels are finished when a line of this level comes.
        open.truncate(depth);
        let before: String = open.iter().map(|more| if *more { "│ " } else { "  " }).collect();
        open.push(follows);
        let (branch, gap) = if follows { ("├ ", "│ ") } else { ("└ ", "  ") };
        let lead = format!("{before}{branch}");
        match node {
            Node::Branch(name, steps) => {
                wait(&mut waiting, steps, depth + 1);
                let (name, does, below) = (name.to_owned(), String::new(), String::new());
                let (kind, description, facts) = ("", None, Vec::new());
                Some(TreeLine { step: None, lead, below, name, kind, does, description, facts })
            }
            Node::Step(index) => {
                let step = document.step(index);
                let waited = waiting.len();
                // The facts of a step with children need a line down to its first child.
                descend(&mut waiting, &step.kind, depth + 1);
                let inside = if waiting.len() > waited { "│ " } else { "  " };
                let below = format!("{before}{gap}{inside}");
                let (does, facts) = describe(&step.kind);
                let (name, kind) = (step.id.to_string(), step.kind.name());
                let (step, description) = (Some(index), step.description.clone());
                Some(TreeLine { step, lead, below, name, kind, does, description, facts })
            }
        }
    })
}

/// A line that has not been produced yet.
struct Entry<'a> {
    node: Node<'a>,
    depth: usize,
    /// Whether another entry follows on the same level.
    follows: bool,
}

enum Node<'a> {
    Step(StepIndex),
    Branch(&'static str, &'a [StepIndex]),
}

// Reversed, because the stack is popped from its end.
fn wait(waiting: &mut Vec<Entry<'_>>, steps: &[StepIndex], depth: usize) {
    let entries = steps.iter().rev().enumerate().map(|(behind, index)| Entry {
        node: Node::Step(*index),
        depth,
        follows: behind > 0,
    });
    waiting.extend(entries);
}

/// Pushes the children of a step.
fn descend<'a>(waiting: &mut Vec<Entry<'a>>, kind: &'a StepKind, depth: usize) {
    match kind {
        StepKind::Exec(_) | StepKind::Agent(_) => {}
        StepKind::If(If { then, otherwise, .. }) if otherwise.is_empty() => {
            wait(waiting, then, depth);
        }
        StepKind::If(If { then, otherwise, .. }) => {
            let branch = |name, steps, follows| {
                let node = Node::Branch(name, steps);
                Entry { node, depth, follows }
            };
            waiting.push(branch("else", otherwise, false));
            waiting.push(branch("then", then, true));
        }
        StepKind::ForEach(ForEach { body, .. }) | StepKind::While(While { body, .. }) => {
            wait(waiting, body, depth);
        }
    }
}

fn describe(kind: &StepKind) -> (String, Vec<String>) {
    match kind {
        StepKind::Exec(exec) => (runs(&exec.invocation), exec_facts(exec)),
        StepKind::Agent(agent) => (first_line(&source(&agent.prompt)), agent_facts(agent)),
        StepKind::If(step) => (condition(&step.condition), Vec::new()),
        StepKind::ForEach(each) => {
            (format!("{} of {}", each.item, each.list), order_facts(each.order))
        }
        StepKind::While(step) => (format!("until {}", condition(&step.until)), while_facts(step)),
    }
}

/// Returns the command as a person would type it into a shell.
fn runs(invocation: &Invocation) -> String {
    match invocation {
        Invocation::Shell(text) => first_line(&source(text)),
        Invocation::Cmd { cmd, args } => {
            let word = |word: &Template| match source(word) {
                // `quoted` would treat the braces as shell characters, but no shell ever sees them.
                word if word.contains("{{") => word,
                word => quoted(&word),
            };
            let words: Vec<String> = std::iter::once(cmd).chain(args).map(word).collect();
            first_line(&words.join(" "))
        }
    }
}

fn exec_facts(exec: &ExecStep) -> Vec<String> {
    let mut facts: Vec<String> = reads::exec(exec).into_iter().collect();
    match &exec.io {
        Io::None => {}
        Io::File { inputs, outputs } => {
            let inputs = inputs.iter().map(|file| ("in", file));
            let files = inputs.chain(outputs.iter().map(|file| ("out", file)));
            facts.extend(files.map(|(way, file)| {
                let schema = file.schema.as_deref().map(|schema| format!(": {}", gist(schema)));
                let path = source(&file.path);
                format!("{way} {} = {path}{}", file.name, schema.unwrap_or_default())
            }));
        }
        Io::Stream { input, output_schema } => {
            let schema = input.as_ref().and_then(|input| input.schema.as_deref());
            facts.extend(schema.map(|schema| format!("stdin: {}", gist(schema))));
            let output = output_schema.as_deref().map_or_else(|| "any JSON".to_owned(), gist);
            facts.push(format!("stdout: {output}"));
        }
    }
    facts.extend(list("env", exec.env.keys()));
    facts.extend(match exec.invocation {
        Invocation::Shell(_) => None,
        Invocation::Cmd { .. } => Some("without a shell".to_owned()),
    });
    facts.push(match exec.retries.get() {
        1 => format!("at most {}", exec.timeout),
        several => format!("{several} attempts of at most {} each", exec.timeout),
    });
    facts
}

fn agent_facts(agent: &AgentStep) -> Vec<String> {
    let mut facts: Vec<String> = reads::agent(agent).into_iter().collect();
    facts.push(format!("answers {}", gist(&agent.schema)));
    facts.push(counted(agent.retries.get(), "attempt"));
    facts.extend(agent.assignee.as_ref().map(|agent| format!("for {agent}")));
    facts.extend(agent.session.as_ref().map(session));
    facts
}

fn session(session: &SessionChoice) -> String {
    let Some(mode) = session.mode.map(SessionMode::name) else {
        return "session without `mode`: a new one each time".to_owned();
    };
    let label = session.label.as_ref().map(|label| format!(" {label}")).unwrap_or_default();
    let reset = if session.reset == Some(true) { ", reset" } else { "" };
    format!("{mode} session{label}{reset}")
}

fn order_facts(order: Order) -> Vec<String> {
    match order {
        Order::Sequential => vec!["one after the other".to_owned()],
        Order::Parallel { max_parallel, on_error } => {
            let programs = counted(max_parallel, "program");
            let on_error = match on_error {
                OnError::Fail => "a failure fails it",
                OnError::Collect => "failures are collected",
            };
            vec![format!("all at once, at most {programs} at a time"), on_error.to_owned()]
        }
    }
}

fn while_facts(step: &While) -> Vec<String> {
    let then = match step.on_max_iters {
        OnMaxIters::Fail => "then it fails",
        OnMaxIters::Continue => "then it continues",
    };
    vec![format!("at most {}", counted(step.max_iters.get(), "time")), then.to_owned()]
}
