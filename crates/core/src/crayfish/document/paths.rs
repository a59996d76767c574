//! The paths that a document reads values from.

use super::{Document, ExecStep, Invocation, Io, StepKind};
use crate::crayfish::path::Path;
use crate::crayfish::template::{Shape, Template};

impl Document {
    /// Iterates over all paths of the document: of its steps, its `env` and its `output`.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let steps = self.steps.iter().flat_map(|step| step.kind.paths());
        let env = self.env.values().flat_map(Template::paths);
        steps.chain(env).chain(self.output.iter().flat_map(Shape::paths))
    }
}

impl StepKind {
    /// Returns the paths of the step itself, without those of the steps inside it.
    ///
    /// `inputFrom` is not among them: it names a step and no path.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Exec(exec) => exec.templates().into_iter().flat_map(Template::paths).collect(),
            Self::Agent(agent) => {
                agent.prompt.paths().chain(agent.input.iter().flat_map(Shape::paths)).collect()
            }
            Self::If(step) => vec![&step.condition.path],
            Self::ForEach(step) => vec![&step.list],
            Self::While(step) => vec![&step.until.path],
        }
    }
}

impl ExecStep {
    /// Returns the templates of the step, in the order in which its keys are documented.
    pub fn templates(&self) -> Vec<&Template> {
        let mut templates: Vec<&Template> = match &self.invocation {
            Invocation::Shell(text) => vec![text],
            Invocation::Cmd { cmd, args } => std::iter::once(cmd).chain(args).collect(),
        };
        templates.extend(self.env.values());
        if let Io::File { inputs, outputs } = &self.io {
            templates.extend(inputs.iter().chain(outputs).map(|file| &file.path));
        }
        templates
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_with_a_path_is_found() {
        let cond = |path: &str| json!({ "op": "exists", "path": path });
        let file = json!({ "f": { "path": "{{vars.f}}" } });
        let document = Document::parse(&json!({
            "env": { "A": "{{vars.a}}" },
            "steps": [
                { "id": "s", "kind": "exec", "shell": "{{vars.b}}", "env": { "C": "{{vars.c}}" } },
                { "id": "r", "kind": "exec",
                  "run": { "kind": "cmd", "cmd": "{{vars.d}}", "args": ["{{vars.e}}"] },
                  "io": { "in": file } },
                { "id": "v", "kind": "agent", "prompt": "{{vars.g}}", "schema": {},
                  "input": ["{{vars.h}}"] },
                { "id": "i", "kind": "if", "cond": cond("$.vars.i"), "then": [
                    { "id": "l", "kind": "forEach", "listPath": "$.vars.j", "itemVar": "x",
                      "body": [] },
                    { "id": "w", "kind": "while", "until": cond("$.vars.k"), "maxIters": 1,
                      "body": [] } ] },
            ],
            "output": { "o": "{{vars.l}}" },
        }));
        let document = document.unwrap();
        let mut names: Vec<&str> = document.paths().map(|path| path.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names.concat(), "abcdefghijkl");
    }
}
