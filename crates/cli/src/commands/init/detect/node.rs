//! Detects JavaScript projects: scripts of `package.json`, run by the package manager of the lock
//! file.

use serde_json::Value;

use super::{DetectedCommand, DetectedOffer, DetectedTool, Listing};

/// The text that `npm init` writes into a project without tests.
const PLACEHOLDER: &str = "no test specified";

/// The interesting scripts. The first one that a project has is its check.
const SCRIPTS: [&str; 3] = ["test", "lint", "build"];

#[derive(Clone, Copy)]
enum Manager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

pub(super) fn find(listing: &Listing) -> Option<DetectedTool> {
    listing.has("package.json").then(|| {
        let text = listing.text("package.json").unwrap_or_default();
        let offer = match serde_json::from_str::<Value>(text) {
            Ok(package) => {
                let scripts = SCRIPTS.into_iter().zip(manager(listing, &package).commands());
                let scripts = scripts.filter(|(script, _)| has(&package, script));
                let commands = scripts.map(|(_, command)| command).collect();
                DetectedOffer::of(commands, "it has no script test, lint or build")
            }
            Err(_) => DetectedOffer::Nothing("it could not be read"),
        };
        DetectedTool::new("package.json", offer)
    })
}

fn has(package: &Value, script: &str) -> bool {
    let line = package["scripts"][script].as_str().unwrap_or_default();
    !line.trim().is_empty() && !line.contains(PLACEHOLDER)
}

/// Returns the manager that the project names, or whose lock file exists, or npm.
fn manager(listing: &Listing, package: &Value) -> Manager {
    let named = package["packageManager"].as_str().unwrap_or_default();
    match named.split('@').next() {
        Some("npm") => return Manager::Npm,
        Some("pnpm") => return Manager::Pnpm,
        Some("yarn") => return Manager::Yarn,
        Some("bun") => return Manager::Bun,
        _ => {}
    }
    let locks = [
        ("package-lock.json", Manager::Npm),
        ("pnpm-lock.yaml", Manager::Pnpm),
        ("yarn.lock", Manager::Yarn),
        ("bun.lock", Manager::Bun),
        ("bun.lockb", Manager::Bun),
    ];
    let locked = locks.into_iter().find(|(lock, _)| listing.has(lock));
    locked.map_or(Manager::Npm, |(_, manager)| manager)
}

impl Manager {
    /// Returns the commands that run [`SCRIPTS`]. `bun test` would start bun's own test runner
    /// instead.
    const fn commands(self) -> [DetectedCommand; SCRIPTS.len()] {
        let [test, lint, build] = match self {
            Self::Npm => ["npm test", "npm run lint", "npm run build"],
            Self::Pnpm => ["pnpm test", "pnpm run lint", "pnpm run build"],
            Self::Yarn => ["yarn test", "yarn run lint", "yarn run build"],
            Self::Bun => ["bun run test", "bun run lint", "bun run build"],
        };
        [DetectedCommand::tests(test), DetectedCommand::lints(lint), DetectedCommand::builds(build)]
    }
}
