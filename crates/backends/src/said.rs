//! What was said in a turn, for people who read it: transcripts of every backend whose clients write one.

use raymond_core::ids::BackendName;

pub use crate::headless::{Said, Speaker};

use crate::process::Heard;
use crate::{claude, codex};

/// Reads a transcript again, line by line.
#[derive(Debug)]
pub struct Recount(Language);

#[derive(Debug)]
enum Language {
    Claude(Box<claude::Recount>),
    Codex(Box<codex::Recount>),
}

impl Recount {
    /// For a transcript of this backend, where it writes any.
    pub fn of(backend: &BackendName) -> Option<Self> {
        match backend.as_str() {
            claude::NAME => Some(Self(Language::Claude(Box::default()))),
            codex::NAME => Some(Self(Language::Codex(Box::default()))),
            _ => None,
        }
    }

    /// What this line says.
    pub fn hear(&mut self, heard: &Heard) -> Vec<Said> {
        match &mut self.0 {
            Language::Claude(recount) => recount.hear(heard),
            Language::Codex(recount) => recount.hear(heard),
        }
    }
}
