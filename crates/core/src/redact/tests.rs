//! Hidden secrets, visible lookalikes, and streams in any pieces.

use proptest::prelude::*;

use super::*;

const GIVEN: [&str; 5] =
    ["correct-horse", "correct-horse-battery", "pa$$word/1", "schlüssel-ä", "short"];

fn redactor() -> Redactor {
    Redactor::new(GIVEN.map(str::to_owned))
}

/// Checks a text in which `[…]` replaces hidden parts.
#[track_caller]
fn check(text: &str, expected: &str) {
    check_with(&redactor(), text, expected);
}

/// Checks the whole text, and the text in two pieces for every border.
#[track_caller]
fn check_with(redactor: &Redactor, text: &str, expected: &str) {
    let expected = expected.replace("[…]", REDACTED);
    assert_eq!(redactor.redact(text), expected, "{text}");
    for (cut, _) in text.char_indices() {
        let mut stream = redactor.stream();
        let shown = [stream.push(&text[..cut]), stream.push(&text[cut..]), stream.finish()];
        assert_eq!(shown.concat(), expected, "{} | {}", &text[..cut], &text[cut..]);
    }
}

#[test]
fn given_values_are_hidden_longest_first() {
    check("x correct-horse y", "x […] y");
    check("correct-horse-battery", "[…]");
    check("correct-horse-batter!", "[…]-batter!");
    check("correct-horseless", "[…]less");
    check("two: pa$$word/1pa$$word/1", "two: […]");
    check("two: pa$$word/1 pa$$word/1", "two: […] […]");
    check("der schlüssel-ä!", "der […]!");
    check("short is a word", "short is a word");
    check("correct horse", "correct horse");
}

#[test]
fn remaining_part_of_a_value_is_hidden() {
    check("x correc…", "x […]…");
    check("x correc… y", "x […]… y");
    check("Bash(correct-horse-b…)", "Bash([…]…)");
    check("correct-h … [cut here]", "[…] … [cut here]");
    check("x correct-hor", "x […]");
    check("der schlüssel…", "der […]…");
    check("corre…", "corre…");
    check("corre", "corre");
    check("correct!", "correct!");
    check("correct …", "[…] …");
    check("correct  …", "correct  …");
    check("…-horse-battery y", "…[…] y");
    check("x…-horse-battery y", "x…[…] y");
    check("x……-horse-battery y", "x……[…] y");
    check("…word/1…", "…[…]…");
    check("…ssel-ä", "…[…]");
    check("…el-ä", "…el-ä");
    check("… battery", "… battery");
    check("battery", "battery");
    check("ghp_0123456789…", "[…]…");
    check("ghp_01234…", "ghp_01234…");
    check("sk-learn-contrib…", "sk-learn-contrib…");
}

#[test]
fn secrets_that_overlap_leave_no_rest() {
    let check = |given: &[&str], text: &str, expected: &str| {
        check_with(&Redactor::new(given.iter().map(ToString::to_string)), text, expected);
    };
    check(&["abcdefgh$1", "$123456789"], "abcdefgh$123456789.", "[…].");
    check(&["outer/inner-value/outer", "inner-value"], "outer/inner-value/outer.", "[…].");
    let token = "sk-ant-api03-abcdefgh$tail-of-it";
    check(&[token], token, "[…]");
    // The end of one value looks like the middle of another.
    check(&["1234-abcdefgh", "5678-abcdef"], "…abcdef", "…[…]");
}

#[test]
fn well_known_tokens_are_hidden() {
    check("key sk-ant-api03-AbCdEf0123456789_-xyz, ok", "key […], ok");
    check("sk-proj-AbCdEf0123456789AbCdEf", "[…]");
    check("sk-0123456789abcdef0123456789abcdef", "[…]");
    check("sk-3-of-these-are-A1-ok", "[…]");
    check("ghp_abcdefghijklmnopqrst", "[…]");
    for kind in ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"] {
        check(&format!("({kind}0123456789abcdefghijABCDEFGHIJ012345)"), "([…])");
    }
    check("glpat-abcdefghij_0123456-89", "[…]");
    for kind in ["xoxa", "xoxb", "xoxp", "xoxr", "xoxs"] {
        check(&format!("{kind}-123456789012-abcdef"), "[…]");
    }
    check("id=AKIAIOSFODNN7EXAMPLE;", "id=[…];");
    check("ASIAIOSFODNN7EXAMPLE", "[…]");
    check("AIzaSyA0123456789abcdefghijklmnopqrstuv_", "[…]");
    check("npm_0123456789abcdefghijABCDEFGHIJ012345", "[…]");
    check("a eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln-nature_ b", "a […] b");
    check("Authorization: Bearer AbC123.def/ghi+jkl== x", "Authorization: Bearer […] x");
    check("authorization: bearer   0123456789abcdef", "authorization: bearer   […]");
    check("Bearer AbcdefghijkL", "Bearer […]");
}

#[test]
fn only_the_password_of_an_address_is_hidden() {
    check("postgres://me:hunter2@db:5432/x", "postgres://me:[…]@db:5432/x");
    check("at https://me:p@ss:w@host", "at https://me:[…]@host");
    check("redis://:hunter2@cache", "redis://:[…]@cache");
    check("<http://u:p@h>", "<http://u:[…]@h>");
    check("https://me@host/a:b@c", "https://me@host/a:b@c");
    check("https://host:8080/x@y", "https://host:8080/x@y");
    check("https://me:@host", "https://me:@host");
    check("see a: //u:p@h", "see a: //u:p@h");
    check("see ://u:p@h", "see ://u:p@h");
}

#[test]
fn private_key_is_hidden_completely() {
    let key = |label: &str| {
        format!("a\n-----BEGIN {label}-----\nMIIE://u:p@h\nüöä==\n-----END {label}-----\nb")
    };
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
    {
        check(&key(label), "a\n[…]\nb");
    }
    check("x -----BEGIN EC PRIVATE KEY-----\nMIIE", "x […]");
    check("x -----BEGIN PRIVATE KEY-----", "x […]");
    check("-----BEGIN PRIVATE KEY-----A-----END X", "[…]");
    check("-----BEGIN PRIVATE KEY-----A-----END PRIVATE KEY-----", "[…]");
    let public = key("PUBLIC KEY").replace("p@", "");
    check(&public, &public);
    check("-----END PRIVATE KEY----- b", "-----END PRIVATE KEY----- b");
    check("----- BEGIN", "----- BEGIN");
}

#[test]
fn lookalikes_of_tokens_stay() {
    for text in [
        "sk-learn and sk-learn-contrib-packages-and-more",
        "task-0123456789ABCDEF0123456789",
        "sk-2-of-these-are-A-only",
        "sk-ant-hill",
        "ghp_short, ghp_ and ghx_0123456789abcdefghij",
        "github_pat_",
        "xoxb-12345 xoxo-hugs-and-kisses",
        "AKIA AKIAshort AKIAabcdefghijklmnop",
        "AIza AIzaShort",
        "npm_config_registry_and_other_long_variable_names",
        "eyJ eyJhbGciOiJIUzI1NiJ9 eyJhbGciOiJIUzI1NiJ9.x eyJ.abcdefghijkl",
        "obeyJudgements.understanding",
        "Bearer token, bearer of bad news, Bearer Authentication-mechanisms, Bearer",
        "a forbearer AbC123def456ghi and a BearerAbC123def456ghi",
        "",
        "ä",
    ] {
        check(text, text);
    }
}

#[test]
fn a_text_without_secrets_is_not_copied() {
    assert!(matches!(redactor().redact("nothing here"), Cow::Borrowed(_)));
    assert!(matches!(redactor().redact("correct-horse"), Cow::Owned(_)));
}

#[test]
fn stream_shows_harmless_text_at_once() {
    let redactor = redactor();
    let mut stream = redactor.stream();
    assert_eq!(stream.push("all of this, but not corr"), "all of this, but not ");
    assert_eq!(stream.push("idor"), "corridor");
    assert_eq!(stream.push("!"), "!");
    assert_eq!(stream.push("sk-ant-0123456789abcdef"), REDACTED);
    assert_eq!(stream.push("0123456789"), "");
    assert_eq!(stream.push(" and"), " and");
    assert_eq!(stream.finish(), "");
}

#[test]
fn stream_releases_disproved_secrets() {
    for text in [
        "Bearer of bad news.",
        "ghp_short.",
        "sk-learn.",
        "eyJhbGciOiJIUzI1NiJ9.x!",
        "http://host:8080/",
        "-----BEGIN PUBLIC KEY-----.",
        "cut … and so on.",
        "cut…and so on.",
    ] {
        assert_eq!(redactor().stream().push(text), text);
    }
}

#[test]
fn a_stream_holds_nothing_back_for_long() {
    for (start, unit, most) in [
        ("eyJ", "x", 4096 - 2),
        ("http://", "x", 4096),
        ("http://u:", "x", 4096 - 2),
        ("Bearer", " ", 4096 + 1),
        ("-----BEGIN ", "A", 64),
    ] {
        let text = start.to_owned() + &unit.repeat(most);
        assert_eq!(redactor().stream().push(&text), text, "{start}");
        let shown = redactor().stream().push(&text[..text.len() - 1]);
        assert!(start.starts_with(&shown), "{start}: {shown}");
    }
}

#[test]
fn longest_web_token_is_hidden_in_pieces() {
    let redactor = redactor();
    let first = format!("eyJ{}", "x".repeat(4096 - 3));
    let second = ".eyJzdWIiOiIxIn0.c2ln ok.";
    let mut stream = redactor.stream();
    let shown = [stream.push(&first), stream.push(second), stream.finish()];
    assert_eq!(shown.concat(), "[redacted] ok.");
    assert_eq!(redactor.redact(&(first + second)), "[redacted] ok.");
}

#[test]
fn hostile_text_costs_linear_time() {
    // Each text would take minutes if every place were compared with every other.
    let redactor = redactor();
    for unit in ["eyJ", "-eyJ", "://a:", "bearer  ", "-----BEGIN ", "sk-", "correct-hors"] {
        let text = unit.repeat(100_000 / unit.len());
        redactor.redact(&text);
        let mut stream = redactor.stream();
        let shown: usize = text.split_inclusive('-').map(|piece| stream.push(piece).len()).sum();
        assert_eq!(shown + stream.finish().len(), redactor.redact(&text).len(), "{unit}");
    }
}

const PARTS: [&str; 36] = [
    "correct-horse",
    "-battery",
    "pa$$word/1",
    "schlüssel-ä",
    "sk-",
    "sk-ant-",
    "api03-AbCdEf0123456789",
    "0123456789abcdefghij",
    "ABCDEFGHIJKLMNOP",
    "ghp_",
    "github_pat_",
    "xoxb-",
    "AKIA",
    "AIza",
    "npm_",
    "eyJ",
    "hbGciOiJI",
    ".",
    "Bearer ",
    "bearer",
    "://",
    "http",
    "user:",
    "pass",
    "@",
    "host",
    "/",
    "-----BEGIN ",
    "RSA PRIVATE KEY-----",
    "-----END ",
    "\n",
    " ",
    "-",
    "ä",
    "…",
    "-battery",
];

/// Texts of secrets and of parts of them, and where they are cut.
fn pieces() -> impl Strategy<Value = Vec<String>> {
    let text = prop::collection::vec(prop::sample::select(&PARTS[..]), 0..24);
    (text, prop::collection::vec(any::<prop::sample::Index>(), 0..12)).prop_map(|(parts, cuts)| {
        let text: Vec<char> = parts.concat().chars().collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| text[cut[0]..cut[1]].iter().collect()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_give_the_same_as_whole_text(pieces in pieces()) {
        let redactor = redactor();
        let mut stream = redactor.stream();
        let mut shown: String = pieces.iter().map(|piece| stream.push(piece)).collect();
        shown.push_str(&stream.finish());
        let whole = redactor.redact(&pieces.concat()).into_owned();
        prop_assert_eq!(shown, whole);
    }

    #[test]
    fn single_characters_give_the_same_as_whole_text(pieces in pieces()) {
        let (redactor, text) = (redactor(), pieces.concat());
        let mut stream = redactor.stream();
        let mut buffer = [0; 4];
        let mut shown: String =
            text.chars().map(|c| stream.push(c.encode_utf8(&mut buffer))).collect();
        shown.push_str(&stream.finish());
        prop_assert_eq!(shown, redactor.redact(&text));
    }

    // proves: S31
    #[test]
    fn no_given_value_is_ever_shown(pieces in pieces()) {
        let text = pieces.concat();
        let shown = redactor().redact(&text).into_owned();
        for value in &GIVEN[..4] {
            prop_assert!(!shown.contains(value), "{} in {}", value, shown);
        }
    }
}
