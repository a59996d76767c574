//! Texts that would take minutes if any part of them were read again for each tag.

use super::*;

const SIZE: usize = 2 << 20;

/// Counts tags, malformed ones and nothing else.
#[track_caller]
fn check(name: &str, text: &str, tags: usize, malformed: usize) {
    let found: (usize, usize) = scan(text, Source::Message).fold((0, 0), |(tags, bad), found| {
        if found.tag.is_ok() { (tags + 1, bad) } else { (tags, bad + 1) }
    });
    assert_eq!(found, (tags, malformed), "{name}");
}

// proves: S21
#[test]
fn openings_without_an_end_are_read_once() {
    let times = SIZE / 6;
    check("goto", &"<goto ".repeat(times), 0, times);
    check("unclosed", &"<goto>".repeat(times), 0, times);
    check("result", &"<result ".repeat(times), 0, times);
    check("open results", &"<result>".repeat(times), 0, times);
    let closed = "<result>".repeat(times) + "</result>";
    check("results with one close", &closed, 0, 1);
}

#[test]
fn unclosed_quotes_are_searched_once() {
    let times = SIZE / 9;
    check("double", &"<goto a=\"".repeat(times), 0, times);
    let both = "<goto a=\" <goto b=' ".repeat(times / 2);
    check("both", &both, 0, times / 2 * 2);
    let three = "<goto a=' <goto b=\" ' c=' <goto d=\" ' e=\"";
    let found = scan(&three.repeat(times / 5), Source::Message).count();
    assert!(found > times / 5);
}

#[test]
fn endless_attributes_are_skipped() {
    use std::fmt::Write as _;
    let mut text = "<fork next=\"N\"".to_owned();
    for index in 0..SIZE / 20 {
        write!(text, " a{index}='<goto &lt;'").unwrap();
    }
    check("fork", &(text.clone() + ">A</fork>"), 0, 1);
    check("unended fork", &text, 0, 1 + SIZE / 20);
    check("words", &("<goto ".to_owned() + &"x ".repeat(SIZE / 2)), 0, 1);
}

// proves: S21
#[test]
fn closes_are_searched_once() {
    let times = SIZE / 20;
    check("results", &"<result>a</result>".repeat(times), times, 0);
    let quoted = "<result>`</result>`<goto>".repeat(times);
    check("quoted closes", &quoted, times, times);
    check("half closes", &"<goto>A</goto <result>a</result ".repeat(times), 0, 2 * times);
    let spaces = format!("<result></result{}", " ".repeat(SIZE));
    check("spaces", &spaces, 0, 1);
    let closes = "<result>".to_owned() + &"</result>".repeat(times);
    check("closes", &closes, 0, 1);
}

#[test]
fn margins_in_code_are_read_once() {
    let openings = "<result>\n".repeat(SIZE / 18);
    let margin = "`".repeat(SIZE / 2);
    check("shared end", &format!("~~~\n{openings}</result>{margin}x"), 0, 0);
    check("margins", &"`<goto>A</goto>`x\n".repeat(SIZE / 18), 0, 0);
}

#[test]
fn backticks_are_paired_in_one_walk() {
    let rows = |lengths: Range<usize>| -> String {
        lengths.map(|length| "`".repeat(length) + " ").collect()
    };
    let lengths = rows(2..1_400);
    let text = format!("{lengths}{}\n\n<goto>A</goto>", "`a".repeat(SIZE / 4));
    check("many lengths", &text, 1, 0);
    check("spans", &("`a".repeat(SIZE / 2) + "\n\n<goto>A</goto>"), 1, 0);
    check("spans and tags", &"`x`<goto>A</goto>".repeat(SIZE / 17), SIZE / 17, 0);
    check("fences", &("```\n~~~\n".repeat(SIZE / 8) + "<goto>A</goto>"), 1, 0);
    check("blank lines", &("`\n\n".repeat(SIZE / 3) + "<goto>A</goto>"), 1, 0);
}
