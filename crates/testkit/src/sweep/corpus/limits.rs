//! Reminders, visits, money, retries, stops and the number of agents.

use raymond_core::budget::Micros;
use raymond_core::run::settings::OnLostSession;

use crate::sim::host::HelpLimits;
use crate::sweep::case::{Case, Strictness};

pub(super) const LIMITS: &[Case] = &[
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
];
