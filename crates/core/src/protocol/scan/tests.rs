//! The rules of reading tags, one row each.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::*;
use crate::protocol::tags::{Invoke, ResultStatus, Stack, TagContent, When};

mod hostile;
mod properties;

/// One line per tag: `goto A`, `call A return=R`, `result "payload"`, `!goto: what is wrong`, and
/// `(code)` when a tag in code did not count.
fn summary(text: &str, source: Source) -> String {
    let mut lines = Vec::new();
    let mut scan = scan(text, source);
    for found in scan.by_ref() {
        lines.push(match &found.tag {
            Ok(tag) => line(tag),
            Err(problem) => format!("!{}: {problem}", found.name),
        });
    }
    if scan.in_code() {
        lines.push("(code)".to_owned());
    }
    lines.join("\n")
}

fn line(tag: &BorrowedTag<'_>) -> String {
    let mut text = match (tag.kind.target(), &tag.kind) {
        (None, TagContent::Result { payload, status: ResultStatus::Ok }) => {
            format!("result {payload:?}")
        }
        (None, TagContent::Result { payload, status: ResultStatus::Failed }) => {
            format!("result failed {payload:?}")
        }
        (target, kind) => {
            let target = target.map_or("", |target| target.as_ref());
            format!("{} {target}{}", kind.name(), options(kind))
        }
    };
    for name in &tag.unknown {
        write!(text, " ?{name}").unwrap();
    }
    text
}

fn options(kind: &TagContent<'_>) -> String {
    if let TagContent::Later { tag, when } = kind {
        let when = match when {
            When::After(span) => format!("after {span}"),
            When::At(at) => format!("at {}", at.0),
        };
        format!("{} {when}", options(tag))
    } else if let TagContent::Goto { input, .. } = kind {
        shown("input", input.as_ref())
    } else if let TagContent::Reset { input, cd, stack, .. } = kind {
        let clear = if *stack == Stack::Clear { " clear" } else { "" };
        shown("input", input.as_ref()) + &shown("cd", cd.as_ref()) + clear
    } else if let TagContent::Call(invocation) | TagContent::Function(invocation) = kind {
        invoked(invocation)
    } else if let TagContent::Fork { next, cd, input, attributes, .. } = kind {
        let known = [("next", next), ("cd", cd), ("input", input)];
        let known = known.map(|(name, value)| shown(name, value.as_ref())).concat();
        attributes.iter().fold(known, |text, (name, value)| format!("{text} {name}:{value:?}"))
    } else {
        String::new()
    }
}

fn invoked(invocation: &Invoke<Cow<'_, str>, Cow<'_, str>>) -> String {
    format!(
        " return={:?}{}{}",
        invocation.return_to,
        shown("input", invocation.input.as_ref()),
        shown("model", invocation.model.as_ref())
    )
}

fn shown(name: &str, value: Option<&Cow<'_, str>>) -> String {
    value.map(|value| format!(" {name}={value:?}")).unwrap_or_default()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(summary(text, Source::Message), expected, "in {text:?}");
}

#[track_caller]
fn check_script(text: &str, expected: &str) {
    assert_eq!(summary(text, Source::Script), expected, "in {text:?}");
}

#[test]
fn every_tag_is_read_with_its_attributes() {
    check("<goto>A</goto>", "goto A");
    check(r#"<goto input="i">A</goto>"#, r#"goto A input="i""#);
    check("<reset>A</reset>", "reset A");
    check(
        r#"<reset input="i" cd="d" stack="clear">A</reset>"#,
        r#"reset A input="i" cd="d" clear"#,
    );
    check(r#"<call return="R">A</call>"#, r#"call A return="R""#);
    check(
        r#"<call return="R" input="i" model="m">A</call>"#,
        r#"call A return="R" input="i" model="m""#,
    );
    check(
        r#"<function return="R" input="i" model="m">A</function>"#,
        r#"function A return="R" input="i" model="m""#,
    );
    check(
        r#"<fork next="N" cd="d" input="i" item="x" other-1="">A</fork>"#,
        r#"fork A next="N" cd="d" input="i" item:"x" other-1:"""#,
    );
    check("<fork>A</fork>", "fork A");
    check("<result>ok</result>", r#"result "ok""#);
}

#[test]
fn tag_may_be_anywhere() {
    check("", "");
    check("no tag", "");
    check("so <goto>A</goto> it is", "goto A");
    check("<<goto>A</goto>>", "goto A");
    check("ä<goto>Ä.md</goto>ö", "goto Ä.md");
    check("<goto>A</goto><reset>B</reset>", "goto A\nreset B");
    check("<div><goto>A</goto></div>", "goto A");
}

#[test]
fn names_are_lower_case_and_whole() {
    check("<GOTO>A</GOTO>", "");
    check("<Goto>A</Goto>", "");
    check("<gotofoo>A</gotofoo>", "");
    check("<goto-x>A</goto-x>", "");
    check("<goto:x>A</goto:x>", "");
    check("<got>A</got>", "");
    check("< goto>A</goto>", "");
    check("<functions>A</functions>", "");
    check("<goto", "");
    check("<", "");
    check("a <r <re <res <result", "");
}

#[test]
fn tag_name_ends_at_space_or_angle() {
    check("<goto >A</goto>", "goto A");
    check("<goto\n>A</goto>", "goto A");
    check("<goto\t\r\n\u{c} >A</goto>", "goto A");
    check("<goto\u{a0}>A</goto>", "");
    check("<goto/>", "!goto: it ends with `/>` and names nothing");
}

#[test]
fn values_may_use_either_quotes() {
    check("<goto input='i'>A</goto>", r#"goto A input="i""#);
    check(r#"<goto input='"'>A</goto>"#, r#"goto A input="\"""#);
    check(r#"<goto input="'">A</goto>"#, r#"goto A input="'""#);
    check("<goto input=\"a>b\nc\">A</goto>", r#"goto A input="a>b\nc""#);
    check("<goto input = \n \"i\"\t>A</goto>", r#"goto A input="i""#);
    check(r#"<goto input="">A</goto>"#, r#"goto A input="""#);
    check(
        r#"<goto input="<reset>B</reset> <goto">A</goto>"#,
        r#"goto A input="<reset>B</reset> <goto""#,
    );
    check(r#"<goto input="/">A</goto>"#, r#"goto A input="/""#);
}

#[test]
fn entities_are_decoded_in_values_only() {
    check(
        r#"<goto input="&lt;&gt;&amp;&quot;&apos;&nbsp;">A</goto>"#,
        r#"goto A input="<>&\"'&nbsp;""#,
    );
    check(r#"<fork next="&quot;N" x="&amp;lt;">A</fork>"#, r#"fork A next="\"N" x:"&lt;""#);
    check("<goto>A&amp;B</goto>", "goto A&amp;B");
    check("<result>&lt;</result>", r#"result "&lt;""#);
}

#[test]
fn mistakes_in_attributes_make_a_tag_malformed() {
    check(r#"<goto input="1" input="2">A</goto>"#, "!goto: attribute `input` is repeated");
    check(r#"<fork next="N" x="1" y="2" x='3'>A</fork>"#, "!fork: attribute `x` is repeated");
    check("<goto input>A</goto>", "!goto: attribute `input` has no value");
    check(r#"<goto input cd="x">A</goto>"#, "!goto: attribute `input` has no value");
    check("<goto input=x>A</goto>", "!goto: the value of `input` is not in quotes");
    check("<goto input=>A</goto>", "!goto: the value of `input` is not in quotes");
    check(r#"<goto a="1"b="2">A</goto>"#, "!goto: there is no space before attribute `b`");
    check(r#"<goto 1a="1">A</goto>"#, "!goto: `1a` is not an attribute name");
    check(r#"<goto ä="1">A</goto>"#, "!goto: `ä` is not an attribute name");
    check(r#"<goto ="1">A</goto>"#, "!goto: there is a value without an attribute name");
    check("<goto / >A</goto>", "!goto: there is a misplaced `/` in its opening");
    check(r#"<goto "x">A</goto>"#, "!goto: there is a misplaced quote in its opening");
    check(r#"<goto input="x"">A</goto>"#, "!goto: there is a misplaced quote in its opening");
    check(r#"<goto input="x" />A</goto>"#, "!goto: it ends with `/>` and names nothing");
}

#[test]
fn attribute_names_are_bounded() {
    let name = "x".repeat(TagProblem::LONGEST_NAME);
    let fork = |name: &str| format!(r#"<fork next="N" {name}="">A</fork>"#);
    check(&fork(&name), &format!(r#"fork A next="N" {name}:"""#));
    let shown = "x".repeat(40);
    check(&fork(&(name + "x")), &format!("!fork: `{shown}…` is not an attribute name"));
}

#[test]
fn a_tag_has_a_bounded_number_of_attributes() {
    let fork = |count: usize| -> String {
        let attributes: Vec<String> = (0..count).map(|n| format!("a{n:04}=''")).collect();
        format!("<fork {}>A</fork>", attributes.join(" "))
    };
    let most = scan(&fork(1000), Source::Message).next().unwrap().tag.is_ok();
    assert!(most, "1000 attributes are read");
    check(&fork(1001), "!fork: it has more than 1000 attributes");
}

#[test]
fn an_opening_that_cannot_end_is_malformed() {
    check("use <goto to go on", "!goto: its opening has no `>`");
    check("<goto ", "!goto: its opening has no `>`");
    check("<goto/", "!goto: its opening has no `>`");
    check("<goto input=", "!goto: its opening has no `>`");
    check("<goto input=A</goto>", "!goto: its opening has no `>`");
    check(r#"<goto input="x>A</goto>"#, "!goto: the value of `input` has no closing quote");
    check("<goto isn't>A</goto>", "!goto: attribute `isn` has no value");
}

#[test]
fn reading_continues_after_a_malformed_opening() {
    check("<goto/><goto>A</goto>", "!goto: it ends with `/>` and names nothing\ngoto A");
    check("<goto x>A</goto><reset>B</reset>", "!goto: attribute `x` has no value\nreset B");
    check("<goto x><reset>B</reset></goto>", "!goto: attribute `x` has no value\nreset B");
    check("the <goto tag: <goto>A</goto>", "!goto: its opening has no `>`\ngoto A");
    check(
        r#"<goto input="x <reset>B</reset>"#,
        "!goto: the value of `input` has no closing quote\nreset B",
    );
    check("<goto isn't> <reset>B</reset> isn't>", "!goto: attribute `isn` has no value\nreset B");
    // An opening that ends is never read again, so its values contain no tags.
    check(r#"<goto x input="<reset>B</reset>">A</goto>"#, "!goto: attribute `x` has no value");
}

#[test]
fn required_attributes_must_be_there_and_not_empty() {
    check("<call>A</call>", "!call: attribute `return` is missing");
    check(r#"<function input="i">A</function>"#, "!function: attribute `return` is missing");
    check(r#"<call return=" ">A</call>"#, "!call: attribute `return` is empty");
    check(r#"<fork next="">A</fork>"#, "!fork: attribute `next` is empty");
    check(r#"<reset cd="">A</reset>"#, "!reset: attribute `cd` is empty");
    check(r#"<call return="R" model="">A</call>"#, "!call: attribute `model` is empty");
    check(r#"<call return=" R ">A</call>"#, r#"call A return="R""#);
    check(r#"<call return=" &amp;">A</call>"#, r#"call A return="&""#);
}

#[test]
fn status_is_ok_or_failed() {
    check(r#"<result status="ok">x</result>"#, r#"result "x""#);
    check("<result status='failed'>x</result>", r#"result failed "x""#);
    for value in ["Failed", "", "error"] {
        check(
            &format!(r#"<result status="{value}">x</result>"#),
            "!result: `status` can only be \"ok\" or \"failed\"",
        );
    }
}

#[test]
fn stack_can_only_be_clear() {
    for value in ["", "keep", "Clear", " clear"] {
        check(
            &format!(r#"<reset stack="{value}">A</reset>"#),
            "!reset: `stack` can only be \"clear\"",
        );
    }
}

#[test]
fn unknown_attributes_warn_except_on_fork() {
    check(r#"<goto next="x" cd="y">A</goto>"#, "goto A ?cd ?next");
    check(r#"<reset model="x">A</reset>"#, "reset A ?model");
    let no = |tag: &str, name: &str, meant: &str| {
        format!("!{tag}: it has no attribute `{name}`; did you mean `{meant}`?")
    };
    check(r#"<goto wiat="all">A</goto>"#, &no("goto", "wiat", "wait"));
    check(r#"<goto aftr="5m">A</goto>"#, &no("goto", "aftr", "after"));
    check(r#"<reset Stack="clear">A</reset>"#, &no("reset", "Stack", "stack"));
    check(r#"<result staus="failed">no</result>"#, &no("result", "staus", "status"));
    check(r#"<goto id="x">A</goto>"#, "goto A ?id");
    check(r#"<call return="R" cd="x">A</call>"#, r#"call A return="R" ?cd"#);
    check(r#"<result input="x">ok</result>"#, r#"result "ok" ?input"#);
    check(r#"<fork return="x" stack="y">A</fork>"#, r#"fork A return:"x" stack:"y""#);
}

#[test]
fn reserved_attributes_are_refused_on_fork_only() {
    let reserved = ["wait_timeout", "model", "backend", "budget", "worktree", "branch", "name"];
    for name in reserved {
        let why = "is reserved and cannot be a template variable; use another name";
        check(
            &format!(r#"<fork next="N" {name}="x">A</fork>"#),
            &format!("!fork: attribute `{name}` {why}"),
        );
        check(&format!(r#"<goto {name}="x">A</goto>"#), &format!("goto A ?{name}"));
    }
    check(r#"<fork Name="x">A</fork>"#, r#"fork A Name:"x""#);
}

#[test]
fn only_goto_and_reset_can_wait() {
    check(r#"<goto after="5m" input="x">A</goto>"#, r#"goto A input="x" after 5m"#);
    check(r#"<reset at="1970-01-01T00:00:07+00:00">A</reset>"#, "reset A at 7000");
    check(
        r#"<goto after=" 1s">A</goto>"#,
        r#"!goto: `after`: " 1s" is not a duration such as 90s, 10m, 2h or 7d"#,
    );
    for wrong in ["0s", "999ms", "367d"] {
        let text = format!(r#"<goto after="{wrong}">A</goto>"#);
        check(&text, "!goto: `after` must be between 1s and 366d");
    }
    let example = "is not a time such as 2026-11-18T07:00:00+01:00";
    check(r#"<goto at="07:00">A</goto>"#, &format!("!goto: `at`: \"07:00\" {example}"));
    check(
        r#"<goto after="5m" at="1970-01-01T00:00:07Z">A</goto>"#,
        "!goto: `after` and `at` cannot be combined",
    );
    for (name, text) in [
        ("call", r#"<call return="B" after="5m">A</call>"#),
        ("function", r#"<function return="B" after="5m">A</function>"#),
        ("fork", r#"<fork next="B" after="5m">A</fork>"#),
        ("result", r#"<result after="5m">A</result>"#),
    ] {
        check(text, &format!("!{name}: `after` is only valid on goto and reset"));
    }
    check(r#"<fork next="N" at="noon">A</fork>"#, r#"fork A next="N" at:"noon""#);
}

#[test]
fn names_are_bounded() {
    let name = "x".repeat(TagProblem::LONGEST_NAME);
    check(&format!("<goto> {name} </goto>"), &format!("goto {name}"));
    check(&format!("<goto>{name}x</goto>"), "!goto: its target is longer than any name");
    for (tag, attribute) in [
        ("call", "return"),
        ("function", "model"),
        ("fork", "next"),
        ("fork", "cd"),
        ("reset", "cd"),
    ] {
        check(
            &format!(r#"<{tag} {attribute}="{name}x">A</{tag}>"#),
            &match attribute {
                "model" => "!function: attribute `return` is missing".to_owned(),
                _ => format!("!{tag}: the value of `{attribute}` is longer than any name"),
            },
        );
    }
    check(&format!(r#"<call return=" {name} ">A</call>"#), &format!("call A return={name:?}"));
    check(
        &format!(r#"<call return="R" model="{name}x">A</call>"#),
        "!call: the value of `model` is longer than any name",
    );
    check(&format!(r#"<goto input="{name}x">A</goto>"#), &format!("goto A input=\"{name}x\""));
}

#[test]
fn close_may_end_with_white_space() {
    check("<goto>A</goto \n\t>", "goto A");
    check("<result>a</result \n>", r#"result "a""#);
    let unclosed = "!goto: there is no `</goto>` right after the name of a state";
    check("<goto>A</ goto>", unclosed);
    check("<goto>A< /goto>", unclosed);
    check("<goto>A</goto x>", unclosed);
    check("<goto>A</gotofoo>", unclosed);
    check("<goto>A</goto", unclosed);
    check("<goto>A</GOTO>", unclosed);
    check("<goto>A</reset>", unclosed);
    check("<result>a</results></result>", r#"result "a</results>""#);
}

#[test]
fn a_close_without_an_opening_is_text() {
    check("</goto></reset></result>", "");
    check("</goto><reset>A</reset></fork>", "reset A");
    check("a </result> b <goto>A</goto>", "goto A");
}

#[test]
fn targets_are_trimmed_and_not_empty() {
    check("<goto> A </goto>", "goto A");
    check("<goto>\n\tA B.md\r\n</goto>", "goto A B.md");
    check("<goto>\u{a0}A\u{2003}</goto>", "goto A");
    check("<goto></goto>", "!goto: it names no state");
    check("<goto> \n </goto>", "!goto: it names no state");
    check("<goto></goto><goto>A</goto>", "!goto: it names no state\ngoto A");
}

#[test]
fn target_contains_no_angle_and_no_newline() {
    let unclosed = "!goto: there is no `</goto>` right after the name of a state";
    check("<goto>A", unclosed);
    check("<goto>A\nB</goto>", unclosed);
    check("<goto>A<b>B</goto>", unclosed);
    check("<goto>A<goto>B</goto>", &format!("{unclosed}\ngoto B"));
    check("The <goto> tag leads on.\n<goto>A</goto>", &format!("{unclosed}\ngoto A"));
    check("<goto><reset>B</reset></goto>", &format!("{unclosed}\nreset B"));
    check("<goto>A\n<reset>B</reset>", &format!("{unclosed}\nreset B"));
}

#[test]
fn a_payload_is_raw() {
    check("<result></result>", r#"result """#);
    check("<result> \n a \n</result>", r#"result " \n a \n""#);
    check(
        "<result>a <goto>B</goto> </goto> <b></result>",
        r#"result "a <goto>B</goto> </goto> <b>""#,
    );
    check("<result>a <goto </result><reset>C</reset>", "result \"a <goto \"\nreset C");
    check("<result>\n```\nx\n```\n</result>", r#"result "\n```\nx\n```\n""#);
    check("<result>\n```\nx</result>", r#"result "\n```\nx""#);
    check("<result>a ` b</result> c ` d", r#"result "a ` b""#);
    check("<result>a</ result></result>", r#"result "a</ result>""#);
}

const TWICE_OPENED: &str = "!result: `<result` appears twice before `</result>`, so the payload is \
                            uncertain; where you mean the tag itself, describe it, do not write it";
const TWICE_CLOSED: &str = "!result: `</result>` appears twice, so the payload is uncertain; where \
                            you mean the tag itself, describe it, do not write it";

#[test]
fn second_opening_makes_the_result_malformed() {
    check("I use <result> now: <result>ok</result>", TWICE_OPENED);
    check("<result>a <result b</result>", TWICE_OPENED);
    check("<result>a <result/> b</result>", TWICE_OPENED);
    check("<result/> <result>ok</result>", TWICE_OPENED);
    check("<result and <result>ok</result>", TWICE_OPENED);
    check("<result>a `<result>` b</result>", TWICE_OPENED);
    check("I use <result>:\n```\n<result>ok</result>\n```", TWICE_OPENED);
    check(
        "<result><goto>A</goto><result></result><goto>B</goto>",
        &format!("{TWICE_OPENED}\ngoto B"),
    );
    check("<result>a <results> b</result>", r#"result "a <results> b""#);
    check("<result>a</result><result>b</result>", "result \"a\"\nresult \"b\"");
}

#[test]
fn a_further_close_makes_the_result_malformed() {
    check("<result>a </result> b</result>", TWICE_CLOSED);
    check("<result>a `</result>` b</result>", TWICE_CLOSED);
    check("<result>a `</result>` and `</result>`", TWICE_CLOSED);
    check("<result>\n```\n</result>\n```\n</result>", TWICE_CLOSED);
    check("<result>a</result> b </result> c </result>", TWICE_CLOSED);
    check("<result>a</result></result><goto>A</goto>", &format!("{TWICE_CLOSED}\ngoto A"));
    check("<result>a</result> `<goto>` </result>", TWICE_CLOSED);
    check(
        "<result>a</result><result>b</result></result>",
        &format!("result \"a\"\n{TWICE_CLOSED}"),
    );
    check(
        "<result>a</result></result><result>b</result>",
        &format!("{TWICE_CLOSED}\nresult \"b\""),
    );
    check("<result x>a</result></result>", TWICE_CLOSED);
    check("<result>a</result><goto>A</goto></result>", "result \"a\"\ngoto A");
    check("<result>a</result> <goto </result>", "result \"a\"\n!goto: its opening has no `>`");
}

#[test]
fn close_in_code_after_a_close_is_text() {
    check("<result>a</result> closed with `</result>`", r#"result "a""#);
    check("<result>a</result>\n```\n<result>b</result>\n```", "result \"a\"\n(code)");
    check("<result>a</result> `</result>` </result>", TWICE_CLOSED);
    check_script("<result>a</result> `</result>`", TWICE_CLOSED);
}

#[test]
fn malformed_result_is_skipped_with_its_close() {
    check(
        "<result x><goto>A</goto></result><reset>B</reset>",
        "!result: attribute `x` has no value\nreset B",
    );
    check(
        "<result \"><goto>A</goto></result><reset>B</reset>",
        "!result: there is a misplaced quote in its opening\nreset B",
    );
    check(
        "<result/><goto>A</goto></result><reset>B</reset>",
        "!result: it ends with `/>` and names nothing\nreset B",
    );
    check("<result/><goto>A</goto>", "!result: it ends with `/>` and names nothing\ngoto A");
    check("<result>a <goto>A</goto>", "!result: it has no `</result>`\ngoto A");
    check("<result>a <result>b", "!result: it has no `</result>`\n!result: it has no `</result>`");
}

#[test]
fn tags_in_code_are_text_beside_others() {
    check("`<goto>A</goto>` <goto>B</goto>", "goto B\n(code)");
    check("<goto>B</goto>\n```\n<goto>A</goto>\n```", "goto B\n(code)");
    check("<goto>B</goto>\n~~~\n<goto>A</goto>", "goto B\n(code)");
    check(
        "```\n<goto>A</goto>\n```\n<call>B</call>",
        "!call: attribute `return` is missing\n(code)",
    );
    check("```\n<goto>A</goto>\n```\n<goto", "goto A");
    check("`<goto x>`\n<goto>B</goto>", "goto B\n(code)");
    check("<result>`<goto>A</goto>`</result>", "result \"`<goto>A</goto>`\"");
}

#[test]
fn first_byte_decides_whether_tag_is_code() {
    check("<goto>`A`</goto>", "goto `A`");
    check("<goto>A`</goto>` x", "goto A`");
    check("`a <goto>A` </goto> <reset>B</reset>", "reset B\n(code)");
    check(r#"<goto input="`">A</goto> `"#, r#"goto A input="`""#);
    check("a ` b <goto>A</goto>\n\nc ` d", "goto A");
    check("a ` b <goto>A</goto> c ` d", "(code)");
}

#[test]
fn lone_tag_in_code_counts_without_others() {
    check("`<goto>A</goto>`", "goto A");
    check("So:\n  ` <goto>A</goto> `\t\r\nyes", "goto A");
    check("```\n<goto>A</goto>\n```", "goto A");
    check("```xml\n  <goto>\n A\n </goto>  \n```", "goto A");
    check("```<goto>A</goto>```", "goto A");
    check("~~~\n<goto>A</goto>", "goto A");
    check("```\n<result>\na <b>\n</result>\n```", "result \"\\na <b>\\n\"");
    check("```\n<goto>A</goto>\n<goto>B</goto>\n```", "goto A\ngoto B");
    check("```\n<result>a</result>\n<result>b</result>\n```", "result \"a\"\nresult \"b\"");
    check(
        "Use `<result>` at the end.\n```\n<result>\nok\n</result>\n```",
        "result \"\\nok\\n\"\n(code)",
    );
    check("```\n<call>A</call>\n```", "!call: attribute `return` is missing");
    check("```\n<goto/>\n```", "!goto: it ends with `/>` and names nothing");
    check("```\n<result>a</result>\n</result>\n```", TWICE_CLOSED);
}

#[test]
fn tag_in_code_beside_text_does_not_count() {
    check("use `<goto>A</goto>`", "(code)");
    check("`<goto>A</goto>`.", "(code)");
    check("- `<goto>A</goto>`", "(code)");
    check("```\nx = <goto>A</goto>\n```", "(code)");
    check("```\n<goto>A</goto> # go\n```", "(code)");
    check("```\n<goto>A</goto><goto>B</goto>\n```", "(code)");
    check("```\n<result>\nok\n</result> done\n```", "(code)");
    check("`<goto`", "");
    check("`<goto `", "!goto: its opening has no `>`");
    check("`<goto>`: goes on", "(code)");
    check("~~~ <goto>A</goto>\n", "(code)");
    check("`<result>` opens\n```\n<goto>A</goto>\n```\n`</result>` closes", "goto A\n(code)");
}

#[test]
fn a_script_has_no_code() {
    check_script("`<goto>A</goto>`", "goto A");
    check_script("```\nx <goto>A</goto>\n```\n<goto>B</goto>", "goto A\ngoto B");
}

#[test]
fn iteration_reads_only_result_tags() {
    let check = |text: &str, expected: &str| {
        assert_eq!(summary(text, Source::Iteration), expected, "{text:?}");
    };
    check("<goto>A</goto> <call>B</call> <fork>C</fork> <reset/> <function", "");
    check("<goto>A</goto><result>x</result><goto>B</goto>", "result \"x\"");
    check("<result>a<goto>A</goto></result>", "result \"a<goto>A</goto>\"");
    check("<result>a</result><result>b</result>", "result \"a\"\nresult \"b\"");
    check("<result>a", "!result: it has no `</result>`");
    // Tags that are text neither keep a result in code from counting, nor make a further close
    // certain.
    check("<goto>A</goto>\n```\n<result>x</result>\n```", "result \"x\"");
    let doubt = summary("<result>a</result> </result>", Source::Message);
    check("<result>a</result> <goto>A</goto> </result>", &doubt);
    check("so I write `<result>x</result>` later", "(code)");
}

#[test]
fn a_span_covers_the_whole_tag() {
    let spans = |text: &str| -> Vec<Range<usize>> {
        scan(text, Source::Message).map(|found| found.span).collect()
    };
    assert_eq!(spans("a<goto>B</goto >c"), vec![1..16]);
    assert_eq!(spans("<result>a</result>b</result>c"), vec![0..28]);
    assert_eq!(spans("<call>A</call>"), vec![0..14]);
    assert_eq!(spans("<goto>A"), vec![0..6]);
    assert_eq!(spans("<goto A"), vec![0..5]);
}
