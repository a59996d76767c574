//! Small changes of the crates at the edge: `engine`, `backends` and `cli`.
//!
//! Their tests start processes and take seconds, so a mutant meets only tests that reach it: first the unit
//! tests of its own crate, then, if they do not notice it, the tests of the crates above it and of the
//! command line. Mutants that cannot be woven in are not tried: each would cost a build of everything.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::listed::Mutant;
use super::results::{Explained, Outcome};
use super::tree::{Tests, Tree, each};
use super::{Crate, cage, reach};

/// The crates, the lowest first.
pub(super) const EDGES: [Crate; 3] = [
    Crate { package: "raymond-backends", root: "crates/backends/src/lib.rs" },
    Crate { package: "raymond-engine", root: "crates/engine/src/lib.rs" },
    Crate { package: "raymond", root: "crates/cli/src/main.rs" },
];

/// Which tests a mutant meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The unit tests of its own crate.
    Own,
    /// Then those of the crates above it, and of the command line.
    All,
}

/// Whether a package is one of them.
pub(super) fn is_edge(package: &str) -> bool {
    EDGES.iter().any(|edge| edge.package == package)
}

/// Tries mutants, and says what became of each. It fails when the deadline passes.
#[expect(clippy::print_stderr, reason = "a task runner says what it does")]
pub(super) fn try_all(
    home: &Path,
    mutants: Vec<Mutant>,
    depth: Depth,
    deadline: Option<Instant>,
) -> Result<Vec<(Mutant, Outcome)>> {
    cage::check(home)?;
    let explained = Explained::read()?;
    let has_mutants = |of: &Crate| mutants.iter().any(|mutant| mutant.package == of.package);
    let crates: Vec<Crate> = EDGES.into_iter().filter(has_mutants).collect();
    let tree = Tree::grow(home, &mutants, &crates, deadline)?;
    let mut outcomes: Vec<Outcome> = (0..mutants.len()).map(|number| tree.before(number)).collect();
    let left = |outcomes: &[Outcome]| -> Vec<usize> {
        let is_left = |number: &usize| {
            outcomes[*number] == Outcome::Survived && !explained.has(&mutants[*number])
        };
        (0..outcomes.len()).filter(is_left).collect()
    };
    for stage in stages(depth) {
        let survivors = left(&outcomes);
        if survivors.is_empty() {
            break;
        }
        let packages: Vec<&str> =
            survivors.iter().map(|number| mutants[*number].package.as_str()).collect();
        let tests = tests(&tree, stage, &packages)?;
        let cases = reach::cases(&tests, home, deadline)?;
        eprintln!("    {} mutants meet {} tests, {stage:?}", survivors.len(), cases.len());
        let meet = |number| {
            in_time(deadline)?;
            reach::meet(&cases, number, home)
        };
        for (number, outcome) in each(&survivors, meet)? {
            outcomes[number] = outcome;
        }
    }
    for number in left(&outcomes) {
        eprintln!("    not noticed: {}", mutants[number].place);
    }
    Ok(mutants.into_iter().zip(outcomes).collect())
}

/// Fails when the deadline has passed.
pub(super) fn in_time(deadline: Option<Instant>) -> Result<()> {
    ensure!(deadline.is_none_or(|deadline| Instant::now() < deadline), "there is no time left");
    Ok(())
}

/// Where tests are taken from.
#[derive(Debug, Clone, Copy)]
enum Stage {
    OwnCrate,
    CratesAbove,
    CommandLine,
}

fn stages(depth: Depth) -> Vec<Stage> {
    match depth {
        Depth::Own => vec![Stage::OwnCrate],
        Depth::All => vec![Stage::OwnCrate, Stage::CratesAbove, Stage::CommandLine],
    }
}

fn tests(tree: &Tree<'_>, stage: Stage, packages: &[&str]) -> Result<Vec<Tests>> {
    let has = |package: &str| packages.contains(&package);
    match stage {
        Stage::OwnCrate => {
            let own = EDGES.iter().map(|edge| edge.package).filter(|package| has(package));
            tree.tests(&own.collect::<Vec<_>>(), &["--lib", "--bins"])
        }
        Stage::CratesAbove => {
            let mut above = Vec::new();
            above.extend(has("raymond-backends").then_some("raymond-engine"));
            above.extend(has("raymond-engine").then_some("raymond-testkit"));
            match above.as_slice() {
                [] => Ok(Vec::new()),
                above => tree.tests(above, &["--lib"]),
            }
        }
        Stage::CommandLine => {
            tree.build(&["build", "--bin", "fake-claude"], "raymond-testkit")?;
            tree.tests(&["raymond"], &["--test", "cli", "--test", "claude"])
        }
    }
}
