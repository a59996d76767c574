//! A small interpreter of the step language, written from its rules alone.
//!
//! It is plain recursion over JSON: it runs one step after the other, and copies lists, scopes and
//! results. It shares no code with the core. It does not validate documents.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::random_replies::RandomReplies;
use crate::step_trace::{ProgramResult, StepTrace};

mod text;

type Names = BTreeMap<String, Json>;

/// Failed steps and their error codes, in list order.
type Failures = Vec<(String, String)>;

/// The names that a step can see.
#[derive(Debug, Clone, Default)]
struct Scope {
    results: Names,
    locals: Names,
    /// The enclosing loops, as the prefix of keys.
    loops: String,
    /// The results of the current iteration: of its steps, and the items of the loops in it.
    item: Map<String, Json>,
    /// Whether an enclosing loop collects failures.
    collected: bool,
}

/// Interprets a document.
pub fn interpret(document: &Json, vars: &Map<String, Json>, replies: RandomReplies) -> StepTrace {
    let mut names: Names = fields(&document["vars"]);
    names.extend(vars.clone());
    let trace = StepTrace::default();
    let mut interpreter =
        Interpreter { replies, document, vars: names, missing_is_null: false, trace };
    let mut scope = Scope::default();
    let done = interpreter.list(&document["steps"], &mut scope);
    interpreter.trace.failures = done.err().unwrap_or_default();
    if let Some(output) = document.get("output").filter(|_| interpreter.trace.failures.is_empty()) {
        // No step could be guarded here, so a missing value is null.
        interpreter.missing_is_null = true;
        interpreter.trace.output = interpreter.shape(output, &scope);
    }
    interpreter.trace
}

struct Interpreter<'a> {
    replies: RandomReplies,
    document: &'a Json,
    vars: Names,
    /// Whether a path without a value leads to null.
    missing_is_null: bool,
    trace: StepTrace,
}

impl Interpreter<'_> {
    fn list(&mut self, steps: &Json, scope: &mut Scope) -> Result<(), Failures> {
        steps.as_array().into_iter().flatten().try_for_each(|step| self.step(step, scope))
    }

    fn step(&mut self, step: &Json, scope: &mut Scope) -> Result<(), Failures> {
        match text_of(&step["kind"]) {
            "exec" => self.exec(step, scope),
            "agent" => self.agent(step, scope),
            "if" => {
                let holds = self.is_true(&step["cond"], scope);
                self.list(if holds { &step["then"] } else { &step["else"] }, scope)
            }
            "forEach" => self.for_each(step, scope),
            _ => self.repeat(step, scope),
        }
    }

    /// Fails a step. Its result stays visible to later steps; a failed loop has a result only if an
    /// enclosing loop collects failures.
    fn fail(
        &mut self,
        step: &Json,
        code: &str,
        left: Option<Json>,
        scope: &mut Scope,
    ) -> Result<(), Failures> {
        if step.get("body").is_none() || scope.collected {
            let left = left.unwrap_or_else(|| json!({ "ok": false, "error": code }));
            self.store_result(step, left, scope);
        }
        Err(vec![(text_of(&step["id"]).to_owned(), code.to_owned())])
    }

    fn store_result(&mut self, step: &Json, result: Json, scope: &mut Scope) {
        let id = text_of(&step["id"]);
        self.trace.results.insert(format!("{}{id}", scope.loops), result.clone());
        scope.item.insert(id.to_owned(), result.clone());
        scope.results.insert(id.to_owned(), result);
    }

    /// Makes the items of a loop readable: for later steps, and in the item of the loop around it.
    fn store_items(step: &Json, items: &[Json], scope: &mut Scope) {
        let (id, items) = (text_of(&step["id"]), json!({ "items": items }));
        scope.item.insert(id.to_owned(), items.clone());
        scope.results.insert(id.to_owned(), items);
    }

    fn exec(&mut self, step: &Json, scope: &mut Scope) -> Result<(), Failures> {
        let key = format!("{}{}", scope.loops, text_of(&step["id"]));
        let Some(call) = self.call(step, scope) else {
            return self.fail(step, "unknown_name", None, scope);
        };
        let io = &step["io"];
        let files = io.get("in").is_some() || io.get("out").is_some();
        let mode = io["mode"].as_str().unwrap_or(if files { "file" } else { "none" });
        let mut left = Json::Null;
        // `retries` is the number of attempts. Its default is 1 for programs and 3 for agents.
        for attempt in 1..=step["retries"].as_u64().unwrap_or(1) {
            let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
            self.trace.ran.insert(format!("{key} {attempt} {call}"));
            match self.replies.exec(mode, &key, attempt, &call) {
                ProgramResult::Succeeded(result) => {
                    self.store_result(step, result, scope);
                    return Ok(());
                }
                ProgramResult::Failed(result) => left = result,
                ProgramResult::NotRun(result) => {
                    left = result;
                    break;
                }
            }
        }
        self.fail(step, "exec_failed", Some(left), scope)
    }

    /// Fills in the expressions of a program; `None` if a name is unknown.
    fn call(&self, step: &Json, scope: &Scope) -> Option<Json> {
        let fill = |text: &Json| self.fill(text_of(text), scope).map(Json::String);
        let mut call = Map::new();
        if let Some(shell) = step.get("shell") {
            call.insert("shell".to_owned(), fill(shell)?);
        } else {
            call.insert("cmd".to_owned(), fill(&step["run"]["cmd"])?);
            let args = step["run"]["args"].as_array().into_iter().flatten();
            call.insert("args".to_owned(), args.map(fill).collect::<Option<_>>()?);
        }
        let mut env = Map::new();
        // The step's variables come last, because they replace those of the document.
        let variables = [&self.document["env"], &step["env"]];
        for (name, value) in variables.into_iter().filter_map(Json::as_object).flatten() {
            env.insert(name.clone(), fill(value)?);
        }
        call.insert("env".to_owned(), Json::Object(env));
        for list in ["in", "out"] {
            let files = step["io"][list].as_object().into_iter().flatten();
            let paths = files.map(|(_, file)| fill(&file["path"])).collect::<Option<_>>()?;
            call.insert(list.to_owned(), paths);
        }
        if let Some(from) = step["io"].get("inputFrom") {
            let (id, path) = match from {
                Json::String(id) => (id.as_str(), "$"),
                from => (text_of(&from["stepId"]), from["jsonPath"].as_str().unwrap_or("$")),
            };
            let result = scope.results.get(id)?;
            // A loop has items instead.
            let read = result.get("json").or_else(|| result.get("items"))?;
            call.insert("stdin".to_owned(), text::follow(read, &path[1..])?.clone());
        }
        Some(Json::Object(call))
    }

    fn agent(&mut self, step: &Json, scope: &mut Scope) -> Result<(), Failures> {
        let key = format!("{}{}", scope.loops, text_of(&step["id"]));
        let prompt = self.fill(text_of(&step["prompt"]), scope);
        let input = match step.get("input") {
            Some(input) => self.shape(input, scope).map(Some),
            None => Some(None),
        };
        let (Some(prompt), Some(input)) = (prompt, input) else {
            return self.fail(step, "unknown_name", None, scope);
        };
        let allow = step.get("allow").cloned().unwrap_or_else(|| json!([]));
        let settings = json!({ "model": step["model"], "allow": allow });
        let question = json!([prompt, input.map_or(json!([]), |input| json!([input])), settings]);
        for attempt in 1..=step["retries"].as_u64().unwrap_or(3) {
            let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
            self.trace.asked.insert(format!("{key} {attempt} {question}"));
            self.trace.attempts.insert(key.clone(), attempt);
            if let (answer, true) = self.replies.answer(&key, attempt) {
                self.store_result(step, json!({ "ok": true, "json": answer }), scope);
                return Ok(());
            }
        }
        self.fail(step, "agent_output_schema_failed", None, scope)
    }

    fn for_each(&mut self, step: &Json, scope: &mut Scope) -> Result<(), Failures> {
        let Some(Json::Array(items)) = self.path(text_of(&step["listPath"]), scope) else {
            return self.fail(step, "not_an_array", None, scope);
        };
        hide_loop(step, scope);
        let id = text_of(&step["id"]);
        let outside = scope.clone();
        let parallel = step["parallel"] == true;
        let (mut failed, mut list) = (Failures::new(), Vec::new());
        for (number, item) in items.into_iter().enumerate() {
            let mut inside = outside.clone();
            // Iterations in sequence see the results of the iteration before; parallel ones see
            // only the results from before the loop.
            if !parallel {
                inside.results.clone_from(&scope.results);
            }
            inside.collected |= step["onError"] == "collect";
            inside.loops = format!("{}{id}[{number}].", outside.loops);
            inside.locals.insert(text_of(&step["itemVar"]).to_owned(), item);
            inside.item = Map::new();
            let done = self.list(&step["body"], &mut inside);
            list.push(Json::Object(inside.item));
            // The last iteration wins, by its place in the list and not by the time of its end.
            scope.results = inside.results;
            match done {
                Err(all) if parallel && step["onError"] != "collect" => failed.extend(all),
                // A collected failure is a result of its iteration, and the loop continues.
                Err(_) if parallel => {}
                done => done?,
            }
        }
        self.trace.is_indeterminate |= outside.collected && !failed.is_empty();
        if !failed.is_empty() {
            return Err(failed);
        }
        Self::store_items(step, &list, scope);
        Ok(())
    }

    fn repeat(&mut self, step: &Json, scope: &mut Scope) -> Result<(), Failures> {
        hide_loop(step, scope);
        let id = text_of(&step["id"]);
        let (outside, around) = (scope.loops.clone(), std::mem::take(&mut scope.item));
        let mut list = Vec::new();
        for number in 0..step["maxIters"].as_u64().unwrap_or(0) {
            if self.is_true(&step["until"], scope) {
                break;
            }
            scope.loops = format!("{outside}{id}[{number}].");
            let done = self.list(&step["body"], scope);
            scope.loops.clone_from(&outside);
            list.push(Json::Object(std::mem::take(&mut scope.item)));
            if let Err(all) = done {
                scope.item = around;
                return Err(all);
            }
        }
        scope.item = around;
        // The condition may hold after the last iteration, so it is checked once more than there
        // are iterations.
        if self.is_true(&step["until"], scope) || step["onMaxIters"] == "continue" {
            Self::store_items(step, &list, scope);
            return Ok(());
        }
        self.fail(step, "while_not_converged", None, scope)
    }

    fn is_true(&self, condition: &Json, scope: &Scope) -> bool {
        let (found, value) = (self.path(text_of(&condition["path"]), scope), &condition["value"]);
        // Comparisons of other types are false in both directions, so there is no order of texts.
        let numbers = found.as_ref().and_then(Json::as_f64).zip(value.as_f64());
        let equal = found.as_ref().is_some_and(|found| same(found, value));
        match text_of(&condition["op"]) {
            // Null counts as absent.
            "exists" => found.is_some_and(|found| !found.is_null()),
            "eq" => equal,
            "ne" => !equal,
            "gt" => numbers.is_some_and(|(found, bound)| found > bound),
            _ => numbers.is_some_and(|(found, bound)| found < bound),
        }
    }
}

/// Hides the earlier items of a loop, and the earlier results of its body, when it is entered
/// again.
fn hide_loop(step: &Json, scope: &mut Scope) {
    scope.results.remove(text_of(&step["id"]));
    hide_results(&step["body"], scope);
}

/// Hides the earlier results of a loop's body when the loop is entered again.
fn hide_results(body: &Json, scope: &mut Scope) {
    for step in body.as_array().into_iter().flatten() {
        scope.results.remove(text_of(&step["id"]));
        for list in ["then", "else", "body"] {
            hide_results(&step[list], scope);
        }
    }
}

/// Compares two JSON values; 1 equals 1.0.
fn same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => one.as_f64() == other.as_f64(),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            let found = |(key, value)| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(found)
        }
        (one, other) => one == other,
    }
}

fn fields(value: &Json) -> Names {
    value.as_object().cloned().unwrap_or_default().into_iter().collect()
}

fn text_of(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}
