use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::crayfish::render::Visible;

fn holds(vars: &Value, path: &str, test: Test) -> bool {
    let nothing = serde_json::Map::new();
    let vars = vars.as_object().unwrap();
    let visible = Visible { vars, results: &nothing, locals: &nothing };
    Condition { path: path.parse().unwrap(), test }.holds(&visible)
}

#[test]
fn a_missing_path_differs_and_nothing_else() {
    let check = |test, expected| assert_eq!(holds(&json!({}), "$.vars.x", test), expected);
    check(Test::Exists, false);
    check(Test::Equals(json!(null)), false);
    check(Test::Equals(json!("a")), false);
    check(Test::Differs(json!(null)), true);
    check(Test::Differs(json!("a")), true);
    check(Test::Above(0.into()), false);
    check(Test::Below(0.into()), false);
}

#[test]
fn null_is_there_but_does_not_exist() {
    let check =
        |test, expected| assert_eq!(holds(&json!({ "x": null }), "$.vars.x", test), expected);
    check(Test::Exists, false);
    check(Test::Equals(json!(null)), true);
    check(Test::Differs(json!(null)), false);
    check(Test::Differs(json!(0)), true);
    check(Test::Above((-1).into()), false);
    for value in [json!(false), json!(0), json!(""), json!([]), json!({})] {
        assert!(holds(&json!({ "x": value }), "$.vars.x", Test::Exists), "{value}");
    }
}

#[test]
fn above_and_below_are_only_for_numbers() {
    let above = |value: Value, bound: Value| {
        let Value::Number(bound) = bound else { panic!("a number") };
        let vars = json!({ "x": value });
        (
            holds(&vars, "$.vars.x", Test::Above(bound.clone())),
            holds(&vars, "$.vars.x", Test::Below(bound)),
        )
    };
    assert_eq!(above(json!(0.8), json!(0.7)), (true, false));
    assert_eq!(above(json!(0.1), json!(0.2)), (false, true));
    assert_eq!(above(json!(1), json!(1.0)), (false, false));
    assert_eq!(above(json!(-1), json!(0)), (false, true));
    for value in [json!("5"), json!(true), json!([5]), json!({ "a": 5 })] {
        assert_eq!(above(value, json!(1)), (false, false));
    }
}

#[test]
fn equality_is_of_json_values() {
    let check = |one: Value, other: Value, expected| {
        assert_eq!(same(&one, &other), expected, "{one} {other}");
        assert_eq!(same(&other, &one), expected, "{other} {one}");
    };
    check(json!(1), json!(1.0), true);
    check(json!(0), json!(-0.0), true);
    check(json!(true), json!(1), false);
    check(json!("1"), json!(1), false);
    check(json!("a"), json!("a"), true);
    check(json!("a"), json!("A"), false);
    check(json!(null), json!(false), false);
    check(json!([1, { "a": 2.0 }]), json!([1.0, { "a": 2 }]), true);
    check(json!([1]), json!([1, 2]), false);
    check(json!([]), json!({}), false);
    check(json!({ "a": 1 }), json!({ "b": 1 }), false);
    check(json!({ "a": 1, "b": 2 }), json!({ "b": 2, "a": 1 }), true);
    check(json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), false);
}

#[test]
fn large_numbers_are_compared_exactly() {
    let check = |one: Value, other: Value, expected: Ordering| {
        let (Value::Number(one), Value::Number(other)) = (one, other) else { panic!("numbers") };
        assert_eq!(compare(&one, &other), expected, "{one} {other}");
        assert_eq!(compare(&other, &one), expected.reverse(), "{other} {one}");
    };
    check(json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992.0), Ordering::Greater);
    check(json!(u64::MAX), json!(18_446_744_073_709_551_616.0), Ordering::Less);
    check(json!(i64::MIN), json!(-9_223_372_036_854_775_808.0), Ordering::Equal);
    check(json!(u64::MAX), json!(-1), Ordering::Greater);
    check(json!(i64::MIN), json!(u64::MAX), Ordering::Less);
    check(json!(2), json!(2.5), Ordering::Less);
    check(json!(-2), json!(-2.5), Ordering::Greater);
    check(json!(-3), json!(-2.5), Ordering::Less);
    check(json!(u64::MAX), json!(1e300), Ordering::Less);
    check(json!(0), json!(-1e300), Ordering::Greater);
    check(json!(0.1), json!(0.2), Ordering::Less);
}

proptest! {
    #[test]
    fn integers_keep_their_order_as_floats(a in any::<i32>(), b in any::<i32>()) {
        let (float, whole) = (Number::from_f64(f64::from(a)).unwrap(), Number::from(b));
        prop_assert_eq!(compare(&float, &whole), a.cmp(&b));
        prop_assert_eq!(compare(&whole, &float), b.cmp(&a));
    }
}
