use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::crayfish::render::Visible;

#[test]
fn a_path_names_something_in_a_namespace() {
    let check = |text: &str, expected: &str| {
        let parsed = text.parse::<Path>().map_err(|bad| bad.to_string());
        match expected {
            "" => assert_eq!(parsed.map(|path| path.to_string()), Ok(text.to_owned())),
            _ => assert_eq!(parsed, Err(expected.to_owned()), "{text}"),
        }
    };
    for good in [
        "$.vars.mode",
        "$.results.fetch",
        "$.results.items[0]",
        "$.locals.cluster.id",
        "$.results.a-b.json.x_y[12][0].z",
        "$.vars.2024.größe",
    ] {
        check(good, "");
    }
    let begin = "it must begin with `$.vars`, `$.results` or `$.locals`";
    for bad in ["", "vars.x", "$", "$vars.x", "$[0].x", " $.vars.x"] {
        check(bad, &format!("`{bad}` is not a path: {begin}"));
    }
    let there_are = "there are `vars`, `results` and `locals`";
    check("$.env.HOME", &format!("`$.env.HOME` names the unknown namespace `env`: {there_are}"));
    check(
        "$.result.a",
        &format!(
            "`$.result.a` names the unknown namespace `result`: {there_are}; did you mean `results`?"
        ),
    );
    for bad in ["$.vars", "$.vars[0]"] {
        check(bad, &format!("`{bad}` must name something in `vars`, such as `vars.x`"));
    }
    let syntax = "`.key` or `[n]` is expected, a key has letters, digits, `_` and `-`";
    for (bad, at) in [
        ("$.vars.", 7),
        ("$.vars.a..b", 9),
        ("$.vars.a[", 9),
        ("$.vars.a[-1]", 9),
        ("$.vars.a[01]", 9),
        ("$.vars.a[x]", 9),
        ("$.vars.a[+1]", 9),
        ("$.vars.a[*]", 9),
        ("$.vars.a[99999999999999999999999]", 9),
        ("$.vars.a b", 9),
        ("$.vars.ä b", 9),
        ("$.vars.a['b']", 9),
        ("$.vars.-a", 7),
        ("$.vars.a.@id", 9),
    ] {
        check(bad, &format!("`{bad}` is not a path from its character {at} on: {syntax}"));
    }
}

#[test]
fn path_resolves_to_a_value_or_none() {
    let object = |value: Value| value.as_object().cloned().unwrap();
    let vars = object(json!({ "a": { "b": [10, { "c": null }] }, "s": "text" }));
    let results = object(json!({ "fetch": { "ok": true } }));
    let locals = object(json!({ "item": 3 }));
    let visible = Visible { vars: &vars, results: &results, locals: &locals };
    let check = |path: &str, expected: Option<Value>| {
        assert_eq!(
            path.parse::<Path>().unwrap().lookup(&visible).as_deref(),
            expected.as_ref(),
            "{path}"
        );
    };
    check("$.vars.a.b[0]", Some(json!(10)));
    check("$.vars.a.b[1].c", Some(json!(null)));
    check("$.vars.a.b[2]", None);
    check("$.vars.a.b.0", None);
    check("$.vars.a[0]", None);
    check("$.vars.s.length", None);
    check("$.vars.s[0]", None);
    check("$.vars.item", None);
    check("$.results.fetch.ok", Some(json!(true)));
    check("$.locals.item", Some(json!(3)));
    check("$.locals.fetch", None);
}

#[test]
fn value_path_may_be_the_value_itself() {
    let value = json!({ "a": [{ "b": 1 }] });
    let check = |path: &str, expected: Option<Value>| {
        assert_eq!(path.parse::<ValuePath>().unwrap().lookup(&value), expected.as_ref(), "{path}");
    };
    check("$", Some(value.clone()));
    check("$.a[0].b", Some(json!(1)));
    check("$[0]", None);
    let parsed = |text: &str| text.parse::<ValuePath>().map_err(|bad| bad.to_string());
    assert_eq!(parsed("a"), Err("`a` is not a path: it must begin with `$`".to_owned()));
    assert!(parsed("$a").unwrap_err().starts_with("`$a` is not a path from its character 2 on"));
}

fn any_segment() -> impl Strategy<Value = Segment> {
    prop_oneof![
        "[a-zA-Z0-9_ü][a-zA-Z0-9_ü-]{0,5}".prop_map(Segment::Key),
        any::<usize>().prop_map(Segment::Index),
    ]
}

proptest! {
    #[test]
    fn printed_text_is_read_back(
        root in prop::sample::select(vec![Namespace::Vars, Namespace::Results, Namespace::Locals]),
        name in "[a-zA-Z0-9_][a-zA-Z0-9_-]{0,5}",
        rest in prop::collection::vec(any_segment(), 0..6),
    ) {
        let value_path = ValuePath(rest.clone());
        prop_assert_eq!(value_path.to_string().parse(), Ok(value_path));
        let path = Path { root, name, rest };
        prop_assert_eq!(path.to_string().parse(), Ok(path));
    }

    #[test]
    fn accepted_paths_print_as_written(text in r"(\$|\.|vars|[a-z0-9 \[\]é-]){0,12}") {
        if let Ok(path) = text.parse::<Path>() {
            prop_assert_eq!(path.to_string(), text);
        }
    }
}
