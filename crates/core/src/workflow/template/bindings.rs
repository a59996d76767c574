//! Bindings: the meaning of template names in one visit.
//!
//! Large values stay in their blobs until a template names them, so that a prompt that ignores its
//! input reads nothing. The environment of scripts is built from the same bindings in
//! [`crate::workflow::environment`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::few::Few;
use crate::ids::{AgentId, RunId, StateName};
use crate::protocol::ResultStatus;
use crate::text::nearest;
use crate::value::{BlobRef, Value};

use super::{RenderedText, render};

/// Names that every visit binds, so a variable of that name would have no effect.
pub const BUILT_IN: [&str; 9] = [
    "run_id",
    "workflow_id",
    "agent_id",
    "state",
    "visit",
    "scope",
    "result",
    "input",
    "result_status",
];

/// The meaning of names in one visit. If a name is bound twice, the order is: built-in names, the
/// result, fork attributes, variables.
#[derive(Debug, Clone, Copy)]
pub struct Bindings<'a> {
    /// `run_id` and `workflow_id`
    pub run: &'a RunId,
    /// `agent_id`
    pub agent: &'a AgentId,
    /// `state`
    pub state: &'a StateName,
    /// `visit`: how often the agent has entered this state.
    pub visit: u32,
    /// `scope`: the path of the workflow.
    pub scope: &'a str,
    /// `result` and `input`: the value that the visit started with.
    pub result: Option<&'a Value>,
    /// `result_status`: whether that value is the result of a success; empty without a value.
    pub result_status: ResultStatus,
    /// Attributes of the fork that made the agent.
    pub attributes: &'a Few<String, Value>,
    /// Variables of the run.
    pub vars: &'a BTreeMap<String, String>,
}

/// The value of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound<'a> {
    Text(Cow<'a, str>),
    Blob(&'a BlobRef),
}

impl<'a> Bindings<'a> {
    /// Returns the value of `name`. `result` is empty if the visit has no input.
    pub fn lookup(&self, name: &str) -> Option<Bound<'a>> {
        let text = |text: &'a str| Some(Bound::Text(Cow::Borrowed(text)));
        match name {
            "run_id" | "workflow_id" => text(self.run.as_str()),
            "agent_id" => text(self.agent.as_str()),
            "state" => text(self.state.as_str()),
            "visit" => Some(Bound::Text(Cow::Owned(self.visit.to_string()))),
            "scope" => text(self.scope),
            "result" | "input" => self.result.map_or_else(|| text(""), |value| Some(bound(value))),
            "result_status" => text(self.result.map_or("", |_| self.result_status.as_str())),
            _ => match (self.attributes.get(name), self.vars.get(name)) {
                (Some(value), _) => Some(bound(value)),
                (None, Some(value)) => text(value),
                (None, None) => None,
            },
        }
    }

    /// Returns the name nearest to one that nothing sets.
    pub fn nearest(&self, unknown: &str) -> Option<&str> {
        let set = self.attributes.keys().chain(self.vars.keys()).map(String::as_str);
        nearest(unknown, set.chain(BUILT_IN))
    }

    /// Renders a prompt. `load` reads stored texts, each at most once.
    pub fn render<E>(
        &self,
        body: &str,
        load: &mut dyn FnMut(&BlobRef) -> Result<String, E>,
    ) -> Result<RenderedText, E> {
        // A prompt may name a stored result many times, and each load reads and verifies a file.
        let mut loaded: BTreeMap<&BlobRef, Cow<'a, str>> = BTreeMap::new();
        let mut failure = None;
        let rendered = render(body, &mut |name| match self.lookup(name)? {
            Bound::Text(text) => Some(text),
            // The rendering fails anyway; do not read further texts.
            Bound::Blob(_) if failure.is_some() => None,
            Bound::Blob(blob) => {
                if let Some(text) = loaded.get(blob) {
                    return Some(text.clone());
                }
                match load(blob) {
                    Ok(text) => {
                        loaded.insert(blob, Cow::Owned(text.clone()));
                        Some(Cow::Owned(text))
                    }
                    Err(error) => {
                        failure = Some(error);
                        None
                    }
                }
            }
        });
        failure.map_or(Ok(rendered), Err)
    }
}

fn bound(value: &Value) -> Bound<'_> {
    match value {
        Value::Inline(text) => Bound::Text(Cow::Borrowed(text)),
        Value::Blob(blob) => Bound::Blob(blob),
    }
}

#[cfg(test)]
mod tests {
    use crate::value::Hash;

    use super::*;

    fn blob(text: &str) -> Value {
        Value::Blob(BlobRef { hash: Hash::of(text.as_bytes()), length: text.len() as u64 })
    }

    struct Visit {
        result: Option<Value>,
        attributes: Few<String, Value>,
        vars: BTreeMap<String, String>,
    }

    impl Visit {
        fn with<T>(&self, test: impl FnOnce(Bindings<'_>) -> T) -> T {
            test(Bindings {
                run: &"flow-1".into(),
                agent: &"main_worker1".into(),
                state: &"REVIEW.md".into(),
                visit: 3,
                scope: "/flows/review",
                result: self.result.as_ref(),
                result_status: ResultStatus::Failed,
                attributes: &self.attributes,
                vars: &self.vars,
            })
        }

        fn check(&self, body: &str, expected: &str) {
            let rendered = self.with(|bindings| {
                bindings.render(body, &mut |_| Err::<String, _>("no blob is needed"))
            });
            assert_eq!(rendered.map(|rendered| rendered.text), Ok(expected.to_owned()), "{body}");
        }
    }

    fn shadowed() -> Visit {
        let both = BUILT_IN.into_iter().chain(["item"]);
        Visit {
            result: Some("payload".into()),
            vars: both.clone().chain(["only"]).map(|n| (n.to_owned(), "var".to_owned())).collect(),
            attributes: both.map(|n| (n.to_owned(), "attribute".into())).collect(),
        }
    }

    #[test]
    fn builtins_then_result_then_attributes_then_variables_win() {
        let visit = shadowed();
        visit.check("{{run_id}}", "flow-1");
        visit.check("{{workflow_id}}", "flow-1");
        visit.check("{{agent_id}}", "main_worker1");
        visit.check("{{state}}", "REVIEW.md");
        visit.check("{{visit}}", "3");
        visit.check("{{scope}}", "/flows/review");
        visit.check("{{result}}", "payload");
        visit.check("{{input}}", "payload");
        visit.check("{{result_status}}", "failed");
        visit.check("{{item}}", "attribute");
        visit.check("{{only}}", "var");
    }

    #[test]
    fn unbound_result_is_empty() {
        let visit = Visit { result: None, ..shadowed() };
        visit.check("[{{result}}{{input}}{{result_status}}]", "[]");
        visit.check("{{unknown}}", "{{unknown}}");
        assert_eq!(
            visit.with(|bindings| bindings.nearest("onyl").map(str::to_owned)),
            Some("only".into())
        );
        assert_eq!(visit.with(|bindings| bindings.nearest("unknown").map(str::to_owned)), None);
    }

    #[test]
    fn stored_texts_are_loaded_once_if_used() {
        let visit = Visit {
            result: Some(blob("large")),
            attributes: Few::from([("other".to_owned(), blob("never named"))]),
            vars: BTreeMap::new(),
        };
        let mut loads = 0;
        let rendered = visit.with(|bindings| {
            bindings.render("{{result}} {{input}}", &mut |_| {
                loads += 1;
                Ok::<_, ()>("{{other}}".to_owned())
            })
        });
        assert_eq!(rendered.map(|rendered| rendered.text), Ok("{{other}} {{other}}".to_owned()));
        assert_eq!(loads, 1);
        let failed = visit.with(|bindings| bindings.render("{{result}}", &mut |_| Err("gone")));
        assert_eq!(failed, Err("gone"));
        // After the first that cannot be read none is asked for.
        let mut asked = Vec::new();
        let failed = visit.with(|bindings| {
            bindings.render("{{result}} {{other}}", &mut |blob| {
                asked.push(blob.length);
                Err(blob.length)
            })
        });
        assert_eq!((failed, asked), (Err(5), vec![5]));
    }
}
