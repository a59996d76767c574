//! Every tag, scripts, large texts, and transitions that wait.

use raymond_core::run::prepared_answers::{PreparedAnswers, StateAnswers};

use crate::sim::host::HelpLimits;
use crate::sweep::case::Case;

pub(super) const TRANSITIONS: &[Case] = &[
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
        name: "joins",
        replies: r#"
            main START.md | <fork k="1">W</fork><fork k="2">W</fork><goto wait="all">END</goto>
            main END.md | <result>joined</result>
            main_w1 W.md | <goto>B</goto>
            main_w1 B.md | <result>1</result>
            main_w2 W.md | <result>2</result>"#,
        ..Case::PLAIN
    },
    Case {
        // The second worker waits for so long that the first always ends before it.
        name: "joins-any",
        replies: r#"
            main START.md | <fork>W</fork><fork>W</fork><goto wait="any">END</goto>
            main END.md | <result>joined</result>
            main_w1 W.md | <goto after="72h">LAST</goto>
            main_w1 LAST.md | <result>1</result>
            main_w2 W.md | <goto after="720h">LAST</goto>"#,
        ..Case::PLAIN
    },
    Case {
        name: "joins-nested",
        replies: r#"
            main START.md | <call return="END">SUB</call>
            main SUB.md | <fork>W</fork><goto wait="all">BACK</goto>
            main BACK.md | <result>back</result>
            main END.md | <result>done</result>
            main_w1 W.md | <fork>V</fork><fork>V</fork><goto wait="done">N</goto>
            main_w1 N.md | <result>n</result>
            main_w1_v1 V.md | <result>1</result>
            main_w1_v2 V.md | <result>2</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "questions",
        replies: r#"
            main START.sh | <call return="END">SUB</call>
            main SUB.sh | <ask next="D" options="yes|no">Shall I?</ask>
            main D.sh | <result>asked</result>
            main END.sh | <result>done</result>"#,
        ..Case::PLAIN
    },
    Case {
        // A worker works while its parent asks.
        name: "questions-beside-workers",
        replies: r#"
            main START.sh | <fork next="ASK">W</fork>
            main ASK.sh | <ask next="END">Shall I?</ask>
            main END.sh | <result>done</result>
            main_w1 W.md | <goto>B</goto>
            main_w1 B.md | <result>1</result>"#,
        ..Case::PLAIN
    },
    Case {
        name: "questions-answered",
        settings: |settings| {
            let answer = StateAnswers::ByVisit(vec!["yes".to_owned()]);
            settings.answers = PreparedAnswers([("START".to_owned(), answer)].into());
        },
        replies: r#"
            main START.sh | <ask next="D" options="yes|no">Shall I?</ask>
            main D.sh | <result>asked</result>"#,
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
];
