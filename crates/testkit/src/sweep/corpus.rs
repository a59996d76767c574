//! The workflows of the sweep: every tag, and every combination that has its own rule.
//!
//! Each case is as small as its rule allows, because the sweep runs it once for every fault at
//! every call, and again for every call of a recovery. `case` explains the fields, `replies` the
//! format of the lines. Rare combinations of several rules are left to the simulator.

use raymond_core::budget::Micros;
use raymond_core::run::program::Answers;
use raymond_core::run::settings::OnLostSession;
use raymond_core::run::{Program, Ralph};

use crate::sim::host::HelpLimits;

use super::case::{Case, Strictness};
use crate::steps::random_replies::RandomReplies;

pub fn corpus() -> &'static [Case] {
    CORPUS
}

const CORPUS: &[Case] = &[
    Case {
        name: "goto",
        replies: r#"
            main START.md | <goto input="a &lt; b">NEXT</goto>
            main NEXT.md | <goto>NEXT</goto>
            main NEXT.md | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "reset",
        replies: r#"
            main START.md | <reset cd="sub" input="x">NEXT</reset>
            main NEXT.md | <reset cd="/srv">LAST</reset>
            main LAST.md | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "reset-clear",
        replies: r#"
            main START.md | <call return="BACK" model="haiku">SUB</call>
            main SUB.md | <reset stack="clear">OUT</reset>
            main OUT.md | <result>never back</result>
            BACK.md"#,
        ..Case::PLAIN
    },
    Case {
        name: "call",
        replies: r#"
            main START.md | <call return="BACK" input="go">SUB</call>
            main SUB.md | <result> r </result>
            main BACK.md | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        // A transition that would continue a conversation in another backend is refused with a
        // reminder. A transition that opens a new conversation is allowed.
        name: "two-backends",
        frontmatter: &[("OTHER.md", "backend: other"), ("THERE.md", "backend: other")],
        replies: r#"
            main START.md | <goto>OTHER</goto>
            main START.md | <function return="THERE">OTHER</function>
            main START.md | <function return="BACK">OTHER</function>
            main OTHER.md | <call return="OTHER">BACK</call>
            main OTHER.md | <call return="THERE">THERE</call>
            main THERE.md | <result>within</result>
            main THERE.md | <result>out</result>
            main BACK.md | <fork next="OTHER">BACK</fork>
            main BACK.md | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "nested-calls",
        replies: r#"
            main START.md | <call return="BACK" model="opus">A</call>
            main A.md | <call return="A_BACK">B</call>
            main B.md | <function return="B_BACK" model="haiku">C</function>
            main C.md | <result>c</result>
            main B_BACK.md | <result>b</result>
            main A_BACK.md | <result>a</result>
            main BACK.md | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "callee-moves",
        replies: r#"
            main START.md | <call return="BACK">SUB</call>
            main SUB.md | <goto>MORE</goto>
            main MORE.md | <reset cd="sub">LAST</reset>
            main LAST.md | <result>r</result>
            main BACK.md | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "function",
        replies: r#"
            main START.md | <function return="BACK" model="haiku" input="q">SUB</function>
            main SUB.md | <result>42</result>
            main BACK.md | <goto>END</goto>
            main END.md | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "fork",
        replies: r#"
            main START.md | <fork next="WAIT" cd="sub" input="i" item="one">WORKER</fork>
            main WAIT.md | <result>parent</result>
            main_worker1 WORKER.md | <goto>WAIT</goto>
            main_worker1 WAIT.md | <result>worker</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "many-forks",
        replies: r#"
            main START.md | <fork a="1">W</fork><fork a="2">W</fork><fork a="3">X</fork><goto input="p">N</goto>
            main N.md | <result>parent</result>
            main_w1 W.md | <result>1</result>
            main_w2 W.md | <result>2</result>
            main_x3 X.md | <result>3</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "forks-of-workers",
        replies: r#"
            main START.md | <fork next="N">W</fork>
            main N.md | <fork next="END">W</fork>
            main END.md | <result>parent</result>
            main_w1 W.md | <fork next="END" k="v">X</fork>
            main_w1 END.md | <result>w1</result>
            main_w1_x1 X.md | <call return="END">Y</call>
            main_w1_x1 Y.md | <result>y</result>
            main_w1_x1 END.md | <result>x1</result>
            main_w2 W.md | <result>w2</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "scripts",
        replies: r#"
            main START.sh | <goto>ASK</goto>
            main ASK.md | <call return="BACK">CHECK</call>
            main CHECK.sh | <goto>ON</goto>
            main ON.md | <result>r</result>
            main BACK.sh | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "script-fails",
        replies: r#"
            main START.md | <fork next="END">S</fork>
            main END.md | <result>parent</result>
            main_s1 S.sh | !script
            main_s1 S.sh | <result>better</result>"#,
        help_limits: HelpLimits { failures: 1, logins: 0 },
        ..Case::PLAIN
    },
    Case {
        name: "large-payload",
        replies: r#"
            main START.md | <call return="BACK">SUB</call>
            main SUB.md | <result>{large}</result>
            main BACK.md | <result>seen {large}</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "large-message",
        replies: r#"
            main START.md | {large}{n}<fork next="END" text="{large}">W</fork>
            main END.md | {large}{n}<goto input="{large}">LAST</goto>
            main LAST.md | <result>parent</result>
            main_w1 W.md | <result>worker</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "reminders",
        replies: r#"
            main START.md | no idea
            main START.md | <goto>A</goto><goto>B</goto>
            main START.md | <goto/>
            main START.md | <goto>A</goto>
            main A.md | <goto>NOWHERE</goto>
            main A.md | <fork next="A">B</fork><fork next="B">A</fork>
            main A.md | <reset cd="/nowhere">B</reset>
            main A.md | <goto>B</goto>
            main B.md | <goto>A</goto>
            main B.md | !denied <result>no</result>
            main B.md | <result>done</result>"#,
        frontmatter: &[("B.md", "allowed_tags: [result]\non_denied: remind")],
        ..Case::PLAIN
    },
    Case {
        name: "reminders-run-out",
        replies: r#"
            main START.md | <fork next="END">W</fork>
            main END.md | <result>parent</result>
            main_w1 W.md | hm
            main_w1 W.md | hm
            main_w1 W.md | <result>at last</result>"#,
        settings: |settings| settings.reminders = 1,
        help_limits: HelpLimits { failures: 1, logins: 0 },
        ..Case::PLAIN
    },
    Case {
        name: "implicit",
        replies: r"
            main START.md | I did it.
            main NEXT.md | <result>done</result>",
        frontmatter: &[("START.md", "allowed_transitions:\n  - {tag: goto, target: NEXT}")],
        ..Case::PLAIN
    },
    Case {
        name: "then",
        replies: r#"
            main START.md | <goto>LOOP</goto>
            main LOOP.md | <goto>LOOP</goto>
            main LOOP.md | <call return="LOOP">SUB</call>
            main SUB.md | <result>r</result>
            main OUT.md | <result>done</result>"#,
        frontmatter: &[("LOOP.md", "max_visits: 2\nthen: OUT")],
        ..Case::PLAIN
    },
    Case {
        name: "visits-run-out",
        replies: r"
            main START.md | <goto>LOOP</goto>
            main LOOP.md | <goto>LOOP</goto>",
        frontmatter: &[("LOOP.md", "max_visits: 1")],
        help_limits: HelpLimits { failures: 1, logins: 0 },
        ..Case::PLAIN
    },
    Case {
        name: "failing-sibling",
        replies: r"
            main START.md | <fork>W</fork><fork>X</fork><goto>END</goto>
            main END.md | <result>parent</result>
            main_w1 W.md | !task
            main_w1 W.md | <result>revived</result>
            main_x2 X.md | <goto>END</goto>
            main_x2 END.md | <result>x</result>",
        help_limits: HelpLimits { failures: 1, logins: 0 },
        ..Case::PLAIN
    },
    Case {
        name: "visit-budget",
        replies: r"
            main START.md | <goto>EXPENSIVE</goto>
            main EXPENSIVE.md | hm
            main EXPENSIVE.md | hm",
        // Exactly two turns at the cost of `replies::COST`, so the second reminder has no money
        // left.
        frontmatter: &[("EXPENSIVE.md", "budget: 0.08")],
        strictness: Strictness::Visits,
        ..Case::PLAIN
    },
    Case {
        name: "over-budget",
        replies: r#"
            main START.md | <fork next="A">W</fork>
            main A.md | <call return="B">W</call>
            main W.md | <result>r</result>
            main B.md | <result>done</result>
            main_w1 W.md | <goto>B</goto>
            main_w1 B.md | <result>w</result>"#,
        // Two turns and a bit, so that the money ends while a call is pending and a worker waits.
        settings: |settings| settings.budget = Some(Micros(90_000)),
        ..Case::PLAIN
    },
    Case {
        name: "retries",
        replies: r#"
            main START.md | !transient
            main START.md | !timeout
            main START.md | <call return="B">A</call>
            main A.md | !transient
            main A.md | <result>r</result>
            main B.md | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "quota",
        replies: r#"
            main START.md | <fork next="A">W</fork>
            main A.md | !quota
            main A.md | <result>done</result>
            main_w1 W.md | <goto>B</goto>
            main_w1 B.md | <result>w</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "quota-without-waiting",
        replies: r"
            main START.md | !quota
            main START.md | <result>done</result>",
        settings: |settings| settings.no_wait = true,
        ..Case::PLAIN
    },
    Case {
        name: "login",
        replies: r"
            main START.md | !auth
            main START.md | <result>done</result>",
        help_limits: HelpLimits { failures: 0, logins: 1 },
        ..Case::PLAIN
    },
    Case {
        name: "full-disk",
        replies: r"
            main START.md | <goto>A</goto>
            main A.md | !environment
            main A.md | <result>done</result>",
        help_limits: HelpLimits { failures: 0, logins: 1 },
        ..Case::PLAIN
    },
    Case {
        name: "lost-session",
        replies: r"
            main START.md | <goto>A</goto>
            main A.md | !lost
            main A.md | <goto>B</goto>
            main B.md | <result>done</result>",
        settings: |settings| settings.on_lost_session = OnLostSession::Fresh,
        ..Case::PLAIN
    },
    Case {
        name: "capped",
        replies: r#"
            main START.md | !capped
            main START.md | <call return="B">A</call>
            main A.md | !capped
            main A.md | <result>r</result>
            main B.md | <result>done</result>"#,
        settings: |settings| settings.budget = Some(Micros(5_000_000)),
        ..Case::PLAIN
    },
    Case {
        name: "stop",
        replies: r#"
            main START.md | <fork next="A">W</fork>
            main A.md | <call return="B">W</call>
            main W.md | <result>r</result>
            main B.md | <result>done</result>
            main_w1 W.md | <goto>B</goto>
            main_w1 B.md | <result>w</result>"#,
        stop: Some(2),
        ..Case::PLAIN
    },
    Case {
        name: "held",
        replies: r#"
            main START.md | <fork next="A">W</fork>
            main A.md | <fork next="END">W</fork>
            main END.md | <result>parent</result>
            main_w1 W.md | <goto>B</goto>
            main_w1 B.md | <result>1</result>
            main_w2 W.md | <result>2</result>"#,
        settings: |settings| settings.max_agents = 1,
        ..Case::PLAIN
    },
    Case {
        name: "waits",
        replies: r#"
            main START.md | <goto after="5m" input="x">NEXT</goto>
            main NEXT.md | <goto at="2001-01-01T00:00:00Z">S</goto>
            main S.sh | <reset after="1h" cd="sub">LAST</reset>
            main LAST.md | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "waits-beside-workers",
        replies: r#"
            main START.md | <fork>W</fork><fork>W</fork><goto after="5m">END</goto>
            main END.md | <result>parent</result>
            main_w1 W.md | <goto after="2m">B</goto>
            main_w1 B.md | <result>1</result>
            main_w2 W.md | <result>2</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "waits-without-process",
        replies: r#"
            main START.md | <call return="END">SUB</call>
            main SUB.md | <goto after="5m">BACK</goto>
            main BACK.md | <result>r</result>
            main END.md | <result>done</result>"#,
        settings: |settings| settings.no_wait = true,
        ..Case::PLAIN
    },
    Case {
        // The only free place is taken by the worker that forks, so no end of another agent can
        // help.
        name: "held-for-good",
        replies: r#"
            main START.md | <fork next="END">W</fork>
            main END.md | <result>parent</result>
            main_w1 W.md | <fork next="END">X</fork>
            main_w1 END.md | <result>w</result>
            main_w1_x1 X.md | <result>x</result>"#,
        settings: |settings| settings.max_agents = 1,
        help_limits: HelpLimits { failures: 2, logins: 0 },
        ..Case::PLAIN
    },
    Case {
        name: "last-cents",
        replies: r"
            main START.md | <fork>W</fork><fork>W</fork><fork>S</fork><goto>A</goto>
            main A.md | <result>parent</result>
            main_w1 W.md | !capped
            main_w1 W.md | <result>1</result>
            main_w2 W.md | <goto>A</goto>
            main_w2 A.md | <result>2</result>
            main_s3 S.sh | <goto>W</goto>
            main_s3 W.md | <result>3</result>",
        settings: |settings| {
            settings.budget = Some(Micros(130_000));
            settings.max_parallel = 3;
        },
        ..Case::PLAIN
    },
    Case {
        name: "limit-in-a-storm",
        replies: r"
            main START.md | <fork>W</fork><fork>W</fork><fork>O</fork><goto>S</goto>
            main S.sh | <goto>W</goto>
            main W.md | <result>parent</result>
            main_w1 W.md | !limit
            main_w1 W.md | !quota
            main_w1 W.md | <result>1</result>
            main_w2 W.md | !quota
            main_w2 W.md | <result>2</result>
            main_o3 O.md | <goto>O</goto>
            main_o3 O.md | <result>3</result>",
        frontmatter: &[("O.md", "backend: other")],
        settings: |settings| settings.max_parallel = 3,
        ..Case::PLAIN
    },
    Case {
        name: "login-in-a-storm",
        replies: r"
            main START.md | <fork>W</fork><fork>O</fork><goto>A</goto>
            main A.md | <result>parent</result>
            main_w1 W.md | !auth
            main_w1 W.md | <result>1</result>
            main_o2 O.md | <goto>O</goto>
            main_o2 O.md | <result>2</result>",
        frontmatter: &[("O.md", "backend: other")],
        help_limits: HelpLimits { failures: 0, logins: 1 },
        ..Case::PLAIN
    },
    Case {
        name: "strict-budget",
        replies: r"
            main START.md | <fork>W</fork><goto>A</goto>
            main A.md | <result>parent</result>
            main_w1 W.md | <goto>A</goto>
            main_w1 A.md | <result>1</result>",
        settings: |settings| {
            settings.budget = Some(Micros(150_000));
            settings.strict_budget = true;
        },
        ..Case::PLAIN
    },
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
        steps: Some((STEPS, RandomReplies { seed: 11, ..ALWAYS_VALID }, Answers::Backend)),
        ..Case::PLAIN
    },
    Case {
        name: "steps-called",
        steps: Some((STEPS, RandomReplies { seed: 11, ..ALWAYS_VALID }, Answers::Caller)),
        ..Case::PLAIN
    },
    Case {
        name: "steps-retried",
        steps: Some((
            TRIED,
            RandomReplies { seed: 3, failures: 50, invalid: 50, ..ALWAYS_VALID },
            Answers::Backend,
        )),
        ..Case::PLAIN
    },
    Case {
        name: "steps-retried-called",
        steps: Some((
            TRIED,
            RandomReplies { seed: 3, failures: 50, invalid: 50, ..ALWAYS_VALID },
            Answers::Caller,
        )),
        ..Case::PLAIN
    },
    Case {
        name: "steps-large",
        steps: Some((
            STEPS,
            RandomReplies { seed: 11, large: 100, ..ALWAYS_VALID },
            Answers::Backend,
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
            Answers::Backend,
        )),
        settings: |settings| settings.budget = Some(Micros(90_000)),
        ..Case::PLAIN
    },
    Case {
        name: "steps-collected-called",
        steps: Some((
            COLLECTED,
            RandomReplies { seed: 5, failures: 60, ..ALWAYS_VALID },
            Answers::Caller,
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
