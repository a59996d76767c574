//! E: what a step of a document takes, and a long answer.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::measure::{Cost, program};
use crate::stage::{Stage, compare};
use crate::table::{Figure, Goal};

const STEPS: u32 = 1_000;

/// Lobster is slower: fewer will do.
const FEW: u32 = 51;

/// A workflow of lobster with so many steps.
fn lobster(steps: u32) -> String {
    let step = |n: u32| format!("  - id: s{n}\n    command: echo x >> steps\n");
    let steps: String = (0..steps).map(step).collect();
    format!("name: many\nsteps:\n{steps}")
}

/// One step after the other that starts the smallest of programs.
pub(crate) fn execs(stage: &Stage) -> Result<Vec<Figure>> {
    let list: Vec<u32> = (0..STEPS).collect();
    let document = json!({
        "name": "steps",
        "vars": { "list": list },
        "steps": [{
            "id": "all", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item",
            "body": [{ "id": "one", "kind": "exec", "run": { "kind": "cmd", "cmd": "true" } }],
        }],
    });
    let ours = || -> Result<Cost> {
        let place = stage.place(&[("flow.json", &document.to_string())])?;
        let cost =
            place.run(place.ours("raymond", "run flow.json --json --quiet --budget none"))?;
        let said: Value = serde_json::from_str(&place.read("stdout")?)?;
        ensure!(said["status"] == "completed", "it ended so: {:.300}", said.to_string());
        // The latest result also has the plain name of its step as a key.
        let results = said["results"].as_object().into_iter().flatten();
        let is_done = |(key, result): &(&String, &Value)| {
            key.ends_with("].one") && result["ok"] == true && result["attempts"] == 1
        };
        let done = results.filter(is_done).count();
        ensure!(done == STEPS as usize, "{done} steps were done");
        place.settled(STEPS)?;
        Ok(cost.each(STEPS))
    };
    let floor = || -> Result<Cost> {
        let place = stage.place(&[])?;
        let cost = place.run(place.ours("floor", &format!("steps {STEPS} true")))?;
        place.counted("journal", STEPS)?;
        Ok(cost.each(STEPS))
    };
    let lobster = || -> Result<Cost> {
        stage.peer(|peers| {
            let place =
                stage.place(&[("many.lobster", &lobster(FEW)), ("one.lobster", &lobster(1))])?;
            let run = |file: &str| {
                let mut lobster = program(&peers.join("node_modules/.bin/lobster"), place.path());
                lobster.args(["run", file]);
                place.run(lobster)
            };
            let (many, one) = (run("many.lobster")?, run("one.lobster")?);
            place.counted("steps", FEW + 1)?;
            // Without its start, which is long.
            let more = Cost { wall: many.wall - one.wall, own: many.own - one.own, ..many };
            Ok(more.each(FEW - 1))
        })
    };
    let [ours, floor, lobster] =
        compare(stage.rounds, [("Raymond", &ours), ("the floor", &floor), ("lobster", &lobster)])?;
    Ok(vec![
        Figure::new('E', "exec step of a document, wall", "ms", ours.wall())
            .floor(floor.wall())
            .goal(Goal::Times(1.2))
            .peer("lobster", stage.shown(lobster.wall())),
        Figure::new('E', "exec step of a document, own CPU", "ms", ours.own())
            .floor(floor.own())
            .peer("lobster", stage.shown(lobster.own())),
    ])
}

/// A list of so many small objects, about a hundred bytes each.
fn answer(items: u32) -> Value {
    let item = |n: u32| json!({ "name": format!("item {n}"), "note": "x".repeat(60), "number": n });
    (0..items).map(item).collect()
}

/// Returns the schema of such an answer.
fn schema() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "note": { "type": "string", "minLength": 1 },
                "number": { "type": "integer", "minimum": 0 },
            },
            "required": ["name", "note", "number"],
            "additionalProperties": false,
        },
    })
}

/// An answer of 1 MB that is read, checked and returned.
pub(crate) fn answers(stage: &Stage) -> Result<Vec<Figure>> {
    let schema = schema();
    let reply = |answer: &Value| -> Result<(Cost, Value)> {
        let request = json!({
            "action": "run",
            "workflow": {
                "name": "answer",
                "steps": [{ "id": "ask", "kind": "agent", "prompt": "List.", "schema": schema }],
            },
            "attempts": { "ask": 1 },
            "agentOutputs": { "ask": answer },
        });
        let place = stage.place(&[("request.json", &request.to_string())])?;
        let mut command = place.ours("raymond", "crayfish --quiet");
        command.stdin(std::fs::File::open(place.path().join("request.json"))?);
        let cost = place.run(command)?;
        Ok((cost, serde_json::from_str(&place.read("stdout")?)?))
    };
    let answered = |items: u32| -> Result<Cost> {
        let answer = answer(items);
        let (cost, reply) = reply(&answer)?;
        ensure!(reply["status"] == "done", "it replied {:.300}", reply.to_string());
        // A program that drops the answer would be fast.
        ensure!(reply["results"]["ask"]["json"] == answer, "the answer came back changed");
        Ok(cost)
    };
    // The last of many is looked at, too.
    let mut bad = answer(10_000);
    // A check that looks only at the first items would pass without this.
    bad[9_999]["number"] = json!("many");
    let (_, refused) = reply(&bad)?;
    let again = &refused["requests"][0]["retryContext"]["validationErrors"][0];
    ensure!(again.to_string().contains("/9999/number"), "it took {:.300}", refused.to_string());
    let text = answer(10_000).to_string();
    let syntax = || -> Result<Cost> {
        let begun = Instant::now();
        // The floor reads the syntax and keeps nothing.
        let _: IgnoredAny = serde_json::from_str(black_box(&text))?;
        Ok(Cost { tree: begun.elapsed().as_secs_f64() * 1e3, ..Cost::default() })
    };
    let [large, small, syntax] = compare(
        stage.rounds,
        [("1 MB", &|| answered(10_000)), ("nothing", &|| answered(0)), ("its syntax", &syntax)],
    )?;
    let what = "reading, checking and returning 1 MB of answer (floor: reading the JSON), own CPU";
    Ok(vec![
        Figure::new(
            'E',
            what,
            "ms",
            large.tree().with(&small.tree(), |large, small| large - small),
        )
        .floor(syntax.tree())
        .goal(Goal::AtMost(10.0)),
        Figure::new('E', "1 MB of answer (floor: an empty one), peak memory", "MiB", large.peak())
            .floor(small.peak()),
    ])
}
