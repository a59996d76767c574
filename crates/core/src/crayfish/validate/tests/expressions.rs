//! Paths and templates: which names may be used where.

use super::*;

const THERE_ARE: &str = "there are `vars`, `results` and `locals`";

#[test]
fn impossible_path_is_an_error() {
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
    // A missing value is not a problem of the path.
    check_step(gate("$.results.a.json.x"), &[]);
}

#[test]
fn every_bad_expression_is_reported() {
    let advice = "(a text that only looks so can be a value of `vars`)";
    let nothing = "must name something in `vars`, such as `vars.x`";
    check_step(
        json!({ "kind": "agent", "prompt": "{{locals.x}} {{vars}} {{results.nobody.ok}}", "schema": {} }),
        &[
            ("/prompt", &format!("`vars` {nothing} {advice}")),
            ("/prompt", "no forEach around this step binds `x`"),
            ("/prompt", "there is no step `nobody`"),
        ],
    );
}

#[test]
fn unknown_namespace_is_an_error_in_every_template() {
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
        "is not allowed in `shell`, where it would be run: pass it in `env`, or `args` of a `run`";
    let cmd = "is not allowed in `cmd`, where it would be run: pass it in `args` or `env`";
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
            "`{{{{locals.{local}.y}}}}` comes from a step's output and is not allowed in `shell`, \
             where it would be run: pass it in `env`, or `args` of a `run`"
        )
    };
    check_steps(
        &json!([each("l", "$.results.a.json", "i", &json!([run("i")])), agent("a")]),
        &[("/0/body/0/shell", &message("i"))],
    );
    check_steps(&json!([each("l", "$.vars.a", "i", &json!([run("i")]))]), &[]);
    // The origin is followed through other locals.
    let inner = |list: &str| {
        each("m", list, "j", &json!([each("n", "$.locals.j.z", "k", &json!([run("k")]))]))
    };
    check_steps(
        &json!([
            each("l", "$.results.a.json", "i", &json!([inner("$.locals.i.list")])),
            agent("a")
        ]),
        &[("/0/body/0/body/0/body/0/shell", &message("k"))],
    );
    check_steps(&json!([each("l", "$.vars.a", "i", &json!([inner("$.locals.i.list")]))]), &[]);
    // The innermost loop that binds a name counts, and only inside its body.
    let again = each("m", "$.vars.a", "i", &json!([run("i")]));
    check_steps(&json!([each("l", "$.results.a.json", "i", &json!([again])), agent("a")]), &[]);
    let again = each("m", "$.results.a.json", "i", &json!([]));
    check_steps(&json!([each("l", "$.vars.a", "i", &json!([again, run("i")])), agent("a")]), &[]);
    let args = json!({ "id": "x", "kind": "exec", "run": { "kind": "cmd", "cmd": "x", "args": ["{{locals.i}}"] } });
    check_steps(&json!([each("l", "$.results.a.json", "i", &json!([args])), agent("a")]), &[]);
}

#[test]
fn local_must_be_bound_by_enclosing_loop() {
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
fn unreadable_loop_is_the_only_problem() {
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
fn document_env_reads_only_vars() {
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
fn step_output_is_refused_in_executed_variables() {
    let step = |name: &str| {
        json!({
            "kind": "exec", "shell": "true", "env": { name: "{{results.a.json}}" },
        })
    };
    let message = "`{{results.a.json}}` is not allowed in `env`, where it would be run: pass it in \
                   a variable that nothing evaluates";
    for name in ["BASH_ENV", "LD_PRELOAD", "BASH_FUNC_x%%", "PATH"] {
        check_step(step(name), &[(&format!("/env/{name}"), message)]);
    }
    check_step(step("TITLE"), &[]);
}

#[test]
fn path_to_unknown_step_is_an_error() {
    let gate = |id: &str, path: &str| json!({ "id": id, "kind": "if", "cond": { "op": "exists", "path": path }, "then": [] });
    check_steps(
        &json!([
            gate("g", "$.results.fetsh.json"),
            each("l", "$.results.nobody.json", "i", &json!([gate("h", "$.results.l2")])),
            json!({ "id": "p", "kind": "exec", "run": { "kind": "cmd", "cmd": "x", "args": ["{{results.gone}}"] } }),
            json!({ "id": "q", "kind": "agent", "prompt": "{{results.no.json}}", "input": ["{{results.no}}"], "schema": {} }),
            agent("fetch"),
        ]),
        &[
            ("/0/cond/path", "there is no step `fetsh`; did you mean `fetch`?"),
            ("/1/listPath", "there is no step `nobody`"),
            ("/1/body/0/cond/path", "there is no step `l2`; did you mean `l`?"),
            ("/2/run/args/0", "there is no step `gone`"),
            ("/3/prompt", "there is no step `no`"),
            ("/3/input/0", "there is no step `no`"),
        ],
    );
}

#[test]
fn path_may_lead_to_any_step() {
    let gate = |id: &str, path: &str, then: Value, otherwise: Value| json!({ "id": id, "kind": "if", "cond": { "op": "exists", "path": path }, "then": then, "else": otherwise });
    check_steps(
        &json!([
            gate("later", "$.results.z.json", json!([]), json!([])),
            gate("itself", "$.results.in", json!([agent("in")]), json!([])),
            gate(
                "other",
                "$.vars.x",
                json!([gate("across", "$.results.y.ok", json!([]), json!([]))]),
                json!([agent("y")])
            ),
            agent("z"),
        ]),
        &[],
    );
}

#[test]
fn path_leads_to_possible_result_fields() {
    let step = |id: &str, io: Value| json!({ "id": id, "kind": "exec", "shell": "x", "io": io });
    let collects = |body: Value| {
        let mut step = each("all", "$.vars.l", "i", &body);
        step["parallel"] = true.into();
        step["onError"] = "collect".into();
        step
    };
    let check = |path: &str, expected: Option<&str>| {
        let cond = json!({ "op": "exists", "path": format!("$.results.{path}") });
        let expected: Vec<(&str, &str)> =
            expected.iter().map(|message| ("/6/cond/path", *message)).collect();
        check_steps(
            &json!([
                exec("text"),
                step("files", json!({ "out": {} })),
                step("pipe", json!({ "mode": "stream" })),
                agent("ask"),
                each("each", "$.vars.l", "i", &json!([])),
                collects(json!([each("inner", "$.vars.l", "i", &json!([]))])),
                { "id": "gate", "kind": "if", "cond": cond, "then": [] },
            ]),
            &expected,
        );
    };
    let good = "text text.stdout text.attempts text.error files.outputs.a.b files.stdout \
                pipe.json[0].x pipe.stderr ask.json.x ask.errors[0] inner.error inner";
    for path in good.split(' ') {
        check(path, None);
    }
    let text = "its mode is `none`, it leaves `ok`, `mode`, `stdout`, `stderr`, `attempts`";
    check("text.json.x", Some(&format!("the step `text` leaves no `json`: {text}")));
    check("text.outputs", Some(&format!("the step `text` leaves no `outputs`: {text}")));
    check("text[0]", Some(&format!("the step `text` leaves no `[0]`: {text}")));
    check(
        "text.stdou",
        Some(&format!("the step `text` leaves no `stdou`: {text}; did you mean `stdout`?")),
    );
    let files = "its mode is `file`, it leaves `ok`, `mode`, `stdout`, `stderr`, `outputs`, \
                 `attempts`";
    check("files.json", Some(&format!("the step `files` leaves no `json`: {files}")));
    let pipe = "its mode is `stream`, it leaves `ok`, `mode`, `json`, `stderr`, `attempts`";
    check("pipe.stdout", Some(&format!("the step `pipe` leaves no `stdout`: {pipe}")));
    let ask = "its kind is `agent`, it leaves `ok`, `json`";
    check("ask.stdout", Some(&format!("the step `ask` leaves no `stdout`: {ask}")));
    let each = "its kind is `forEach`, it leaves `items`";
    check("each", Some(&format!("the step `each` leaves no result of its own: {each}")));
    check("all[0].inner", Some(&format!("the step `all` leaves no `[0]`: {each}")));
    check("gate.ok", Some("the step `gate` leaves nothing: its kind is `if`"));
    check("inner.json", Some(&format!("the step `inner` leaves no `json`: {each}")));
}

#[test]
fn path_leads_to_possible_items() {
    let is = |path: &str| json!({ "op": "exists", "path": path });
    let exec = |id: &str| json!({ "id": id, "kind": "exec", "shell": "x" });
    let each = |id: &str, body: Value| json!({ "id": id, "kind": "forEach", "listPath": "$.vars.l", "itemVar": "i", "body": body });
    let gate = |path: &str| {
        let path = format!("$.results.{path}");
        json!({ "id": "gate", "kind": "if", "cond": is(&path), "then": [] })
    };
    let choice =
        json!({ "id": "choice", "kind": "if", "cond": is("$.vars.l"), "then": [exec("b")] });
    let outer = each("outer", json!([exec("a"), choice, each("inner", json!([exec("c")]))]));
    let check = |path: &str, expected: Option<&str>| {
        let steps = json!([outer, exec("d"), gate(path)]);
        let expected = expected.map(|expected| ("/2/cond/path", expected));
        check_steps(&steps, expected.as_slice());
    };
    let good = "outer.items outer.items[3] outer.items[0].a outer.items[0].a.stdout \
                outer.items[0].b.error outer.items[0].inner.items \
                outer.items[0].inner.items[1].c.ok inner.items[0].c inner.items";
    for path in good.split(' ') {
        check(path, None);
    }
    let elsewhere = |step: &str| {
        format!(
            "the items of the loop `outer` have no step `{step}`: it is not directly in the body"
        )
    };
    check("outer.items[0].d", Some(&elsewhere("d")));
    check("outer.items[0].c", Some(&elsewhere("c")));
    check("outer.items[0].aa", Some("there is no step `aa`; did you mean `a`?"));
    let text = "its mode is `none`, it leaves `ok`, `mode`, `stdout`, `stderr`, `attempts`";
    let no_json = format!("the step `a` leaves no `json`: {text}");
    check("outer.items[0].a.json", Some(&no_json));
    let nothing = "the step `choice` leaves nothing: its kind is `if`";
    check("outer.items[0].choice", Some(nothing));
    let index = "the `items` of `outer` are a list: name one by its index, such as `items[0]`";
    check("outer.items.a", Some(index));
    let ids = "an item of `outer` has the results of its steps by their ids";
    check("outer.items[0][1]", Some(ids));
    let loops = "its kind is `forEach`, it leaves `items`";
    check("outer", Some(&format!("the step `outer` leaves no result of its own: {loops}")));
    check("outer.item", Some(&format!("the step `outer` leaves no `item`: {loops}")));
    // Inside the loop its list is not complete.
    let within =
        each("outer", json!([gate("outer.items"), each("inner", json!([gate("outer.items")]))]));
    let within = within.to_string().replacen("gate", "first", 1);
    let within: Value = serde_json::from_str(&within).unwrap();
    let message = "the `items` of `outer` exist only after the loop has ended";
    let expected = [("/0/body/0/cond/path", message), ("/0/body/1/body/0/cond/path", message)];
    check_steps(&json!([within]), &expected);
    let again = json!({ "id": "w", "kind": "while", "until": is("$.results.w.items"), "maxIters": 1,
        "body": [] });
    let message = "the `items` of `w` exist only after the loop has ended";
    check_steps(&json!([again]), &[("/0/until/path", message)]);
}

#[test]
fn output_reads_any_step_and_no_local() {
    let ask = json!({ "id": "ask", "kind": "agent", "prompt": "p", "schema": {} });
    let with = |output: Value| json!({ "steps": [ask], "output": output });
    let parsed = Document::parse(&with(json!({ "a": ["{{results.ask.json}}", 1] }))).unwrap();
    assert_eq!(parsed.output.unwrap().paths().count(), 1);
    assert_eq!(Document::parse(&json!({ "steps": [] })).unwrap().output, None);
    assert!(Document::parse(&with(Value::Null)).unwrap().output.is_some());
    let check = |output: Value, expected: &[(&str, &str)]| {
        let problems = Document::parse(&with(output)).unwrap_err();
        let found: Vec<(String, String)> =
            problems.into_iter().map(|problem| (problem.path, problem.message)).collect();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(path, message)| (path.as_str(), message.as_str())).collect();
        assert_eq!(found, expected);
    };
    check(
        json!("{{results.task.json}}"),
        &[("/output", "there is no step `task`; did you mean `ask`?")],
    );
    let message = "the step `ask` leaves no `stdout`: its kind is `agent`, it leaves `ok`, `json`";
    check(json!({ "b/c": [0, "{{results.ask.stdout}}"] }), &[("/output/b~1c/1", message)]);
    check(json!("{{locals.x}}"), &[("/output", "no forEach around this step binds `x`")]);
}

#[test]
fn io_without_files_has_no_outputs() {
    let bare = json!({ "id": "bare", "kind": "exec", "shell": "x", "io": {} });
    let cond = json!({ "op": "exists", "path": "$.results.bare.outputs" });
    let gate = json!({ "id": "gate", "kind": "if", "cond": cond, "then": [] });
    let leaves = "its mode is `none`, it leaves `ok`, `mode`, `stdout`, `stderr`, `attempts`";
    let message = format!("the step `bare` leaves no `outputs`: {leaves}");
    check_steps(&json!([bare, gate]), &[("/1/cond/path", &message)]);
}

#[test]
fn unreadable_step_may_have_any_field() {
    let gate = |id: &str, path: &str| json!({ "id": id, "kind": "if", "cond": { "op": "exists", "path": path }, "then": [] });
    let known = "there are `exec`, `agent`, `if`, `forEach` and `while`";
    check_steps(
        &json!([
            gate("g", "$.results.a.json"),
            gate("h", "$.results.b.stdout"),
            { "id": "a", "kind": "exec", "shell": "x", "io": 1 },
            { "id": "b", "kind": "exe" },
        ]),
        &[
            ("/2/io", "`io` is an object, not a number"),
            ("/3/kind", &format!("unknown kind `exe`: {known}; did you mean `exec`?")),
        ],
    );
}
