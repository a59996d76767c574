//! Kinds of values: how Raymond reads, shows and takes as a flag each type of value.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of a type with a lifetime does not fit a `fn` for every lifetime"
)]

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgAction, value_parser};
use raymond_core::budget::Micros;
use raymond_core::prices::Price;
use raymond_core::run::settings::{ConfigHome, InterruptedScripts, OnLostSession};
use raymond_core::time::Span;
use serde::Serialize;
use serde_json::{Value, json};

use super::value::{ConfigValue, Enumerated, ValueChoice, ValueError, cap};

/// A kind of values.
pub(super) struct SettingKind<T> {
    /// Reads a value of a file or a variable.
    pub(super) read: fn(ConfigValue<'_>) -> Result<T, ValueError>,
    /// Returns the value as a file would contain it.
    pub(super) json: fn(&T) -> Value,
    /// Returns the value for display; `None` derives the text from the JSON form.
    pub(super) text: Option<fn(&T) -> String>,
    /// Adds the parser of the value to a flag. Kinds without flags leave the flag unchanged.
    pub(super) flag: fn(Arg) -> Arg,
}

impl<T: Serialize> SettingKind<T> {
    /// Describes values that a file contains in their JSON form.
    const fn new(read: fn(ConfigValue<'_>) -> Result<T, ValueError>, flag: fn(Arg) -> Arg) -> Self {
        Self { read, json: |value| json!(value), text: None, flag }
    }
}

/// `true` or `false`; as a flag it has no value.
pub(super) const SWITCH: SettingKind<bool> =
    SettingKind::new(|given| given.switch(), |flag| flag.action(ArgAction::SetTrue));

pub(super) const TEXT: SettingKind<String> =
    SettingKind::new(|given| given.text(), |flag| flag.value_parser(value_parser!(String)));

/// A text whose flag is repeatable, for lists.
pub(super) const ENTRY: SettingKind<String> =
    SettingKind { flag: |flag| flag.action(ArgAction::Append), ..TEXT };

/// A program: a name, or a path.
pub(super) const COMMAND: SettingKind<String> =
    SettingKind { read: |given| given.command(), ..TEXT };

pub(super) const PATH: SettingKind<PathBuf> =
    SettingKind::new(|given| given.path(), |flag| flag.value_parser(value_parser!(PathBuf)));

/// The workspace of one agent.
pub(super) const AGENT: SettingKind<PathBuf> = SettingKind { read: |given| given.agent(), ..PATH };

/// A whole number.
pub(super) const COUNT: SettingKind<u32> =
    SettingKind::new(|given| given.count(0), |flag| flag.value_parser(|text: &str| count(text, 0)));

/// A whole number of at least 1.
pub(super) const COUNT_FROM_ONE: SettingKind<u32> =
    SettingKind::new(|given| given.count(1), |flag| flag.value_parser(count_from_one));

/// Parses the count of a flag.
pub(crate) fn count_from_one(text: &str) -> Result<u32, String> {
    count(text, 1)
}

fn count(text: &str, least: u32) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count >= least);
    count.ok_or_else(|| format!("it must be a whole number of at least {least}"))
}

pub(super) const DURATION: SettingKind<Span> = SettingKind {
    json: |span| json!(span.to_string()),
    ..SettingKind::new(|given| given.span(), |flag| flag.value_parser(value_parser!(Span)))
};

/// A cap in dollars; `None` means no cap.
pub(super) const CAP: SettingKind<Option<Micros>> = SettingKind {
    read: |given| given.cap(),
    json: |cap| cap.map_or_else(|| json!("none"), |cap| json!(cap.dollars())),
    text: Some(|cap| cap.map_or_else(|| "none".to_owned(), |cap| cap.to_string())),
    // With a hyphen, so that `--budget -1` reports a wrong amount and not an unknown flag.
    flag: |flag| flag.allow_hyphen_values(true).value_parser(cap),
};

/// Names of environment variables; `None` means the whole environment.
pub(super) const VARIABLES: SettingKind<Option<Vec<String>>> = SettingKind {
    json: |names| names.as_ref().map_or_else(|| json!("inherit"), |names| json!(names)),
    ..SettingKind::new(|given| given.environment(), |flag| flag)
};

/// The prices of one model.
pub(super) const PRICE: SettingKind<Price> = SettingKind {
    read: |given| given.price(),
    json: |Price { input, output, cache_write, cache_read }| {
        json!({
            "input": input.dollars(), "output": output.dollars(),
            "cache_write": cache_write.dollars(), "cache_read": cache_read.dollars(),
        })
    },
    text: Some(|Price { input, output, cache_write, cache_read }| {
        format!(
            "input {input}, output {output}, cache_write {cache_write}, cache_read {cache_read}"
        )
    }),
    flag: |flag| flag,
};

/// One of several names.
pub(super) const fn choice<T: Enumerated>() -> SettingKind<T> {
    SettingKind {
        read: |given| given.choice(),
        json: |value| {
            let chosen = T::CHOICES.iter().find(|choice| choice.value == *value);
            json!(chosen.map(|choice| choice.name))
        },
        text: None,
        flag: |flag| {
            let named = |ValueChoice { name, help, .. }: &ValueChoice<T>| {
                PossibleValue::new(*name).help(*help)
            };
            let names = PossibleValuesParser::new(T::CHOICES.iter().map(named));
            flag.value_parser(
                // Cannot fail: the parser accepts only names of `CHOICES`.
                names.try_map(|name| T::named(&name).ok_or("the name belongs to no value")),
            )
        },
    }
}

impl Enumerated for OnLostSession {
    const CHOICES: &'static [ValueChoice<Self>] = &[
        ValueChoice { name: "fail", value: Self::Fail, help: "Fail the agent" },
        ValueChoice { name: "fresh", value: Self::Fresh, help: "Start the turn in a new session" },
    ];
}

impl Enumerated for InterruptedScripts {
    const CHOICES: &'static [ValueChoice<Self>] = &[
        ValueChoice { name: "rerun", value: Self::Rerun, help: "Run the script again" },
        ValueChoice { name: "fail", value: Self::Fail, help: "Fail the agent of the script" },
    ];
}

impl Enumerated for ConfigHome {
    const CHOICES: &'static [ValueChoice<Self>] = &[
        ValueChoice { name: "shared", value: Self::Shared, help: "Use the user's configuration" },
        ValueChoice { name: "per-agent", value: Self::PerAgent, help: "Give each agent its own" },
    ];
}
