//! The values that a step reads: variables, locals, and results of other steps.

use crate::crayfish::document::{AgentStep, ExecStep, InputSource, Io};
use crate::crayfish::path::Path;
use crate::crayfish::template::{Shape, Template};

use super::words::list;

pub(super) fn exec(exec: &ExecStep) -> Option<String> {
    let from: Vec<String> = match &exec.io {
        Io::Stream { input: Some(input), .. } => vec![stream(&input.from)],
        Io::None | Io::File { .. } | Io::Stream { input: None, .. } => Vec::new(),
    };
    let paths = exec.templates().into_iter().flat_map(Template::paths).map(Path::expression);
    reads(from.into_iter().chain(paths).collect())
}

pub(super) fn agent(agent: &AgentStep) -> Option<String> {
    let input = agent.input.iter().flat_map(Shape::paths);
    reads(agent.prompt.paths().chain(input).map(Path::expression).collect())
}

pub(super) fn output(output: &Shape) -> String {
    let reads = reads(output.paths().map(Path::expression).collect());
    reads.map_or_else(|| "output".to_owned(), |reads| format!("output {reads}"))
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
