//! Reads the steps that contain steps: `if`, `forEach`, `while`. [`super::walk`] visits their
//! lists.

use serde_json::Value;

use super::fields::{Fields, expected};
use super::keys;
use super::text::Reader;
use crate::crayfish::condition::{Condition, Test};
use crate::crayfish::document::{ForEach, If, OnError, OnMaxIters, Order, While};
use crate::crayfish::name;
use crate::crayfish::problem_code::ProblemCode;

pub(super) fn read_if(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> Option<If> {
    let fields = fields.known(text.report, "an if step", keys::IF);
    let condition = condition(text, &fields, "cond");
    // Only checked: the walk visits the steps in the list and fills it.
    list(text, &fields, "then");
    fields.array(text.report, "else");
    Some(If { condition: condition?, then: Vec::new(), otherwise: Vec::new() })
}

pub(super) fn read_for_each(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> Option<ForEach> {
    let fields = fields.known(text.report, "a forEach step", keys::FOR_EACH);
    let path = text.path(&fields, "listPath");
    let item = fields.required_string(text.report, "itemVar");
    if let Some(Err(bad)) = item.map(name::check) {
        text.report.add_at("itemVar", ProblemCode::BadName, bad.to_string());
    }
    let order = order(text, &fields);
    list(text, &fields, "body");
    Some(ForEach { list: path?, item: item?.to_owned(), order, body: Vec::new() })
}

fn order(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> Order {
    let parallel = fields.boolean(text.report, "parallel") == Some(true);
    if !parallel {
        for key in ["maxParallel", "onError"] {
            if fields.get(key).is_some() {
                let message = format!("`{key}` needs `parallel: true`");
                text.report.add_at(key, ProblemCode::ConflictingKeys, message);
            }
        }
    }
    // Read even if the loop is sequential, so that their own problems are reported, too.
    let most = fields.whole(text.report, "maxParallel", &(1..=Order::MOST_PARALLEL.into()));
    let on_error = match fields.choice(text.report, "onError", &OnError::NAMES) {
        Some("collect") => OnError::Collect,
        // An unknown word is reported already, and the document is not used then.
        Some(_) | None => OnError::Fail,
    };
    if !parallel {
        return Order::Sequential;
    }
    let max_parallel = most.and_then(|most| u32::try_from(most).ok());
    Order::Parallel { max_parallel: max_parallel.unwrap_or(Order::MAX_PARALLEL), on_error }
}

pub(super) fn read_while(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> Option<While> {
    let fields = fields.known(text.report, "a while step", keys::WHILE);
    let until = condition(text, &fields, "until");
    fields.required(text.report, "maxIters");
    let max_iters = text.cap(&fields, "maxIters");
    let on_max_iters = match fields.choice(text.report, "onMaxIters", &OnMaxIters::NAMES) {
        Some("continue") => OnMaxIters::Continue,
        Some(_) | None => OnMaxIters::Fail,
    };
    list(text, &fields, "body");
    Some(While { until: until?, max_iters: max_iters?, on_max_iters, body: Vec::new() })
}

fn list(text: &mut Reader<'_, '_>, fields: &Fields<'_>, key: &str) {
    if fields.required(text.report, key).is_some() {
        fields.array(text.report, key);
    }
}

fn condition(text: &mut Reader<'_, '_>, fields: &Fields<'_>, key: &str) -> Option<Condition> {
    let value = fields.required(text.report, key)?;
    text.under(key, |text| {
        let fields = Fields::open(text.report, value, "a condition")?;
        let fields = fields.known(text.report, "a condition", keys::CONDITION);
        let test = test(text, &fields);
        let path = text.path(&fields, "path");
        Some(Condition { path: path?, test: test? })
    })
}

fn test(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> Option<Test> {
    fields.required(text.report, "op")?;
    let operator = fields.choice(text.report, "op", &Test::OPERATORS)?;
    if operator == "exists" {
        if fields.get("value").is_some() {
            text.report.add_at("value", ProblemCode::ConflictingKeys, "`exists` has no `value`");
        }
        return Some(Test::Exists);
    }
    let value = fields.required(text.report, "value")?;
    match (operator, value) {
        ("eq", value) => Some(Test::Equals(value.clone())),
        ("ne", value) => Some(Test::Differs(value.clone())),
        ("gt", Value::Number(bound)) => Some(Test::Above(bound.clone())),
        (_, Value::Number(bound)) => Some(Test::Below(bound.clone())),
        (_, other) => {
            text.report.add_at("value", ProblemCode::WrongType, expected("a number", other));
            None
        }
    }
}
