//! Calls as a host makes them, with real programs in a workspace of their own.

use std::sync::LazyLock;

use raymond_core::crayfish::reading::Holds;
use raymond_schema::Schema;
use serde_json::{Value as Json, json};
use tokio::sync::mpsc::unbounded_channel;

use super::*;

mod codes;

struct Desk {
    workspace: tempfile::TempDir,
    tool: Tool,
}

fn desk() -> Desk {
    let workspace = tempfile::tempdir().unwrap();
    let workspaces =
        Workspaces { given: Some(workspace.path().to_owned()), ..Workspaces::default() };
    Desk { workspace, tool: Tool { workspaces, settings: Settings::default(), registry: None } }
}

impl Desk {
    async fn call(&self, request: impl Into<RawRequest>) -> Json {
        let (progress, _nobody) = unbounded_channel();
        let channels = CallChannels { cancel: CancellationToken::new(), progress };
        let reply = self.tool.call(request, channels).await.into_json();
        keeps_to_its_schema(&reply);
        reply
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.workspace.path().join(name)).unwrap_or_default()
    }
}

fn keeps_to_its_schema(reply: &Json) {
    static REPLY: LazyLock<Schema> = LazyLock::new(|| {
        let schema = reading::read_text(raymond_core::crayfish::schema::REPLY).unwrap();
        Schema::compile(&schema, &|_: &str| Ok(None)).unwrap()
    });
    assert_eq!(REPLY.errors(reply), [], "{reply:#}");
}

/// Returns the status or the code of a reply, and its requests.
fn gist(reply: &Json) -> String {
    let word = reply.get("status").or_else(|| reply.get("error")).and_then(Json::as_str).unwrap();
    let requests = reply["requests"].as_array().into_iter().flatten();
    let requests = requests.map(|request| request["requestId"].as_str().unwrap());
    std::iter::once(word).chain(requests).collect::<Vec<_>>().join(" ")
}

/// The seed's minimal example, which leaves a line in a file for every program it runs.
fn minimal() -> Json {
    json!({
        "name": "agent-test", "version": 1,
        "steps": [
            { "id": "a", "kind": "exec", "shell": "echo pre | tee -a log" },
            {
                "id": "v", "kind": "agent", "prompt": "Return STRICT JSON.", "input": { "x": 1 },
                "schema": {
                    "type": "object", "additionalProperties": false, "required": ["foo"],
                    "properties": { "foo": { "type": "string" } },
                },
                "retries": 3,
            },
            { "id": "b", "kind": "exec", "shell": "echo post | tee -a log" },
        ],
    })
}

#[test]
fn a_call_can_be_awaited_anywhere() {
    fn check<T: Send>(_: T) {}
    let (progress, _nobody) = unbounded_channel();
    let channels = CallChannels { cancel: CancellationToken::new(), progress };
    check(desk().tool.call(json!({}), channels));
}

#[tokio::test]
async fn stateless_caller_gets_an_output_and_leaves_nothing() {
    let desk = desk();
    let first = desk.call(json!({ "action": "run", "workflow": minimal() })).await;
    assert_eq!(gist(&first), "needs_agent v:1");
    assert_eq!(first["results"]["a"]["stdout"], "pre\n");
    let wrong = desk
        .call(json!({
            "workflow": minimal(), "agentOutputs": { "v": { "foo": 1 } }, "attempts": { "v": 1 },
            "results": first["results"],
        }))
        .await;
    assert_eq!(gist(&wrong), "needs_agent v:2");
    let context = &wrong["requests"][0]["retryContext"]["validationErrors"];
    assert_eq!(context.as_array().map(Vec::len), Some(1), "{context}");
    let done = desk
        .call(json!({
            "workflow": minimal(), "agentOutputs": { "v": { "foo": "bar" } },
            "attempts": wrong["attempts"], "results": wrong["results"],
        }))
        .await;
    assert_eq!(gist(&done), "done");
    assert_eq!(done["results"]["v"], json!({ "ok": true, "json": { "foo": "bar" } }));
    assert_eq!(desk.file("log"), "pre\npost\n", "echoed results are not done again");
    let left: Vec<_> = std::fs::read_dir(desk.workspace.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test]
async fn only_calls_with_a_run_register_their_project() {
    let (mut desk, home) = (desk(), tempfile::tempdir().unwrap());
    let registry = ProjectRegistry::in_state_directory(home.path());
    desk.tool.registry = Some(registry.clone());
    let directories = || registry.read(&disk::RealDisk, clock::now().0).unwrap().directories;
    desk.call(json!({ "workflow": minimal() })).await;
    assert_eq!(directories(), [""; 0].map(std::path::PathBuf::from));
    let first = desk.call(json!({ "workflow": minimal(), "runId": "r" })).await;
    assert_eq!(gist(&first), "needs_agent r:v:1");
    assert_eq!(directories(), [desk.workspace.path()]);
}

#[tokio::test]
async fn model_answer_must_be_one_json_value() {
    let desk = desk();
    let check = async |schema: Json, text: &str, expected: (&str, Json)| {
        let step = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": schema });
        let said = [("v:1".to_owned(), text.to_owned())].into();
        let sent = RawRequest { request: json!({ "workflow": { "steps": [step] } }), said };
        let reply = desk.call(sent).await;
        let wrong = &reply["requests"][0]["retryContext"]["validationErrors"];
        let told = if wrong.is_null() { &reply["results"]["v"]["json"] } else { wrong };
        assert_eq!((gist(&reply).as_str(), told.clone()), expected, "{text}");
    };
    let prose = || json!(["it is not JSON: line 1, column 1: `Sure` is not JSON"]);
    check(json!(true), "Sure! 7", ("needs_agent v:2", prose())).await;
    check(json!({ "type": "string" }), "Sure! 7", ("needs_agent v:2", prose())).await;
    check(json!({ "type": "string" }), " \"7\"\n", ("done", json!("7"))).await;
    check(json!({ "type": "integer" }), "7", ("done", json!(7))).await;
}

#[tokio::test]
async fn stateless_call_with_earlier_results_completes() {
    let desk = desk();
    let call = json!({
        "action": "run", "workflow": minimal(),
        "agentOutputs": { "v": { "foo": "bar" } }, "attempts": { "v": 1 },
    });
    assert_eq!(gist(&desk.call(call).await), "done");
    let failed = json!({
        "workflow": minimal(), "agentOutputs": { "v": {} }, "attempts": { "v": 3 },
    });
    let failed = desk.call(failed).await;
    assert_eq!(gist(&failed), "agent_output_schema_failed");
    assert_eq!((&failed["stepId"], &failed["errors"][0]["path"]), (&json!("v"), &json!("")));
}

#[tokio::test]
async fn named_run_repeats_no_finished_step() {
    let desk = desk();
    let call = |more: Json| {
        let mut call = json!({ "workflow": minimal(), "runId": "r-1" });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    assert_eq!(gist(&desk.call(call(json!({}))).await), "needs_agent r-1:v:1");
    assert_eq!(gist(&desk.call(call(json!({}))).await), "needs_agent r-1:v:1");
    let wrong = call(json!({ "agentOutputs": { "v": 1 }, "attempts": { "v": 1 } }));
    assert_eq!(gist(&desk.call(wrong.clone()).await), "needs_agent r-1:v:2");
    let again = desk.call(wrong).await;
    assert_eq!(gist(&again), "needs_agent r-1:v:2", "a repeated call burns nothing");
    assert_eq!(again["ignored"][0]["code"], "stale_output");
    assert!(again["requests"][0]["retryContext"]["validationErrors"].is_array());
    let early = desk.call(call(json!({ "agentOutputs": { "r-1:v:3": 1 } }))).await;
    assert_eq!(
        (gist(&early), &early["errors"][0]["path"]),
        ("unasked_output".into(), &json!("/agentOutputs/r-1:v:3"))
    );
    let other = desk.call(call(json!({ "vars": { "x": 1 } }))).await;
    assert_eq!(gist(&other), "run_mismatch");
    let done = call(json!({ "agentOutputs": { "r-1:v:2": { "foo": "bar" } } }));
    assert_eq!(gist(&desk.call(done.clone()).await), "done");
    let again = desk.call(done).await;
    assert_eq!((gist(&again), &again["results"]["b"]["ok"]), ("done".into(), &json!(true)));
    assert_eq!(desk.file("log"), "pre\npost\n");
}

#[tokio::test]
async fn next_call_retries_only_failed_programs() {
    let desk = desk();
    let call = json!({ "runId": "r", "workflow": { "steps": [
        { "id": "a", "kind": "exec", "shell": "echo a >> log" },
        { "id": "b", "kind": "exec", "shell": "echo b >> log; test -e mended", "retries": 2 },
    ] } });
    let failed = desk.call(call.clone()).await;
    assert_eq!((gist(&failed), &failed["stepId"]), ("exec_failed".into(), &json!("b")));
    assert_eq!(failed["results"]["b"]["ok"], false);
    assert_eq!(desk.file("log"), "a\nb\nb\n");
    std::fs::write(desk.workspace.path().join("mended"), "").unwrap();
    let done = desk.call(call).await;
    assert_eq!((gist(&done), &done["results"]["b"]["attempts"]), ("done".into(), &json!(1)));
    assert_eq!(desk.file("log"), "a\nb\nb\nb\n");
}

#[tokio::test]
async fn exhausted_agent_step_is_final() {
    let desk = desk();
    let call = |run: &str, more: Json| {
        let mut call = json!({ "workflow": minimal(), "runId": run });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    desk.call(call("r", json!({}))).await;
    for attempt in 1..=3 {
        let output = format!("r:v:{attempt}");
        desk.call(call("r", json!({ "agentOutputs": { output: 1 } }))).await;
    }
    let failed = desk
        .call(call("r", json!({ "agentOutputs": { "v": { "foo": "x" } }, "attempts": { "v": 3 } })))
        .await;
    assert_eq!(gist(&failed), "agent_output_schema_failed");
    let seeded = desk.call(call("s", json!({ "results": failed["results"] }))).await;
    assert_eq!(gist(&seeded), "needs_agent s:v:1");
    let done = desk.call(call("s", json!({ "agentOutputs": { "v": { "foo": "x" } } }))).await;
    assert_eq!(gist(&done), "done");
    assert_eq!(desk.file("log"), "pre\npost\n");
}

// proves: S46
#[tokio::test]
async fn cancelled_call_ends_its_program() {
    let desk = desk();
    let (progress, mut told) = unbounded_channel();
    let cancel = CancellationToken::new();
    let request = json!({ "workflow": { "steps": [
        { "id": "a", "kind": "exec", "shell": "echo $$ > pid; exec sleep 600" },
    ] } });
    let call = desk.tool.call(request, CallChannels { cancel: cancel.clone(), progress });
    let give_up = async {
        told.recv().await;
        while desk.file("pid").is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(call, give_up);
    assert_eq!(gist(&reply.into_json()), "cancelled");
    let pid = desk.file("pid").trim().to_owned();
    assert!(!Path::new("/proc").join(pid).exists());
}

#[tokio::test]
async fn workspace_path_must_be_utf8() {
    use std::os::unix::ffi::OsStrExt as _;

    let mut desk = desk();
    let odd = desk.workspace.path().join(std::ffi::OsStr::from_bytes(b"x\xff"));
    std::fs::create_dir(&odd).unwrap();
    desk.tool.workspaces.given = Some(odd);
    assert_eq!(gist(&desk.call(json!({ "workflow": minimal() })).await), "bad_workspace");
}

#[tokio::test]
async fn unwritable_store_is_reported_before_anything_runs() {
    let desk = desk();
    std::fs::write(desk.workspace.path().join(".raymond"), "in the way").unwrap();
    let reply = desk.call(json!({ "workflow": minimal(), "runId": "r" })).await;
    assert_eq!(gist(&reply), "store_failed");
    assert_eq!(desk.file("log"), "");
}

#[tokio::test]
async fn mistakes_are_replies() {
    let desk = desk();
    let check = async |request: Json, expected: &str| {
        assert_eq!(gist(&desk.call(request).await), expected);
    };
    check(json!([]), "bad_request").await;
    check(json!({ "workflow": {}, "surprise": 1 }), "bad_request").await;
    check(json!({ "workflow": { "steps": [], "env": 1 } }), "invalid_workflow").await;
    let schema = json!({ "steps": [
        { "id": "v", "kind": "agent", "prompt": "?", "schema": { "$ref": "Gone" } },
    ] });
    check(json!({ "workflow": schema }), "invalid_workflow").await;
    let up = json!({ "workflow": { "steps": [] }, "ref": { "schemaPaths": ["../x"] } });
    check(up, "bad_request").await;
    check(json!({ "workflow": minimal(), "agentOutputs": { "w": 1 } }), "unasked_output").await;
    check(json!({ "workflow": minimal(), "attempts": { "v": 4 } }), "agent_output_schema_failed")
        .await;
    check(json!({ "workflow": { "steps": [] } }), "done").await;
}

#[tokio::test]
async fn mistakes_found_by_a_run_are_replies() {
    let desk = desk();
    let check = async |workflow: Json, expected: &str, step: &str| {
        let reply = desk.call(json!({ "workflow": workflow })).await;
        let found = (gist(&reply), reply["stepId"].as_str().unwrap_or_default().to_owned());
        assert_eq!(found, (expected.to_owned(), step.to_owned()), "{reply:#}");
    };
    let each = |list: &str| json!({ "id": "l", "kind": "forEach", "listPath": list, "itemVar": "x", "body": [] });
    let exec = |more: Json| {
        let mut step =
            json!({ "id": "a", "kind": "exec", "run": { "kind": "cmd", "cmd": "true" } });
        step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        step
    };
    check(json!({ "steps": [each("$.vars.no")] }), "not_an_array", "l").await;
    check(
        json!({ "steps": [exec(json!({ "env": { "X": "{{vars.no}}" } }))] }),
        "unknown_name",
        "a",
    )
    .await;
    let nul = json!({ "run": { "kind": "cmd", "cmd": "echo", "args": ["{{vars.nul}}"] } });
    let nul = json!({ "workflow": { "vars": { "nul": "\0" }, "steps": [exec(nul)] } });
    let told = json!([{
        "path": "/run/args/0", "code": "bad_text",
        "message": "/run/args/0 contains a NUL character, which cannot be passed to a program",
    }]);
    assert_eq!(desk.call(nul).await["errors"], told);
    let nul = exec(json!({ "env": { "A": "", "B": "{{vars.nul}}" } }));
    let nul = json!({ "workflow": { "vars": { "nul": "\0" }, "steps": [nul] } });
    assert_eq!(desk.call(nul).await["errors"][0]["path"], "/env/B");
    let many: Vec<u32> = (0..10_001).collect();
    let mut wide = each("$.vars.many");
    wide["parallel"] = json!(true);
    check(json!({ "vars": { "many": many }, "steps": [wide] }), "too_large", "l").await;
    let large = exec(
        json!({ "run": { "kind": "cmd", "cmd": "head", "args": ["-c", "15000000", "/dev/zero"] } }),
    );
    let mut second = large.clone();
    second["id"] = json!("b");
    check(json!({ "steps": [large, second] }), "too_large", "a").await;
    let schema = json!({ "type": "object", "required": ["x", "y"] });
    let stream = exec(
        json!({ "run": { "kind": "cmd", "cmd": "echo", "args": ["{}"] }, "io": { "mode": "stream", "outputSchema": schema } }),
    );
    let reply = desk.call(json!({ "workflow": { "steps": [stream] } })).await;
    assert_eq!(reply["errors"].as_array().map(Vec::len), Some(2), "{reply:#}");
}

#[tokio::test]
async fn run_accepts_one_call_with_the_same_schemas() {
    let desk = desk();
    let write = |text: &str| {
        std::fs::create_dir_all(desk.workspace.path().join("schemas")).unwrap();
        std::fs::write(desk.workspace.path().join("schemas/S.json"), text).unwrap();
    };
    write("{}");
    let call = json!({
        "runId": "r", "ref": { "schemaPaths": ["schemas"] },
        "workflow": { "steps": [
            { "id": "a", "kind": "exec", "shell": "touch begun; until test -e go; do sleep 0.01; done" },
            { "id": "v", "kind": "agent", "prompt": "?", "schema": { "$ref": "S" } },
        ] },
    });
    let second = async {
        while !desk.workspace.path().join("begun").exists() {
            tokio::task::yield_now().await;
        }
        let reply = desk.call(call.clone()).await;
        std::fs::write(desk.workspace.path().join("go"), "").unwrap();
        reply
    };
    let (first, second) = tokio::join!(desk.call(call.clone()), second);
    assert_eq!((gist(&first), gist(&second)), ("needs_agent r:v:1".into(), "run_locked".into()));
    assert_eq!(second["runId"], "r");
    write(r#"{ "type": "string" }"#);
    let other = desk.call(call).await;
    assert_eq!((gist(&other), &other["results"]["a"]["ok"]), ("run_mismatch".into(), &json!(true)));
}

#[tokio::test]
async fn echoed_results_are_used_only_by_new_runs() {
    let desk = desk();
    let workflow = json!({ "steps": [
        { "id": "a", "kind": "exec", "shell": "test -e go" },
        { "id": "b", "kind": "exec", "shell": "echo b >> log" },
        { "id": "v", "kind": "agent", "prompt": "?", "schema": {} },
    ] });
    let call = |more: Json| {
        let mut call = json!({ "workflow": workflow, "runId": "r" });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    assert_eq!(gist(&desk.call(call(json!({ "attempts": { "v": 9 } }))).await), "exec_failed");
    std::fs::write(desk.workspace.path().join("go"), "").unwrap();
    let reply = desk
        .call(call(json!({ "results": { "b": { "ok": true } }, "attempts": { "v": 9 } })))
        .await;
    assert_eq!((gist(&reply), desk.file("log")), ("needs_agent r:v:1".into(), "b\n".into()));
}

#[tokio::test]
async fn plain_id_of_looped_step_is_latest_result() {
    let desk = desk();
    let echo = json!({ "id": "n", "kind": "exec", "run": { "kind": "cmd", "cmd": "echo", "args": ["{{locals.i}}"] } });
    let call = |list: Json, parallel: bool, results: Json| {
        let each = json!({
            "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "i",
            "body": [echo], "parallel": parallel,
        });
        json!({ "workflow": { "vars": { "list": list }, "steps": [each] }, "results": results })
    };
    for parallel in [false, true] {
        let list: Vec<u32> = (0..11).collect();
        let reply = desk.call(call(json!(list), parallel, json!({}))).await;
        let results = &reply["results"];
        assert_eq!(results["n"], results["l[10].n"], "{reply}");
        assert_eq!(results["n"]["stdout"], "10\n");
        // What is echoed and not reached any more is not the latest.
        let again = desk.call(call(json!([0, 1]), parallel, results.clone())).await;
        assert_eq!(again["results"]["n"], again["results"]["l[1].n"], "{again}");
        assert_eq!(again["results"]["n"]["stdout"], "1\n");
    }
}

#[tokio::test]
async fn stateless_caller_continues_after_a_collected_failure() {
    let desk = desk();
    let workflow = json!({ "vars": { "list": [0, 1] }, "steps": [
        {
            "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "x",
            "parallel": true, "onError": "collect",
            "body": [{ "id": "v", "kind": "agent", "prompt": "?", "schema": { "type": "integer" }, "retries": 2 }],
        },
        { "id": "u", "kind": "agent", "prompt": "?", "schema": {} },
    ] });
    let mut reply = desk.call(json!({ "workflow": workflow })).await;
    let mut calls = 1;
    while gist(&reply) != "done" {
        let requests = reply["requests"].as_array().unwrap().iter();
        let outputs: serde_json::Map<String, Json> = requests
            .map(|request| {
                let good = request["key"] != "l[1].v";
                (
                    request["requestId"].as_str().unwrap().to_owned(),
                    if good { json!(1) } else { json!("bad") },
                )
            })
            .collect();
        reply = desk
            .call(json!({
                "workflow": workflow, "agentOutputs": outputs,
                "results": reply["results"], "attempts": reply["attempts"],
            }))
            .await;
        calls += 1;
        assert!(calls < 8, "{reply:#}");
    }
    assert_eq!(reply["results"]["l[1].v"]["ok"], false);
    let unused = json!({
        "workflow": minimal(), "agentOutputs": { "v": { "foo": "x" } },
        "results": { "v": { "ok": true, "json": {} } },
    });
    assert_eq!(desk.call(unused).await.get("ignored"), None, "what is done may be brought again");
    let refused = json!({ "workflow": workflow, "agentOutputs": { "w": 1 }, "results": { "u": { "ok": true } } });
    assert_eq!(desk.call(refused).await["results"], json!({ "u": { "ok": true } }));
}

#[tokio::test]
async fn parallel_loop_sends_its_requests_in_order() {
    let desk = desk();
    let list: Vec<u32> = (0..12).collect();
    let workflow = json!({ "vars": { "list": list }, "steps": [{
        "id": "l", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "n", "parallel": true,
        "body": [
            { "id": "e", "kind": "exec", "run": { "kind": "cmd", "cmd": "echo", "args": ["{{locals.n}}"] } },
            { "id": "v", "kind": "agent", "prompt": "{{locals.n}}", "schema": { "type": "integer" } },
        ],
    }] });
    let reply = desk.call(json!({ "workflow": workflow })).await;
    let prompts = reply["requests"].as_array().unwrap().iter();
    let prompts: Vec<String> =
        prompts.map(|request| request["prompt"].as_str().unwrap().to_owned()).collect();
    assert_eq!(prompts, list.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(reply["results"]["e"]["stdout"], "11\n", "the latest is the last item's");
    let outputs: serde_json::Map<String, Json> =
        list.iter().map(|n| (format!("l[{n}].v"), json!(n))).collect();
    let done = desk.call(json!({ "workflow": workflow, "agentOutputs": outputs })).await;
    assert_eq!((gist(&done), &done["results"]["l[7].v"]["json"]), ("done".into(), &json!(7)));
}

#[tokio::test]
async fn parallel_calls_do_not_end_each_others_programs() {
    let desk = desk();
    let wait = |id: &str, shell: &str| {
        json!({ "workflow": { "steps": [
        { "id": id, "kind": "exec", "shell": shell },
    ] } })
    };
    // The one ends while the other runs, and only then lets it go.
    let long = "touch begun; until test -e ended; do sleep 0.01; done; echo long";
    let short = "until test -e begun; do sleep 0.01; done; (setsid sleep 600 & echo $! > daemon)";
    let long = desk.call(wait("a", long));
    let short = async {
        let reply = desk.call(wait("b", short)).await;
        let daemon = desk.file("daemon").trim().to_owned();
        assert!(!Path::new("/proc").join(daemon).exists(), "its own is ended");
        std::fs::write(desk.workspace.path().join("ended"), "").unwrap();
        reply
    };
    let (long, short) = tokio::join!(long, short);
    assert_eq!((gist(&long), gist(&short)), ("done".into(), "done".into()));
    assert_eq!(long["results"]["a"]["stdout"], "long\n");
}

/// Loops within loops, with nothing to do: a hundred million iterations.
#[tokio::test]
async fn stored_results_can_be_read_again() {
    let desk = desk();
    let levels = reading::LEVELS;
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    std::fs::write(desk.workspace.path().join("deep"), &deep).unwrap();
    let steps = json!([
        { "id": "s", "kind": "exec", "shell": "cat deep", "io": { "mode": "stream" } },
        {
            "id": "f", "kind": "exec", "shell": "true",
            "io": { "mode": "file", "out": { "it": { "path": "deep" } } },
        },
        { "id": "v", "kind": "agent", "prompt": "?", "schema": true },
        { "id": "w", "kind": "agent", "prompt": "?", "schema": true },
    ]);
    let deep = reading::read_text(&deep).unwrap();
    let mut request = json!({ "action": "run", "workflow": { "steps": steps } });
    let read_again = |request: &Json| {
        let sent = request.to_string();
        reading::read_as(Holds::Request, sent.as_bytes()).unwrap()
    };
    let asked = desk.call(read_again(&request)).await;
    request["results"] = asked["results"].clone();
    request["agentOutputs"] = json!({ "v": deep });
    let asked = desk.call(read_again(&request)).await;
    assert_eq!(gist(&asked), "needs_agent w:1");
    request["results"] = asked["results"].clone();
    request["agentOutputs"] = json!({ "w": 1 });
    assert_eq!(gist(&desk.call(read_again(&request)).await), "done");

    let named = |outputs: Json| json!({ "action": "run", "workflow": { "steps": steps }, "runId": "r", "agentOutputs": outputs });
    assert_eq!(gist(&desk.call(named(json!({}))).await), "needs_agent r:v:1");
    assert_eq!(gist(&desk.call(named(json!({ "v": deep }))).await), "needs_agent r:w:1");
    assert_eq!(gist(&desk.call(named(json!({ "w": deep }))).await), "done");
}

fn spinning() -> Json {
    let body = (0..8).fold(json!([]), |body, n| {
        let (id, item) = (format!("l{n}"), format!("x{n}"));
        json!([{
            "id": id, "kind": "forEach", "listPath": "$.vars.list", "itemVar": item, "body": body,
        }])
    });
    json!({ "vars": { "list": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] }, "steps": body })
}

#[tokio::test]
async fn empty_loops_can_be_cancelled() {
    assert_eq!(cancelled(json!({ "workflow": spinning() })).await, "cancelled");
}

/// Each text takes milliseconds: the expression goes back as often as it may.
fn tedious() -> (Json, Json) {
    let schema = json!({ "items": { "not": { "pattern": "^(a|aa)+(?=b)\\1$" } } });
    (schema, json!(vec!["aaaaaaaaaaaaaaaaaaaa!"; 20_000]))
}

#[tokio::test]
async fn slow_check_can_be_cancelled() {
    let (schema, value) = tedious();
    let asks = json!({ "id": "v", "kind": "agent", "prompt": "?", "schema": schema });
    let request = json!({ "workflow": { "steps": [asks] }, "agentOutputs": { "v": value } });
    assert_eq!(cancelled(request).await, "cancelled");
}

/// Returns the reply of a call that is cancelled soon.
async fn cancelled(request: Json) -> String {
    let (progress, _nobody) = unbounded_channel();
    let cancel = CancellationToken::new();
    let desk = desk();
    let channels = CallChannels { cancel: cancel.clone(), progress };
    let call = desk.tool.call(request, channels);
    let give_up = async {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(call, give_up);
    gist(&reply.into_json())
}
