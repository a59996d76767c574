//! Loops, and documents of steps.

use raymond_core::budget::Micros;
use raymond_core::run::program::AnswerSource;
use raymond_core::run::{Program, Ralph};

use crate::sim::host::HelpLimits;
use crate::steps::random_replies::RandomReplies;
use crate::sweep::case::Case;

pub(super) const PROGRAMS: &[Case] = &[
    Case {
        name: "ralph",
        replies: r"
            main START.md | not yet <goto>NOWHERE</goto>
            main START.md | !task
            main START.md | !transient
            main START.md | <result>one</result> or <result>two</result>
            main START.md | !capped
            main START.md | <result>{large}</result>",
        settings: |settings| {
            settings.budget = Some(Micros(1_000_000));
            // More than the replies need, so that the loop ends by its result.
            settings.max_iterations = 9;
        },
        program: || repeated(None),
        ..Case::PLAIN
    },
    Case {
        name: "ralph-until",
        replies: r"
            main START.md | <result>one</result>
            main UNTIL.sh | !script
            main START.md | not yet
            main UNTIL.sh | !script
            main START.md | <result>{large}</result>
            main UNTIL.sh | !timeout
            main START.md | <result>three</result>
            main UNTIL.sh | <goto>NOWHERE</goto>",
        settings: |settings| settings.max_iterations = 9,
        program: || repeated(Some("make check")),
        ..Case::PLAIN
    },
    Case {
        name: "ralph-exhausted",
        replies: r"
            main START.md | !auth
            main START.md | not yet
            main UNTIL.sh | !script
            main START.md | <result>{large}</result>
            main UNTIL.sh | !script",
        settings: |settings| settings.max_iterations = 2,
        program: || repeated(Some("make check")),
        help_limits: HelpLimits { failures: 0, logins: 1 },
        ..Case::PLAIN
    },
    Case {
        name: "steps",
        steps: Some((STEPS, RandomReplies { seed: 11, ..ALWAYS_VALID }, AnswerSource::Backend)),
        ..Case::PLAIN
    },
    Case {
        name: "steps-called",
        steps: Some((STEPS, RandomReplies { seed: 11, ..ALWAYS_VALID }, AnswerSource::Caller)),
        ..Case::PLAIN
    },
    Case {
        name: "steps-retried",
        steps: Some((
            TRIED,
            RandomReplies { seed: 3, failures: 50, invalid: 50, ..ALWAYS_VALID },
            AnswerSource::Backend,
        )),
        ..Case::PLAIN
    },
    Case {
        name: "steps-retried-called",
        steps: Some((
            TRIED,
            RandomReplies { seed: 3, failures: 50, invalid: 50, ..ALWAYS_VALID },
            AnswerSource::Caller,
        )),
        ..Case::PLAIN
    },
    Case {
        name: "steps-large",
        steps: Some((
            STEPS,
            RandomReplies { seed: 11, large: 100, ..ALWAYS_VALID },
            AnswerSource::Backend,
        )),
        // In the middle of the document, so that a resume reads large results back from blobs.
        stop: Some(3),
        ..Case::PLAIN
    },
    Case {
        name: "steps-collected",
        steps: Some((
            COLLECTED,
            RandomReplies { seed: 5, failures: 60, ..ALWAYS_VALID },
            AnswerSource::Backend,
        )),
        settings: |settings| settings.budget = Some(Micros(90_000)),
        ..Case::PLAIN
    },
    Case {
        name: "steps-collected-called",
        steps: Some((
            COLLECTED,
            RandomReplies { seed: 5, failures: 60, ..ALWAYS_VALID },
            AnswerSource::Caller,
        )),
        ..Case::PLAIN
    },
];

const ALWAYS_VALID: RandomReplies = RandomReplies { seed: 0, failures: 0, invalid: 0, large: 0 };

/// Every kind of step, one after the other.
const STEPS: &str = r#"{
    "name": "steps",
    "vars": { "list": ["a", "b"] },
    "steps": [
        { "id": "fetch", "kind": "exec", "shell": "fetch", "io": { "mode": "stream" } },
        { "id": "ask", "kind": "agent", "prompt": "Look.", "schema": {},
          "input": "{{results.fetch.json}}", "session": { "mode": "sticky" } },
        { "id": "each", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item", "body": [
            { "id": "one", "kind": "exec",
              "run": { "kind": "cmd", "cmd": "one", "args": ["{{locals.item}}"] } },
            { "id": "again", "kind": "while", "maxIters": 2, "onMaxIters": "continue",
              "until": { "op": "gt", "path": "$.results.fix.json.n", "value": 2 }, "body": [
                { "id": "fix", "kind": "agent", "prompt": "Fix {{locals.item}}.", "schema": {},
                  "session": { "mode": "sticky" } } ] } ] },
        { "id": "well", "kind": "if", "cond": { "op": "exists", "path": "$.results.fix" },
          "then": [{ "id": "end", "kind": "exec", "shell": "end" }] }
    ]
}"#;

/// Steps that need several attempts.
const TRIED: &str = r#"{
    "steps": [
        { "id": "a", "kind": "exec", "shell": "a", "retries": 5 },
        { "id": "v", "kind": "agent", "prompt": "?", "schema": {}, "retries": 5 },
        { "id": "w", "kind": "agent", "prompt": "?", "schema": {}, "retries": 5 },
        { "id": "b", "kind": "exec", "shell": "b", "retries": 5 }
    ]
}"#;

/// Parallel iterations that partly fail.
const COLLECTED: &str = r#"{
    "vars": { "list": [1, 2, 3, 4] },
    "steps": [
        { "id": "all", "kind": "forEach", "listPath": "$.vars.list", "itemVar": "item",
          "parallel": true, "maxParallel": 2, "onError": "collect", "body": [
            { "id": "try", "kind": "exec", "shell": "try {{locals.item}}", "retries": 2 },
            { "id": "tell", "kind": "agent", "prompt": "Tell {{results.try.stdout}}.", "schema": {} },
            { "id": "note", "kind": "exec", "shell": "note" } ] },
        { "id": "judge", "kind": "agent", "prompt": "Judge.", "schema": {} }
    ]
}"#;

fn repeated(until: Option<&str>) -> Program {
    Program::Ralph(Ralph { until: until.map(str::to_owned) })
}
