//! `inputFrom`: the steps that can have left JSON before they are read.

use super::*;

fn stream(id: &str, from: &Value) -> Value {
    let io = json!({ "mode": "stream", "inputFrom": from });
    json!({ "id": id, "kind": "exec", "shell": "x", "io": io })
}

fn reads(from: &str) -> Value {
    stream("reader", &from.into())
}

fn gate(then: &Value, otherwise: &Value) -> Value {
    let cond = json!({ "op": "exists", "path": "$.vars.x" });
    json!({ "id": "gate", "kind": "if", "cond": cond, "then": then, "else": otherwise })
}

fn repeat(body: &Value) -> Value {
    let until = json!({ "op": "exists", "path": "$.vars.x" });
    json!({ "id": "repeat", "kind": "while", "until": until, "maxIters": 2, "body": body })
}

#[test]
fn source_is_a_step_with_optional_path() {
    let check = |from: Value, expected: &[(&str, &str)]| {
        check_steps(&json!([agent("a"), stream("s", &from)]), expected);
    };
    check(json!("a"), &[]);
    check(json!({ "stepId": "a", "jsonPath": "$.x" }), &[]);
    check(
        json!(5),
        &[("/1/io/inputFrom", "a step id, or an object with `stepId`, is expected, not a number")],
    );
    check(json!({}), &[("/1/io/inputFrom", "`inputFrom` needs the key `stepId`")]);
    check(
        json!({ "stepId": "b", "jsonpath": "$", "jsonPath": "x" }),
        &[
            ("/1/io/inputFrom/jsonpath", "`inputFrom` has no key `jsonpath`"),
            ("/1/io/inputFrom/jsonPath", "`x` is not a path: it must begin with `$`"),
            ("/1/io/inputFrom/stepId", "there is no step `b`"),
        ],
    );
    check(json!("1 2"), &[("/1/io/inputFrom", "there is no step `1 2`")]);
}

#[test]
fn a_source_leaves_json() {
    let at = "/1/io/inputFrom";
    let check = |source: Value, expected: &[(&str, &str)]| {
        check_steps(&json!([source, reads("source")]), expected);
    };
    check(agent("source"), &[]);
    check(stream("source", &"other".into()), &[("/0/io/inputFrom", "there is no step `other`")]);
    check(exec("source"), &[(at, "the step `source` leaves no `json`: its mode is `none`")]);
    let mut files = exec("source");
    files["io"] = json!({ "out": {} });
    check(files, &[(at, "the step `source` leaves no `json`: its mode is `file`")]);
    let list = |body: Value| each("source", "$.vars.l", "i", &body);
    check(list(json!([])), &[]);
    let within = json!([list(json!([reads("source")]))]);
    let message = "the `items` of `source` exist only after the loop has ended";
    check_steps(&within, &[("/0/body/0/io/inputFrom", message)]);
    let mut choice = gate(&json!([]), &json!([]));
    choice["id"] = "source".into();
    check(choice, &[(at, "the step `source` leaves no `json`: its kind is `if`")]);
    check(agent("sources"), &[(at, "there is no step `source`; did you mean `sources`?")]);
    // An unreadable source causes no follow-up problem at its readers.
    let kinds = "there are `exec`, `agent`, `if`, `forEach` and `while`; did you mean `agent`?";
    check(
        json!({ "id": "source", "kind": "agnet" }),
        &[("/0/kind", &format!("unknown kind `agnet`: {kinds}"))],
    );
    let mut lost = exec("source");
    lost["shell"] = "{{locals.x}}".into();
    check(lost, &[("/0/shell", "no forEach around this step binds `x`")]);
}

#[test]
fn source_problems_are_reported_at_their_step() {
    let mut other = exec("other");
    other["shel"] = 1.into();
    check_steps(
        &json!([reads("gone"), other]),
        &[
            ("/0/io/inputFrom", "there is no step `gone`"),
            ("/1/shel", "an exec step has no key `shel`"),
        ],
    );
}

#[test]
fn a_source_can_have_run_before() {
    let later = "the step `a` comes later than this one";
    let otherwise = "the step `a` runs only when this one does not";
    let list = |body: Value| each("list", "$.vars.l", "i", &body);
    let parallel = |body: Value| {
        let mut step = list(body);
        step["parallel"] = true.into();
        step
    };
    let (a, reader) = (agent("a"), reads("a"));
    check_steps(&json!([a, reader]), &[]);
    check_steps(&json!([reader, a]), &[("/0/io/inputFrom", later)]);
    check_steps(
        &json!([reads("reader")]),
        &[("/0/io/inputFrom", "the step `reader` cannot read its own output")],
    );
    // Branches of an `if`: after the `if` and within the same branch, never in the other one.
    check_steps(&json!([gate(&json!([a]), &json!([])), reader]), &[]);
    check_steps(&json!([gate(&json!([a, reader]), &json!([]))]), &[]);
    check_steps(
        &json!([gate(&json!([a]), &json!([reader]))]),
        &[("/0/else/0/io/inputFrom", otherwise)],
    );
    check_steps(
        &json!([gate(&json!([reader]), &json!([a]))]),
        &[("/0/then/0/io/inputFrom", otherwise)],
    );
    // Loops: an earlier iteration of the same loop, in either branch.
    check_steps(&json!([list(json!([a])), reader]), &[]);
    check_steps(&json!([repeat(&json!([reader, a]))]), &[]);
    check_steps(&json!([list(json!([reader, a]))]), &[]);
    check_steps(&json!([repeat(&json!([gate(&json!([reader]), &json!([a]))]))]), &[]);
    check_steps(&json!([list(json!([reader])), a]), &[("/0/body/0/io/inputFrom", later)]);
    // Iterations of a parallel loop do not see each other, and entering it hides the older ones.
    check_steps(&json!([parallel(json!([a, reader]))]), &[]);
    check_steps(&json!([parallel(json!([reader, a]))]), &[("/0/body/0/io/inputFrom", later)]);
    check_steps(
        &json!([repeat(&json!([parallel(json!([reader, a]))]))]),
        &[("/0/body/0/body/0/io/inputFrom", later)],
    );
    check_steps(&json!([parallel(json!([repeat(&json!([reader, a]))]))]), &[]);
}
