//! Reads templates and paths where they stand: what may be named depends on the place.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{Fields, expected};
use super::scope::{Origin, Scope};
use crate::crayfish::document::Cap;
use crate::crayfish::path::{BadPath, Path, Root};
use crate::crayfish::problem::{Report, quoted};
use crate::crayfish::problem_code::ProblemCode;
use crate::crayfish::template::{Part, Shape, Template};

/// What a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It is run: `shell` or `cmd`. What a step left must not stand in it.
    Run(&'static str),
    /// It goes to a program as data: an argument, a variable, a path.
    Program,
    /// It goes to an agent.
    Agent,
    /// It is there before the first step: `env` of the document.
    Beforehand,
}

/// Reads texts at the current place.
pub(super) struct Reader<'r, 'a> {
    pub(super) report: &'r mut Report,
    pub(super) scope: &'r Scope<'a>,
}

impl Reader<'_, '_> {
    /// Looks at `key` of the current place for as long as `look` takes.
    pub(super) fn under<T>(&mut self, key: &str, look: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.report.enter(key);
        let seen = look(self);
        self.report.leave(length);
        seen
    }

    /// A cap of 1 to 5, if it is there.
    pub(super) fn cap(&mut self, fields: &Fields<'_>, key: &str) -> Option<Cap> {
        fields.whole(self.report, key, &(1..=Cap::MOST.into())).and_then(Cap::new)
    }

    /// The arguments of a program.
    pub(super) fn list(&mut self, items: &[Value]) -> Vec<Template> {
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            read.extend(self.under(&index.to_string(), |text| text.string(item, Use::Program)));
        }
        read
    }

    /// A template in the field `key`, if that is there.
    pub(super) fn field(&mut self, fields: &Fields<'_>, key: &str, used: Use) -> Option<Template> {
        let text = fields.string(self.report, key)?;
        let scope = self.scope;
        self.report.under(key, |report| template(report, scope, text, used))
    }

    /// A template in the field `key`, which must be there.
    pub(super) fn required(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        used: Use,
    ) -> Option<Template> {
        fields.required(self.report, key)?;
        self.field(fields, key, used)
    }

    /// Environment variables.
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
        // What a shell or a loader makes of these is run.
        let used = if used == Use::Program && is_run(name) { Use::Run("env") } else { used };
        self.string(value, used)
    }

    /// A template at the current place, which must be a string.
    fn string(&mut self, value: &Value, used: Use) -> Option<Template> {
        let Value::String(text) = value else {
            self.report.add(ProblemCode::WrongType, expected("a string", value));
            return None;
        };
        template(self.report, self.scope, text, used)
    }

    /// JSON with templates in it, at the current place.
    pub(super) fn shape(&mut self, value: &Value) -> Option<Shape> {
        let scope = self.scope;
        Shape::parse(value, self.report, &mut |report, text| {
            template(report, scope, text, Use::Agent)
        })
    }

    /// A path in the field `key`, which must be there.
    pub(super) fn path(&mut self, fields: &Fields<'_>, key: &str) -> Option<Path> {
        let text = fields.required_string(self.report, key)?;
        let scope = self.scope;
        self.report.under(key, |report| match text.parse() {
            Ok(path) => leads(report, scope, &path).then_some(path),
            Err(bad) => {
                let bad: BadPath = bad;
                report.add(bad.flaw(), bad.to_string());
                None
            }
        })
    }
}

fn template(report: &mut Report, scope: &Scope<'_>, text: &str, used: Use) -> Option<Template> {
    let (template, faults) = Template::read(text);
    let mut good = faults.is_empty();
    for fault in faults {
        let advice = "a text that only looks so can be a value of `vars`";
        report.add(fault.flaw(), format!("{fault} ({advice})"));
    }
    for path in template.paths() {
        if let Some((flaw, message)) = misused(scope, path, used) {
            report.add(flaw, message);
            good = false;
        } else {
            good &= leads(report, scope, path);
        }
    }
    if used != Use::Agent && template.parts().iter().any(holds_nul) {
        report.add(ProblemCode::BadText, "a NUL character cannot be handed to a program");
        good = false;
    }
    good.then_some(template)
}

/// Whether a variable says what a program runs, beside what it was told to.
fn is_run(variable: &str) -> bool {
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

/// Whether a path, if it leads to a local or a result, leads to one that can be there.
fn leads(report: &mut Report, scope: &Scope<'_>, path: &Path) -> bool {
    if let Some((flaw, message)) = scope.steps.fault(path, report) {
        report.add(flaw, message);
        return false;
    }
    if path.root != Root::Locals || scope.binds(&path.name) {
        return true;
    }
    let meant = report.meant(&path.name, scope.names());
    let message = format!("no forEach around this step binds {}{meant}", quoted(&path.name));
    report.add(ProblemCode::UnknownLocal, message);
    false
}

/// What is said of an expression that must not stand here.
fn misused(scope: &Scope<'_>, path: &Path, used: Use) -> Option<(ProblemCode, String)> {
    let expression = quoted(&format!("{{{{{}}}}}", path.expression()));
    match used {
        Use::Beforehand => (path.root != Root::Vars).then(|| {
            let way = "use `env` of a step";
            (
                ProblemCode::TooEarly,
                format!("{expression} is not known before the first step: {way}"),
            )
        }),
        Use::Run(key) if scope.origin(path) == Origin::Step => {
            let way = match key {
                "cmd" => "`args` or `env`",
                "env" => "a variable that nothing evaluates",
                _ => "`env`, or `args` of a `run`",
            };
            let from = match path.root {
                Root::Locals => " comes from a step's output and",
                Root::Vars | Root::Results => "",
            };
            let message = format!(
                "{expression}{from} cannot stand in `{key}`, where it would be run: pass it in {way}"
            );
            Some((ProblemCode::Injection, message))
        }
        Use::Run(_) | Use::Program | Use::Agent => None,
    }
}
