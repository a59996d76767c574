//! The values that a step reads: variables, locals, and results of other steps.

use crate::crayfish::document::{AgentStep, Exec, InputSource, Invocation, Io};
use crate::crayfish::path::Path;
use crate::crayfish::template::{Shape, Template};

use super::words::list;

pub(super) fn exec(exec: &Exec) -> Option<String> {
    let mut templates: Vec<&Template> = match &exec.invocation {
        Invocation::Shell(text) => vec![text],
        Invocation::Cmd { cmd, args } => std::iter::once(cmd).chain(args).collect(),
    };
    templates.extend(exec.env.values());
    let mut from: Vec<String> = Vec::new();
    match &exec.io {
        Io::None | Io::Stream { input: None, .. } => {}
        Io::Stream { input: Some(input), .. } => from.push(stream(&input.from)),
        Io::File { inputs, outputs } => {
            templates.extend(inputs.iter().chain(outputs).map(|file| &file.path));
        }
    }
    from.extend(templates.into_iter().flat_map(Template::paths).map(Path::expression));
    reads(from)
}

pub(super) fn agent(agent: &AgentStep) -> Option<String> {
    let input = agent.input.iter().flat_map(Shape::paths);
    reads(agent.prompt.paths().chain(input).map(Path::expression).collect())
}

/// Removes repeated paths and keeps their order.
// A set would sort them, but authors look for the order in which the step names them.
fn reads(from: Vec<String>) -> Option<String> {
    let mut once: Vec<String> = Vec::new();
    for path in from {
        if !once.contains(&path) {
            once.push(path);
        }
    }
    list("reads", once.iter())
}

fn stream(source: &InputSource) -> String {
    let path = source.path.to_string();
    format!("results.{}.json{}", source.step, path.trim_start_matches('$'))
}
