//! Visits every step of a document with an explicit stack, and assembles the document.
//!
//! Documents come from agents and may be nested 500 levels deep. Recursion would use the stack of
//! the caller's thread, which may be small.

use super::unfinished::UnfinishedStep;
use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::Fields;
use super::scope::{NameOrigin, ValidationScope};
use super::source::{self, Wanted};
use super::{Limits, agent, exec, flow, text};
use crate::crayfish::document::{self, Step, StepIndex, StepKind, StepList, StepPlace};
use crate::crayfish::name::{self, StepId};
use crate::crayfish::problem::{Report, quoted};
use crate::crayfish::problem_code::ProblemCode;

/// The work that is left.
enum Task<'a> {
    /// The steps of a list, from `next` on.
    Steps(OpenList<'a>),
    /// The walk has left a `forEach`, and with it the name that it binds, if it could be read.
    Unbind(Option<&'a str>),
    /// The walk has left a loop.
    LeaveLoop,
}

#[derive(Clone, Copy)]
struct OpenList<'a> {
    steps: &'a [Value],
    next: usize,
    list: StepList,
    parent: Option<StepIndex>,
    enclosing_loop: Option<StepIndex>,
    /// How many steps are around it.
    depth: usize,
    /// The length of the parent's pointer.
    pointer: usize,
}

/// A document that is being visited.
pub(super) struct Walk<'a> {
    pub(super) report: Report,
    scope: ValidationScope<'a>,
    limits: Limits,
    steps: Vec<UnfinishedStep>,
    by_id: BTreeMap<StepId, StepIndex>,
    wanted: Vec<Wanted>,
    tasks: Vec<Task<'a>>,
}

/// The steps, the top level list, and the index by id.
type Assembled = (Vec<Step>, Vec<StepIndex>, BTreeMap<StepId, StepIndex>);

impl<'a> Walk<'a> {
    pub(super) fn new(report: Report, steps: &'a [Value], limits: Limits) -> Self {
        Self {
            report,
            scope: ValidationScope::of(steps),
            limits,
            steps: Vec::new(),
            by_id: BTreeMap::new(),
            wanted: Vec::new(),
            tasks: Vec::new(),
        }
    }

    pub(super) fn steps(&mut self, steps: &'a [Value]) {
        self.tasks.push(Task::Steps(OpenList {
            steps,
            next: 0,
            list: StepList::Steps,
            parent: None,
            enclosing_loop: None,
            depth: 0,
            pointer: 0,
        }));
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Unbind(name) => self.scope.unbind(name),
                Task::LeaveLoop => self.scope.leave_loop(),
                Task::Steps(branch) if self.steps.len() < self.limits.steps => self.visit(branch),
                Task::Steps(branch) => {
                    if branch.next < branch.steps.len() {
                        self.report.turn_to(0, "/steps");
                        let message = format!("there are more than {} steps", self.limits.steps);
                        // In chapter 0, so that it comes first, and even if the report is full.
                        self.report.insist(ProblemCode::TooManySteps, message);
                        return;
                    }
                }
            }
        }
    }

    /// Visits the next step of a list, and plans the rest of the list and the steps inside that
    /// step.
    fn visit(&mut self, branch: OpenList<'a>) {
        let OpenList { list, parent, enclosing_loop, depth, .. } = branch;
        let (Some(value), Ok(position)) =
            (branch.steps.get(branch.next), u32::try_from(branch.next))
        else {
            return;
        };
        // Always fits: the limit of steps is far below `u32::MAX`.
        let index = StepIndex(u32::try_from(self.steps.len()).unwrap_or(u32::MAX));
        // Chapter 0 is for the document itself.
        self.report.chapter(index.0 + 1);
        // The report is still at the step that was visited last, which may be nested deeper.
        self.report.leave(branch.pointer);
        self.report.enter(list.key());
        self.report.enter(&position.to_string());
        // Pushed before the children, so it is popped after them.
        self.tasks.push(Task::Steps(OpenList { next: branch.next + 1, ..branch }));
        let place = StepPlace { parent, list, position, enclosing_loop };
        self.steps.push(UnfinishedStep { place, id: None, kind: None, description: None });
        self.step(value, index, depth + 1);
    }

    fn step(&mut self, value: &'a Value, index: StepIndex, depth: usize) {
        let Some(fields) = Fields::open(&mut self.report, value, "a step") else { return };
        let id = self.id(&fields, index);
        // For readers of the document.
        let description = fields.string(&mut self.report, "description").map(str::to_owned);
        // By its key, because the kind may be unreadable.
        let is_loop = fields.get(StepList::Body.key()).is_some();
        if is_loop {
            // Before its own paths are read, and until its body has been visited.
            self.scope.enter_loop(fields.get("id").and_then(Value::as_str).unwrap_or_default());
            self.tasks.push(Task::LeaveLoop);
        }
        let kind = self.kind(&fields, index);
        let unfinished = &mut self.steps[index.number()];
        let place = unfinished.place;
        (unfinished.id, unfinished.kind, unfinished.description) = (id, kind, description);
        let lists = match &unfinished.kind {
            Some(StepKind::Exec(_) | StepKind::Agent(_)) => &[][..],
            // An unreadable step may still contain steps that other steps refer to.
            Some(StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_)) | None => {
                &[StepList::Body, StepList::Else, StepList::Then]
            }
        };
        let enclosing_loop = if is_loop { Some(index) } else { place.enclosing_loop };
        self.bind(&fields);
        for list in lists {
            let Some(Value::Array(steps)) = fields.get(list.key()) else { continue };
            if depth == self.limits.nesting && !steps.is_empty() {
                let most = self.limits.nesting;
                let deep = format!("steps are nested more than {most} levels deep");
                self.report.add_at(list.key(), ProblemCode::TooDeep, deep);
                continue;
            }
            self.tasks.push(Task::Steps(OpenList {
                steps,
                next: 0,
                list: *list,
                parent: Some(index),
                enclosing_loop,
                depth,
                pointer: self.report.pointer().len(),
            }));
        }
    }

    /// Returns the id of a step, and reports one that another step has.
    fn id(&mut self, fields: &Fields<'a>, index: StepIndex) -> Option<StepId> {
        let text = fields.required_string(&mut self.report, "id")?;
        let id: StepId = match text.parse() {
            Ok(id) => id,
            Err(bad) => {
                self.report.add_at("id", ProblemCode::BadId, bad.to_string());
                return None;
            }
        };
        if let Some(first) = self.by_id.get(&id) {
            let first = self.pointer(*first);
            let message = format!("the id `{id}` is taken by the step at {first}");
            self.report.add_at("id", ProblemCode::DuplicateId, message);
            return None;
        }
        // The first step keeps the id, so that references to it are still checked.
        self.by_id.insert(id.clone(), index);
        Some(id)
    }

    fn kind(&mut self, fields: &Fields<'a>, index: StepIndex) -> Option<StepKind> {
        let name = fields.required_string(&mut self.report, "kind")?;
        let text = &mut text::Reader { report: &mut self.report, scope: &self.scope };
        let mut want = |at, step| self.wanted.push(Wanted { by: index, at, step });
        match name {
            "exec" => exec::read(text, fields, &mut want).map(StepKind::Exec),
            "agent" => agent::read(text, fields).map(StepKind::Agent),
            "if" => flow::read_if(text, fields).map(StepKind::If),
            "forEach" => flow::read_for_each(text, fields).map(StepKind::ForEach),
            "while" => flow::read_while(text, fields).map(StepKind::While),
            unknown => {
                let known = "there are `exec`, `agent`, `if`, `forEach` and `while`";
                let meant = self.report.meant(unknown, StepKind::NAMES);
                let unknown = quoted(unknown);
                let message = format!("unknown kind {unknown}: {known}{meant}");
                self.report.add_at("kind", ProblemCode::UnknownKind, message);
                None
            }
        }
    }

    /// Binds the local of a `forEach` until its body has been visited.
    fn bind(&mut self, fields: &Fields<'a>) {
        let kind = fields.get("kind").and_then(Value::as_str);
        if let Some("exec" | "agent" | "if" | "while") = kind {
            return;
        }
        // An unreadable kind may be meant as a `forEach`: binding its local avoids follow-up
        // problems.
        let name = fields.get("itemVar").and_then(Value::as_str);
        let name = name.filter(|name| name::check(name).is_ok());
        let list =
            fields.get("listPath").and_then(Value::as_str).and_then(|path| path.parse().ok());
        // An item comes from where its list comes: items of a result are the output of a step.
        let origin = list.map_or(NameOrigin::Author, |list| self.scope.origin(&list));
        self.scope.bind(name, origin);
        self.tasks.push(Task::Unbind(name));
    }

    /// Checks every `inputFrom`, now that all steps are known.
    pub(super) fn sources(&mut self) {
        for wanted in std::mem::take(&mut self.wanted) {
            if let Some((code, message)) =
                source::fault(&wanted, &self.steps, &self.by_id, &mut self.report)
            {
                let pointer = self.pointer(wanted.by) + wanted.at;
                self.report.turn_to(wanted.by.0 + 1, &pointer);
                self.report.add(code, message);
            }
        }
    }

    fn pointer(&self, index: StepIndex) -> String {
        let place = |index: StepIndex| self.steps[index.number()].place;
        document::pointer(place(index), place)
    }

    /// Returns the steps with their lists filled in, or `None` if a step could not be read.
    pub(super) fn assemble(&mut self) -> Option<Assembled> {
        let unfinished = std::mem::take(&mut self.steps);
        let (mut steps, mut top) = (Vec::with_capacity(unfinished.len()), Vec::new());
        for (number, unfinished) in unfinished.into_iter().enumerate() {
            let UnfinishedStep { place, id, kind, description } = unfinished;
            let index = StepIndex(u32::try_from(number).ok()?);
            match place.parent {
                None => top.push(index),
                Some(parent) => {
                    let parent: &mut Step = steps.get_mut(parent.number())?;
                    children(&mut parent.kind, place.list)?.push(index);
                }
            }
            steps.push(Step { id: id?, kind: kind?, place, description });
        }
        Some((steps, top, std::mem::take(&mut self.by_id)))
    }
}

/// Returns the list of a step that contains its children.
fn children(kind: &mut StepKind, list: StepList) -> Option<&mut Vec<StepIndex>> {
    match (kind, list) {
        (StepKind::If(step), StepList::Then) => Some(&mut step.then),
        (StepKind::If(step), StepList::Else) => Some(&mut step.otherwise),
        (StepKind::ForEach(step), StepList::Body) => Some(&mut step.body),
        (StepKind::While(step), StepList::Body) => Some(&mut step.body),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crayfish::problem::Problem;

    // The limits are three steps in two levels.
    fn check(steps: &Value, expected: &[&str]) {
        let list = steps.as_array().unwrap();
        let mut walk = Walk::new(Report::new(), list, Limits { nesting: 2, steps: 3 });
        walk.steps(list);
        let messages: Vec<String> = walk.report.problems().iter().map(Problem::to_string).collect();
        assert_eq!(messages, expected, "{steps}");
    }

    fn exec(id: &str) -> Value {
        json!({ "id": id, "kind": "exec", "shell": "true" })
    }

    fn gate(id: &str, then: &Value) -> Value {
        let cond = json!({ "op": "exists", "path": "$.vars.x" });
        json!({ "id": id, "kind": "if", "cond": cond, "then": then, "else": [] })
    }

    #[test]
    fn step_limit_counts_every_list() {
        let more = ["/steps: there are more than 3 steps"];
        check(&json!([exec("a"), exec("b"), exec("c")]), &[]);
        check(&json!([exec("a"), exec("b"), exec("c"), exec("d")]), &more);
        check(&json!([gate("g", &json!([exec("a"), exec("b")]))]), &[]);
        check(&json!([gate("g", &json!([exec("a"), exec("b")])), exec("c")]), &more);
        check(&json!([exec("a"), gate("g", &json!([exec("b"), exec("c")]))]), &more);
        check(&json!([exec("a"), exec("b"), gate("g", &json!([]))]), &[]);
    }

    #[test]
    fn step_nesting_is_limited() {
        let deep = |inner: Value| json!([gate("g", &json!([gate("h", &inner)]))]);
        check(&deep(json!([])), &[]);
        let too_deep = "/steps/0/then/0/then: steps are nested more than 2 levels deep";
        check(&deep(json!([exec("a")])), &[too_deep]);
    }
}
