//! `cargo xtask modules`: modules of one crate import each other in one direction only.
//!
//! Modules are compared with their siblings: `core::run` and `core::view`, or `run::decide` and
//! `run::apply`. A path from anywhere inside one sibling into another is an import. A parent and
//! its own children may import each other, and tests may import everything. An item that a parent
//! takes over from a child with `use` belongs to the child.

mod graph;
mod paths;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::commands::root;
use graph::Graph;

/// The crates outside of `crates/`.
const TOOLS: [&str; 4] = ["bench", "bench/floor", "fuzz", "xtask"];

/// A module with its path inside its crate: `["run", "decide"]`. The crate itself has none.
type Module = Vec<String>;

/// Fails if modules of a crate import each other in a circle.
pub(crate) fn modules() -> Result<()> {
    let mut cycles = Vec::new();
    let mut crates: Vec<_> = TOOLS.iter().map(|name| root().join(name)).collect();
    for entry in fs::read_dir(root().join("crates"))? {
        crates.push(entry?.path());
    }
    for crate_directory in crates {
        let name = crate_directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let sources = sources(&crate_directory.join("src"))?;
        for (parent, graph) in graphs(&sources) {
            for cycle in graph.cycles() {
                let place = [std::slice::from_ref(&name), parent.as_slice()].concat().join("::");
                cycles.push(format!("{place}: {}", cycle.join(", ")));
            }
        }
    }
    if cycles.is_empty() {
        return Ok(());
    }
    cycles.sort();
    bail!("these modules import each other in a circle:\n{}", cycles.join("\n"))
}

/// The sources of a crate by module, without tests.
fn sources(src: &Path) -> Result<BTreeMap<Module, String>> {
    let mut sources = BTreeMap::new();
    collect(src, &[], &mut sources)?;
    Ok(sources)
}

fn collect(
    directory: &Path,
    module: &[String],
    sources: &mut BTreeMap<Module, String>,
) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // Tests may import everything, and a program in `bin` is another crate.
        if stem == "tests" || stem == "bin" {
            continue;
        }
        let is_root = module.is_empty() && (stem == "lib" || stem == "main");
        let inner = if is_root { Vec::new() } else { [module, &[stem]].concat() };
        if path.is_dir() {
            collect(&path, &inner, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.insert(inner, paths::without_tests(&fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// For every module with children, which of them import each other.
fn graphs(sources: &BTreeMap<Module, String>) -> BTreeMap<Module, Graph> {
    let taken_over = taken_over(sources);
    let mut graphs: BTreeMap<Module, Graph> = BTreeMap::new();
    for (module, source) in sources {
        for target in paths::imports(source, module) {
            let target = owner(&target, sources, &taken_over);
            let shared = module.iter().zip(&target).take_while(|(one, other)| one == other).count();
            // `None` means that one module contains the other: a parent and its children may import
            // each other.
            if let (Some(from), Some(to)) = (module.get(shared), target.get(shared)) {
                graphs.entry(module[..shared].to_vec()).or_default().add(from, to);
            }
        }
    }
    graphs
}

/// The items that a module takes over from a module below it, by their path there.
fn taken_over(sources: &BTreeMap<Module, String>) -> BTreeMap<Module, Module> {
    let mut taken_over = BTreeMap::new();
    for (module, source) in sources {
        for item in paths::own_names(source, module) {
            let child = item.path.get(..=module.len());
            let is_below = item.path.starts_with(module)
                && child.is_some_and(|child| sources.contains_key(child));
            let here = [module.as_slice(), &[item.name]].concat();
            if is_below && here != item.path {
                taken_over.insert(here, item.path);
            }
        }
    }
    taken_over
}

/// The module that contains what a path names: its last words are items.
fn owner(
    path: &[String],
    sources: &BTreeMap<Module, String>,
    taken_over: &BTreeMap<Module, Module>,
) -> Module {
    for length in (1..=path.len()).rev() {
        let (start, rest) = path.split_at(length);
        // A module first: a function that is called like its module would lead here again.
        if sources.contains_key(start) {
            return start.to_vec();
        }
        if let Some(there) = taken_over.get(start) {
            return owner(&[there, rest].concat(), sources, taken_over);
        }
    }
    Module::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_a_crate_form_no_cycle() {
        modules().unwrap();
    }

    #[test]
    fn siblings_at_every_level_are_compared() {
        let module = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
        let sources = BTreeMap::from([
            (Module::new(), "use a::X; mod a; mod b;".to_owned()),
            (module("a"), "use crate::b::Y; pub struct X;".to_owned()),
            (module("a::one"), "fn f() { super::two::g(); }".to_owned()),
            (module("a::two"), "use super::one::f; use super::X;".to_owned()),
            (module("b"), "pub struct Y;".to_owned()),
            // `one` and `two` import each other, but only through their parent.
            (module("c"), "mod one; mod two; pub use one::P; use two::Q;".to_owned()),
            (module("c::one"), "use super::Q; pub struct P;".to_owned()),
            (module("c::two"), "use super::P; pub struct Q;".to_owned()),
        ]);
        let cycles = |parent: &[&str]| {
            let parent: Module = parent.iter().map(|part| (*part).to_owned()).collect();
            graphs(&sources).get(&parent).map(Graph::cycles).unwrap_or_default()
        };
        assert_eq!(cycles(&[]), Vec::<Vec<String>>::new());
        assert_eq!(cycles(&["a"]), [["one", "two"]]);
        assert_eq!(cycles(&["c"]), [["one", "two"]]);
    }
}
