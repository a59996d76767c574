use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::crayfish::problem::Report;
use crate::crayfish::reading::{self, LEVELS};
use crate::crayfish::render::Visible;

fn with<T>(vars: &Value, look: impl FnOnce(&dyn Namespaces) -> T) -> T {
    let nothing = Map::new();
    let locals = json!({ "y": { "z": ["deep"] } });
    let results = json!({ "step": { "ok": true, "json": { "field": 7 } } });
    let object = |value: &Value| value.as_object().cloned().unwrap_or_else(|| nothing.clone());
    let (vars, results, locals) = (object(vars), object(&results), object(&locals));
    look(&Visible { vars: &vars, results: &results, locals: &locals })
}

fn vars() -> Value {
    json!({
        "x": "hello", "n": 1.5, "b": true, "nothing": null, "list": [1, { "a": "b" }],
        "braces": "{{vars.x}}", "größe": "ä", "2nd": 2,
    })
}

fn filled(text: &str) -> Result<String, String> {
    let template = Template::parse(text).map_err(|faults| faults[0].to_string())?;
    with(&vars(), |names| template.fill(names)).map_err(|unfilled| unfilled.to_string())
}

#[test]
fn everything_but_expressions_is_text() {
    let check = |text: &str, expected: &str| assert_eq!(filled(text), Ok(expected.to_owned()));
    check("", "");
    check("plain", "plain");
    check("{{vars.x}}", "hello");
    check("a{{ vars.x }}b{{\tvars.n\n}}c", "ahellob1.5c");
    check("{{locals.y.z[0]}}", "deep");
    check("{{results.step.json.field}}", "7");
    check("{{vars.b}}", "true");
    check("[{{vars.nothing}}]", "[]");
    check("{{vars.list}}", r#"[1,{"a":"b"}]"#);
    check("{{vars.list[1].a}}", "b");
    check("{{locals.y}}", r#"{"z":["deep"]}"#);
    check("{{vars.größe}}{{vars.2nd}}", "ä2");
    // A filled-in value is not scanned again.
    check("{{vars.braces}}", "{{vars.x}}");
    check("{{{vars.x}}}", "{hello}");
    check("{{{{vars.x}}}}", "{{hello}}");
    check("{{ {{vars.x}} }}", "{{ hello }}");
    for text in [
        "{{.Name}}",
        "{{",
        "}}",
        "{{}}",
        "{{ }}",
        "{{json .}}",
        "{{vars.x",
        "{{vars.x}",
        "{vars.x}",
        "{ {vars.x}}",
        "{{vars.x|upper}}",
        "{{vars.x y}}",
        "{{vars..x}}",
        "{{vars.}}",
        "{{vars.list[}}",
        "{{vars.list[-1]}}",
        "{{vars.list[01]}}",
        "{{0}}",
        "{{1.2}}",
        "{{$.vars.x}}",
        "{{#if}}",
        "{{\u{a0}vars.x}}",
    ] {
        check(text, text);
    }
}

#[test]
fn unknown_namespace_is_an_error_when_read() {
    let check = |text: &str, expected: &str| assert_eq!(filled(text), Err(expected.to_owned()));
    let there_are = "there are `vars`, `results` and `locals`";
    check("{{name}}", &format!("`name` names the unknown namespace `name`: {there_are}"));
    check(
        "x {{ var.y }}",
        &format!("`var.y` names the unknown namespace `var`: {there_are}; did you mean `vars`?"),
    );
    check("{{vars}}", "`vars` must name something in `vars`, such as `vars.x`");
    check("{{results[0]}}", "`results[0]` must name something in `results`, such as `results.x`");
    let faults = Template::parse("{{a.b}} {{vars.x}} {{c}}").unwrap_err();
    assert_eq!(faults.len(), 2);
}

#[test]
fn expression_without_value_fails_when_filled_in() {
    let check = |text: &str, expected: &str| assert_eq!(filled(text), Err(expected.to_owned()));
    check("{{vars.y}}", "`{{vars.y}}` has no value here");
    check("{{ vars.list[2] }}", "`{{vars.list[2]}}` has no value here");
    check("{{vars.x.length}}", "`{{vars.x.length}}` has no value here");
    check("{{results.other.json}}", "`{{results.other.json}}` has no value here");
}

fn shape(value: &Value) -> Shape {
    let read = &mut |_: &mut Report, text: &str| Template::parse(text).ok();
    Shape::parse(value, &mut Report::new(), read).unwrap()
}

#[test]
fn a_lone_expression_in_json_keeps_its_type() {
    let check = |input: Value, expected: Value| {
        assert_eq!(with(&vars(), |names| shape(&input).fill(names)), Ok(expected));
    };
    check(json!("{{vars.n}}"), json!(1.5));
    check(json!("{{ vars.list }}"), json!([1, { "a": "b" }]));
    check(json!("{{vars.nothing}}"), json!(null));
    check(json!(" {{vars.n}}"), json!(" 1.5"));
    check(json!("{{vars.n}}{{vars.n}}"), json!("1.51.5"));
    check(
        json!({ "a": [1, ["{{vars.b}}", "x{{vars.b}}", null]], "{{vars.x}}": {}, "c": { "d": "{{vars.x}}", "e": [[], {}] } }),
        json!({ "a": [1, [true, "xtrue", null]], "{{vars.x}}": {}, "c": { "d": "hello", "e": [[], {}] } }),
    );
    check(json!([]), json!([]));
    check(json!([[[]], "{{vars.n}}", [["{{vars.n}}"], 2], 3]), json!([[[]], 1.5, [[1.5], 2], 3]));
}

#[test]
fn one_rendering_has_a_limit() {
    let large = json!({ "x": "x".repeat(LIMIT / 4), "list": vec!["x".repeat(LIMIT / 4)] });
    let check = |text: &str, expected: Result<usize, Unfilled>| {
        let template = Template::parse(text).unwrap();
        let length = with(&large, |names| template.fill(names)).map(|text| text.len());
        assert_eq!(length, expected, "{text}");
    };
    let overflow = Unfilled::Overflow(Overflow::Bytes);
    check(&"{{vars.x}}".repeat(4), Ok(LIMIT));
    check(&format!("{}.", "{{vars.x}}".repeat(4)), Err(overflow.clone()));
    check(&"{{vars.list}}".repeat(4), Err(overflow.clone()));
    let input = shape(&json!(["{{vars.list}}", "{{vars.list}}", "{{vars.list}}", ["{{vars.x}}"]]));
    assert_eq!(with(&large, |names| input.fill(names)), Err(overflow));
}

#[test]
fn filled_in_value_is_never_unreadably_deep() {
    let nested = |levels: usize, inner: &str| {
        let text = format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
        reading::read_text(&text).unwrap()
    };
    let fill = |outer: usize, inner: usize| {
        let vars = json!({ "x": nested(inner, "") });
        let input = shape(&nested(outer, "\"{{vars.x}}\""));
        with(&vars, |names| input.fill(names)).map(|value| value == nested(outer + inner, ""))
    };
    assert_eq!(fill(LEVELS - 10, 10), Ok(true));
    assert_eq!(fill(LEVELS, LEVELS), Err(Unfilled::Overflow(Overflow::Levels)));
    for input in [json!(["{{vars.x}}"]), json!({ "a": "{{vars.x}}" })] {
        let fill = |inner: usize| {
            let vars = json!({ "x": nested(inner, "1") });
            with(&vars, |names| shape(&input).fill(names)).map(|_| ())
        };
        assert_eq!(fill(LEVELS - 1), Ok(()));
        assert_eq!(fill(LEVELS), Err(Unfilled::Overflow(Overflow::Levels)));
    }
}

proptest! {
    #[test]
    fn a_text_without_expressions_stays_as_it_is(text in r"([{}]|\{\{|vars|[a-z. \[0\]é]){0,20}") {
        if let Ok(template) = Template::parse(&text)
            && template.paths().next().is_none()
        {
            prop_assert_eq!(with(&vars(), |names| template.fill(names)), Ok(text));
        }
    }

    #[test]
    fn json_without_expressions_stays_as_it_is(value in reading::tests::any_json()) {
        let plain = shape(&value);
        prop_assert_eq!(with(&vars(), |names| plain.fill(names)), Ok(value));
    }

    #[test]
    fn json_around_an_expression_is_unchanged(
        value in reading::tests::any_json(),
        around in prop::collection::vec((any::<bool>(), reading::tests::any_json()), 0..5),
    ) {
        let wrap = |inner: Value| around.iter().fold(inner, |inner, (array, beside)| match array {
            true => json!([beside, inner, beside]),
            false => json!({ "a": beside, "b": inner, "c": beside }),
        });
        let input = shape(&wrap(json!("{{vars.x}}")));
        let expected = wrap(value.clone());
        prop_assert_eq!(with(&json!({ "x": value }), |names| input.fill(names)), Ok(expected));
    }
}
