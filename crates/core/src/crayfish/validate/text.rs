//! Reads templates and paths of a document.
//!
//! The names that are allowed depend on the use of the text: `env` of a document sees only its
//! variables, a step also sees results, and a body also sees the locals of its loops. A text with a
//! mistake is reported once, and the check of the step continues.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{Fields, expected};
use super::scope::{NameOrigin, ValidationScope};
use crate::crayfish::document::Cap;
use crate::crayfish::path::{BadPath, Namespace, Path};
use crate::crayfish::problem::{Report, quoted};
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::template::{Part, Shape, Template};

/// The use of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It is executed: `shell` or `cmd`. It must not contain the output of a step.
    Run(&'static str),
    /// It is passed to a program as data: an argument, a variable, a path.
    Program,
    /// It is sent to an agent.
    Agent,
    /// It is evaluated before the first step: `env` of the document.
    Beforehand,
}

/// Reads texts at the current place.
pub(super) struct Reader<'r, 'a> {
    pub(super) report: &'r mut Report,
    pub(super) scope: &'r ValidationScope<'a>,
}

impl Reader<'_, '_> {
    /// Calls `look` with `key` of the current place as the current place.
    pub(super) fn under<T>(&mut self, key: &str, look: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.report.enter(key);
        let seen = look(self);
        self.report.leave(length);
        seen
    }

    /// Reads a limit of 1 to 5, if present.
    pub(super) fn cap(&mut self, fields: &Fields<'_>, key: &str) -> Option<Cap> {
        fields.whole(self.report, key, &(1..=Cap::MOST.into())).and_then(Cap::new)
    }

    pub(super) fn list(&mut self, items: &[Value]) -> Vec<Template> {
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            read.extend(self.under(&index.to_string(), |text| text.string(item, Use::Program)));
        }
        read
    }

    /// Reads a template in an optional field.
    pub(super) fn field(&mut self, fields: &Fields<'_>, key: &str, used: Use) -> Option<Template> {
        let text = fields.string(self.report, key)?;
        let scope = self.scope;
        self.report.under(key, |report| template(report, scope, text, used))
    }

    /// Reads a template in a required field.
    pub(super) fn required(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        used: Use,
    ) -> Option<Template> {
        fields.required(self.report, key)?;
        self.field(fields, key, used)
    }

    pub(super) fn env(
        &mut self,
        env: &Map<String, Value>,
        used: Use,
    ) -> BTreeMap<String, Template> {
        let mut read = BTreeMap::new();
        for (name, value) in env {
            let template = self.under(name, |text| text.variable(name, value, used));
            read.extend(template.map(|template| (name.clone(), template)));
        }
        read
    }

    fn variable(&mut self, name: &str, value: &Value, used: Use) -> Option<Template> {
        if name.is_empty() || name.contains(['=', '\0']) {
            let name = quoted(name);
            let message = format!("{name} cannot be the name of an environment variable");
            self.report.add(ProblemCode::BadName, message);
        }
        // A shell or the dynamic loader executes the values of these variables.
        let used = if used == Use::Program && is_run(name) { Use::Run("env") } else { used };
        self.string(value, used)
    }

    /// Reads a template at the current place, which must be a string.
    fn string(&mut self, value: &Value, used: Use) -> Option<Template> {
        let Value::String(text) = value else {
            self.report.add(ProblemCode::WrongType, expected("a string", value));
            return None;
        };
        template(self.report, self.scope, text, used)
    }

    /// Reads JSON with templates at the current place.
    pub(super) fn shape(&mut self, value: &Value) -> Option<Shape> {
        let scope = self.scope;
        Shape::parse(value, self.report, &mut |report, text| {
            template(report, scope, text, Use::Agent)
        })
    }

    /// Reads a path in a required field.
    pub(super) fn path(&mut self, fields: &Fields<'_>, key: &str) -> Option<Path> {
        let text = fields.required_string(self.report, key)?;
        let scope = self.scope;
        self.report.under(key, |report| match text.parse() {
            Ok(path) => leads(report, scope, &path).then_some(path),
            Err(bad) => {
                let bad: BadPath = bad;
                report.add(bad.code(), bad.to_string());
                None
            }
        })
    }
}

fn template(
    report: &mut Report,
    scope: &ValidationScope<'_>,
    text: &str,
    used: Use,
) -> Option<Template> {
    let (template, faults) = Template::read(text);
    let mut good = faults.is_empty();
    for fault in faults {
        let advice = "a text that only looks so can be a value of `vars`";
        report.add(fault.code(), format!("{fault} ({advice})"));
    }
    for path in template.paths() {
        // One problem for each expression: a path that is not allowed here need not lead anywhere.
        if let Some((code, message)) = misused(scope, path, used) {
            report.add(code, message);
            good = false;
        } else {
            good &= leads(report, scope, path);
        }
    }
    // Only programs cannot receive it: the system ends arguments and variables at NUL.
    if used != Use::Agent && template.parts().iter().any(holds_nul) {
        report.add(ProblemCode::BadText, "a NUL character cannot be handed to a program");
        good = false;
    }
    good.then_some(template)
}

/// Returns whether a variable decides which code a program runs.
fn is_run(variable: &str) -> bool {
    // Read by bash, by the loader, or by interpreters and tools that programs commonly start.
    const RUN: [&str; 9] = [
        "BASHOPTS",
        "BASH_ENV",
        "ENV",
        "IFS",
        "PATH",
        "PERL5OPT",
        "PROMPT_COMMAND",
        "PS4",
        "SHELLOPTS",
    ];
    let begins = ["BASH_FUNC_", "DYLD_", "GIT_", "LD_", "NODE_OPTIONS", "PYTHON", "RUBY"];
    RUN.contains(&variable) || begins.iter().any(|beginning| variable.starts_with(beginning))
}

fn holds_nul(part: &Part) -> bool {
    match part {
        Part::Text(text) => text.contains('\0'),
        Part::Value(_) => false,
    }
}

/// Reports a path to a local or result field that cannot exist, and returns whether it can.
fn leads(report: &mut Report, scope: &ValidationScope<'_>, path: &Path) -> bool {
    if let Some((code, message)) = scope.steps.fault(path, report) {
        report.add(code, message);
        return false;
    }
    if path.leads_to_items() && scope.is_within(&path.name) {
        let name = quoted(&path.name);
        let message = format!("the `items` of {name} exist only after the loop has ended");
        report.add(ProblemCode::UnknownResult, message);
        return false;
    }
    if path.root != Namespace::Locals || scope.binds(&path.name) {
        return true;
    }
    let meant = report.meant(&path.name, scope.names());
    let message = format!("no forEach around this step binds {}{meant}", quoted(&path.name));
    report.add(ProblemCode::UnknownLocal, message);
    false
}

/// Returns the problem of an expression that is not allowed in this use.
fn misused(scope: &ValidationScope<'_>, path: &Path, used: Use) -> Option<(ProblemCode, String)> {
    let expression = quoted(&format!("{{{{{}}}}}", path.expression()));
    match used {
        Use::Beforehand => (path.root != Namespace::Vars).then(|| {
            let way = "use `env` of a step";
            (
                ProblemCode::TooEarly,
                format!("{expression} is not known before the first step: {way}"),
            )
        }),
        Use::Run(key) if scope.origin(path) == NameOrigin::Step => {
            let way = match key {
                "cmd" => "`args` or `env`",
                "env" => "a variable that nothing evaluates",
                _ => "`env`, or `args` of a `run`",
            };
            let from = match path.root {
                Namespace::Locals => " comes from a step's output and",
                Namespace::Vars | Namespace::Results => "",
            };
            let message = format!(
                "{expression}{from} is not allowed in `{key}`, where it would be run: pass it in {way}"
            );
            Some((ProblemCode::Injection, message))
        }
        Use::Run(_) | Use::Program | Use::Agent => None,
    }
}
