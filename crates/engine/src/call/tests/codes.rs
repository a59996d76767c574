//! Every mistake of a caller has its own code, and a pointer to its place.

use super::*;

/// Code of the call; path and code of the first thing that is wrong in detail.
fn codes_of(reply: &Json) -> [&str; 3] {
    let error = &reply["errors"][0];
    [&reply["error"], &error["path"], &error["code"]].map(|value| value.as_str().unwrap_or("none"))
}

#[tokio::test]
async fn schemas_that_cannot_be_used() {
    let desk = desk();
    std::fs::create_dir(desk.workspace.path().join("schemas")).unwrap();
    for (name, text) in [
        ("Loop", r#"{"$ref":"Loop"}"#),
        ("Broken", "{"),
        ("Word", r#"{"type":"x"}"#),
        ("Old", r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#),
    ] {
        std::fs::write(desk.workspace.path().join(format!("schemas/{name}.json")), text).unwrap();
    }
    let check = async |schema: Json, path: &str, code: &str| {
        let step = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": schema });
        let reference = json!({ "schemaPaths": ["schemas"] });
        let reply = desk.call(json!({ "workflow": { "steps": [step] }, "ref": reference })).await;
        let path = format!("/steps/0/schema{path}");
        assert_eq!(codes_of(&reply), ["invalid_workflow", &path, code], "{reply}");
    };
    check(json!({ "$ref": "Gone" }), "/$ref", "missing_schema").await;
    check(json!({ "$ref": "Broken" }), "/$ref", "unreadable_schema").await;
    check(json!({ "$ref": "Loop" }), "/$ref", "circular_schema").await;
    check(json!({ "$ref": "Word" }), "/$ref", "invalid_schema").await;
    check(json!({ "$ref": "a/b" }), "/$ref", "bad_reference").await;
    check(json!({ "$ref": "https://example.com/a" }), "/$ref", "bad_reference").await;
    check(json!({ "items": { "$ref": "#/gone" } }), "/items/$ref", "bad_reference").await;
    check(json!({ "type": "x" }), "/type", "invalid_schema").await;
    check(json!({ "$schema": "own" }), "/$schema", "invalid_schema").await;
    check(json!({ "items": { "$ref": "Old" } }), "/items/$ref", "mixed_drafts").await;
    let old = json!({ "$schema": "http://json-schema.org/draft-07/schema#" });
    check(json!({ "items": old }), "/items/$schema", "mixed_drafts").await;
    let deep = (0..300).fold(json!(true), |inner, _| json!({ "not": inner }));
    check(deep, "", "too_deep").await;
}

#[tokio::test]
async fn programs_that_write_something_else() {
    let desk = desk();
    let check = async |shell: &str, path: &str, code: &str| {
        let schema = json!({ "properties": { "n": { "type": "integer" } } });
        let step = json!({
            "id": "p", "kind": "exec", "shell": shell, "retries": 1,
            "io": { "mode": "stream", "outputSchema": schema },
        });
        let reply = desk.call(json!({ "workflow": { "steps": [step] } })).await;
        assert_eq!(codes_of(&reply), ["exec_failed", path, code], "{shell}");
    };
    check("echo '{\"a\": [1,]}'", "/a/1", "not_json").await;
    check("echo '{\"a\": 1, \"a\": 2}'", "/a", "duplicate_key").await;
    check("printf '\"\\377\"'", "", "not_utf8").await;
    check("echo '{\"n\": \"1\"}'", "/n", "invalid_output").await;
    check("head -c 1000000000 /dev/zero", "", "too_large").await;
    check("false", "none", "none").await;
}

#[tokio::test]
async fn files_that_do_not_keep_their_contract() {
    let desk = desk();
    let here = desk.workspace.path();
    std::os::unix::fs::symlink("/etc", here.join("leaves")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", here.join("left.json")).unwrap();
    std::fs::create_dir(here.join("directory")).unwrap();
    let check = async |io: Json, shell: &str, [path, code]: [&str; 2]| {
        let step = json!({ "id": "p", "kind": "exec", "shell": shell, "io": io });
        let vars = json!({ "none": "", "up": "../x" });
        let reply = desk.call(json!({ "workflow": { "vars": vars, "steps": [step] } })).await;
        assert_eq!(codes_of(&reply), ["exec_failed", path, code], "{io} {reply}");
        let result = &reply["results"]["p"];
        assert_eq!(result["errors"].as_array().map(Vec::len), Some(1), "{reply}");
    };
    let file = |path: &str| json!({ "a/b": { "path": path, "schema": { "type": "object" } } });
    for (list, pointer) in [("in", "/io/in/a~1b"), ("out", "/io/out/a~1b")] {
        let io = |path: &str| json!({ list: file(path) });
        check(io("gone.json"), "true", [pointer, "missing_file"]).await;
        check(io("left.json"), "true", [pointer, "escaping_path"]).await;
        check(io("leaves/x.json"), "true", [pointer, "escaping_path"]).await;
        check(io("{{vars.up}}"), "true", [pointer, "escaping_path"]).await;
        check(io("directory"), "true", [pointer, "unreadable"]).await;
        std::fs::write(here.join("text"), "{\"a\": [1,]}").unwrap();
        check(io("text"), "true", ["/a/1", "not_json"]).await;
        std::fs::write(here.join("text"), "{\"a\": 1, \"a\": 2}").unwrap();
        check(io("text"), "true", ["/a", "duplicate_key"]).await;
        std::fs::write(here.join("text"), b"\"\xff\"").unwrap();
        check(io("text"), "true", ["", "not_utf8"]).await;
        std::fs::write(here.join("text"), "[]").unwrap();
        check(io("text"), "true", ["", "invalid_output"]).await;
    }
    check(json!({ "in": file("{{vars.none}}") }), "true", ["/io/in/a~1b", "escaping_path"]).await;
    check(json!({ "out": file("{{vars.none}}") }), "true", ["/io/out/a~1b", "escaping_path"]).await;
    // A link that the program itself has made.
    let made = "ln -s /etc/hostname made.json";
    check(json!({ "out": file("made.json") }), made, ["/io/out/a~1b", "escaping_path"]).await;
}

#[tokio::test]
async fn false_claims_in_requests_are_refused() {
    let desk = desk();
    let check = async |more: Json, expected: [&str; 3]| {
        let mut call = json!({ "workflow": minimal() });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(codes_of(&desk.call(call).await), expected, "{more}");
    };
    let unasked = |path| ["unasked_output", path, "unasked_output"];
    check(json!({ "agentOutputs": { "w": 1 } }), unasked("/agentOutputs/w")).await;
    check(json!({ "agentOutputs": { "v:2": 1 } }), unasked("/agentOutputs/v:2")).await;
    let valid = json!({ "foo": "x" });
    check(json!({ "agentOutputs": { "v:1": valid, "v:2": 1 } }), unasked("/agentOutputs/v:2"))
        .await;
    check(json!({ "agentOutputs": { "v:1": 1, "v:3": 1 } }), unasked("/agentOutputs/v:3")).await;
    check(json!({ "agentOutputs": { "v:1": 1, "v:2": valid } }), ["none"; 3]).await;
    let exhausted = ["agent_output_schema_failed", "", "invalid_output"];
    check(json!({ "agentOutputs": { "v": 1 }, "attempts": { "v": 3 } }), exhausted).await;
    let beyond = ["agent_output_schema_failed", "/attempts/v", "out_of_range"];
    check(json!({ "attempts": { "v": 4 } }), beyond).await;
    let out = ["bad_request", "/attempts/v", "out_of_range"];
    check(json!({ "attempts": { "v": 0 } }), out).await;
    let leaving = ["bad_request", "/ref/schemaPaths/0", "escaping_path"];
    check(json!({ "ref": { "schemaPaths": ["../x"] } }), leaving).await;
    std::os::unix::fs::symlink("/", desk.workspace.path().join("out")).unwrap();
    check(json!({ "ref": { "schemaPaths": ["out/etc"] } }), leaving).await;
    let stale = json!({
        "workflow": minimal(), "agentOutputs": { "v:1": 1 }, "attempts": { "v": 2 },
    });
    let reply = desk.call(stale).await;
    let ignored = json!([{
        "path": "/agentOutputs/v:1", "code": "stale_output", "message": "that attempt has ended: `v:2` is waiting",
    }]);
    assert_eq!((gist(&reply), &reply["ignored"]), ("needs_agent v:2".to_owned(), &ignored));
}

#[tokio::test]
async fn answers_for_a_missing_run_create_no_run() {
    let desk = desk();
    let check = async |run: &str, name: &str, expected: &str| {
        let call = json!({ "workflow": minimal(), "runId": run, "agentOutputs": { name: { "foo": "x" } } });
        let reply = desk.call(call).await;
        let path = format!("/agentOutputs/{name}");
        assert_eq!(codes_of(&reply), ["unasked_output", &path, "unasked_output"], "{reply}");
        assert_eq!(reply["errors"][0]["message"], expected);
        assert_eq!((&reply["runId"], &reply["results"]), (&json!(run), &json!({})));
    };
    let no_run = "there is no run r yet: no step has asked for it";
    check("r", "r:v:1", no_run).await;
    check("r", "r:v:2", no_run).await;
    check("r", "s:v:1", "no agent step asks for `s:v:1`").await;
    check("r", "w", "no agent step asks for `w`").await;
    assert!(!desk.workspace.path().join(".raymond").exists());
    assert_eq!(desk.file("log"), "");
    // An output under a key or step id is for the attempt that is waiting.
    let call =
        json!({ "workflow": minimal(), "runId": "r", "agentOutputs": { "v": { "foo": "x" } } });
    assert_eq!(gist(&desk.call(call).await), "done");
}

/// A loop over two items that asks for a number of each.
fn each(more: &Json) -> Json {
    let mut judge = json!({ "id": "judge", "kind": "agent", "prompt": "?", "schema": { "type": "integer" }, "retries": 2 });
    judge.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "vars": { "list": [1, 2] }, "steps": [{
        "id": "each", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item",
        "parallel": true, "onError": "collect", "body": [judge],
    }] })
}

#[tokio::test]
async fn recorded_attempts_override_claimed_attempts() {
    let desk = desk();
    let check = async |more: Json, expected: [&str; 3]| {
        let mut call = json!({ "workflow": minimal() });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = desk.call(call).await;
        let first = &reply["errors"][0];
        let found = [&reply["error"], &first["path"], &first["message"]];
        assert_eq!(found.map(|found| found.as_str().unwrap_or("none")), expected, "{more}");
    };
    let unasked = |path, message| ["unasked_output", path, message];
    let none = "no step has the key `vv`; did you mean `v`?";
    check(json!({ "attempts": { "vv": 1 } }), unasked("/attempts/vv", none)).await;
    check(
        json!({ "attempts": { "v:1": 1 } }),
        unasked("/attempts/v:1", "no step has the key `v:1`"),
    )
    .await;
    let lie = json!({ "runId": "r", "agentOutputs": { "v": 1 }, "attempts": { "v": 2 } });
    check(lie.clone(), unasked("/attempts/v", "v is at attempt 1")).await;
    assert!(!desk.workspace.path().join(".raymond").exists());
    check(json!({ "runId": "r" }), ["none"; 3]).await;
    check(lie.clone(), unasked("/attempts/v", "v is at attempt 1")).await;
    check(json!({ "runId": "r", "agentOutputs": { "v": 1 } }), ["none"; 3]).await;
    check(lie.clone(), ["none"; 3]).await;
    check(lie, ["none"; 3]).await;
    let next = json!({ "runId": "r", "agentOutputs": { "v": 1 }, "attempts": { "v": 9 } });
    check(next, unasked("/attempts/v", "v is at attempt 3")).await;
}

#[tokio::test]
async fn claimed_attempts_in_a_loop_use_up_nothing() {
    let desk = desk();
    let call = async |more: Json| {
        let mut call = json!({ "workflow": each(&json!({})) });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        desk.call(call).await
    };
    let lie = |run: &str| {
        let outputs = json!({ "each[0].judge": "wrong" });
        json!({ "runId": run, "agentOutputs": outputs, "attempts": { "judge": 9 } })
    };
    for _ in 0..3 {
        assert_eq!(codes_of(&call(lie("r")).await)[..2], ["unasked_output", "/attempts/judge"]);
    }
    call(json!({ "runId": "r" })).await;
    for _ in 0..3 {
        let reply = call(lie("r")).await;
        assert_eq!(codes_of(&reply)[..2], ["unasked_output", "/attempts/judge"]);
        assert_eq!(reply["attempts"]["each[0].judge"], 1, "{reply}");
    }
    // Without a record, an attempt of the step means the key that asks first.
    let second = json!({ "each[0].judge:2": "wrong" });
    let reply = call(json!({ "agentOutputs": second, "attempts": { "judge": 2 } })).await;
    assert_ne!(reply["error"], "unasked_output", "{reply}");
}

#[tokio::test]
async fn run_with_earlier_results_accepts_repeated_answers() {
    let desk = desk();
    let call = json!({
        "workflow": minimal(), "runId": "r",
        "results": { "a": { "ok": true }, "v": { "ok": true, "json": { "foo": "x" } } },
        "attempts": { "v": 2 }, "agentOutputs": { "v": { "foo": "x" } },
    });
    assert_eq!(gist(&desk.call(call.clone()).await), "done");
    assert_eq!(gist(&desk.call(call).await), "done");
    assert_eq!(desk.file("log"), "post\n");
}

#[tokio::test]
async fn results_of_unknown_steps_are_reported() {
    let desk = desk();
    let results = json!({ "nobody": { "ok": true }, "a": { "ok": true } });
    let reply = desk.call(json!({ "workflow": minimal(), "results": results })).await;
    let ignored = json!([{
        "path": "/results/nobody", "code": "unknown_step", "message": "the document has no such step",
    }]);
    assert_eq!((gist(&reply), &reply["ignored"]), ("needs_agent v:1".to_owned(), &ignored));
}

#[tokio::test]
async fn names_of_answers_are_normalised() {
    let desk = desk();
    let check = async |name: &str, expected: &str| {
        let outputs = json!({ name: 1 });
        let call = json!({ "workflow": each(&json!({})), "runId": "r1", "agentOutputs": outputs });
        assert_eq!(desk.call(call).await["errors"][0]["message"], expected);
    };
    check("r1:each[0].judge:7", "`each[0].judge` has 2 attempts").await;
    let near = "no agent step asks for `r1:each[0].judg:1`; did you mean `judge`?";
    check("r1:each[0].judg:1", near).await;
    check("each[0].judg", "no agent step asks for `each[0].judg`; did you mean `judge`?").await;
}

#[tokio::test]
async fn unused_outputs_are_reported_with_a_hint() {
    let desk = desk();
    let check = async |more: Json, expected: &[[&str; 3]]| {
        let mut call = json!({ "workflow": each(&json!({})) });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = desk.call(call).await;
        let told = reply["ignored"].as_array().into_iter().flatten();
        let told =
            told.map(|one| ["path", "code", "message"].map(|key| one[key].as_str().unwrap()));
        assert_eq!(told.collect::<Vec<_>>(), expected, "{more} {reply:#}");
    };
    let wrong = json!({ "runId": "r1", "agentOutputs": { "each[1].judge": "x" } });
    check(wrong.clone(), &[]).await;
    let over = "counted as attempt 1, but attempt 2 is waiting: send it as `r1:each[1].judge:2`, or echo `attempts`";
    check(wrong, &[["/agentOutputs/each[1].judge", "stale_output", over]]).await;
    let both = json!({ "agentOutputs": { "each[0].judge:1": 1, "each[0].judge": 2 } });
    let instead = "`each[0].judge:1` was used instead";
    check(both, &[["/agentOutputs/each[0].judge", "stale_output", instead]]).await;
    let unknown =
        json!({ "results": { "gone": { "ok": true }, "judge": { "ok": true }, "each": {} } });
    check(unknown, &[["/results/gone", "unknown_step", "the document has no such step"]]).await;
    let many: serde_json::Map<String, Json> =
        (0..1_002).map(|n| (format!("gone{n}"), json!({ "ok": true }))).collect();
    let call = json!({ "workflow": minimal(), "results": many });
    let ignored = &desk.call(call).await["ignored"];
    assert_eq!(ignored.as_array().map(Vec::len), Some(1_001));
    assert_eq!(ignored[1_000]["code"], "more_problems");
}

#[tokio::test]
async fn id_of_looped_step_means_first_waiting_key() {
    let desk = desk();
    let call = json!({
        "workflow": each(&json!({})), "agentOutputs": { "judge": "x" }, "attempts": { "judge": 2 },
    });
    let reply = desk.call(call).await;
    assert_eq!(gist(&reply), "needs_agent each[1].judge:1", "{reply:#}");
    assert_eq!(reply["attempts"], json!({ "each[0].judge": 3, "each[1].judge": 1 }));
    let beyond = json!({ "workflow": each(&json!({})), "attempts": { "judge": 3 } });
    let reply = desk.call(beyond).await;
    assert_eq!(reply["results"]["each[0].judge"]["errors"][0]["path"], "/attempts/judge");
}

#[tokio::test]
async fn collected_failure_keeps_its_reason_when_echoed() {
    let desk = desk();
    let workflow = each(&json!({ "retries": 1 }));
    let outputs = json!({ "each[0].judge:1": "x" });
    let first = desk.call(json!({ "workflow": workflow, "agentOutputs": outputs })).await;
    let failed = &first["results"]["each[0].judge"];
    assert_eq!(failed["message"], "no output of 1 was valid: \"x\" is not of type \"integer\"");
    let echo = |more: Json| {
        let mut call = json!({ "workflow": workflow, "results": first["results"], "attempts": first["attempts"] });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    let second = desk.call(echo(json!({}))).await;
    assert_eq!((gist(&second), &second["results"]), (gist(&first), &first["results"]));
    let done = desk.call(echo(json!({ "agentOutputs": { "each[1].judge:1": 2 } }))).await;
    assert_eq!((gist(&done).as_str(), &done["results"]["each[0].judge"]), ("done", failed));
    // A run that begins has attempts of its own.
    let seeded = desk.call(echo(json!({ "runId": "r" }))).await;
    assert_eq!(gist(&seeded), "needs_agent r:each[0].judge:1 r:each[1].judge:1");
}
