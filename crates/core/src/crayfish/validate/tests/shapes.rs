//! Keys, types, ranges and words.

use super::*;

#[test]
fn a_document_has_its_keys_and_their_types() {
    check(&json!([]), &[("", "a workflow is an object, not an array")]);
    check(&json!("x"), &[("", "a workflow is an object, not a string")]);
    check(&json!({}), &[("", "a workflow needs the key `steps`")]);
    check(
        &json!({
            "name": 1, "version": "1", "vars": [], "env": "x", "steps": {}, "step": [], "$schema": 1,
        }),
        &[
            ("/step", "a workflow has no key `step`"),
            ("/$schema", "a string is expected, not a number"),
            ("/name", "a string is expected, not a number"),
            ("/version", "a number is expected, not a string"),
            ("/vars", "an object is expected, not an array"),
            ("/env", "an object is expected, not a string"),
            ("/steps", "an array is expected, not an object"),
        ],
    );
    check(
        &json!({ "env": { "A": 1, "B=": "x", "": "x", "C": null, "D": "a\0" }, "steps": [] }),
        &[
            ("/env/", "`` cannot be the name of an environment variable"),
            ("/env/A", "a string is expected, not a number"),
            ("/env/B=", "`B=` cannot be the name of an environment variable"),
            ("/env/C", "a string is expected, not null"),
            ("/env/D", "a NUL character cannot be handed to a program"),
        ],
    );
}

#[test]
fn a_step_has_an_id_and_a_kind() {
    let kinds = "there are `exec`, `agent`, `if`, `forEach` and `while`";
    let steps = json!([
        5,
        {},
        { "id": 1, "kind": 2 },
        { "id": "1a", "kind": "foreach" },
        { "id": "b", "kind": "switch", "whatever": 1 },
    ]);
    check_steps(
        &steps,
        &[
            ("/0", "a step is an object, not a number"),
            ("/1", "a step needs the key `id`"),
            ("/1", "a step needs the key `kind`"),
            ("/2/id", "a string is expected, not a number"),
            ("/2/kind", "a string is expected, not a number"),
            (
                "/3/id",
                "`1a` is not a name: letters, digits, `_` and `-`, beginning with a letter or `_`",
            ),
            ("/3/kind", &format!("unknown kind `foreach`: {kinds}; did you mean `forEach`?")),
            ("/4/kind", &format!("unknown kind `switch`: {kinds}")),
        ],
    );
}

#[test]
fn an_id_is_unique_in_the_whole_tree() {
    let gate = json!({
        "id": "g", "kind": "if", "cond": { "op": "exists", "path": "$.vars.x" },
        "then": [exec("a"), each("l", "$.vars.l", "i", &json!([exec("b")]))],
        "else": [exec("b"), exec("g")],
    });
    check_steps(
        &json!([exec("a"), gate, exec("b")]),
        &[
            ("/1/then/0/id", "the id `a` is taken by the step at /steps/0"),
            ("/1/else/0/id", "the id `b` is taken by the step at /steps/1/then/1/body/0"),
            ("/1/else/1/id", "the id `g` is taken by the step at /steps/1"),
            ("/2/id", "the id `b` is taken by the step at /steps/1/then/1/body/0"),
        ],
    );
}

#[test]
fn unknown_keys_are_errors_of_every_kind() {
    let exists = || json!({ "op": "exists", "path": "$.vars.x" });
    check_step(
        json!({ "kind": "exec", "shell": "x", "retry": 1, "cwd": "/" }),
        &[("/cwd", "an exec step has no key `cwd`"), ("/retry", "an exec step has no key `retry`")],
    );
    check_step(
        json!({ "kind": "agent", "prompt": "p", "schema": {}, "shema": {}, "shell": "x" }),
        &[
            ("/shell", "an agent step has no key `shell`"),
            ("/shema", "an agent step has no key `shema`"),
        ],
    );
    check_step(
        json!({ "kind": "if", "cond": exists(), "then": [], "body": [] }),
        &[("/body", "an if step has no key `body`")],
    );
    // A key that is present is never suggested.
    check_step(
        json!({ "kind": "if", "if": exists(), "then": [], "cond": exists() }),
        &[("/if", "an if step has no key `if`")],
    );
    check_step(
        json!({ "kind": "forEach", "listPath": "$.vars.l", "itemVar": "i", "body": [], "maxparallel": 2 }),
        &[("/maxparallel", "a forEach step has no key `maxparallel`; did you mean `maxParallel`?")],
    );
    check_step(
        json!({ "kind": "while", "until": exists(), "maxIters": 1, "body": [], "cond": exists() }),
        &[("/cond", "a while step has no key `cond`")],
    );
    check_step(
        json!({ "kind": "if", "cond": { "op": "exists", "path": "$.vars.x", "paths": 1 }, "then": [] }),
        &[("/cond/paths", "a condition has no key `paths`")],
    );
    check_step(
        json!({ "kind": "agent", "prompt": "p", "schema": {}, "session": { "modes": 1 } }),
        &[("/session/modes", "`session` has no key `modes`; did you mean `mode`?")],
    );
}

#[test]
fn an_exec_step_has_either_shell_or_run() {
    let both = json!({ "kind": "exec", "shell": "x", "run": { "kind": "cmd", "cmd": "x" } });
    check_step(both, &[("", "an exec step has either `shell` or `run`, not both")]);
    check_step(
        json!({ "kind": "exec", "shell": "{{locals.i}}", "run": { "kind": "cmd" } }),
        &[
            ("", "an exec step has either `shell` or `run`, not both"),
            ("/shell", "no forEach around this step binds `i`"),
            ("/run", "`run` needs the key `cmd`"),
        ],
    );
    check_step(json!({ "kind": "exec" }), &[("", "an exec step needs `shell` or `run`")]);
    check_step(
        json!({ "kind": "exec", "shell": ["x"] }),
        &[("/shell", "a string is expected, not an array")],
    );
    check_step(
        json!({ "kind": "exec", "run": "x" }),
        &[("/run", "`run` is an object, not a string")],
    );
    check_step(
        json!({ "kind": "exec", "run": { "arg": [] } }),
        &[
            ("/run/arg", "`run` has no key `arg`; did you mean `args`?"),
            ("/run", "`run` needs the key `kind`"),
            ("/run", "`run` needs the key `cmd`"),
        ],
    );
    check_step(
        json!({ "kind": "exec", "run": { "kind": "sh", "cmd": "", "args": ["a", 1, "b\0"] } }),
        &[
            ("/run/kind", "must be `cmd`, not `sh`"),
            ("/run/cmd", "the name of a program cannot be empty"),
            ("/run/args/1", "a string is expected, not a number"),
            ("/run/args/2", "a NUL character cannot be handed to a program"),
        ],
    );
    check_step(
        json!({ "kind": "exec", "run": { "kind": "cmd", "cmd": "x", "args": "y" } }),
        &[("/run/args", "an array is expected, not a string")],
    );
}

#[test]
fn caps_are_from_one_to_five() {
    let range = "a whole number from 1 to 5 is expected, not";
    for (value, found) in [
        (json!(0), "0"),
        (json!(6), "6"),
        (json!(-1), "-1"),
        (json!(1.5), "1.5"),
        (json!("3"), "a string"),
        (json!(null), "null"),
        (json!(true), "a boolean"),
        (json!(1e300), "1e+300"),
    ] {
        let message = format!("{range} {found}");
        check_step(
            json!({ "kind": "exec", "shell": "x", "retries": value }),
            &[("/retries", &message)],
        );
        check_step(
            json!({ "kind": "agent", "prompt": "p", "schema": {}, "retries": value }),
            &[("/retries", &message)],
        );
        let until = json!({ "op": "exists", "path": "$.vars.x" });
        check_step(
            json!({ "kind": "while", "until": until, "body": [], "maxIters": value }),
            &[("/maxIters", &message)],
        );
    }
}

#[test]
fn other_numbers_have_their_ranges_too() {
    check_step(
        json!({ "kind": "exec", "shell": "x", "timeoutMs": 0 }),
        &[("/timeoutMs", "a whole number from 1 to 2147483647 is expected, not 0")],
    );
    let mut step = each("s", "$.vars.l", "i", &json!([]));
    step["parallel"] = true.into();
    step["maxParallel"] = 0.into();
    step["onError"] = "ignore".into();
    check_step(
        step,
        &[
            ("/maxParallel", "a whole number from 1 to 1000 is expected, not 0"),
            ("/onError", "`ignore` is not one of `fail`, `collect`"),
        ],
    );
}

#[test]
fn keys_of_parallel_loops_need_a_parallel_loop() {
    for parallel in [None, Some(false)] {
        let mut step = each("s", "$.vars.l", "i", &json!([]));
        if let Some(parallel) = parallel {
            step["parallel"] = parallel.into();
        }
        step["maxParallel"] = 2.into();
        step["onError"] = "fail".into();
        check_step(
            step,
            &[
                ("/maxParallel", "`maxParallel` needs `parallel: true`"),
                ("/onError", "`onError` needs `parallel: true`"),
            ],
        );
    }
    let mut step = each("s", "$.vars.l", "i", &json!([]));
    step["onError"] = "continue".into();
    check_step(
        step,
        &[
            ("/onError", "`onError` needs `parallel: true`"),
            ("/onError", "`continue` is not one of `fail`, `collect`"),
        ],
    );
    let mut step = each("s", "$.vars.l", "i", &json!([]));
    step["parallel"] = "yes".into();
    check_step(step, &[("/parallel", "a boolean is expected, not a string")]);
}

#[test]
fn agent_step_needs_prompt_and_schema() {
    check_step(
        json!({ "kind": "agent" }),
        &[
            ("", "an agent step needs the key `prompt`"),
            ("", "an agent step needs the key `schema`"),
        ],
    );
    check_step(
        json!({
            "kind": "agent", "prompt": 1, "schema": "Name", "assigneeAgentId": 1,
            "session": { "mode": "stick", "label": 1, "reset": 1 },
        }),
        &[
            ("/prompt", "a string is expected, not a number"),
            ("/schema", "a JSON Schema (an object or a boolean) is expected, not a string"),
            ("/assigneeAgentId", "a string is expected, not a number"),
            (
                "/session/mode",
                "`stick` is not one of `ephemeral`, `sticky`; did you mean `sticky`?",
            ),
            ("/session/label", "a string is expected, not a number"),
            ("/session/reset", "a boolean is expected, not a number"),
        ],
    );
    check_step(
        json!({ "kind": "agent", "prompt": "p", "schema": {}, "session": "sticky" }),
        &[("/session", "`session` is an object, not a string")],
    );
}

#[test]
fn steps_that_hold_steps_need_their_keys() {
    check_step(
        json!({ "kind": "if" }),
        &[("", "an if step needs the key `cond`"), ("", "an if step needs the key `then`")],
    );
    check_step(
        json!({ "kind": "if", "cond": true, "then": {}, "else": null }),
        &[
            ("/cond", "a condition is an object, not a boolean"),
            ("/then", "an array is expected, not an object"),
            ("/else", "an array is expected, not null"),
        ],
    );
    check_step(
        json!({ "kind": "forEach" }),
        &[
            ("", "a forEach step needs the key `listPath`"),
            ("", "a forEach step needs the key `itemVar`"),
            ("", "a forEach step needs the key `body`"),
        ],
    );
    check_step(
        json!({ "kind": "forEach", "listPath": "$.vars.l", "itemVar": "a.b", "body": 1 }),
        &[
            (
                "/itemVar",
                "`a.b` is not a name: letters, digits, `_` and `-`, beginning with a letter or `_`",
            ),
            ("/body", "an array is expected, not a number"),
        ],
    );
    check_step(
        json!({ "kind": "while" }),
        &[
            ("", "a while step needs the key `until`"),
            ("", "a while step needs the key `maxIters`"),
            ("", "a while step needs the key `body`"),
        ],
    );
    let until = json!({ "op": "exists", "path": "$.vars.x" });
    check_step(
        json!({ "kind": "while", "until": until, "maxIters": 1, "body": [], "onMaxIters": "contineu" }),
        &[("/onMaxIters", "`contineu` is not one of `fail`, `continue`; did you mean `continue`?")],
    );
}

#[test]
fn condition_has_operator_path_and_mostly_value() {
    let check = |condition: Value, expected: &[(&str, &str)]| {
        let step = json!({ "kind": "if", "cond": condition, "then": [] });
        below("/cond", expected, &|expected| check_step(step.clone(), expected));
    };
    let path = "$.vars.x";
    check(
        json!({}),
        &[("", "a condition needs the key `op`"), ("", "a condition needs the key `path`")],
    );
    check(
        json!({ "op": "equals", "path": path }),
        &[("/op", "`equals` is not one of `exists`, `eq`, `ne`, `gt`, `lt`")],
    );
    check(
        json!({ "op": "EQ", "path": path, "value": 1 }),
        &[("/op", "`EQ` is not one of `exists`, `eq`, `ne`, `gt`, `lt`; did you mean `eq`?")],
    );
    check(
        json!({ "op": "exists", "path": path, "value": 1 }),
        &[("/value", "`exists` has no `value`")],
    );
    check(json!({ "op": "eq", "path": path }), &[("", "a condition needs the key `value`")]);
    check(
        json!({ "op": "lt", "path": path, "value": "1" }),
        &[("/value", "a number is expected, not a string")],
    );
    check(json!({ "op": "exists", "path": 5 }), &[("/path", "a string is expected, not a number")]);
}

#[test]
fn io_keys_need_their_mode() {
    let check = |io: Value, expected: &[(&str, &str)]| {
        let step = json!({ "kind": "exec", "shell": "x", "io": io });
        below("/io", expected, &|expected| check_step(step.clone(), expected));
    };
    check(json!("file"), &[("", "`io` is an object, not a string")]);
    check(
        json!({ "mode": "files", "input": {} }),
        &[
            ("/input", "`io` has no key `input`"),
            ("/mode", "`files` is not one of `none`, `file`, `stream`; did you mean `file`?"),
        ],
    );
    check(
        json!({ "mode": "none", "in": {}, "outputSchema": {} }),
        &[
            ("/in", "`in` needs the mode `file`, and the mode here is `none`"),
            (
                "/outputSchema",
                "`outputSchema` needs the mode `stream`, and the mode here is `none`",
            ),
        ],
    );
    check(
        json!({ "mode": "stream", "out": {} }),
        &[("/out", "`out` needs the mode `file`, and the mode here is `stream`")],
    );
    check(
        json!({ "in": {}, "inputSchema": {} }),
        &[("/inputSchema", "`inputSchema` needs the mode `stream`, and the mode here is `file`")],
    );
    check(
        json!({ "inputFrom": "x" }),
        &[("/inputFrom", "`inputFrom` needs the mode `stream`, and the mode here is `none`")],
    );
    check(
        json!({ "mode": "stream", "inputSchema": {}, "outputSchema": [] }),
        &[
            ("/outputSchema", "a JSON Schema (an object or a boolean) is expected, not an array"),
            ("/inputSchema", "`inputSchema` needs `inputFrom`: without it stdin is empty"),
        ],
    );
}

#[test]
fn a_file_stays_inside_the_workspace() {
    let check = |path: Value, expected: &str| {
        let files = json!({ "f": { "path": path } });
        let step = json!({ "kind": "exec", "shell": "x", "io": { "out": files } });
        match expected {
            "" => check_step(step, &[]),
            _ => check_step(step, &[("/io/out/f/path", expected)]),
        }
    };
    let relative = "a path must be relative to the workspace, without a leading `/`";
    let inside = "a path must stay inside the workspace, without `..`";
    for path in [
        "a.json",
        "./a",
        "a/b/c",
        "..a",
        "a..",
        "a/...",
        "{{vars.d}}..",
        "{{vars.d}}",
        "{{results.a.json}}/x",
    ] {
        check(path.into(), "");
    }
    for path in ["/etc/passwd", "/", "/{{vars.x}}"] {
        check(path.into(), relative);
    }
    for path in ["..", "../a", "a/../../b", "a/..", "{{vars.d}}/../x"] {
        check(path.into(), inside);
    }
    check("".into(), "a path cannot be empty");
    check(json!(1), "a string is expected, not a number");
    let name = |length: usize, expected: &Rows<'_>| {
        let files = json!({ "n".repeat(length): { "path": "x" } });
        check_step(json!({ "kind": "exec", "shell": "x", "io": { "in": files } }), expected);
    };
    name(255, &[]);
    let at = format!("/io/in/{}", "n".repeat(256));
    name(256, &[(&at, "the name of a file has from 1 to 255 bytes, this one has 256")]);
    let files = json!({ "a": 1, "b": {}, "": { "path": "x" }, "c": { "path": "x", "schema": 1, "shema": 1 } });
    check_step(
        json!({ "kind": "exec", "shell": "x", "io": { "in": files, "out": [] } }),
        &[
            ("/io/in/", "the name of a file has from 1 to 255 bytes, this one has 0"),
            ("/io/in/a", "a file is an object, not a number"),
            ("/io/in/b", "a file needs the key `path`"),
            ("/io/in/c/shema", "a file has no key `shema`"),
            ("/io/in/c/schema", "a JSON Schema (an object or a boolean) is expected, not a number"),
            ("/io/out", "an object is expected, not an array"),
        ],
    );
}
