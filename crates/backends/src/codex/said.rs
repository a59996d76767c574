//! What the client said in a turn, for people who read it.

use std::path::Path;
use std::sync::Arc;

use raymond_core::prices::Prices;

use super::books::Books;
use super::past::Past;
use super::turn::{Form, Turn};
use crate::headless::{Fold as _, Said};
use crate::process::Heard;

/// Reads a transcript again, line by line. What the client keeps elsewhere is not looked at.
#[derive(Debug)]
pub(crate) struct Recount(Turn);

impl Default for Recount {
    fn default() -> Self {
        let books = Books::new(Path::new(""), Arc::new(Prices::default()), Past::default());
        Self(Turn::new(books, None, Form::Text))
    }
}

impl Recount {
    /// What this line says.
    pub(crate) fn hear(&mut self, heard: &Heard) -> Vec<Said> {
        self.0.hear(heard)
    }
}
