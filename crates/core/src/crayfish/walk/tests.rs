//! Documents that are walked to their end. Every step returns its `shell` or `prompt` as JSON.

use serde_json::json;

use super::*;
use crate::crayfish::key::Iteration;
use crate::crayfish::render;
use crate::crayfish::stored::Stored;

/// A walk without a scheduler: every step finishes at once, in the order in which branches reach
/// it.
struct Walk {
    document: Document,
    vars: Map<String, Json>,
    state: StepsState,
    /// The finished steps by key, with their rendered text.
    done: Vec<String>,
    stuck: Option<Stuck>,
}

impl Walk {
    fn new(steps: &Json) -> Self {
        let vars = json!({ "three": [10, 20, 30], "none": [], "nested": [[1, 2], [3]], "one": 1 });
        let document = Document::parse(&json!({ "steps": steps, "vars": vars }));
        let document = document.unwrap_or_else(|problems| panic!("{problems:#?}"));
        let vars = document.vars.clone();
        Self { document, vars, state: StepsState::default(), done: Vec::new(), stuck: None }
    }

    /// Adds a result from before the walk.
    fn knows(mut self, key: &str, result: Json, ok: bool) -> Self {
        self.state.results.insert(key.parse().unwrap(), Stored::inline(result, ok));
        self
    }

    fn begin(&mut self, agent: &AgentId, parent: Option<&AgentId>, born: Vec<Iteration>) {
        let parent = parent.cloned();
        let (settled, edited, repeated) = (Vec::new(), Vec::new(), Vec::new());
        self.state.apply(agent, &StepEvent::Begun { born, parent, settled, edited, repeated });
    }

    fn walked(mut self) -> Self {
        self.begin(&AgentId::main(), None, Vec::new());
        while let Some((_, agent)) = self.state.ready.first().cloned() {
            let steps = Interpreter { document: &self.document, vars: &self.vars };
            match steps
                .next(&self.state, &agent)
                .expect("a branch that is ready comes to something")
            {
                Next::StepEvent(fact) => self.state.apply(&agent, &fact),
                Next::Splits { of, count } => self.split(&agent, &of, count),
                Next::Does { step, key } => self.does(&agent, step, key),
                Next::Fails(stuck) => {
                    self.stuck = Some(stuck);
                    break;
                }
            }
        }
        self
    }

    fn split(&mut self, agent: &AgentId, of: &StepId, count: u32) {
        self.state.apply(agent, &StepEvent::LoopSplit);
        let branch = self.state.branches[agent].clone();
        let outside = branch.loop_key().unwrap().iterations;
        for number in 0..count {
            let born = [outside.clone(), vec![Iteration { of: of.clone(), number }]].concat();
            self.begin(&AgentId::new(format!("{agent}_{of}{number}")), Some(agent), born);
        }
    }

    // The text of `shell` is the result of an exec step, parsed as JSON if it is valid.
    fn does(&mut self, agent: &AgentId, step: StepIndex, key: StepKey) {
        self.state.apply(agent, &StepEvent::Entered { step: key.step.clone(), gate: None });
        let steps = Interpreter { document: &self.document, vars: &self.vars };
        let scope = steps.scope(&self.state, &self.state.branches[agent]);
        let said = match &self.document.step(step).kind {
            StepKind::Exec(exec) => {
                match render::exec(exec, &self.document.env, &scope).unwrap().command {
                    render::StepCommand::Shell(text) => text,
                    render::StepCommand::Cmd { args, .. } => args.join(" "),
                }
            }
            StepKind::Agent(agent) => render::agent(agent, &scope).unwrap().prompt,
            other @ (StepKind::If(_) | StepKind::ForEach(_) | StepKind::While(_)) => {
                panic!("{} is not done", other.name())
            }
        };
        let json = serde_json::from_str(&said).unwrap_or_else(|_| Json::String(said.clone()));
        self.done.push(format!("{key}: {said}"));
        let stored = Stored::inline(json!({ "ok": true, "json": json }), true);
        self.state.apply(agent, &StepEvent::Done { key, stored });
    }

    fn saw(&self) -> Vec<&str> {
        self.done.iter().map(String::as_str).collect()
    }
}

/// Returns an exec step with this result.
fn says(id: &str, text: &str) -> Json {
    let run = json!({ "kind": "cmd", "cmd": "echo", "args": [text] });
    json!({ "id": id, "kind": "exec", "run": run, "io": { "mode": "stream" } })
}

fn check(steps: &Json, expected: &[&str]) {
    let walk = Walk::new(steps).walked();
    assert_eq!(walk.stuck, None);
    assert_eq!(walk.saw(), expected);
    assert!(walk.state.branches.is_empty(), "{:#?}", walk.state.branches);
}

fn stuck(steps: &Json, code: ErrorCode, key: &str, message: &str) {
    let walk = Walk::new(steps).walked();
    let (key, message) = (key.parse().unwrap(), message.to_owned());
    assert_eq!(walk.stuck, Some(Stuck::new(code, key, message)));
}

fn is(path: &str) -> Json {
    json!({ "op": "exists", "path": path })
}

#[test]
fn steps_are_done_one_after_the_other() {
    check(&json!([]), &[]);
    let two = json!([says("a", "x"), says("b", "{{results.a.json}}!")]);
    check(&two, &["a: x", "b: x!"]);
}

#[test]
fn condition_chooses_a_list_without_an_event() {
    let choice = |path: &str, then: Json, or: Json| {
        let choice =
            json!({ "id": "gate", "kind": "if", "cond": is(path), "then": then, "else": or });
        json!([says("a", "1"), choice, says("z", "end")])
    };
    let (yes, no) = (json!([says("y", "yes")]), json!([says("n", "no")]));
    check(&choice("$.results.a", yes.clone(), no.clone()), &["a: 1", "y: yes", "z: end"]);
    check(&choice("$.results.z", yes.clone(), no.clone()), &["a: 1", "n: no", "z: end"]);
    check(&choice("$.results.z", yes, json!([])), &["a: 1", "z: end"]);
    check(&choice("$.results.a", json!([]), no), &["a: 1", "z: end"]);
}

#[test]
fn conditions_may_be_nested_and_last() {
    let mut steps = json!([says("deep", "found")]);
    for level in 0..100 {
        let id = format!("g{level}");
        steps = json!([{ "id": id, "kind": "if", "cond": is("$.vars.one"), "then": steps }]);
    }
    check(&steps, &["deep: found"]);
}

fn each(id: &str, list: &str, body: &Json) -> Json {
    json!({ "id": id, "kind": "forEach", "listPath": list, "itemVar": "item", "body": body })
}

#[test]
fn for_each_runs_items_in_order() {
    let loops =
        |list| json!([each("l", list, &json!([says("x", "{{locals.item}}")])), says("z", "end")]);
    check(&loops("$.vars.three"), &["l[0].x: 10", "l[1].x: 20", "l[2].x: 30", "z: end"]);
    check(&loops("$.vars.none"), &["z: end"]);
    check(&json!([each("l", "$.vars.three", &json!([])), says("z", "end")]), &["z: end"]);
}

#[test]
fn loops_may_be_nested() {
    let inner = json!({
        "id": "in", "kind": "forEach", "listPath": "$.locals.row", "itemVar": "cell",
        "body": [says("x", "{{locals.row}} {{locals.cell}}")],
    });
    let outer = json!({
        "id": "out", "kind": "forEach", "listPath": "$.vars.nested", "itemVar": "row", "body": [inner, says("y", "{{locals.row}}")],
    });
    let expected = [
        "out[0].in[0].x: [1,2] 1",
        "out[0].in[1].x: [1,2] 2",
        "out[0].y: [1,2]",
        "out[1].in[0].x: [3] 3",
        "out[1].y: [3]",
    ];
    check(&json!([outer]), &expected);
}

#[test]
fn for_each_refuses_a_value_without_items() {
    let loops = |list| json!([each("l", list, &json!([]))]);
    stuck(&loops("$.vars.one"), ErrorCode::NotAnArray, "l", "$.vars.one is a number, not a list");
    stuck(&loops("$.vars.gone"), ErrorCode::NotAnArray, "l", "$.vars.gone has no value here");
}

#[test]
fn iterations_of_all_loops_are_limited() {
    let mut walk = Walk::new(&json!([each("l", "$.vars.three", &json!([says("x", "1")]))]));
    // Two of the three iterations, and the main branch.
    walk.state.turned = MOST_TURNS - 3;
    let walk = walk.walked();
    assert_eq!(walk.saw(), ["l[0].x: 1", "l[1].x: 1"]);
    let message = "the loops of a run take 1000000 iterations".to_owned();
    let expected = Stuck::new(ErrorCode::TooLarge, "l".parse().unwrap(), message);
    assert_eq!(walk.stuck, Some(expected));
}

#[test]
fn loop_keeps_the_list_it_began_with() {
    // The body replaces the result in which the list was found.
    let steps = json!([
        { "id": "w", "kind": "while", "maxIters": 1, "until": is("$.vars.gone"), "onMaxIters": "continue", "body": [
            says("list", "[1,2]"),
            each("l", "$.results.list.json", &json!([says("x", "{{locals.item}} {{results.list.json}}")])),
        ]},
    ]);
    check(&steps, &["w[0].list: [1,2]", "w[0].l[0].x: 1 [1,2]", "w[0].l[1].x: 2 [1,2]"]);
}

#[test]
fn a_loop_ends_when_its_condition_holds() {
    let until = |until: Json, more: Json| {
        let mut step = json!({ "id": "w", "kind": "while", "maxIters": 3, "until": until, "body": [says("x", "1")] });
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([step, says("z", "end")])
    };
    check(&until(is("$.vars.one"), json!({})), &["z: end"]);
    check(&until(is("$.results.x"), json!({})), &["w[0].x: 1", "z: end"]);
    let never = || is("$.vars.gone");
    let thrice = ["w[0].x: 1", "w[1].x: 1", "w[2].x: 1", "z: end"];
    check(&until(never(), json!({ "onMaxIters": "continue" })), &thrice);
    let message = "`until` does not hold after 3 iterations";
    stuck(&until(never(), json!({})), ErrorCode::WhileNotConverged, "w", message);
}

#[test]
fn until_is_evaluated_after_the_last_iteration() {
    let first = json!({ "id": "y0", "kind": "exec", "shell": "true" });
    let step = json!({ "id": "w", "kind": "while", "maxIters": 1, "until": is("$.results.q"), "body": [says("q", "1")] });
    check(&json!([first, step]), &["y0: true", "w[0].q: 1"]);
}

#[test]
fn entering_a_loop_hides_earlier_body_results() {
    let inner = json!({ "id": "w", "kind": "while", "maxIters": 2, "until": is("$.results.x"), "body": [says("x", "1")] });
    let steps =
        json!([each("l", "$.vars.three", &json!([inner])), says("z", "{{results.x.json}}")]);
    let expected = ["l[0].w[0].x: 1", "l[1].w[0].x: 1", "l[2].w[0].x: 1", "z: 1"];
    check(&steps, &expected);
}

#[test]
fn inner_loop_sees_previous_outer_iteration() {
    let gate = json!({ "id": "g", "kind": "if", "cond": is("$.results.x"), "then": [says("again", "{{results.x.json}}")] });
    let steps = json!([each("l", "$.vars.nested", &json!([gate, says("x", "{{locals.item}}")]))]);
    check(&steps, &["l[0].x: [1,2]", "l[1].again: [1,2]", "l[1].x: [3]"]);
}

fn parallel(id: &str, list: &str, body: &Json) -> Json {
    let mut step = each(id, list, body);
    step["parallel"] = true.into();
    step
}

#[test]
fn parallel_iterations_see_only_their_own_results() {
    let body =
        json!([says("x", "{{locals.item}}"), says("y", "{{results.x.json}} {{results.a.json}}")]);
    let steps = json!([
        says("a", "0"),
        parallel("l", "$.vars.three", &body),
        says("z", "{{results.y.json}}")
    ]);
    let expected = [
        "a: 0",
        "l[0].x: 10",
        "l[0].y: 10 0",
        "l[1].x: 20",
        "l[1].y: 20 0",
        "l[2].x: 30",
        "l[2].y: 30 0",
        "z: 30 0",
    ];
    check(&steps, &expected);
    check(
        &json!([parallel("l", "$.vars.none", &json!([says("x", "1")])), says("z", "end")]),
        &["z: end"],
    );
    check(&json!([parallel("l", "$.vars.three", &json!([])), says("z", "end")]), &["z: end"]);
}

#[test]
fn parallel_loops_have_a_limit_together() {
    let body = json!([says("x", "1")]);
    let mut walk = Walk::new(&json!([parallel("l", "$.vars.three", &body)]));
    let main = AgentId::main();
    walk.begin(&main, None, Vec::new());
    let busy =
        Branch { at: Position::In("x".parse().unwrap()), ..walk.state.branches[&main].clone() };
    let other = |n: u32| (AgentId::new(n.to_string()), busy.clone());
    let others = (0..MOST_BRANCHES - 3).map(other);
    walk.state.branches = others.chain(walk.state.branches).collect();
    let next = |document: &Document, state: &StepsState| {
        Interpreter { document, vars: &document.vars }.next(state, &main)
    };
    let loops = |next| matches!(next, Some(Next::StepEvent(StepEvent::LoopEntered { .. })));
    assert!(loops(next(&walk.document, &walk.state)));
    walk.state.branches.extend([other(MOST_BRANCHES)]);
    let message = "$.vars.three has 3 items; parallel loops take 10000".to_owned();
    let stuck = Stuck::new(ErrorCode::TooLarge, "l".parse().unwrap(), message);
    assert_eq!(next(&walk.document, &walk.state), Some(Next::Fails(stuck)));
    let sequential = Walk::new(&json!([each("l", "$.vars.three", &body)])).document;
    assert!(loops(next(&sequential, &walk.state)), "one after the other there is always room");
}

#[test]
fn after_a_loop_the_last_item_is_visible() {
    let first = json!({ "op": "eq", "path": "$.locals.item", "value": 10 });
    let body = json!([{ "id": "g", "kind": "if", "cond": first, "then": [says("x", "first")] }]);
    let gate = json!({ "id": "seen", "kind": "if", "cond": is("$.results.x"), "then": [says("yes", "1")], "else": [says("no", "1")] });
    let steps = json!([parallel("l", "$.vars.three", &body), gate]);
    check(&steps, &["l[0].x: first", "no: 1"]);
}

#[test]
fn nested_parallel_loops_have_keys_and_locals() {
    let inner = |parallel: bool| {
        json!({
            "id": "in", "kind": "forEach", "listPath": "$.locals.row", "itemVar": "cell", "parallel": parallel,
            "body": [says("x", "{{locals.row}} {{locals.cell}}")],
        })
    };
    let outer = |inner: Json| {
        json!([{
            "id": "out", "kind": "forEach", "listPath": "$.vars.nested", "itemVar": "row", "parallel": true, "body": [inner],
        }])
    };
    let expected = ["out[0].in[0].x: [1,2] 1", "out[0].in[1].x: [1,2] 2", "out[1].in[0].x: [3] 3"];
    check(&outer(inner(false)), &expected);
    let mut walk = Walk::new(&outer(inner(true))).walked();
    walk.done.sort();
    assert_eq!(walk.saw(), expected);
}

#[test]
fn known_result_is_visible_once_reached() {
    let gate =
        json!({ "id": "g", "kind": "if", "cond": is("$.results.b"), "then": [says("early", "1")] });
    let steps = json!([gate, says("a", "new"), says("b", "new"), says("c", "{{results.b.json}}")]);
    let old = json!({ "ok": true, "json": "old" });
    let failed = json!({ "ok": false });
    let walk = Walk::new(&steps).knows("b", old, true).knows("a", failed, false).walked();
    assert_eq!(walk.saw(), ["a: new", "c: old"]);
}

#[test]
fn a_hundred_thousand_steps_are_walked() {
    let steps: Vec<Json> = (0..100_000).map(|n| says(&format!("s{n}"), "x")).collect();
    let walk = Walk::new(&Json::Array(steps)).walked();
    assert_eq!(walk.done.len(), 100_000);
}

#[test]
fn four_hundred_loops_may_be_nested() {
    let mut steps = json!([says("deep", "{{locals.item}}")]);
    for level in 0..400 {
        let step = json!({ "id": format!("l{level}"), "kind": "forEach", "listPath": "$.vars.only", "itemVar": "item", "body": steps });
        steps = json!([step]);
    }
    let mut walk = Walk::new(&steps);
    walk.vars.insert("only".into(), json!(["x"]));
    let walk = walk.walked();
    assert_eq!((walk.done.len(), walk.stuck), (1, None));
}

#[test]
fn walk_position_sorts_keys_as_they_are_reached() {
    let body = json!([says("z", "x"), { "id": "inner", "kind": "forEach", "listPath": "$.vars.three", "itemVar": "i", "body": [says("y", "x")] }, says("a", "x")]);
    let each = json!({ "id": "each", "kind": "forEach", "listPath": "$.vars.three", "itemVar": "item", "body": body });
    let walk = Walk::new(&json!([says("last", "x"), each, says("first", "x")])).walked();
    let key = |done: &String| done.split(": ").next().unwrap().parse::<StepKey>().unwrap();
    let reached: Vec<StepKey> = walk.done.iter().map(key).collect();
    let mut sorted = reached.clone();
    sorted.sort();
    assert_ne!(sorted, reached, "keys sort by name");
    sorted.sort_by_key(|key| walk.document.walk_position(key));
    assert_eq!(sorted, reached);
}

#[test]
fn items_of_a_loop_are_readable_after_it() {
    let first = json!({ "op": "eq", "path": "$.locals.item", "value": 10 });
    let body = json!([
        says("x", "{{locals.item}}"),
        { "id": "g", "kind": "if", "cond": first, "then": [says("y", "first")] },
    ]);
    for order in [each, parallel] {
        let show = says("z", "{{results.l.items[1].x.json}} {{results.l.items}}");
        let steps = json!([order("l", "$.vars.three", &body), show]);
        let walk = Walk::new(&steps).walked();
        let of = |json: Json| json!({ "ok": true, "json": json });
        let items = json!([{ "x": of(json!(10)), "y": of(json!("first")) }, { "x": of(json!(20)) },
            { "x": of(json!(30)) }]);
        assert_eq!(walk.saw().last(), Some(&&*format!("z: 20 {items}")));
        assert_eq!(walk.state.lists[&"l".parse().unwrap()], 3);
    }
    let empty = json!([each("l", "$.vars.none", &body), says("z", "{{results.l.items}}")]);
    check(&empty, &["z: []"]);
}

#[test]
fn items_of_nested_loops_are_inside_each_other() {
    let until = json!({ "op": "gt", "path": "$.results.x.json", "value": 1 });
    let inner = json!({
        "id": "in", "kind": "while", "until": until, "maxIters": 2, "onMaxIters": "continue",
        "body": [says("x", "{{locals.item[0]}}")],
    });
    let outer = |order: fn(&str, &str, &Json) -> Json| {
        json!([
            order("out", "$.vars.nested", &json!([inner])),
            says("one", "{{results.out.items[0].in.items[1].x.json}}"),
            says("two", "{{results.out.items[1].in.items}}"),
            says("all", "{{results.out.items[0]}}"),
            says("last", "{{results.in.items[0].x.json}}"),
        ])
    };
    for order in [each, parallel] {
        let walk = Walk::new(&outer(order)).walked();
        let of = |json: Json| json!({ "x": { "ok": true, "json": json } });
        let all = json!({ "in": { "items": [of(json!(1)), of(json!(1))] } });
        let expected = [
            "out[0].in[0].x: 1".to_owned(),
            "out[0].in[1].x: 1".to_owned(),
            "out[1].in[0].x: 3".to_owned(),
            "one: 1".to_owned(),
            format!("two: {}", json!([of(json!(3))])),
            format!("all: {all}"),
            "last: 3".to_owned(),
        ];
        assert_eq!(walk.saw(), expected);
    }
}

#[test]
fn items_can_be_looped_over() {
    let show = says("show", "{{locals.item.x.json}}");
    let deep = json!({
        "id": "deep", "kind": "forEach", "listPath": "$.locals.row.in.items", "itemVar": "cell",
        "body": [says("cell", "{{locals.cell.y.json}}")],
    });
    let rows = json!({
        "id": "rows", "kind": "forEach", "listPath": "$.results.out.items", "itemVar": "row",
        "body": [deep],
    });
    let inner = each("in", "$.vars.three", &json!([says("y", "{{locals.item}}")]));
    let steps = json!([
        each("l", "$.vars.three", &json!([says("x", "{{locals.item}}")])),
        parallel("m", "$.results.l.items", &json!([show])),
        { "id": "out", "kind": "while", "maxIters": 1, "onMaxIters": "continue",
          "until": is("$.results.rows.items"), "body": [inner] },
        rows,
    ]);
    let walk = Walk::new(&steps).walked();
    assert_eq!(walk.stuck, None);
    let shown = walk.done.iter().filter(|done| done.contains("show") || done.contains("cell"));
    let expected = [
        "m[0].show: 10",
        "m[1].show: 20",
        "m[2].show: 30",
        "rows[0].deep[0].cell: 10",
        "rows[0].deep[1].cell: 20",
        "rows[0].deep[2].cell: 30",
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    let no_list = json!([
        each("l", "$.vars.three", &json!([says("x", "1")])),
        each("m", "$.results.l.items[0]", &json!([])),
    ]);
    let message = "$.results.l.items[0] is an object, not a list";
    stuck(&no_list, ErrorCode::NotAnArray, "m", message);
}

#[test]
fn repeated_loop_has_items_of_its_last_execution() {
    let inner = each("in", "$.locals.row", &json!([says("x", "{{locals.item}}")]));
    let gate = json!({ "id": "g", "kind": "if", "cond": is("$.results.in.items"),
        "then": [says("before", "{{results.in.items}}")] });
    let outer = json!({
        "id": "out", "kind": "forEach", "listPath": "$.vars.nested", "itemVar": "row",
        "body": [gate, inner],
    });
    let steps = json!([outer, says("z", "{{results.in.items[0].x.json}}")]);
    let walk = Walk::new(&steps).walked();
    let of = |json: i32| json!({ "x": { "ok": true, "json": json } });
    let before = format!("out[1].before: {}", json!([of(1), of(2)]));
    let expected = ["out[0].in[0].x: 1", "out[0].in[1].x: 2", &before, "out[1].in[0].x: 3", "z: 3"];
    assert_eq!(walk.saw(), expected);
}

#[test]
fn unread_items_leave_no_trace() {
    let walk = Walk::new(&json!([each("l", "$.vars.three", &json!([says("x", "1")]))])).walked();
    assert!(walk.state.lists.is_empty());
}

#[test]
fn items_of_a_loop_are_an_input() {
    let reads = |from: Json| json!({ "id": "z", "kind": "exec", "shell": "x", "io": { "mode": "stream", "inputFrom": from } });
    let check = |from: Json, expected: Option<Json>| {
        let steps = json!([each("l", "$.vars.nested", &json!([says("x", "1")])), reads(from)]);
        let walk = Walk::new(&steps);
        let last = walk.document.find("z").unwrap();
        let mut walk = walk;
        // Stops before the step that reads, which `Walk::does` renders without looking at stdin.
        walk.begin(&AgentId::main(), None, Vec::new());
        loop {
            let steps = Interpreter { document: &walk.document, vars: &walk.vars };
            match steps.next(&walk.state, &AgentId::main()).unwrap() {
                Next::Does { step, .. } if step == last => break,
                Next::Does { step, key } => walk.does(&AgentId::main(), step, key),
                Next::StepEvent(fact) => walk.state.apply(&AgentId::main(), &fact),
                other @ (Next::Splits { .. } | Next::Fails(_)) => panic!("{other:?}"),
            }
        }
        let steps = Interpreter { document: &walk.document, vars: &walk.vars };
        let scope = steps.scope(&walk.state, &walk.state.branches[&AgentId::main()]);
        let source = walk.document.step(last).kind.input_source().unwrap();
        assert_eq!(source.lookup(&scope).as_deref(), expected.as_ref());
    };
    let item = json!({ "x": { "ok": true, "json": 1 } });
    check(json!("l"), Some(json!([item, item])));
    check(json!({ "stepId": "l", "jsonPath": "$[1].x.ok" }), Some(json!(true)));
    check(json!({ "stepId": "l", "jsonPath": "$[2]" }), None);
}
