//! Documents walked to their end: every step leaves what its `shell` or `prompt` says, as JSON.

use serde_json::json;

use super::*;
use crate::crayfish::key::Iteration;
use crate::crayfish::render;
use crate::crayfish::stored::Stored;

/// A walk without a scheduler: every step is done at once, in the order in which branches come to theirs.
struct Walk {
    document: Document,
    vars: Map<String, Json>,
    flow: StepsState,
    /// What was done, by key, with what was rendered for it.
    done: Vec<String>,
    stuck: Option<Stuck>,
}

impl Walk {
    fn new(steps: &Json) -> Self {
        let vars = json!({ "three": [10, 20, 30], "none": [], "nested": [[1, 2], [3]], "one": 1 });
        let document = Document::parse(&json!({ "steps": steps, "vars": vars }));
        let document = document.unwrap_or_else(|problems| panic!("{problems:#?}"));
        let vars = document.vars.clone();
        Self { document, vars, flow: StepsState::default(), done: Vec::new(), stuck: None }
    }

    /// A result that was there before.
    fn knows(mut self, key: &str, result: Json, ok: bool) -> Self {
        self.flow.results.insert(key.parse().unwrap(), Stored::inline(result, ok));
        self
    }

    fn begin(&mut self, agent: &AgentId, parent: Option<&AgentId>, born: Vec<Iteration>) {
        let parent = parent.cloned();
        self.flow.apply(agent, &StepEvent::Begun { born, parent });
    }

    fn walked(mut self) -> Self {
        self.begin(&AgentId::main(), None, Vec::new());
        while let Some((_, agent)) = self.flow.ready.first().cloned() {
            let steps = Steps { document: &self.document, vars: &self.vars };
            match steps.next(&self.flow, &agent).expect("a branch that is ready comes to something")
            {
                Next::StepEvent(fact) => self.flow.apply(&agent, &fact),
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
        self.flow.apply(agent, &StepEvent::Splits);
        let branch = self.flow.branches[agent].clone();
        let outside = branch.loop_key().unwrap().iterations;
        for number in 0..count {
            let born = [outside.clone(), vec![Iteration { of: of.clone(), number }]].concat();
            self.begin(&AgentId::new(format!("{agent}_{of}{number}")), Some(agent), born);
        }
    }

    /// A `shell` is what an exec step leaves, read as JSON where it is any.
    fn does(&mut self, agent: &AgentId, step: StepIndex, key: Key) {
        self.flow.apply(agent, &StepEvent::Entered { step: key.step.clone(), gate: None });
        let steps = Steps { document: &self.document, vars: &self.vars };
        let scope = steps.scope(&self.flow, &self.flow.branches[agent]);
        let said = match &self.document.step(step).kind {
            Kind::Exec(exec) => {
                match render::exec(exec, &self.document.env, &scope).unwrap().program {
                    render::Program::Shell(text) => text,
                    render::Program::Cmd { args, .. } => args.join(" "),
                }
            }
            Kind::Agent(agent) => render::agent(agent, &scope).unwrap().prompt,
            other @ (Kind::If(_) | Kind::ForEach(_) | Kind::While(_)) => {
                panic!("{} is not done", other.name())
            }
        };
        let json = serde_json::from_str(&said).unwrap_or_else(|_| Json::String(said.clone()));
        self.done.push(format!("{key}: {said}"));
        let stored = Stored::inline(json!({ "ok": true, "json": json }), true);
        self.flow.apply(agent, &StepEvent::Done { key, stored });
    }

    fn saw(&self) -> Vec<&str> {
        self.done.iter().map(String::as_str).collect()
    }
}

/// An exec step that leaves this.
fn says(id: &str, text: &str) -> Json {
    let run = json!({ "kind": "cmd", "cmd": "echo", "args": [text] });
    json!({ "id": id, "kind": "exec", "run": run, "io": { "mode": "stream" } })
}

fn check(steps: &Json, expected: &[&str]) {
    let walk = Walk::new(steps).walked();
    assert_eq!(walk.stuck, None);
    assert_eq!(walk.saw(), expected);
    assert!(walk.flow.branches.is_empty(), "{:#?}", walk.flow.branches);
}

fn stuck(steps: &Json, code: ErrorCode, key: &str, message: &str) {
    let walk = Walk::new(steps).walked();
    let (key, message) = (key.parse().unwrap(), message.to_owned());
    assert_eq!(walk.stuck, Some(Stuck { code, key, message }));
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
fn a_condition_chooses_a_list_and_leaves_no_trace() {
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
fn conditions_may_stand_in_each_other_and_at_the_end() {
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
fn a_list_is_gone_through_in_order_under_keys_with_its_iterations() {
    let loops =
        |list| json!([each("l", list, &json!([says("x", "{{locals.item}}")])), says("z", "end")]);
    check(&loops("$.vars.three"), &["l[0].x: 10", "l[1].x: 20", "l[2].x: 30", "z: end"]);
    check(&loops("$.vars.none"), &["z: end"]);
    check(&json!([each("l", "$.vars.three", &json!([])), says("z", "end")]), &["z: end"]);
}

#[test]
fn loops_stand_in_loops() {
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
fn what_is_no_list_is_not_gone_through() {
    let loops = |list| json!([each("l", list, &json!([]))]);
    stuck(&loops("$.vars.one"), ErrorCode::NotAnArray, "l", "$.vars.one is a number, not a list");
    stuck(&loops("$.vars.gone"), ErrorCode::NotAnArray, "l", "$.vars.gone has no value here");
}

#[test]
fn all_loops_together_take_so_many_iterations() {
    let mut walk = Walk::new(&json!([each("l", "$.vars.three", &json!([says("x", "1")]))]));
    // Two of the three, and the branch of the run itself.
    walk.flow.turned = MOST_TURNS - 3;
    let walk = walk.walked();
    assert_eq!(walk.saw(), ["l[0].x: 1", "l[1].x: 1"]);
    let message = "the loops of a run take 1000000 iterations".to_owned();
    let expected = Stuck { code: ErrorCode::TooLarge, key: "l".parse().unwrap(), message };
    assert_eq!(walk.stuck, Some(expected));
}

#[test]
fn a_list_is_the_one_that_was_there_when_the_loop_began() {
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
fn the_condition_is_weighed_once_more_after_the_last_iteration() {
    let first = json!({ "id": "y0", "kind": "exec", "shell": "true" });
    let step = json!({ "id": "w", "kind": "while", "maxIters": 1, "until": is("$.results.q"), "body": [says("q", "1")] });
    check(&json!([first, step]), &["y0: true", "w[0].q: 1"]);
}

#[test]
fn entering_a_loop_hides_what_its_body_left_before() {
    let inner = json!({ "id": "w", "kind": "while", "maxIters": 2, "until": is("$.results.x"), "body": [says("x", "1")] });
    let steps =
        json!([each("l", "$.vars.three", &json!([inner])), says("z", "{{results.x.json}}")]);
    let expected = ["l[0].w[0].x: 1", "l[1].w[0].x: 1", "l[2].w[0].x: 1", "z: 1"];
    check(&steps, &expected);
}

#[test]
fn a_loop_that_stands_in_the_next_iteration_of_another_sees_the_iteration_before() {
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
fn iterations_at_the_same_time_see_only_their_own() {
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
        Branch { at: Position::In("x".parse().unwrap()), ..walk.flow.branches[&main].clone() };
    let other = |n: u32| (AgentId::new(n.to_string()), busy.clone());
    let others = (0..MOST_STRANDS - 3).map(other);
    walk.flow.branches = others.chain(walk.flow.branches).collect();
    let next = |document: &Document, flow: &StepsState| {
        Steps { document, vars: &document.vars }.next(flow, &main)
    };
    let loops = |next| matches!(next, Some(Next::StepEvent(StepEvent::Loops { .. })));
    assert!(loops(next(&walk.document, &walk.flow)));
    walk.flow.branches.extend([other(MOST_STRANDS)]);
    let message = "$.vars.three has 3 items; parallel loops take 10000".to_owned();
    let stuck = Stuck { code: ErrorCode::TooLarge, key: "l".parse().unwrap(), message };
    assert_eq!(next(&walk.document, &walk.flow), Some(Next::Fails(stuck)));
    let sequential = Walk::new(&json!([each("l", "$.vars.three", &body)])).document;
    assert!(loops(next(&sequential, &walk.flow)), "one after the other there is always room");
}

#[test]
fn afterwards_the_latest_is_that_of_the_last_item() {
    let first = json!({ "op": "eq", "path": "$.locals.item", "value": 10 });
    let body = json!([{ "id": "g", "kind": "if", "cond": first, "then": [says("x", "first")] }]);
    let gate = json!({ "id": "seen", "kind": "if", "cond": is("$.results.x"), "then": [says("yes", "1")], "else": [says("no", "1")] });
    let steps = json!([parallel("l", "$.vars.three", &body), gate]);
    check(&steps, &["l[0].x: first", "no: 1"]);
}

#[test]
fn loops_in_parallel_iterations_have_keys_and_locals_of_both() {
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
fn what_is_known_is_not_done_again_and_seen_when_it_is_reached() {
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
fn four_hundred_loops_stand_in_each_other() {
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
