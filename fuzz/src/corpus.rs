//! The inputs that a target begins with: `fuzz/corpus/TARGET/…`.
//!
//! A file is an input. A file that ends in `.recipe` describes how to make one, because a text of a
//! hundred thousand brackets does not belong under version control: it is a JSON array of
//! `["text", times]`, and `{n}` in a text is the number of the time.

use std::fs;
use std::path::{Path, PathBuf};

/// An input with the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    pub name: String,
    pub bytes: Vec<u8>,
}

pub fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The corpus of a target, in order of name.
pub fn of(target: &str) -> Vec<Seed> {
    let directory = home().join(target);
    let listed = fs::read_dir(&directory).expect("every target has a corpus");
    let mut paths: Vec<PathBuf> =
        listed.map(|entry| entry.expect("a corpus can be listed").path()).collect();
    // The order of a directory differs between machines, and inputs are picked by their place.
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Seed {
    let bytes = fs::read(path).expect("a corpus holds files");
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_recipe = path.extension().is_some_and(|extension| extension == "recipe");
    let bytes = if is_recipe { follow(&bytes) } else { bytes };
    Seed { name, bytes }
}

/// Makes the input of a recipe.
pub fn follow(recipe: &[u8]) -> Vec<u8> {
    let parts: Vec<(String, usize)> =
        serde_json::from_slice(recipe).expect("a recipe is a list of texts and numbers");
    let times = |(text, times): &(String, usize)| -> String {
        if !text.contains("{n}") {
            return text.repeat(*times);
        }
        (0..*times).map(|n| text.replace("{n}", &n.to_string())).collect()
    };
    parts.iter().map(times).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_followed() {
        assert_eq!(follow(br#"[["[",3],["]",2],["x",0],["k{n} ",2]]"#), b"[[[]]k0 k1 ");
    }
}
