//! Converts a value of a file or a variable to the type of its key.
//!
//! A file has typed values and a variable has only text, so each conversion accepts both forms.
//! Nothing is guessed: a value of the wrong type is an error that names the expected form. Flags
//! are not converted here, because clap parses them.

use std::path::{Path, PathBuf};

use raymond_core::budget::Micros;
use raymond_core::prices::Price;
use raymond_core::text::nearest;
use raymond_core::time::Span;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value of the configuration.
#[derive(Clone, Copy)]
pub(super) struct ConfigValue<'v> {
    pub(super) value: RawValue<'v>,
    /// The directory that relative paths start from.
    pub(super) base: &'v Path,
}

/// The source form of a value.
#[derive(Clone, Copy)]
pub(super) enum RawValue<'v> {
    Toml(&'v DeValue<'v>),
    Text(&'v str),
}

/// The reason why a value does not fit its key.
pub(super) type ValueError = String;

/// A type whose values all have names.
pub(super) trait Enumerated: Copy + PartialEq + Send + Sync + 'static {
    const CHOICES: &'static [ValueChoice<Self>];

    /// Returns the value with this name.
    fn named(name: &str) -> Option<Self> {
        Self::CHOICES.iter().find(|choice| choice.name == name).map(|choice| choice.value)
    }
}

/// A value with its name, and its help text for the flag.
pub(super) struct ValueChoice<T> {
    pub(super) name: &'static str,
    pub(super) value: T,
    pub(super) help: &'static str,
}

/// Parses a cap, or `none`.
pub(super) fn cap(text: &str) -> Result<Option<Micros>, ValueError> {
    match text {
        "none" => Ok(None),
        amount => not_zero(amount.parse().map_err(|error| format!("{error}, or none"))?).map(Some),
    }
}

fn not_zero(amount: Micros) -> Result<Micros, ValueError> {
    if amount == Micros::ZERO {
        return Err("a budget of zero starts nothing; use an amount or `none`".to_owned());
    }
    Ok(amount)
}

impl<'v> ConfigValue<'v> {
    pub(super) fn text(self) -> Result<String, ValueError> {
        let text = match self.value {
            RawValue::Toml(DeValue::String(text)) => text.as_ref(),
            RawValue::Text(text) => text,
            RawValue::Toml(_) => return Err(self.expected("a text in quotes")),
        };
        // An empty model or path would only fail later, far from its origin.
        if text.trim().is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
    }

    pub(super) fn path(self) -> Result<PathBuf, ValueError> {
        Ok(self.base.join(self.text()?))
    }

    /// Reads a program: a name, or a path.
    pub(super) fn command(self) -> Result<String, ValueError> {
        let command = self.text()?;
        // A bare name is searched on `PATH`, as in a shell; a path starts from the directory of the
        // file.
        if !command.contains('/') {
            return Ok(command);
        }
        let path = self.base.join(command).into_os_string();
        path.into_string().map_err(|_| "its path is not UTF-8".to_owned())
    }

    pub(super) fn switch(self) -> Result<bool, ValueError> {
        match self.value {
            RawValue::Toml(DeValue::Boolean(value)) => Ok(*value),
            RawValue::Text("true") => Ok(true),
            RawValue::Text("false") => Ok(false),
            RawValue::Toml(_) | RawValue::Text(_) => Err(self.expected("true or false")),
        }
    }

    pub(super) fn count(self, least: u32) -> Result<u32, ValueError> {
        let count = match self.value {
            RawValue::Toml(DeValue::Integer(n)) => u32::from_str_radix(n.as_str(), n.radix()).ok(),
            RawValue::Text(text) => text.parse().ok(),
            RawValue::Toml(_) => None,
        };
        count
            .filter(|count| *count >= least)
            .ok_or_else(|| self.expected(&format!("a whole number of at least {least}")))
    }

    /// Reads an amount of dollars.
    pub(super) fn money(self) -> Result<Micros, ValueError> {
        let text = match self.value {
            RawValue::Toml(DeValue::Integer(n)) if n.radix() == 10 => n.as_str(),
            // As text and not as a float, because money must not be rounded.
            RawValue::Toml(DeValue::Float(n)) => n.as_str(),
            RawValue::Toml(DeValue::String(text)) => text.as_ref(),
            RawValue::Text(text) => text,
            RawValue::Toml(_) => return Err(self.expected("an amount of dollars")),
        };
        text.parse().map_err(|error| format!("{error}"))
    }

    /// Reads a cap, or `none`.
    pub(super) fn cap(self) -> Result<Option<Micros>, ValueError> {
        match self.value {
            RawValue::Text(text) => cap(text),
            RawValue::Toml(DeValue::String(text)) => cap(text),
            RawValue::Toml(_) => not_zero(self.money()?).map(Some),
        }
    }

    pub(super) fn span(self) -> Result<Span, ValueError> {
        if let RawValue::Toml(DeValue::Integer(_)) = self.value {
            return Err(self.expected("a duration such as \"90s\", \"10m\" or \"2h\""));
        }
        self.text()?.parse().map_err(|error| format!("{error}"))
    }

    pub(super) fn choice<T: Enumerated>(self) -> Result<T, ValueError> {
        T::named(&self.text()?).ok_or_else(|| {
            let names: Vec<&str> = T::CHOICES.iter().map(|choice| choice.name).collect();
            self.expected(&names.join(" or "))
        })
    }

    /// Returns the entries of a list; a variable separates them with commas.
    pub(super) fn entries(self) -> Result<Vec<Self>, ValueError> {
        match self.value {
            RawValue::Toml(DeValue::Array(entries)) => {
                Ok(entries.iter().map(|entry| self.inner(entry)).collect())
            }
            RawValue::Text(text) => {
                let entry = |text| Self { value: RawValue::Text(text), ..self };
                Ok(split_list(text).map(entry).collect())
            }
            RawValue::Toml(_) => Err(self.expected("a list of texts, such as [\"a\", \"b\"]")),
        }
    }

    /// Reads `inherit`, or the names of variables.
    pub(super) fn environment(self) -> Result<Option<Vec<String>>, ValueError> {
        match self.value {
            RawValue::Toml(DeValue::String(text)) if text == "inherit" => Ok(None),
            RawValue::Text("inherit") => Ok(None),
            RawValue::Toml(DeValue::Array(_)) | RawValue::Text(_) => {
                self.entries()?.into_iter().map(Self::text).collect::<Result<_, _>>().map(Some)
            }
            RawValue::Toml(_) => Err(self.expected("\"inherit\", or a list of names")),
        }
    }

    /// Reads the workspace of one agent.
    pub(super) fn agent(self) -> Result<PathBuf, ValueError> {
        const WORKSPACE: &str = "workspace";
        let table = self.table()?;
        let mut keys = table.keys().map(|key| key.get_ref().as_ref());
        if let Some(stranger) = keys.find(|key| *key != WORKSPACE) {
            let known = format!("the only key of an agent is {WORKSPACE}");
            return Err(format!("unknown key {stranger:?}: {known}"));
        }
        let value = table.get(WORKSPACE).ok_or_else(|| format!("{WORKSPACE} is missing"))?;
        self.inner(value).path().map_err(|wrong| format!("{WORKSPACE}: {wrong}"))
    }

    /// Reads the prices of one model. Cache prices default to the price of input.
    pub(super) fn price(self) -> Result<Price, ValueError> {
        const KINDS: [&str; 4] = ["input", "output", "cache_write", "cache_read"];
        let table = self.table()?;
        let mut keys = table.keys().map(|key| key.get_ref().as_ref());
        if let Some(stranger) = keys.find(|key| !KINDS.contains(key)) {
            let known = nearest(stranger, KINDS).map(|kind| format!("; did you mean {kind}?"));
            return Err(format!("unknown price {stranger:?}{}", known.unwrap_or_default()));
        }
        let amount = |kind: &str| {
            let Some(value) = table.get(kind) else { return Ok(None) };
            self.inner(value).money().map(Some).map_err(|wrong| format!("{kind}: {wrong}"))
        };
        let needed = |kind: &str| amount(kind)?.ok_or_else(|| format!("{kind} is missing"));
        let input = needed("input")?;
        Ok(Price {
            input,
            output: needed("output")?,
            cache_write: amount("cache_write")?.unwrap_or(input),
            cache_read: amount("cache_read")?.unwrap_or(input),
        })
    }

    fn table(self) -> Result<&'v DeTable<'v>, ValueError> {
        match self.value {
            RawValue::Toml(DeValue::Table(table)) => Ok(table),
            RawValue::Toml(_) | RawValue::Text(_) => Err(self.expected("a table")),
        }
    }

    /// Returns a value inside this one.
    fn inner(self, value: &'v Spanned<DeValue<'v>>) -> Self {
        Self { value: RawValue::Toml(value.get_ref()), ..self }
    }

    fn expected(self, what: &str) -> ValueError {
        let found = match self.value {
            RawValue::Text(text) => format!("{text:?}"),
            RawValue::Toml(DeValue::String(text)) => format!("{text:?}"),
            RawValue::Toml(DeValue::Integer(number)) => number.to_string(),
            RawValue::Toml(DeValue::Float(number)) => number.to_string(),
            RawValue::Toml(DeValue::Boolean(value)) => value.to_string(),
            RawValue::Toml(DeValue::Datetime(_)) => "a time".to_owned(),
            RawValue::Toml(DeValue::Array(_)) => "a list".to_owned(),
            RawValue::Toml(DeValue::Table(_)) => "a table".to_owned(),
        };
        format!("{found} is not {what}")
    }
}

/// Splits a list at commas, except commas in parentheses, which belong to a tool.
fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|entry| !entry.is_empty())
}
