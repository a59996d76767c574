//! Every rule of "Reading tags", one row each.

use super::super::{Reading, Source, Tag, read};

/// Writes a reading in one line: the tags, then the rest.
pub(super) fn show(reading: &Reading) -> String {
    let mut parts: Vec<String> = reading.tags.iter().map(show_tag).collect();
    if reading.malformed > 0 {
        parts.push(format!("malformed={}", reading.malformed));
    }
    if reading.in_code {
        parts.push("in_code".to_owned());
    }
    for (tag, attribute) in &reading.unknown_attributes {
        parts.push(format!("unknown {tag}.{attribute}"));
    }
    parts.join("; ")
}

fn show_tag(tag: &Tag) -> String {
    let attributes = tag.attributes.iter();
    let attributes = attributes.map(|(key, value)| format!("{key}={value:?}"));
    let mut parts = vec![format!("{} {:?}", tag.name, tag.body)];
    parts.extend(attributes);
    parts.join(" ")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(show(&read(text, Source::Message)), expected, "{text}");
}

#[track_caller]
fn check_script(text: &str, expected: &str) {
    assert_eq!(show(&read(text, Source::Script)), expected, "{text}");
}

#[track_caller]
fn check_settled(text: &str, expected: &str) {
    let reading = read(text, Source::Message).settled();
    assert_eq!(show(&reading), expected, "{text}");
}

#[test]
fn tag_may_be_anywhere_in_the_text() {
    check("", "");
    check("no tag", "");
    check("<goto>A</goto>", r#"goto "A""#);
    check("Done. <reset>A.md</reset> Bye.", r#"reset "A.md""#);
    check("a\n<goto>A</goto>\n<result>x</result>", r#"goto "A"; result "x""#);
}

#[test]
fn names_are_lower_case_and_whole() {
    for text in ["<gotofoo>A</goto>", "<GOTO>A</GOTO>", "< goto>A</goto>", "<goto"] {
        check(text, "");
    }
    check("<goto\t>A</goto>", r#"goto "A""#);
    check("<goto\n>A</goto>", r#"goto "A""#);
    check("<goto\u{a0}>A</goto>", "");
    check("<\u{e4}><goto>A</goto>", r#"goto "A""#);
}

#[test]
fn attributes_are_quoted_and_decoded_once() {
    check(r#"<goto input="x">A</goto>"#, r#"goto "A" input="x""#);
    check("<goto input='\"'>A</goto>", r#"goto "A" input="\"""#);
    check("<goto input = \"a>b\n<c\" >A</goto>", r#"goto "A" input="a>b\n<c""#);
    check("<goto input\n=\n'x'>A</goto>", r#"goto "A" input="x""#);
    check(r#"<goto input="&lt;&gt;&amp;&quot;&apos;">A</goto>"#, r#"goto "A" input="<>&\"'""#);
    check(r#"<goto input="&amp;lt; &nbsp; &lt">A</goto>"#, r#"goto "A" input="&lt; &nbsp; &lt""#);
    check("<goto>A&amp;B</goto>", r#"goto "A&amp;B""#);
    check("<result>&lt;</result>", r#"result "&lt;""#);
}

#[test]
fn unreadable_attributes_make_the_tag_malformed() {
    for text in [
        r#"<goto input="a" input="b">A</goto>"#,
        "<goto input>A</goto>",
        "<goto input=a>A</goto>",
        r#"<goto input="a"other="b">A</goto>"#,
        r#"<goto 1a="x">A</goto>"#,
        r#"<goto input="a>A</goto>"#,
        r#"<goto input="a"/>"#,
        "<goto/>",
        "<goto/>A</goto>",
        "<goto ",
        "<goto",
    ] {
        let expected = if text == "<goto" { "" } else { "malformed=1" };
        check(text, expected);
    }
    check(
        r#"<goto Foo="b" other-1="c">A</goto>"#,
        r#"goto "A"; unknown goto.Foo; unknown goto.other-1"#,
    );
    check(r#"<goto Input="b">A</goto>"#, "malformed=1");
}

#[test]
fn each_tag_has_its_own_attributes() {
    check(
        r#"<reset input="i" cd="d" stack="clear">A</reset>"#,
        r#"reset "A" cd="d" input="i" stack="clear""#,
    );
    check(r#"<reset stack="keep">A</reset>"#, "malformed=1");
    check(
        r#"<call return="R" input="i" model="m">A</call>"#,
        r#"call "A" input="i" model="m" return="R""#,
    );
    check(r#"<function return="R">A</function>"#, r#"function "A" return="R""#);
    check("<call>A</call>", "malformed=1");
    check(r#"<function input="i">A</function>"#, "malformed=1");
    check(
        r#"<fork next="N" cd="d" input="i" item="3" stack="x">A</fork>"#,
        r#"fork "A" cd="d" input="i" item="3" next="N" stack="x""#,
    );
    check(r#"<result to="x">p</result>"#, r#"result "p"; unknown result.to"#);
    check(r#"<goto cd="d">A</goto>"#, r#"goto "A"; unknown goto.cd"#);
}

#[test]
fn reserved_attributes_are_refused_on_forks_only() {
    for reserved in [
        "wait",
        "wait_timeout",
        "after",
        "model",
        "backend",
        "budget",
        "worktree",
        "branch",
        "timeout",
        "name",
    ] {
        check(&format!(r#"<fork next="N" {reserved}="x">A</fork>"#), "malformed=1");
    }
    check(r#"<goto name="x">A</goto>"#, r#"goto "A"; unknown goto.name"#);
    check(r#"<fork next="N" Model="x">A</fork>"#, r#"fork "A" Model="x" next="N""#);
}

#[test]
fn only_goto_and_reset_wait() {
    check(r#"<goto after="90s">A</goto>"#, r#"goto "A" after="90s""#);
    check(
        r#"<reset at="2001-01-01T00:00:00Z">A</reset>"#,
        r#"reset "A" at="2001-01-01T00:00:00Z""#,
    );
    check(r#"<fork next="N" at="x">A</fork>"#, r#"fork "A" at="x" next="N""#);
    for malformed in [
        r#"<goto after="5">A</goto>"#,
        r#"<goto after="999ms">A</goto>"#,
        r#"<goto after="367d">A</goto>"#,
        r#"<goto at="07:00">A</goto>"#,
        r#"<goto after="5m" at="2001-01-01T00:00:00Z">A</goto>"#,
        r#"<call return="B" after="5m">A</call>"#,
        r#"<result at="2001-01-01T00:00:00Z">p</result>"#,
    ] {
        check(malformed, "malformed=1");
    }
}

#[test]
fn fork_without_next_needs_one_goto() {
    check_settled("<fork>A</fork>", "malformed=1");
    check_settled("<fork>A</fork><goto>N</goto>", r#"fork "A"; goto "N""#);
    check_settled("<fork>A</fork><fork>B</fork><goto>N</goto>", r#"fork "A"; fork "B"; goto "N""#);
    check_settled(r#"<fork>A</fork><fork next="N">B</fork>"#, r#"fork "B" next="N"; malformed=1"#);
    check_settled(
        "<fork>A</fork><goto>N</goto><goto>N</goto>",
        r#"goto "N"; goto "N"; malformed=1"#,
    );
    check_settled("<fork>A</fork><result>x</result>", r#"result "x"; malformed=1"#);
}

#[test]
fn long_names_are_malformed() {
    let (fits, long) = ("x".repeat(4096), "x".repeat(4097));
    check(&format!("<goto>{fits}</goto>"), &format!("goto {fits:?}"));
    for text in [
        format!("<goto>{long}</goto>"),
        format!(r#"<call return="{long}">A</call>"#),
        format!(r#"<call return="R" model="{long}">A</call>"#),
        format!(r#"<reset cd="{long}">A</reset>"#),
        format!(r#"<fork next="{long}">A</fork>"#),
        format!(r#"<fork next="N" cd="{long}">A</fork>"#),
    ] {
        check(&text, "malformed=1");
    }
    check(&format!(r#"<goto input="{long}">A</goto>"#), &format!("goto \"A\" input={long:?}"));
    check(&format!("<result>{long}</result>"), &format!("result {long:?}"));
}

#[test]
fn the_first_closing_ends_a_tag() {
    check("<goto>A</goto >", r#"goto "A""#);
    check("<goto>A</goto\n>", r#"goto "A""#);
    check("<goto>A</goto></goto>", r#"goto "A""#);
    check("<goto>A</gotox></goto>", "malformed=1");
    check("</goto> <reset>A</reset> </call>", r#"reset "A""#);
    check("<goto>A</reset>", "malformed=1");
}

#[test]
fn targets_are_trimmed_and_stay_on_one_line() {
    check("<goto>\n  A B \n</goto>", r#"goto "A B""#);
    check("<goto></goto>", "malformed=1");
    check("<goto> \n </goto>", "malformed=1");
    check("<goto>A\nB</goto>", "malformed=1");
    check("<goto>A<b</goto>", "malformed=1");
}

#[test]
fn reading_continues_after_a_malformed_opening() {
    check("Use <goto> like so: <goto>A</goto>", r#"goto "A"; malformed=1"#);
    check("<goto bare><reset>A</reset>", r#"reset "A"; malformed=1"#);
    check("<goto <reset>A</reset>", r#"reset "A"; malformed=1"#);
    check(r#"<goto input="open>A</goto> <reset>B</reset>"#, r#"reset "B"; malformed=1"#);
    check(r#"<goto input="<reset>A</reset>" bare>B</goto>"#, "malformed=1");
    check(r#"<goto input="<reset>A</reset>" input="">B</goto>"#, "malformed=1");
    check("<goto>A <reset>B</reset></goto>", r#"reset "B"; malformed=1"#);
    check("<result bare>x <goto>A</goto></result><reset>B</reset>", r#"reset "B"; malformed=1"#);
    check("<result bare>x <goto>A</goto>", r#"goto "A"; malformed=1"#);
}

#[test]
fn a_payload_is_raw() {
    check("<result></result>", r#"result """#);
    check("<result>\n a \n</result >", r#"result "\n a \n""#);
    check("<result><goto>A</goto> </goto></result>", r#"result "<goto>A</goto> </goto>""#);
    check("<result>a<results></result>", r#"result "a<results>""#);
    check("a <result> that never closes <goto>A</goto>", r#"goto "A"; malformed=1"#);
}

#[test]
fn a_mentioned_result_never_delivers_a_wrong_payload() {
    check("I end with <result>: <result>x</result>", "malformed=1");
    check("I end with <result>: <result>x</result><goto>A</goto>", r#"goto "A"; malformed=1"#);
    check("<result>close with </result> please</result>", "malformed=1");
    check("<result>close with `</result>` please</result>", "malformed=1");
    check("<result>a</result>b</result>c</result>", "malformed=1");
    check("<result>a</result><goto>A</goto></result>", r#"result "a"; goto "A""#);
    check("<result>a</result><result>b</result>", r#"result "a"; result "b""#);
}

#[test]
fn tags_in_code_are_text_beside_others() {
    check("`<goto>A</goto>` <reset>B</reset>", r#"reset "B"; in_code"#);
    check("```\n<goto>A</goto>\n```\n<reset>B</reset>", r#"reset "B"; in_code"#);
    check("```\n<goto>A</goto>\n```\n<reset/>", "malformed=1; in_code");
    check("I end with `<result>`: <result>x</result>", r#"result "x"; in_code"#);
    // A payload that mentions its own tag is malformed, wherever the mention is.
    check("<result>the `<result>` tag</result>", "malformed=1");
    check("<result>`<goto>A</goto>`</result>", r#"result "`<goto>A</goto>`""#);
    check("<result>a</result>`<goto>`</result>", "malformed=1");
}

#[test]
fn lone_tag_in_code_counts() {
    check("`<goto>A</goto>`", r#"goto "A""#);
    check("Done.\n```\n<goto>A</goto>\n```\n", r#"goto "A""#);
    check("```<goto>A</goto>```", r#"goto "A""#);
    check("```\n  <result>a\nb</result>\r\n```", r#"result "a\nb""#);
    check("Then `<goto>A</goto>`", "in_code");
    check("```\n<goto>A</goto> # go\n```", "in_code");
    check("```\n<goto>A</goto> # go\n<reset>B</reset>\n```", r#"reset "B"; in_code"#);
    check("```\n<goto>\n```", "malformed=1");
    check("```\n<call>A</call>\n```", "malformed=1");
    check("```\n<goto/>\n```", "malformed=1");
    check("the `<goto>` tag", "in_code");
}

#[test]
fn fences_have_any_indentation_and_may_stay_open() {
    let outside = "\n<goto>A</goto>";
    check(&format!("```{outside} x"), "in_code");
    check(&format!("        ~~~~ text{outside} x\n~~~{outside} x"), "in_code");
    check(&format!("~~~\n~~~~ {outside}"), r#"goto "A""#);
    check(&format!("~~~\n~~~ x{outside} x"), "in_code");
    check(&format!("```\n~~~{outside} x"), "in_code");
    check(&format!("```a`{outside} x"), r#"goto "A""#);
    check(&format!("a ```{outside} x"), r#"goto "A""#);
    check("~~<goto>A</goto>~~ x", r#"goto "A""#);
}

#[test]
fn spans_need_equal_backticks_in_one_paragraph() {
    check("a ``<goto>A</goto>`` b", "in_code");
    check("a `` ` <goto>A</goto> `` b", "in_code");
    check("a ``<goto>A</goto>` b", r#"goto "A""#);
    check("a `x`` <goto>A</goto> ` b", "in_code");
    check("a `b\n<goto>A</goto>` c", "in_code");
    check("a `b\n\n<goto>A</goto>` c", r#"goto "A""#);
    check("a `b\n \t\r\n<goto>A</goto>` c", r#"goto "A""#);
    check("a `b\n```\n```\n<goto>A</goto>` c", r#"goto "A""#);
    check("it`s <goto>A</goto>", r#"goto "A""#);
}

#[test]
fn scripts_have_no_code() {
    check_script("x `<goto>A</goto>` y", r#"goto "A""#);
    check_script("```\n<goto>A</goto> x\n<goto>B</goto>", r#"goto "A"; goto "B""#);
}

#[test]
fn names_in_attributes_are_trimmed_and_never_empty() {
    let fork = "<fork next=' N\r\n' cd=' d ' x=' x ' input=' i '>A</fork>";
    check(fork, r#"fork "A" cd="d" input=" i " next="N" x=" x ""#);
    check("<call return=' R ' model=' m '>A</call>", r#"call "A" model="m" return="R""#);
    check("<reset cd=' d '>A</reset>", r#"reset "A" cd="d""#);
    for empty in ["<fork next=' '>A</fork>", "<call return=''>A</call>", "<reset cd=' '>A</reset>"]
    {
        check(empty, "malformed=1");
    }
}
