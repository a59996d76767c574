//! A file of the configuration.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

use raymond_core::diagnostic::{Diagnostic, Place};
use raymond_core::workflow::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;

use super::given::{Given, Written, price};
use super::layer::{Layer, Origin, Sourced};
use super::{mistake, shown};

/// The one key that is no setting by itself.
const PRICES: &str = "prices";

/// Reads a file; one that does not exist says nothing.
pub(super) fn read(path: &Path, mistakes: &mut Vec<Diagnostic>) -> Result<Layer, Failure> {
    match text_of(path) {
        Ok(text) => {
            let base = path.parent().unwrap_or(path);
            let mut file = File { name: shown(path), text: &text, base, mistakes };
            Ok(file.parse())
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Layer::default())
        }
        Err(error) => Err(Failure::environment(format!("could not read {}: {error}", shown(path)))),
    }
}

/// Whoever put something else in its place, such as a pipe, would keep every command waiting.
fn text_of(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    std::fs::read_to_string(path)
}

struct File<'t> {
    name: String,
    text: &'t str,
    base: &'t Path,
    mistakes: &'t mut Vec<Diagnostic>,
}

impl File<'_> {
    fn parse(&mut self) -> Layer {
        let mut layer = Layer::default();
        match DeTable::parse(self.text) {
            Ok(table) => {
                for (key, value) in table.get_ref() {
                    self.take(&mut layer, key, value);
                }
            }
            Err(error) => self.wrong(error.span().unwrap_or_default(), error.message(), None),
        }
        layer
    }

    fn take(
        &mut self,
        layer: &mut Layer,
        key: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let name = key.get_ref().as_ref();
        if name == PRICES {
            return self.take_prices(layer, value);
        }
        let given = Given { value: Written::Toml(value.get_ref()), base: self.base };
        match layer.set(name, given, &self.origin(key.span())) {
            Some(Ok(())) => {}
            Some(Err(wrong)) => self.wrong(value.span(), format!("{name}: {wrong}"), None),
            None => {
                let hint = match nearest(name, Layer::KEYS.into_iter().chain([PRICES])) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("the keys are {}, {PRICES}", Layer::KEYS.join(", ")),
                };
                self.wrong(key.span(), format!("there is no key {name:?}"), Some(hint));
            }
        }
    }

    /// `[prices."model"]`
    fn take_prices(&mut self, layer: &mut Layer, value: &Spanned<DeValue<'_>>) {
        let example = || Some("write [prices.\"model\"] with input and output".to_owned());
        let DeValue::Table(models) = value.get_ref() else {
            return self.wrong(value.span(), format!("{PRICES} is not a table"), example());
        };
        for (model, prices) in models {
            let (name, at) = (format!("{PRICES}.{:?}", model.get_ref()), prices.span());
            let DeValue::Table(table) = prices.get_ref() else {
                self.wrong(at, format!("{name} is not a table"), example());
                continue;
            };
            match price(table, self.base) {
                Ok(value) => {
                    let origin = self.origin(model.span());
                    layer.prices.insert(model.get_ref().to_string(), Sourced { value, origin });
                }
                Err(wrong) => self.wrong(at, format!("{name}: {wrong}"), None),
            }
        }
    }

    fn wrong(&mut self, at: Range<usize>, message: impl Into<String>, hint: Option<String>) {
        let found = mistake(message).in_file(&self.name).at(self.text, at);
        self.mistakes.push(Diagnostic { hint, ..found });
    }

    fn origin(&self, at: Range<usize>) -> Origin {
        let line = Place::of(self.text, at).line;
        Origin::File { path: self.name.clone(), line }
    }
}
