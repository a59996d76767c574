//! Detects Make projects by the targets of the makefile itself; includes are not followed.

use std::collections::BTreeSet;

use super::{DetectedCommand, DetectedOffer, DetectedTool, Listing};

/// The names in the order in which make searches for them.
pub(super) const NAMES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The interesting targets. The first one that a makefile has is the check.
const TARGETS: [(&str, DetectedCommand); 4] = [
    ("test", DetectedCommand::tests("make test")),
    ("check", DetectedCommand::tests("make check")),
    ("lint", DetectedCommand::lints("make lint")),
    ("build", DetectedCommand::builds("make build")),
];

pub(super) fn find(listing: &Listing) -> Option<DetectedTool> {
    let name = NAMES.into_iter().find(|name| listing.has(name))?;
    let targets = targets(listing.text(name).unwrap_or_default());
    let known = TARGETS.into_iter().filter(|(target, _)| targets.contains(target));
    let commands = known.map(|(_, command)| command).collect();
    Some(DetectedTool::new(
        name,
        DetectedOffer::of(commands, "it has no target test, check, lint or build"),
    ))
}

/// Returns the names before the colon of each rule. Recipes are indented, and `:=` assigns.
fn targets(text: &str) -> BTreeSet<&str> {
    let mut targets = BTreeSet::new();
    // A leading dot marks `.PHONY` and other special targets.
    for line in text.lines().filter(|line| !line.starts_with(['\t', ' ', '#', '.'])) {
        if let Some((names, rest)) = line.split_once(':')
            // Only make itself knows the value of a variable in a name.
            && !names.contains(['=', '$'])
            && !rest.trim_start_matches(':').starts_with('=')
        {
            targets.extend(names.split_whitespace());
        }
    }
    targets
}
