//! Random documents: every kind of step inside every other, with expressions everywhere.
//!
//! Most documents succeed. Names clash on purpose: a step, a variable and a local may have the same
//! name, and nested loops bind the same local. Lists and bodies may be empty, paths may lead
//! nowhere, and braces may be plain text.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::random_replies;
use crate::dice::Dice;

/// The maximal nesting of steps.
const MAX_DEPTH: usize = 4;

/// Returns a random valid document.
pub fn document(seed: u64) -> Json {
    generate(DocumentGenerator::new(seed))
}

/// Returns a random document without programs.
pub fn document_without_programs(seed: u64) -> Json {
    generate(DocumentGenerator { programs: false, ..DocumentGenerator::new(seed) })
}

fn generate(mut generator: DocumentGenerator) -> Json {
    let mut steps = generator.list(0);
    if generator.programs && generator.dice.percent(50) {
        // At the end, where all results are visible that a document can still see.
        steps.extend(generator.probes());
    }
    let mut document = json!({ "steps": steps, "vars": vars() });
    if generator.dice.percent(60) {
        document["name"] = "random".into();
    }
    if generator.dice.percent(40) {
        document["env"] = json!({ "A": "{{vars.word}}", "B": "{{ vars.deep.half }}" });
    }
    if generator.dice.percent(20) {
        document["description"] = "made at random".into();
    }
    if generator.dice.percent(40) {
        document["output"] = generator.shape(2);
    }
    document
}

fn vars() -> Json {
    json!({
        "n": 3, "word": "w o", "flag": true, "none": null, "braces": "{{vars.n}}",
        "list": [1, "two", null], "empty": [], "nested": [[1, 2], [], [3]],
        "objects": [{ "id": 1, "list": [5, 6] }, { "id": "b", "list": [] }],
        "deep": { "list": [[7]], "half": 0.5, "none": null },
    })
}

/// The part of a step's result that later steps can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultKind {
    Json,
    Files,
    Text,
    /// The items of a loop.
    Items,
}

/// The body of a loop, as far as paths into its items need it.
#[derive(Debug, Clone, Default)]
struct LoopBody {
    /// Paths from an item, such as `.s3.ok`.
    ends: Vec<String>,
    /// Whether an item may contain a collected failure, whose wording is not specified.
    collects: bool,
}

impl LoopBody {
    fn of(step: &Json) -> Self {
        let collects = step.to_string().contains("\"collect\"");
        let mut ends = Vec::new();
        let mut lists = vec![&step["body"]];
        while let Some(list) = lists.pop() {
            for step in list.as_array().into_iter().flatten() {
                let id = step["id"].as_str().unwrap_or_default();
                match step["kind"].as_str() {
                    Some("exec" | "agent") => ends.push(format!(".{id}.ok")),
                    // A nested list would show the failures, too.
                    Some("forEach" | "while") if collects => {}
                    Some("forEach" | "while") => ends.push(format!(".{id}.items")),
                    // The steps in an `if` belong to the loop around it.
                    _ => lists.extend([&step["then"], &step["else"]]),
                }
            }
        }
        Self { ends, collects }
    }
}

/// A local variable of a loop.
#[derive(Debug, Clone)]
struct Local {
    name: String,
    /// Whether its value may come from a step.
    from_step: bool,
}

struct DocumentGenerator {
    dice: Dice,
    names: Vec<&'static str>,
    count: usize,
    left: usize,
    /// Whether there are exec steps.
    programs: bool,
    /// The steps that may have finished before this point.
    known: Vec<(String, ResultKind)>,
    bodies: BTreeMap<String, LoopBody>,
    locals: Vec<Local>,
}

impl DocumentGenerator {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0xf10e);
        // Steps of the whole document. Loops multiply them, so more would make a run long.
        let left = 3 + dice.index(14);
        // Also names of variables and locals: `results.n` and `vars.n` must not be confused.
        let names = vec!["n", "list", "item", "word", "x"];
        let (known, bodies, locals) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { dice, names, count: 0, left, programs: true, known, bodies, locals }
    }

    /// Returns an unused step id.
    fn id(&mut self) -> String {
        self.count += 1;
        if self.dice.percent(15) && !self.names.is_empty() {
            let index = self.dice.index(self.names.len());
            return self.names.swap_remove(index).to_owned();
        }
        format!("s{}", self.count)
    }

    fn list(&mut self, depth: usize) -> Vec<Json> {
        let longest = if depth == 0 { 8 } else { 4 };
        let length =
            if depth > 0 && self.dice.percent(6) { 0 } else { 1 + self.dice.index(longest) };
        let mut steps = Vec::new();
        for _ in 0..length {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            steps.push(self.step(depth));
        }
        steps
    }

    fn step(&mut self, depth: usize) -> Json {
        // From 11 on there are steps with a body, which the deepest level must not have.
        let kind = self.dice.below(if depth < MAX_DEPTH { 20 } else { 11 });
        let id = self.id();
        match kind {
            0..=6 if self.programs => self.exec(&id),
            0..=10 => self.agent(&id),
            11..=13 => self.choice(&id, depth),
            14..=17 => self.for_each(&id, depth),
            _ => self.repeat(&id, depth),
        }
    }

    fn exec(&mut self, id: &str) -> Json {
        let mut step = json!({ "id": id, "kind": "exec" });
        if self.dice.percent(50) {
            step["shell"] = self.text(Usage::Run).into();
        } else {
            let args: Vec<String> =
                (0..self.dice.below(3)).map(|_| self.text(Usage::Data)).collect();
            step["run"] = json!({ "kind": "cmd", "cmd": format!("c{}", self.text(Usage::Run)) });
            if !args.is_empty() || self.dice.percent(50) {
                step["run"]["args"] = json!(args);
            }
        }
        if self.dice.percent(50) {
            step["retries"] = (1 + self.dice.below(5)).into();
        }
        if self.dice.percent(30) {
            step["env"] = json!({ "A": self.text(Usage::Data), "C": self.text(Usage::Data) });
        }
        let kind = *self.dice.pick(&[
            ResultKind::Json,
            ResultKind::Json,
            ResultKind::Text,
            ResultKind::Files,
        ]);
        match kind {
            ResultKind::Json => step["io"] = self.stream(),
            ResultKind::Files => step["io"] = self.files(),
            ResultKind::Text if self.dice.percent(20) => step["io"] = json!({ "mode": "none" }),
            ResultKind::Text | ResultKind::Items => {}
        }
        self.known.push((id.to_owned(), kind));
        step
    }

    fn stream(&mut self) -> Json {
        let mut io = json!({ "mode": "stream" });
        let readable: Vec<String> = self.known_with(ResultKind::Json);
        let loops = self.plain_loops();
        if !loops.is_empty() && self.dice.percent(20) {
            let id = self.dice.pick(&loops).clone();
            let last = json!({ "stepId": id, "jsonPath": "$[0]" });
            io["inputFrom"] = if self.dice.percent(70) { json!(id) } else { last };
        } else if !readable.is_empty() && self.dice.percent(50) {
            let id = self.dice.pick(&readable).clone();
            io["inputFrom"] = match self.dice.below(4) {
                0 => json!({ "stepId": id, "jsonPath": "$.list" }),
                1 => json!({ "stepId": id, "jsonPath": "$.list[0]" }),
                2 => json!({ "stepId": id }),
                _ => json!(id),
            };
        }
        io
    }

    fn files(&mut self) -> Json {
        let path = |text: String| json!({ "path": format!("d/{text}.json") });
        let mut io = json!({ "out": { "out": path(self.text(Usage::Data)) } });
        if self.dice.percent(30) {
            io["in"] = json!({ "b": path(self.text(Usage::Data)), "a": path("x".to_owned()) });
        }
        if self.dice.percent(50) {
            io["mode"] = "file".into();
        }
        io
    }

    fn agent(&mut self, id: &str) -> Json {
        let prompt = self.text(Usage::Data);
        let mut step = json!({ "id": id, "kind": "agent", "prompt": prompt, "schema": random_replies::schema() });
        if self.dice.percent(70) {
            step["input"] = self.shape(2);
        }
        if self.dice.percent(50) {
            step["retries"] = (1 + self.dice.below(5)).into();
        }
        if self.dice.percent(30) {
            step["session"] = json!({ "mode": "sticky" });
            if self.dice.percent(50) {
                step["session"]["label"] = (*self.dice.pick(&["one", "two"])).into();
            }
            if self.dice.percent(30) {
                step["session"]["reset"] = self.dice.percent(50).into();
            }
        }
        self.settings(&mut step);
        self.known.push((id.to_owned(), ResultKind::Json));
        step
    }

    /// Adds the settings of an agent step. The budget is more than any step spends here.
    fn settings(&mut self, step: &mut Json) {
        if self.dice.percent(15) {
            step["description"] = "asks something".into();
        }
        if self.dice.percent(15) {
            step["model"] = (*self.dice.pick(&["small", "large"])).into();
        }
        if self.dice.percent(15) {
            step["allow"] = json!(["Bash(make:*)", "WebFetch"]);
        }
        if self.dice.percent(15) {
            step["budget"] = 2.5.into();
        }
    }

    fn choice(&mut self, id: &str, depth: usize) -> Json {
        let condition = self.condition(None);
        let before = self.known.len();
        let then = self.list(depth + 1);
        // The steps of one branch are hidden from the other, because only one of them runs: a path
        // to the other would never have a value.
        let taken = self.known.split_off(before);
        let mut step = json!({ "id": id, "kind": "if", "cond": condition, "then": then });
        if self.dice.percent(60) {
            step["else"] = self.list(depth + 1).into();
        }
        // Known again afterwards, although they may not have run: some paths should lead nowhere.
        self.known.extend(taken);
        step
    }

    fn for_each(&mut self, id: &str, depth: usize) -> Json {
        let (path, from_step) = self.list_path();
        let name = (*self.dice.pick(&["item", "item", "x", "n"])).to_owned();
        self.locals.push(Local { name: name.clone(), from_step });
        let body = self.list(depth + 1);
        self.locals.pop();
        let mut step =
            json!({ "id": id, "kind": "forEach", "listPath": path, "itemVar": name, "body": body });
        if self.dice.percent(50) {
            step["parallel"] = true.into();
            if self.dice.percent(40) {
                step["maxParallel"] = (1 + self.dice.below(5)).into();
            }
            if self.dice.percent(60) {
                step["onError"] = (*self.dice.pick(&["collect", "collect", "fail"])).into();
            }
        }
        self.knows_items(id, &step);
        step
    }

    /// Makes the items of a loop readable for the steps behind it.
    fn knows_items(&mut self, id: &str, step: &Json) {
        self.bodies.insert(id.to_owned(), LoopBody::of(step));
        self.known.push((id.to_owned(), ResultKind::Items));
    }

    /// Returns the end of a path to the items of a loop.
    fn items_end(&mut self, id: &str) -> String {
        let LoopBody { ends, collects } = self.bodies.get(id).cloned().unwrap_or_default();
        let number = self.dice.below(3);
        if !ends.is_empty() && (collects || self.dice.percent(60)) {
            return format!(".items[{number}]{}", self.dice.pick(&ends));
        }
        let all = if collects { ".items[7]".to_owned() } else { ".items".to_owned() };
        if self.dice.percent(50) { all } else { format!(".items[{}]", 7 * u64::from(collects)) }
    }

    fn list_path(&mut self) -> (String, bool) {
        let readable = self.known_with(ResultKind::Json);
        let local = self.locals.last().cloned();
        let loops = self.plain_loops();
        match (self.dice.below(12), local) {
            (0..=2, _) if !readable.is_empty() => {
                (format!("$.results.{}.json.list", self.dice.pick(&readable)), true)
            }
            (3, _) if !loops.is_empty() => {
                (format!("$.results.{}.items", self.dice.pick(&loops)), true)
            }
            (4, Some(local)) => (format!("$.locals.{}", local.name), local.from_step),
            (5..=6, Some(local)) => (format!("$.locals.{}.list", local.name), local.from_step),
            (7, _) if self.dice.percent(20) => {
                let result = self.known.first().map(|(id, _)| format!("$.results.{id}"));
                let mut paths = vec!["$.vars.n".to_owned(), "$.vars.gone".to_owned()];
                paths.extend(result);
                (self.dice.pick(&paths).clone(), true)
            }
            _ => {
                let lists =
                    ["list", "empty", "nested", "objects", "objects[0].list", "deep.list[0]"];
                (format!("$.vars.{}", self.dice.pick(&lists)), false)
            }
        }
    }

    fn repeat(&mut self, id: &str, depth: usize) -> Json {
        let before = self.known.len();
        let body = self.list(depth + 1);
        let inside = self.known.get(before..).and_then(|inside| inside.last()).cloned();
        // After the body, because the condition is checked with its results.
        let until = self.condition(inside);
        let most = 1 + self.dice.below(3);
        let mut step =
            json!({ "id": id, "kind": "while", "until": until, "maxIters": most, "body": body });
        if self.dice.percent(70) {
            step["onMaxIters"] = (*self.dice.pick(&["continue", "continue", "fail"])).into();
        }
        self.knows_items(id, &step);
        step
    }

    /// Returns a condition, often about one step.
    fn condition(&mut self, about: Option<(String, ResultKind)>) -> Json {
        let path = match about {
            Some((id, kind)) if self.dice.percent(70) => {
                let ends = match kind {
                    ResultKind::Json => ["", ".json.n", ".ok", ".json.deep"],
                    ResultKind::Files => ["", ".outputs.out.n", ".ok", ".stdout"],
                    ResultKind::Text => ["", ".stdout", ".ok", ".attempts"],
                    ResultKind::Items => [".items", ".items[0]", ".items[1]", ".items[9]"],
                };
                format!("$.results.{id}{}", self.dice.pick(&ends))
            }
            _ => format!("$.{}", self.path(Usage::Data, 40)),
        };
        let operator = *self.dice.pick(&["exists", "exists", "eq", "ne", "gt", "lt"]);
        let mut condition = json!({ "op": operator, "path": path });
        match operator {
            "exists" => {}
            "gt" | "lt" => {
                condition["value"] = self.dice.pick(&[json!(1), json!(2.5), json!(0)]).clone();
            }
            _ => {
                let values = [
                    json!(1.0),
                    json!(true),
                    json!("word"),
                    Json::Null,
                    json!(3),
                    json!([5, 6.0]),
                    json!({ "id": "x", "list": [] }),
                ];
                condition["value"] = self.dice.pick(&values).clone();
            }
        }
        condition
    }

    /// Returns a text with expressions, or with text that looks like expressions.
    fn text(&mut self, usage: Usage) -> String {
        (0..=self.dice.below(3)).map(|_| self.piece(usage)).collect()
    }

    fn piece(&mut self, usage: Usage) -> String {
        let looks = ["{{.Name}}", "{{!", "!}}", "{ {vars.n}}", "{{vars.n", "{{vars.n | up}}"];
        match self.dice.below(8) {
            0 => (*self.dice.pick(&looks)).to_owned(),
            1 => format!("{{{{{{{}}}}}}}", self.path(usage, 3)),
            2..=4 => format!("{{{{{}}}}}", self.path(usage, 3)),
            5 => format!("{{{{  {} }}}}", self.path(usage, 3)),
            _ => (*self.dice.pick(&["a", " ", "ä", "$x"])).to_owned(),
        }
    }

    fn shape(&mut self, depth: u32) -> Json {
        match self.dice.below(if depth == 0 { 3 } else { 6 }) {
            0 => json!(format!("{{{{ {} }}}}", self.path(Usage::Data, 3))),
            1 => json!(self.text(Usage::Data)),
            2 => self.dice.pick(&[json!(1), Json::Null, json!("plain"), json!([])]).clone(),
            3 => (0..self.dice.below(3)).map(|_| self.shape(depth - 1)).collect(),
            _ => {
                // Keys are not templates, so one looks like an expression and must stay as it is.
                let keys = ["a", "{{vars.n}}", "b"];
                let fields = keys.into_iter().take(1 + self.dice.index(3));
                let fields: Map<String, Json> =
                    fields.map(|key| (key.to_owned(), self.shape(depth - 1))).collect();
                Json::Object(fields)
            }
        }
    }

    /// Returns a path without its `$.`; in `risk` of 100 cases it may lead nowhere.
    fn path(&mut self, usage: Usage, risk: u64) -> String {
        let risky = self.dice.percent(risk);
        let local = self.locals.last().cloned();
        // A command must not contain a value from a step: validation refuses such a document.
        let local = local.filter(|local| usage == Usage::Data || !local.from_step);
        match (self.dice.below(3), local) {
            (0, Some(local)) => {
                let end =
                    if risky { *self.dice.pick(&[".id", ".list", ".list[0]", "[0]"]) } else { "" };
                format!("locals.{}{end}", local.name)
            }
            (1, _) if usage == Usage::Data && !self.known.is_empty() => self.result_path(risky),
            _ if risky => (*self.dice.pick(&["vars.gone", "vars.list[7]", "vars.n.x"])).to_owned(),
            _ => {
                let ends = [
                    "n",
                    "word",
                    "flag",
                    "none",
                    "braces",
                    "list",
                    "list[1]",
                    "nested[0][1]",
                    "empty",
                    "objects[1].id",
                    "deep.half",
                    "deep",
                ];
                format!("vars.{}", self.dice.pick(&ends))
            }
        }
    }

    fn result_path(&mut self, risky: bool) -> String {
        // The last step has most probably finished here.
        let index = if risky { self.dice.index(self.known.len()) } else { self.known.len() - 1 };
        let (id, kind) = self.known[index].clone();
        let ends: &[&str] = match (kind, risky) {
            (ResultKind::Json, false) => &[".ok", ".json", ".json.n", ".json.list"],
            (ResultKind::Json, true) => {
                &[".json.word", ".json.list[0]", ".json.deep.none", ".json.gone"]
            }
            (ResultKind::Files, _) => &[".outputs.out.n", ".outputs", ".stdout"],
            (ResultKind::Text, _) => &[".stdout", ".ok", ".attempts"],
            (ResultKind::Items, _) => return format!("results.{id}{}", self.items_end(&id)),
        };
        format!("results.{id}{}", self.dice.pick(ends))
    }

    /// Returns the loops without collected failures: a failed item would show its wording.
    fn plain_loops(&self) -> Vec<String> {
        let mut loops = self.known_with(ResultKind::Items);
        loops.retain(|id| self.bodies.get(id).is_some_and(|body| !body.collects));
        loops
    }

    fn known_with(&self, kind: ResultKind) -> Vec<String> {
        let known = self.known.iter().filter(|(_, left)| *left == kind);
        known.map(|(id, _)| id.clone()).collect()
    }

    /// Returns a step that shows the items of a loop, if the loop has ended.
    fn items_probes(&self, number: usize, id: &str) -> Option<Json> {
        let path = format!("results.{id}.items");
        // The wording of a collected failure is not specified.
        self.bodies.get(id).filter(|body| !body.collects)?;
        let run = json!({ "kind": "cmd", "cmd": "show", "args": [format!("{{{{{path}}}}}")] });
        let cond = json!({ "op": "exists", "path": format!("$.{path}") });
        let then = json!([{ "id": format!("q{number}"), "kind": "exec", "run": run }]);
        Some(json!({ "id": format!("p{number}"), "kind": "if", "cond": cond, "then": then }))
    }

    /// Returns steps that read the results of all others. The wording of a failure is not
    /// specified, so they read only its code.
    fn probes(&self) -> Vec<Json> {
        let shows = |id: String, seen: String| {
            let run = json!({ "kind": "cmd", "cmd": "show", "args": [seen] });
            json!([{ "id": id, "kind": "exec", "run": run }])
        };
        let probe = |(number, (id, kind)): (usize, &(String, ResultKind))| {
            if *kind == ResultKind::Items {
                return self.items_probes(number, id).into_iter().collect::<Vec<_>>();
            }
            let is = |op: &str, value: bool| json!({ "op": op, "path": format!("$.results.{id}.ok"), "value": value });
            let well = json!({
                "id": format!("p{number}"), "kind": "if", "cond": is("eq", true),
                "then": shows(format!("q{number}"), format!("{{{{results.{id}}}}}")),
            });
            let badly = json!({
                "id": format!("o{number}"), "kind": "if", "cond": is("eq", false),
                "then": shows(format!("r{number}"), format!("{{{{results.{id}.error}}}}")),
            });
            vec![well, badly]
        };
        self.known.iter().enumerate().flat_map(probe).collect()
    }
}

/// The position of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usage {
    /// In a command: no value from a step.
    Run,
    /// In data.
    Data,
}
