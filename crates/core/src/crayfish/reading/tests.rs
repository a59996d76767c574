use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read_or_message(text: &str) -> Result<Value, String> {
    read_text(text).map_err(|bad| format!("{bad} at {:?}", bad.pointer))
}

#[test]
fn valid_json_is_read() {
    let check =
        |text: &str, expected: Value| assert_eq!(read_or_message(text), Ok(expected), "{text}");
    check(" null ", json!(null));
    check("[true,false]", json!([true, false]));
    check("\t{\"a\" : [ ] ,\r\n\"b\":{ } }\n", json!({ "a": [], "b": {} }));
    check(r#""\"\\\/\b\f\n\r\té😀ü""#, json!("\"\\/\u{8}\u{c}\n\r\té😀ü"));
    check(r#""\ud83d\ude00""#, json!("😀"));
    check(r#"{"a":{"b":1},"c":{"b":2}}"#, json!({ "a": { "b": 1 }, "c": { "b": 2 } }));
    check("18446744073709551615", json!(u64::MAX));
    check("-9223372036854775808", json!(i64::MIN));
    check("18446744073709551616", json!(18_446_744_073_709_551_616.0));
    check("-0", json!(-0.0));
    check("[0, -1, 1.5, 1e2, 1E-2, 0.1e+3]", json!([0, -1, 1.5, 100.0, 0.01, 100.0]));
    check("1e-999", json!(0.0));
    // The nearest float; a reader that multiplies digits is off by one bit.
    check("0.10000000000000000555", json!(0.1));
}

#[test]
fn invalid_json_is_refused_with_its_position() {
    let check = |text: &str, expected: &str| {
        assert_eq!(read_or_message(text), Err(expected.to_owned()), "{text}");
    };
    check("", "line 1, column 1: the text ends where a JSON value is expected at \"\"");
    check("[1,", "line 1, column 4: the text ends where a JSON value is expected at \"/1\"");
    check("[1 2]", "line 1, column 4: `,` or `]` is expected here, not `2` at \"/1\"");
    check("[1,]", "line 1, column 4: a JSON value is expected here, not `]` at \"/1\"");
    check(
        "{\"a\":1,}",
        "line 1, column 8: a key in double quotes is expected here, not `}` at \"\"",
    );
    check("{\"a\" 1}", "line 1, column 6: `:` is expected here, not `1` at \"/a\"");
    check("{a:1}", "line 1, column 2: a key in double quotes is expected here, not `a` at \"\"");
    check("{\"a\":1 \"b\"", "line 1, column 8: `,` or `}` is expected here, not `\"` at \"\"");
    check("[1}", "line 1, column 3: `,` or `]` is expected here, not `}` at \"/1\"");
    check("1 2", "line 1, column 3: there is more text after the JSON value at \"\"");
    check("{} x", "line 1, column 4: there is more text after the JSON value at \"\"");
    check(
        "\u{feff}{}",
        "line 1, column 1: the text begins with a byte order mark, which JSON does not have at \"\"",
    );
    check(
        "\"\u{1}\"",
        "line 1, column 2: a control character in a string must be written as an escape at \"\"",
    );
    check(
        "\"a\nb\"",
        "line 1, column 3: a control character in a string must be written as an escape at \"\"",
    );
    check("\"abc", "line 1, column 5: the text ends where the closing `\"` is expected at \"\"");
    check(
        "\"\\",
        "line 1, column 3: the text ends where the rest of an escape is expected at \"\"",
    );
    for bad in [r#""\x""#, r#""\u12""#, r#""\u12g4""#, r#""\u+123""#, r#""\U0041""#] {
        check(bad, "line 1, column 2: this escape does not exist in JSON at \"\"");
    }
    for bad in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\ud800""#, r#""\ud800x""#, r#""\ud800\n""#]
    {
        check(
            bad,
            "line 1, column 2: this escape is half of a character: a lone surrogate at \"\"",
        );
    }
    for word in ["NaN", "Infinity", "-Infinity", "undefined", "True", "nul", "nullx"] {
        check(word, &format!("line 1, column 1: `{word}` is not JSON at \"\""));
    }
    for number in ["01", "1.", "-", "1e", "1e+", "0x10", "1.2.3", "--1", "-a", "1a"] {
        check(number, &format!("line 1, column 1: `{number}` is not a JSON number at \"\""));
    }
    check("[.5]", "line 1, column 2: a JSON value is expected here, not `.` at \"/0\"");
    check("[+1]", "line 1, column 2: a JSON value is expected here, not `+` at \"/0\"");
    check("{\"x\":[1,1e999]}", "line 1, column 9: the number `1e999` is too large at \"/x/1\"");
}

#[test]
fn readable_value_fits_into_request_and_record() {
    let levels = [Holds::Value, Holds::Request, Holds::Record].map(Holds::levels);
    assert_eq!(levels, [1_200, 1_216, 1_232]);
}

#[test]
fn repeated_key_is_refused_with_its_pointer() {
    let text = "{\n  \"steps\": [\n    {\"ä\": 0, \"a/b\": 1, \"a/b\": 2}\n  ]\n}";
    let expected = UnreadableJson {
        line: 3,
        column: 24,
        offset: text.rfind("\"a/b\"").unwrap(),
        pointer: "/steps/0/a~1b".to_owned(),
        reason: Reason::DuplicateKey("a/b".to_owned()),
    };
    assert_eq!(read_text(text), Err(expected.clone()));
    let message = "line 3, column 24: the key `a/b` appears twice in this object";
    assert_eq!(
        Problem::from(expected),
        Problem::new("/steps/0/a~1b", ProblemCode::DuplicateKey, message)
    );
    // An escaped spelling of the same key is a repetition, too.
    let reason = read_text(r#"{"a":1,"\u0061":2}"#).unwrap_err().reason;
    assert_eq!(reason, Reason::DuplicateKey("a".to_owned()));
}

#[test]
fn invalid_utf_8_is_refused_with_its_position() {
    let expected = UnreadableJson {
        line: 2,
        column: 4,
        offset: 6,
        pointer: String::new(),
        reason: Reason::NotUtf8,
    };
    assert_eq!(read(b"[\n\"\xc3\xa4 \xff\"]"), Err(expected));
    assert_eq!(read("[\"ä\"]".as_bytes()), Ok(json!(["ä"])));
}

#[test]
fn deepest_value_fits_the_stack() {
    let levels = Holds::Record.levels();
    let text = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let arrays = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    #[expect(clippy::disallowed_types, reason = "the test needs a stack of a known size")]
    let thread = std::thread::Builder::new().stack_size(1_700 << 10).spawn(move || {
        for text in [text, arrays] {
            let value = read_as(Holds::Record, text.as_bytes()).unwrap();
            let copy = value.clone();
            assert!(value == copy);
            assert_eq!(value.to_string(), text);
        }
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn one_level_more_is_refused_however_many_follow() {
    for levels in [LEVELS + 1, 10_000, 10_000_000] {
        let bad = read_text(&"[".repeat(levels)).unwrap_err();
        assert_eq!((bad.offset, bad.reason), (LEVELS, Reason::TooDeep(LEVELS)));
    }
    for holds in [Holds::Request, Holds::Record] {
        let bad = read_as(holds, "[".repeat(10_000).as_bytes()).unwrap_err();
        assert_eq!((bad.offset, bad.reason), (holds.levels(), Reason::TooDeep(holds.levels())));
    }
    let objects = read_text(&"{\"a\":".repeat(10_000)).unwrap_err();
    assert_eq!(objects.reason, Reason::TooDeep(LEVELS));
    assert_eq!(objects.pointer, "/a".repeat(LEVELS));
}

pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn printed_text_is_read_back(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        prop_assert_eq!(read_text(&text), Ok(value));
    }

    #[test]
    fn the_same_texts_are_read_as_elsewhere(
        words in prop::collection::vec(prop::sample::select(vec![
            "[", "]", "{", "}", ",", ":", "\"", "\\", "\\u", "d800", "0041", "\\ud83d\\ude00", "a", " ", "\n", "null",
            "true", "0", "1", "-", ".", "e", "E+", "99", "\u{1}", "ü", "{\"k\":", "\"v\"", "[1,",
        ]), 0..12),
    ) {
        let text = words.concat();
        match (read_text(&text), serde_json::from_str::<Value>(&text)) {
            (Err(UnreadableJson { reason: Reason::DuplicateKey(_), .. }), _) => {}
            (mine, theirs) => prop_assert_eq!(mine.is_ok(), theirs.is_ok(), "{}", text),
        }
    }

    #[test]
    fn the_same_bytes_are_read_as_elsewhere(value in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = value.to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        match (read(&bytes), serde_json::from_slice::<Value>(&bytes)) {
            (Err(UnreadableJson { reason: Reason::DuplicateKey(_), .. }), _) => {}
            (mine, theirs) => prop_assert_eq!(mine.is_ok(), theirs.is_ok(), "{:?}", bytes),
        }
    }
}
