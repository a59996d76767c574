//! Paths and templates: which names may be used where.

use super::*;

const THERE_ARE: &str = "there are `vars`, `results` and `locals`";

#[test]
fn a_path_that_cannot_be_right_is_an_error() {
    let gate =
        |path: &str| json!({ "kind": "if", "cond": { "op": "exists", "path": path }, "then": [] });
    let begin = "it must begin with `$.vars`, `$.results` or `$.locals`";
    check_step(
        gate("results.a"),
        &[("/cond/path", &format!("`results.a` is not a path: {begin}"))],
    );
    check_step(
        gate("$.env.X"),
        &[("/cond/path", &format!("`$.env.X` names the unknown namespace `env`: {THERE_ARE}"))],
    );
    let syntax = "`.key` or `[n]` is expected, a key has letters, digits, `_` and `-`";
    let message = format!("`$.vars.a[x]` is not a path from its character 9 on: {syntax}");
    check_step(gate("$.vars.a[x]"), &[("/cond/path", &message)]);
    check_step(
        each("s", "$.results", "i", &json!([])),
        &[("/listPath", "`$.results` must name something in `results`, such as `results.x`")],
    );
    // A step that may not exist is no problem of the path.
    check_step(gate("$.results.nobody.json"), &[]);
}

#[test]
fn an_unknown_namespace_is_an_error_wherever_templates_stand() {
    let unknown = |name: &str| {
        format!(
            "`{name}` names the unknown namespace `{name}`: {THERE_ARE} \
             (a text that only looks so can be a value of `vars`)"
        )
    };
    check_step(
        json!({
            "kind": "exec", "shell": "{{a}} {{b}}", "env": { "E": "{{c}}" },
            "io": { "in": { "f": { "path": "{{d}}" } } },
        }),
        &[
            ("/shell", &unknown("a")),
            ("/shell", &unknown("b")),
            ("/env/E", &unknown("c")),
            ("/io/in/f/path", &unknown("d")),
        ],
    );
    check_step(
        json!({ "kind": "exec", "run": { "kind": "cmd", "cmd": "{{a}}", "args": ["x", "{{b}}"] } }),
        &[("/run/cmd", &unknown("a")), ("/run/args/1", &unknown("b"))],
    );
    check_step(
        json!({
            "kind": "agent", "prompt": "{{a}}", "schema": { "title": "{{not.a.template}}" },
            "input": { "{{key}}": [{ "x/y": "{{b}}" }, "{{.Name}}", "{{c}}"], "z": "{{vars.x}}" },
        }),
        &[
            ("/prompt", &unknown("a")),
            ("/input/{{key}}/0/x~1y", &unknown("b")),
            ("/input/{{key}}/2", &unknown("c")),
        ],
    );
}

#[test]
fn results_cannot_be_run() {
    let shell =
        "cannot stand in `shell`, where it would be run: pass it in `env`, or `args` of a `run`";
    let cmd = "cannot stand in `cmd`, where it would be run: pass it in `args` or `env`";
    check_step(
        json!({ "kind": "exec", "shell": "echo {{results.a.json.x}}", "env": { "X": "{{results.a.json.x}}" } }),
        &[("/shell", &format!("`{{{{results.a.json.x}}}}` {shell}"))],
    );
    let run = json!({ "kind": "cmd", "cmd": "{{ results.a }}", "args": ["{{results.a}}"] });
    check_step(
        json!({ "kind": "exec", "run": run, "io": { "out": { "f": { "path": "{{results.a.json}}" } } } }),
        &[("/run/cmd", &format!("`{{{{results.a}}}}` {cmd}"))],
    );
    check_step(
        json!({ "kind": "agent", "prompt": "{{results.a}}", "input": "{{results.a}}", "schema": {} }),
        &[],
    );
}

#[test]
fn neither_can_a_local_that_comes_from_results() {
    let run = |local: &str| json!({ "id": local, "kind": "exec", "shell": format!("x {{{{locals.{local}.y}}}}") });
    let message = |local: &str| {
        format!(
            "`{{{{locals.{local}.y}}}}` comes from a step's output and cannot stand in `shell`, \
             where it would be run: pass it in `env`, or `args` of a `run`"
        )
    };
    check_steps(
        &json!([each("l", "$.results.a.json", "i", &json!([run("i")]))]),
        &[("/0/body/0/shell", &message("i"))],
    );
    check_steps(&json!([each("l", "$.vars.a", "i", &json!([run("i")]))]), &[]);
    // Through another local, and another.
    let inner = |list: &str| {
        each("m", list, "j", &json!([each("n", "$.locals.j.z", "k", &json!([run("k")]))]))
    };
    check_steps(
        &json!([each("l", "$.results.a.json", "i", &json!([inner("$.locals.i.list")]))]),
        &[("/0/body/0/body/0/body/0/shell", &message("k"))],
    );
    check_steps(&json!([each("l", "$.vars.a", "i", &json!([inner("$.locals.i.list")]))]), &[]);
    // The innermost loop that binds a name counts, and only as long as it lasts.
    let again = each("m", "$.vars.a", "i", &json!([run("i")]));
    check_steps(&json!([each("l", "$.results.a.json", "i", &json!([again]))]), &[]);
    let again = each("m", "$.results.a.json", "i", &json!([]));
    check_steps(&json!([each("l", "$.vars.a", "i", &json!([again, run("i")]))]), &[]);
    let args = json!({ "id": "x", "kind": "exec", "run": { "kind": "cmd", "cmd": "x", "args": ["{{locals.i}}"] } });
    check_steps(&json!([each("l", "$.results.a.json", "i", &json!([args]))]), &[]);
}

#[test]
fn a_local_must_be_bound_by_a_loop_around() {
    let uses = |id: &str, local: &str| json!({ "id": id, "kind": "agent", "prompt": format!("{{{{locals.{local}}}}}"), "schema": {} });
    check_steps(
        &json!([
            uses("a", "item"),
            each("l", "$.vars.x", "item", &json!([uses("b", "item"), uses("c", "itme")])),
            uses("d", "item"),
        ]),
        &[
            ("/0/prompt", "no forEach around this step binds `item`"),
            ("/1/body/1/prompt", "no forEach around this step binds `itme`; did you mean `item`?"),
            ("/2/prompt", "no forEach around this step binds `item`"),
        ],
    );
    let until = json!({ "op": "exists", "path": "$.locals.i" });
    let repeat = json!({ "id": "w", "kind": "while", "until": until, "maxIters": 1, "body": [uses("x", "i")] });
    check_steps(&json!([each("l", "$.vars.x", "i", &json!([repeat]))]), &[]);
    check_steps(
        &json!([repeat, each("l", "$.locals.j", "j", &json!([]))]),
        &[
            ("/0/until/path", "no forEach around this step binds `i`"),
            ("/0/body/0/prompt", "no forEach around this step binds `i`"),
            ("/1/listPath", "no forEach around this step binds `j`"),
        ],
    );
}

#[test]
fn a_loop_that_cannot_be_read_is_the_only_problem() {
    let uses = json!({ "id": "a", "kind": "exec", "shell": "{{locals.i}}" });
    let mut step = each("l", "$.vars.x", "i", &json!([uses]));
    step["itemVar"] = json!(1);
    check_steps(&json!([step]), &[("/0/itemVar", "a string is expected, not a number")]);
    let after = json!({ "id": "b", "kind": "exec", "shell": "{{locals.i}}" });
    check_steps(
        &json!([step, after]),
        &[
            ("/0/itemVar", "a string is expected, not a number"),
            ("/1/shell", "no forEach around this step binds `i`"),
        ],
    );
    step["itemVar"] = json!("1");
    let rule = "letters, digits, `_` and `-`, beginning with a letter or `_`";
    check_steps(&json!([step]), &[("/0/itemVar", &format!("`1` is not a name: {rule}"))]);
    step["itemVar"] = json!("i");
    step["kind"] = json!("for");
    let kinds = "there are `exec`, `agent`, `if`, `forEach` and `while`";
    check_steps(&json!([step]), &[("/0/kind", &format!("unknown kind `for`: {kinds}"))]);
}

#[test]
fn the_environment_of_a_document_is_known_before_the_first_step() {
    check(
        &json!({ "env": { "A": "{{vars.x}}", "B": "{{results.a.json}}", "C": "{{locals.i}}" }, "steps": [] }),
        &[
            (
                "/env/B",
                "`{{results.a.json}}` is not known before the first step: use `env` of a step",
            ),
            ("/env/C", "`{{locals.i}}` is not known before the first step: use `env` of a step"),
        ],
    );
}

#[test]
fn what_a_step_left_must_not_stand_in_a_variable_that_is_run() {
    let step = |name: &str| {
        json!({
            "id": "a", "kind": "exec", "shell": "true", "env": { name: "{{results.a.stdout}}" },
        })
    };
    let message = "`{{results.a.stdout}}` cannot stand in `env`, where it would be run: pass it in \
                   a variable that nothing evaluates";
    for name in ["BASH_ENV", "LD_PRELOAD", "BASH_FUNC_x%%", "PATH"] {
        check_step(step(name), &[(&format!("/env/{name}"), message)]);
    }
    check_step(step("TITLE"), &[]);
}
